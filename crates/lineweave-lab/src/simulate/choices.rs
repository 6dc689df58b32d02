//! Choices of a play whose order is free: see [`bounds`](super::bounds).

/// Options that are taken beyond the choices that are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Beyond {
    /// The first option.
    #[default]
    First,
    /// The last option.
    Last,
    /// Any option; the state of the generator, and which ranks come late where not any do.
    Random(u64, Option<bool>),
}

/// The choices of one play.
#[derive(Clone, Debug, Default)]
pub(super) struct Choices {
    /// The option that was taken, and the number of options.
    path: Vec<(u32, u32)>,
    /// Number of choices made in this play.
    pub(super) made: usize,
    beyond: Beyond,
}

impl Choices {
    /// Nothing is chosen yet.
    pub(super) fn beyond(beyond: Beyond) -> Choices {
        Choices { beyond, ..Choices::default() }
    }

    /// Number of choices that are known.
    pub(super) fn known(&self) -> usize {
        self.path.len()
    }

    /// Returns whether a rank comes late.
    pub(super) fn late(&mut self) -> bool {
        match self.beyond {
            Beyond::Random(state, Some(late)) if self.made == self.path.len() => {
                self.beyond = if late { Beyond::Last } else { Beyond::First };
                let chosen = self.choose(2) > 0;
                self.beyond = Beyond::Random(state, Some(late));
                chosen
            }
            _ => self.choose(2) > 0,
        }
    }

    /// Returns one of so many options.
    pub(super) fn choose(&mut self, options: usize) -> usize {
        if options < 2 {
            return 0;
        }
        self.made += 1;
        if let Some(&(taken, _)) = self.path.get(self.made - 1) {
            return taken as usize;
        }
        let taken = match &mut self.beyond {
            Beyond::First => 0,
            Beyond::Last => options as u32 - 1,
            Beyond::Random(state, _) => {
                // Knuth's linear congruential generator; the high bits are the better ones.
                *state =
                    state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                ((*state >> 33) % options as u64) as u32
            }
        };
        self.path.push((taken, options as u32));
        taken as usize
    }

    /// Goes on to the next play, which differs in the last choice that has an option left. Returns whether there is one.
    pub(super) fn advance(&mut self) -> bool {
        self.made = 0;
        while let Some((taken, options)) = self.path.pop() {
            if taken + 1 < options {
                self.path.push((taken + 1, options));
                return true;
            }
        }
        false
    }
}
