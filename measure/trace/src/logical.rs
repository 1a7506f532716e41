//! The one-event rule of the controlled logical clock (Rabenseifner; Becker et al. 2009, equation 4).
//!
//! A logical clock that was moved forward, because a message would have arrived before it was sent,
//! runs a little slower than its measured times until these have caught up.

use downbeat_clock_core::{Domain, Duration, Timestamp};

/// Control variable `c`: speed of a clock that was moved forward, as a share of its measured speed.
///
/// Ranges from 0, where the clock almost stands still until its measured times have caught up, to
/// 1, where they never catch up. A fixed-point fraction, so that all machines correct a trace in
/// the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ControlVariable {
    /// Share in units of 2^-63.
    share: u64,
}

impl ControlVariable {
    /// Full speed: intervals keep their lengths.
    pub const ONE: Self = Self { share: 1 << 63 };

    /// Returns the nearest control variable; `None` if the share is not from 0 to 1.
    pub fn new(share: f64) -> Option<Self> {
        // Exact, as a power of two only changes the exponent.
        (0.0..=1.0).contains(&share).then_some(Self {
            share: (share * Self::ONE.share as f64) as u64,
        })
    }

    /// Smallest derived control variable where clocks were compared at least twice: the
    /// rates of clocks change by 10 ppm at most between.
    pub const LEAST_COMPARED: Self = Self {
        share: Self::ONE.share - Self::ONE.share / 100_000,
    };

    /// Smallest derived control variable of other clocks, whose rates differ by 0.1 % at
    /// most.
    pub const LEAST: Self = Self {
        share: Self::ONE.share - Self::ONE.share / 1_000,
    };

    /// Returns the control variable for clocks whose errors grow to `largest` and fall to
    /// 0 again in the time `distance`: clocks that were moved forward fall back as fast
    /// as such errors do. Returns `least` if that is faster than it allows.
    #[must_use]
    pub fn for_errors(largest: Duration, distance: Duration, least: Self) -> Self {
        let [largest, distance] =
            [largest, distance].map(|time| time.as_nanos().max(0).unsigned_abs());
        let lost = (u128::from(largest) << 64) / u128::from(distance.max(1));
        let most = Self::ONE.share - least.share;
        Self {
            share: Self::ONE.share - lost.min(most.into()) as u64,
        }
    }

    /// Returns the share as a number, for printing.
    pub fn get(self) -> f64 {
        self.share as f64 / Self::ONE.share as f64
    }

    /// Returns the control variable with which measured times catch up twice as fast, and
    /// at least as fast as with about 0.999.
    #[must_use]
    pub const fn slower(self) -> Self {
        const LEAST_LOST: u64 = 1 << 53;
        let lost = (Self::ONE.share - self.share).saturating_mul(2);
        let lost = if lost < LEAST_LOST { LEAST_LOST } else { lost };
        Self {
            share: Self::ONE.share.saturating_sub(lost),
        }
    }

    /// Returns this share of a span, in units of 2^-63 ns.
    #[inline(always)]
    const fn scale(self, span: u64) -> u128 {
        span as u128 * self.share as u128
    }
}

/// Half a nanosecond, in units of 2^-63 ns.
const HALF: u64 = 1 << 62;

/// Parameters of a [`LogicalClock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClockRule {
    /// Speed of the clock after it was moved forward.
    pub control: ControlVariable,
    /// Minimum distance `d` between two events of one clock. Events that were measured closer
    /// together keep their distance, and events at the same time may stay there.
    pub spacing: Duration,
}

