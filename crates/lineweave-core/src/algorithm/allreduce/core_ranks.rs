//! The largest power of two among the ranks, and the surplus that joins it in pairs.
//!
//! Of P ranks, `2^rounds` play; each of the first `guests` of them is host to its right neighbour, whose
//! contribution it folds in before and whom it serves with the result after (Thakur, Rabenseifner & Gropp 2005).
//! Neighbours pair up, so contributions stay in rank order.

/// Part of a member in the core: player or guest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Hands its contribution to the member before it and gets the result from there.
    Guest,
    /// Plays as number `core`, with the member after it as its guest where `host`.
    Player {
        /// Number among the players.
        core: usize,
        /// True if it has a guest.
        host: bool,
    },
}

/// Power-of-two core of the members: its `2^rounds` players, and their guests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Core {
    /// Rounds: the logarithm of the number of players.
    pub rounds: usize,
    /// The number of guests.
    pub guests: usize,
}

impl Core {
    /// The players among `p >= 1` members.
    pub fn of(p: usize) -> Core {
        let rounds = p.ilog2() as usize;
        Core { rounds, guests: p - (1 << rounds) }
    }

    /// The number of players.
    pub fn players(self) -> usize {
        1 << self.rounds
    }

    /// Returns the role of member `i`.
    pub fn role(self, i: usize) -> Role {
        if i >= 2 * self.guests {
            Role::Player { core: i - self.guests, host: false }
        } else if i % 2 == 0 {
            Role::Player { core: i / 2, host: true }
        } else {
            Role::Guest
        }
    }

    /// The member that plays as number `core`.
    pub fn member(self, core: usize) -> usize {
        if core < self.guests {
            2 * core
        } else {
            core + self.guests
        }
    }
}
