//! Cost of a call whose ranks are on several nodes: phases within nodes, as lineweave would carry them out, and one between
//! the nodes' first ranks, by another library (MPI), of which only the time of a message is known.
//!
//! Phases follow each other as in `mpi/src/nodes.c` and, for long messages, `nodes_long.c`. There a node has several leaders, taken here
//! to be all its ranks and to share one link; pieces follow each other through the phases. Between nodes the cheapest published algorithm is taken, a message costing
//! alpha + beta m (Hockney 1994; stages after Thakur, Rabenseifner & Gropp 2005): what that library really does is its own affair,
//! so this is a lower bound of its algorithms and an estimate of the whole. Nodes are alike, and the root is its node's first rank.

use crate::models::{Call, Form, NoForm, Published};
use lineweave_core::collective::Collective;
use lineweave_core::model::{AlphaBeta, Model};
use lineweave_core::select::{select, Question, SelectError};
use lineweave_core::units::Nanos;

/// Messages from here on go in pieces of a fourth, and an allreduce's through several leaders.
const LONG: usize = 1 << 20;
/// Bytes of the shortest piece and of the longest.
const PIECES: [usize; 2] = [1 << 19, 1 << 20];

/// Reason why there is no cost over several nodes.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NoNodes {
    /// Only some collectives are carried out over several nodes.
    #[error("{0} is left to the MPI when its ranks are on several nodes; barrier, bcast, reduce, allreduce, allgather, gather and scatter are not")]
    Collective(Collective),
    /// A phase has no plan.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// The phase between nodes has no closed form.
    #[error(transparent)]
    Form(#[from] NoForm),
}

/// One phase of a call over several nodes.
#[derive(Clone, PartialEq, Debug)]
pub struct Phase {
    /// Description of the phase: `reduce within a node`.
    pub what: String,
    /// The algorithm: lineweave's with its parameters, or the published one.
    pub algorithm: String,
    /// Bytes of its message, or of a block.
    pub bytes: usize,
    /// Time of the phase for one piece.
    pub time: Nanos,
    /// True if it is between nodes.
    pub between: bool,
}

/// A call over several nodes.
#[derive(Clone, PartialEq, Debug)]
pub struct OverNodes {
    /// Phases, in their order.
    pub phases: Vec<Phase>,
    /// Pieces that the message goes in, overlapping.
    pub pieces: usize,
    /// The whole call.
    pub predicted: Nanos,
}

