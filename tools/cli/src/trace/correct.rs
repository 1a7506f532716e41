//! `downbeat trace correct`: times of a trace corrected so that they can be true.

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
    after_help = "First, clocks are made one by the sessions in which they were compared, as far as the trace has any. \
                  Then events are moved forward by a controlled logical clock, so that every message arrives after it \
                  can have arrived, and no collective operation is left before everyone needed is in it.\n\n\
                  A name that ends in .dbt stands for text, in .dbtb for bytes. NAME.otf2 is the anchor file of an OTF2 \
                  archive; its copy has other clock offsets, and events with other times only where that is needed.\n\n\
                  Examples:\n  downbeat trace generate -o wrong.dbt && downbeat trace correct wrong.dbt -o right.dbt\n  \
                  downbeat trace generate -o wrong.dbtb --truth truth.dbtb && downbeat trace correct wrong.dbtb -o \
                  right.dbtb --truth truth.dbtb --pre-synchronization linear --latencies 200ns,500ns,2us --page \
                  correction.html"
)]
pub(crate) struct Options {
    #[command(flatten)]
    correction: CorrectionOptions,
    /// How many threads share the work; the result is the same [default: one for each core]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1024), allow_hyphen_values = true)]
    threads: Option<u32>,
    /// Read the trace again and again, with nothing in memory but what is under way: for traces larger than memory, of which
    /// every event must come after those that it waits for, whatever their times. The result is the same. If nothing is
    /// said, this is done with files of more than 2 GiB, as far as it can be
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = StreamingOption::Auto, num_args = 0..=1, require_equals = true, default_missing_value = "always", hide_default_value = true)]
    streaming: StreamingOption,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StreamingOption {
    /// If the file is large, there is no truth, and events come in such an order
    Auto,
    /// Or else not at all
    Always,
    /// All events are held in memory
    Never,
}

/// Larger files are read again and again: in memory, their events take about as much again as four times that.
const LARGE: u64 = 2 << 30;

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
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

impl Options {
    /// Whether to read the trace again and again.
    fn streams(&self) -> Result<bool, Failure> {
        let is_file = !files::is_archive(&self.correction.input) && !self.correction.rewrite;
        match (self.streaming, &self.correction.truth) {
            (StreamingOption::Always, _) if !is_file => Err(Failure::option(
                "--streaming",
                "an OTF2 archive is corrected in memory",
            )),
            (StreamingOption::Always, Some(_)) => Err(Failure::option(
                "--truth",
                "it is only compared with a trace in memory, not with --streaming",
            )),
            (StreamingOption::Always, None) => Ok(true),
            (StreamingOption::Never, _) | (StreamingOption::Auto, Some(_)) => Ok(false),
            (StreamingOption::Auto, None) => Ok(is_file
                && fs::metadata(&self.correction.input).is_ok_and(|found| found.len() > LARGE)),
        }
    }

    /// And what locations are called.
    fn correct_in_memory(&self) -> Result<(Document, Vec<String>), Failure> {
        let matching = self.correction.matching.matching();
        let mut file = self.correction.read(self.workers())?;
        let truth = self
            .correction
            .truth
            .as_ref()
            .map(|path| files::read(path, matching))
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

    /// Does both, at once if there are threads for that.
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
