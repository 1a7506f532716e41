//! Second part of the demonstration: measurements between the same threads, with the same skewed clocks.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fs, process};

use clap::{Args, Parser};
use downbeat_common::Failure;
use downbeat_common::output::{count, time_within};
use downbeat_common::{Table, Text};
use downbeat_files::Checksums;
use downbeat_records::GroupKey;
use downbeat_records::stats::Sample;
use downbeat_records::{Experiment, read_experiment};
use downbeat_timers::cores::allowed_cores;

use crate::{bench, report};

/// The usual scheme, and the one that a global clock makes possible, with its further options: a synchronization that is
/// accurate enough for a tenth of a second.
const SCHEMES: [(&str, &[&str]); 2] = [
    ("ms1", &[]),
    ("round-time", &["--sync", "hca3/500/skampi/50/weighted"]),
];

const OPERATIONS: [&str; 4] = ["ping-pong", "barrier", "bcast", "allreduce"];

/// Number of launches of each scheme: with five, a difference can be significant; with three, it cannot.
const LAUNCHES: usize = 5;

/// Time slice of each operation in each launch.
const TIME_SLICE: &str = "25ms";

/// Measures; returns a text with the results and the folder that holds them.
pub(super) fn run(ranks: u32, skew: &str) -> Result<Text, Failure> {
    let cores = allowed_cores().len();
    if cores < ranks as usize {
        return Ok(too_crowded(&format!(
            "there is only {}",
            count(cores, "core")
        )));
    }
    let folder = new_folder()?;
    for number in 1..=LAUNCHES {
        for scheme in SCHEMES {
            let options = options(&folder, ranks, skew, scheme, number)?;
            match retry(|| bench::measure(&options)) {
                Ok(_) => {}
                Err(Failure::Run(why)) => {
                    // No record is complete.
                    let _ = fs::remove_dir_all(&folder);
                    return Ok(too_crowded(&why));
                }
                Err(why) => return Err(why),
            }
        }
    }
    let read = |(scheme, _)| {
        read_experiment(&folder.join(scheme), Checksums::Verify).map_err(Failure::run)
    };
    let found = SCHEMES
        .into_iter()
        .map(read)
        .collect::<Result<Vec<_>, _>>()?;
    let page = write_page(&folder)?;
    let [(a, _), (b, _)] = SCHEMES;
    let mut text = render(ranks, &found);
    text += format!(
        "\nAll observations are kept. A page with plots of them, and a comparison of the two schemes:\n\n  {}\n  \
         cd {} && downbeat compare {a} {b}\n",
        page.display(),
        folder.display()
    );
    Ok(text)
}

/// Number of attempts at a measurement: a busy machine can spoil a short one.
const ATTEMPTS: u32 = 5;

/// Returns the result of the first attempt that succeeds, or of the last one.
pub(super) fn retry<T>(mut attempt: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
    let mut result = attempt();
    for _ in 1..ATTEMPTS {
        if result.is_err() {
            result = attempt();
        }
    }
    result
}

/// Writes the page of both experiments.
fn write_page(folder: &Path) -> Result<PathBuf, Failure> {
    let page = folder.join("report.html");
    let folders = SCHEMES.map(|(scheme, _)| folder.join(scheme).into_os_string());
    let words = ["report".into()]
        .into_iter()
        .chain(folders)
        .chain(["-o".into(), page.clone().into()]);
    report::run(&from_words(words)?)?;
    Ok(page)
}

/// Parses options as if a user had typed them.
pub(super) fn from_words<O: Args>(
    words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<O, Failure> {
    #[derive(Parser)]
    struct ParsedOptions<O: Args> {
        #[command(flatten)]
        options: O,
    }
    ParsedOptions::try_parse_from(words)
        .map(|line| line.options)
        .map_err(Failure::run)
}

/// Makes a temporary folder with a unique name, so that nothing is overwritten.
fn new_folder() -> Result<PathBuf, Failure> {
    let name = format!(
        "downbeat-{}-{}",
        downbeat_common::now().replace([':', 'Z'], ""),
        process::id()
    );
    let folder = env::temp_dir().join(name);
    fs::create_dir(&folder)
        .map_err(|why| Failure::Run(format!("cannot create {}: {why}", folder.display())))?;
    Ok(folder)
}

/// Options of one launch of `downbeat bench`.
fn options(
    folder: &Path,
    ranks: u32,
    skew: &str,
    (scheme, more): (&str, &[&str]),
    number: usize,
) -> Result<bench::ThreadBenchOptions, Failure> {
    let mut words: Vec<OsString> = [
        "bench",
        "--operation",
        &OPERATIONS.join(","),
        "--ranks",
        &ranks.to_string(),
    ]
    .into_iter()
    .chain([
        "--skew",
        skew,
        "--scheme",
        scheme,
        "--time-slice",
        TIME_SLICE,
    ])
    .chain(["--launch", &format!("launch-{number:03}")])
    .chain(more.iter().copied())
    .map(Into::into)
    .collect();
    words.extend(["--out".into(), folder.join(scheme).into()]);
    from_words(words)
}

fn render(ranks: u32, found: &[Experiment]) -> Text {
    let mut table = Table::new(["operation", "by ms1", "by round-time"]);
    for operation in OPERATIONS {
        let cell = |experiment| medians(experiment, operation, ranks).unwrap_or_default();
        table.row(
            [operation.to_owned()]
                .into_iter()
                .chain(found.iter().map(cell))
                .collect::<Vec<_>>(),
        );
    }
    let mut text = Text::from(format!(
        "\nThe same threads, with these clocks, now measure operations: {LAUNCHES} launches with each scheme.\n\
         ms1 starts the ranks by a barrier, which they leave at different times, and takes the longest time of any rank.\n\
         round-time starts all ranks at one time of the global clock, and takes the time from the first start to the last end.\n\n"
    ));
    text += table;
    text += "\nMedian of the launches' medians [minimum, maximum].\n";
    text
}

/// Median and range of the launches' medians.
fn medians(experiment: &Experiment, operation: &str, ranks: u32) -> Option<String> {
    let of_operation = |key: &GroupKey| key.operation == operation && key.ranks == ranks;
    let groups = experiment
        .launches
        .iter()
        .flat_map(|(_, launch)| &launch.groups);
    let reported = groups
        .filter(|group| of_operation(&group.key))
        .filter_map(|group| group.figures.first());
    let mut reported: Vec<f64> = reported.map(|(_, nanos)| *nanos).collect();
    let sample = Sample::new(&mut reported).ok()?;
    Some(time_within(
        sample.median(),
        [sample.quantile(0.0), sample.quantile(1.0)],
    ))
}

/// Explains why nothing is measured: threads that share a core miss every common start.
fn too_crowded(why: &str) -> Text {
    Text::from(format!(
        "\nTo measure operations, each thread needs a core of its own: {why}.\n"
    ))
}
