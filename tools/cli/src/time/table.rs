//! Results of `downbeat time`, as text and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use downbeat_common::cli::VerifyOptions;
use downbeat_common::output::{time, time_within};
use downbeat_common::units;
use downbeat_common::{Failure, Table, Text};
use downbeat_records::Launch;
use downbeat_records::analysis::{
    Analysis, AnalysisSettings, Average, ExperimentComparison, GroupAnalysis,
};
use downbeat_records::stats::MedianInterval;
use serde::Serialize;

use super::record::{EMPTY_TIME, Figure, LEAST_MEMORY, PEAK_MEMORY, has_failed, stated};
use crate::experiments::Alternative;
use crate::experiments::analyze::uncertain;
use crate::experiments::verdict::verdict;
use crate::experiments::{SeenLaunches, launches, percentage, places};
use crate::run::{LaunchedVariant, quoted};

/// A variant with the results of its launches.
#[derive(Debug)]
pub(super) struct TimedVariant {
    variant: LaunchedVariant,
    analysis: Analysis,
    /// Number of launches that failed and are counted nevertheless.
    failed: usize,
    memory: Option<Memory>,
    /// Shortest time of an empty process, in nanoseconds.
    empty: Option<f64>,
}

/// Memory in bytes.
#[derive(Clone, Copy, Debug)]
struct Memory {
    peak: u64,
    /// True if an empty process seems to take as much, so that the command may take less.
    is_limit: bool,
}

impl TimedVariant {
    /// Reads the records of a variant.
    pub(super) fn read(variant: LaunchedVariant) -> Result<Self, Failure> {
        let folder = &variant.folder;
        let found = SeenLaunches::default().read(folder, VerifyOptions::default())?;
        let failed = |why| Failure::Input(format!("{}: {why}", folder.display()));
        let all_launches = || found.launches.iter().map(|(_, launch)| launch);
        let empty = all_launches().filter_map(|launch| stated(launch, EMPTY_TIME));
        Ok(Self {
            analysis: Analysis::new(&found.launches, &AnalysisSettings::default())
                .map_err(failed)?,
            failed: all_launches().filter(|launch| has_failed(launch)).count(),
            memory: all_launches()
                .filter_map(Memory::of)
                .max_by_key(|memory| memory.peak),
            empty: empty.min().map(|nanos| nanos as f64),
            variant,
        })
    }

    /// Name of the variant, or else its command.
    fn name(&self) -> String {
        let name = self.variant.name.clone();
        name.unwrap_or_else(|| quoted(&self.variant.command))
    }

    fn group(&self, figure: Figure) -> Option<&GroupAnalysis> {
        self.analysis.group(&figure.key())
    }

    fn times(&self, figure: Figure) -> Option<Times> {
        let averages = self.group(figure)?.averages(Average::Median)?;
        let interval = averages.median_interval(self.analysis.settings.confidence);
        Some(Times {
            median_ns: averages.median(),
            median_interval: interval.map(|found| TimesInterval::from(&found)),
            least_ns: *averages.values().first()?,
            most_ns: *averages.values().last()?,
        })
    }

    fn row(&self) -> [String; 8] {
        let wall = self.times(Figure::Wall);
        let or_dash = |cell: Option<String>| cell.unwrap_or_else(|| "-".to_owned());
        let of_wall = |value: fn(&Times) -> String| or_dash(wall.as_ref().map(value));
        let median = |figure| or_dash(self.times(figure).map(|times| time(times.median_ns)));
        [
            self.variant.name.clone().unwrap_or_default(),
            self.analysis.launches.len().to_string(),
            of_wall(Times::text),
            of_wall(|times| time(times.least_ns)),
            of_wall(|times| time(times.most_ns)),
            median(Figure::User),
            median(Figure::System),
            or_dash(self.memory.map(Memory::text)),
        ]
    }

    /// Notes below the table.
    fn remarks(&self) -> Vec<String> {
        /// Below this number, the start of a process matters.
        const FEW: f64 = 5.0;
        let mut remarks = Vec::new();
        if self.failed > 0 {
            remarks.push(format!(
                "{} of {} failed, and count like the others",
                self.failed,
                launches(self.analysis.launches.len())
            ));
        }
        let wall = self.times(Figure::Wall);
        // The shortest times, as disturbances only add.
        if let (Some(Times { least_ns, .. }), Some(empty)) = (wall, self.empty)
            && least_ns < FEW * empty
        {
            remarks.push(format!(
                "takes only {:.1} times as long as an empty process, so that its start matters",
                least_ns / empty
            ));
        }
        remarks.extend(places(&self.analysis));
        remarks
    }
}

impl Memory {
    fn of(launch: &Launch) -> Option<Self> {
        let peak = stated(launch, PEAK_MEMORY)?;
        let is_limit = stated(launch, LEAST_MEMORY).is_some_and(|least| peak <= least);
        Some(Self { peak, is_limit })
    }

    fn text(self) -> String {
        let sign = if self.is_limit { "<= " } else { "" };
        format!("{sign}{}", units::bytes(self.peak))
    }
}

