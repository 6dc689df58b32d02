//! Optimisers: the parameters of a collective that cost least in a closed form, and how far from a bound they are.
//!
//! - `levels`: degrees of a tree, level by level;
//! - `radix`: peers in each round of a dissemination;
//! - `ramos_hoefler`: both with the costs of Ramos & Hoefler 2013, and their large broadcasts;
//! - `hierarchy`, `pipeline`, `notify`: trees per level of the machine, chunks and slots, and how children hear that
//!   something is ready, with the costs of a [`Model`](lineweave_core::model::Model);
//! - `matrix`: trees over ranks any two of which have a latency of their own;
//! - `row`: what a row of a message-passing mesh costs, for generated reduce trees;
//! - `costs`: the closed costs that those start from;
//! - `methods`: the table of all of them, from a machine and ranks to the parameters of a plan.
//!
//! What no algorithm can be faster than is in [`bounds`](crate::models::bounds).
//!
//! Selection plays every candidate's plan; these search far more parameter sets than could be played, at the price
//! of a closed form. What they choose are parameters of plans ([`Optimum::choice`] says of which), so that it can
//! be proved, played and run like any other.

pub mod buffers;
pub mod costs;
pub mod hierarchy;
pub mod levels;
pub mod matrix;
pub mod methods;
pub mod notify;
pub mod pipeline;
pub mod radix;
pub mod ramos_hoefler;
pub mod row;

/// Choice that costs least, and a lower bound of all costs.
#[derive(Clone, PartialEq, Debug)]
pub struct Optimum<T> {
    /// The parameters.
    pub choice: T,
    /// Their cost in the closed form, ns.
    pub cost_ns: f64,
    /// Lower bound of any algorithm's cost in the same model, ns.
    pub bound_ns: f64,
    /// True if the search was exhaustive: no other parameters of this family cost less.
    pub exact: bool,
}

impl<T> Optimum<T> {
    /// Cost by bound: 1 where nothing can be better.
    pub fn ratio(&self) -> f64 {
        match self.bound_ns > 0.0 {
            true => self.cost_ns / self.bound_ns,
            false => 1.0,
        }
    }

    /// Returns this optimum with another form of the choice.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Optimum<U> {
        Optimum { choice: f(self.choice), cost_ns: self.cost_ns, bound_ns: self.bound_ns, exact: self.exact }
    }
}

/// Costs this close, as a fraction of them, are the same: sums of the same terms in another order differ in
/// their last bits.
const SAME: f64 = 1e-9;

/// Returns whether `a` costs less than `b` by more than rounding.
fn less(a: f64, b: f64) -> bool {
    a < b && (b.is_infinite() || a < b - SAME * a.abs().max(b.abs()))
}

/// Whole numbers as parameters spell them: `5,3,2`.
pub fn list(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}
