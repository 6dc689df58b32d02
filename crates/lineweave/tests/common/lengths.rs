//! Calls of many lengths, which few plans carry out, being cut for each.

use super::{checked, say, Outcome, GUARD};
use lineweave::kernel::ElementType;
use lineweave::{f16, CallSpec, Communicator, Operator};
use lineweave_core::collective::Collective;

/// Lengths around the borders of classes that end at these, in elements of 4 bytes.
pub fn around(borders: &[usize]) -> Vec<usize> {
    let near = |&n: &usize| [0, 1, n - n / 8 + 1, n - 1, n, n + 1];
    borders.iter().flat_map(near).collect()
}

/// Every collective with every root, a length after the other, and back.
pub fn lengths(comm: &mut Communicator, lengths: &[usize]) -> Outcome {
    let mut cases = 0;
    for collective in Collective::ALL.into_iter().filter(|c| c.moves_data()) {
        for root in 0..if collective.rooted() { comm.ranks() } else { 1 } {
            for (turn, &elements) in lengths.iter().chain(lengths.iter().rev()).enumerate() {
                let operator = collective.folds().then_some(Operator::Sum);
                let call =
                    CallSpec { collective, element: ElementType::U32, count: elements, operator, root };
                checked(comm, &call, turn)?;
                cases += 1;
            }
        }
    }
    Ok(cases)
}

/// Sums of 16-bit floats, which plans that combine all contributions in one step round once.
pub fn halves(comm: &mut Communicator, lengths: &[usize]) -> Outcome {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    // Sums are exact.
    let part = |rank: usize, i: usize| ((3 * rank + i) % 17) as f32;
    for &elements in lengths {
        let given: Vec<f16> = (0..elements).map(|i| f16::from_f32(part(rank, i))).collect();
        let mut found = vec![f16::MAX; elements + GUARD];
        comm.allreduce(&given, &mut found[..elements], Operator::Sum).map_err(say)?;
        let sum = |i: usize| f16::from_f32((0..ranks).map(|r| part(r, i)).sum());
        let wanted = (0..elements).map(sum).chain([f16::MAX; GUARD]);
        if let Some(at) = found.iter().zip(wanted).position(|(&found, wanted)| found != wanted) {
            return Err(format!(
                "{elements} halves on {ranks} ranks: rank {rank} element {at} is {}",
                found[at]
            ));
        }
    }
    Ok(lengths.len())
}

/// A program with a thousand lengths and every root holds few plans.
pub fn few_plans(comm: &mut Communicator) -> Outcome {
    let (mut given, mut sum) = (vec![0u64; 1000], vec![0u64; 1000]);
    for length in 1..=1000 {
        for root in 0..comm.ranks() {
            given[length - 1] = (length + root) as u64;
            comm.reduce(&given[..length], &mut sum[..length], Operator::Sum, root).map_err(say)?;
            let wanted = given[length - 1] * comm.ranks() as u64;
            if comm.rank() == root && sum[length - 1] != wanted {
                return Err(format!("{length} to {root}: {} and not {wanted}", sum[length - 1]));
            }
        }
    }
    match comm.setup().plans {
        few @ 1..=64 => Ok(few),
        plans => Err(format!("{plans} plans are held")),
    }
}
