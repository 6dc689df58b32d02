//! tau-Lop and LogGP of a library's own channel, from its messages alone: how a library of MPI is predicted that nobody looks into.
//!
//! - L(m, 1) = T(m), half of a round trip; L(m, tau) is an `MPI_Sendrecv` of tau ranks around a ring, the set-up of
//!   Rico-Gallego & Diaz-Martin 2015, section 5. Messages are taken whole (S = 0, n = 1): whether the library cuts a message and over
//!   how many buffers it goes is within L(m, tau), since from outside nothing tells n L(m, tau) from L(m, tau).
//! - y(tau) = L(0, tau) and c(m, tau) = L(m, tau) - y(tau). o(m) is within T(m), and so 0 here.
//! - LogGP: o is the time of a send at its sender, g that of an empty message among many; L + 2 o and G are least squares of
//!   T(m) on (1, m - 1), each length by its relative error.
//!
//! What no message model has are copies that a rank makes within its own memory: [`Channel::own_copies`] says what they take.
//!
//! Not valid where ranks share CPUs: a transfer then waits for its partner's turn, which no L(m, tau) has.

use super::loggp::LogGp;
use super::stages::Form;
use super::tau_lop::{TauLop, Way};
use lineweave_core::model::{weighted, Fitted, Observation, Point, Provenance, Surface};

/// A time of `tau` exchanges of `bytes` bytes at once.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Exchange {
    /// The number of concurrent transfers; 1 for a message alone.
    pub tau: u32,
    /// Length.
    pub bytes: u64,
    /// The time of one transfer in ns.
    pub nanos: f64,
}

/// The timed transfers of a channel.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Timed {
    /// Half round trips as tau = 1, rings as their number of ranks.
    pub exchanges: Vec<Exchange>,
    /// Folds of doubles, tau at once.
    pub folds: Vec<Exchange>,
    /// Copies of a rank within its own memory, tau ranks at once.
    pub copies: Vec<Exchange>,
    /// A send at its sender, ns.
    pub send: f64,
    /// An empty message among many that follow each other, ns.
    pub gap: f64,
}

/// The models of a channel.
#[derive(Clone, PartialEq, Debug)]
pub struct Channel {
    /// tau-Lop.
    pub tau_lop: TauLop,
    /// LogGP.
    pub loggp: LogGp,
    /// gamma(m, tau).
    pub gamma: Option<Surface>,
    /// A copy of a rank within its own memory.
    pub copies: Option<Surface>,
}

impl Channel {
    /// Returns the ns that a rank's copies within its own memory take in a call, all ranks at once; nothing where none were timed.
    pub fn own_copies(&self, form: Form, ranks: usize, bytes: u64) -> Option<f64> {
        match form.own_bytes(ranks, bytes) {
            0 => Some(0.0),
            own => Some(self.copies.as_ref()?.at(own as usize, ranks).nanos),
        }
    }
}

/// The relative error of a time, for all lengths alike.
const SHARE: f64 = 0.02;

/// Returns the channel's models; nothing where fewer than two lengths of a message alone, or no empty one, were timed.
pub fn fit(timed: &Timed) -> Option<Channel> {
    let empty = |tau: u32| timed.exchanges.iter().find(|e| e.tau == tau && e.bytes == 0).map(|e| e.nanos);
    empty(1)?;
    let mut taus: Vec<u32> = timed.exchanges.iter().map(|e| e.tau).collect();
    taus.sort_unstable();
    taus.dedup();
    let sync: Vec<(u32, Fitted)> =
        taus.iter().filter_map(|&tau| Some((tau, measured(empty(tau)?)))).collect();
    let copies = timed.exchanges.iter().filter(|e| e.bytes > 0).filter_map(|e| {
        let bare = (e.nanos - empty(e.tau)?).max(0.0);
        Some(point(&Exchange { nanos: bare, ..*e }, e.nanos))
    });
    let copy = Surface::from_points(&copies.collect::<Vec<_>>())?;
    let surface =
        |list: &[Exchange]| Surface::from_points(&list.iter().map(|e| point(e, e.nanos)).collect::<Vec<_>>());
    let start = Fitted::new(0.0, Provenance::Inferred);
    let way = Way { segment: 0, transfers: 1, back_to_back: false };
    Some(Channel {
        tau_lop: TauLop { copy, sync, start, way },
        loggp: loggp(timed)?,
        gamma: surface(&timed.folds),
        copies: surface(&timed.copies),
    })
}

