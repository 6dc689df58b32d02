//! Record by which a process that chose and proved informs the others of its team: the choice, and for each plan its digest and its proof.
//!
//! Everybody makes its own part of each plan, since a choice says all of them. That everybody makes parts of the same plan is seen by its digest:
//! proofs are of the plan with this digest.

use crate::error::Error;
use crate::memory;
use crate::tuning::{Because, Chosen};
use lineweave_core::algorithm::{self, Problem};
use lineweave_core::collective::{Association, Collective};
use lineweave_core::plan::{Params, Part, Plan};
use lineweave_core::verify::{self, Proof};

/// A choice, and the proofs of its plans in the order in which they are made.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub chosen: Chosen,
    pub proofs: Vec<(u64, Proof)>,
}

/// A proven plan, all of it or one rank's part.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Proved {
    pub part: Part,
    pub proof: Proof,
}

/// Source of proofs.
pub(crate) enum Proofs<'a> {
    /// Plans are proved, and what was proved is added here.
    Made(&'a mut Vec<(u64, Proof)>),
    /// Somebody of the team has proved them.
    Told(std::slice::Iter<'a, (u64, Proof)>),
}

impl Proofs<'_> {
    /// The plan of a choice for a problem, all of it or one rank's part, with its proof.
    ///
    /// # Errors
    /// [`Error::Plan`] when there is none, [`Error::Refuted`], [`Error::NoPlan`] when it does not combine contributions as asked;
    /// [`Error::Foreign`] when it is not the plan that was proved.
    pub fn of(
        &mut self,
        chosen: &Chosen,
        problem: &Problem,
        association: Association,
        rank: Option<usize>,
    ) -> Result<Proved, Error> {
        let Chosen { algorithm, params, .. } = chosen;
        let whole = || -> Result<Part, Error> {
            let crowded = problem.shape.oversubscription() > 1;
            Ok(Part::whole(algorithm.plan(problem, params)?, crowded))
        };
        match self {
            Proofs::Made(made) => {
                let part = whole()?;
                let proof = verify::verify(&part.plan)
                    .map_err(|v| Error::Refuted { plan: part.plan.name(), violation: Box::new(v) })?;
                if !proof.meets(association) {
                    return Err(unordered(&part.plan));
                }
                made.push((part.digest, proof));
                let part = match rank {
                    Some(rank) => part.only(rank),
                    None => part,
                };
                if rank.is_some() && part.plan.ranks >= MANY {
                    memory::give_back();
                }
                Ok(Proved { part, proof })
            }
            Proofs::Told(told) => {
                let part = rank.map_or_else(whole, |rank| Ok(algorithm.part(problem, params, rank)?))?;
                if rank.is_some() && part.ops >= LARGE {
                    memory::give_back();
                }
                match told.next() {
                    Some(&(digest, proof)) if digest == part.digest => Ok(Proved { part, proof }),
                    other => Err(Error::Foreign {
                        expected: format!(
                            "the plan {} that another rank proved, with digest {:x}",
                            part.plan.name(),
                            other.map_or(0, |(digest, _)| *digest)
                        ),
                        found: format!("digest {:x}: ranks run different builds of lineweave", part.digest),
                    }),
                }
            }
        }
    }
}

/// A plan that was chosen for an order that it does not keep.
fn unordered(plan: &Plan) -> Error {
    Error::NoPlan {
        collective: plan.collective,
        bytes: plan.bytes,
        ranks: plan.ranks,
        why: format!("{} does not combine contributions in the order asked for", plan.name()),
    }
}

/// Ops of a plan whose making takes megabytes, even of one rank's part.
const LARGE: usize = 1 << 16;
/// Ranks for whom choosing and proving takes megabytes.
const MANY: usize = 64;

/// Words of a proof, with its plan's digest.
const PROOF: usize = 4;
/// Bits of what it says yes or no to.
const FACTS: u32 = 5;
/// Words before the proofs: the window, why it was chosen, how many proofs there are, and bytes of text behind them.
const HEAD: usize = 4;
const REASONS: [Because; 4] = [Because::Forced, Because::Measured, Because::Predicted, Because::Simulated];

