//! The past of a rank, interpolated through its sessions.

use downbeat_clock_core::offset::OffsetInterval;
use downbeat_clock_core::spline::{ConstrainedSpline, SplineKnot};
use downbeat_clock_core::{FitError, Global, Local, Timestamp};

use super::{ExchangeSession, SessionRule};

/// Curve through the sessions of a rank, from its local time to global time.
///
/// It is a [smooth curve](ConstrainedSpline) between sessions, and a straight line before
/// the first and after the last.
///
/// The curve is cut between two neighbouring sessions whose certain limits contradict
/// each other: no offset is within both, even if the clocks drift as fast as
/// [declared](crate::LocalClock::max_drift). A clock stepped between them, and no message
/// tells when. A time between them is on the straight line through both: in order with
/// all others, but wrong by up to the step. The curve on each side goes through its own
/// sessions.
#[derive(Clone, Debug, Default)]
pub struct PastCurve {
    /// Points of the sessions, in the order of time.
    knots: Vec<SplineKnot<Local, Global>>,
    /// Places of the knots that are the first after a step.
    after_steps: Vec<usize>,
    /// Limits of the offset by the last session.
    certain: Option<OffsetInterval<Local, Global>>,
}

impl PastCurve {
    /// Returns the curve through one more session, the latest, which is condensed by this
    /// rule.
    ///
    /// # Errors
    /// If the session [has no knot](ExchangeSession::knot), or a clock stepped back
    /// beyond the session before.
    pub fn with_session(
        &self,
        session: &ExchangeSession,
        rule: SessionRule,
    ) -> Result<Self, FitError> {
        let knot = session.knot(rule)?;
        let certain = session.certain_offset()?;
        let mut curve = self.clone();
        if let Some(before) = self.certain
            && limits_contradict(&before, &certain, knot.at)?
        {
            curve.after_steps.push(curve.knots.len());
        }
        curve.knots.push(knot);
        ConstrainedSpline::new(&curve.knots)?;
        curve.certain = Some(certain);
        Ok(curve)
    }

    /// Returns the points of local and global time of all sessions.
    pub fn knots(&self) -> &[SplineKnot<Local, Global>] {
        &self.knots
    }

    /// Returns the points of each two neighbouring sessions between which a clock
    /// stepped.
    pub fn steps(&self) -> impl Iterator<Item = [SplineKnot<Local, Global>; 2]> {
        let after = self.after_steps.iter();
        after.map(|after| [self.knots[after - 1], self.knots[*after]])
    }

    /// Returns the global time at a local time; `None` if there were no sessions.
    pub fn apply(&self, at: Timestamp<Local>) -> Option<Timestamp<Global>> {
        let curve = ConstrainedSpline::new(self.piece_at(at)).ok()?;
        Some(curve.apply(at))
    }

    /// Returns the knots of the curve at a time: those between two steps, or both sides
    /// of a step.
    fn piece_at(&self, at: Timestamp<Local>) -> &[SplineKnot<Local, Global>] {
        let passed = self.knots.partition_point(|knot| knot.at <= at);
        let next = self.after_steps.partition_point(|after| *after < passed);
        let end = self.after_steps.get(next).copied();
        if end == Some(passed) && passed > 0 {
            return &self.knots[passed - 1..=passed];
        }
        let start = next
            .checked_sub(1)
            .map_or(0, |before| self.after_steps[before]);
        &self.knots[start..end.unwrap_or(self.knots.len())]
    }
}

/// Returns true if the offsets that two sessions allow at a time have none in common.
fn limits_contradict(
    before: &OffsetInterval<Local, Global>,
    after: &OffsetInterval<Local, Global>,
    time: Timestamp<Local>,
) -> Result<bool, FitError> {
    let [before, after] = [before.limits_at(time)?, after.limits_at(time)?];
    Ok(before[0] > after[1] || after[0] > before[1])
}

#[cfg(test)]
mod tests {
    use downbeat_clock_core::Duration;
    use downbeat_clock_core::offset::Exchange;

    use super::*;

    const MILLISECOND: i64 = 1_000_000;
    const SECOND: i64 = 1_000 * MILLISECOND;

