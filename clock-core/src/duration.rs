//! Spans of time, in whole nanoseconds.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};
use core::str::FromStr;

/// A signed span of time in nanoseconds.
///
/// Its range is about -292 to 292 years. Arithmetic saturates at the ends of the range: a faulty clock must not abort
/// the program.
///
/// ```
/// use downbeat_clock_core::Duration;
///
/// let round_trip: Duration = core::time::Duration::from_micros(12).into();
/// assert_eq!((round_trip / 2).as_micros(), 6);
/// assert_eq!(round_trip / Duration::from_micros(8), 1.5);
/// let unsigned: core::time::Duration = round_trip.try_into()?;
/// assert_eq!(unsigned.as_nanos(), 12_000);
/// # Ok::<(), downbeat_clock_core::NegativeDuration>(())
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration {
    nanos: i64,
}

impl Duration {
    /// The span of length zero.
    pub const ZERO: Self = Self { nanos: 0 };
    /// The longest span, about 292 years.
    pub const MAX: Self = Self { nanos: i64::MAX };
    /// The longest negative span, about -292 years.
    pub const MIN: Self = Self { nanos: i64::MIN };

    /// A span of whole nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self { nanos }
    }

    /// A span of whole microseconds; saturates.
    pub const fn from_micros(micros: i64) -> Self {
        Self::from_nanos(micros.saturating_mul(1_000))
    }

    /// A span of whole milliseconds; saturates.
    pub const fn from_millis(millis: i64) -> Self {
        Self::from_nanos(millis.saturating_mul(1_000_000))
    }

    /// A span of whole seconds; saturates.
    pub const fn from_secs(secs: i64) -> Self {
        Self::from_nanos(secs.saturating_mul(1_000_000_000))
    }

    /// The span in nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.nanos
    }

    /// The whole microseconds of the span, rounded towards zero.
    pub const fn as_micros(self) -> i64 {
        self.nanos / 1_000
    }

    /// The whole milliseconds of the span, rounded towards zero.
    pub const fn as_millis(self) -> i64 {
        self.nanos / 1_000_000
    }

    /// The whole seconds of the span, rounded towards zero.
    pub const fn as_secs(self) -> i64 {
        self.nanos / 1_000_000_000
    }

    /// Rounds a number of seconds to the nearest span; saturates, and `None` for NaN.
    pub fn from_secs_f64(secs: f64) -> Option<Self> {
        Self::from_nanos_f64(secs * 1e9)
    }

    /// The span in seconds, for printing and statistics; exact to the nanosecond up to 104 days.
    pub fn as_secs_f64(self) -> f64 {
        self.nanos as f64 / 1e9
    }

    /// The length of the span without its sign; saturates.
    pub const fn abs(self) -> Self {
        Self::from_nanos(self.nanos.saturating_abs())
    }

    /// Rounds a number of nanoseconds to the nearest span; saturates, and `None` for NaN.
    ///
    /// Meant for results of statistics, which are fractions, not for counters.
    pub fn from_nanos_f64(nanos: f64) -> Option<Self> {
        // The cast saturates, as the type documents.
        (!nanos.is_nan()).then(|| Self::from_nanos(libm::round(nanos) as i64))
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ns", self.nanos)
    }
}

/// Prints in the largest unit of which the span has at least one: `17 ns`, `-4.200 us`, `12.345 ms`, `3.500 s`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.nanos < 0 { "-" } else { "" };
        let magnitude = self.nanos.unsigned_abs();
        let (unit, name) = match magnitude {
            0..1_000 => return write!(f, "{sign}{magnitude} ns"),
            1_000..1_000_000 => (1_000, "us"),
            1_000_000..1_000_000_000 => (1_000_000, "ms"),
            _ => (1_000_000_000, "s"),
        };
        // Digits are truncated, not rounded, so that 999_999 ns never prints as 1000.000 us.
        write!(
            f,
            "{sign}{}.{:03} {name}",
            magnitude / unit,
            magnitude % unit / (unit / 1_000)
        )
    }
}

/// Reason why a text is not a [`Duration`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseDurationError {
    /// The text does not begin with a number, such as `10` or `2.5`.
    NoNumber,
    /// The unit is missing or is none of `ns`, `us`, `ms`, `s`, `min` and `h`.
    NoUnit,
    /// The duration is not a whole number of nanoseconds.
    TooFine,
    /// The duration is longer than 292 years.
    TooLong,
}

impl fmt::Display for ParseDurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoNumber => "a duration is a decimal number and a unit, such as 10ms or 2.5s",
            Self::NoUnit => "a duration needs a unit: ns, us, ms, s, min or h",
            Self::TooFine => "a duration is a whole number of nanoseconds",
            Self::TooLong => "a duration is at most 292 years",
        })
    }
}

