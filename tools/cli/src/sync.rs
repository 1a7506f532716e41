//! `downbeat sync`: a global clock for threads with skewed clocks, and its true error.

use clap::Args;
use downbeat_common::Failure;
use downbeat_common::records::RunRecord;
use downbeat_jobs::JobClockName;
use downbeat_jobs::sync::{self, SyncOptions};
use downbeat_sync::{Algorithm, ThreadCluster};

use crate::threads;

#[derive(Args, Debug)]
#[command(
    mut_arg("algorithm", |option| option.default_value("hca3/100/skampi/50")),
    mut_arg("clock", |option| option.default_value("recommended").value_parser(JobClockName::machine_parser())),
    mut_arg("skew", |option| option.default_value("offset=1s,drift=20ppm")),
    after_help = "All ranks read one counter, each through a clock with a known skew. So the error printed is the true error \
                  of the global clock, not a measured one, and is computed for future times, too.\n\n\
                  Example:\n  downbeat sync --ranks 4 --algorithm hca3/100/skampi/50 \\\n    \
                  --skew offset=1s,drift=20ppm --check 0,10s"
)]
pub(crate) struct ThreadSyncOptions {
    /// Number of ranks; each is a thread
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=i64::from(ThreadCluster::MAX_RANKS)), allow_hyphen_values = true)]
    ranks: u32,
    #[command(flatten)]
    sync: SyncOptions,
}

pub(crate) fn run(options: &ThreadSyncOptions) -> Result<(), Failure> {
    let sync = &options.sync;
    threads::run_job(options.ranks, |job| sync::run_known(sync, job))
}

/// Synchronizes once, and computes the errors.
pub(crate) fn measure(
    options: &ThreadSyncOptions,
    algorithm: Algorithm,
) -> Result<RunRecord, Failure> {
    let sync = &options.sync;
    threads::run_job(options.ranks, |job| {
        sync::try_known_once(sync, algorithm, job)
    })
}
