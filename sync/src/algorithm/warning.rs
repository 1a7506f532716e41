//! Warnings of a synchronization.

use core::fmt;

use downbeat_clock_core::Duration;

use super::local_clock::{AutoReport, Synchronized};

/// Reason for which a clock is worse than wanted, or took longer.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum SyncWarning {
    /// An automatic synchronization took longer than it was given.
    Budget {
        /// Time that it took.
        took: Duration,
        /// Time that it needs here at least.
        least: Duration,
        /// Time that it was given.
        budget: Duration,
    },
    /// Messages take as long as where ranks wait for a core.
    SharedCores {
        /// Mean duration of an exchange between the slowest pair of ranks.
        exchange: Duration,
    },
    /// The messages of all ranks of a node filled its network card.
    FullCards {
        /// Multiple of its duration that an exchange took.
        slower: f64,
    },
}

impl fmt::Display for SyncWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Budget {
                took,
                least,
                budget,
            } => {
                write!(
                    f,
                    "took {took} of {budget}, and needs {least} here at least"
                )
            }
            Self::SharedCores { exchange } => write!(
                f,
                "an exchange takes {exchange}: ranks may share cores, and the clock can be wrong by as much"
            ),
            Self::FullCards { slower } => write!(
                f,
                "exchanges take {slower:.1} times as long while all ranks of a node measure: their network card is full, and the clock is \
                 wrong by its queue; by auto, one rank of each node measures"
            ),
        }
    }
}

/// Multiple of a budget up to which it counts as kept.
const EXCEEDED: f64 = 1.05;
/// Exchanges that take as long wait for a core.
const SHARED_CORES_EXCHANGE: Duration = Duration::from_millis(1);
/// So do those that take this multiple of what the quickest pair's take.
const FAR_SLOWER: f64 = 20.0;

impl AutoReport {
    fn shows_shared_cores(&self) -> bool {
        self.slowest_exchange > SHARED_CORES_EXCHANGE || self.slowest_to_quickest > FAR_SLOWER
    }
}

impl Synchronized {
    /// Returns the reasons for which the clock is worse than wanted, or took longer.
    pub fn warnings(&self) -> impl Iterator<Item = SyncWarning> {
        let budget = self
            .auto
            .filter(|auto| self.took.as_secs_f64() > EXCEEDED * auto.budget.as_secs_f64());
        let budget = budget.zip(self.least_time());
        let budget = budget.map(|(auto, least)| SyncWarning::Budget {
            took: self.took,
            least,
            budget: auto.budget,
        });
        let cores = self.auto.filter(AutoReport::shows_shared_cores);
        let cores = cores.map(|auto| SyncWarning::SharedCores {
            exchange: auto.slowest_exchange,
        });
        let cards = self.saturation;
        let cards = cards.map(|slower| SyncWarning::FullCards { slower });
        budget.into_iter().chain(cores).chain(cards)
    }
}
