//! Stays in the collective operations of a stream.

use downbeat_clock_core::{Global, Timestamp};
use rustc_hash::FxHashMap;

use super::super::Pattern;
use super::super::latencies::stays::Stay;
use super::census::Which;
use super::{Census, Link, Linked};

/// Members of operations that are not complete, by operation.
#[derive(Debug, Default)]
pub(super) struct StreamedStays {
    /// Times at which members entered, by their ranks.
    entered: FxHashMap<(Which, u32), Timestamp<Global>>,
    stays: FxHashMap<Which, Vec<Stay>>,
}

impl StreamedStays {
    /// Takes the next event. Returns the stays in an operation that is complete now: of all members
    /// that waited for all others, and the others for them.
    pub(super) fn take(
        &mut self,
        census: &Census,
        event: Linked,
        time: Timestamp<Global>,
    ) -> Option<Vec<Stay>> {
        let of = match event.link {
            Link::Enter { of } => {
                self.entered.insert((of.which, of.rank), time);
                of
            }
            Link::Exit {
                of,
                kind,
                sends,
                receives,
                ..
            } => {
                let counts = sends && receives && kind.pattern() == Pattern::AllToAll;
                let entered = self.entered.remove(&(of.which, of.rank));
                if let Some(entered) = entered.filter(|_| counts) {
                    self.stays.entry(of.which).or_default().push(Stay {
                        site: census.site(event.id.location.0),
                        entered,
                        left: time,
                    });
                }
                of
            }
            _ => return None,
        };
        of.is_last.then(|| self.stays.remove(&of.which))?
    }

    /// Returns the stays in each operation that lacks events.
    pub(super) fn finish(self) -> impl Iterator<Item = Vec<Stay>> {
        self.stays.into_values()
    }
}
