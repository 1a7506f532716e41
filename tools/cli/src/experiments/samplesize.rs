//! `downbeat samplesize`: number of observations per launch from which means are normally distributed, as in figure 2 of
//! Hunold 2016.

mod page;

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use downbeat_clock_core::parse_share;
use downbeat_common::cli::VerifyOptions;
use downbeat_common::page::PageOptions;
use downbeat_common::records::{Factors, serialize_factors};
use downbeat_common::{Failure, PrintOptions, ProgressBar, Table};
use downbeat_records::Experiment;
use downbeat_records::GroupKey;
use downbeat_records::analysis::{ObservationsNeeded, Outliers};
use downbeat_records::stats::{MeansOfSize, SampleSizeCheck};
use serde::Serialize;

use super::{OutliersOption, ResultTable, SeenLaunches, option_name, or_dash};
use super::{percentage, protect_records, table_of_groups};

#[derive(Args, Debug)]
#[command(
    after_help = "Random samples of increasing size are drawn from the observations of each launch. The smallest size whose \
                  means pass a normality test, as those of all larger sizes do, is the number of observations that a mean, its \
                  interval and a t-test need; textbooks say 30. Of larger sizes, one fails if its p-value is below the level divided \
                  by the number of sizes. Random samples do not show that calls depend on those before them: `bench --json` states how \
                  many observations count as independent.\n\n\
                  Example:\n  downbeat run -n 3 --out results -- mpirun -np 2 downbeat-mpi bench\n  \
                  downbeat samplesize results -o sizes.html"
)]
pub(crate) struct SampleSizeOptions {
    /// Folder of an experiment
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Sample sizes to test [default: 10, 20, 30, ... 500]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=10_000_000), allow_hyphen_values = true)]
    sizes: Vec<u32>,
    /// Number of samples of each size, whose means are tested
    #[arg(long, value_name = "NUMBER", default_value_t = 500, value_parser = clap::value_parser!(u32).range(3..=5_000), allow_hyphen_values = true)]
    means: u32,
    /// Significance level of the normality test: the probability that normally distributed means fail
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = parse_share, allow_hyphen_values = true)]
    level: f64,
    /// Seed of the random samples, of which each launch draws its own
    #[arg(long, default_value_t = 1, allow_hyphen_values = true)]
    seed: u64,
    /// Treatment of outliers: remove them by Tukey's filter, for each launch separately, or keep them
    #[arg(long, value_enum, default_value_t = OutliersOption::Keep)]
    outliers: OutliersOption,
    #[command(flatten)]
    verify: VerifyOptions,
    #[command(flatten)]
    page: PageOptions,
    #[command(flatten)]
    print: PrintOptions,
}

impl SampleSizeOptions {
    fn outliers(&self) -> &'static str {
        Outliers::from(self.outliers).name()
    }

    fn check(&self) -> SampleSizeCheck {
        let published = SampleSizeCheck::as_published(self.seed);
        let sizes = self.sizes.iter().map(|size| *size as usize).collect();
        SampleSizeCheck {
            sizes: if self.sizes.is_empty() {
                published.sizes
            } else {
                sizes
            },
            means: self.means as usize,
            level: self.level,
            ..published
        }
    }
}

/// Results of each group: names of launches, and the observations that they need.
type NeededByGroup<'a> = BTreeMap<&'a GroupKey, Vec<(&'a str, ObservationsNeeded)>>;

pub(crate) fn run(options: &SampleSizeOptions) -> Result<(), Failure> {
    protect_records(&options.page, [&options.folder])?;
    let experiment = SeenLaunches::default().read(&options.folder, options.verify)?;
    let check = options.check();
    let found = test_launches(options, &experiment, &check)?;
    if found.is_empty() {
        let folder = options.folder.display();
        return Err(Failure::Input(format!("{folder}: no group is complete")));
    }
    let results = || ResultTable {
        table: table(&found),
        notes: untested(&found).chain(extrapolated(&found)).collect(),
        explanation: explanation(&check, options.outliers()),
    };
    options.page.write_or(
        &format!("Sample sizes: {}", options.folder.display()),
        || {
            let groups = found.iter().map(|(key, launches)| (*key, &launches[..]));
            page::page(&check, groups, &results())
        },
        || {
            let (folder, launches) = (options.folder.display(), experiment.launches.len());
            let headline = format!("{folder}: {}\n\n", super::launches(launches));
            options.print.print(
                || report(options, &check, &experiment, &found),
                || results().text(headline),
            )
        },
    )
}

/// Returns a table with a row for each group.
fn table(found: &NeededByGroup<'_>) -> Table {
    let at = |launches: &[_], which: fn(usize) -> usize| {
        let sizes = passing(launches);
        or_dash(sizes.get(which(sizes.len())).map(ToString::to_string))
    };
    table_of_groups(found, |(key, _)| key)
        .column("launches", |(_, launches)| launches.len().to_string())
        .column("observations", |(_, launches)| {
            let fewest = launches.iter().map(|(_, needed)| needed.observations).min();
            fewest.unwrap_or(0).to_string()
        })
        .column("that pass", |(_, launches)| {
            passing(launches).len().to_string()
        })
        .column("from, least", |(_, launches)| at(launches, |_| 0))
        // The median is a size that was tested, hence the upper one of two in the middle.
        .column("median", |(_, launches)| at(launches, |count| count / 2))
        .column("most", |(_, launches)| {
            at(launches, |count| count.saturating_sub(1))
        })
        .named_by(3)
}

fn test_launches<'a>(
    options: &SampleSizeOptions,
    experiment: &'a Experiment,
    check: &SampleSizeCheck,
) -> Result<NeededByGroup<'a>, Failure> {
    let (folder, outliers) = (options.folder.as_path(), options.outliers.into());
    let launches = experiment.launches.iter();
    let groups: usize = launches.map(|(_, launch)| launch.groups.len()).sum();
    let progress = ProgressBar::new(groups as u64);
    let mut tested = 0;
    let mut found = NeededByGroup::new();
    for (name, launch) in &experiment.launches {
        for group in &launch.groups {
            progress.reach(tested);
            progress.say(&format!("{name}: {}", group.key));
            tested += 1;
            let needed = ObservationsNeeded::new(name, group, check, outliers, launch.clock_step());
            let needed =
                needed.map_err(|why| Failure::Input(format!("{}: {why}", folder.display())))?;
            found
                .entry(&group.key)
                .or_default()
                .push((name.as_str(), needed));
        }
    }
    Ok(found)
}

