//! The parameter `home` of every algorithm: in whose box all lines of a plan lie.
//!
//! Left out, each flag is where the algorithm has it, mostly with the rank that polls it. Some algorithms have values of their own,
//! such as `home=root` of a tree, which puts arrival and release of a rank side by side; those go first.

use super::{Algorithm, Problem};
use crate::plan::{Home, Params, Plan, PlanError};

/// Its name.
pub(super) const NAME: &str = "home";

impl Algorithm {
    /// The home that parameters give all lines of a plan, if it is none of the algorithm's own.
    ///
    /// # Errors
    /// [`PlanError::BadParameter`] for a home that nobody knows.
    pub fn home(&self, params: &Params) -> Result<Option<Home>, PlanError> {
        let Some(text) = params.get(NAME) else { return Ok(None) };
        let has_its_own = self.params.iter().any(|p| p.name == NAME);
        match text.parse() {
            Ok(Home::Root) | Err(_) if has_its_own => Ok(None),
            Ok(home) => Ok(Some(home)),
            Err(_) => params.read(NAME, Home::Root).map(Some),
        }
    }

    /// The plan that `make` makes of the algorithm's own parameters, with its lines where `params` say.
    pub(super) fn with_home(
        &self,
        problem: &Problem,
        params: &Params,
        make: impl FnOnce(&Params) -> Result<Plan, PlanError>,
    ) -> Result<Plan, PlanError> {
        let Some(home) = self.home(params)? else { return make(params) };
        let mut own = params.clone();
        own.0.remove(NAME);
        let plan = make(&own)?.homed(home, &problem.shape)?;
        Ok(Plan { params: params.clone(), ..plan })
    }
}
