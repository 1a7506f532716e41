//! `downbeat trace correct`: correction of the timestamps of a trace.

mod streamed;

use std::fs;
use std::thread;

use clap::{Args, ValueEnum};
use downbeat_clock_core::Timestamp;
use downbeat_common::Failure;
use downbeat_common::trace::{
    Contents, CorrectionOptions, Document, LatencyReport, Movement, Place, Recording, TruthStages,
    Violations, files,
};
use downbeat_trace::{ControlledLogicalClock, Deviation, Latencies, Verdict};

#[derive(Args, Debug)]
#[command(
    after_help = "First, all timestamps are mapped to one clock by the sessions in which clocks were compared, if the trace has \
                  any. Then a controlled logical clock moves events forward, so that no message is received before it can \
                  have arrived, and no collective operation ends before all members that it depends on have begun it.\n\n\
                  The name of a file selects its format: .dbt is text, .dbtb binary. NAME.otf2 is the anchor file of an \
                  OTF2 archive; the corrected archive has other clock offsets, and rewritten events only if needed.\n\n\
                  Examples:\n  downbeat trace generate -o wrong.dbt && downbeat trace correct wrong.dbt -o right.dbt\n  \
                  downbeat trace generate -o wrong.dbtb --truth truth.dbtb && downbeat trace correct wrong.dbtb -o \
                  right.dbtb --truth truth.dbtb --pre-synchronization linear --latencies 200ns,500ns,2us --page \
                  correction.html"
)]
pub(crate) struct TraceCorrectOptions {
    #[command(flatten)]
    correction: CorrectionOptions,
    /// Number of threads; the result does not depend on it [default: one per core]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1024), allow_hyphen_values = true)]
    threads: Option<u32>,
    /// Read the trace several times instead of holding all events in memory, for traces larger than memory; the result is
    /// the same. In the file, every event must follow those that it depends on, whatever their timestamps [default: auto]
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = StreamingOption::Auto, num_args = 0..=1, require_equals = true, default_missing_value = "always", hide_default_value = true)]
    streaming: StreamingOption,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StreamingOption {
    /// Stream files of more than 2 GiB, if the order of events allows it and --truth is not given
    Auto,
    /// Stream, or fail if that is not possible
    Always,
    /// Hold all events in memory
    Never,
}

/// Minimum size of files to stream by default; in memory, events take about five times the size of the file.
const LARGE: u64 = 2 << 30;

pub(crate) fn run(options: &TraceCorrectOptions) -> Result<(), Failure> {
    let _unfinished = options.correction.begin()?;
    let streamed = if options.streams()? {
        options.correct_streamed()?
    } else {
        None
    };
    let is_streamed = streamed.is_some();
    let (document, names) = streamed.map_or_else(|| options.correct_in_memory(), Ok)?;
    options.correction.show(&document, &names, is_streamed)
}

impl TraceCorrectOptions {
    /// Returns true if the trace is to be streamed.
    fn streams(&self) -> Result<bool, Failure> {
        let is_file = !files::is_archive(&self.correction.input) && !self.correction.rewrite;
        match (self.streaming, &self.correction.truth) {
            (StreamingOption::Always, _) if !is_file => Err(Failure::option(
                "--streaming",
                "an OTF2 archive cannot be streamed",
            )),
            (StreamingOption::Always, Some(_)) => Err(Failure::option(
                "--truth",
                "cannot be combined with --streaming",
            )),
            (StreamingOption::Always, None) => Ok(true),
            (StreamingOption::Never, _) | (StreamingOption::Auto, Some(_)) => Ok(false),
            (StreamingOption::Auto, None) => Ok(is_file
                && fs::metadata(&self.correction.input).is_ok_and(|found| found.len() > LARGE)),
        }
    }