    /// A session of one exchange of 2 us by clocks that drift by at most a thousandth.
    fn session(at: i64, offset: i64) -> ExchangeSession {
        let around = |by| Timestamp::from_nanos(at + by);
        ExchangeSession {
            exchanges: vec![Exchange {
                sent: around(-1_000),
                answered: Timestamp::from_nanos(at - offset),
                received: around(1_000),
            }],
            reading_error: Duration::ZERO,
            max_drift: 1e-3,
        }
    }

    fn curve(sessions: &[ExchangeSession]) -> PastCurve {
        let longer = |curve: PastCurve, session| curve.with_session(session, SessionRule::Lowest);
        let curve = sessions.iter().try_fold(PastCurve::default(), longer);
        curve.unwrap()
    }

    fn image(curve: &PastCurve, at: i64) -> i64 {
        curve.apply(Timestamp::from_nanos(at)).unwrap().as_nanos()
    }

    /// Sessions a second apart on clocks that drift by `drift` nanoseconds in each, of
    /// which one steps after `stepped` sessions.
    fn stepping(drift: i64, stepped: i64, by: i64) -> Vec<ExchangeSession> {
        let offset = |number| drift * number + if number < stepped { 0 } else { by };
        let numbers = 0..6;
        numbers
            .map(|number| session(number * SECOND, offset(number)))
            .collect()
    }

    #[test]
    fn the_curves_before_and_after_a_step_do_not_see_it() {
        for by in [-3 * MILLISECOND, 3 * MILLISECOND, SECOND / 2] {
            for stepped in 0..=6 {
                let all = stepping(700, stepped, by);
                let (before, after) = all.split_at(stepped as usize);
                let whole = curve(&all);
                let is_inside = !before.is_empty() && !after.is_empty();
                assert_eq!(whole.steps().count(), usize::from(is_inside));
                for at in (-SECOND..7 * SECOND).step_by(SECOND as usize / 8) {
                    let part = match () {
                        () if before.is_empty() || at >= stepped * SECOND && !after.is_empty() => {
                            after
                        }
                        () if after.is_empty() || at <= (stepped - 1) * SECOND => before,
                        () => continue,
                    };
                    assert_eq!(image(&whole, at), image(&curve(part), at), "{at}");
                }
            }
        }
    }

    #[test]
    fn times_stay_in_order_across_a_step() {
        for by in [-3 * MILLISECOND, 3 * MILLISECOND, SECOND / 2] {
            let whole = curve(&stepping(700, 3, by));
            let times = (-SECOND..7 * SECOND).step_by(SECOND as usize / 100);
            let images: Vec<i64> = times.map(|at| image(&whole, at)).collect();
            assert!(images.is_sorted_by(|one, next| one < next), "{by}");
            let [[last, first]] = whole.steps().collect::<Vec<_>>()[..] else {
                panic!("one step")
            };
            assert_eq!(last.at.as_nanos(), 2 * SECOND);
            assert_eq!(first.at.as_nanos(), 3 * SECOND);
            let middle = image(&whole, 2 * SECOND + SECOND / 2);
            assert_eq!(
                middle,
                i64::midpoint(last.image.as_nanos(), first.image.as_nanos())
            );
        }
    }

    /// What the declared drift allows is no step: the smooth curve passes through.
    #[test]
    fn sessions_that_drift_explains_are_on_one_curve() {
        let all = stepping(700, 3, MILLISECOND - 2_000);
        assert_eq!(curve(&all).steps().count(), 0);
        let mut declared = stepping(700, 3, 2_000);
        for session in &mut declared {
            session.max_drift = 1e-6;
        }
        assert_eq!(curve(&declared).steps().count(), 0);
        declared[3] = session(3 * SECOND, 20_000);
        declared[3].max_drift = 1e-6;
        assert_eq!(curve(&declared).steps().count(), 2);
    }

    #[test]
    fn a_clock_that_stepped_back_beyond_the_last_session_is_refused() {
        let one = curve(&[session(SECOND, 0)]);
        for late in [session(SECOND / 2, 0), session(2 * SECOND, 3 * SECOND)] {
            assert!(one.with_session(&late, SessionRule::Lowest).is_err());
        }
        assert_eq!(PastCurve::default().apply(Timestamp::ORIGIN), None);
    }
}
