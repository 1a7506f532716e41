//! Ranks that are threads, each pinned to a core, and their clocks.

use std::convert::Infallible;
use std::io::{self, Write as _};
use std::sync::Once;

use downbeat_common::Failure;
use downbeat_jobs::Job;
use downbeat_sync::{CommError, ThreadCluster, ThreadComm};
use downbeat_timers::cores::{CAN_PIN, pin_rank};

/// Makes a cluster of threads, one on each core that this process may use; cores are
/// shared if there are too few. On macOS, the threads are not pinned, and a warning is
/// printed once.
fn pinned(ranks: u32) -> ThreadCluster<'static> {
    let cluster = ThreadCluster::new(ranks);
    if CAN_PIN {
        return cluster.pin(pin_rank);
    }
    warn_once("threads are not pinned to cores, as they cannot be on macOS");
    cluster
}

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
        Ok(0)
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
