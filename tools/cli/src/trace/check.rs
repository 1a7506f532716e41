//! `downbeat trace check`: violations of causality in a trace.

use std::path::{Path, PathBuf};

use clap::Args;
use downbeat_common::cli::VerifyOptions;
use downbeat_common::trace::{
    Contents, DeviationReport, LatencyOption, LatencyReport, MatchingOptions, PageContents,
    PageOptions, Reading, Recording, Violations, files,
};
use downbeat_common::{Failure, Outputs, PrintOptions, ProgressBar, Text, cores, output};
use downbeat_trace::check::Verdict;
use downbeat_trace::deviation::Deviation;
use downbeat_trace::{ArrayStore, Latencies, Trace};
use serde::Serialize;

use super::store::{self, StoreOption};

#[derive(Args, Debug)]
#[command(
    after_help = "Without --latencies, the minimum latency of messages is 0. `downbeat trace correct` prints the latencies that \
                  it used in the form accepted here. The check uses none of the code of the correction.\n\n\
                  Examples:\n  downbeat trace generate -o wrong.dbt && downbeat trace check wrong.dbt\n  \
                  downbeat trace generate -o wrong.dbt && \\\n    \
                  downbeat trace correct wrong.dbt -o right.dbt && \\\n    \
                  downbeat trace check right.dbt --against wrong.dbt"
)]
pub(crate) struct TraceCheckOptions {
    /// Trace to check
    #[arg(value_name = "FILE", value_parser = files::path_parser())]
    file: PathBuf,
    /// Trace from which this one was corrected; only timestamps may differ
    #[arg(long, value_name = "ORIGINAL", value_parser = files::path_parser())]
    against: Option<PathBuf>,
    #[arg(
        long,
        value_name = "LATENCIES",
        help = format!("{} [default: 0]", LatencyOption::HELP),
        allow_hyphen_values = true
    )]
    latencies: Option<LatencyOption>,
    #[command(flatten)]
    matching: MatchingOptions,
    #[command(flatten)]
    verify: VerifyOptions,
    #[command(flatten)]
    print: PrintOptions,
    #[command(flatten)]
    page: PageOptions,
    #[command(flatten)]
    store: StoreOption,
}

/// Report of a check, printed as JSON.
#[derive(Debug, Serialize)]
struct CheckDocument {
    schema: &'static str,
    version: u32,
    contents: Contents,
    latencies: LatencyReport,
    violations: Violations,
    /// First difference from the original trace besides timestamps.
    difference: Option<String>,
    deviation: Option<DeviationReport>,
}

pub(crate) fn run(options: &TraceCheckOptions) -> Result<(), Failure> {
    let traces = || {
        [&*options.file]
            .into_iter()
            .chain(options.against.as_deref())
    };
    let mut outputs = Outputs::new(traces().flat_map(files::all_of));
    options.page.add_to(&mut outputs)?;
    let store = options.store.store(traces(), &options.file)?;
    check(options, &store).map_err(|why| store::failure(&store, why))
}

fn check(options: &TraceCheckOptions, store: &ArrayStore) -> Result<(), Failure> {
    let reading = Reading {
        matching: options.matching.matching(),
        apply_offsets: true,
        checksums: options.verify.checksums(),
        workers: cores(),
        store: store.clone(),
    };
    let progress = ProgressBar::new(0);
    progress.stage(1, 2, "reading and matching");
    let file = Recording::read(&options.file, &reading)?;
    let original = options.against.as_ref();
    let original = original.map(|path| Recording::read(path, &reading));
    let original = original.transpose()?;
    progress.stage(2, 2, "checking");
    let latencies = options.latencies.unwrap_or(LatencyOption::DEFAULT);
    let document = CheckDocument::new(&file, original.as_ref(), latencies)?;
    progress.clear();
    let title = format!("Check of {}", options.file.display());
    let shown = document.shown(options.against.as_deref());
    options.page.write(&title, &shown)?;
    options
        .print
        .print(|| &document, || document.text(options))?;
    document.verdict(&options.file)
}

impl CheckDocument {
    fn new(
        file: &Recording,
        original: Option<&Recording>,
        LatencyOption { given, source }: LatencyOption,
    ) -> Result<Self, Failure> {
        let (trace, names): (&Trace, _) = (&file.trace, &file.source.names);
        let latencies = given.unwrap_or_else(|| Latencies::measured(trace));
        let mut archive = file.source.read(file.source.checksums)?;
        if let Some(Recording { source, .. }) = original {
            archive
                .changed
                .extend(source.read(source.checksums)?.changed);
        }
        let difference = original.map(|original| original.source.first_difference(&file.source));
        let difference = difference.transpose()?.flatten();
        // If the traces differ, they are not compared further.
        let original = original.filter(|_| difference.is_none());
        let times = trace.times();
        let before = original.map_or(trace, |original| &original.trace);
        let verdict = Verdict::new(before, &times, &latencies).map_err(Failure::run)?;
        let deviation = original.map(|original| Deviation::between(&original.trace, &times));
        let deviation = deviation.transpose().map_err(Failure::run)?;
        Ok(Self {
            schema: "downbeat.trace_check",
            version: 1,
            contents: Contents {
                locations: names.len(),
                totals: trace.totals(),
                archive,
            },
            latencies: LatencyReport::new(source, latencies, trace.levels()),
            violations: Violations::new(&verdict, names),
            difference,
            deviation: deviation.map(DeviationReport),
        })
    }

    /// Fails if the trace differs from the original, violates causality, or was changed.
    fn verdict(&self, file: &Path) -> Result<(), Failure> {
        let (wrong, changed) = (self.violations.count(), self.contents.archive.changed.len());
        let why = match &self.difference {
            Some(difference) => return Err(Failure::Run(difference.clone())),
            None if wrong > 0 => output::count(wrong as usize, "violation"),
            None if changed > 0 => output::count(changed, "file") + " with wrong checksums",
            None => return Ok(()),
        };
        Err(Failure::Run(format!("{}: {why}", file.display())))
    }

    fn shown(&self, against: Option<&Path>) -> PageContents<'_> {
        let deviation = self.deviation.as_ref().zip(against);
        PageContents {
            contents: &self.contents,
            latencies: &self.latencies,
            stages: vec![("in the file", &self.violations)],
            deviation: deviation
                .map(|(found, against)| (format!("Since {}", against.display()), found)),
            correction: None,
        }
    }

    fn text(&self, options: &TraceCheckOptions) -> Text {
        let found = &self.violations;
        let mut text = Text::from(self.contents.remarks());
        text += self.contents.archive.damage();
        text += self.latencies.remarks();
        text += format!(
            "{}: {}. Too early for latencies of {}: {}.\n",
            options.file.display(),
            self.contents.counts(),
            self.latencies.text(),
            found.sentence_part()
        );
        if found.disordered() > 0 {
            let [decreasing, merged, reordered] = [found.decreasing, found.merged, found.reordered]
                .map(|number| output::count(number as usize, "event"));
            text += format!(
                "{decreasing} before the one before, {merged} no longer after the one before, \
                 {reordered} before one of another location with the same clock\n"
            );
        }
        if found.count() > 0 {
            text += format!("\nThe first of them:\n{}", found.named());
        }
        if let (Some(deviation), Some(original)) = (&self.deviation, &options.against) {
            text += format!("Since {}, {}\n", original.display(), deviation.sentence());
        }
        text
    }
}
