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
    /// At most so many ranks.
    UpTo(usize),
}

impl For {
    fn holds(self, ranks: usize) -> bool {
        match self {
            For::All => true,
            For::Two => ranks == 2,
            For::Even => ranks % 2 == 0,
            For::Powers => ranks.is_power_of_two(),
            For::UpTo(most) => ranks <= most,
        }
    }
}

/// An algorithm of a library.
#[derive(Clone, PartialEq, Debug)]
pub struct Algorithm {
    pub collective: Collective,
    /// The library's name of the algorithm.
    pub name: String,
    /// The value that the setting takes for it; empty for a library's default, forced, and for a form that cannot be forced.
    pub value: String,
    /// The closed form of its messages, if it has one.
    pub form: Option<Form>,
    /// Collectives that the algorithm calls itself: they are not forced beside it.
    pub calls: &'static [Collective],
    /// True if ranks send only copies of what the caller gave, false if only that itself; `None` if its form says which.
    pub copies: Option<bool>,
    /// The shortest message that it takes, in bytes of doubles: a message that is scattered has an element for each rank.
    pub least: u64,
}

/// The closed form of an algorithm's messages, and the numbers of ranks among which it has that one; `None` if the algorithm is not made of
/// messages, or sends them in an order that no closed form has.
pub(super) type Does = Option<(For, Form)>;

/// A line of a library's table: number or name of the setting, the name that is shown, the numbers of ranks that it is for, and its
/// closed form.
pub(super) type Row = (&'static str, &'static str, For, Does);

/// Returns the algorithms of a table for so many ranks.
pub(super) fn of_rows(
    collective: Collective,
    rows: impl IntoIterator<Item = Row>,
    ranks: usize,
) -> Vec<Algorithm> {
    let algorithm = |(value, name, holds, does): Row| {
        let form = does.filter(|(among, _)| among.holds(ranks)).map(|(_, form)| form);
        let form = form.filter(|f| f.stages(ranks, 1).is_ok());
        let (name, value) = (name.to_owned(), value.to_owned());
        let scatters = matches!(form, Some(Form::Rabenseifner | Form::RabenseifnerReduce));
        let least = if scatters { 8 * ranks as u64 } else { 0 };
        holds.holds(ranks).then_some(Algorithm {
            collective,
            name,
            value,
            form,
            calls: &[],
            copies: None,
            least,
        })
    };
    rows.into_iter().filter_map(algorithm).collect()
}
