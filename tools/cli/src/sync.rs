//! `downbeat sync`: a global clock for threads with skewed clocks, and its true error.

use clap::Args;
use downbeat_common::Failure;
use downbeat_common::records::RunRecord;
use downbeat_jobs::sync::{self, SyncOptions};
use downbeat_sync::{Algorithm, ThreadCluster};

use crate::threads;

#[derive(Args, Debug)]
#[command(
    mut_arg("algorithm", |option| option.default_value("hca3/100/skampi/50")),
    mut_arg("clock", |option| option.default_value("recommended").value_parser(threads::clock_parser())),
    mut_arg("skew", |option| option.default_value("offset=1s,drift=20ppm")),
    mut_arg("truth", |option| option.hide(true)),
    mut_arg("predict", |option| option.hide(true)),
    // Nothing is measured: the errors are known.
    mut_arg("check_by", |option| option.hide(true)),
    mut_arg("sample", |option| option.hide(true)),
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

impl ThreadSyncOptions {
    /// Returns the options of the ranks, whose true errors are always known.
    fn known(mut self) -> SyncOptions {
        self.sync.truth = true;
        self.sync.predict = true;
        self.sync
    }
}

pub(crate) fn run(options: ThreadSyncOptions) -> Result<(), Failure> {
    let ranks = options.ranks;
    let options = options.known();
    threads::run_job(ranks, |job| sync::run(&options, job))
}

/// Synchronizes once, and computes the errors.
pub(crate) fn measure(
    options: ThreadSyncOptions,
    algorithm: Algorithm,
) -> Result<RunRecord, Failure> {
    let ranks = options.ranks;
    let options = options.known();
    threads::run_job(ranks, |job| sync::try_once(&options, algorithm, job))
}
