//! State of one rank before and after a synchronization.

use downbeat_clock_core::{
    Clock, ClockModel, Counter, Duration, ErrorBound, Global, Local, Timestamp,
};

use crate::line::LearnedModel;
use crate::quality::{MAX_DRIFT, Quality};
use crate::{RankPlacement, SyncError};

/// A rank's clock before a synchronization: the counter that it reads, and the time that it shows.
#[derive(Debug)]
pub struct LocalClock<'a, K> {
    pub(crate) clock: &'a K,
    pub(crate) base: ClockModel<Counter, Local>,
    /// Quality of the base, where it is global time already.
    pub(super) quality: Quality,
    pub(super) source: u64,
    pub(crate) placement: RankPlacement,
    pub(crate) max_drift: f64,
    pub(crate) max_wander: Option<f64>,
    pub(super) other: Option<OtherClock>,
}

// Derived implementations would need a copy of the counter.
impl<K> Clone for LocalClock<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for LocalClock<'_, K> {}

/// Another clock of a rank, by which a step of its own clock shows.
#[derive(Clone, Copy, Debug)]
pub struct OtherClock {
    /// Reads it, in nanoseconds. `None` if it cannot be read.
    pub read: fn() -> Option<i64>,
    /// Largest drift of the two clocks from each other.
    pub max_drift: f64,
}

/// Result of a synchronization on one rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Synchronized {
    /// Model from this rank's counter to global time; models of several levels are composed into this one.
    pub model: ClockModel<Counter, Global>,
    /// Figures about the fits.
    pub quality: Quality,
    /// Largest difference of this rank's global clock from that of rank 0, at the end of the synchronization and later.
    /// It follows from the closing exchange and the declared [drift](LocalClock::max_drift), and holds unless a clock steps
    /// after its last message: until the end of the synchronization, by less than
    /// [another clock](LocalClock::compared_with) of its rank shows; later, by anything.
    pub bound: ErrorBound<Global>,
    /// Cost of the closing exchange.
    pub closing: ClosingCost,
    /// Duration of everything since the last rank began, by the clock of this rank.
    pub took: Duration,
    /// Findings of a synchronization [within a stated time](super::Auto).
    pub auto: Option<AutoReport>,
    /// Multiple of its duration that an exchange between nodes takes while all their ranks
    /// exchange messages, if they fill the network cards in a [cube](super::Cube) of all ranks.
    /// Its clocks are wrong by the queues then: one rank of each node should measure, as
    /// in [`Auto`](super::Auto).
    pub saturation: Option<f64>,
}

impl Synchronized {
    /// Returns the time that a synchronization [within a stated time](super::Auto) needs
    /// here at least.
    pub fn least_time(&self) -> Option<Duration> {
        self.auto.map(|auto| self.took - auto.spare)
    }
}

/// Findings of a synchronization within a stated time about the ranks and their network:
/// the same on all ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AutoReport {
    /// Time that it was given.
    pub budget: Duration,
    /// Time that it spent on more than it needs.
    pub spare: Duration,
    /// Number of nodes.
    pub nodes: u32,
    /// True if the ranks of each node read one counter.
    pub nodes_share_counters: bool,
    /// Mean duration of an exchange in the quickest turn, by the slowest pair of ranks
    /// that measured.
    pub slowest_exchange: Duration,
    /// Multiple of what exchanges of the quickest pair take, among nodes or within them,
    /// whichever is greater.
    pub slowest_to_quickest: f64,
}

/// Cost of the exchange at the end of a synchronization that checks all clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClosingCost {
    /// Number of messages of all ranks.
    pub messages: u64,
    /// Duration, by the clock of this rank.
    pub took: Duration,
    /// Duration of the comparison before it that shows errors around cycles of ranks,
    /// where the algorithm measures none.
    pub compared: Duration,
}

impl<'a, K: Clock> LocalClock<'a, K> {
    /// Creates a local clock that shows the time `base` of the counter `clock`. On rank 0 that time becomes global time.
    pub fn new(clock: &'a K, base: ClockModel<Counter, Local>) -> Self {
        Self {
            clock,
            base,
            quality: Quality::default(),
            source: 0,
            placement: RankPlacement::default(),
            max_drift: MAX_DRIFT,
            max_wander: None,
            other: None,
        }
    }

