//! Demonstration of a global clock, which runs without a command.

mod measuring;

use downbeat_clock_core::Duration;
use downbeat_common::output::count;
use downbeat_common::records::{CheckRecord, RunRecord};
use downbeat_common::{Failure, Table, Text};
use downbeat_timers::cores::allowed_cores;

use crate::sync;

/// Algorithms from the simplest to the best: description and label.
const ALGORITHMS: [(&str, &str); 3] = [
    ("offsets only", "skampi/skampi/100"),
    ("lines, in a moment", "hca3/50/skampi/20/weighted"),
    (
        "lines, with patience",
        "hca3/2000/skampi/100/recompute/weighted",
    ),
];

/// Skew of the clocks, always the same.
const SKEW: &str = "offset=1s,drift=20ppm";
const CHECKS: &str = "0,1s,10s";

pub(crate) fn run() -> Result<(), Failure> {
    // One rank per core, but several, and few enough for a short table.
    let ranks = (allowed_cores().len() as u32).clamp(2, 4);
    let found = ALGORITHMS
        .into_iter()
        .map(|(what, label)| Ok((what, label, measure(ranks, label)?)));
    let found = found.collect::<Result<Vec<_>, Failure>>()?;
    let measured = measuring::run(ranks, SKEW)?;
    let mut text = render(&found);
    text += measured;
    text += MORE;
    text.print()
}

const MORE: &str = "
downbeat sync --help          this synchronization with your own ranks, clocks and algorithms
downbeat bench --help         your own measurements between threads
downbeat simulate --help      a cluster of up to a million ranks, in virtual time
mpirun downbeat-mpi --help    a real cluster and its MPI library; the README explains how to build it
downbeat clocks               the clocks of this machine
";

fn measure(ranks: u32, label: &str) -> Result<RunRecord, Failure> {
    let algorithm = label.parse().map_err(Failure::run)?;
    let ranks = ranks.to_string();
    let words = ["sync", "--ranks", &ranks, "--skew", SKEW, "--check", CHECKS];
    measuring::retry(|| sync::measure(&measuring::from_words(words)?, algorithm))
}

fn render(found: &[(&str, &str, RunRecord)]) -> Text {
    let clocks = found.first().map_or(&[][..], |(.., report)| &report.clocks);
    let mut text = Text::from(format!(
        "Downbeat gives all ranks of a parallel program one global clock. Here the ranks are {}.\n\
         Each has a skewed clock of its own; only this demonstration knows the skew:\n\n",
        count(clocks.len(), "thread")
    ));
    let mut wrong = Table::new(["rank", "its clock is ahead by", "and gains in a second"]);
    for clock in clocks {
        wrong.row([
            clock.rank.to_string(),
            Duration::from_nanos(clock.offset_ns).to_string(),
            nanos(clock.drift_ppm * 1e3),
        ]);
    }
    text += wrong;
    text += "\nThe ranks learn the time of rank 0 from messages alone. The true error of the worst global clock is then:\n\n";
    let mut table = Table::new([
        "measured",
        "by the algorithm",
        "took",
        "now",
        "in 1 s",
        "in 10 s",
    ]);
    for (what, label, report) in found {
        let [now, second, ten] =
            [0, 1, 2].map(|i| report.checks.get(i).map_or_else(String::new, error));
        table.row([
            (*what).to_owned(),
            (*label).to_owned(),
            nanos(report.duration_s * 1e9),
            now,
            second,
            ten,
        ]);
    }
    text += table;
    text += "\nOffsets ignore the drift of clocks. Lines model it, and the longer they are measured, the longer they stay accurate.\n";
    text
}

fn error(check: &CheckRecord) -> String {
    let error = check.largest_error.as_ref();
    error.map_or_else(
        || "-".to_owned(),
        |largest| Duration::from_nanos(largest.ns.abs()).to_string(),
    )
}

fn nanos(nanos: f64) -> String {
    Duration::from_nanos_f64(nanos).map_or_else(String::new, |time| time.to_string())
}