fn loggp(timed: &Timed) -> Option<LogGp> {
    let o = measured(timed.send);
    let observe = |e: &Exchange| Observation {
        basis: vec![1.0, (e.bytes as f64 - 1.0).max(0.0)],
        value: e.nanos - 2.0 * o.value,
        sigma: (e.nanos * SHARE).max(1e-3),
    };
    let alone: Vec<Observation> = timed.exchanges.iter().filter(|e| e.tau == 1).map(observe).collect();
    let line = weighted(&alone)?;
    let per_byte = line.coefficients[1].at_least(0.0);
    Some(LogGp { l: line.coefficients[0], o, g: measured(timed.gap), per_byte, segment: 0 })
}

fn measured(nanos: f64) -> Fitted {
    Fitted::new(nanos, Provenance::Measured)
}

/// A node of a surface, as certain as the time that it is part of.
fn point(e: &Exchange, of: f64) -> Point {
    let weight = (of * SHARE).max(1e-3).powi(-2);
    Point { bytes: e.bytes, tau: e.tau, cost: measured(e.nanos), weight }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{Call, Published};

    /// A library whose L(m, tau) is (400 + 0.2 m)(1 + (tau - 1) / 4), and whose folds take 0.1 ns a byte.
    fn transfer(bytes: u64, tau: u32) -> f64 {
        (400.0 + 0.2 * bytes as f64) * (1.0 + 0.25 * f64::from(tau - 1))
    }

    fn timed() -> Timed {
        let lengths = || std::iter::once(0).chain((3..=22).map(|i| 1u64 << i));
        let each = |taus: [u32; 3], of: fn(u64, u32) -> f64| {
            lengths()
                .flat_map(move |bytes| taus.map(|tau| Exchange { tau, bytes, nanos: of(bytes, tau) }))
                .collect()
        };
        let fold = |bytes: u64, _| 10.0 + 0.1 * bytes as f64;
        let copies = each([1, 2, 4], |bytes, _| 0.02 * bytes as f64);
        Timed {
            exchanges: each([1, 2, 4], transfer),
            folds: each([1, 2, 4], fold),
            copies,
            send: 50.0,
            gap: 90.0,
        }
    }

    #[test]
    fn a_channel_of_known_parameters_gives_them_back() {
        let Channel { tau_lop, loggp, gamma, .. } = fit(&timed()).unwrap();
        for (bytes, tau) in [(8, 1), (4096, 2), (1 << 20, 4), (3000, 4)] {
            let found = tau_lop.transfer(bytes, u64::from(tau)).nanos;
            let truth = transfer(bytes, tau);
            assert!((found / truth - 1.0).abs() < 1e-6, "L({bytes}, {tau}) = {found}, not {truth}");
        }
        assert_eq!(tau_lop.sync(2).nanos, transfer(0, 2));
        assert!(
            (loggp.l.value - 300.2).abs() < 1.0 && (loggp.per_byte.value - 0.2).abs() < 1e-4,
            "{loggp:?}"
        );
        assert_eq!((loggp.o.value, loggp.g.value), (50.0, 90.0));
        assert!((gamma.unwrap().at(1000, 2).nanos - 110.0).abs() < 1e-6);
    }

    /// tau-Lop predicts a collective that is made of these messages; LogGP cannot see that they share the channel.
    #[test]
    fn collectives_of_its_messages_are_predicted() {
        let channel = fit(&timed()).unwrap();
        let call = Call { gamma: channel.gamma.as_ref(), ..Call::new(Form::DoublingAllreduce, 4, 8192) };
        let truth = 2.0 * (transfer(8192, 4) + 10.0 + 0.1 * 8192.0);
        let found = channel.tau_lop.collective(&call).unwrap().nanos;
        assert!((found / truth - 1.0).abs() < 1e-3, "{found} {truth}");
        assert!(channel.loggp.collective(&call).unwrap().nanos < 0.8 * truth);
        let own = |form| channel.own_copies(form, 4, 8192).unwrap();
        assert_eq!((own(Form::BinomialBcast), own(Form::RingAllgather)), (0.0, 0.02 * 2048.0));
        assert!((own(Form::DoublingAllreduce) - 0.02 * 8192.0).abs() < 1e-9);
        let down = channel.tau_lop.collective(&Call::new(Form::BinomialBcast, 4, 8192)).unwrap().nanos;
        assert!((down / (transfer(8192, 1) + transfer(8192, 2)) - 1.0).abs() < 1e-6, "{down}");
    }

    #[test]
    fn what_was_not_timed_is_not_fitted() {
        assert!(fit(&Timed::default()).is_none());
        let mut without = timed();
        without.exchanges.retain(|e| e.bytes > 0);
        assert!(fit(&without).is_none());
    }
}
