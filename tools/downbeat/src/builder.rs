//! Settings of a global clock.

use downbeat_clock_core::{Clock, Duration};
use downbeat_sync::collective::agree_blocking;
use downbeat_sync::{
    Algorithm, Comm, NodePlace, RankPlacement, ThreadCluster, ThreadComm, block_on_ready,
};
use downbeat_timers::ClockName;
use downbeat_timers::cores::{CAN_PIN, core_of_rank, current_core, pin_rank, pin_to, socket_of};
use downbeat_timers::numa_of;

use crate::error::GlobalClockError;
use crate::global_clock::{GlobalClock, SyncSettings};
use crate::local_time::LocalTime;

/// Settings of a [`GlobalClock`], which have good defaults; all ranks use the same.
///
/// ```
/// use downbeat::{ClockName, Duration, GlobalClock};
///
/// let settings = GlobalClock::builder()
///     .clock(ClockName::Raw)
///     .algorithm("h2hca(hca3/200,skampi)".parse()?)
///     .max_drift(1e-4);
/// let errors = settings.over_threads(2, |clock, _| clock.now_with_error().1)?;
/// assert!(errors.iter().all(|error| *error < Duration::from_millis(100)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct GlobalClockBuilder {
    clock: ClockName,
    calibration: Duration,
    pin: bool,
    sync: SyncSettings,
}

impl Default for GlobalClockBuilder {
    fn default() -> Self {
        Self {
            clock: ClockName::Recommended,
            calibration: Duration::from_millis(10),
            pin: false,
            sync: SyncSettings::default(),
        }
    }
}

impl GlobalClockBuilder {
    /// Selects the clock that every rank reads. The default is [`ClockName::Recommended`].
    pub fn clock(self, clock: ClockName) -> Self {
        Self { clock, ..self }
    }

    /// Selects the synchronization algorithm, by its label: `"hca3".parse()?`. The
    /// default is `auto/300ms`.
    pub fn algorithm(self, algorithm: Algorithm) -> Self {
        let sync = SyncSettings {
            algorithm,
            ..self.sync
        };
        Self { sync, ..self }
    }

    /// Sets how long one rank of each node calibrates its counter. The default is 10 ms, which gives a rate that is certain to
    /// about a third of a part per million.
    pub fn calibration(self, calibration: Duration) -> Self {
        Self {
            calibration,
            ..self
        }
    }

    /// Pins every rank to a core of its own, as far as its node has enough, instead of leaving it to the launcher. It pins the
    /// calling thread, and those that this thread starts later.
    pub fn pin(self, pin: bool) -> Self {
        Self { pin, ..self }
    }

    /// Declares the largest drift between the clocks of two ranks, by which the bound of the error grows with time. The default is
    /// a thousandth, which holds for every quartz: after a second the bound is a millisecond wide. Clocks of one cluster seldom
    /// drift apart by more than `1e-4`.
    pub fn max_drift(self, max_drift: f64) -> Self {
        let sync = SyncSettings {
            max_drift,
            ..self.sync
        };
        Self { sync, ..self }
    }

    /// Declares the largest deviation of a clock's rate from its mean over the last 32 sessions, relative to that of rank 0: the bound of a
    /// clock that is [kept](GlobalClock::keeping) grows by that between sessions, instead of by the declared drift. In a machine room it is
    /// seldom more than `1e-7` over some minutes. A clock that wanders by more is an error of the next session.
    pub fn max_wander(self, max_wander: impl Into<Option<f64>>) -> Self {
        let sync = SyncSettings {
            max_wander: max_wander.into(),
            ..self.sync
        };
        Self { sync, ..self }
    }

