//! Errors of the laboratory's questions.

use lineweave_core::collective::Collective;
use lineweave_core::names::did_you_mean;
use std::path::PathBuf;
use thiserror::Error;

/// Reason why a question has no answer: each says what was expected, what was found and what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LabError {
    /// Dimensions for a machine that has no mesh.
    #[error("machine `{name}` is no mesh: --mesh needs one, such as intel-scc")]
    NoMesh {
        /// Name of the machine.
        name: String,
    },
    /// A paper without experiments on hardware.
    #[error("no experiments of `{name}` for a machine at hand{}: expected one of {known}", did_you_mean(name, [known.as_str()]))]
    NoStudy {
        /// The value that was asked for.
        name: String,
        /// Keys of the papers with such experiments.
        known: String,
    },
    /// Points of another machine or paper.
    #[error("{path} holds points of {found}, and this is {expected}: name another directory with -o, or remove it")]
    OtherPoints {
        /// The file.
        path: PathBuf,
        /// The paper and machine that the points are of.
        found: String,
        /// The paper and machine that were asked for.
        expected: String,
    },
    /// Costs of a machine without a mesh.
    #[error("{costs}: it tells nothing of links and ports, which a description with [mesh] does: --machine intel-scc")]
    NoMeshCosts {
        /// Source of the costs.
        costs: String,
    },
    /// More memory controllers than tiles.
    #[error("--controllers {controllers}: expected at most one a tile, {most} on a mesh of {mesh}")]
    TooManyControllers {
        /// The value that was asked for.
        controllers: u32,
        /// The mesh.
        mesh: String,
        /// The number of tiles of the mesh.
        most: u32,
    },
    /// Costs that consist of a model only, without measured cells.
    #[error("{costs}: expected a profile or a machine's description, whose values the published models take; name one with --profile or --machine")]
    NoCells {
        /// Source of the costs.
        costs: String,
    },
    /// No algorithm has a plan.
    #[error("no algorithm of {collective} has a plan of {bytes} bytes among {ranks} ranks: `lineweave list {collective}` shows for what each is")]
    NoRows {
        /// The collective.
        collective: Collective,
        /// Ranks.
        ranks: usize,
        /// Length of the message.
        bytes: usize,
    },
    /// A paper that is not among those reproduced.
    #[error("paper `{name}`{}: expected part of one of {known}", did_you_mean(name, [known.as_str()]))]
    UnknownPaper {
        /// The name as given.
        name: String,
        /// Keys of the papers.
        known: String,
    },
    /// A collective, a size or a name that has no optimiser.
    #[error("no optimiser for {collective} of {bytes} bytes (or none of that name): expected barrier, bcast, or reduce of up to 56 bytes")]
    NoOptimiser {
        /// The collective.
        collective: Collective,
        /// Length of the message.
        bytes: usize,
    },
}
