//! Report on the drift of clocks: as tables, and as one JSON document.

use std::fmt::Write as _;

use downbeat_clock_core::{Domain, Duration};
use downbeat_common::output::time;
use downbeat_common::records::{Factors, serialize_factors};
use downbeat_common::{Table, Text, units};
use downbeat_measure::drift::{FitQuality, OffsetSeries, WindowFit};
use downbeat_records::stats::Sample;
use serde::Serialize;

use crate::watch;

/// Run-times of communication with short messages.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TransferTimes {
    /// Latency of a message from one rank to another.
    pub message_ns: f64,
    /// Run-time of an allreduce among all ranks.
    pub allreduce_ns: f64,
}

impl TransferTimes {
    /// Size of the messages.
    pub const BYTES: u64 = 8;
}

/// Maximum number of ranks that are drawn, so that curves can be told apart.
pub(super) const MOST_CURVES: usize = 8;
/// Maximum number of offsets of a rank between the first and the last that are drawn.
const MOST_POINTS: usize = 600;

/// Report as one JSON document.
#[derive(Debug, Serialize)]
pub(super) struct DriftReport<'a> {
    schema: &'static str,
    version: u32,
    #[serde(serialize_with = "serialize_factors")]
    factors: &'a Factors,
    /// Messages of 8 bytes.
    latency: TransferTimes,
    /// Number of measurements that were left out because the previous one took too long.
    missed: u64,
    ranks: Vec<RankDrift>,
}

/// Drift of the clock of one rank.
#[derive(Debug, Serialize)]
struct RankDrift {
    rank: usize,
    offsets: usize,
    /// Number of measurements whose messages contradicted each other.
    contradictory: u64,
    first_offset_ns: Option<i64>,
    /// Line fitted to all offsets.
    whole: Option<FitReport>,
    windows: Vec<DriftWindow>,
    begin_to_end: Option<ResidualReport>,
    /// Seconds since the first offset, and offsets in nanoseconds, for pictures: a part of them, and none of ranks that are not drawn.
    #[serde(skip)]
    points: Vec<(f64, f64)>,
}

/// All windows of one length.
#[derive(Debug, Serialize)]
struct DriftWindow {
    length_s: f64,
    fits: Vec<FitReport>,
}

/// A line fitted to offsets.
#[derive(Debug, Serialize)]
struct FitReport {
    /// Time from the first offset of the rank to the first of this line, by the clock of the rank.
    began_s: f64,
    offsets: u64,
    drift_ppm: f64,
    /// `None` if it is undefined; `shown` then names the reason.
    r_squared: Option<f64>,
    shown: String,
    largest_residual_ns: i64,
}

/// Largest residual after begin-to-end interpolation.
#[derive(Debug, Serialize)]
struct ResidualReport {
    largest_ns: i64,
    after_s: f64,
    /// Limits of the residual, if the uncertainty of the offsets is known.
    least_ns: Option<i64>,
    most_ns: Option<i64>,
    /// `None` if the residual is too uncertain.
    exceeds_message: Option<bool>,
    exceeds_allreduce: Option<bool>,
}

impl FitReport {
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

impl<'a> DriftReport<'a> {
    pub(super) fn new(factors: &'a Factors, latency: TransferTimes, missed: u64) -> Self {
        Self {
            schema: "downbeat.drift",
            version: 1,
            factors,
            latency,
            missed,
            ranks: Vec::new(),
        }
    }

    /// Adds the next rank.
    pub(super) fn add<C: Domain>(
        &mut self,
        rank: usize,
        contradictory: u64,
        series: &OffsetSeries<C>,
        windows: &[Duration],
        every: Duration,
    ) {
        let window = |length: &Duration| DriftWindow {
            length_s: length.as_secs_f64(),
            fits: series
                .windows(*length, every)
                .iter()
                .map(|fit| FitReport::new(fit, series))
                .collect(),
        };
        let [message, allreduce] = [self.latency.message_ns, self.latency.allreduce_ns]
            .map(|nanos| Duration::from_nanos_f64(nanos).unwrap_or(Duration::MAX));
        self.ranks.push(RankDrift {
            rank,
            offsets: series.samples().len(),
            contradictory,
            first_offset_ns: series
                .samples()
                .first()
                .map(|first| first.offset.as_nanos()),
            whole: series.fit().map(|fit| FitReport::new(&fit, series)),
            windows: windows.iter().map(window).collect(),
            points: match self.ranks.len() < MOST_CURVES {
                true => points(series),
                false => Vec::new(),
            },
            begin_to_end: series.begin_to_end().map(|residual| ResidualReport {
                largest_ns: residual.largest.as_nanos(),
                after_s: residual.after.as_secs_f64(),
                least_ns: residual.bounds.map(|(least, _)| least.as_nanos()),
                most_ns: residual.bounds.map(|(_, most)| most.as_nanos()),
                exceeds_message: residual.exceeds(message),
                exceeds_allreduce: residual.exceeds(allreduce),
            }),
        });
    }

