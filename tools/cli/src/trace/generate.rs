//! `downbeat trace generate`: synthetic traces with known true times.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use downbeat_clock_core::{Duration, Timestamp, parse_share};
use downbeat_common::cli::whole_number;
use downbeat_common::output::print;
use downbeat_common::trace::{NewTrace, Unfinished, parse_latencies};
use downbeat_common::{Failure, Outputs, cli};
use downbeat_trace::Latencies;
use downbeat_trace::formats::Item;
use downbeat_trace::generate::{SyntheticEvent, SyntheticProgram, SyntheticTraffic};
use downbeat_trace::presync::ClockSample;

use super::convert::contents;
use crate::memory;

#[derive(Args, Debug)]
#[command(
    after_help = "Equal options generate equal traces. The clock of the first node is exact.\n\n\
                  Examples:\n  downbeat trace generate -o wrong.dbt\n  \
                  downbeat trace generate -o cluster --truth cluster-truth \\\n    \
                  --nodes 8 --processes 4 --events 1000000 --sessions 5 --seed 7"
)]
pub(crate) struct TraceGenerateOptions {
    /// Output: text if the name ends in .dbt, or else a new folder for an OTF2 archive
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// File or new folder for the same trace with true timestamps
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
    /// Number of nodes, each with its own clock
    #[arg(long, value_name = "NUMBER", default_value_t = 4, value_parser = whole_number::<u32>(1..=MOST_LOCATIONS), allow_hyphen_values = true)]
    nodes: u32,
    /// Number of processes per node
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = whole_number::<u32>(1..=MOST_LOCATIONS), allow_hyphen_values = true)]
    processes: u32,
    /// Number of threads per process, one of which communicates
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = whole_number::<u32>(1..=MOST_LOCATIONS), allow_hyphen_values = true)]
    threads: u32,
    /// Approximate number of events
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000, value_parser = whole_number::<u64>(0..=u64::MAX), allow_hyphen_values = true)]
    events: u64,
    /// Run-time of the program
    #[arg(long, value_name = "DURATION", default_value = "20min", value_parser = cli::positive, allow_hyphen_values = true)]
    duration: Duration,
    /// Time without events at the begin of the program, and again at its end, as if only a part were traced
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = cli::not_negative, allow_hyphen_values = true)]
    idle: Duration,
    /// Communication pattern
    #[arg(long, value_enum, default_value_t = TrafficOption::Pairs, value_name = "TRAFFIC")]
    traffic: TrafficOption,
    /// Number of rounds of messages between collective operations; 0 for no collective operations
    #[arg(long, value_name = "ROUNDS", default_value_t = 20, value_parser = whole_number::<u32>(0..=u32::MAX.into()), allow_hyphen_values = true)]
    collective_every: u32,
    /// Number of rounds of messages between starts of threads; 0 for no thread starts
    #[arg(long, value_name = "ROUNDS", default_value_t = 0, value_parser = whole_number::<u32>(0..=u32::MAX.into()), allow_hyphen_values = true)]
    fork_every: u32,
    /// Send messages twice and post their receives first, overlap non-blocking collective operations, let threads wait for signals
    #[arg(long)]
    asynchronous: bool,
    /// Minimum latencies of messages: one time for all, or three, for messages within a
    /// process, within a node, and between nodes
    #[arg(long, value_name = "DURATIONS", value_parser = parse_latencies, default_value = "200ns,500ns,2us", allow_hyphen_values = true)]
    latencies: Latencies,
    /// Mean delay of messages in addition to the minimum latency
    #[arg(long, value_name = "DURATION", default_value = "500ns", value_parser = cli::not_negative, allow_hyphen_values = true)]
    jitter: Duration,
    /// Number of sessions in which clocks are compared
    #[arg(long, value_name = "NUMBER", default_value_t = 2, value_parser = whole_number::<u32>(0..=u32::MAX.into()), allow_hyphen_values = true)]
    sessions: u32,
    /// Number of samples per session
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = whole_number::<u32>(0..=u32::MAX.into()), allow_hyphen_values = true)]
    samples: u32,
    /// Mean error of a sample
    #[arg(long, value_name = "DURATION", default_value = "500ns", value_parser = cli::not_negative, allow_hyphen_values = true)]
    noise: Duration,
    /// Maximum share of messages received too early by the pre-synchronized clocks; at most about a half is possible
    #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value = "50%", allow_hyphen_values = true)]
    violated: f64,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 1, value_parser = whole_number::<u64>(0..=u64::MAX), allow_hyphen_values = true)]
    seed: u64,
}

