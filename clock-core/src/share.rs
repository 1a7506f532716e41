//! Shares of a whole, as users write them.

use core::fmt;

/// Reason why a text is not a share: see [`parse_share`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseShareError {
    /// The text is not a number, alone or with one of the units.
    NoNumber,
    /// The share is not above 0 and below 1.
    OutOfRange,
}

impl fmt::Display for ParseShareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoNumber => "must be a percentage or a number, as 5%, 100ppm or 0.05",
            Self::OutOfRange => "must be above 0 % and below 100 %",
        })
    }
}

impl core::error::Error for ParseShareError {}

/// Parses a share above 0 and below 1, as a percentage, in parts per million or billion,
/// or as a number: `5%`, `100ppm`, `10ppb`, `0.05`.
///
/// # Errors
/// When the text is invalid.
///
/// ```
/// assert_eq!(downbeat_clock_core::parse_share("100ppm"), Ok(1e-4));
/// ```
pub fn parse_share(text: &str) -> Result<f64, ParseShareError> {
    let units = [("%", 1e2), ("ppm", 1e6), ("ppb", 1e9)];
    let with_unit = |(name, unit)| Some((text.strip_suffix(name)?.trim_end(), unit));
    let (number, unit) = units.into_iter().find_map(with_unit).unwrap_or((text, 1.0));
    let number: f64 = number.parse().map_err(|_| ParseShareError::NoNumber)?;
    let share = number / unit;
    if share > 0.0 && share < 1.0 {
        Ok(share)
    } else {
        Err(ParseShareError::OutOfRange)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_percentage_or_a_number_below_1() {
        assert_eq!(
            ["95%", "1 %", "0.05"].map(parse_share),
            [Ok(0.95), Ok(0.01), Ok(0.05)]
        );
        for text in [
            "", "%", "95", "0", "100%", "-5%", "NaN", "inf%", "8abc", "5%%",
        ] {
            assert!(parse_share(text).is_err(), "{text}");
        }
    }
}
