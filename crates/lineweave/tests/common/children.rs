//! Communicators made from others in every way, with calls in all of them.

use crate::common::{mixed, mixed_with, say, Outcome};
use lineweave::{Communicator, Operator};
use lineweave_core::topology::Level;

/// The ranks of the parent that are in a communicator, in its order.
fn members(parent: &Communicator, part: &mut Communicator) -> Result<Vec<usize>, String> {
    let mut all = vec![0; part.ranks()];
    part.allgather(&[parent.rank() as u64], &mut all).map_err(say)?;
    Ok(all.into_iter().map(|r| r as usize).collect())
}

fn same(what: &str, found: &[usize], wanted: &[usize]) -> Outcome {
    match found == wanted {
        true => Ok(1),
        false => Err(format!("{what}: found ranks {found:?}, expected {wanted:?}")),
    }
}

/// Each way of making one, nested, and with calls in parents and children by turns.
pub fn every_kind(comm: &mut Communicator) -> Outcome {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    let everybody: Vec<usize> = (0..ranks).collect();
    let mut cases = 0;

    let mut twin = comm.dup().map_err(say)?;
    cases += same("dup", &members(comm, &mut twin)?, &everybody)?;
    cases += mixed(&mut twin, 60)? + mixed(comm, 20)? + mixed(&mut twin, 20)?;

    // Keys that turn the order around, and all alike.
    let mut turned = comm.split(Some(7), -(rank as i64)).map_err(say)?.ok_or("a part")?;
    let wanted: Vec<usize> = (0..ranks).rev().collect();
    cases += same("keys", &members(comm, &mut turned)?, &wanted)?;
    cases += mixed(&mut turned, 30)?;
    let mut alike = turned.split(Some(u64::MAX), 5).map_err(say)?.ok_or("a part")?;
    cases += same("equal keys", &members(comm, &mut alike)?, &wanted)?;

    // Parts of different sizes, down to one rank, and ranks in none.
    let colour =
        |r: usize| if r % 5 == 4 { None } else { Some((r >= ranks / 3) as u64 + (r >= ranks - 1) as u64) };
    let part = comm.split(colour(rank), rank as i64).map_err(say)?;
    match part {
        None => cases += same("no colour", &[usize::from(colour(rank).is_none())], &[1])?,
        Some(mut part) => {
            let wanted: Vec<usize> = (0..ranks).filter(|&r| colour(r) == colour(rank)).collect();
            cases += same("colours", &members(comm, &mut part)?, &wanted)?;
            cases += mixed(&mut part, 40)?;
            let mut nested = part.split(Some(part.rank() as u64 % 2), 0).map_err(say)?.ok_or("a part")?;
            drop(part);
            let wanted: Vec<usize> =
                wanted.iter().copied().skip(nested_offset(&wanted, rank)).step_by(2).collect();
            cases += same("nested", &members(comm, &mut nested)?, &wanted)?;
            cases += mixed(&mut nested, 20)?;
        }
    }
    let mut alone = comm.split(Some(rank as u64), 0).map_err(say)?.ok_or("a part")?;
    cases += same("alone", &members(comm, &mut alone)?, &[rank])? + mixed(&mut alone, 10)?;

    for level in Level::ALL {
        let mut part = comm.split_level(level).map_err(say)?;
        let groups = comm.shape().groups(level);
        let wanted = groups.iter().find(|g| g.contains(&rank)).ok_or("every rank has a place")?;
        cases += same(level.name(), &members(comm, &mut part)?, wanted)?;
        let mut sum = [0];
        part.allreduce(&[rank as u64], &mut sum, Operator::Sum).map_err(say)?;
        cases += same("sum", &[sum[0] as usize], &[wanted.iter().sum()])?;
    }
    cases += groups(comm)?;

    // A freed parent with children that live on.
    let mut grandchild = twin.dup().map_err(say)?;
    drop((twin, turned));
    cases += mixed(&mut grandchild, 40)? + mixed(&mut alike, 20)?;
    comm.barrier().map_err(say)?;
    Ok(cases)
}

/// Communicators made and freed over and over, each in the memory of those before: with the same calls on other data, with more and with fewer of them, among
/// the same ranks and others, and freed by some ranks while others are in the last call.
pub fn again(comm: &mut Communicator) -> Outcome {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    let mut cases = 0;
    for turn in 0..40 {
        let colour = match turn % 5 {
            2 => rank % 2,
            3 => usize::from(rank >= ranks / 2),
            4 => usize::from(rank == 0),
            _ => 0,
        };
        let key = if turn % 3 == 0 { -(rank as i64) } else { 0 };
        let mut part = comm.split(Some(colour as u64), key).map_err(say)?.ok_or("a part")?;
        cases += mixed_with(&mut part, [30, 5, 60, 1][turn / 5 % 4], turn + turn / 5)?;
        if turn % 7 == 0 {
            cases += crate::common::messages::messages(&mut part, &[3, 5000])?;
        }
    }
    Ok(cases)
}

/// How far into `members` this rank's half begins: those at even or at odd places.
fn nested_offset(members: &[usize], rank: usize) -> usize {
    members.iter().position(|&r| r == rank).unwrap_or(0) % 2
}

/// Lists that overlap, one after the other, without the other ranks.
fn groups(comm: &mut Communicator) -> Outcome {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    let mut cases = 0;
    for turn in 0..3 {
        for first in 0..ranks {
            // Two to three neighbours, the last first.
            let mut list: Vec<usize> = (first..(first + 2 + turn % 2).min(ranks)).collect();
            list.reverse();
            if !list.contains(&rank) {
                continue;
            }
            let mut group = comm.create_group(&list).map_err(say)?;
            cases += same("group", &members(comm, &mut group)?, &list)?;
            let mut again = comm.create_group(&list).map_err(say)?;
            cases += same("the same group", &members(comm, &mut again)?, &list)?;
        }
    }
    Ok(cases)
}