impl core::error::Error for ParseDurationError {}

/// Parses a decimal number and a unit: `10ms`, `2.5 s`, `-3us`. Only `0` needs no unit. Exact, without
/// floating-point arithmetic.
impl FromStr for Duration {
    type Err = ParseDurationError;

    fn from_str(text: &str) -> Result<Self, ParseDurationError> {
        let text = text.trim();
        let (negative, unsigned) = text
            .strip_prefix('-')
            .map_or((false, text), |rest| (true, rest));
        let end = unsigned
            .find(|c: char| !(c.is_ascii_digit() || c == '.'))
            .unwrap_or(unsigned.len());
        let (number, unit) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
            return Err(ParseDurationError::NoNumber);
        }
        let unit = match unit.trim_start() {
            "ns" => 1,
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "" if number == "0" => 1,
            // As in `1e3s`.
            unit if unit.contains(|c: char| c.is_ascii_digit()) => {
                return Err(ParseDurationError::NoNumber);
            }
            _ => return Err(ParseDurationError::NoUnit),
        };
        // Only digits are left, so parsing fails only on overflow.
        let whole: i128 = whole
            .parse::<u64>()
            .map_err(|_| ParseDurationError::TooLong)?
            .into();
        let fraction = fraction.trim_end_matches('0');
        let scale = u32::try_from(fraction.len())
            .ok()
            .and_then(|digits| 10_i128.checked_pow(digits));
        let part = if fraction.is_empty() {
            Some(0)
        } else {
            fraction.parse::<i128>().ok()
        };
        let (Some(scale), Some(part)) = (scale, part.and_then(|part| part.checked_mul(unit)))
        else {
            return Err(ParseDurationError::TooFine);
        };
        if part % scale != 0 {
            return Err(ParseDurationError::TooFine);
        }
        let nanos = whole * unit + part / scale;
        let nanos = i64::try_from(if negative { -nanos } else { nanos })
            .map_err(|_| ParseDurationError::TooLong)?;
        Ok(Self { nanos })
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::from_nanos(self.nanos.saturating_add(other.nanos))
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self::from_nanos(self.nanos.saturating_sub(other.nanos))
    }
}

impl Neg for Duration {
    type Output = Self;
    fn neg(self) -> Self {
        Self::from_nanos(self.nanos.saturating_neg())
    }
}

/// Saturates.
impl Mul<i64> for Duration {
    type Output = Self;
    fn mul(self, factor: i64) -> Self {
        Self::from_nanos(self.nanos.saturating_mul(factor))
    }
}

/// Rounds towards zero. A division by zero saturates, as all arithmetic of this type: the quotient has the sign of the span
/// and the greatest length, or is zero for zero.
impl Div<i64> for Duration {
    type Output = Self;
    fn div(self, divisor: i64) -> Self {
        let nanos = match divisor {
            0 => self.nanos.saturating_mul(i64::MAX),
            divisor => self.nanos.saturating_div(divisor),
        };
        Self { nanos }
    }
}

/// The ratio of two spans; that to a span of zero is infinite or not a number.
impl Div for Duration {
    type Output = f64;
    fn div(self, other: Self) -> f64 {
        self.nanos as f64 / other.nanos as f64
    }
}

/// Saturates at 292 years.
impl From<core::time::Duration> for Duration {
    fn from(span: core::time::Duration) -> Self {
        Self::from_nanos(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX))
    }
}

/// Error of converting a negative [`Duration`] to an unsigned one, [`core::time::Duration`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NegativeDuration(pub Duration);

impl fmt::Display for NegativeDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is negative", self.0)
    }
}

impl core::error::Error for NegativeDuration {}