/// Logical clock, which is advanced from event to event of the locations that share it.
///
/// ```
/// use downbeat_clock_core::{Duration, Global, Timestamp};
/// use downbeat_trace::logical::{ClockRule, ControlVariable, LogicalClock};
///
/// let at = Timestamp::<Global>::from_nanos;
/// let control = ControlVariable::new(0.5).expect("from 0 to 1");
/// let mut clock = LogicalClock::new(ClockRule { control, spacing: Duration::from_nanos(1) }, at(1_000));
/// assert_eq!(clock.advance(at(1_000)), at(1_000));
///
/// // A message was received at 1,100 that cannot have arrived before 1,400.
/// assert_eq!(clock.advance(at(1_100)), at(1_100));
/// assert_eq!(clock.receive(at(1_400)), Duration::from_nanos(300));
/// // Half speed, until the measured times have caught up.
/// assert_eq!(clock.advance(at(1_300)), at(1_500));
/// assert_eq!(clock.advance(at(2_000)), at(2_000));
/// ```
///
/// # Laws
/// A corrected time is never before the measured one. Corrected times never decrease, and
/// increase where the measured ones do, if the spacing is at least 1 ns. A smaller
/// control variable never makes a corrected time later. Only [`receive`](Self::receive)
/// moves a corrected time further away from the measured one, and
/// [`advance_elsewhere`](Self::advance_elsewhere) by less than the spacing. Times are
/// rounded to the nearest nanosecond, and the rest is kept: a clock that runs slower by a
/// millionth loses a nanosecond in a millisecond, however many events divide it.
#[derive(Clone, Copy, Debug)]
pub struct LogicalClock<D: Domain> {
    rule: ClockRule,
    spacing: u64,
    measured: Timestamp<D>,
    corrected: Timestamp<D>,
    /// Exact corrected time, plus half a nanosecond, less the rounded one; in units of
    /// 2^-63 ns.
    rest: u64,
    /// Time to which backward amortization can move events that are at the start of the last jumps.
    lifted: [Timestamp<D>; 2],
}

impl<D: Domain> LogicalClock<D> {
    /// Creates the clock whose first event was measured at `start`.
    pub const fn new(rule: ClockRule, start: Timestamp<D>) -> Self {
        let spacing = rule.spacing.as_nanos();
        Self {
            rule,
            spacing: if spacing > 0 { spacing as u64 } else { 0 },
            measured: start,
            corrected: start,
            rest: HALF,
            lifted: [start; 2],
        }
    }

    /// Advances to the next event of the same location, measured at `time`. Returns its time if it
    /// depends on no other location. A time before that of the last event counts as equal to it.
    #[inline(always)]
    pub fn advance(&mut self, time: Timestamp<D>) -> Timestamp<D> {
        let passed = span(self.measured, time);
        let least = u128::from(self.spacing.min(passed)) << 63;
        self.step(self.rule.control.scale(passed).max(least), time)
    }

    /// Advances to the next event, measured at `time`, of another location with the same clock.
    /// `last` are the measured and the corrected time of the last event of that location, from
    /// which it keeps the minimum distance, also where the jump of a third location moves that one
    /// later. Between locations there is none, or equal times on many of them would move a clock
    /// away.
    pub fn advance_elsewhere(
        &mut self,
        time: Timestamp<D>,
        last: Option<[Timestamp<D>; 2]>,
    ) -> Timestamp<D> {
        let step = self.rule.control.scale(span(self.measured, time));
        self.step(step, time);
        if let Some([measured, corrected]) = last {
            let [from, to] = self.lifted;
            let is_lifted = (from..=to).contains(&corrected);
            let corrected = if is_lifted { to } else { corrected };
            let spacing = self.spacing.min(span(measured, time));
            self.reach(later(corrected, spacing));
        }
        self.corrected
    }

    /// Advances by a step in units of 2^-63 ns.
    #[inline(always)]
    fn step(&mut self, step: u128, time: Timestamp<D>) -> Timestamp<D> {
        self.measured = self.measured.max(time);
        let step = step + u128::from(self.rest);
        self.rest = step as u64 & (u64::MAX >> 1);
        self.corrected = later(self.corrected, (step >> 63) as u64);
        self.reach(time);
        self.corrected
    }

    /// Moves the exact time to `time` if it is before that.
    #[inline(always)]
    fn reach(&mut self, time: Timestamp<D>) {
        if self.corrected < time {
            self.corrected = time;
            self.rest = HALF;
        } else if self.corrected == time {
            self.rest = self.rest.max(HALF);
        }
    }

