//! `downbeat trace merge`: one trace from the recordings of all ranks.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use downbeat_clock_core::{ClockModel, Ticks, Timestamp};
use downbeat_common::output::{count, print};
use downbeat_common::trace::{NewTrace, Unfinished, files};
use downbeat_common::{Failure, Outputs, ProgressBar, units};
use downbeat_files::FileError;
use downbeat_recording::{ClockError, Ending, MergeSummary, Recording, rank_files};
use downbeat_timers::MockClock;
use downbeat_timers::skew::{SkewSpec, SkewedClock};

#[derive(Args, Debug)]
#[command(
    after_help = "DIR is the folder that `downbeat record-rank` wrote to. OUT is a new folder for an OTF2 archive, or a text file if \
                  its name ends in .dbt. Such a trace has the times of each rank's own clock, and the sessions in which clocks were compared; `downbeat \
                  trace correct` makes them times of one clock.\n\n\
                  Example:\n  downbeat trace merge run -o measured && \\\n    \
                  downbeat trace correct measured -o corrected --latencies 0"
)]
pub(super) struct TraceMergeOptions {
    /// Folder with the recordings of all ranks
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// New folder for an archive, or file, which is replaced when the trace is complete
    #[arg(short, long = "output", value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    clocks: MergedClocks,
}

/// Clocks that a merged trace has.
#[derive(Args, Debug, Default)]
pub(crate) struct MergedClocks {
    /// Write the times that the synchronized clock of each rank showed while the program
    /// ran, and no sessions: nothing is corrected afterwards
    #[arg(long, conflicts_with_all = ["one_counter", "skew"])]
    live: bool,
    /// Write true times: those of the counter, which all ranks shared because they ran on one machine, also as several emulated hosts
    #[arg(long)]
    one_counter: bool,
    // The same with artificial errors, whose correction can be checked against the true times.
    #[arg(long, value_name = "SPEC", help = format!("{}; implies --one-counter", SkewSpec::HELP))]
    skew: Option<SkewSpec>,
}

pub(super) fn run(options: &TraceMergeOptions) -> Result<(), Failure> {
    merge_into(&options.folder, &options.output, &options.clocks)
}

/// Merges the recordings in a folder, and prints a summary.
pub(crate) fn merge_into(
    folder: &Path,
    output: &Path,
    clocks: &MergedClocks,
) -> Result<(), Failure> {
    let inputs = rank_files(folder).map_err(|why| Failure::Input(why.to_string()))?;
    let _unfinished = Unfinished::of(output)?;
    NewTrace::claim(&mut Outputs::new(inputs), "--output", output)?;
    let read = Recording::read(folder);
    let mut recording = read.map_err(|why| Failure::Input(why.to_string()))?;
    clocks.replace_in(&mut recording)?;
    let mut trace = NewTrace::create(output).map_err(Failure::run)?;
    let progress = ProgressBar::new(recording.records());
    let merged = write_merged(&recording, &mut trace, &progress);
    progress.clear();
    let merged = merged.map_err(failure)?;
    let written = trace.finish()?;
    print(&said(&recording, &merged, &written))
}

/// Writes the definitions and events of a recording.
fn write_merged(
    recording: &Recording,
    trace: &mut NewTrace,
    progress: &ProgressBar,
) -> Result<MergeSummary, FileError> {
    /// Number of events between two reports of progress.
    const STEP: u64 = 1 << 16;
    for definition in recording.definitions() {
        trace.write(&definition)?;
    }
    let mut events = recording.events()?;
    let mut written = 0_u64;
    while let Some(event) = events.next_event()? {
        trace.write(&event)?;
        written += 1;
        if written.is_multiple_of(STEP) {
            progress.reach(events.records());
        }
    }
    Ok(events.summary())
}

impl MergedClocks {
    /// Replaces the local times of the ranks.
    fn replace_in(&self, recording: &mut Recording) -> Result<(), Failure> {
        if self.live {
            return recording
                .keep_live()
                .map_err(|why| Failure::Input(why.to_string()));
        }
        if !self.one_counter && self.skew.is_none() {
            return Ok(());
        }
        let truth = ClockModel::through(Ticks(0), Timestamp::ORIGIN, MockClock::RATE);
        let truth = truth.map_err(Failure::run)?;
        recording.share_counter(|place| {
            let Some(spec) = &self.skew else {
                return Ok(None);
            };
            let skew = spec.for_clock(spec.clock_of_rank(place.process, place.node));
            let clock = SkewedClock::new(MockClock::new(Ticks(0)), truth, skew)
                .map_err(|why| Failure::option("--skew", why))?;
            let error: Arc<ClockError> =
                Arc::new(move |time| clock.deviation(Timestamp::from_nanos(time.as_nanos())));
            Ok(Some(error))
        })
    }
}

fn failure(why: FileError) -> Failure {
    match why {
        // While recordings are merged, only the system can fail.
        FileError::Io { .. } | FileError::Unwritable(_) => Failure::run(why),
        other => Failure::Input(other.to_string()),
    }
}

/// Tells how a rank ended.
fn ending_line(ending: &Ending<'_>) -> String {
    let rank = ending.rank;
    let mut text = match (ending.how, ending.is_finalized) {
        (None, _) => format!("Rank {rank}: its recording has no end\n"),
        (Some("exit code 0"), true) => String::new(),
        // The call may be one of those that are missing.
        (Some("exit code 0"), false) if !ending.is_complete => String::new(),
        (Some("exit code 0"), false) => format!("Rank {rank} ended without MPI_Finalize\n"),
        (Some(how), true) => format!("Rank {rank} ended after MPI_Finalize: {how}\n"),
        (Some(how), false) => format!("Rank {rank} ended early: {how}\n"),
    };
    if ending.lost > 0 {
        let lost = count(ending.lost as usize, "call");
        text += &format!("Rank {rank}: {lost} could not be written\n");
    }
    text
}

fn said(recording: &Recording, merged: &MergeSummary, output: &Path) -> String {
    let sizes = files::all_of(output).into_iter();
    let sizes = sizes.filter_map(|file| Some(fs::metadata(file).ok()?.len()));
    let size: u64 = sizes.sum();
    let mut text = format!(
        "Wrote {}: {}, {}, {} sent, {} received, {} bytes\n",
        output.display(),
        count(recording.size() as usize, "rank"),
        count(merged.calls as usize, "call"),
        count(merged.sent as usize, "message"),
        units::count(merged.received),
        size
    );
    if merged.accesses != [0; 3] {
        let kinds = ["put", "get", "atomic operation"];
        let counts = kinds.iter().zip(merged.accesses);
        let counts = counts.map(|(kind, number)| count(number as usize, kind));
        text += &format!("One-sided: {}\n", counts.collect::<Vec<_>>().join(", "));
    }
    for rank in recording.missing() {
        text += &format!("Missing: rank {rank} left no recording\n");
    }
    for (rank, how) in recording.uninitialized() {
        text += &format!("Missing: rank {rank} did not get through MPI_Init: {how}\n");
    }
    for ending in recording.endings() {
        text += &ending_line(&ending);
    }
    if merged.dropped > 0 {
        text += &format!(
            "Not recorded, because memory or the disk was short: {}\n",
            count(merged.dropped as usize, "call")
        );
    }
    if merged.cut_off > 0 {
        text += &format!(
            "Left out after such calls, for their partners are not known: {} of messages and operations\n",
            count(merged.cut_off as usize, "event")
        );
    }
    text
}