    /// Corrects the trace in memory; returns the report and the names of the locations.
    fn correct_in_memory(&self) -> Result<(Document, Vec<String>), Failure> {
        let matching = self.correction.matching.matching();
        let mut file = self.correction.read(self.workers())?;
        let truth = self
            .correction
            .truth
            .as_ref()
            .map(|path| Recording::read_with_offsets(path, matching))
            .transpose()?;
        let document = self.correct(&mut file, truth.as_ref())?;
        Ok((document, file.names))
    }

    fn correct(
        &self,
        file: &mut Recording,
        truth: Option<&Recording>,
    ) -> Result<Document, Failure> {
        let measured: Option<Vec<Vec<Timestamp<_>>>> = self
            .correction
            .moves_clocks(file)
            .then(|| file.trace.times().into_iter().map(<[_]>::to_vec).collect());
        let (sessions, pre_synchronization) = self.correction.pre_synchronize(file)?;
        let latencies = self.correction.latencies.find(&file.trace);
        let judge = |times: &[&[Timestamp<_>]]| {
            let verdict = Verdict::new(&file.trace, times, &latencies.latencies);
            verdict
                .map(|verdict| Violations::new(&verdict, &file.names))
                .map_err(Failure::run)
        };
        let as_measured = measured.map(|times| judge(&slices(&times))).transpose()?;

        let clock = self.clock(latencies.latencies);
        let (corrected, pre_synchronized) =
            self.both(|| clock.forward(&file.trace), || judge(&file.trace.times()));
        let mut corrected = corrected.map_err(|why| self.correction.at_fault(&why))?;
        let pre_synchronized = pre_synchronized?;
        let explicitly_corrected = corrected.jumps().count();
        let passes = corrected.passes().iter().map(Into::into).collect();
        if !self.correction.no_backward {
            corrected.amortize(self.correction.gradient);
        }
        let times = corrected.times();
        let write = || {
            let found = judge(&slices(times))?;
            found.check_none_left(&self.correction.input)?;
            let truth = truth.map(|truth| {
                let stages = TruthStages::between(&file.trace, times, &truth.trace);
                stages.ok_or_else(|| TruthStages::not_same_trace(&truth.path, &file.path))
            });
            let truth = truth.transpose()?;
            let place = Place {
                path: &self.correction.output,
                rewrite: self.correction.rewrite,
                workers: self.workers(),
            };
            Ok::<_, Failure>((
                found,
                truth,
                file.write_corrected(&place, times, &sessions)?,
            ))
        };
        let (written, (movement, deviation)) = self.both(write, || {
            let movement = Movement::between(&file.trace, times, &file.names);
            (movement, Deviation::between(&file.trace, times))
        });
        let ((found, truth, archive), deviation) = (written?, deviation.map_err(Failure::run)?);
        Ok(Document {
            schema: "downbeat.trace_correction",
            version: 1,
            contents: Contents::new(&file.trace),
            pre_synchronization,
            latencies: LatencyReport::new(latencies),
            passes,
            explicitly_corrected,
            as_measured: as_measured.unwrap_or_else(|| pre_synchronized.clone()),
            pre_synchronized,
            corrected: found,
            deviation: (&deviation).into(),
            movement,
            truth,
            archive,
        })
    }

    fn clock(&self, latencies: Latencies) -> ControlledLogicalClock {
        let mut clock = self.correction.clock(latencies);
        clock.workers = self.workers();
        clock
    }

    /// Calls both functions, at the same time with more than one thread.
    fn both<A: Send, B: Send>(
        &self,
        one: impl FnOnce() -> A,
        other: impl FnOnce() -> B + Send,
    ) -> (A, B) {
        if self.workers() == 1 {
            return (one(), other());
        }
        thread::scope(|scope| {
            let other = scope.spawn(other);
            (
                one(),
                other
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            )
        })
    }

    fn workers(&self) -> usize {
        self.threads
            .map_or_else(downbeat_common::cores, |threads| threads as usize)
    }
}

fn slices<T>(times: &[Vec<T>]) -> Vec<&[T]> {
    times.iter().map(Vec::as_slice).collect()
}
