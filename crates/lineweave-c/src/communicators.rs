//! Communicators made from others.

use crate::buffers::list_of;
use crate::handle::{enter, free, give, lw_comm, place_for, shared, Shared};
use crate::progress::{hook, lw_progress_fn};
use crate::status::{guard, lw_status, Failure, LW_ERR_COUNT, LW_ERR_RANK};
use crate::team::give_comm;
use lineweave::communicator::CommunicatorFactory;
use lineweave::Communicator;
use lineweave_core::topology::Level;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/** The colour of a rank that is to be in no new communicator. */
pub const LW_UNDEFINED: c_int = -1;

/** What ranks can have in common. */
pub type lw_level = i32;
/** The same core. */
pub const LW_LEVEL_CORE: lw_level = 0;
/** The same last-level cache. */
pub const LW_LEVEL_L3: lw_level = 1;
/** The same NUMA node. */
pub const LW_LEVEL_NUMA: lw_level = 2;
/** The same package. */
pub const LW_LEVEL_PACKAGE: lw_level = 3;
/** The same machine: all ranks. */
pub const LW_LEVEL_MACHINE: lw_level = 4;

/// Makes a communicator from another one, and stores it, or null for none, at the place that C gave.
fn make(
    comm: *mut lw_comm,
    made: *mut *mut lw_comm,
    f: impl FnOnce(&mut Communicator) -> Result<Option<Communicator>, Failure>,
) -> lw_status {
    enter(comm, |comm| {
        // The place is checked before anything is exchanged, so that no rank waits for one whose call was refused.
        place_for(made)?;
        match f(comm)? {
            Some(child) => give_comm(made, child),
            None => give(made, std::ptr::null_mut()),
        }
    })
}

/**
 * A communicator of the same ranks, whose calls have nothing to do with those of comm. Every rank of comm calls it. New
 * communicators live on when comm is freed. They cost a few pages until they are used.
 * Errors: of calls, LW_ERR_NULL, LW_ERR_MEMORY.
 *
 *     lw_comm_dup(comm, &made);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_comm_dup(comm: *mut lw_comm, made: *mut *mut lw_comm) -> lw_status {
    make(comm, made, |comm| Ok(Some(comm.dup()?)))
}

/**
 * One communicator for each colour, of the ranks that give it, in the order of their keys; ranks with equal keys in their order
 * in comm. A colour is not negative, or LW_UNDEFINED: then this rank is in none, and gets null. Every rank of comm calls it.
 * Errors: of calls, LW_ERR_NULL, LW_ERR_RANK for another colour, LW_ERR_MEMORY.
 *
 *     lw_comm_split(comm, lw_comm_rank(comm) % 2, 0, &made);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_comm_split(
    comm: *mut lw_comm,
    colour: c_int,
    key: c_int,
    made: *mut *mut lw_comm,
) -> lw_status {
    make(comm, made, |comm| {
        let colour = match colour {
            LW_UNDEFINED => None,
            _ => Some(u64::try_from(colour).map_err(|_| {
                let text = format!(
                    "colour {colour} is negative; LW_UNDEFINED ({LW_UNDEFINED}) is for no communicator"
                );
                Failure::new(LW_ERR_RANK, text)
            })?),
        };
        Ok(comm.split(colour, key.into())?)
    })
}

/**
 * One communicator for each core, last-level cache, NUMA node or package, of the ranks that were placed there, in their order in
 * comm. Every rank of comm calls it.
 * Errors: of calls, LW_ERR_NULL, LW_ERR_RANK for another level, LW_ERR_MEMORY.
 *
 *     lw_comm_split_level(comm, LW_LEVEL_NUMA, &made);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_comm_split_level(
    comm: *mut lw_comm,
    level: lw_level,
    made: *mut *mut lw_comm,
) -> lw_status {
    make(comm, made, |comm| {
        let level = usize::try_from(level).ok().and_then(|level| Level::ALL.get(level));
        let level = level.ok_or_else(|| {
            let text = format!(
                "level {level:?} is unknown; expected {LW_LEVEL_CORE} (LW_LEVEL_CORE) to {LW_LEVEL_MACHINE} (LW_LEVEL_MACHINE)"
            );
            Failure::new(LW_ERR_RANK, text)
        })?;
        Ok(Some(comm.split_level(*level)?))
    })
}

/**
 * A communicator of `count` ranks of comm, in the order of the list. They, and nobody else, call it, with equal lists.
 * Errors: of calls, LW_ERR_NULL, LW_ERR_RANK for another list, LW_ERR_MEMORY.
 *
 *     const int ranks[] = {0, 2};
 *     lw_comm_create_group(comm, ranks, 2, &made);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_comm_create_group(
    comm: *mut lw_comm,
    ranks: *const c_int,
    count: usize,
    made: *mut *mut lw_comm,
) -> lw_status {
    make(comm, made, |comm| {
        if count > comm.ranks() {
            let text = format!("a list of {count} ranks was given and there are {}", comm.ranks());
            return Err(Failure::new(LW_ERR_COUNT, text));
        }
        // SAFETY: that long by the header's rule.
        let members = members(unsafe { list_of("the list of ranks", ranks, count)? });
        Ok(Some(comm.create_group(&members)?))
    })
}

/** Where ranks of a team make communicators without the team's: from several threads at once, and after it is freed. */
pub struct lw_site {
    shared: Shared<CommunicatorFactory>,
}