    /// Moves the last event to `earliest` if it is before that, because it received something that
    /// cannot have arrived earlier. Returns the distance by which it was moved.
    #[inline(always)]
    pub fn receive(&mut self, earliest: Timestamp<D>) -> Duration {
        let jump = (earliest - self.corrected).max(Duration::ZERO);
        if jump > Duration::ZERO {
            let [from, to] = self.lifted;
            let is_next = to == self.corrected;
            self.lifted = [if is_next { from } else { self.corrected }, earliest];
        }
        // The exact time can be half a nanosecond before an equal one.
        self.reach(earliest);
        jump
    }

    /// Returns the corrected time of the last event.
    pub const fn now(&self) -> Timestamp<D> {
        self.corrected
    }

    /// Returns the distance by which the last event was moved.
    pub fn displacement(&self) -> Duration {
        self.corrected - self.measured
    }
}

/// Returns the time that passed, 0 if `to` is before `from`.
#[inline(always)]
fn span<D: Domain>(from: Timestamp<D>, to: Timestamp<D>) -> u64 {
    if to < from {
        0
    } else {
        to.as_nanos().wrapping_sub(from.as_nanos()) as u64
    }
}

/// Returns the time after a step. The largest one is 2^64 - 1, which does not fit in a signed number.
#[inline(always)]
fn later<D: Domain>(time: Timestamp<D>, step: u64) -> Timestamp<D> {
    Timestamp::from_nanos(time.as_nanos().saturating_add_unsigned(step))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use downbeat_clock_core::Global;
    use num_bigint::BigInt;
    use num_rational::BigRational;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn at(nanos: i64) -> Timestamp<Global> {
        Timestamp::from_nanos(nanos)
    }

    #[test]
    fn a_control_variable_is_a_share_from_0_to_1() {
        assert_eq!(ControlVariable::new(1.0), Some(ControlVariable::ONE));
        assert_eq!(
            ControlVariable::new(0.25).map(ControlVariable::get),
            Some(0.25)
        );
        for wrong in [-0.1, 1.000_001, f64::NAN, f64::INFINITY] {
            assert_eq!(ControlVariable::new(wrong), None);
        }
        let near = ControlVariable::new(1.0 - 1e-7).map(|near| near.slower().get());
        assert_eq!(near, Some(1.0 - 1.0 / 1024.0));
        let mut control = ControlVariable::ONE;
        for expected in [1.0 - 1.0 / 1024.0, 1.0 - 2.0 / 1024.0, 1.0 - 4.0 / 1024.0] {
            control = control.slower();
            assert_eq!(control.get(), expected);
        }
        assert_eq!(
            ControlVariable::new(0.4).map(|control| control.slower().get()),
            Some(0.0)
        );
        assert_eq!(
            ControlVariable::new(0.0).map(ControlVariable::slower),
            ControlVariable::new(0.0)
        );
    }

    #[test]
    fn clocks_fall_back_as_fast_as_their_errors() {
        let control = |largest, distance| {
            let [largest, distance] = [largest, distance].map(Duration::from_nanos);
            ControlVariable::for_errors(largest, distance, ControlVariable::LEAST_COMPARED)
        };
        assert_eq!(control(0, 0), ControlVariable::ONE);
        assert_eq!(control(100_000, 1_000_000_000_000).get(), 1.0 - 2e-7);
        for far in [control(100, 100), control(i64::MAX, 0), control(100, -1)] {
            assert_eq!(far.get(), 0.99999);
        }
    }

    /// With each step rounded down, a clock would lose a nanosecond at each event.
    #[test]
    fn many_events_lose_no_more_than_few() {
        let control = ControlVariable::new(1.0 - 1e-6).unwrap();
        let spacing = Duration::from_nanos(1);
        let mut clock = LogicalClock::new(ClockRule { control, spacing }, at(0));
        clock.receive(at(1_000));
        let times = (1..=100_000).map(|event| 100 * event);
        let changed = times.filter(|time| {
            let before = clock.now();
            clock.advance(at(*time)) - before != Duration::from_nanos(100)
        });
        assert_eq!(changed.count(), 10);
        assert_eq!(clock.displacement(), Duration::from_nanos(990));
    }

    #[test]
    fn extreme_times_do_not_wrap() {
        let rule = ClockRule {
            control: ControlVariable::ONE,
            spacing: Duration::MAX,
        };
        let mut clock = LogicalClock::new(rule, at(i64::MIN));
        assert_eq!(clock.receive(at(i64::MAX)), Duration::MAX);
        assert_eq!(clock.advance(at(i64::MAX)), at(i64::MAX));
        assert_eq!(clock.displacement(), Duration::ZERO);
        // A time that steps back moves nothing.
        assert_eq!(clock.advance(at(0)), at(i64::MAX));
    }

    /// A receive at the rounded time, which is later than the exact one.
    #[test]
    fn a_slower_clock_is_never_ahead() {
        let mut clocks = [0.99, 0.98].map(|share| {
            let control = ControlVariable::new(share).unwrap();
            let spacing = Duration::from_nanos(1);
            let mut clock = LogicalClock::new(ClockRule { control, spacing }, at(0));
            clock.receive(at(1_000));
            clock.advance(at(50));
            clock.receive(at(1_050));
            clock
        });
        let times = clocks.each_mut().map(|clock| clock.advance(at(60)));
        assert_eq!(times, [at(1_060); 2]);
    }

    /// Steps `(passed, message)`: the time that passed on the measured clock, and the earliest
    /// arrival time of a received message, if any.
    fn steps() -> impl Strategy<Value = Vec<(i64, Option<i64>)>> {
        let passed = prop_oneof![Just(0), 1_i64..5, 0_i64..10_000];
        prop::collection::vec((passed, prop::option::of(0_i64..100_000)), 1..40)
    }

    proptest! {
        /// Compares the rule with the equations of the paper in exact fractions.
        #[test]
        fn the_rule_follows_the_equations(steps in steps(), share in 0_u32..=100, spacing in 1_i64..20) {
            let control = ControlVariable::new(f64::from(share) / 100.0).unwrap();
            let rule = ClockRule { control, spacing: Duration::from_nanos(spacing) };
            let mut clock = LogicalClock::new(rule, at(0));
            let share = BigRational::new(BigInt::from(control.share), BigInt::from(1_u64 << 63));
            let integer = |number: i64| BigRational::from_integer(number.into());
            let half = BigRational::new(1.into(), 2.into());
            let rounded = |time: &BigRational| (time + &half).floor().to_integer();
            let (mut time, mut last) = (0, integer(0));
            for (passed, message) in steps {
                time += passed;
                let step = (&share * integer(passed)).max(integer(spacing.min(passed)));
                last = (last + step).max(integer(time));
                let base = rounded(&last);
                prop_assert_eq!(BigInt::from(clock.advance(at(time)).as_nanos()), base.clone());
                let jump = message.map(|earliest| clock.receive(at(earliest)));
                last = message.map_or(last.clone(), |earliest| last.clone().max(integer(earliest)));
                prop_assert_eq!(BigInt::from(clock.now().as_nanos()), rounded(&last));
                prop_assert_eq!(BigInt::from(jump.unwrap_or_default().as_nanos()), rounded(&last) - base);
                prop_assert_eq!(clock.displacement(), clock.now() - at(time));
            }
        }

        #[test]
        fn the_laws_hold(steps in steps(), share in 0_u32..=100, spacing in 1_i64..20) {
            let control = ControlVariable::new(f64::from(share) / 100.0).unwrap();
            let spacing = Duration::from_nanos(spacing);
            let mut clock = LogicalClock::new(ClockRule { control, spacing }, at(0));
            let mut slower = LogicalClock::new(ClockRule { control: control.slower(), spacing }, at(0));
            let (mut time, mut last) = (0, (at(0), Duration::ZERO));
            for (passed, message) in steps {
                time += passed;
                let next = clock.advance(at(time));
                prop_assert!(next >= at(time) && next >= last.0);
                prop_assert!(passed == 0 || next > last.0);
                prop_assert!(next - at(time) <= last.1);
                slower.advance(at(time));
                if let Some(earliest) = message {
                    clock.receive(at(earliest));
                    slower.receive(at(earliest));
                }
                prop_assert!(slower.now() <= clock.now());
                last = (clock.now(), clock.displacement());
            }
        }
    }
}
