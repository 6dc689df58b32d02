//! Origin of a model.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Origin of a model.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Origin {
    /// A profile of this machine.
    Profile {
        /// The profile's file.
        file: PathBuf,
    },
    /// Costs of a machine like this one, which `lineweave profile adopt` wrote.
    Costs {
        /// Their file.
        file: PathBuf,
        /// The name of the machine's description.
        name: String,
    },
    /// A shipped description, because there is no profile.
    Machine {
        /// The machine's name.
        name: String,
        /// Why this one.
        why: String,
    },
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::Profile { file } => write!(f, "profile {}", file.display()),
            Origin::Costs { file, name } => {
                write!(
                    f,
                    "costs of {name}, {}; `lineweave tune` measures what they cannot tell",
                    file.display()
                )
            }
            Origin::Machine { name, why } => {
                write!(f, "machine description {name} ({why}); run `lineweave tune` to measure this machine")
            }
        }
    }
}
