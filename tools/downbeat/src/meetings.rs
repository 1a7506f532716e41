//! Common returns of the ranks of a global clock.

use downbeat_clock_core::{Clock, Duration};
use downbeat_sync::harmonize::{Harmonizer, Meeting};
use downbeat_sync::{Comm, block_on_ready};

use crate::GlobalClock;
use crate::error::GlobalClockError;

/// Meetings of the ranks of a communicator, each of which ends at one instant of their global clock, and synchronizes it again where that
/// is due.
#[derive(Debug)]
pub struct Meetings<'a, K, M> {
    clock: &'a GlobalClock<K>,
    comm: &'a M,
    max_error: Duration,
    harmonizer: Harmonizer,
}

impl<K: Clock> GlobalClock<K> {
    /// Begins meetings of all ranks, which all call this. The clock is synchronized again in the first meeting in which the
    /// [error](Self::now_with_error) of a rank may exceed `max_error`: with the default drift, 10 ms are reached after some 10 s.
    ///
    /// ```
    /// use downbeat::{Duration, GlobalClock, Meeting};
    ///
    /// let met = GlobalClock::over_threads(2, |clock, comm| {
    ///     let mut meetings = clock.meetings(comm, Duration::from_millis(10));
    ///     // All ranks return from here at the same instant, or know by how much they missed it.
    ///     let meeting = meetings.harmonize()?;
    ///     Ok::<_, downbeat::GlobalClockError>(meeting == Meeting::Met)
    /// })?;
    /// assert_eq!(met.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn meetings<'a, M: Comm>(&'a self, comm: &'a M, max_error: Duration) -> Meetings<'a, K, M> {
        Meetings {
            clock: self,
            comm,
            max_error,
            harmonizer: Harmonizer::new(max_error),
        }
    }

    /// Reads what a meeting needs.
    fn meet<M: Comm>(
        &self,
        harmonizer: &mut Harmonizer,
        comm: &M,
    ) -> Result<Option<Meeting>, GlobalClockError> {
        let (shown, bound) = self.model_clock().published().load_with_bound();
        let model = shown.present();
        let error = bound.at_time(model.apply(self.clock().ticks()));
        Ok(block_on_ready(harmonizer.meet(
            self.clock(),
            &model,
            error,
            comm,
        ))?)
    }
}

impl<K: Clock, M: Comm> Meetings<'_, K, M> {
    /// Returns at the same instant on all ranks, which all call this; a rank that learns of the instant too late returns at once.
    ///
    /// # Errors
    /// The same on all ranks: if the clock cannot be synchronized again, or not as well as wanted; or if a rank is gone.
    pub fn harmonize(&mut self) -> Result<Meeting, GlobalClockError> {
        if let Some(meeting) = self.clock.meet(&mut self.harmonizer, self.comm)? {
            return Ok(meeting);
        }
        self.clock.resynchronize_over(self.comm)?;
        let meeting = self.clock.meet(&mut self.harmonizer, self.comm)?;
        meeting.ok_or(GlobalClockError::Uncertain {
            max_error: self.max_error,
        })
    }

    /// Changes the error of this rank's clock beyond which all are synchronized again.
    pub fn within(&mut self, max_error: Duration) {
        self.max_error = max_error;
        self.harmonizer.within(max_error);
    }

    /// Time from the latest arrival to the return, at present: it adapts to what the slowest rank needs.
    pub fn slack(&self) -> Duration {
        self.harmonizer.slack()
    }
}
