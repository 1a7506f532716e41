//! `downbeat trace correct`: times of a trace corrected so that they can be true.

use std::path::{Path, PathBuf};
use std::thread;

use clap::Args;
use downbeat_clock_core::Timestamp;
use downbeat_common::Failure;
use downbeat_common::output::{self, print, print_json};
use downbeat_common::trace::{
    Contents, CorrectionOptions, Document, LatencyReport, Movement, Place, Recording, TruthStages, Unfinished,
    Violations, files,
};
use downbeat_sync::postmortem::{ControlledLogicalClock, Deviation, Latencies, Verdict};

use super::page::{PageOptions, Shown};

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
    /// The trace, which stays as it is
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// Where to write the corrected trace: a file, which is replaced when all is done; for an OTF2 archive a new folder
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    correction: CorrectionOptions,
    /// How many threads share the work; the result is the same [default: one for each core]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1024), allow_hyphen_values = true)]
    threads: Option<u32>,
    /// Rewrite all events of an OTF2 archive, rather than only those that clock offsets cannot move apart
    #[arg(long)]
    rewrite: bool,
    /// The same trace with its true times, to say how far they are missed
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Print histograms, too, of how far events are moved and intervals changed
    #[arg(long, conflicts_with = "json")]
    histograms: bool,
    #[command(flatten)]
    page: PageOptions,
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let others: Vec<&Path> = options.truth.iter().map(PathBuf::as_path).collect();
    let _unfinished = Unfinished::of(&options.output)?;
    files::check_corrected("-o", &options.output, &options.input, &others)?;
    options.page.check(others.iter().copied().chain([&*options.input, &*options.output]))?;
    let mut file = options.correction.read(&options.input)?;
    let truth =
        options.truth.as_ref().map(|path| files::read(path, options.correction.matching.matching())).transpose()?;
    let document = options.correct(&mut file, truth.as_ref())?;
    let title = format!("Correction of {}", options.input.display());
    options.page.write(&title, &Shown::correction(&document, &file.names))?;
    if options.json {
        return print_json(&document);
    }
    let mut text = document.text(&options.input, &options.output);
    if options.histograms {
        text += &format!("\n{}", document.deviation.histograms());
    }
    print(&text)
}

impl Options {
    fn correct(&self, file: &mut Recording, truth: Option<&Recording>) -> Result<Document, Failure> {
        let measured: Option<Vec<Vec<Timestamp<_>>>> =
            self.correction.moves_clocks(file).then(|| file.trace.times().into_iter().map(<[_]>::to_vec).collect());
        let (sessions, pre_synchronization) = self.correction.pre_synchronize(file)?;
        let latencies = self.correction.latencies.find(&file.trace);
        let judge = |times: &[&[Timestamp<_>]]| {
            let verdict = Verdict::of(&file.trace, times, &latencies.latencies);
            verdict.map(|verdict| Violations::of(&verdict, &file.names)).map_err(Failure::run)
        };
        let as_measured = measured.map(|times| judge(&slices(&times))).transpose()?;

        let corrected = self.clock(latencies.latencies).forward(&file.trace);
        let mut corrected = corrected.map_err(|why| self.at_fault(&why))?;
        let explicitly_corrected = corrected.jumps().count();
        let passes = corrected.passes().iter().map(Into::into).collect();
        if !self.correction.no_backward {
            corrected.amortize(self.correction.gradient);
        }
        let times = corrected.times();
        let ((found, movement), (pre_synchronized, deviation)) = self.both(
            || (judge(&slices(times)), Movement::between(&file.trace, times, &file.names)),
            || (judge(&file.trace.times()), Deviation::between(&file.trace, times).map_err(Failure::run)),
        );
        let (found, pre_synchronized, deviation) = (found?, pre_synchronized?, deviation?);
        if found.count() > 0 {
            let count = output::count(found.count() as usize, "violation");
            return Err(Failure::Run(format!(
                "{}: {count} are left, which is a mistake of this program",
                self.input.display()
            )));
        }
        let truth = truth.map(|truth| {
            let stages = TruthStages::between(&file.trace, corrected.times(), &truth.trace);
            let why = || format!("{} is another trace than {}", truth.path.display(), file.path.display());
            stages.ok_or_else(|| Failure::option("--truth", why()))
        });
        let truth = truth.transpose()?;
        let place = Place { path: &self.output, rewrite: self.rewrite, workers: self.workers() };
        let archive = file.write_corrected(&place, corrected.times(), &sessions)?;
        Ok(Document {
            schema: "downbeat.trace_correction",
            version: 1,
            contents: Contents::of(&file.trace),
            pre_synchronization,
            latencies: LatencyReport::of(latencies),
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

    fn at_fault(&self, why: &dyn std::fmt::Display) -> Failure {
        Failure::Input(format!("{}: {why}", self.input.display()))
    }

    fn clock(&self, latencies: Latencies) -> ControlledLogicalClock {
        let mut clock = self.correction.clock(latencies);
        clock.workers = self.workers();
        clock
    }

    /// Does both, at once if there are threads for that.
    fn both<A: Send, B: Send>(&self, one: impl FnOnce() -> A, other: impl FnOnce() -> B + Send) -> (A, B) {
        if self.workers() == 1 {
            return (one(), other());
        }
        thread::scope(|scope| {
            let other = scope.spawn(other);
            (one(), other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }

    fn workers(&self) -> usize {
        let cores = || thread::available_parallelism().map_or(1, usize::from);
        self.threads.map_or_else(cores, |threads| threads as usize)
    }
}

fn slices<T>(times: &[Vec<T>]) -> Vec<&[T]> {
    times.iter().map(Vec::as_slice).collect()
}
