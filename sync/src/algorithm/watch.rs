//! Comparison of a clock with another one of its rank over a synchronization: a step
//! after the last message of a rank shows to no other rank.

use downbeat_clock_core::{Clock, Duration, FitError, Ticks};

use super::local_clock::{LocalClock, OtherClock};
use crate::SyncError;
use crate::line::rounded;
use crate::session::{ROUNDING, resolution};

/// Reading of the other clock between two of a rank's own.
#[derive(Clone, Copy, Debug)]
struct Reading {
    before: Ticks,
    other: i64,
    after: Ticks,
}

/// Both clocks of a rank at the begin of a synchronization.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch(Option<(OtherClock, Reading)>);

impl Watch {
    pub(super) fn begin<K: Clock>(me: &LocalClock<'_, K>) -> Self {
        let reading = |other| Some((other, Reading::take(me.clock, other)?));
        Self(me.other.and_then(reading))
    }

    /// Returns an error if one of the clocks stepped since the begin.
    pub(super) fn end<K: Clock>(self, me: &LocalClock<'_, K>) -> Result<(), SyncError> {
        let Some((other, began)) = self.0 else {
            return Ok(());
        };
        let Some(ended) = Reading::take(me.clock, other) else {
            return Ok(());
        };
        let passed = |from: Ticks, to: Ticks| me.base.apply(to) - me.base.apply(from);
        let [least, most] = [
            passed(began.after, ended.before),
            passed(began.before, ended.after),
        ];
        let by_other = Duration::from_nanos(ended.other.saturating_sub(began.other));
        let drifted = rounded((by_other.as_nanos() as f64 * other.max_drift).abs());
        let read = resolution(me.clock, &me.base) + ROUNDING;
        let by = (least - by_other).max(by_other - most) - drifted - read - read;
        if by <= Duration::ZERO {
            return Ok(());
        }
        Err(FitError::Stepped { by, between: None }.into())
    }
}

impl Reading {
    fn take(clock: &impl Clock, other: OtherClock) -> Option<Self> {
        Some(Self {
            before: clock.ticks(),
            other: (other.read)()?,
            after: clock.ticks(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;
    use downbeat_clock_core::{ClockModel, Counter, Local, TickRate, Timestamp};

    thread_local! {
        static OTHER: Cell<i64> = const { Cell::new(0) };
    }

    /// Clock that counts nanoseconds, which takes ten of them to be read.
    struct SetClock(Cell<u64>);

    impl Clock for SetClock {
        fn ticks(&self) -> Ticks {
            Ticks(self.0.replace(self.0.get() + 10))
        }
    }

    /// Returns the step that is found after a second of the other clock, in which the own
    /// one counts so many nanoseconds.
    fn step_found(counted: u64) -> Option<i64> {
        let clock = SetClock(Cell::new(1_000));
        let base: ClockModel<Counter, Local> =
            ClockModel::through(Ticks(0), Timestamp::ORIGIN, TickRate::NANOSECOND).unwrap();
        let me = LocalClock::new(&clock, base).compared_with(OtherClock {
            read: || Some(OTHER.get()),
            max_drift: 1e-6,
        });
        OTHER.set(5);
        let watch = Watch::begin(&me);
        OTHER.set(1_000_000_005);
        clock.0.set(clock.0.get() + counted);
        match watch.end(&me) {
            Ok(()) => None,
            Err(SyncError::Fit(FitError::Stepped { by, .. })) => Some(by.as_nanos()),
            Err(why) => unreachable!("{why}"),
        }
    }

    #[test]
    fn a_step_shows_to_another_clock_of_the_rank() {
        for drift in [-900, 0, 900] {
            assert_eq!(step_found((1_000_000_000_i64 + drift) as u64), None);
        }
        for step in [-5_000, 5_000] {
            let found = step_found((1_000_000_000_i64 + step) as u64).unwrap();
            assert!((3_900..=4_100).contains(&found), "{step}: {found}");
        }
    }
}
