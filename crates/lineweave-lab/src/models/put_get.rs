//! Put and get through message buffers: the LogP-based model of Petrovic et al. 2012.
//!
//! Times are of a core that issues one access at a time, without contention. `m` is a length in cache lines,
//! `d` a distance in routers (1 within a tile): `d_src` to what is read, `d_dst` to what is written. A
//! `Put`'s or `Get`'s `C` is when it returns, `L` when the last line can be read at its destination.
//!
//! Equations 13 to 16 are simplified in the paper and leave out flags; the complete ones, from which its Table 2
//! was computed, are not printed there. They follow from the algorithm's steps with a flag raised by a put of
//! one line from the own buffer and read by a get that ends in a register ([`PutGet::flag_set`],
//! [`PutGet::flag_read`]): for OC-Bcast that gives Table 2 to its last digit.
//!
//! Not valid where more than about 24 cores use one buffer at once, for links that are busy, and for cores with
//! several accesses in flight: there, simulate.

use super::published::{in_a_row, Call, NoForm, Published};
use super::stages::Form;
use lineweave_core::algorithm::trees::Tree;
use lineweave_core::machine::{Machine, Mesh, Value};
use lineweave_core::model::Reading;
use lineweave_core::units::{ceil_log2, Nanos};

/// Lines of a chunk of OC-Bcast, M_oc (section 5.1).
const CHUNK: u32 = 96;

/// The name in reports.
pub const NAME: &str = "put/get";

/// The parameters of Table 1, and the length of a line.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PutGet {
    /// Bytes of a cache line.
    pub line_bytes: u64,
    /// L^hop: a packet through one router.
    pub hop: Nanos,
    /// o^mpb: a line from or to a message buffer, without the way.
    pub on_box: Nanos,
    /// o_w^mem: a line to memory, without the way.
    pub memory_write: Nanos,
    /// o_r^mem: a line from memory, without the way.
    pub memory_read: Nanos,
    /// o_put^mpb.
    pub put_box: Nanos,
    /// o_get^mpb.
    pub get_box: Nanos,
    /// o_put^mem.
    pub put_memory: Nanos,
    /// o_get^mem.
    pub get_memory: Nanos,
}

impl PutGet {
    /// The parameters of a machine that has a mesh whose constants are all known.
    pub fn of(machine: &Machine) -> Option<PutGet> {
        let mesh: &Mesh = machine.mesh.as_ref()?;
        let ns = |v: &Value| v.value.map(Nanos);
        Some(PutGet {
            line_bytes: machine.line_bytes.value.filter(|n| *n >= 1.0)? as u64,
            hop: ns(&mesh.hop_ns)?,
            on_box: ns(&mesh.box_ns)?,
            memory_write: ns(&mesh.memory_write_ns)?,
            memory_read: ns(&mesh.memory_read_ns)?,
            put_box: ns(&mesh.put_box_ns)?,
            get_box: ns(&mesh.get_box_ns)?,
            put_memory: ns(&mesh.put_memory_ns)?,
            get_memory: ns(&mesh.get_memory_ns)?,
        })
    }

    fn way(&self, routers: u32) -> Nanos {
        self.hop * f64::from(routers)
    }

    /// L_w^mpb(d), Eq. 1: a line written to a buffer can be read there.
    pub fn l_w_mpb(&self, d: u32) -> Nanos {
        self.on_box + self.way(d)
    }

    /// C_w^mpb(d), Eq. 2: the core that writes a line to a buffer goes on.
    pub fn c_w_mpb(&self, d: u32) -> Nanos {
        self.on_box + self.way(2 * d)
    }

    /// C_r^mpb(d) = L_r^mpb(d), Eq. 3: a line is read from a buffer.
    pub fn c_r_mpb(&self, d: u32) -> Nanos {
        self.on_box + self.way(2 * d)
    }

    /// C_w^mem(d), Eq. 5: the core that writes a line to memory goes on.
    pub fn c_w_mem(&self, d: u32) -> Nanos {
        self.memory_write + self.way(2 * d)
    }

    /// C_r^mem(d) = L_r^mem(d), Eq. 6: a line is read from memory.
    pub fn c_r_mem(&self, d: u32) -> Nanos {
        self.memory_read + self.way(2 * d)
    }

    /// C_put^mpb(m, d_dst), Eq. 7: a put from the own buffer.
    pub fn c_put_mpb(&self, m: u32, d_dst: u32) -> Nanos {
        self.put_box + (self.c_r_mpb(1) + self.c_w_mpb(d_dst)) * f64::from(m)
    }

    /// C_put^mem(m, d_src, d_dst), Eq. 8: a put from memory.
    pub fn c_put_mem(&self, m: u32, d_src: u32, d_dst: u32) -> Nanos {
        self.put_memory + (self.c_r_mem(d_src) + self.c_w_mpb(d_dst)) * f64::from(m)
    }