pub(super) fn render(timed: &[TimedVariant]) -> Text {
    let mut text = Text::default();
    // Writing to a string cannot fail, here and below.
    match timed {
        [one] if one.variant.name.is_none() => {
            let _ = write!(text, "{}\n\n", one.name());
        }
        [first, others @ ..] => {
            for other in others {
                let _ = writeln!(text, "{}", compared(first, other));
            }
            text += if others.is_empty() { "" } else { "\n" };
        }
        [] => {}
    }
    let has_names = timed.iter().any(|variant| variant.variant.name.is_some());
    let names = if has_names { "variant" } else { "" };
    let mut table = Table::new([
        names, "launches", "wall", "least", "most", "user", "system", "memory",
    ]);
    for variant in timed {
        table.row(variant.row());
    }
    text += table;
    text += "\n";
    for variant in timed {
        for remark in variant.remarks() {
            let _ = writeln!(text, "Note: {}: {remark}", variant.name());
        }
    }
    if let Some(few) = timed.first().and_then(|first| uncertain(&first.analysis)) {
        let _ = writeln!(text, "Note: {few}");
    }
    text += explanation(timed);
    text
}

/// Says how the wall times of a variant differ from those of the first one.
fn compared(first: &TimedVariant, other: &TimedVariant) -> String {
    let confidence = first.analysis.settings.confidence;
    let comparison = ExperimentComparison::new(
        &other.analysis,
        &first.analysis,
        Average::Median,
        confidence,
    );
    verdict(
        &comparison,
        [&other.name(), &first.name()],
        Alternative::TwoSided,
    )
}

fn explanation(timed: &[TimedVariant]) -> String {
    let empty = timed.iter().filter_map(|variant| variant.empty);
    let empty = empty.reduce(f64::min).map_or_else(String::new, |nanos| {
        format!(
            "Included: {}, which starting and ending an empty process takes.\n",
            time(nanos)
        )
    });
    let has_limit = |timed: &TimedVariant| timed.memory.is_some_and(|memory| memory.is_limit);
    let limit = if timed.iter().any(has_limit) {
        "; <=: no more than an empty process seems to take, by the memory of this program"
    } else {
        ""
    };
    let confidence = timed.first().map_or_else(String::new, |first| {
        percentage(first.analysis.settings.confidence.share())
    });
    format!(
        "Wall, user, system: medians of the launches; wall with its {confidence} interval by the sign test.\n\
         Memory: the most that any process of the command occupied in any launch{limit}.\n{empty}"
    )
}

/// Results in JSON.
#[derive(Debug, Serialize)]
pub(super) struct TimeReport<'a> {
    schema: &'static str,
    version: u32,
    confidence: f64,
    variants: Vec<TimedVariantReport<'a>>,
}

#[derive(Debug, Serialize)]
struct TimedVariantReport<'a> {
    name: Option<&'a str>,
    command: &'a [String],
    parameters: &'a BTreeMap<String, String>,
    launches: usize,
    failed: usize,
    wall: Option<Times>,
    user: Option<Times>,
    system: Option<Times>,
    peak_memory_bytes: Option<u64>,
    empty_process_ns: Option<f64>,
}

impl<'a> From<&'a TimedVariant> for TimedVariantReport<'a> {
    fn from(timed: &'a TimedVariant) -> Self {
        Self {
            name: timed.variant.name.as_deref(),
            command: &timed.variant.command,
            parameters: &timed.variant.parameters,
            launches: timed.analysis.launches.len(),
            failed: timed.failed,
            wall: timed.times(Figure::Wall),
            user: timed.times(Figure::User),
            system: timed.times(Figure::System),
            peak_memory_bytes: timed.memory.map(|memory| memory.peak),
            empty_process_ns: timed.empty,
        }
    }
}

/// Statistics of the times of all launches.
#[derive(Clone, Debug, Serialize)]
struct Times {
    median_ns: f64,
    median_interval: Option<TimesInterval>,
    least_ns: f64,
    most_ns: f64,
}

#[derive(Clone, Debug, Serialize)]
struct TimesInterval {
    low_ns: f64,
    high_ns: f64,
    confidence: f64,
}

impl From<&MedianInterval> for TimesInterval {
    fn from(found: &MedianInterval) -> Self {
        Self {
            low_ns: found.interval.low,
            high_ns: found.interval.high,
            confidence: found.confidence,
        }
    }
}

impl Times {
    /// Writes the median, with its interval if there are several launches.
    fn text(&self) -> String {
        match &self.median_interval {
            Some(TimesInterval {
                low_ns, high_ns, ..
            }) => time_within(self.median_ns, [*low_ns, *high_ns]),
            None => time(self.median_ns),
        }
    }
}

pub(super) fn document(timed: &[TimedVariant]) -> TimeReport<'_> {
    TimeReport {
        schema: "downbeat.time",
        version: 1,
        confidence: AnalysisSettings::default().confidence.share(),
        variants: timed.iter().map(TimedVariantReport::from).collect(),
    }
}
