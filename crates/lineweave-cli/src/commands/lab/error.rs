//! Errors of the laboratory's questions.

use lineweave_core::collective::Collective;
use lineweave_core::names::did_you_mean;
use std::path::PathBuf;
use thiserror::Error;

/// Reason why a question has no answer: each says what was expected, what was found and what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LabError {
    #[error("machine `{name}` is no mesh: --mesh needs one, such as intel-scc or knights-landing-7210")]
    NoMesh { name: String },
    #[error("no experiments of `{name}` for a machine at hand{}: expected one of {known}", did_you_mean(name, [known.as_str()]))]
    NoStudy { name: String, known: String },
    #[error("{path} holds points of {found}, and this is {expected}: name another directory with -o, or remove it")]
    OtherPoints { path: PathBuf, found: String, expected: String },
    #[error("{path} is a profile of {found}, and this is {expected}: name another directory with -o, or remove it")]
    OtherProfile { path: PathBuf, found: String, expected: String },
    #[error("{costs}: it tells nothing of links and ports, which a description with [mesh] or [coherent.mesh] does: --machine intel-scc or --machine knights-landing-7210")]
    NoMeshCosts { costs: String },
    #[error("--controllers {controllers}: expected at most one a tile, {most} on a mesh of {mesh}")]
    TooManyControllers { controllers: u32, mesh: String, most: u32 },
    /// Costs that consist of a model only, without measured cells.
    #[error("{costs}: expected a profile or a machine's description, whose values the published models take; name one with --profile or --machine")]
    NoCells { costs: String },
    /// Costs that no simulator of cache lines takes.
    #[error("{costs}: --bounds plays plans on a description with [coherent]; name one with --machine, such as xeon-phi-5110p")]
    NoBounds { costs: String },
    #[error("no algorithm of {collective} has a plan of {bytes} bytes among {ranks} ranks: `lineweave list {collective}` shows for what each is")]
    NoRows { collective: Collective, ranks: usize, bytes: usize },
    #[error("paper `{name}`{}: expected part of one of {known}", did_you_mean(name, [known.as_str()]))]
    UnknownPaper { name: String, known: String },
    #[error("no optimiser for {collective} of {bytes} bytes (or none of that name): expected barrier, bcast, or reduce of up to 56 bytes")]
    NoOptimiser { collective: Collective, bytes: usize },
}
