//! `downbeat trace check`: violations of causality in a trace.

use std::path::{Path, PathBuf};

use clap::Args;
use downbeat_common::cli::VerifyOptions;
use downbeat_common::trace::{
    Contents, DeviationReport, LatencyOption, LatencyReport, LatencySetting, MatchingOptions,
    PageContents, PageOptions, Reading, Recording, Violations, files,
};
use downbeat_common::{Failure, Outputs, PrintOptions, ProgressBar, Text, output};
use downbeat_trace::Latencies;
use downbeat_trace::check::Verdict;
use downbeat_trace::deviation::Deviation;
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
    let matching = options.matching.matching();
    let inputs = [&*options.file]
        .into_iter()
        .chain(options.against.as_deref());
    options
        .page
        .add_to(&mut Outputs::new(inputs.flat_map(files::all_of)))?;
    let traces = [&options.file].into_iter().chain(&options.against);
    let traces = traces.map(PathBuf::as_path);
    let store = options.store.store(traces, &options.file)?;
    let mut reading = Reading::with_offsets(matching, options.verify.checksums());
    reading.store = store.clone();
    check(options, &reading).map_err(|why| store::failure(&store, why))
}

fn check(options: &TraceCheckOptions, reading: &Reading) -> Result<(), Failure> {
    let progress = ProgressBar::new(0);
    progress.stage(1, 2, "reading and matching");
    let file = Recording::read(&options.file, reading)?;
    let original = options
        .against
        .as_ref()
        .map(|path| Recording::read(path, reading))
        .transpose()?;
    progress.stage(2, 2, "checking");
    let document = look(&file, original.as_ref(), options.latencies.as_ref())?;
    progress.clear();
    let title = format!("Check of {}", options.file.display());
    options.page.write(
        &title,
        &document.shown(&file.source.names, options.against.as_deref()),
    )?;
    let text = || document.text(options);
    options.print.print(|| &document, text)?;
    let wrong = document.violations.count();
    let changed = document.contents.changed.len();
    let file = options.file.display();
    match document.difference {
        Some(difference) => Err(Failure::Run(difference)),
        None if wrong > 0 => Err(Failure::Run(format!(
            "{file}: {}",
            output::count(wrong as usize, "violation")
        ))),
        None if changed > 0 => Err(Failure::Run(format!(
            "{file}: {} with wrong checksums",
            output::count(changed, "file")
        ))),
        None => Ok(()),
    }
}

fn look(
    file: &Recording,
    original: Option<&Recording>,
    latencies: Option<&LatencyOption>,
) -> Result<CheckDocument, Failure> {
    let names = &file.source.names;
    let measured = || Latencies::measured(file.trace());
    let latencies = latencies.map_or(LatencySetting::DEFAULT, |option| {
        option.setting(option.given().unwrap_or_else(measured))
    });
    let difference = original
        .map(|original| original.source.first_difference(&file.source))
        .transpose()?
        .flatten();
    // If the traces differ, they are not compared further.
    let original = original.filter(|_| difference.is_none());
    let times = file.trace().times();
    let before = original.map_or(file.trace(), Recording::trace);
    let verdict = Verdict::new(before, &times, &latencies.latencies).map_err(Failure::run)?;
    let deviation = original
        .map(|original| Deviation::between(original.trace(), &times))
        .transpose();
    let deviation = deviation.map_err(Failure::run)?;
    Ok(CheckDocument {
        schema: "downbeat.trace_check",
        version: 1,
        contents: Contents::new(names.len(), &file.trace().totals(), &file.source.read()?),
        latencies: LatencyReport::new(latencies, file.trace().levels()),
        violations: Violations::new(&verdict, names),
        difference,
        deviation: deviation.as_ref().map(Into::into),
    })
}

impl CheckDocument {
    fn shown<'a>(&'a self, names: &'a [String], against: Option<&Path>) -> PageContents<'a> {
        PageContents {
            contents: &self.contents,
            conditions: String::new(),
            latencies: &self.latencies,
            stages: vec![("in the file", &self.violations)],
            corrected: None,
            passes: &[],
            since: against
                .map(|against| format!("Since {}", against.display()))
                .unwrap_or_default(),
            deviation: self.deviation.as_ref(),
            truth: None,
            names,
        }
    }

    fn text(&self, options: &TraceCheckOptions) -> Text {
        let Self {
            contents,
            latencies,
            violations: found,
            deviation,
            ..
        } = self;
        let mut text = Text::from(contents.remarks());
        text += latencies.remarks();
        text += format!(
            "{}: {}. Too early for latencies of {}: {}.\n",
            options.file.display(),
            contents.counts(),
            latencies.text(),
            found.sentence_part()
        );
        if found.disordered() > 0 {
            text += format!(
                "{} before the one before, {} no longer after the one before, {} before one of \
                 another location with the same clock\n",
                output::count(found.decreasing as usize, "event"),
                output::count(found.merged as usize, "event"),
                output::count(found.reordered as usize, "event")
            );
        }
        if found.count() > 0 {
            text += format!("\nThe first of them:\n{}", found.named());
        }
        if let (Some(deviation), Some(original)) = (deviation, &options.against) {
            text += format!("Since {}, {}\n", original.display(), deviation.sentence());
        }
        text
    }
}
