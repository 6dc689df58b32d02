//! What a process that chose and proved tells the others of its team: the choice, and of each plan what is known of it.
//!
//! Plans themselves are made by everybody, since a choice says all of them. That everybody makes the same is seen by their digests:
//! proofs are of the plan with this digest.

use crate::error::Error;
use crate::tuning::{Because, Chosen};
use lineweave_core::algorithm;
use lineweave_core::collective::{Association, Collective};
use lineweave_core::plan::{Params, Plan};
use lineweave_core::verify::{self, Proof};
use std::hash::{Hash, Hasher};

/// A choice, and the proofs of its plans in the order in which they are made.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub chosen: Chosen,
    pub proofs: Vec<(u64, Proof)>,
}

/// Where proofs come from.
pub(super) enum Proofs<'a> {
    /// Plans are proved, and what was proved is added here.
    Made(&'a mut Vec<(u64, Proof)>),
    /// Somebody of the team has proved them.
    Told(std::slice::Iter<'a, (u64, Proof)>),
}

impl Proofs<'_> {
    /// The plan with its proof.
    ///
    /// # Errors
    /// [`Error::Refuted`], [`Error::NoPlan`] when it does not combine contributions as asked; [`Error::Foreign`] when it is not the plan
    /// that was proved.
    pub fn of(&mut self, plan: Plan, association: Association) -> Result<(Plan, Proof), Error> {
        match self {
            Proofs::Made(made) => {
                let proof = verify::verify(&plan)
                    .map_err(|v| Error::Refuted { plan: plan.name(), violation: Box::new(v) })?;
                if !proof.meets(association) {
                    return Err(unordered(&plan));
                }
                made.push((digest_of(&plan), proof));
                Ok((plan, proof))
            }
            Proofs::Told(told) => {
                let found = digest_of(&plan);
                match told.next() {
                    Some(&(digest, proof)) if digest == found => Ok((plan, proof)),
                    other => Err(Error::Foreign {
                        expected: format!(
                            "the plan {} that another rank proved, with digest {:x}",
                            plan.name(),
                            other.map_or(0, |(digest, _)| *digest)
                        ),
                        found: format!("digest {found:x}: ranks run different builds of lineweave"),
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

/// Words of a proof, with its plan's digest.
const PROOF: usize = 4;
/// Words before the proofs: the window, why it was chosen, how many proofs there are, and bytes of text behind them.
const HEAD: usize = 4;
const REASONS: [Because; 4] = [Because::Forced, Because::Measured, Because::Predicted, Because::Simulated];

impl Record {
    /// As words.
    pub fn words(&self) -> Vec<u64> {
        let text: Vec<String> = self.chosen.params.0.iter().map(|(k, v)| format!("\n{k}={v}")).collect();
        let text = format!("{}{}", self.chosen.algorithm.name, text.concat());
        let because = REASONS.iter().position(|&reason| reason == self.chosen.because).unwrap_or(0);
        let head = [self.chosen.window, because, self.proofs.len(), text.len()];
        let mut words: Vec<u64> = head.iter().map(|&word| word as u64).collect();
        for (digest, proof) in &self.proofs {
            let facts = [proof.synchronizing, proof.in_place, proof.rank_order, proof.fixed_order];
            let facts = facts.iter().rev().fold(0, |all, &fact| all << 1 | u64::from(fact));
            words.extend([*digest, proof.ops as u64, u64::from(proof.depth) << 4 | facts, proof.result_hash]);
        }
        let padded = |bytes: &[u8]| std::array::from_fn(|i| bytes.get(i).copied().unwrap_or(0));
        words.extend(text.as_bytes().chunks(8).map(|bytes| u64::from_le_bytes(padded(bytes))));
        words
    }

    /// From words; nothing if they are no record of this collective.
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
                depth: (words[2] >> 4) as u32,
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

/// A number that differs for different plans.
fn digest_of(plan: &Plan) -> u64 {
    let mut digest = Digest::new(0);
    let Plan { collective, algorithm, params, ranks, root, bytes, blocks, .. } = plan;
    (collective, algorithm, params, ranks, root, bytes, blocks).hash(&mut digest);
    let Plan { grain, slots, flags, acc, reuse, direct, programs, .. } = plan;
    (grain, slots, acc, reuse, direct, programs).hash(&mut digest);
    for array in flags {
        (array.kind, array.layout, array.count).hash(&mut digest);
    }
    digest.finish()
}

/// A quick hash that, unlike the standard library's, is the same in every process.
pub(super) struct Digest(u64);

impl Digest {
    pub fn new(seed: u64) -> Digest {
        Digest(seed ^ 0x9e37_79b9_7f4a_7c15)
    }
}

impl Hasher for Digest {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let word = std::array::from_fn(|i| chunk.get(i).copied().unwrap_or(0));
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        // The multiplier of splitmix64, and a shift that brings high bits down.
        let mixed = (self.0 ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        self.0 = mixed ^ mixed >> 32;
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(u64::from(word));
    }

    fn write_u16(&mut self, word: u16) {
        self.write_u64(u64::from(word));
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        let mixed = (self.0 ^ self.0 >> 29).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 32
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use lineweave_core::select::Question;

    fn chosen(bytes: usize) -> (Plan, Record) {
        let question = Question::flat(Collective::Allreduce, 4, bytes, 8);
        let algorithm = algorithm::find(Collective::Allreduce, "recursive-doubling").unwrap();
        let params = (algorithm.candidates)(&question.window(bytes)).pop().unwrap();
        let plan = algorithm.plan(&question.window(bytes), &params).unwrap();
        let mut proofs = Vec::new();
        Proofs::Made(&mut proofs).of(plan.clone(), Association::Free).unwrap();
        let chosen = Chosen { algorithm, params, window: bytes, because: Because::Measured };
        (plan, Record { chosen, proofs })
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_nothing_else_is() {
        let (_, record) = chosen(64);
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
        let ((plan, record), (other, _)) = (chosen(64), chosen(72));
        let told = |plan: &Plan| Proofs::Told(record.proofs.iter()).of(plan.clone(), Association::Free);
        assert_eq!(told(&plan).unwrap(), (plan.clone(), record.proofs[0].1));
        assert!(matches!(told(&other), Err(Error::Foreign { .. })));
        let mut changed = plan.clone();
        changed.programs[3].swap(0, 1);
        let error = told(&changed).unwrap_err().to_string();
        assert!(error.contains("different builds"), "{error}");
        let none = Proofs::Told([].iter()).of(plan, Association::Free);
        assert!(matches!(none, Err(Error::Foreign { .. })), "more plans than were proved");
    }
}