/// Returns the size from which on all pass.
fn passing_size(needed: &ObservationsNeeded) -> Option<usize> {
    Some(needed.smallest.as_ref().ok()?.as_ref()?.size())
}

/// Returns the sizes from which on all pass, ascending.
fn passing(launches: &[(&str, ObservationsNeeded)]) -> Vec<usize> {
    let mut sizes: Vec<usize> = launches
        .iter()
        .filter_map(|(_, needed)| passing_size(needed))
        .collect();
    sizes.sort_unstable();
    sizes
}

/// Returns notes on launches that cannot be tested.
fn untested(found: &NeededByGroup<'_>) -> impl Iterator<Item = String> {
    let of_group = |(key, launches): (&&GroupKey, &Vec<(&str, ObservationsNeeded)>)| {
        let untested = launches.iter().filter_map(|(name, needed)| {
            let why = needed.smallest.as_ref().err()?;
            Some(format!("{key}: {name} cannot be tested: {why}"))
        });
        untested.collect::<Vec<_>>()
    };
    found.iter().flat_map(of_group)
}

/// Returns notes on launches with fewer observations than their sizes: larger samples
/// repeat observations.
fn extrapolated(found: &NeededByGroup<'_>) -> impl Iterator<Item = String> {
    let is_beyond = |(_, needed): &&(&str, ObservationsNeeded)| {
        passing_size(needed).is_some_and(|size| size > needed.observations)
    };
    found.iter().filter_map(move |(key, launches)| {
        let beyond: Vec<&str> = launches.iter().filter(is_beyond).map(|(name, _)| *name).collect();
        (!beyond.is_empty()).then(|| {
            format!(
                "{key}: extrapolated beyond the observations of {}: larger samples repeat some of them",
                beyond.join(", ")
            )
        })
    })
}

/// Explains the columns of the table.
fn explanation(check: &SampleSizeCheck, outliers: &str) -> String {
    format!(
        "Observations: minimum over launches. That pass: number of launches in which the means pass the test from some size on.\n\
         From: that size in these launches: minimum, median and maximum.\n\
         Tested: {}; {} means of each, drawn with seed {}, for each launch separately; Shapiro-Wilk test at level {}.\n\
         Outliers: {}.\n",
        sizes(&check.sizes),
        check.means,
        check.seed,
        percentage(check.level),
        outliers
    )
}

fn sizes(sizes: &[usize]) -> String {
    /// Maximum number of sizes listed in full.
    const SHOWN: usize = 8;
    let names: Vec<String> = sizes.iter().map(ToString::to_string).collect();
    match &names[..] {
        [first, second, .., last] if names.len() > SHOWN => {
            format!("{first}, {second}, ... {last}")
        }
        all => all.join(", "),
    }
}

/// Report of `downbeat samplesize` in JSON.
#[derive(Debug, Serialize)]
struct SampleSizeReport<'a> {
    schema: &'static str,
    version: u32,
    folder: String,
    outliers: String,
    quartiles: &'static str,
    #[serde(flatten)]
    check: &'a SampleSizeCheck,
    #[serde(serialize_with = "serialize_factors")]
    factors: &'a Factors,
    groups: Vec<SampleSizeGroupReport<'a>>,
}

#[derive(Debug, Serialize)]
struct SampleSizeGroupReport<'a> {
    #[serde(flatten)]
    key: &'a GroupKey,
    launches: Vec<SampleSizeLaunchReport<'a>>,
}

#[derive(Debug, Serialize)]
struct SampleSizeLaunchReport<'a> {
    launch: &'a str,
    observations: usize,
    /// Size from which on the means pass the normality test.
    smallest: Option<usize>,
    /// P-value of the normality test at that size.
    normality_p: Option<f64>,
    /// Reason why the launch cannot be tested.
    untested: Option<String>,
}

fn report<'a>(
    options: &SampleSizeOptions,
    check: &'a SampleSizeCheck,
    experiment: &'a Experiment,
    found: &'a NeededByGroup<'a>,
) -> SampleSizeReport<'a> {
    let launch = |(name, needed): &'a (&'a str, ObservationsNeeded)| {
        let passes = needed.smallest.as_ref().ok().and_then(Option::as_ref);
        SampleSizeLaunchReport {
            launch: name,
            observations: needed.observations,
            smallest: passes.map(MeansOfSize::size),
            normality_p: passes.map(|means| means.normality().p),
            untested: needed.smallest.as_ref().err().map(ToString::to_string),
        }
    };
    let group = |(key, launches): (&&'a GroupKey, &'a Vec<_>)| SampleSizeGroupReport {
        key,
        launches: launches.iter().map(launch).collect(),
    };
    SampleSizeReport {
        schema: "downbeat.sample_sizes",
        version: 1,
        folder: options.folder.display().to_string(),
        outliers: option_name(&options.outliers),
        quartiles: super::QUARTILES,
        check,
        factors: experiment.factors(),
        groups: found.iter().map(group).collect(),
    }
}