fn site_of(site: *const lw_site) -> Result<Arc<CommunicatorFactory>, Failure> {
    shared(site, "site", |site| &site.shared)
}

/**
 * This rank's site for communicators of ranks of comm. It does not communicate.
 * Errors: of calls, LW_ERR_NULL.
 *
 *     lw_comm_site(comm, &site);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_comm_site(comm: *mut lw_comm, site: *mut *mut lw_site) -> lw_status {
    enter(comm, |comm| {
        place_for(site)?;
        give(site, Box::into_raw(Box::new(lw_site { shared: Shared::new(comm.factory()) })))
    })
}

/**
 * Takes a place for a communicator of these `ranks` ranks of the team in this order, which this rank then tells to all of them.
 * Errors: LW_ERR_NULL, LW_ERR_HANDLE, LW_ERR_RANK, LW_ERR_SIZE, LW_ERR_MEMORY.
 *
 *     const int members[] = {0, 1};
 *     lw_site_place(site, members, 2, &place);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_site_place(
    site: *mut lw_site,
    members: *const c_int,
    ranks: c_int,
    place: *mut u64,
) -> lw_status {
    guard(|| {
        place_for(place)?;
        let site = site_of(site)?;
        // SAFETY: a list that long by the header's rule.
        let members = unsafe { members_of(members, ranks)? };
        give(place, site.found(&members)?)
    })
}

/// # Safety
/// `places` must be null or valid for `count` numbers.
unsafe fn places_of<'a>(places: *const u64, count: c_int) -> Result<&'a [u64], Failure> {
    // SAFETY: that long by the caller's word.
    unsafe { list_of("a list of places", places, crate::team::size(count)?) }
}

/// # Safety
/// `list` must be null or valid for `ranks` numbers.
unsafe fn members_of(list: *const c_int, ranks: c_int) -> Result<Vec<usize>, Failure> {
    // SAFETY: that long by the caller's word.
    Ok(members(unsafe { list_of("a list of ranks", list, crate::team::size(ranks)?)? }))
}

/// Returns ranks as C passed them; a negative one is none of any team.
fn members(list: &[c_int]) -> Vec<usize> {
    list.iter().map(|&r| usize::try_from(r).unwrap_or(usize::MAX)).collect()
}

/**
 * Joins a communicator at each of `count` places, of these `ranks` ranks of the team in this order, and puts them into made[0] to
 * made[count - 1]. They, and nobody else, call it, with equal places and lists. `progress` is as in lw_comm_set_progress, for the
 * communicators and for the time until all have come.
 * Errors: LW_ERR_NULL, LW_ERR_HANDLE, LW_ERR_RANK, LW_ERR_FAILED, LW_ERR_MEMORY.
 *
 *     const int members[] = {0, 1};
 *     lw_site_join(site, &place, 1, members, 2, poll, NULL, &made);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_site_join(
    site: *mut lw_site,
    places: *const u64,
    count: c_int,
    members: *const c_int,
    ranks: c_int,
    progress: lw_progress_fn,
    arg: *mut c_void,
    made: *mut *mut lw_comm,
) -> lw_status {
    guard(|| {
        place_for(made)?;
        // SAFETY: lists that long by the header's rule.
        let (places, members) = unsafe { (places_of(places, count)?, members_of(members, ranks)?) };
        let site = site_of(site)?;
        // SAFETY: places of lw_site_place, told to these ranks only, by the header's rule.
        let joined = unsafe { site.join(places, &members, || hook(progress, arg))? };
        for (i, comm) in joined.into_iter().enumerate() {
            // SAFETY: room for `count` of them by the header's rule.
            give_comm(unsafe { made.add(i) }, comm)?;
        }
        Ok(())
    })
}

/**
 * In place of lw_site_join, with its arguments: that of the other members fails.
 * Errors: LW_ERR_NULL, LW_ERR_HANDLE, LW_ERR_RANK, LW_ERR_SYSTEM.
 *
 *     const int members[] = {0, 1};
 *     lw_site_decline(site, &place, 1, members, 2);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_site_decline(
    site: *mut lw_site,
    places: *const u64,
    count: c_int,
    members: *const c_int,
    ranks: c_int,
) -> lw_status {
    guard(|| {
        // SAFETY: lists that long by the header's rule.
        let (places, members) = unsafe { (places_of(places, count)?, members_of(members, ranks)?) };
        // SAFETY: as in lw_site_join.
        unsafe { site_of(site)?.decline(places, &members)? };
        Ok(())
    })
}

/**
 * Frees a site. Communicators that were made there remain usable. Null is allowed.
 * Errors: LW_ERR_HANDLE, LW_ERR_BUSY.
 *
 *     lw_site_free(site);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_site_free(site: *mut lw_site) -> lw_status {
    guard(|| free(site, "site", |site| &site.shared))
}

/** What a communicator takes of memory. */
#[repr(C)]
pub struct lw_memory {
    /** Bytes reserved of the memory that its ranks share, by all of them together. */
    pub shared_bytes: usize,
    /** Bytes of addresses for it in each process. They cost nothing before they are used. */
    pub address_bytes: usize,
    /** Bytes of this rank alone. */
    pub private_bytes: usize,
}

