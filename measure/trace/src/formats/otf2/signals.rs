//! Signals of archives: locks, and begins and ends of threads.

use downbeat_otf2::Event as Record;

use super::unexamined::Relation;
use crate::Event;

/// Event that another one of the process waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Otf2Signal {
    pub(super) kind: Otf2SignalKind,
    /// Lock, or contingent of threads.
    pub(super) of: u32,
    pub(super) number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Otf2SignalKind {
    ThreadCreated,
    ThreadEnded,
    Released,
}

impl Otf2Signal {
    /// Returns the signal that an event gives, or else waits for.
    pub(super) fn of(event: &Record<'_>) -> Option<(Self, bool)> {
        use Otf2SignalKind::{Released, ThreadCreated, ThreadEnded};
        // A release has the number of its acquisition.
        let released = |acquisition: u32| acquisition.checked_sub(1);
        let (kind, of, number, signals) = match event {
            Record::OmpReleaseLock(end) => (Released, end.lock, end.acquisition_order.into(), true),
            Record::ThreadReleaseLock(end) => {
                (Released, end.lock, end.acquisition_order.into(), true)
            }
            Record::OmpAcquireLock(end) => (
                Released,
                end.lock,
                released(end.acquisition_order)?.into(),
                false,
            ),
            Record::ThreadAcquireLock(end) => (
                Released,
                end.lock,
                released(end.acquisition_order)?.into(),
                false,
            ),
            Record::ThreadCreate(end) => (ThreadCreated, end.contingent.0, end.sequence, true),
            Record::ThreadBegin(end) => (ThreadCreated, end.contingent.0, end.sequence, false),
            Record::ThreadEnd(end) => (ThreadEnded, end.contingent.0, end.sequence, true),
            Record::ThreadWait(end) => (ThreadEnded, end.contingent.0, end.sequence, false),
            _ => return None,
        };
        Some((Self { kind, of, number }, signals))
    }

    /// Returns a note of the signal, or else of the wait for it.
    pub(super) const fn note(self, signals: bool) -> Event<'static> {
        Event::Note(match (self.kind, signals) {
            (Otf2SignalKind::ThreadCreated, true) => "thread created",
            (Otf2SignalKind::ThreadCreated, false) => "thread began",
            (Otf2SignalKind::ThreadEnded, true) => "thread ended",
            (Otf2SignalKind::ThreadEnded, false) => "thread joined",
            (Otf2SignalKind::Released, true) => "lock released",
            (Otf2SignalKind::Released, false) => "lock acquired",
        })
    }

    /// Returns an id that differs from those of other signals; `None` if there are too many.
    pub(super) fn id(self) -> Option<u64> {
        let number = u32::try_from(self.number).ok()?;
        let kind = self.kind as u64;
        (self.of < 1 << 30).then_some(kind << 62 | u64::from(self.of) << 32 | u64::from(number))
    }

    pub(super) fn relation(self) -> Relation {
        match self.kind {
            Otf2SignalKind::Released => Relation::Lock,
            Otf2SignalKind::ThreadCreated | Otf2SignalKind::ThreadEnded => Relation::Thread,
        }
    }
}
