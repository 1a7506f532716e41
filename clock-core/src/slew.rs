//! Change of a clock's model without a jump.

use crate::{
    ClockModel, Counter, Domain, Duration, ErrorBound, ModelError, TickRate, Ticks, Timestamp,
};

/// Model of a clock that never jumps: it shows an earlier line until a tick, then one that leads to the present line, and from the anchor
/// of that on the present line.
///
/// ```
/// use downbeat_clock_core::{ClockModel, Counter, Duration, Global, SlewedModel, TickRate, Ticks, Timestamp};
///
/// let line = |ahead| ClockModel::<Counter, Global>::through(Ticks(0), Timestamp::from_nanos(ahead), TickRate::NANOSECOND);
/// let shown = SlewedModel::from(line(0)?);
/// // At a second of the counter the clock turns out to be 700 ns behind: it makes up for that within another second.
/// let second = Ticks(1_000_000_000);
/// let slewed = shown.toward(line(700)?, second, Duration::from_secs(1))?.expect("it does not slew yet");
/// let off = |seconds: u64| slewed.apply(Ticks(seconds * second.0)).as_nanos() - (seconds * second.0) as i64;
/// assert_eq!([off(1), off(3)], [0, 700]);
/// # Ok::<(), downbeat_clock_core::ModelError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlewedModel<D: Domain> {
    /// First tick to which the earlier line applies.
    pub(crate) since: Ticks,
    pub(crate) earlier: ClockModel<Counter, D>,
    /// Tick at which the slew begins; it ends at the anchor of the present line.
    pub(crate) begins: Ticks,
    pub(crate) slewing: ClockModel<Counter, D>,
    pub(crate) present: ClockModel<Counter, D>,
}

/// A clock that shows one line all the time.
impl<D: Domain> From<ClockModel<Counter, D>> for SlewedModel<D> {
    fn from(model: ClockModel<Counter, D>) -> Self {
        Self {
            since: Ticks(0),
            earlier: model,
            begins: Ticks(0),
            slewing: model,
            present: model,
        }
    }
}

impl<D: Domain> SlewedModel<D> {
    /// Time from a change of the model to the begin of its slew, until when the clock shows the same by the model before and by this one:
    /// for readers that have read the counter, but not the model, and a writer that has not replaced it yet.
    pub const LEAD: Duration = Duration::from_millis(10);
    /// Largest change of the rate by a slew: a larger correction takes longer.
    pub const MOST: f64 = 1e-3;

    /// Returns the model of a clock that leads from this one to the line `wanted`, within `lasting` from `now` on; `None` while this one
    /// slews.
    ///
    /// # Errors
    /// If the lines are too far apart.
    pub fn toward(
        &self,
        wanted: ClockModel<Counter, D>,
        now: Ticks,
        lasting: Duration,
    ) -> Result<Option<Self>, ModelError> {
        let earlier = self.present;
        let ticks = |span: Duration| earlier.rate().ticks(span);
        let later = |at: Ticks, by: u64| at.0.checked_add(by).ok_or(ModelError::TooFarApart);
        let begins = Ticks(later(now, ticks(Self::LEAD))?);
        let since = self.settled();
        if begins < since {
            return Ok(None);
        }
        let correction = (wanted.apply(begins) - earlier.apply(begins)).abs();
        let needed = Duration::from_nanos((correction.as_nanos() as f64 / Self::MOST) as i64);
        let span = ticks(lasting.max(needed)).max(1);
        let ends = Ticks(later(begins, span)?);
        let exact = |model: &ClockModel<Counter, D>, at| {
            model.exact_image(at).ok_or(ModelError::TooFarApart)
        };
        let start = exact(&earlier, begins)?;
        let climb = exact(&wanted, ends)?.checked_sub(start);
        let climb = climb.and_then(|climb| u128::try_from(climb).ok());
        let rate = TickRate::from_fixed(climb.ok_or(ModelError::TooFarApart)? / u128::from(span))?;
        let slewing = ClockModel::through_exact(begins, start, rate)?;
        // From where the slew ends, which is less than 1e-9 ns from the line.
        let end = exact(&slewing, ends)?;
        Ok(Some(Self {
            since,
            earlier,
            begins,
            slewing,
            present: ClockModel::through_exact(ends, end, wanted.rate())?,
        }))
    }

    /// Applies the line that the clock shows at a tick. Before the last change but one, that is the earlier line nevertheless.
    pub fn apply(&self, at: Ticks) -> Timestamp<D> {
        self.line_at(at).apply(at)
    }

    fn line_at(&self, at: Ticks) -> &ClockModel<Counter, D> {
        if at >= self.settled() {
            &self.present
        } else if at >= self.begins {
            &self.slewing
        } else {
            &self.earlier
        }
    }

    /// Returns the first tick at which the clock shows this time or a later one.
    pub fn invert(&self, wanted: Timestamp<D>) -> Ticks {
        let at = self.earlier.invert(wanted);
        if at < self.begins {
            return at;
        }
        let at = self.slewing.invert(wanted).max(self.begins);
        if at < self.settled() {
            return at;
        }
        self.present.invert(wanted).max(self.settled())
    }

    /// Line that the clock shows once it has slewed.
    pub fn present(&self) -> ClockModel<Counter, D> {
        self.present
    }

    /// First tick from which on the clock shows the present line.
    pub fn settled(&self) -> Ticks {
        if self.begins == Ticks(0) {
            return Ticks(0);
        }
        self.present.anchor()
    }