    /// L_put^mpb(m, d_dst), Eq. 9: what is put from the own buffer can be read. `m` is at least 1.
    pub fn l_put_mpb(&self, m: u32, d_dst: u32) -> Nanos {
        self.c_put_mpb(m, d_dst) - self.c_w_mpb(d_dst) + self.l_w_mpb(d_dst)
    }

    /// C_get^mpb(m, d_src) = L_get^mpb, Eq. 11: a get to the own buffer.
    pub fn c_get_mpb(&self, m: u32, d_src: u32) -> Nanos {
        self.get_box + (self.c_r_mpb(d_src) + self.c_w_mpb(1)) * f64::from(m)
    }

    /// C_get^mem(m, d_src, d_dst) = L_get^mem, Eq. 12: a get to memory.
    pub fn c_get_mem(&self, m: u32, d_src: u32, d_dst: u32) -> Nanos {
        self.get_memory + (self.c_r_mpb(d_src) + self.c_w_mem(d_dst)) * f64::from(m)
    }

    /// L_OC-Bcast^critical(P, m, k), Eq. 13, all distances 1: the critical path of the data of one chunk, `m`
    /// lines, without flags. The number of levels is the depth of the tree.
    pub fn oc_bcast_latency(&self, p: usize, m: u32, k: usize) -> Nanos {
        let levels = Tree::kary(p, k).depth() as f64;
        self.c_put_mem(m, 1, 1) + self.c_get_mpb(m, 1) * levels + self.c_get_mem(m, 1, 1)
    }

    /// The second form of Eq. 13, per call overheads left out. It also leaves out the read of the last get.
    pub fn oc_bcast_latency_simple(&self, p: usize, m: u32, k: usize) -> Nanos {
        let levels = Tree::kary(p, k).depth() as f64;
        ((self.c_r_mpb(1) + self.c_w_mpb(1)) * levels + self.c_r_mem(1) + self.c_w_mem(1)) * f64::from(m)
    }

    /// L_binomial^critical(P, m), the first form of Eq. 14, all distances 1: ceil(log2 P) times a put from the cache
    /// and a get to memory, without flags. As printed, the root's message is in its cache from the start.
    pub fn binomial_latency(&self, p: usize, m: u32) -> Nanos {
        let rounds = f64::from(ceil_log2(p));
        (self.c_w_mpb(1) * f64::from(m) + self.c_get_mem(m, 1, 1)) * rounds
    }

    /// The second form of Eq. 14: per call overheads left out, and the root's read of its message from memory, which
    /// the first form lacks, added.
    pub fn binomial_latency_simple(&self, p: usize, m: u32) -> Nanos {
        let rounds = f64::from(ceil_log2(p));
        let round = self.c_r_mpb(1) + self.c_w_mpb(1) + self.c_w_mem(1);
        (round * rounds + self.c_r_mem(1)) * f64::from(m)
    }

    /// B_OC-Bcast, Eq. 15, all distances 1: throughput in lines per ns with chunks of `m` lines, without flags.
    pub fn oc_bcast_throughput(&self, m: u32) -> f64 {
        f64::from(m) / (self.c_get_mpb(m, 1) + self.c_get_mem(m, 1, 1)).0
    }

    /// A flag is raised at distance `d`: a put of its line from the own buffer, C_put^mpb(1, d).
    pub fn flag_set(&self, d: u32) -> Nanos {
        self.c_put_mpb(1, d)
    }

    /// A flag is read at distance `d`: o_get^mpb + C_r^mpb(d).
    pub fn flag_read(&self, d: u32) -> Nanos {
        self.get_box + self.c_r_mpb(d)
    }

    /// The complete form of Eq. 15: throughput in lines per ns of chunks of `m` lines, with flags, among `p` ranks.
    ///
    /// The slowest core decides. With each chunk a core reads its notification and raises its done flag; one that
    /// has children also reads the k done flags of theirs and raises two notifications (one, if k is 1). In the
    /// tree of P cores a core other than the root has children when P > k + 1. Passing a notification on to
    /// siblings is left out: a core at the bottom of the notification tree passes none on.
    pub fn oc_bcast_throughput_complete(&self, p: usize, m: u32, k: usize) -> f64 {
        let (set, read) = (self.flag_set(1), self.flag_read(1));
        let mut chunk = self.c_get_mpb(m, 1) + self.c_get_mem(m, 1, 1) + read + set;
        if p > k + 1 {
            chunk = chunk + read * k as f64 + set * k.min(2) as f64;
        }
        f64::from(m) / chunk.0
    }

    /// The complete form of Eq. 16: each of the 3P - 3 transfers also raises and reads two flags, `sent` and
    /// `ready`, and every put and get pays its overhead.
    pub fn scatter_allgather_throughput_complete(&self, p: usize, m: u32) -> f64 {
        let lines = f64::from(m);
        let flags = (self.flag_set(1) + self.flag_read(1)) * 2.0;
        let first = self.c_put_mem(m, 1, 1) + self.c_get_mem(m, 1, 1) + flags;
        let cached = self.put_memory + self.c_w_mpb(1) * lines + self.c_get_mem(m, 1, 1) + flags;
        p as f64 * lines / (first * p as f64 + cached * (2.0 * p as f64 - 3.0)).0
    }
}

