//! What was found about the drift of clocks: as tables, and as one document.

use std::fmt::Write as _;

use downbeat_clock_core::{Domain, Duration};
use downbeat_common::Failure;
use downbeat_common::output::{self, Table, count, time};
use downbeat_common::records::{Factors, serialize_factors};
use downbeat_measure::{FitQuality, OffsetSeries, WindowFit};
use downbeat_records::stats::Sample;
use downbeat_sync::Comm;
use serde::Serialize;

use super::Options;
use crate::ranks::Ranks;

/// How long what is sent takes, where it is short.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Latencies {
    /// From one rank to another.
    pub(super) message_ns: f64,
    /// Until all ranks have the result.
    pub(super) allreduce_ns: f64,
}

impl Latencies {
    pub(super) const BYTES: u64 = 8;
}

/// Everything, as one JSON document.
#[derive(Debug, Serialize)]
pub(super) struct Report<'a> {
    schema: &'static str,
    version: u32,
    #[serde(serialize_with = "serialize_factors")]
    factors: &'a Factors,
    /// Messages of 8 bytes.
    latency: Latencies,
    /// Looks that did not take place, since the one before took so long.
    missed: u64,
    ranks: Vec<OfRank>,
}

/// What became of the clock of one rank.
#[derive(Debug, Serialize)]
struct OfRank {
    rank: usize,
    offsets: usize,
    /// Looks at it whose messages contradicted each other.
    contradictory: u64,
    first_offset_ns: Option<i64>,
    /// Over the whole run.
    whole: Option<Fit>,
    windows: Vec<Window>,
    begin_to_end: Option<Left>,
}

/// All windows of one length.
#[derive(Debug, Serialize)]
struct Window {
    length_s: f64,
    fits: Vec<Fit>,
}

/// A line through offsets.
#[derive(Debug, Serialize)]
struct Fit {
    /// By the rank's own clock, after its first offset.
    began_s: f64,
    offsets: u64,
    drift_ppm: f64,
    /// Nothing where it means nothing: `shown` says why.
    r_squared: Option<f64>,
    shown: String,
    largest_residual_ns: i64,
}

/// What is left after begin-to-end interpolation.
#[derive(Debug, Serialize)]
struct Left {
    largest_ns: i64,
    after_s: f64,
    /// Where offsets say how certain they are.
    least_ns: Option<i64>,
    most_ns: Option<i64>,
    /// Nothing where that cannot be told.
    exceeds_message: Option<bool>,
    exceeds_allreduce: Option<bool>,
}

impl Fit {
    fn new<C: Domain>(fit: &WindowFit<C>, series: &OffsetSeries<C>) -> Self {
        let began = series
            .samples()
            .first()
            .map_or(Duration::ZERO, |first| fit.began - first.at);
        Self {
            began_s: began.as_secs_f64(),
            offsets: fit.samples,
            drift_ppm: fit.drift * 1e6,
            r_squared: if let FitQuality::RSquared(share) = fit.quality {
                Some(share)
            } else {
                None
            },
            shown: fit.quality.to_string(),
            largest_residual_ns: fit.largest_residual.as_nanos(),
        }
    }
}

impl<'a> Report<'a> {
    pub(super) fn new(factors: &'a Factors, latency: Latencies, missed: u64) -> Self {
        Self {
            schema: "downbeat.drift",
            version: 1,
            factors,
            latency,
            missed,
            ranks: Vec::new(),
        }
    }

    /// The next rank.
    pub(super) fn add<C: Domain>(
        &mut self,
        rank: usize,
        contradictory: u64,
        series: &OffsetSeries<C>,
        windows: &[Duration],
        every: Duration,
    ) {
        let of_length = |length: &Duration| Window {
            length_s: length.as_secs_f64(),
            fits: series
                .windows(*length, every)
                .iter()
                .map(|fit| Fit::new(fit, series))
                .collect(),
        };
        let [message, allreduce] = [self.latency.message_ns, self.latency.allreduce_ns]
            .map(|nanos| Duration::from_nanos_f64(nanos).unwrap_or(Duration::MAX));
        self.ranks.push(OfRank {
            rank,
            offsets: series.samples().len(),
            contradictory,
            first_offset_ns: series
                .samples()
                .first()
                .map(|first| first.offset.as_nanos()),
            whole: series.fit().map(|fit| Fit::new(&fit, series)),
            windows: windows.iter().map(of_length).collect(),
            begin_to_end: series.begin_to_end().map(|left| Left {
                largest_ns: left.largest.as_nanos(),
                after_s: left.after.as_secs_f64(),
                least_ns: left.bounds.map(|(least, _)| least.as_nanos()),
                most_ns: left.bounds.map(|(_, most)| most.as_nanos()),
                exceeds_message: left.exceeds(message),
                exceeds_allreduce: left.exceeds(allreduce),
            }),
        });
    }

    pub(super) fn show(
        &self,
        json: bool,
        ranks: &Ranks<'_>,
        options: &Options,
    ) -> Result<(), Failure> {
        if json {
            output::print_json(self)
        } else {
            output::print(&self.text(ranks, options))
        }
    }

