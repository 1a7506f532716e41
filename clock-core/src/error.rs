//! The errors of rates, scales and models, and those of estimators and fits.

use core::fmt;

use crate::Duration;

/// Reason why a rate, a scale or a model of a clock cannot be made or decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelError {
    /// The rate is zero or negative: such a clock does not advance.
    RateNotPositive,
    /// The rate is not a number.
    RateNotANumber,
    /// The rate is outside 2^-64 ns to 4.29 s per tick.
    RateOutOfRange,
    /// At the source's zero the other clock would be more than 146 years from its origin.
    TooFarApart,
    /// The tick of a [`TickScale`](crate::region::TickScale) is zero or negative.
    TickNotPositive,
    /// 2^64 ticks of the clock are shorter than one tick of the program.
    TickTooLong,
    /// The bytes are not [`ENCODED_LEN`](crate::ClockModel::ENCODED_LEN) long, but this long.
    EncodedLength(usize),
    /// The bytes do not begin with the magic number of an encoded model.
    NotAModel,
    /// The bytes are a model of this version, which is not supported.
    EncodedVersion(u8),
    /// The bytes were damaged, or encode a model between other domains.
    EncodedChecksum,
    /// The encoded numbers are out of range.
    EncodedRange,
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RateNotPositive => "a clock rate must be positive",
            Self::RateNotANumber => "a clock rate must be a number",
            Self::RateOutOfRange => "a clock rate must lie between 2^-64 ns and 4.29 s per tick",
            Self::TooFarApart => "the clocks are more than 146 years apart",
            Self::TickNotPositive => "a tick must be longer than zero",
            Self::TickTooLong => "the tick is longer than the clock can count",
            Self::EncodedLength(found) => {
                return write!(f, "an encoded clock model does not have {found} bytes");
            }
            Self::NotAModel => "not an encoded clock model",
            Self::EncodedVersion(found) => {
                return write!(f, "clock models of version {found} are not supported");
            }
            Self::EncodedChecksum => {
                "the encoded clock model is damaged, or is between other clocks"
            }
            Self::EncodedRange => "the encoded clock model is out of range",
        })
    }
}

impl core::error::Error for ModelError {}

/// Limits that one exchange sets to the offset of two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetLimits {
    /// Time of the client at which the answer came.
    pub at: Duration,
    /// Least offset of the client that the exchange allows.
    pub low: Duration,
    /// Greatest offset that it allows.
    pub high: Duration,
}

/// Formats as `at 1.5 s it was 4 us to 6 us ahead`.
impl fmt::Display for OffsetLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, low, high } = self;
        write!(f, "at {at} it was {low} to {high} ahead")
    }
}

/// Reason why exchanges give no offset, or points have no line or spline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FitError {
    /// The answer of an exchange came before its message was sent: the client's clock was set back in between.
    SteppedBack {
        /// Lower limit of the step.
        by: Duration,
    },
    /// The buffer for exchanges is full.
    BufferFull,
    /// There were no exchanges.
    NoExchanges,
    /// No offset agrees with all exchanges: over the session one clock drifted, or was set, by more than the fastest
    /// messages took.
    Drifted {
        /// Amount by which the exchanges contradict each other.
        by: Duration,
    },
    /// One of two clocks stepped: they moved apart by more than round trips and drift explain.
    Stepped {
        /// Lower limit of the step.
        by: Duration,
        /// Two exchanges that contradict each other, the earlier one first, where two alone show it.
        between: Option<[OffsetLimits; 2]>,
    },
    /// The offsets are further from a line than their errors and drift explain: a clock stepped between them.
    OffLine {
        /// Standard deviation of the offsets from the line.
        deviation: Duration,
        /// Largest standard deviation that their errors explain.
        explained: Duration,
    },
    /// A coordinate of a point is infinite or not a number.
    NotFinite,
    /// The point is so far from the others, about 1e154, that squares overflow.
    TooFar,
    /// The weight of a point is not a positive number.
    InvalidWeight,
    /// There are no points for a line.
    NoPoints,
    /// All points have the same x, so that any slope would fit.
    OneX,
    /// There are no knots for a spline.
    NoKnots,
    /// The knot with this index, counted from 0, is not later than the one before on the corrected clock.
    AtNotIncreasing(usize),
    /// The knot with this index, counted from 0, is not later than the one before on the master's clock.
    ImageNotIncreasing(usize),
}

impl fmt::Display for FitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SteppedBack { by } => {
                return write!(
                    f,
                    "the clock stepped back by {by} or more during an exchange"
                );
            }
            Self::BufferFull => "the buffer for exchanges is full",
            Self::NoExchanges => "an offset needs at least one exchange",
            Self::Drifted { by } => {
                return write!(
                    f,
                    "the clocks drifted {by} more than the round trips allow for"
                );
            }
            Self::Stepped { by, between } => {
                write!(
                    f,
                    "a clock stepped, or drifts more than declared: the two moved apart by {by} more than round trips and drift explain"
                )?;
                return match between {
                    Some([before, after]) => write!(f, ": {before}, but {after}"),
                    None => Ok(()),
                };
            }
            Self::OffLine {
                deviation,
                explained,
            } => {
                return write!(
                    f,
                    "a clock stepped: the offsets are {deviation} off a line, of which round trips and drift explain {explained}"
                );
            }
            Self::NotFinite => "a point of a fit must have finite coordinates",
            Self::TooFar => "the point is too far from the others to be fitted",
            Self::InvalidWeight => "the weight of a point must be a positive number",
            Self::NoPoints => "there are no points to fit a line to",
            Self::OneX => "a line needs points at two different x",
            Self::NoKnots => "a spline needs at least one knot",
            Self::AtNotIncreasing(index) => {
                return write!(f, "knot {index} is not later than the one before");
            }
            Self::ImageNotIncreasing(index) => {
                return write!(
                    f,
                    "the image of knot {index} is not later than the one before"
                );
            }
        })
    }
}

impl core::error::Error for FitError {}