/// Most locations of a trace, whose places and clocks are in memory.
const MOST_LOCATIONS: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TrafficOption {
    /// Each process sends to the next one
    Ring,
    /// Random pairs of processes
    Pairs,
    /// Each process sends to its neighbours in a grid
    Stencil,
}

pub(crate) fn run(options: &TraceGenerateOptions) -> Result<(), Failure> {
    let locations = [options.nodes, options.processes, options.threads].map(u64::from);
    let locations = locations.into_iter().fold(1, u64::saturating_mul);
    if locations > MOST_LOCATIONS {
        let why = format!("expected at most {MOST_LOCATIONS} threads in all, not {locations}");
        return Err(Failure::option("--nodes, --processes, --threads", why));
    }
    let program = options.program();
    program.validate()?;
    // All samples are in memory.
    let samples = u64::from(options.sessions) * u64::from(options.samples);
    let bytes = samples
        .saturating_mul(locations - 1)
        .saturating_mul(size_of::<ClockSample>() as u64);
    memory::require("--samples", bytes)?;
    let mut outputs = Outputs::default();
    NewTrace::claim(&mut outputs, "-o", &options.output)?;
    if let Some(truth) = &options.truth {
        NewTrace::claim(&mut outputs, "--truth", truth)?;
    }
    let events = write(&program, &options.output, false)?;
    if let Some(truth) = &options.truth {
        write(&program, truth, true)?;
    }
    print(&contents(&options.output, locations, events))
}

impl TraceGenerateOptions {
    fn program(&self) -> SyntheticProgram {
        let program = SyntheticProgram {
            processes: self.processes,
            threads: self.threads,
            duration: self.duration,
            idle: self.idle,
            traffic: match self.traffic {
                TrafficOption::Ring => SyntheticTraffic::Ring,
                TrafficOption::Pairs => SyntheticTraffic::Pairs,
                TrafficOption::Stencil => SyntheticTraffic::Stencil,
            },
            collective_every: self.collective_every,
            fork_every: self.fork_every,
            asynchronous: self.asynchronous,
            latencies: self.latencies,
            jitter: self.jitter,
            sessions: self.sessions,
            samples: self.samples,
            noise: self.noise,
            violated: self.violated,
            seed: self.seed,
            ..SyntheticProgram::new(self.nodes, 0)
        };
        program.with_events(self.events)
    }
}

/// Writes the trace of a program, and returns its number of events. Timestamps are true
/// ones, or else those of the clocks of locations, with the sessions in which they were
/// compared.
fn write(program: &SyntheticProgram, path: &Path, is_true: bool) -> Result<u64, Failure> {
    let _unfinished = Unfinished::of(path)?;
    let mut writer = NewTrace::create(path).map_err(Failure::run)?;
    let mut write = |item: &Item<'_>| writer.write(item).map_err(Failure::run);
    write_locations(program, &mut write)?;
    for members in program.communicators() {
        let members: Vec<u32> = members.iter().map(|member| member.index() as u32).collect();
        write(&Item::Communicator { members: &members })?;
    }
    if !is_true {
        write_sessions(program, &mut write)?;
    }
    let mut events = 0;
    program.run(|found: SyntheticEvent| {
        events += 1;
        let item = Item::Event {
            location: found.location.into(),
            time: match is_true {
                true => found.truth,
                false => Timestamp::from_nanos(found.local.as_nanos()),
            },
            event: found.event,
        };
        write(&item)
    })?;
    writer.finish()?;
    Ok(events)
}

/// Writes the locations: the first thread of a process is its rank.
fn write_locations(
    program: &SyntheticProgram,
    write: &mut impl FnMut(&Item<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let ranks = program.nodes * program.processes;
    let mut threads = vec![0_u32; ranks as usize];
    for place in program.places() {
        let (rank, thread) = (place.process, &mut threads[place.process as usize]);
        match *thread {
            0 => write(&Item::Location {
                place,
                name: &format!("rank {rank}"),
            })?,
            thread => write(&Item::Thread {
                rank,
                name: &format!("rank {rank}, thread {thread}"),
            })?,
        }
        *thread += 1;
    }
    Ok(())
}

fn write_sessions(
    program: &SyntheticProgram,
    write: &mut impl FnMut(&Item<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for (location, sessions) in (0..).zip(program.sessions()?) {
        for (session, samples) in (0..).zip(sessions) {
            for sample in samples {
                write(&Item::Sample {
                    location,
                    session,
                    local: sample.at,
                    master: sample.image,
                })?;
            }
        }
    }
    Ok(())
}
