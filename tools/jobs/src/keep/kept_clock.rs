//! Clock of a rank that sessions keep synchronized, beside the same clock without them.

use downbeat_clock_core::spline::{ConstrainedSpline, SplineKnot};
use downbeat_clock_core::{Clock, ClockModel, Counter, Duration, Global, Local, Timestamp};
use downbeat_sync::keep::{KeptSession, NodeKeeper, SlewingClock};
use downbeat_sync::{CommError, LocalClock, SyncError, Synchronized, payload_of_fields};

use crate::Job;
use crate::clock::JobClock;

/// Kept clock of this rank.
pub(super) struct KeptClock<'a, J: Job> {
    me: LocalClock<'a, JobClock<J>>,
    keeper: NodeKeeper<J::Comm>,
    /// Model of the synchronization. Errors are measured by the clock that shows it all the time.
    pub(super) once: ClockModel<Counter, Global>,
    shown: SlewingClock,
    pub(super) sessions: u32,
    pub(super) longest_session: Duration,
    pub(super) last: Option<KeptSession>,
}

/// Global time that a kept clock showed at a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShownTime {
    pub(super) kept: Timestamp<Global>,
    /// Limits of the time of rank 0 at that moment, by the bound of the clock.
    pub(super) earliest: Timestamp<Global>,
    pub(super) latest: Timestamp<Global>,
}

payload_of_fields!([] ShownTime { kept, earliest, latest });

impl<'a, J: Job> KeptClock<'a, J> {
    /// Begins to keep a clock that was synchronized. All ranks call this.
    pub(super) async fn new(
        me: LocalClock<'a, JobClock<J>>,
        comm: &J::Comm,
        synchronized: &Synchronized,
        period: Duration,
    ) -> Result<Self, CommError> {
        let keeper = NodeKeeper::new(&me, synchronized, comm, period).await?;
        Ok(Self {
            me,
            keeper,
            once: synchronized.model,
            shown: SlewingClock::new(synchronized),
            sessions: 0,
            longest_session: Duration::ZERO,
            last: None,
        })
    }

    /// Makes a session if one is due. All ranks call this.
    pub(super) async fn keep(&mut self) -> Result<(), SyncError> {
        let Some(session) = self.keeper.keep(&self.me).await? else {
            return Ok(());
        };
        self.shown.follow(&session, self.me.clock().ticks())?;
        self.sessions += 1;
        self.longest_session = self.longest_session.max(session.took);
        self.last = Some(session);
        Ok(())
    }

    /// Returns what the clock showed since the last session, when it showed this time by the synchronization alone.
    pub(super) fn at(&self, once: Timestamp<Global>) -> ShownTime {
        let kept = self.shown.model.apply(self.once.invert(once));
        let [earliest, latest] = self.shown.bound.around(kept);
        ShownTime {
            kept,
            earliest,
            latest,
        }
    }

    /// Returns points of the past by all sessions; none if the rank reads the counter of rank 0, so that sessions measure nothing.
    pub(super) fn knots(&self) -> Vec<SplineKnot<Local, Global>> {
        self.keeper.past(&self.me.base())
    }

    /// Returns the past that these points give.
    pub(super) fn past<'k>(&self, knots: &'k [SplineKnot<Local, Global>]) -> PastTimes<'k> {
        let curve = ConstrainedSpline::new(knots).ok();
        PastTimes {
            curve: curve.filter(|_| knots.len() > 1),
            local: self.me.base(),
            once: self.once,
            shown: self.shown.model.present(),
        }
    }

    pub(super) fn allan_deviation(&self) -> Vec<(Duration, f64)> {
        self.keeper.allan_deviation()
    }
}

/// Global time of the past on a rank, by all sessions.
pub(super) struct PastTimes<'k> {
    curve: Option<ConstrainedSpline<'k, Local, Global>>,
    local: ClockModel<Counter, Local>,
    once: ClockModel<Counter, Global>,
    shown: ClockModel<Counter, Global>,
}

impl PastTimes<'_> {
    /// Returns the time when the clock showed this one by the synchronization alone.
    pub(super) fn at(&self, once: Timestamp<Global>) -> Timestamp<Global> {
        let ticks = self.once.invert(once);
        match &self.curve {
            Some(curve) => curve.apply(self.local.apply(ticks)),
            None => self.shown.apply(ticks),
        }
    }
}
