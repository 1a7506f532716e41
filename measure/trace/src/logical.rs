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

    /// Returns the share as a number, for printing.
    pub fn get(self) -> f64 {
        self.share as f64 / Self::ONE.share as f64
    }

    /// Returns the control variable with which measured times catch up twice as fast; after
    /// [`ONE`](Self::ONE), about 0.999.
    #[must_use]
    pub const fn slower(self) -> Self {
        let lost = Self::ONE.share - self.share;
        let lost = if lost == 0 { 1 << 53 } else { lost };
        Self {
            share: self.share.saturating_sub(lost),
        }
    }

    /// Returns this share of a span, rounded down.
    #[inline(always)]
    const fn scale(self, span: u64) -> u64 {
        ((span as u128 * self.share as u128) >> 63) as u64
    }
}

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
/// A corrected time is never before the measured one. Corrected times never decrease, and increase
/// where the measured ones do, if the spacing is at least 1 ns. A smaller control variable never
/// makes a corrected time later. Only [`receive`](Self::receive) moves a corrected time further
/// away from the measured one, and [`advance_elsewhere`](Self::advance_elsewhere) by less than the
/// spacing.
#[derive(Clone, Copy, Debug)]
pub struct LogicalClock<D: Domain> {
    rule: ClockRule,
    spacing: u64,
    measured: Timestamp<D>,
    corrected: Timestamp<D>,
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
            lifted: [start; 2],
        }
    }

    /// Advances to the next event of the same location, measured at `time`. Returns its time if it
    /// depends on no other location. A time before that of the last event counts as equal to it.
    #[inline(always)]
    pub fn advance(&mut self, time: Timestamp<D>) -> Timestamp<D> {
        let passed = span(self.measured, time);
        let step = self
            .rule
            .control
            .scale(passed)
            .max(self.spacing.min(passed));
        self.step(step, time)
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
            self.corrected = self.corrected.max(later(corrected, spacing));
        }
        self.corrected
    }

    #[inline(always)]
    fn step(&mut self, step: u64, time: Timestamp<D>) -> Timestamp<D> {
        self.measured = self.measured.max(time);
        self.corrected = later(self.corrected, step).max(time);
        self.corrected
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
            self.corrected = earliest;
        }
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
            let exact = BigRational::new(BigInt::from(control.share), BigInt::from(1_u64 << 63));
            let (mut time, mut last) = (0, 0);
            for (passed, message) in steps {
                time += passed;
                let scaled = (&exact * BigInt::from(passed)).floor().to_integer();
                let base = (BigInt::from(last) + scaled).max((last + spacing.min(passed)).into()).max(time.into());
                prop_assert_eq!(BigInt::from(clock.advance(at(time)).as_nanos()), base.clone());
                let jump = message.map(|earliest| clock.receive(at(earliest)));
                let now = base.clone().max(message.unwrap_or(i64::MIN).into());
                prop_assert_eq!(BigInt::from(clock.now().as_nanos()), now.clone());
                prop_assert_eq!(BigInt::from(jump.unwrap_or_default().as_nanos()), now - base);
                prop_assert_eq!(clock.displacement(), clock.now() - at(time));
                last = clock.now().as_nanos();
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
