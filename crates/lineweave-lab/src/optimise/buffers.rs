//! Slots of a message buffer: one large one, or several that chunks take turns in (double buffering).
//!
//! Derived, for OC-Bcast (Petrovic et al. 2012, section 4.2), all distances 1: a chunk of m lines is work of W = G + M + flags at a core, G a
//! get to the own buffer and M one from there to memory. It occupies a slot for S = max(G, P) + G + flags: the slot is filled (G, at the root
//! a put P from memory), told of, copied by the children (G), and given back. Meanwhile the core copies to memory. So a chunk takes
//! max(W, S / slots).
//!
//! Two slots of m lines pay each call and flag twice where one of 2 m lines pays it once: with F for what W has of these, W(2 m) = 2 W(m) - F.
//! So double buffering pays where S(2 m) > W(2 m) + F: in short, where max(G, P) > M + F, that is where filling a buffer takes longer than
//! copying from it to memory. On the SCC it takes less.

use super::notify::siblings;
use crate::models::put_get::PutGet;

/// Returns how much faster two slots of `m` lines are than one of twice as many, where OC-Bcast of degree `k` sends to `p` ranks: above 1 double
/// buffering pays.
pub fn double_buffering(model: &PutGet, p: usize, m: u32, k: usize) -> f64 {
    let (set, read) = (model.flag_set(1), model.flag_read(1));
    let told = siblings(set.0, (set + read).0, k, 2);
    // From one chunk of `m` lines to the next.
    let time = |m: u32, slots: f64| {
        let work = f64::from(m) / model.oc_bcast_throughput_complete(p, m, k);
        let get = model.c_get_mpb(m, 1).0;
        let held = get.max(model.c_put_mem(m, 1, 1).0) + told + get + set.0 + read.0;
        work.max(held / slots)
    };
    time(2 * m, 1.0) / (2.0 * time(m, 2.0))
}
