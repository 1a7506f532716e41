//! Where the ranks of a communicator meet to be parted into groups.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::{Departure, ThreadComm};
use crate::CommError;

/// The meeting place. Nothing here is timed, so it is a plain lock.
pub(super) struct Meeting {
    table: Mutex<Table>,
    changed: Condvar,
}

struct Table {
    /// What every rank wants, from when it comes until the last has come.
    wishes: Vec<Option<Wish>>,
    /// What every rank gets, from when the last has come until it takes it.
    seats: Vec<Option<Seat>>,
    /// The first rank that will never come again.
    gone: Option<(u32, Departure)>,
}

#[derive(Clone, Copy)]
struct Wish {
    color: Option<u32>,
    key: u32,
}

/// A place in a new group; `None` for a rank without color.
type Seat = Option<ThreadComm>;

impl Meeting {
    pub(super) fn new(ranks: usize) -> Self {
        let seats = (0..ranks).map(|_| None).collect();
        let table = Table {
            wishes: vec![None; ranks],
            seats,
            gone: None,
        };
        Self {
            table: Mutex::new(table),
            changed: Condvar::new(),
        }
    }

    /// Waits for all ranks; the last to come parts them.
    pub(super) fn attend(
        &self,
        rank: u32,
        color: Option<u32>,
        key: u32,
    ) -> Result<Seat, CommError> {
        let mut table = self.lock();
        table.wishes[rank as usize] = Some(Wish { color, key });
        if table.wishes.iter().all(Option::is_some) {
            table.part();
            self.changed.notify_all();
        }
        loop {
            if let Some(seat) = table.seats[rank as usize].take() {
                return Ok(seat);
            }
            match table.gone {
                Some((rank, Departure::Left)) => return Err(CommError::Left { rank }),
                Some((rank, Departure::Panicked)) => return Err(CommError::Panicked { rank }),
                None => {}
            }
            table = self
                .changed
                .wait(table)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The rank will not come again; nobody waits for it.
    pub(super) fn leave(&self, rank: u32, how: Departure) {
        self.lock().gone.get_or_insert((rank, how));
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Nothing panics under the lock.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Gives every rank its seat, when all wishes are there. All seats are free: every rank took its last one before it
    /// came again.
    fn part(&mut self) {
        let wishes = self.wishes.iter_mut().map(Option::take);
        let mut order: Vec<_> = (0_usize..)
            .zip(wishes)
            .filter_map(|(rank, wish)| wish.map(|Wish { color, key }| (color, key, rank)))
            .collect();
        order.sort_unstable();
        for group in order.chunk_by(|a, b| a.0 == b.0) {
            let (color, ..) = group[0];
            let mut comms = color
                .map(|_| ThreadComm::group(group.len()))
                .into_iter()
                .flatten();
            for (.., rank) in group {
                self.seats[*rank] = Some(comms.next());
            }
        }
    }
}
