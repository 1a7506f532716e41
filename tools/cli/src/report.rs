//! `downbeat report`: experiments as one HTML page with plots.

mod averages;
mod histogram;
pub(crate) mod interval;
mod launch_places;
pub(crate) mod lines;
mod measured;
mod normal_plot;
mod over_time;
mod run_order;
mod sections;
mod shifts;
mod smooth;
mod violin;

use std::path::{Path, PathBuf};

use clap::Args;
use downbeat_common::Failure;
use downbeat_records::analysis::{Analysis, AnalysisSettings, Average};

use crate::experiments::{self, Alternative, AnalysisOptions, AverageOption, SeenLaunches};
use downbeat_common::cli::VerifyOptions;
use downbeat_common::page::Page;
use measured::{Experiments, MeasuredExperiment};

#[derive(Args, Debug)]
#[command(
    after_help = "Plots of observations never show outliers, except the plots in order of measurement, which show all \
                  observations.\n\nExample:\n  downbeat report results/openmpi results/mpich \\\n    \
                  -o report.html --svg pictures"
)]
pub(crate) struct ReportOptions {
    /// Folders of experiments, each compared with the first. A folder without launches stands for the folders in it
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// File for the page, or - for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Folder for a separate SVG file of every plot
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    /// Alternative hypothesis of the comparisons with the first experiment; intervals are
    /// two-sided in any case
    #[arg(long, value_enum, default_value_t = Alternative::TwoSided)]
    alternative: Alternative,
    /// Average of each launch to plot over message sizes and to compare
    #[arg(long, value_enum, default_value_t = AverageOption::Median, value_name = "AVERAGE")]
    of: AverageOption,
    #[command(flatten)]
    analysis: AnalysisOptions,
}

pub(crate) fn run(options: &ReportOptions) -> Result<(), Failure> {
    let report = Report {
        folders: &options.folders,
        settings: options.analysis.settings(),
        verify: options.analysis.verify,
        average: options.of.into(),
        alternative: options.alternative,
    };
    report.write("-o", &options.output, options.svg.as_deref())
}

/// Writes a page about the experiment that was launched in a folder.
#[cfg(unix)]
pub(crate) fn write_after_run(folder: &Path, option: &str, page: &Path) -> Result<(), Failure> {
    let report = Report {
        folders: &[folder.to_owned()],
        settings: AnalysisSettings::default(),
        verify: VerifyOptions::default(),
        average: Average::Median,
        alternative: Alternative::TwoSided,
    };
    report.write(option, page, None)
}

/// Experiments to report on, and their analysis.
struct Report<'a> {
    folders: &'a [PathBuf],
    settings: AnalysisSettings,
    verify: VerifyOptions,
    average: Average,
    alternative: Alternative,
}

impl Report<'_> {
    fn write(self, option: &str, output: &Path, svg: Option<&Path>) -> Result<(), Failure> {
        let folders = experiments::experiments_in(self.folders)?;
        // The plan of several variants is in the folder around theirs.
        let all = self.folders.iter().chain(&folders);
        experiments::outputs_about(all).page(option, output, svg)?;
        let experiments = Experiments {
            all: read(&folders, &self.settings, self.verify)?,
            settings: self.settings,
            average: self.average,
            alternative: self.alternative,
        };
        let mut page = Page::default();
        let title = sections::fill(&mut page, &experiments);
        page.write(&title, option, output, svg)
    }
}

fn read(
    folders: &[PathBuf],
    settings: &AnalysisSettings,
    verify: VerifyOptions,
) -> Result<Vec<MeasuredExperiment>, Failure> {
    let names = measured::short_names(folders);
    let mut seen = SeenLaunches::default();
    let read = |(folder, name): (&PathBuf, String)| {
        let launches = seen.read(folder, verify)?.launches;
        let failed =
            |why: &dyn std::fmt::Display| Failure::Input(format!("{}: {why}", folder.display()));
        let analysis = Analysis::new(&launches, settings).map_err(|why| failed(&why))?;
        if analysis.groups.is_empty() {
            return Err(failed(&"no group is complete"));
        }
        Ok(MeasuredExperiment {
            name,
            command: command(folder),
            folder: folder.clone(),
            launches,
            analysis,
        })
    };
    folders.iter().zip(names).map(read).collect()
}

/// Returns the command that `downbeat run` launched for the records of a folder.
#[cfg(unix)]
fn command(folder: &Path) -> Option<String> {
    // The folder may be `.`, and its plan in the one above.
    crate::run::launched_command(&folder.canonicalize().ok()?)
}

/// There is no `downbeat run` here.
#[cfg(not(unix))]
fn command(_: &Path) -> Option<String> {
    None
}
