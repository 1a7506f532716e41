//! Maps between clocks.

use core::fmt;
use core::marker::PhantomData;

use crate::affine::Affine;
use crate::fixed::{self, HALF};
use crate::{Domain, ModelError, TickRate, Ticks, Timestamp};

/// The source of a [`ClockModel`]: raw ticks, or the timestamps of a [`Domain`].
pub trait ModelSource: sealed::Sealed + Copy + fmt::Debug + Eq + 'static {
    /// The type of readings: [`Ticks`] for the [`Counter`], a [`Timestamp`] for a domain.
    type ModelInput: Instant;
    /// Names the source in messages.
    const NAME: &'static str;
}

/// The source of raw [`Ticks`]: the counter that the process reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Counter;

impl ModelSource for Counter {
    type ModelInput = Ticks;
    const NAME: &'static str = "counter";
}

impl<D: Domain> ModelSource for D {
    type ModelInput = Timestamp<D>;
    const NAME: &'static str = <D as Domain>::NAME;
}

/// An input of a [`ClockModel`]: [`Ticks`] or a [`Timestamp`].
pub trait Instant: sealed::InstantMath + Copy + Ord + fmt::Debug {}

impl Instant for Ticks {}
impl<D: Domain> Instant for Timestamp<D> {}

mod sealed {
    use super::{Affine, Counter, Domain, TickRate, Ticks, Timestamp, fixed};

    pub trait Sealed {}
    impl Sealed for Counter {}
    impl<D: Domain> Sealed for D {}

    /// Arithmetic on ticks and timestamps.
    pub trait InstantMath: Sized {
        #[expect(
            private_interfaces,
            reason = "the module seals the trait, which cannot be named outside"
        )]
        fn image(self, map: Affine) -> i64;
        /// `self * rate + constant`, not rounded to whole nanoseconds.
        fn exact(self, rate: TickRate, constant: i128) -> Option<i128>;
        /// The nearest representable point, and true if it is exact.
        fn from_wide(wide: i128) -> (Self, bool);
        fn to_bits(self) -> u64;
        fn from_bits(bits: u64) -> Self;
    }

    #[expect(private_interfaces, reason = "as above")]
    impl InstantMath for Ticks {
        #[inline(always)]
        fn image(self, map: Affine) -> i64 {
            map.eval_unsigned(self.0)
        }
        fn exact(self, rate: TickRate, constant: i128) -> Option<i128> {
            fixed::exact(self.0, false, rate.fixed(), constant)
        }
        fn from_wide(wide: i128) -> (Self, bool) {
            let near = wide.clamp(0, u64::MAX.into());
            (Self(near as u64), near == wide)
        }
        fn to_bits(self) -> u64 {
            self.0
        }
        fn from_bits(bits: u64) -> Self {
            Self(bits)
        }
    }

    #[expect(private_interfaces, reason = "as above")]
    impl<D: Domain> InstantMath for Timestamp<D> {
        #[inline]
        fn image(self, map: Affine) -> i64 {
            map.eval_signed(self.as_nanos())
        }
        fn exact(self, rate: TickRate, constant: i128) -> Option<i128> {
            fixed::exact(
                self.as_nanos().unsigned_abs(),
                self.as_nanos() < 0,
                rate.fixed(),
                constant,
            )
        }
        fn from_wide(wide: i128) -> (Self, bool) {
            let near = wide.clamp(i64::MIN.into(), i64::MAX.into());
            (Self::from_nanos(near as i64), near == wide)
        }
        fn to_bits(self) -> u64 {
            self.as_nanos() as u64
        }
        fn from_bits(bits: u64) -> Self {
            Self::from_nanos(bits as i64)
        }
    }
}

/// An affine map from the clock `A` to the clock `B`, in fixed point.
///
/// `ClockModel<Counter, Local>` converts ticks to local time; `ClockModel<Local, Global>` is the result of a
/// synchronization; composed with [`then`](Self::then) they give one `ClockModel<Counter, Global>` that is as fast as
/// either: a multiplication, a shift and an addition.
///
/// ```
/// use downbeat_clock_core::{ClockModel, Counter, Duration, Global, Local, TickRate, Ticks, Timestamp};
///
/// // The counter runs at 2.6 GHz and showed 1,000 ticks when local time began.
/// let local = ClockModel::<Counter, Local>::through(
///     Ticks(1_000),
///     Timestamp::ORIGIN,
///     TickRate::from_hz(2_600_000_000)?,
/// )?;
/// // This process is 5 us ahead of global time, and its clock drifts: global time passes 1 ppm faster.
/// let learned = ClockModel::<Local, Global>::through(
///     Timestamp::from_nanos(5_000),
///     Timestamp::ORIGIN,
///     TickRate::NANOSECOND.with_drift(1e-6)?,
/// )?;
/// let global: ClockModel<Counter, Global> = local.then(&learned)?;
///
/// let second_later = Ticks(1_000 + 13_000 + 2_600_000_000);
/// assert_eq!(global.apply(second_later), Timestamp::from_nanos(1_000_001_000));
/// // One tick earlier shows the same nanosecond: the inverse is the first tick that shows the wanted time.
/// assert_eq!(global.invert(Timestamp::from_nanos(1_000_001_000)), Ticks(second_later.0 - 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Precision
/// `apply` rounds to the nearest nanosecond. Together with the rounding of the rate it is within 0.51 ns of the exact
/// value for a year of counting at 1 to 10 GHz on either side of the anchor.
///
/// # Range
/// The time at the source's zero must lie within 146 years of the origin of `B`; constructors reject other models.
/// Images outside the range of a [`Timestamp`], 292 years, saturate; so do inverses outside the range of the source.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClockModel<A: ModelSource, B: Domain> {
    map: Affine,
    anchor: A::ModelInput,
    domains: PhantomData<(A, B)>,
}