/// The cost of a call among `nodes` nodes with as many ranks each as `question` has, whose shape is that of one node; a message of m
/// bytes between two nodes takes `link`. `question.bytes` is what it is for all: the message, or one rank's block.
///
/// # Errors
/// [`NoNodes`].
pub fn over_nodes(
    model: &Model,
    question: &Question,
    nodes: usize,
    link: &AlphaBeta,
) -> Result<OverNodes, NoNodes> {
    let local = question.shape.ranks();
    let ranks = local * nodes;
    let gamma = model.fold(question.grain).map(|fold| &fold.private);
    let whole = matches!(question.collective, Collective::Bcast | Collective::Reduce | Collective::Allreduce);
    let long = whole && question.bytes >= LONG;
    let piece = (question.bytes / 4).clamp(PIECES[0], PIECES[1]);
    let pieces = if long { question.bytes.div_ceil(piece) } else { 1 };
    let bytes = if long { piece.min(question.bytes) } else { question.bytes };
    // Of a piece, what one leader has, in whole elements.
    let part = bytes.div_ceil(local).next_multiple_of(question.grain.max(1));
    let within = |collective: Collective, bytes: usize, from: &str| -> Result<Option<Phase>, NoNodes> {
        if local == 1 {
            return Ok(None);
        }
        let grain = if collective.folds() { question.grain } else { 1 };
        let part = Question { collective, root: 0, bytes, grain, uneven: None, ..question.clone() };
        let choice = select(model, &part)?;
        let algorithm = choice.named(bytes).to_string();
        let what = format!("{collective} within {from}");
        Ok(Some(Phase { what, algorithm, bytes, time: choice.predicted, between: false }))
    };
    let between = |forms: &[Form], bytes: usize, whole: usize| -> Result<Option<Phase>, NoNodes> {
        if nodes == 1 {
            return Ok(None);
        }
        let mut best: Option<(Form, f64)> = None;
        for &form in forms {
            let call = Call { gamma, ..Call::new(form, nodes, whole as u64) };
            let cost = match link.collective(&call) {
                Ok(reading) => reading.nanos,
                // Recursive doubling is for powers of two.
                Err(NoForm::Ranks { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            if best.is_none_or(|(_, least)| cost < least) {
                best = Some((form, cost));
            }
        }
        let phase = |(form, cost): (Form, f64)| Phase {
            what: format!("{} between {nodes} nodes", question.collective),
            algorithm: form.to_string(),
            bytes,
            time: Nanos(cost),
            between: true,
        };
        Ok(best.map(phase))
    };
    let phases = match question.collective {
        Collective::Barrier => [
            within(Collective::Barrier, 0, "a node")?,
            between(&[Form::DisseminationBarrier, Form::BinomialBarrier], 0, 0)?,
            within(Collective::Barrier, 0, "a node")?,
        ],
        Collective::Bcast => [
            within(Collective::Bcast, bytes, "the root's node")?,
            between(
                &[Form::BinomialBcast, Form::ScatterDoublingBcast, Form::ScatterRingBcast],
                bytes,
                bytes,
            )?,
            // The root's node has it already.
            if nodes > 1 { within(Collective::Bcast, bytes, "the others")? } else { None },
        ],
        Collective::Allreduce if long => [
            within(Collective::ReduceScatter, part, "a node")?,
            between(&[Form::DoublingAllreduce, Form::Rabenseifner, Form::RingAllreduce], bytes, bytes)?,
            within(Collective::Allgather, part, "a node")?,
        ],
        Collective::Reduce => [
            within(Collective::Reduce, bytes, "a node")?,
            between(&[Form::BinomialReduce], bytes, bytes)?,
            None,
        ],
        Collective::Allreduce => [
            within(Collective::Reduce, bytes, "a node")?,
            between(&[Form::DoublingAllreduce, Form::Rabenseifner, Form::RingAllreduce], bytes, bytes)?,
            within(Collective::Bcast, bytes, "a node")?,
        ],
        // A node's blocks travel together.
        Collective::Allgather => [
            within(Collective::Gather, bytes, "a node")?,
            between(&[Form::DoublingAllgather, Form::RingAllgather], bytes * local, bytes * ranks)?,
            within(Collective::Bcast, bytes * ranks, "a node")?,
        ],
        // A gather is a scatter backwards.
        Collective::Gather => [
            within(Collective::Gather, bytes, "a node")?,
            between(&[Form::Scatter], bytes * local, bytes * ranks)?,
            None,
        ],
        Collective::Scatter => [
            None,
            between(&[Form::Scatter], bytes * local, bytes * ranks)?,
            within(Collective::Scatter, bytes, "a node")?,
        ],
        other => return Err(NoNodes::Collective(other)),
    };
    let phases: Vec<Phase> = phases.into_iter().flatten().collect();
    let once: f64 = phases.iter().map(|phase| phase.time.0).sum();
    // Pieces follow each other through the phases; the longest phase is what they wait for.
    let longest = phases.iter().map(|phase| phase.time.0).fold(0.0, f64::max);
    let predicted = Nanos(once + (pieces - 1) as f64 * longest);
    Ok(OverNodes { phases, pieces, predicted })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineweave_core::model::{Fitted, Values};
    use lineweave_core::topology::Level;

    fn model() -> Model {
        Values { levels: vec![(Level::L3, 30.0, 20.0)], ..Values::default() }.model()
    }

    fn link(alpha: f64, beta: f64) -> AlphaBeta {
        AlphaBeta { alpha: Fitted::cited(alpha), beta: Fitted::cited(beta) }
    }

    fn at(collective: Collective, local: usize, bytes: usize, nodes: usize, link: &AlphaBeta) -> OverNodes {
        let grain = if collective.folds() { 8 } else { 1 };
        over_nodes(&model(), &Question::flat(collective, local, bytes, grain), nodes, link).unwrap()
    }

    #[test]
    fn one_node_is_what_it_is_alone_and_one_rank_a_node_is_the_links() {
        let q = Question::flat(Collective::Bcast, 4, 64, 1);
        let alone = select(&model(), &q).unwrap().predicted;
        assert_eq!(at(Collective::Bcast, 4, 64, 1, &link(1000.0, 1.0)).predicted, alone);
        // Three stages of alpha + beta m.
        let links = at(Collective::Bcast, 1, 64, 8, &link(1000.0, 1.0));
        assert_eq!((links.phases.len(), links.predicted), (1, Nanos(3.0 * 1064.0)));
        assert!(links.phases[0].between);
    }

    #[test]
    fn phases_are_the_parts_and_add_up() {
        let fast = at(Collective::Allreduce, 4, 8, 4, &link(1000.0, 1.0));
        let parts: Vec<&str> = fast.phases.iter().map(|phase| phase.what.as_str()).collect();
        assert_eq!(parts, ["reduce within a node", "allreduce between 4 nodes", "bcast within a node"]);
        let sum: f64 = fast.phases.iter().map(|phase| phase.time.0).sum();
        assert_eq!((fast.predicted.0, fast.pieces), (sum, 1));
        // Only the link's phase knows the link.
        let slow = at(Collective::Allreduce, 4, 8, 4, &link(5000.0, 1.0));
        assert!((slow.predicted.0 - fast.predicted.0 - 2.0 * 4000.0).abs() < 1e-6);
        assert_eq!((slow.phases[0].time, slow.phases[2].time), (fast.phases[0].time, fast.phases[2].time));
    }

    #[test]
    fn long_messages_take_another_algorithm_and_overlap() {
        let short = at(Collective::Allreduce, 2, 8, 8, &link(1000.0, 1.0));
        let long = at(Collective::Allreduce, 2, 1 << 20, 8, &link(1000.0, 1.0));
        assert_eq!(short.phases[1].algorithm, Form::DoublingAllreduce.name());
        assert_eq!(long.phases[1].algorithm, Form::Rabenseifner.name());
        let pieces = at(Collective::Bcast, 2, 8 << 20, 2, &link(1000.0, 1.0));
        let longest = pieces.phases.iter().map(|phase| phase.time.0).fold(0.0, f64::max);
        let once: f64 = pieces.phases.iter().map(|phase| phase.time.0).sum();
        assert_eq!((pieces.pieces, pieces.predicted.0), (8, once + 7.0 * longest));
        let parts: Vec<&str> = long.phases.iter().map(|phase| phase.what.as_str()).collect();
        assert_eq!(
            parts,
            ["reduce-scatter within a node", "allreduce between 8 nodes", "allgather within a node"]
        );
        assert_eq!((long.pieces, long.phases[0].bytes), (2, 256 << 10));
    }

    #[test]
    fn what_passes_is_refused() {
        let refused =
            over_nodes(&model(), &Question::flat(Collective::Alltoall, 2, 8, 1), 2, &link(1.0, 1.0));
        assert_eq!(refused, Err(NoNodes::Collective(Collective::Alltoall)));
    }
}
