//! Rendezvous of the ranks of a communicator, which splits them into groups.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::mailbox::Departure;
use crate::CommError;
use crate::split::{SplitRequest, groups};

/// Rendezvous at which each rank receives a communicator `C`. It is not timed, so a plain lock is enough.
pub(crate) struct SplitMeeting<C> {
    state: Mutex<MeetingState<C>>,
    changed: Condvar,
}

struct MeetingState<C> {
    /// Request of every rank, from its arrival until the last rank has arrived.
    requests: Vec<Option<SplitRequest>>,
    /// Result of every rank, from the arrival of the last rank until the rank takes it; its communicator is `None` for a
    /// rank without a color.
    results: Vec<Option<Option<C>>>,
    /// The first rank that will not arrive again.
    gone: Option<(u32, Departure)>,
}

impl<C> SplitMeeting<C> {
    pub(crate) fn new(ranks: usize) -> Self {
        Self {
            state: Mutex::new(MeetingState {
                requests: vec![None; ranks],
                results: (0..ranks).map(|_| None).collect(),
                gone: None,
            }),
            changed: Condvar::new(),
        }
    }

    /// Waits for all ranks; the last one to arrive forms the groups, whose communicators `make_group` creates.
    pub(crate) fn attend(
        &self,
        request: SplitRequest,
        make_group: impl Fn(usize) -> Vec<C>,
    ) -> Result<Option<C>, CommError> {
        let rank = request.rank as usize;
        let mut state = self.lock();
        state.requests[rank] = Some(request);
        if state.requests.iter().all(Option::is_some) {
            state.form_groups(make_group);
            self.changed.notify_all();
        }
        loop {
            if let Some(result) = state.results[rank].take() {
                return Ok(result);
            }
            match state.gone {
                Some((rank, Departure::Left)) => return Err(CommError::Left { rank }),
                Some((rank, Departure::Panicked)) => return Err(CommError::Panicked { rank }),
                None => {}
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Records that the rank will not arrive again, and ends the wait of the others.
    pub(crate) fn leave(&self, rank: u32, how: Departure) {
        self.lock().gone.get_or_insert((rank, how));
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, MeetingState<C>> {
        // No code panics under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> MeetingState<C> {
    /// Gives every rank its result, when all requests are there. All results of the previous split were taken: every
    /// rank took its own before it arrived again.
    fn form_groups(&mut self, make_group: impl Fn(usize) -> Vec<C>) {
        let mut requests: Vec<_> = self.requests.iter_mut().filter_map(Option::take).collect();
        for group in groups(&mut requests) {
            let mut comms = group[0]
                .color
                .map(|_| make_group(group.len()))
                .into_iter()
                .flatten();
            for request in group {
                self.results[request.rank as usize] = Some(comms.next());
            }
        }
    }
}