impl<D: Domain, B: Domain> ClockModel<D, B> {
    /// The identity: for a reference, or a cluster that is already synchronized.
    pub const IDENTITY: Self = Self {
        map: Affine::IDENTITY,
        anchor: Timestamp::ORIGIN,
        domains: PhantomData,
    };
}

impl<A: ModelSource, B: Domain> ClockModel<A, B> {
    /// The model that shows `image` at `anchor` and runs at `rate`.
    ///
    /// # Errors
    /// If the clocks are more than 146 years apart at the source's zero, or the anchor is 292 years from it.
    pub fn through(
        anchor: A::ModelInput,
        image: Timestamp<B>,
        rate: TickRate,
    ) -> Result<Self, ModelError> {
        Self::through_exact(anchor, i128::from(image.as_nanos()) << 64, rate)
    }

    /// The same as [`through`](Self::through), with the image in units of 2^-64 ns.
    pub(crate) fn through_exact(
        anchor: A::ModelInput,
        image: i128,
        rate: TickRate,
    ) -> Result<Self, ModelError> {
        use sealed::InstantMath as _;
        anchor
            .exact(rate, 0)
            .and_then(|elapsed| image.checked_sub(elapsed)?.checked_add(HALF))
            .and_then(|constant| Affine::new(rate, constant))
            .map(|map| Self {
                map,
                anchor,
                domains: PhantomData,
            })
            .ok_or(ModelError::TooFarApart)
    }

    /// The time on `B` when `A` shows `at`, to the nearest nanosecond; saturates.
    #[inline(always)]
    pub fn apply(&self, at: A::ModelInput) -> Timestamp<B> {
        use sealed::InstantMath as _;
        Timestamp::from_nanos(at.image(self.map))
    }

    /// The smallest reading of `A` at which [`apply`](Self::apply) shows `wanted` or more: the reading to wait for.
    ///
    /// Saturates: a time before the source's first reading gives the first, one after its last reading gives the last.
    pub fn invert(&self, wanted: Timestamp<B>) -> A::ModelInput {
        use sealed::InstantMath as _;
        A::ModelInput::from_wide(self.preimage(wanted)).0
    }

    /// Returns the image before it is rounded, in units of 2^-64 ns; `None` beyond the range.
    pub(crate) fn exact_image(&self, at: A::ModelInput) -> Option<i128> {
        use sealed::InstantMath as _;
        at.exact(self.map.rate, self.map.constant - HALF)
    }

    fn preimage(&self, wanted: Timestamp<B>) -> i128 {
        fixed::preimage(wanted.as_nanos(), self.map.rate.fixed(), self.map.constant)
    }

    /// This model followed by `next`: one map from `A` to `C`.
    ///
    /// Composed from the unrounded intermediate value, so it is within 1 ns of composing the exact maps.
    ///
    /// # Errors
    /// If the result is out of range.
    pub fn then<C: Domain>(&self, next: &ClockModel<B, C>) -> Result<ClockModel<A, C>, ModelError> {
        use sealed::InstantMath as _;
        let rate = self.map.rate.times(next.map.rate)?;
        // The rounding of the rate has no effect at the anchor and little near it: keep the later of the two anchors.
        let anchor = match A::ModelInput::from_wide(self.preimage(next.anchor)) {
            (learned, true) => learned.max(self.anchor),
            (_, false) => self.anchor,
        };
        anchor
            .exact(self.map.rate, self.map.constant - HALF)
            .and_then(|between| fixed::scale(between, next.map.rate.fixed()))
            .and_then(|scaled| scaled.checked_add(next.map.constant - HALF))
            .ok_or(ModelError::TooFarApart)
            .and_then(|image| ClockModel::through_exact(anchor, image, rate))
    }

    /// The same map to a clock of another name: declares that `B` and `C` are the same clock.
    pub fn renamed<C: Domain>(&self) -> ClockModel<A, C> {
        ClockModel {
            map: self.map,
            anchor: self.anchor,
            domains: PhantomData,
        }
    }

    /// The reading at which the model was learned; its age is counted from there.
    pub fn anchor(&self) -> A::ModelInput {
        self.anchor
    }

    /// Nanoseconds of `B` per unit of `A`.
    pub fn rate(&self) -> TickRate {
        self.map.rate
    }

    #[inline(always)]
    pub(crate) fn parts(&self) -> (Affine, u64) {
        use sealed::InstantMath as _;
        (self.map, self.anchor.to_bits())
    }

    #[inline(always)]
    pub(crate) fn from_parts(map: Affine, anchor: u64) -> Self {
        use sealed::InstantMath as _;
        Self {
            map,
            anchor: A::ModelInput::from_bits(anchor),
            domains: PhantomData,
        }
    }
}

#[cfg(target_has_atomic = "64")]
impl<B: Domain> ClockModel<Counter, B> {
    /// Returns the first tick whose image is at least this time; `None` beyond the range of ticks.
    pub(crate) fn tick_of(&self, wanted: Timestamp<B>) -> Option<Ticks> {
        use sealed::InstantMath as _;
        let (reading, is_exact) = Ticks::from_wide(self.preimage(wanted));
        is_exact.then_some(reading)
    }
}

impl<A: ModelSource, B: Domain> fmt::Debug for ClockModel<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} -> {}: {:?} at {:?}, {} ns per unit",
            A::NAME,
            B::NAME,
            self.apply(self.anchor),
            self.anchor,
            self.map.rate.nanos_per_tick()
        )
    }
}
