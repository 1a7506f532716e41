//! Spans of time, in whole nanoseconds.

use core::fmt;
use core::ops::{Add, AddAssign, Neg, Sub, SubAssign};
use core::str::FromStr;

/// A signed span of time in nanoseconds.
///
/// Its range is about 292 years either way. Arithmetic saturates at the ends of the range: a clock that has gone
/// astray must not also bring the program down.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration {
    nanos: i64,
}

impl Duration {
    /// No time at all.
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
        Self {
            nanos: micros.saturating_mul(1_000),
        }
    }

    /// A span of whole milliseconds; saturates.
    pub const fn from_millis(millis: i64) -> Self {
        Self {
            nanos: millis.saturating_mul(1_000_000),
        }
    }

    /// A span of whole seconds; saturates.
    pub const fn from_secs(secs: i64) -> Self {
        Self {
            nanos: secs.saturating_mul(1_000_000_000),
        }
    }

    /// The span in nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.nanos
    }

    /// The span in seconds, for printing and statistics: beyond 104 days single nanoseconds are lost.
    pub fn as_secs_f64(self) -> f64 {
        self.nanos as f64 / 1e9
    }

    /// The length of the span without its sign; saturates.
    pub const fn abs(self) -> Self {
        Self {
            nanos: self.nanos.saturating_abs(),
        }
    }

    /// Rounds a number of nanoseconds to the nearest span; saturates, and `None` for NaN.
    ///
    /// For the results of statistics, which are fractions; a counter never passes through here.
    pub fn from_nanos_f64(nanos: f64) -> Option<Self> {
        // `as` saturates, which is what the type promises.
        (!nanos.is_nan()).then(|| Self {
            nanos: libm::round(nanos) as i64,
        })
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ns", self.nanos)
    }
}

/// Prints with the unit that reads best: `17 ns`, `-4.200 us`, `12.345 ms`, `3.500 s`.
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
        // Whole digits are cut, not rounded, so that 999_999 ns never prints as 1000.000 us.
        write!(
            f,
            "{sign}{}.{:03} {name}",
            magnitude / unit,
            magnitude % unit / (unit / 1_000)
        )
    }
}

/// Why a text is not a [`Duration`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseDurationError {
    /// It does not begin with a number, such as `10` or `2.5`.
    NoNumber,
    /// The unit is missing or is none of `ns`, `us`, `ms`, `s`, `min` and `h`.
    NoUnit,
    /// It is finer than a nanosecond.
    TooFine,
    /// It is longer than 292 years.
    TooLong,
}

impl fmt::Display for ParseDurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoNumber => "a duration is a number and a unit, such as 10ms",
            Self::NoUnit => "a duration needs a unit: ns, us, ms, s, min or h",
            Self::TooFine => "a duration is a whole number of nanoseconds",
            Self::TooLong => "a duration is at most 292 years",
        })
    }
}

impl core::error::Error for ParseDurationError {}

/// Reads a decimal number and a unit: `10ms`, `2.5 s`, `-3us`. Only `0` needs no unit. Exact: no floating-point number
/// is involved.
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
            _ => return Err(ParseDurationError::NoUnit),
        };
        // Digits are all that is left, so only the length can be wrong.
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
        Self {
            nanos: self.nanos.saturating_add(other.nanos),
        }
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self {
            nanos: self.nanos.saturating_sub(other.nanos),
        }
    }
}

impl Neg for Duration {
    type Output = Self;
    fn neg(self) -> Self {
        Self {
            nanos: self.nanos.saturating_neg(),
        }
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
    fn displays_the_unit_that_reads_best() {
        let shown = |nanos| Duration::from_nanos(nanos).to_string();
        assert_eq!(shown(0), "0 ns");
        assert_eq!(shown(-999), "-999 ns");
        assert_eq!(shown(4_200), "4.200 us");
        assert_eq!(shown(-999_999), "-999.999 us");
        assert_eq!(shown(12_345_678), "12.345 ms");
        assert_eq!(shown(i64::MIN), "-9223372036.854 s");
    }

    #[test]
    fn a_fraction_of_a_nanosecond_rounds_and_nan_is_refused() {
        assert_eq!(
            Duration::from_nanos_f64(-1.6),
            Some(Duration::from_nanos(-2))
        );
        assert_eq!(Duration::from_nanos_f64(f64::INFINITY), Some(Duration::MAX));
        assert_eq!(Duration::from_nanos_f64(f64::NAN), None);
    }

    #[test]
    fn a_number_with_a_unit_is_read_exactly() {
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
    fn what_is_no_duration_is_refused_with_the_reason() {
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
        fn what_is_displayed_in_whole_is_read_again(nanos: i64) {
            let exact = std::format!("{nanos}ns");
            prop_assert_eq!(exact.parse::<Duration>(), Ok(Duration::from_nanos(nanos)));
            // The other units are cut to three digits.
            let shown = Duration::from_nanos(nanos).to_string().parse::<Duration>().unwrap();
            prop_assert!((shown.as_nanos().abs_diff(nanos)) < nanos.unsigned_abs() / 1_000 + 1);
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<Duration>();
        }
    }
}