    /// Lets the clock slew when it is [synchronized again](GlobalClock::resynchronize), so that it neither jumps nor runs backward: it goes
    /// over to what it has learned within this time, or more slowly where its rate would change by more than a thousandth. By default it
    /// jumps, and is right at once.
    ///
    /// ```
    /// use downbeat::{Duration, GlobalClock};
    ///
    /// let settings = GlobalClock::builder().slew(Duration::from_millis(100));
    /// let went_on = settings.over_threads(2, |clock, comm| {
    ///     let before = clock.now();
    ///     clock.resynchronize_over(comm)?;
    ///     Ok::<_, downbeat::GlobalClockError>(clock.now() >= before)
    /// })?;
    /// assert!(went_on.into_iter().all(|went_on| went_on.is_ok_and(|went_on| went_on)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn slew(self, within: Duration) -> Self {
        let sync = SyncSettings {
            slew: Some(within),
            ..self.sync
        };
        Self { sync, ..self }
    }

    /// Synchronizes the clocks of all ranks of a communicator, which all call this. Takes
    /// 300 ms, and much less within one node.
    ///
    /// # Errors
    /// The same on all ranks, if any rank fails.
    #[cfg(feature = "mpi")]
    pub fn synchronize(
        self,
        world: &impl mpi::traits::Communicator,
    ) -> Result<GlobalClock, GlobalClockError> {
        let comm =
            downbeat_sync::MpiComm::duplicate(world).map_err(downbeat_sync::CommError::Mpi)?;
        self.over_processes(&comm)
    }

    /// The same as [`synchronize`](Self::synchronize), over a communicator of `downbeat-sync`.
    ///
    /// # Errors
    /// As [`synchronize`](Self::synchronize).
    #[cfg(feature = "mpi")]
    pub fn over_processes(
        self,
        comm: &downbeat_sync::MpiComm,
    ) -> Result<GlobalClock, GlobalClockError> {
        let node = comm.node()?;
        self.over(comm, node)
    }

    /// Runs `work` on threads, each pinned to a core where there are enough, with a clock
    /// that is global for them, and returns the results in the order of ranks. On macOS,
    /// the threads are not pinned.
    ///
    /// # Errors
    /// If a thread cannot be started or pinned, if one panics, or if the clocks cannot be synchronized.
    pub fn over_threads<T: Send>(
        self,
        threads: u32,
        work: impl Fn(&GlobalClock, &ThreadComm) -> T + Sync,
    ) -> Result<Vec<T>, GlobalClockError> {
        let mut cluster = ThreadCluster::new(threads);
        if CAN_PIN {
            cluster = cluster.pin(pin_rank);
        }
        let settings = Self { pin: false, ..self };
        let results = cluster.run(|comm| Ok(work(&settings.over(comm, 0)?, comm)))?;
        results.into_iter().collect()
    }

    /// Synchronizes the clocks of all ranks of any communicator that does not suspend them; `node` is equal on ranks that share a
    /// node. All ranks call this.
    ///
    /// # Errors
    /// As [`synchronize`](Self::synchronize).
    pub fn over<M: Comm>(self, comm: &M, node: u32) -> Result<GlobalClock, GlobalClockError> {
        let split = block_on_ready(comm.by_node(node))?;
        let group = &split.node;
        if self.pin {
            let pinned = pin(group.rank()).map_err(|why| GlobalClockError::of_rank(comm, why));
            agree_blocking(comm, pinned)?;
        }
        let local = LocalTime::detect(self.clock, self.calibration, comm, group)?;
        self.over_clock(local, comm, node)
    }

    /// The same as [`over`](Self::over), with a clock of the caller.
    ///
    /// # Errors
    /// As [`synchronize`](Self::synchronize).
    pub fn over_clock<K: Clock, M: Comm>(
        self,
        local: LocalTime<K>,
        comm: &M,
        node: u32,
    ) -> Result<GlobalClock<K>, GlobalClockError> {
        let core = current_core();
        let place = RankPlacement {
            numa: core.and_then(numa_of).unwrap_or_default(),
            ..RankPlacement::new(node, core.and_then(socket_of).unwrap_or_default())
        };
        let place = place.within(NodePlace::of_slurm().unwrap_or_default());
        GlobalClock::begin(self.sync, local, place, comm)
    }
}

impl GlobalClock {
    /// Returns the settings, to change some of them.
    pub fn builder() -> GlobalClockBuilder {
        GlobalClockBuilder::default()
    }

    /// Synchronizes the clocks of all ranks of an MPI communicator, which all call this.
    ///
    /// ```no_run
    /// let universe = downbeat::mpi::initialize().expect("MPI starts once");
    /// let clock = downbeat::GlobalClock::synchronize(&universe.world())?;
    /// println!("{}", clock.now());
    /// # Ok::<(), downbeat::GlobalClockError>(())
    /// ```
    ///
    /// # Errors
    /// The same on all ranks, if any rank fails.
    #[cfg(feature = "mpi")]
    pub fn synchronize(world: &impl mpi::traits::Communicator) -> Result<Self, GlobalClockError> {
        Self::builder().synchronize(world)
    }

    /// Runs `work` on threads with a clock that is global for them: see [`GlobalClockBuilder::over_threads`].
    ///
    /// # Errors
    /// As there.
    pub fn over_threads<T: Send>(
        threads: u32,
        work: impl Fn(&Self, &ThreadComm) -> T + Sync,
    ) -> Result<Vec<T>, GlobalClockError> {
        Self::builder().over_threads(threads, work)
    }
}

/// Pins this thread to the core of a rank.
fn pin(rank: u32) -> Result<(), String> {
    match core_of_rank(rank) {
        Some(core) => pin_to(core).map_err(|why| why.to_string()),
        None => Err("the system does not list its cores".to_owned()),
    }
}
