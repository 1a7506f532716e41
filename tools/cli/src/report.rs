//! `downbeat report`: experiments as one HTML page with plots.

mod averages;
mod histogram;
mod launch_places;
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
#[cfg(unix)]
use downbeat_records::analysis::{AnalysisSettings, Average};

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
    let experiments = Experiments {
        all: vec![],
        settings: options.analysis.settings(),
        average: options.of.into(),
        alternative: options.alternative,
    };
    let page = ("-o", &*options.output, options.svg.as_deref());
    write(&options.folders, options.analysis.verify, experiments, page)
}

/// Writes a page about the experiment that was launched in a folder.
#[cfg(unix)]
pub(crate) fn write_after_run(folder: &Path, option: &str, page: &Path) -> Result<(), Failure> {
    let experiments = Experiments {
        all: vec![],
        settings: AnalysisSettings::default(),
        average: Average::Median,
        alternative: Alternative::TwoSided,
    };
    let folders = [folder.to_owned()];
    write(
        &folders,
        VerifyOptions::default(),
        experiments,
        (option, page, None),
    )
}

/// Reads the experiments in these folders, and writes the page that is named by an
/// option, and the folder of its pictures.
fn write(
    folders: &[PathBuf],
    verify: VerifyOptions,
    mut experiments: Experiments,
    (option, output, svg): (&str, &Path, Option<&Path>),
) -> Result<(), Failure> {
    let found = experiments::experiments_in(folders)?;
    // The plan of several variants is in the folder around theirs.
    let all = folders.iter().chain(&found);
    experiments::outputs_about(all).page(option, output, svg)?;
    let mut seen = SeenLaunches::default();
    for (folder, name) in found.iter().zip(measured::short_names(&found)) {
        let launches = seen.read(folder, verify)?.launches;
        experiments.all.push(MeasuredExperiment {
            name,
            command: command(folder),
            folder: folder.clone(),
            analysis: experiments::analyse_launches(folder, &launches, &experiments.settings)?,
            launches,
        });
    }
    let mut page = Page::default();
    let title = sections::fill(&mut page, &experiments);
    page.write(&title, option, output, svg)
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
