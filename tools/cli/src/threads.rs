//! Ranks that are threads, each pinned to a core, and their clocks.

use std::convert::Infallible;
use std::io::{self, Write as _};
use std::sync::Once;

use downbeat_clock_core::{Clock, ClockModel, Counter};
use downbeat_common::Failure;
use downbeat_jobs::Job;
use downbeat_sync::{CommError, ThreadCluster, ThreadComm};
use downbeat_timers::cores::{CAN_PIN, pin_rank};
use downbeat_timers::skew::{SkewSpec, SkewedClock, Truth};

/// Makes a cluster of threads, one on each core that this process may use; cores are
/// shared if there are too few. On macOS, the threads are not pinned, and a warning is
/// printed once.
pub(crate) fn pinned(ranks: u32) -> ThreadCluster<'static> {
    let cluster = ThreadCluster::new(ranks);
    if CAN_PIN {
        return cluster.pin(pin_rank);
    }
    warn_once("threads are not pinned to cores, as they cannot be on macOS");
    cluster
}

/// The node of all threads.
pub(crate) const NODE: u32 = 0;

/// Ranks of a job that are threads.
#[derive(Debug)]
pub(crate) struct ThreadJob<'a>(&'a ThreadComm);

impl Job for ThreadJob<'_> {
    type Comm = ThreadComm;
    type OwnClock = Infallible;

    const IS_ONE_PROCESS: bool = true;

    const PROGRAM: &'static str = concat!("downbeat ", env!("CARGO_PKG_VERSION"));

    fn comm(&self) -> &ThreadComm {
        self.0
    }

    fn node(&self) -> Result<u32, CommError> {
        Ok(NODE)
    }
}

/// Runs a command on threads; returns what it gives on rank 0, which knows the reason if all fail.
pub(crate) fn run_job<T: Send>(
    ranks: u32,
    command: impl Fn(&ThreadJob<'_>) -> Result<T, Failure> + Sync,
) -> Result<T, Failure> {
    let found = pinned(ranks).run(|comm| command(&ThreadJob(comm)));
    let first = found.map_err(Failure::run)?.into_iter().next();
    first.unwrap_or_else(|| Err(Failure::run("there is no rank 0")))
}

/// Prints a warning, unless one was printed before.
fn warn_once(warning: &str) {
    static WARNING: Once = Once::new();
    WARNING.call_once(|| {
        // Without a standard error nobody reads it.
        let _ = writeln!(io::stderr(), "downbeat: {warning}");
    });
}

/// Makes a skewed clock for each rank.
pub(crate) fn skewed<K: Clock + Copy>(
    spec: &SkewSpec,
    ranks: u32,
    counter: K,
    truth: ClockModel<Counter, Truth>,
) -> Result<Vec<SkewedClock<K>>, Failure> {
    let clock = |rank| {
        SkewedClock::new(
            counter,
            truth,
            spec.for_clock(spec.clock_of_rank(rank, NODE)),
        )
    };
    (0..ranks)
        .map(clock)
        .collect::<Result<_, _>>()
        .map_err(|why| Failure::option("--skew", why))
}
