//! Points in time in whole nanoseconds, with one type per clock.

use core::fmt;
use core::marker::PhantomData;
use core::ops::{Add, Sub};

use crate::Duration;

/// A clock domain: the scale on which a [`Timestamp`] counts.
///
/// A domain is an empty type. Programs with further clocks declare their own domains:
///
/// ```
/// use downbeat_clock_core::{Domain, Timestamp};
///
/// #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
/// struct Camera;
///
/// impl Domain for Camera {
///     const NAME: &'static str = "camera";
/// }
///
/// let frame = Timestamp::<Camera>::from_nanos(40_000_000);
/// assert_eq!(format!("{frame:?}"), "camera+40000000ns");
/// ```
pub trait Domain: Copy + Ord + core::hash::Hash + fmt::Debug + Send + Sync + 'static {
    /// Name of the domain in messages; encoded models of two domains with the same name cannot be told apart.
    const NAME: &'static str;
}

macro_rules! domain {
    ($(#[$doc:meta])* $name:ident, $label:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name;

        impl Domain for $name {
            const NAME: &'static str = $label;
        }
    };
}

domain!(
    /// The time of one process: its own counter, scaled to nanoseconds.
    Local,
    "local"
);
domain!(
    /// The time shared by the processes of one node.
    Node,
    "node"
);
domain!(
    /// The time shared by all processes, the result of a synchronization.
    Global,
    "global"
);

/// A point in time of the domain `D`, in nanoseconds since the origin of that domain.
///
/// Timestamps of one domain can be subtracted and compared; a [`Duration`] can be added or subtracted. Two points in time
/// cannot be added:
///
/// ```compile_fail,E0308
/// use downbeat_clock_core::{Global, Timestamp};
/// let t = Timestamp::<Global>::from_nanos(1);
/// let nonsense = t + t;
/// ```
///
/// and domains cannot be mixed, neither in a difference nor in a comparison:
///
/// ```compile_fail,E0277
/// use downbeat_clock_core::{Global, Local, Timestamp};
/// let here = Timestamp::<Local>::from_nanos(1);
/// let there = Timestamp::<Global>::from_nanos(2);
/// let nonsense = there - here;
/// ```
///
/// ```compile_fail,E0308
/// use downbeat_clock_core::{Global, Local, Timestamp};
/// let here = Timestamp::<Local>::from_nanos(1);
/// let there = Timestamp::<Global>::from_nanos(2);
/// let nonsense = here < there;
/// ```
///
/// [`offset_from`](Self::offset_from) compares two clocks at one instant explicitly; a [`ClockModel`](crate::ClockModel)
/// converts a timestamp from one domain to another.
///
/// Arithmetic saturates, like that of [`Duration`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp<D: Domain> {
    nanos: i64,
    domain: PhantomData<D>,
}

impl<D: Domain> Timestamp<D> {
    /// The origin of the domain.
    pub const ORIGIN: Self = Self::from_nanos(0);

    /// The point `nanos` nanoseconds after the origin of the domain.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self {
            nanos,
            domain: PhantomData,
        }
    }

    /// Nanoseconds since the origin of the domain.
    pub const fn as_nanos(self) -> i64 {
        self.nanos
    }

    /// This clock minus the other, both read at the same instant; saturates.
    pub const fn offset_from<E: Domain>(self, other: Timestamp<E>) -> Duration {
        Duration::from_nanos(self.nanos.saturating_sub(other.nanos))
    }

    /// The middle of two points, rounded towards the earlier.
    pub const fn midpoint(self, other: Self) -> Self {
        // Common bits plus half of the differing bits: cannot overflow, and rounds down.
        Self::from_nanos((self.nanos & other.nanos) + ((self.nanos ^ other.nanos) >> 1))
    }
}

impl<D: Domain> fmt::Debug for Timestamp<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:+}ns", D::NAME, self.nanos)
    }
}

/// Prints in seconds, to the nanosecond: `1.500000000 s`.
impl<D: Domain> fmt::Display for Timestamp<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SECOND: u64 = 1_000_000_000;
        let sign = if self.nanos < 0 { "-" } else { "" };
        let magnitude = self.nanos.unsigned_abs();
        write!(
            f,
            "{sign}{}.{:09} s",
            magnitude / SECOND,
            magnitude % SECOND
        )
    }
}

impl<D: Domain> Sub for Timestamp<D> {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        self.offset_from(earlier)
    }
}

impl<D: Domain> Add<Duration> for Timestamp<D> {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self::from_nanos(self.nanos.saturating_add(span.as_nanos()))
    }
}

impl<D: Domain> Sub<Duration> for Timestamp<D> {
    type Output = Self;
    fn sub(self, span: Duration) -> Self {
        Self::from_nanos(self.nanos.saturating_sub(span.as_nanos()))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        let end = Timestamp::<Local>::from_nanos(i64::MAX);
        assert_eq!(end + Duration::from_nanos(1), end);
        assert_eq!(
            Timestamp::<Local>::from_nanos(i64::MIN) - end,
            Duration::MIN
        );
    }

    #[test]
    fn seconds_are_printed_with_all_digits() {
        let shown = |nanos| Timestamp::<Global>::from_nanos(nanos).to_string();
        assert_eq!(shown(1_500_000_000), "1.500000000 s");
        assert_eq!(shown(-1), "-0.000000001 s");
        assert_eq!(shown(i64::MIN), "-9223372036.854775808 s");
    }

    proptest! {
        #[test]
        fn midpoint_is_the_floor_of_the_mean(a: i64, b: i64) {
            let middle = Timestamp::<Node>::from_nanos(a).midpoint(Timestamp::from_nanos(b));
            prop_assert_eq!(i128::from(middle.as_nanos()), (i128::from(a) + i128::from(b)).div_euclid(2));
        }
    }
}