    /// Sets another clock of this rank, with which its own is compared over a
    /// synchronization: a step of one of them is an error. Other ranks cannot see a step
    /// after the last message of this one.
    #[must_use]
    pub fn compared_with(self, other: impl Into<Option<OtherClock>>) -> Self {
        Self {
            other: other.into(),
            ..self
        }
    }

    /// Sets the identity of the time source that the clock reads: a number that is equal on ranks that seem to read the
    /// same source, such as a hash of the clock's name, the boot id and the time namespace. [`FlatAlgorithm::Prop`] uses it.
    ///
    /// [`FlatAlgorithm::Prop`]: super::FlatAlgorithm::Prop
    #[must_use]
    pub fn source(self, source: u64) -> Self {
        Self { source, ..self }
    }

    /// Returns the identity of the time source.
    pub fn time_source(&self) -> u64 {
        self.source
    }

    /// Sets the node and the other units that contain the rank. A [`Hierarchy`](super::Hierarchy) uses them.
    #[must_use]
    pub fn placement(self, placement: RankPlacement) -> Self {
        Self { placement, ..self }
    }

    /// Declares the largest drift of this local clock from that of rank 0, by which the error bound grows with its age:
    /// `1e-6` is one part per million. The default is a thousandth, which holds for every quartz; what is not a number of 0 or more
    /// does not change it.
    #[must_use]
    pub fn max_drift(self, max_drift: f64) -> Self {
        match max_drift >= 0.0 {
            true => Self { max_drift, ..self },
            false => self,
        }
    }

    /// Declares the largest deviation of this clock's rate from its mean over the last 32 sessions, relative to that of rank 0: `1e-7`
    /// is a tenth of a part per million, by which a quartz changes when it warms by some tenths of a degree. The bound of a clock that
    /// is [kept](crate::keep) then grows by that between sessions, instead of by the declared drift; a clock that wanders by more is an
    /// error. What is not a number of 0 or more declares nothing.
    #[must_use]
    pub fn max_wander(self, max_wander: impl Into<Option<f64>>) -> Self {
        Self {
            max_wander: max_wander.into().filter(|wander| *wander >= 0.0),
            ..self
        }
    }

    /// Returns the counter that the rank reads.
    pub fn clock(&self) -> &'a K {
        self.clock
    }

    /// Returns the model from the counter to the rank's local time.
    pub fn base(&self) -> ClockModel<Counter, Local> {
        self.base
    }

    /// Reads the rank's local time.
    pub fn now(&self) -> Timestamp<Local> {
        self.base.apply(self.clock.ticks())
    }

    /// Takes this rank's own time for global time: on rank 0, and in place of a model that could not be learned.
    pub(super) fn own(&self) -> Attempt {
        Attempt {
            model: self.base.renamed(),
            quality: self.quality,
        }
    }

    /// Takes the global clock that this rank learned for its own, from which a next level
    /// of ranks begins. A rank that failed continues with its own, so that no other waits
    /// for ever.
    ///
    /// # Errors
    /// If the rank failed.
    pub(super) fn begin_from(&mut self, learned: RankResult) -> Result<(), SyncError> {
        let learned = learned?;
        self.base = learned.model.renamed();
        self.quality = learned.quality;
        Ok(())
    }

    /// Global time by a model that was learned from a reference.
    pub(super) fn learned(&self, learned: LearnedModel<Local, Global>) -> RankResult {
        Ok(Attempt {
            model: self.base.then(&learned.model)?,
            quality: Quality {
                rank: self.quality.rank,
                ..learned.quality
            },
        })
    }
}

/// Global clock that an algorithm gives a rank, before the closing exchange.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    pub(super) model: ClockModel<Counter, Global>,
    pub(super) quality: Quality,
}

/// Result of an algorithm on this rank. Also a rank that failed has exchanged all its messages before it returns this.
pub(super) type RankResult = Result<Attempt, SyncError>;
