//! The time of day of timestamps.

use std::time::{SystemTime, UNIX_EPOCH};

use downbeat_clock_core::{Clock, Domain, Duration, ErrorBound, ModelClock, Timestamp};

use crate::{ClockUnavailable, SystemClock, SystemClockId};

/// A reading of the time of day between two readings of another clock: converts timestamps of that clock to the time of day.
///
/// ```
/// use downbeat_timers::{ClockName, Duration, MachineClock, WallAnchor};
/// use downbeat_clock_core::{Local, ModelClock};
///
/// let counter = MachineClock::detect(ClockName::Recommended)?;
/// let calibrated = counter.calibrate(Duration::from_millis(10))?;
/// let clock = ModelClock::<_, Local>::new(counter, counter.since_now(calibrated.rate)?);
///
/// let anchor = WallAnchor::take(&clock, calibrated.uncertainty)?;
/// let now = clock.now();
/// println!("{:?} +- {}", anchor.time_of(now), anchor.error_at(now));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WallAnchor<D: Domain> {
    wall: Duration,
    bound: ErrorBound<D>,
}

/// Number of readings, of which the one with the smallest error is kept.
const READINGS: usize = 20;

impl<D: Domain> WallAnchor<D> {
    /// Reads the time of day, and `clock` before and after it. The rate of the clock has this relative error at most.
    ///
    /// # Errors
    /// If the system does not tell the time of day.
    pub fn take<K: Clock>(
        clock: &ModelClock<K, D>,
        rate_error: f64,
    ) -> Result<Self, ClockUnavailable> {
        let wall_clock = SystemClock::detect(SystemClockId::Realtime)?;
        let rounding = clock.model().rate().duration(clock.clock().grain())
            + Duration::from_nanos(wall_clock.grain() as i64 + 1);
        let take = |_| {
            let before = clock.open();
            let wall = wall_clock.ticks();
            let after = clock.close();
            Self {
                wall: Duration::from_nanos(i64::try_from(wall.0).unwrap_or(i64::MAX)),
                bound: ErrorBound::symmetric(
                    before.midpoint(after),
                    (after - before) / 2 + rounding,
                    rate_error,
                ),
            }
        };
        let best = |one: Self, other: Self| {
            if other.bound.half_width() < one.bound.half_width() {
                other
            } else {
                one
            }
        };
        Ok((1..READINGS).map(take).fold(take(0), best))
    }

    /// The time of day of a timestamp, as the system's clock showed it when the anchor was taken, continued at the rate of the
    /// timestamps.
    pub fn time_of(&self, at: Timestamp<D>) -> SystemTime {
        let since_epoch = Duration::from_nanos(self.nanos_since_epoch(at));
        let span = |span: Duration| std::time::Duration::from_nanos(span.as_nanos().unsigned_abs());
        if since_epoch < Duration::ZERO {
            UNIX_EPOCH - span(since_epoch)
        } else {
            UNIX_EPOCH + span(since_epoch)
        }
    }

    /// The same as [`time_of`](Self::time_of), in nanoseconds since 1970; saturates.
    pub fn nanos_since_epoch(&self, at: Timestamp<D>) -> i64 {
        (self.wall + (at - self.bound.at)).as_nanos()
    }

    /// Upper limit of the error of [`time_of`](Self::time_of), if the system's time of day was right when the anchor was taken. It
    /// grows with the distance from the anchor. What the time of day is set or adjusted by later is not part of it: take a new
    /// anchor from time to time.
    pub fn error_at(&self, at: Timestamp<D>) -> Duration {
        self.bound.at_time(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MockClock;
    use downbeat_clock_core::{ClockModel, Counter, Local, Ticks};

    fn standing() -> ModelClock<MockClock, Local> {
        let model =
            ClockModel::<Counter, Local>::through(Ticks(0), Timestamp::ORIGIN, MockClock::RATE);
        ModelClock::new(MockClock::new(Ticks(7)), model.unwrap())
    }

    #[test]
    fn timestamps_get_the_time_of_day() {
        let before = SystemTime::now();
        let anchor = WallAnchor::take(&standing(), 1e-6).unwrap();
        let after = SystemTime::now();
        let at = Timestamp::from_nanos(7);
        let shown = anchor.time_of(at);
        assert!(before <= shown && shown <= after, "{shown:?}");
        let later = at + Duration::from_secs(3);
        let three = std::time::Duration::from_secs(3);
        assert_eq!(anchor.time_of(later), shown + three);
        assert_eq!(
            anchor.error_at(later) - anchor.error_at(at),
            Duration::from_micros(3)
        );
        let long_ago = anchor.time_of(Timestamp::from_nanos(i64::MIN));
        assert!(long_ago < UNIX_EPOCH);
    }

    /// A clock that stands still leaves only its own step and that of the time of day, and rounding.
    #[test]
    fn the_error_is_that_of_the_reading() {
        let anchor = WallAnchor::take(&standing(), 0.0).unwrap();
        let error = anchor.error_at(Timestamp::ORIGIN);
        assert!(
            error >= Duration::from_nanos(3) && error < Duration::from_micros(2),
            "{error}"
        );
    }
}
