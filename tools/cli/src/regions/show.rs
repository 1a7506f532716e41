//! `downbeat regions show`: saved reports as text, or as an HTML page.

use std::path::{Path, PathBuf};

use clap::Args;
use downbeat_common::cli::{VerifyOptions, unreadable};
use downbeat_common::output::print_json;
use downbeat_common::{Failure, Outputs, Text};
use downbeat_regions::{ProfileReport, TextOptions};

use super::page;

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  downbeat regions show run.json\n  downbeat regions show run.json -o regions.html\n  \
                  downbeat regions show --merge atmosphere.json ocean.json"
)]
pub(crate) struct RegionsShowOptions {
    /// Saved reports
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// File for an HTML page with plots instead of the text, or - for standard output
    #[arg(short, long, value_name = "FILE", conflicts_with = "json")]
    output: Option<PathBuf>,
    /// Folder for a separate SVG file of every plot of the page
    #[arg(long, value_name = "DIR", requires = "output")]
    svg: Option<PathBuf>,
    /// Merge all reports into one: the ranks of each program follow those of the one before
    #[arg(long)]
    merge: bool,
    /// Maximum number of regions, longest first, to show in detail; 0 for the summary only [default: all]
    #[arg(long, value_name = "NUMBER")]
    details: Option<usize>,
    /// Maximum number of rank ranges, such as 0-15 or 0-60:4, to list for each group of ranks; others are counted
    #[arg(long, value_name = "NUMBER", default_value_t = TextOptions::default().most_runs)]
    runs: usize,
    #[command(flatten)]
    verify: VerifyOptions,
    /// Print JSON: the report, or a list of reports
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &RegionsShowOptions) -> Result<(), Failure> {
    if let Some(output) = &options.output {
        Outputs::new(&options.files).page("-o", output, options.svg.as_deref())?;
    }
    let reports = options
        .files
        .iter()
        .map(|file| load(file, options.verify))
        .collect::<Result<Vec<_>, _>>()?;
    let reports = if options.merge {
        vec![merged(&options.files, reports)?]
    } else {
        reports
    };
    if let Some(output) = &options.output {
        let named: Vec<_> = options.names().into_iter().zip(reports).collect();
        return page::build(&named, &options.text()).write(
            &page::title(&named),
            "-o",
            output,
            options.svg.as_deref(),
        );
    }
    match &*reports {
        [one] if options.json => print_json(one),
        several if options.json => print_json(&several),
        [one] => Text::from(one.text(&options.text())).print(),
        several => Text::from(joined_text(&options.files, several, &options.text())).print(),
    }
}

impl RegionsShowOptions {
    /// Names of the reports: the paths of their files.
    fn names(&self) -> Vec<String> {
        let names: Vec<String> = self
            .files
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        if self.merge {
            vec![names.join(" and ")]
        } else {
            names
        }
    }

    fn text(&self) -> TextOptions {
        TextOptions {
            most_runs: self.runs,
            most_details: self.details.unwrap_or(usize::MAX),
        }
    }
}

pub(super) fn load(file: &Path, verify: VerifyOptions) -> Result<ProfileReport, Failure> {
    ProfileReport::load(file, verify.checksums()).map_err(|why| Failure::Input(unreadable(why)))
}

fn merged(files: &[PathBuf], reports: Vec<ProfileReport>) -> Result<ProfileReport, Failure> {
    let mut named = files.iter().zip(reports);
    let (first, report) = named
        .next()
        .ok_or_else(|| Failure::Input("no report given".to_owned()))?;
    named.try_fold(report, |all, (file, report)| {
        let failed =
            |why| Failure::Input(format!("{} and {}: {why}", first.display(), file.display()));
        all.merge(report).map_err(failed)
    })
}

fn joined_text(files: &[PathBuf], reports: &[ProfileReport], options: &TextOptions) -> String {
    let shown = files
        .iter()
        .zip(reports)
        .map(|(file, report)| format!("{}\n\n{}", file.display(), report.text(options)));
    shown.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_regions::{Overhead, Profile, RegionProfile, ReportRemarks};
    use downbeat_timers::Duration;

    fn report(tick: i64) -> ProfileReport {
        let remarks = ReportRemarks {
            running: 1,
            ..ReportRemarks::default()
        };
        let region = RegionProfile {
            remarks,
            ..RegionProfile::new("step")
        };
        ProfileReport::new(&Profile::new(
            "clock",
            Duration::from_nanos(tick),
            Overhead::default(),
            vec![region],
        ))
    }

    #[test]
    fn reports_are_named_and_can_be_merged() {
        let files = [PathBuf::from("a.json"), PathBuf::from("b.json")];
        let text = joined_text(&files, &[report(1), report(1)], &TextOptions::default());
        assert!(
            text.starts_with("a.json\n\n*** profile for 1 task ***\n"),
            "{text}"
        );
        assert!(
            text.contains("\n\nb.json\n\n*** profile for 1 task ***\n"),
            "{text}"
        );
        assert_eq!(merged(&files, vec![report(1), report(1)]).unwrap().ranks, 2);
        let Err(Failure::Input(why)) = merged(&files, vec![report(1), report(1_000)]) else {
            panic!("merged")
        };
        assert_eq!(
            why,
            "a.json and b.json: a tick is 1 ns in one report, and 1.000 us in the other"
        );
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let Err(Failure::Input(why)) =
            load(Path::new("/no/such/report.json"), VerifyOptions::default())
        else {
            panic!("loaded")
        };
        assert!(why.starts_with("/no/such/report.json: "), "{why}");
    }
}