    fn text(&self, ranks: &Ranks<'_>, options: &Options) -> String {
        let (size, nodes) = (
            count(ranks.all.size() as usize, "rank"),
            count(ranks.nodes(), "node"),
        );
        let Options {
            clock,
            during,
            every,
            check_by,
            ..
        } = options;
        let mut text = format!(
            "{size} on {nodes}, clock {clock}, during {during} every {every}, offsets to rank 0 by {check_by}\n\n\
             Lines through windows of time; R-squared is how much of the differences between offsets they explain:\n\n{}\n\
             What a line from the first offset to the last leaves:\n\n{}\n",
            self.windows(),
            self.left()
        );
        let Latencies {
            message_ns,
            allreduce_ns,
        } = self.latency;
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "In this run a message of {} bytes takes {}, an allreduce {}. Where clocks corrected by such a line are further \
             apart, messages can seem to arrive before they were sent.",
            Latencies::BYTES,
            time(message_ns),
            time(allreduce_ns)
        );
        if self.missed > 0 {
            let _ = writeln!(
                text,
                "{} missed, as the one before took so long.",
                count(self.missed as usize, "look")
            );
        }
        text
    }

    /// A row for each rank and length.
    fn windows(&self) -> String {
        let headings = [
            "rank",
            "window",
            "lines",
            "drift, median",
            "least",
            "greatest",
            "R-squared, median",
            "least",
            "largest residual",
        ];
        let mut table = Table::new(headings);
        for of_rank in &self.ranks {
            let rank = of_rank.rank.to_string();
            let lengths = of_rank.windows.iter();
            for window in lengths {
                let fits: Vec<&Fit> = window.fits.iter().collect();
                table.row(row(&rank, &format!("{} s", window.length_s), &fits));
            }
            let whole: Vec<&Fit> = of_rank.whole.iter().collect();
            table.row(row(&rank, "all", &whole));
        }
        table.render()
    }

    fn left(&self) -> String {
        let headings = [
            "rank",
            "offsets",
            "contradictory",
            "at first",
            "at most left",
            "certainly",
            "after",
            "over a message",
            "over an allreduce",
        ];
        let mut table = Table::new(headings);
        let verdict = |exceeds: Option<bool>| match exceeds {
            Some(true) => "yes",
            Some(false) => "no",
            None => "too uncertain",
        };
        for one in &self.ranks {
            let counts = [
                one.rank.to_string(),
                one.offsets.to_string(),
                one.contradictory.to_string(),
            ];
            let first = one
                .first_offset_ns
                .map_or_else(|| "-".to_owned(), |nanos| time(nanos as f64));
            let left = one.begin_to_end.as_ref().map_or_else(Vec::new, |left| {
                let certainly = match (left.least_ns, left.most_ns) {
                    (Some(least), Some(most)) => {
                        format!("{} to {}", time(least as f64), time(most as f64))
                    }
                    _ => "unknown".to_owned(),
                };
                vec![
                    time(left.largest_ns as f64),
                    certainly,
                    format!("{:.1} s", left.after_s),
                    verdict(left.exceeds_message).to_owned(),
                    verdict(left.exceeds_allreduce).to_owned(),
                ]
            });
            table.row(
                counts
                    .into_iter()
                    .chain([first])
                    .chain(left)
                    .collect::<Vec<_>>(),
            );
        }
        table.render()
    }
}

/// The lines of one length.
fn row(rank: &str, length: &str, fits: &[&Fit]) -> Vec<String> {
    let none = || "-".to_owned();
    let quantiles = |mut values: Vec<f64>, shown: fn(f64) -> String| {
        let sample = Sample::new(&mut values).ok();
        [0.5, 0.0, 1.0]
            .map(|share| sample.map_or_else(none, |sample| shown(sample.quantile(share))))
    };
    let [drift, least, greatest] =
        quantiles(fits.iter().map(|fit| fit.drift_ppm).collect(), |ppm| {
            format!("{ppm:.4} ppm")
        });
    let explained: Vec<f64> = fits.iter().filter_map(|fit| fit.r_squared).collect();
    // Where there is none to speak of, a table says why.
    let without = fits
        .iter()
        .find(|fit| fit.r_squared.is_none())
        .map_or_else(none, |fit| fit.shown.clone());
    let [r_squared, least_r_squared] = match explained.is_empty() {
        true => [without, none()],
        false => {
            let [median, least, _] = quantiles(explained, |share| format!("{share:.4}"));
            [median, least]
        }
    };
    let residual = fits
        .iter()
        .map(|fit| fit.largest_residual_ns)
        .max_by_key(|nanos| nanos.unsigned_abs());
    let residual = residual.map_or_else(none, |nanos| time(nanos as f64));
    let count = fits.len().to_string();
    vec![
        rank.to_owned(),
        length.to_owned(),
        count,
        drift,
        least,
        greatest,
        r_squared,
        least_r_squared,
        residual,
    ]
}