impl TryFrom<Duration> for core::time::Duration {
    type Error = NegativeDuration;
    fn try_from(span: Duration) -> Result<Self, NegativeDuration> {
        let nanos = u64::try_from(span.nanos).map_err(|_| NegativeDuration(span))?;
        Ok(Self::from_nanos(nanos))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Duration {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl core::iter::Sum for Duration {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::{String, ToString};

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Duration::MAX + Duration::from_nanos(1), Duration::MAX);
        assert_eq!(Duration::MIN - Duration::from_nanos(1), Duration::MIN);
        assert_eq!(-Duration::MIN, Duration::MAX);
        assert_eq!(Duration::MIN.abs(), Duration::MAX);
        assert_eq!(Duration::from_secs(i64::MAX), Duration::MAX);
    }

    #[test]
    fn products_and_quotients_saturate() {
        let span = |nanos| Duration::from_nanos(nanos);
        assert_eq!(span(-7) / 2, span(-3));
        assert_eq!(Duration::MIN / -1, Duration::MAX);
        assert_eq!(Duration::MAX * 2, Duration::MAX);
        assert_eq!(
            [span(1) / 0, span(-1) / 0, span(0) / 0],
            [Duration::MAX, Duration::MIN + span(1), Duration::ZERO]
        );
        assert_eq!(span(3) / span(-2), -1.5);
        assert!((span(0) / span(0)).is_nan());
    }

    #[test]
    fn units_are_rounded_towards_zero() {
        let span = Duration::from_nanos(-1_999_999_999);
        assert_eq!(
            (span.as_micros(), span.as_millis(), span.as_secs()),
            (-1_999_999, -1_999, -1)
        );
        assert_eq!(
            Duration::from_secs_f64(-1.5e-9),
            Some(Duration::from_nanos(-2))
        );
        assert_eq!(Duration::from_secs_f64(f64::NAN), None);
    }

    #[test]
    fn spans_of_the_standard_library_are_converted() {
        use core::time::Duration as Unsigned;
        assert_eq!(Duration::from(Unsigned::MAX), Duration::MAX);
        assert_eq!(
            Duration::from(Unsigned::from_nanos(5)),
            Duration::from_nanos(5)
        );
        assert_eq!(
            Unsigned::try_from(Duration::MAX).map(|span| span.as_nanos()),
            Ok(i64::MAX as u128)
        );
        let negative = Duration::from_nanos(-4_200);
        let refused = Unsigned::try_from(negative).unwrap_err();
        assert_eq!(refused.to_string(), "-4.200 us is negative");
    }

    #[test]
    fn display_selects_the_unit_by_size() {
        let shown = |nanos| Duration::from_nanos(nanos).to_string();
        assert_eq!(shown(0), "0 ns");
        assert_eq!(shown(-999), "-999 ns");
        assert_eq!(shown(4_200), "4.200 us");
        assert_eq!(shown(-999_999), "-999.999 us");
        assert_eq!(shown(12_345_678), "12.345 ms");
        assert_eq!(shown(i64::MIN), "-9223372036.854 s");
    }

    #[test]
    fn fractions_of_a_nanosecond_are_rounded_and_nan_is_rejected() {
        assert_eq!(
            Duration::from_nanos_f64(-1.6),
            Some(Duration::from_nanos(-2))
        );
        assert_eq!(Duration::from_nanos_f64(f64::INFINITY), Some(Duration::MAX));
        assert_eq!(Duration::from_nanos_f64(f64::NAN), None);
    }

    #[test]
    fn a_number_with_a_unit_is_parsed_exactly() {
        let read = |text: &str| text.parse::<Duration>().map(Duration::as_nanos);
        assert_eq!(read("10ms"), Ok(10_000_000));
        assert_eq!(read(" 2.5 s "), Ok(2_500_000_000));
        assert_eq!(read("-3us"), Ok(-3_000));
        assert_eq!(read("0"), Ok(0));
        assert_eq!(read("1.50min"), Ok(90_000_000_000));
        assert_eq!(read("0.000000001s"), Ok(1));
        assert_eq!(read("2h"), Ok(7_200_000_000_000));
        assert_eq!(read("9223372036.854775807s"), Ok(i64::MAX));
        assert_eq!(read("-9223372036854775808ns"), Ok(i64::MIN));
    }

    #[test]
    fn invalid_durations_are_rejected_with_the_reason() {
        let read = |text: &str| text.parse::<Duration>().unwrap_err();
        for text in [
            "",
            "ms",
            "NaN",
            "inf",
            ".5s",
            "1.s",
            "1..2s",
            "1.2.3s",
            "--1s",
            "+1s",
            "one second",
            "1e300s",
        ] {
            assert_eq!(read(text), ParseDurationError::NoNumber, "{text}");
        }
        for text in ["8abc", "10", "1e3s", "5 m", "5S", "00", "-", "-0.0"] {
            assert!(
                matches!(
                    read(text),
                    ParseDurationError::NoUnit | ParseDurationError::NoNumber
                ),
                "{text}"
            );
        }
        for text in [
            "0.5ns",
            "1.0000000001s",
            "0.1234567890123456789012345678901234567890s",
        ] {
            assert_eq!(read(text), ParseDurationError::TooFine, "{text}");
        }
        for text in [
            "9223372036.854775808s",
            "99999999999999999999ns",
            "18446744073709551615h",
        ] {
            assert_eq!(read(text), ParseDurationError::TooLong, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_displayed_duration_can_be_parsed(nanos: i64) {
            let exact = std::format!("{nanos}ns");
            prop_assert_eq!(exact.parse::<Duration>(), Ok(Duration::from_nanos(nanos)));
            // The other units are truncated to three digits.
            let shown = Duration::from_nanos(nanos).to_string().parse::<Duration>().unwrap();
            prop_assert!((shown.as_nanos().abs_diff(nanos)) < nanos.unsigned_abs() / 1_000 + 1);
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<Duration>();
        }
    }
}