    /// Returns the offsets over time of the ranks that are drawn.
    pub(super) fn curves(&self) -> impl Iterator<Item = (usize, &[(f64, f64)])> {
        let drawn = self.ranks.iter().take(MOST_CURVES);
        drawn.map(|one| (one.rank, &*one.points))
    }

    /// Returns the number of ranks.
    pub(super) fn ranks(&self) -> usize {
        self.ranks.len()
    }

    /// Returns the tables, below the headline.
    pub(super) fn text(&self, headline: &str) -> Text {
        let mut text = Text::from(format!(
            "{headline}\n\n\
             Lines fitted to windows of time; R-squared is the share of the variance of the offsets that they explain:\n\n"
        ));
        text += self.windows();
        text += "\nResiduals of a line from the first offset to the last:\n\n";
        text += self.residuals();
        text += "\n";
        for note in self.notes() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{note}");
        }
        text
    }

    /// Returns notes below the tables.
    pub(super) fn notes(&self) -> Vec<String> {
        let TransferTimes {
            message_ns,
            allreduce_ns,
        } = self.latency;
        let mut notes = vec![format!(
            "In this run a message of {} bytes takes {}, an allreduce {}. Where clocks corrected by such a line differ by more, \
             messages can seem to arrive before they were sent.",
            TransferTimes::BYTES,
            time(message_ns),
            time(allreduce_ns)
        )];
        notes.extend(watch::missed(self.missed));
        notes
    }

    /// Returns a table with a row for each rank and length of windows.
    pub(super) fn windows(&self) -> Table {
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
        let mut table = Table::new(headings).named_by(2);
        for one in &self.ranks {
            let rank = one.rank.to_string();
            let lengths = one.windows.iter();
            for window in lengths {
                let fits: Vec<&FitReport> = window.fits.iter().collect();
                table.row(row(&rank, &format!("{} s", window.length_s), &fits));
            }
            let whole: Vec<&FitReport> = one.whole.iter().collect();
            table.row(row(&rank, "all", &whole));
        }
        table
    }

    /// Returns a table with a row for each rank.
    pub(super) fn residuals(&self) -> Table {
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
            let residual = one.begin_to_end.as_ref().map_or_else(Vec::new, |residual| {
                let certainly = match (residual.least_ns, residual.most_ns) {
                    (Some(least), Some(most)) => {
                        format!("{} to {}", time(least as f64), time(most as f64))
                    }
                    _ => "unknown".to_owned(),
                };
                vec![
                    time(residual.largest_ns as f64),
                    certainly,
                    format!("{:.1} s", residual.after_s),
                    verdict(residual.exceeds_message).to_owned(),
                    verdict(residual.exceeds_allreduce).to_owned(),
                ]
            });
            table.row(
                counts
                    .into_iter()
                    .chain([first])
                    .chain(residual)
                    .collect::<Vec<_>>(),
            );
        }
        table
    }
}

/// Returns offsets over time since the first: equally many between those that are left out, and both ends.
fn points<C: Domain>(series: &OffsetSeries<C>) -> Vec<(f64, f64)> {
    let samples = series.samples();
    let (Some(first), Some(last)) = (samples.first(), samples.len().checked_sub(1)) else {
        return Vec::new();
    };
    let every = samples.len().div_ceil(MOST_POINTS);
    let kept = samples.iter().enumerate();
    let kept = kept.filter(|(number, _)| number.is_multiple_of(every) || *number == last);
    kept.map(|(_, sample)| {
        let time = (sample.at - first.at).as_secs_f64();
        (time, sample.offset.as_nanos() as f64)
    })
    .collect()
}

/// Returns the row for the lines of one length.
fn row(rank: &str, length: &str, fits: &[&FitReport]) -> Vec<String> {
    let none = || "-".to_owned();
    let quantiles = |mut values: Vec<f64>, shown: fn(f64) -> String| {
        let sample = Sample::new(&mut values).ok();
        [0.5, 0.0, 1.0]
            .map(|share| sample.map_or_else(none, |sample| shown(sample.quantile(share))))
    };
    let [drift, least, greatest] =
        quantiles(fits.iter().map(|fit| fit.drift_ppm).collect(), |ppm| {
            format!("{:.4} ppm", units::without_negative_zero(ppm, 4))
        });
    let explained: Vec<f64> = fits.iter().filter_map(|fit| fit.r_squared).collect();
    // If it is undefined for all lines, the table shows the reason.
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

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_clock_core::offset::OffsetSample;
    use downbeat_clock_core::{Global, Timestamp};

    #[test]
    fn points_of_long_series_keep_their_ends() {
        let series = |count: i64| {
            let sample = |number| OffsetSample::<Global> {
                at: Timestamp::from_nanos(number * 1_000_000_000),
                offset: Duration::from_nanos(number),
                half_width: None,
            };
            OffsetSeries::new((0..count).map(sample).collect()).unwrap()
        };
        let kept = points(&series(5_000));
        assert!(kept.len() <= MOST_POINTS + 1, "{}", kept.len());
        assert_eq!(
            (kept[0], kept[kept.len() - 1]),
            ((0.0, 0.0), (4_999.0, 4_999.0))
        );
        assert_eq!(points(&series(3)).len(), 3);
    }
}
