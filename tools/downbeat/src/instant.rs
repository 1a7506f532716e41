//! Points in time of this process.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use downbeat_clock_core::{Clock, ErrorBound, Local, ModelClock, Timestamp};
use downbeat_timers::{CalibratedRate, ClockName, ClockUnavailable, MachineClock, WallAnchor};

/// A point in time of this process, by the calibrated counter: a replacement of [`std::time::Instant`] that costs less to read, and
/// can say how wrong a difference is.
///
/// The first use calibrates the counter, for 10 ms: call [`Instant::clock`] at the start of the program. Where no counter is trusted, the
/// monotonic clock of the system is read. Readings never go back, also from one thread to another.
///
/// ```
/// use std::time::Duration;
/// use downbeat::Instant;
///
/// let start = Instant::now();
/// let sum: u64 = (0..1_000).sum();
/// let spent = start.elapsed();
/// println!("{sum} took {spent:?}, +- {:?}", Instant::now().largest_error_since(start));
/// assert!(start + Duration::from_secs(1) > Instant::now());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(Timestamp<Local>);

/// The clock of all [`Instant`]s of this process.
#[derive(Debug)]
pub struct InstantClock {
    source: InstantSource,
    rate_error: f64,
    /// Upper limit of the error of one reading: the step of the clock, and rounding.
    reading_error: downbeat_clock_core::Duration,
}

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a process has one, and a pointer would be followed by every read"
)]
enum InstantSource {
    Calibrated(ModelClock<MachineClock, Local>),
    /// The standard library's clock, where none of ours can be used; time since this point.
    Standard(std::time::Instant),
}

const CALIBRATION: downbeat_clock_core::Duration = downbeat_clock_core::Duration::from_millis(10);

impl InstantClock {
    fn find() -> Self {
        Self::calibrated().unwrap_or_else(|| Self {
            source: InstantSource::Standard(std::time::Instant::now()),
            rate_error: 0.0,
            reading_error: CALIBRATION,
        })
    }

    fn calibrated() -> Option<Self> {
        let clock = MachineClock::detect(ClockName::Recommended).ok()?;
        let CalibratedRate { rate, uncertainty } = clock.calibrate(CALIBRATION).ok()?;
        let model = clock.since_now(rate).ok()?;
        Some(Self {
            reading_error: rate.duration(clock.grain())
                + downbeat_clock_core::Duration::from_nanos(1),
            source: InstantSource::Calibrated(ModelClock::new(clock, model)),
            rate_error: uncertainty,
        })
    }

    /// Upper limit of the relative error of the rate, by the clock of the system with which the counter was calibrated: `1e-6` is one
    /// part per million, a microsecond per second.
    pub fn rate_error(&self) -> f64 {
        self.rate_error
    }

    /// Returns the clock that is read; `None` if it is that of the standard library, because this machine has no other.
    pub fn machine_clock(&self) -> Option<&ModelClock<MachineClock, Local>> {
        match &self.source {
            InstantSource::Calibrated(clock) => Some(clock),
            InstantSource::Standard(_) => None,
        }
    }

    /// Reads the time of day, to convert instants to it.
    ///
    /// # Errors
    /// If the system does not tell the time of day.
    pub fn wall_anchor(&self) -> Result<InstantAnchor, ClockUnavailable> {
        let missing = ClockUnavailable::NotOnThisSystem("clock that this program can read");
        let clock = self.machine_clock().ok_or(missing)?;
        WallAnchor::take(clock, self.rate_error).map(InstantAnchor)
    }

    #[cold]
    fn standard_now(&self) -> Timestamp<Local> {
        match &self.source {
            InstantSource::Calibrated(clock) => clock.now(),
            InstantSource::Standard(start) => Timestamp::ORIGIN + start.elapsed().into(),
        }
    }
}

/// A reading of the time of day: converts [`Instant`]s to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InstantAnchor(WallAnchor<Local>);

impl InstantAnchor {
    /// The time of day of an instant; see [`WallAnchor::time_of`].
    pub fn time_of(&self, at: Instant) -> SystemTime {
        self.0.time_of(at.0)
    }

    /// Upper limit of the error of [`time_of`](Self::time_of); see [`WallAnchor::error_at`].
    pub fn error_at(&self, at: Instant) -> Duration {
        unsigned(self.0.error_at(at.0))
    }
}

impl Instant {
    /// Reads the clock.
    #[inline]
    pub fn now() -> Self {
        let clock = Self::clock();
        Self(match &clock.source {
            InstantSource::Calibrated(clock) => clock.now(),
            InstantSource::Standard(_) => clock.standard_now(),
        })
    }

