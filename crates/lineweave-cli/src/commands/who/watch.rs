//! Looking again and again, and what is only seen so: for whom others waited, and how long.

use super::prometheus::waiters;
use lineweave::who::TeamView;
use std::collections::HashMap;
use std::time::Duration;

/// Time that others waited for each rank, by what each look showed.
#[derive(Debug, Default)]
pub struct Late(HashMap<(u64, u64, usize), Duration>);

impl Late {
    /// Counts the time since the look before for each rank that others wait for now.
    pub fn saw(&mut self, teams: &[TeamView], since: Duration) {
        for team in teams {
            for rank in (0..team.ranks.len()).filter(|&rank| waiters(team, rank) > 0) {
                *self.0.entry((team.id, team.at, rank)).or_default() += since;
            }
        }
        // Teams that have ended never come back.
        self.0.retain(|(id, at, _), _| teams.iter().any(|team| (team.id, team.at) == (*id, *at)));
    }

    /// Returns for how long others waited for a rank, in seconds.
    pub fn seconds(&self, team: &TeamView, rank: usize) -> f64 {
        self.0.get(&(team.id, team.at, rank)).map_or(0.0, Duration::as_secs_f64)
    }

    /// Returns the ranks of a team that others waited for, the longest first.
    pub fn of(&self, team: &TeamView) -> Vec<(usize, Duration)> {
        let own = self.0.iter().filter(|((id, at, _), _)| (*id, *at) == (team.id, team.at));
        let mut ranks: Vec<(usize, Duration)> = own.map(|((_, _, rank), waited)| (*rank, *waited)).collect();
        ranks.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        ranks
    }
}
