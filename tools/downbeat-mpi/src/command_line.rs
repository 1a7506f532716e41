//! The command line, which all ranks read.

use std::env;
use std::ffi::OsString;

use clap::{CommandFactory, Parser, Subcommand};
use downbeat_common::{Failure, PackagingCommand, agree_blocking, cli};
use downbeat_jobs::{drift, keep, nodes, offsets, sync};
use downbeat_measure::mpi::BarrierAlgorithms;
use downbeat_sync::{Comm, MpiComm, StableHasher, block_on_ready, collective};
use downbeat_timers::WtimeClock;
use mpi::Threading;
use mpi::environment::Universe;

use crate::job::MpiJob;
use crate::transfer::measure_transfer;
use crate::{bench, harmonize, imbalance, trace_correct};

/// One global clock for the ranks of an MPI job.
#[derive(Debug, Parser)]
#[command(
    name = "downbeat-mpi",
    version,
    after_help = "Example:\n  mpirun -np 4 downbeat-mpi sync --algorithm hca3/1000/skampi/100 \\\n    \
                  --check 0,10s --repeat 10"
)]
struct MpiArguments {
    #[command(subcommand)]
    command: MpiCommand,
}

#[derive(Debug, Subcommand)]
enum MpiCommand {
    /// Synchronizes all ranks with each of the given algorithms, and measures the offsets of their clocks afterwards
    Sync(Box<sync::MeasuredSyncOptions>),
    /// Measures the run-times of operations of the MPI library
    Bench(Box<bench::MpiBenchOptions>),
    /// Measures how far apart ranks leave barriers, and the effect on measurements behind these barriers
    Imbalance(Box<imbalance::ImbalanceOptions>),
    /// Measures how far apart ranks return from a meeting at one instant of their global clock, beside MPI_Barrier
    Harmonize(Box<harmonize::HarmonizeOptions>),
    /// Measures the drift between the clocks of the ranks over minutes, and the residuals of linear models of it
    Drift(Box<drift::DriftOptions>),
    /// Keeps the global clock by sessions of a millisecond, and measures how far it is off on all ranks meanwhile
    Keep(Box<keep::KeepOptions>),
    /// Shows the health of the clocks of all nodes, points out odd ones, and measures how far their system times are apart
    Nodes(Box<nodes::NodesOptions>),
    /// Measures how far the system clocks of all ranks are apart, for the traces that other tools record
    Offsets(Box<offsets::OffsetsOptions>),
    /// Corrects the timestamps of a trace, distributed over the ranks, so that no message arrives earlier than possible
    TraceCorrect(Box<trace_correct::MpiTraceCorrectOptions>),
    #[command(flatten)]
    Packaging(PackagingCommand),
}

/// Returns true if an option is given.
fn is_given(option: &str) -> bool {
    env::args_os().skip(1).any(|argument: OsString| {
        let argument = argument.to_string_lossy();
        argument.split('=').next() == Some(option)
    })
}

/// Initializes MPI, for several threads if they are wanted: that makes calls slower, also with one thread. Returns `None` if it is initialized.
pub(crate) fn initialize_mpi() -> Option<Universe> {
    match is_given("--threads") {
        true => {
            let initialized = mpi::initialize_with_threading(Threading::Multiple);
            initialized.map(|(universe, _)| universe)
        }
        false => mpi::initialize(),
    }
}

/// Prepares what MPI reads when it is initialized, which is before the options are parsed, as all ranks agree on errors in them.
pub(crate) fn prepare_mpi() {
    if is_given("--algorithms") {
        #[expect(unsafe_code, reason = "the environment is shared by all threads")]
        // SAFETY: this process has no other thread yet, and has not initialized MPI.
        unsafe {
            BarrierAlgorithms::enable();
        }
    }
}

/// Runs the command. Either all ranks fail or none.
pub(crate) fn run(universe: &Universe, comm: &MpiComm) -> Result<(), Failure> {
    let arguments: MpiArguments = agree_blocking(comm, cli::parse())?;
    // A launcher can start every rank with other options.
    let options = StableHasher::hash_of(&env::args_os().skip(1).collect::<Vec<_>>());
    if !block_on_ready(collective::all_equal(comm, options))? {
        return Err(Failure::Input(
            "the ranks were given different options".to_owned(),
        ));
    }
    let wtime = WtimeClock::new(universe);
    let job = MpiJob { wtime, comm };
    match arguments.command {
        MpiCommand::Sync(options) => sync::run(&options, &job),
        MpiCommand::Bench(options) => bench::run(&options, &job),
        MpiCommand::Imbalance(options) => imbalance::run(&options, &job),
        MpiCommand::Harmonize(options) => harmonize::run(&options, &job),
        MpiCommand::Drift(options) => drift::run(&options, &job, measure_transfer),
        MpiCommand::Keep(options) => keep::run(&options, &job),
        MpiCommand::Nodes(options) => nodes::run(&options, &job),
        MpiCommand::Offsets(options) => offsets::run(&options, &job),
        MpiCommand::TraceCorrect(options) => trace_correct::run(&options, comm),
        MpiCommand::Packaging(command) => agree_blocking(comm, package(&command, comm.rank())),
    }
}

/// Runs a command that does not depend on the ranks, on one of them.
fn package(command: &PackagingCommand, rank: u32) -> Result<(), Failure> {
    match rank {
        0 => command.run(MpiArguments::command()),
        _ => Ok(()),
    }
}