impl Record {
    /// Encodes the record as words.
    pub fn words(&self) -> Vec<u64> {
        let text: Vec<String> = self.chosen.params.0.iter().map(|(k, v)| format!("\n{k}={v}")).collect();
        let text = format!("{}{}", self.chosen.algorithm.name, text.concat());
        let because = REASONS.iter().position(|&reason| reason == self.chosen.because).unwrap_or(0);
        let head = [self.chosen.window, because, self.proofs.len(), text.len()];
        let mut words: Vec<u64> = head.iter().map(|&word| word as u64).collect();
        for (digest, proof) in &self.proofs {
            let Proof { synchronizing, in_place, rank_order, fixed_order, shortens, .. } = *proof;
            let facts = [synchronizing, in_place, rank_order, fixed_order, shortens];
            let facts = facts.iter().rev().fold(0, |all, &fact| all << 1 | u64::from(fact));
            words.extend([
                *digest,
                proof.ops as u64,
                u64::from(proof.depth) << FACTS | facts,
                proof.result_hash,
            ]);
        }
        let padded = |bytes: &[u8]| std::array::from_fn(|i| bytes.get(i).copied().unwrap_or(0));
        words.extend(text.as_bytes().chunks(8).map(|bytes| u64::from_le_bytes(padded(bytes))));
        words
    }

    /// Decodes a record; `None` if the words are no record of this collective.
    pub fn read(words: &[u64], collective: Collective) -> Option<Record> {
        let (head, rest) = words.split_at_checked(HEAD)?;
        let (proofs, text) = rest.split_at_checked((head[2] as usize).checked_mul(PROOF)?)?;
        let because = *REASONS.get(head[1] as usize)?;
        let proofs = proofs.chunks_exact(PROOF).map(|words| {
            let fact = |bit: u32| words[2] >> bit & 1 == 1;
            let proof = Proof {
                ops: words[1] as usize,
                synchronizing: fact(0),
                in_place: fact(1),
                rank_order: fact(2),
                fixed_order: fact(3),
                shortens: fact(4),
                depth: (words[2] >> FACTS) as u32,
                result_hash: words[3],
            };
            (words[0], proof)
        });
        let bytes: Vec<u8> = text.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut lines = std::str::from_utf8(bytes.get(..head[3] as usize)?).ok()?.split('\n');
        let algorithm = algorithm::find(collective, lines.next()?).ok()?;
        let params = lines.map(|line| line.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned())));
        let params = Params(params.collect::<Option<_>>()?);
        let chosen = Chosen { algorithm, params, window: head[0] as usize, because };
        Some(Record { chosen, proofs: proofs.collect() })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use lineweave_core::select::Question;

    fn problem(bytes: usize) -> Problem {
        Question::flat(Collective::Allreduce, 4, bytes, 8).window(bytes)
    }

    fn chosen(bytes: usize) -> Record {
        let algorithm = algorithm::find(Collective::Allreduce, "recursive-doubling").unwrap();
        let params = (algorithm.candidates)(&problem(bytes)).pop().unwrap();
        let chosen = Chosen { algorithm, params, window: bytes, because: Because::Measured };
        let mut proofs = Vec::new();
        Proofs::Made(&mut proofs).of(&chosen, &problem(bytes), Association::Free, None).unwrap();
        Record { chosen, proofs }
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_nothing_else_is() {
        let record = chosen(64);
        let words = record.words();
        let read = |words: &[u64], collective| Record::read(words, collective).map(|record| record.words());
        assert_eq!(read(&words, Collective::Allreduce), Some(record.words()));
        for length in 0..words.len() {
            assert_eq!(read(&words[..length], Collective::Allreduce), None, "{length} words");
        }
        assert_eq!(read(&words, Collective::Gather), None, "no such algorithm");
        assert_eq!(read(&[u64::MAX; 20], Collective::Allreduce), None);
    }

    #[test]
    fn a_proof_is_taken_for_the_plan_that_was_proved_and_no_other() {
        let Record { chosen, proofs } = chosen(64);
        let told = |proofs: &[(u64, Proof)], bytes, rank| {
            Proofs::Told(proofs.iter()).of(&chosen, &problem(bytes), Association::Free, rank)
        };
        let whole = told(&proofs, 64, None).unwrap();
        assert_eq!((whole.part.held(), whole.proof), (whole.part.ops, proofs[0].1));
        for rank in 0..4 {
            let part = told(&proofs, 64, Some(rank)).unwrap().part;
            assert_eq!(part, whole.part.clone().only(rank), "rank {rank}");
        }
        for rank in [None, Some(2)] {
            assert!(matches!(told(&proofs, 72, rank), Err(Error::Foreign { .. })));
            let changed = [(proofs[0].0 ^ 1, proofs[0].1)];
            let error = told(&changed, 64, rank).unwrap_err().to_string();
            assert!(error.contains("different builds"), "{error}");
            assert!(matches!(told(&[], 64, rank), Err(Error::Foreign { .. })), "more plans than were proved");
        }
    }
}