/**
 * What comm takes of memory.
 * Errors: of calls, LW_ERR_NULL.
 *
 *     lw_memory memory;
 *     lw_comm_memory(comm, &memory);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_comm_memory(comm: *mut lw_comm, memory: *mut lw_memory) -> lw_status {
    enter(comm, |comm| {
        let lineweave::communicator::Memory { shared_bytes, address_bytes, private_bytes } = comm.memory();
        give(memory, lw_memory { shared_bytes, address_bytes, private_bytes })
    })
}

/** What the plans of a communicator's calls have cost this rank so far. */
#[repr(C)]
pub struct lw_setup {
    /** Plans that it holds. Those of calls that were not made for long are given up. */
    pub plans: usize,
    /** Bytes of memory that they take. */
    pub plan_bytes: usize,
    /** Nanoseconds in which it chose, proved and compiled plans, or waited for a rank that did. */
    pub took_ns: u64,
    /** Calls that this held up for 100 us or longer. */
    pub held_up: usize,
}

/**
 * What the plans of comm's calls have cost this rank so far.
 * Errors: of calls, LW_ERR_NULL.
 *
 *     lw_setup setup;
 *     lw_comm_setup(comm, &setup);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_comm_setup(comm: *mut lw_comm, setup: *mut lw_setup) -> lw_status {
    enter(comm, |comm| {
        let lineweave::communicator::Setup { plans, plan_bytes, took, held_up } = comm.setup();
        give(setup, lw_setup { plans, plan_bytes, took_ns: took.as_nanos() as u64, held_up })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_in_the_order_of_the_runtime() {
        assert_eq!(Level::ALL[LW_LEVEL_NUMA as usize], Level::Numa);
        assert_eq!(Level::ALL.len(), LW_LEVEL_MACHINE as usize + 1);
    }
}