impl Published for PutGet {
    fn name(&self) -> &'static str {
        NAME
    }

    /// A send and its receive (section 5.2.2), all distances 1: C_put^mem(m) + C_get^mem(m); a message without bytes is
    /// a flag that is set and read.
    fn message(&self, bytes: u64) -> Reading {
        let m = u32::try_from(bytes.div_ceil(self.line_bytes)).unwrap_or(u32::MAX);
        let time = match m {
            0 => self.flag_set(1) + self.flag_read(1),
            m => self.c_put_mem(m, 1, 1) + self.c_get_mem(m, 1, 1),
        };
        Reading { nanos: time.0, extrapolated: false }
    }

    /// A binomial broadcast by Eq. 14, OC-Bcast by Eq. 13 for its first chunk and Eq. 15 for each further one, everything else
    /// as messages in a row.
    fn collective(&self, call: &Call<'_>) -> Result<Reading, NoForm> {
        let m = u32::try_from(call.bytes.div_ceil(self.line_bytes)).unwrap_or(u32::MAX);
        match call.form {
            Form::OcBcast { degree } if call.ranks > 1 && m > 0 => {
                let first = self.oc_bcast_latency(call.ranks, m.min(CHUNK), degree);
                let rest = f64::from(m.saturating_sub(CHUNK)) / self.oc_bcast_throughput(CHUNK);
                Ok(Reading { nanos: first.0 + rest, extrapolated: false })
            }
            Form::BinomialBcast if call.ranks > 1 && call.bytes > 0 => {
                Ok(Reading { nanos: self.binomial_latency(call.ranks, m).0, extrapolated: false })
            }
            _ => in_a_row(self, call),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineweave_core::machine::shipped;

    fn scc() -> PutGet {
        PutGet::of(shipped().iter().find(|m| m.name == "intel-scc").unwrap()).unwrap()
    }

    /// Values computed by hand from Table 1: sections 3.1.3 and 5.3.
    #[test]
    fn a_line_takes_what_the_parameters_say() {
        let m = scc();
        assert!((m.c_put_mpb(1, 1).0 - 341.0).abs() < 1e-9);
        assert!((m.l_put_mpb(1, 9).0 - (69.0 + 136.0 + 171.0)).abs() < 1e-9);
        assert!((m.c_get_mem(1, 1, 1).0 - 702.0).abs() < 1e-9);
        assert!((m.flag_read(1).0 - 466.0).abs() < 1e-9);
    }

    /// Eq. 13 and 14 by hand for 48 cores and one line: depth 2 with k = 7, 6 rounds of the binomial tree.
    #[test]
    fn latencies_are_the_printed_forms() {
        let m = scc();
        let near =
            |ns: Nanos, by_hand: f64| assert!((ns.0 - by_hand).abs() < 1e-9, "{} is not {by_hand}", ns.0);
        let (r, w, r_mem, w_mem) = (m.c_r_mpb(1).0, m.c_w_mpb(1).0, m.c_r_mem(1).0, m.c_w_mem(1).0);
        near(m.binomial_latency(48, 1), 5028.0);
        near(m.binomial_latency_simple(48, 1), 6.0 * (r + w + w_mem) + r_mem);
        near(m.binomial_latency_simple(48, 1) - m.c_r_mem(1), 5028.0 - 6.0 * m.get_memory.0);
        near(m.oc_bcast_latency(48, 1, 7), m.put_memory.0 + r_mem + w + 2.0 * (m.get_box.0 + r + w) + 702.0);
        near(m.oc_bcast_latency_simple(48, 1, 7), 2.0 * (r + w) + r_mem + w_mem);
    }

    /// Two ranks: a message of 3 lines, and Eq. 14 for 8 ranks.
    #[test]
    fn calls_are_messages_or_equation_14() {
        let m = scc();
        let at = |form, p, bytes| m.collective(&Call::new(form, p, bytes)).unwrap().nanos;
        let message = m.c_put_mem(3, 1, 1) + m.c_get_mem(3, 1, 1);
        assert_eq!(m.message(65).nanos, message.0);
        assert_eq!(at(Form::FlatBcast, 5, 65), 4.0 * message.0);
        assert_eq!(at(Form::BinomialBcast, 8, 65), m.binomial_latency(8, 3).0);
        assert!(at(Form::DisseminationBarrier, 8, 0) > 0.0);
    }

    #[test]
    fn only_meshes_have_it() {
        let other = shipped().iter().find(|m| m.mesh.is_none()).unwrap();
        assert_eq!(PutGet::of(other), None);
    }
}
