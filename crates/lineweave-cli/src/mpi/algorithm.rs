//! An algorithm of an MPI library, and the settings that force it.

use lineweave_core::collective::Collective;
use lineweave_lab::models::Form;

/// The numbers of ranks that a library's algorithm is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum For {
    /// Any number.
    All,
    /// Two ranks only.
    Two,
    /// Even numbers.
    Even,
    /// Powers of two.
    Powers,
}

impl For {
    fn holds(self, ranks: usize) -> bool {
        match self {
            For::All => true,
            For::Two => ranks == 2,
            For::Even => ranks % 2 == 0,
            For::Powers => ranks.is_power_of_two(),
        }
    }
}

/// An algorithm of a library.
#[derive(Clone, PartialEq, Debug)]
pub struct Algorithm {
    pub collective: Collective,
    /// The library's name of the algorithm.
    pub name: String,
    /// The value that the setting takes for it.
    pub value: String,
    /// The closed form of its messages, if it has one.
    pub form: Option<Form>,
    /// Collectives that the algorithm calls itself: they are not forced beside it.
    pub calls: &'static [Collective],
    /// The shortest message that it takes, in bytes of doubles: a message that is scattered has an element for each rank.
    pub least: u64,
}

/// A line of a library's table: number or name of the setting, the name that is shown, the numbers of ranks that it is for, and its
/// closed form for a number of ranks.
pub(super) type Row = (&'static str, &'static str, For, fn(usize) -> Option<Form>);

/// Returns the algorithms of a table for so many ranks.
pub(super) fn of_rows(collective: Collective, rows: &[Row], ranks: usize) -> Vec<Algorithm> {
    let algorithm = |&(value, name, holds, form): &Row| {
        let form = form(ranks).filter(|f| f.stages(ranks, 1).is_ok());
        let (name, value) = (name.to_owned(), value.to_owned());
        let scatters = matches!(form, Some(Form::Rabenseifner | Form::RabenseifnerReduce));
        let least = if scatters { 8 * ranks as u64 } else { 0 };
        holds.holds(ranks).then_some(Algorithm { collective, name, value, form, calls: &[], least })
    };
    rows.iter().filter_map(algorithm).collect()
}

/// A closed form for any number of ranks.
macro_rules! always {
    ($form:expr) => {
        |_| Some($form)
    };
}
/// No closed form: the algorithm is not made of messages, or sends them in an order that no closed form has.
macro_rules! never {
    () => {
        |_| None
    };
}
/// A closed form for two ranks only.
macro_rules! of_two {
    ($form:expr) => {
        |ranks| (ranks == 2).then_some($form)
    };
}
pub(super) use {always, never, of_two};
