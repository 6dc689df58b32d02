//! The text form of a plan: printed by `Display`, read by `FromStr`.

/// Why a text is not a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct PlanTextError {
    /// Line of the text, from 1.
    pub line: usize,
    /// What was expected and what was found.
    pub message: String,
}