    /// Returns the bound of what the clock shows from the last change on, given that of the present line.
    pub fn bound(&self, of_present: ErrorBound<D>) -> ErrorBound<D> {
        if self.begins == Ticks(0) {
            return of_present;
        }
        // What is shown differs from the present line most at the ends of a line.
        let lead = self.earlier.rate().ticks(Self::LEAD);
        let changed = Ticks(self.begins.0.saturating_sub(lead));
        let off = [changed, self.begins].map(|at| self.apply(at) - self.present.apply(at));
        // Both are rounded, and the time of the bound is a little off as well.
        let rounding = Duration::from_nanos(2);
        let most = |off: [Duration; 2]| off[0].max(off[1]).max(Duration::ZERO) + rounding;
        of_present.ahead_by([-most(off.map(|off| -off)), most(off)])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Global;

    type Line = ClockModel<Counter, Global>;

    fn line(ahead: i64, drift: f64) -> Line {
        let rate = TickRate::from_ratio(5, 13).unwrap().with_drift(drift);
        Line::through(Ticks(1_000), Timestamp::from_nanos(ahead), rate.unwrap()).unwrap()
    }

    /// First ticks of lines, and ticks around them.
    fn around_changes(slewed: &SlewedModel<Global>) -> impl Iterator<Item = Ticks> {
        [slewed.since, slewed.begins, slewed.settled()]
            .into_iter()
            .flat_map(|at| (0..200).map(move |by| Ticks((at.0 + by).saturating_sub(100).max(10))))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 256 }, ..ProptestConfig::default() })]

        #[test]
        fn a_clock_never_runs_backward_and_reaches_its_line(
            ahead in -2_000_000_i64..2_000_000,
            drifts in prop::array::uniform2(-500e-6_f64..500e-6),
            now in 1_000_u64..1 << 44,
            lasting in 1_i64..2_000_000_000,
        ) {
            let [first, wanted] = [line(0, drifts[0]), line(ahead, drifts[1])];
            // The lines have a point in common, or they would be hours apart.
            let wanted = Line::through(Ticks(now), first.apply(Ticks(now)) + Duration::from_nanos(ahead), wanted.rate()).unwrap();
            let slewed = SlewedModel::from(first).toward(wanted, Ticks(now), Duration::from_nanos(lasting)).unwrap().unwrap();
            prop_assert_eq!(slewed.apply(Ticks(now)), first.apply(Ticks(now)));
            for at in around_changes(&slewed) {
                let (shown, before) = (slewed.apply(at), slewed.apply(Ticks(at.0 - 1)));
                prop_assert!(shown >= before && shown - before <= Duration::from_nanos(2), "{:?}", at);
                let first_tick = slewed.invert(shown);
                prop_assert!(first_tick <= at && slewed.apply(first_tick) == shown, "{:?} {:?}", at, first_tick);
                prop_assert!(slewed.apply(Ticks(first_tick.0 - 1)) < shown);
            }
            let settled = slewed.settled();
            let remaining = slewed.apply(settled) - wanted.apply(settled);
            prop_assert!(remaining.abs() <= Duration::from_nanos(1), "{:?}", remaining);
            let change = slewed.slewing.rate().drift_from(first.rate());
            let drift = wanted.rate().drift_from(first.rate()).abs();
            prop_assert!(change.abs() <= SlewedModel::<Global>::MOST + 2.0 * drift + 1e-5, "{}", change);
            // The bound of the present line, widened, holds for what is shown.
            let exact = ErrorBound::symmetric(wanted.apply(Ticks(now)), Duration::ZERO, 0.0);
            let bound = slewed.bound(exact);
            for at in (0..100).map(|i| Ticks(now + (settled.0 - now) / 100 * i)) {
                prop_assert!(bound.allows(slewed.apply(at), wanted.apply(at)), "{:?}", at);
            }
        }
    }

    #[test]
    fn a_clock_that_slews_takes_no_other_line() {
        let first = SlewedModel::from(line(0, 0.0));
        let (now, second) = (Ticks(1 << 40), Duration::from_secs(1));
        let slewed = first.toward(line(50, 0.0), now, second).unwrap().unwrap();
        assert_eq!(slewed.toward(line(0, 0.0), now, second), Ok(None));
        let next = slewed.toward(line(0, 0.0), slewed.settled(), second);
        let next = next.unwrap().unwrap();
        assert_eq!(next.since, slewed.settled());
        // Both show the same until the next slew begins.
        for at in [next.since.0, next.begins.0 - 1, next.begins.0].map(Ticks) {
            assert_eq!(next.apply(at), slewed.apply(at));
        }
        let end = Ticks(u64::MAX - 5);
        assert_eq!(
            next.toward(line(0, 0.0), end, second),
            Err(ModelError::TooFarApart)
        );
    }

    #[test]
    fn one_line_is_a_slewed_model_as_well() {
        let model = line(7, 1e-6);
        let shown = SlewedModel::from(model);
        for at in [0, 1_000, 1 << 50].map(Ticks) {
            assert_eq!(shown.apply(at), model.apply(at));
            assert_eq!(shown.invert(model.apply(at)), model.invert(model.apply(at)));
        }
        assert_eq!(shown.bound(ErrorBound::UNKNOWN), ErrorBound::UNKNOWN);
    }
}