    /// Returns the clock that is read; the first call in a process calibrates it.
    #[inline]
    pub fn clock() -> &'static InstantClock {
        static CLOCK: OnceLock<InstantClock> = OnceLock::new();
        CLOCK.get_or_init(InstantClock::find)
    }

    /// Time since this instant; zero if it is still to come.
    #[inline]
    pub fn elapsed(&self) -> Duration {
        Self::now().duration_since(*self)
    }

    /// Time since an earlier instant; zero if that is later.
    #[inline]
    pub fn duration_since(&self, earlier: Self) -> Duration {
        self.checked_duration_since(earlier).unwrap_or_default()
    }

    /// The same as [`duration_since`](Self::duration_since), which never panics either.
    #[inline]
    pub fn saturating_duration_since(&self, earlier: Self) -> Duration {
        self.duration_since(earlier)
    }

    /// Time since an earlier instant; `None` if that is later.
    #[inline]
    pub fn checked_duration_since(&self, earlier: Self) -> Option<Duration> {
        (self.0 - earlier.0).try_into().ok()
    }

    /// Upper limit of the error of the time since another instant: that of the rate, and of both readings.
    pub fn largest_error_since(&self, other: Self) -> Duration {
        let clock = Self::clock();
        let bound = ErrorBound::symmetric(other.0, clock.reading_error * 2, clock.rate_error);
        unsigned(bound.at_time(self.0))
    }

    /// This instant plus a span; `None` if that is more than 292 years after the start of the process.
    pub fn checked_add(&self, span: Duration) -> Option<Self> {
        let nanos = i64::try_from(span.as_nanos()).ok()?;
        let sum = self.0.as_nanos().checked_add(nanos)?;
        Some(Self(Timestamp::from_nanos(sum)))
    }

    /// This instant minus a span; `None` if that is more than 292 years before the start of the process.
    pub fn checked_sub(&self, span: Duration) -> Option<Self> {
        let nanos = i64::try_from(span.as_nanos()).ok()?;
        let difference = self.0.as_nanos().checked_sub(nanos)?;
        Some(Self(Timestamp::from_nanos(difference)))
    }

    /// This instant as a timestamp of local time.
    pub fn timestamp(self) -> Timestamp<Local> {
        self.0
    }
}

/// A span that is not negative.
fn unsigned(span: downbeat_clock_core::Duration) -> Duration {
    span.try_into().unwrap_or_default()
}

/// Prints the time since the clock was calibrated.
impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Instant({})", self.0)
    }
}

/// Saturates.
impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0 + span.into())
    }
}

/// Saturates.
impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, span: Duration) -> Self {
        Self(self.0 - downbeat_clock_core::Duration::from(span))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, span: Duration) {
        *self = *self - span;
    }
}

/// As [`duration_since`](Instant::duration_since).
impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        self.duration_since(earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_do_arithmetic_as_those_of_the_standard_library() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        assert_eq!((start + second) - start, second);
        assert_eq!(start - (start + second), Duration::ZERO);
        assert_eq!(start.checked_duration_since(start + second), None);
        assert_eq!((start + second).saturating_duration_since(start), second);
        assert_eq!(start.checked_add(Duration::MAX), None);
        assert_eq!(start.checked_sub(second).map(|at| at + second), Some(start));
        let mut moved = start;
        moved += second;
        moved -= second;
        assert_eq!(moved, start);
        assert!(start + Duration::MAX > start + second);
        assert!(format!("{start:?}").starts_with("Instant("));
    }

    #[test]
    fn time_passes_as_for_the_standard_library() {
        Instant::clock();
        let (outer, start) = (std::time::Instant::now(), Instant::now());
        std::thread::sleep(Duration::from_millis(2));
        let (spent, error) = (start.elapsed(), Instant::now().largest_error_since(start));
        let outer = outer.elapsed();
        // The standard library's clock is adjusted by NTP, by 500 ppm at most.
        assert!(spent >= Duration::from_millis(2) - Duration::from_micros(1) - error);
        assert!(
            spent <= outer + outer / 2_000 + error,
            "{spent:?} of {outer:?}"
        );
        assert!(
            error > Duration::ZERO && error < Duration::from_millis(1),
            "{error:?}"
        );
    }

    #[test]
    fn readings_of_several_threads_never_go_back() {
        let last = std::sync::Mutex::new(Instant::now());
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        let mut last = last.lock().unwrap();
                        let now = Instant::now();
                        assert!(now >= *last);
                        *last = now;
                    }
                });
            }
        });
    }

    #[test]
    fn instants_have_a_time_of_day() {
        let before = SystemTime::now();
        let anchor = Instant::clock().wall_anchor().unwrap();
        let now = Instant::now();
        let (shown, error) = (anchor.time_of(now), anchor.error_at(now));
        let after = SystemTime::now();
        assert!(
            before <= shown + error && shown <= after + error,
            "{shown:?}"
        );
    }
}
