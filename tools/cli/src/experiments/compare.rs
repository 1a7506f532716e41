//! `downbeat compare`: tests whether two experiments differ, and by how much, by section 5.2 of Hunold 2016.

mod compared;
mod document;

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use downbeat_common::output::{percent, probability, time, time_within};
use downbeat_common::{Failure, PrintOptions, Table, Text};
use downbeat_records::analysis::{Average, ComparedGroup, ExperimentComparison};
use downbeat_records::stats::stars;

use super::verdict::verdict;
use super::{
    Alternative, AnalysisOptions, AverageOption, SeenLaunches, analyse, key_cells, percentage,
};
use super::{many_outliers, or_dash, outliers_line, places, plural};
use compared::{ComparedExperiments, NORMALITY, method_name};

#[derive(Args, Debug)]
#[command(
    after_help = "Every launch contributes one average, its median unless --of names another. The Wilcoxon-Mann-Whitney test decides whether the medians of A and B \
                  differ; the Hodges-Lehmann shift is the size of the difference.\n\n\
                  Examples:\n  downbeat compare results/openmpi results/mpich\n  \
                  downbeat compare results/openmpi results/mpich --alternative less"
)]
pub(crate) struct CompareOptions {
    /// Folder of the experiment with which the other is compared
    #[arg(value_name = "A")]
    first: PathBuf,
    /// Folder of the other experiment
    #[arg(value_name = "B")]
    second: PathBuf,
    /// Alternative hypothesis of the tests; intervals are two-sided in any case
    #[arg(long, value_enum, default_value_t = Alternative::TwoSided)]
    alternative: Alternative,
    /// Average of each launch to compare
    #[arg(long, value_enum, default_value_t = AverageOption::Median, value_name = "AVERAGE")]
    of: AverageOption,
    /// Also print the values of the factors that differ
    #[arg(long)]
    factor_differences: bool,
    #[command(flatten)]
    analysis: AnalysisOptions,
    #[command(flatten)]
    print: PrintOptions,
}

pub(crate) fn run(options: &CompareOptions) -> Result<(), Failure> {
    let settings = options.analysis.settings();
    let mut seen = SeenLaunches::default();
    let mut analyse = |folder| analyse(folder, &settings, options.analysis.verify, &mut seen);
    let (first, second) = (analyse(&options.first)?, analyse(&options.second)?);
    let average = options.of.into();
    let comparison = ExperimentComparison::new(&second, &first, average, settings.confidence);
    let compared = ComparedExperiments {
        folders: [options.first.clone(), options.second.clone()],
        alternative: options.alternative,
        settings,
        analyses: [first, second],
        comparison,
    };
    if compared.comparison.groups.is_empty() {
        return Err(nothing_in_common(&compared));
    }
    options.print.print(
        || document::report(options.analysis.method(), &compared),
        || render(options.factor_differences, &compared),
    )
}

fn nothing_in_common(compared: &ComparedExperiments) -> Failure {
    let average = compared.comparison.average;
    let first = |i: usize| {
        let (folder, analysis) = (compared.folders[i].display(), &compared.analyses[i]);
        let mut groups = analysis.groups.iter();
        match groups.find(|group| group.averages(average).is_some()) {
            Some(group) => format!("{folder} begins with {}", group.key),
            None => format!("{folder} has no {}", plural(average)),
        }
    };
    Failure::Input(format!(
        "the experiments have no group in common: {}, {}",
        first(0),
        first(1)
    ))
}

fn render(factor_differences: bool, compared: &ComparedExperiments) -> Text {
    let comparison = &compared.comparison;
    let [a, b] = compared
        .folders
        .each_ref()
        .map(|folder| folder.display().to_string());
    let verdict = verdict(comparison, [&b, &a], compared.alternative);
    let mut text = Text::from(format!("{verdict}\n\n"));
    for ((letter, folder), analysis) in ["A", "B"]
        .into_iter()
        .zip(&compared.folders)
        .zip(&compared.analyses)
    {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(
            text,
            "{letter}: {}, {}",
            folder.display(),
            super::launches(analysis.launches.len())
        );
    }
    text += factors(factor_differences, comparison);
    text += "\n";
    let average = comparison.average.name();
    let (of_a, of_b) = (format!("{average} A"), format!("{average} B"));
    let mut table = Table::new([
        "operation",
        "bytes",
        "ranks",
        "launches",
        &of_a,
        &of_b,
        "B - A",
        "of A",
        "p",
        "by",
        "p, Holm",
        "",
        "p, t-test",
    ])
    .named_by(3);
    for group in &comparison.groups {
        table.row(row(compared.alternative, group));
    }
    text += table;
    text += "\n";
    for remark in remarks(compared) {
        let _ = writeln!(text, "Note: {remark}");
    }
    text += outliers_line(&compared.settings);
    text += explanation(compared);
    text
}

/// Factors in which the experiments differ.
fn factors(differences: bool, comparison: &ExperimentComparison) -> Text {
    if comparison.factors.is_empty() {
        return Text::from("No recorded factor differs.\n".to_owned());
    }
    let names: Vec<&str> = comparison
        .factors
        .iter()
        .map(|factor| factor.name.as_str())
        .collect();
    let mut text = Text::from(format!("Factors that differ: {}\n", names.join(", ")));
    if differences {
        let mut table = Table::new(["factor", "A", "B"]);
        for factor in &comparison.factors {
            let [of_b, of_a] = factor
                .values
                .clone()
                .map(|value| value.unwrap_or_else(|| "(none)".to_owned()));
            table.row([factor.name.clone(), of_a, of_b]);
        }
        text += "\n";
        text += table;
    }
    text
}

fn row(alternative: Alternative, group: &ComparedGroup) -> [String; 13] {
    let ComparedGroup {
        key,
        comparison: found,
        adjusted,
    } = group;
    let [operation, bytes, ranks] = key_cells(key);
    let adjusted = alternative.p_value(adjusted);
    let (shift, [launches_b, launches_a], [b, a]) = (&found.shift, found.launches, found.medians);
    let doubt = if found.means_are_doubtful(NORMALITY) {
        " (doubtful)"
    } else {
        ""
    };
    let t_test = found
        .welch
        .as_ref()
        .ok()
        .map(|t| format!("{}{doubt}", probability(alternative.p_value(&t.p))));
    [
        operation,
        bytes,
        ranks,
        format!("{launches_a} + {launches_b}"),
        time(a),
        time(b),
        time_within(shift.shift, [shift.interval.low, shift.interval.high]),
        or_dash(found.relative_shift().map(percent)),
        probability(alternative.p_value(&found.mann_whitney.p)),
        method_name(found.mann_whitney.method).to_owned(),
        probability(adjusted),
        stars(adjusted).to_owned(),
        or_dash(t_test),
    ]
}

/// Notes below the table.
fn remarks(compared: &ComparedExperiments) -> Vec<String> {
    let found = &compared.comparison;
    let mut remarks = Vec::new();
    for (letter, missing) in ["B", "A"].into_iter().zip(&found.missing) {
        if !missing.is_empty() {
            let names: Vec<String> = missing.iter().map(ToString::to_string).collect();
            remarks.push(format!(
                "{letter} has no {} of {}",
                plural(found.average),
                names.join("; ")
            ));
        }
    }
    for (letter, analysis) in ["A", "B"].into_iter().zip(&compared.analyses) {
        if !analysis.incomplete.is_empty() {
            remarks.push(format!(
                "{letter}: incomplete launches: {}",
                analysis.incomplete.join(", ")
            ));
        }
    }
    for (letter, analysis) in ["A", "B"].into_iter().zip(&compared.analyses) {
        let notes = places(analysis).chain(many_outliers(analysis));
        remarks.extend(notes.map(|note| format!("{letter}: {note}")));
    }
    let [a, b] = &compared.analyses;
    if a.hosts != b.hosts && !a.hosts.is_empty() && !b.hosts.is_empty() {
        remarks.push(format!(
            "A and B ran on different hosts: {} and {}",
            a.hosts.join(", "),
            b.hosts.join(", ")
        ));
    }
    let wanted = compared.settings.confidence.share();
    remarks.extend(statistical_remarks(&found.groups, wanted));
    remarks
}

/// Notes on intervals and tests whose assumptions do not hold; `wanted` is the requested confidence.
fn statistical_remarks(groups: &[ComparedGroup], wanted: f64) -> Vec<String> {
    let mut remarks = Vec::new();
    let comparisons = || groups.iter().map(|group| &group.comparison);
    let least = comparisons()
        .map(|found| found.shift.confidence)
        .fold(1.0, f64::min);
    // An interval by the normal approximation has the requested confidence, up to rounding.
    if least < wanted * (1.0 - 1e-9) {
        let (wanted, least) = (percentage(wanted), percentage(least));
        remarks.push(format!(
            "too few launches for intervals of {wanted}: the lowest confidence is {least}"
        ));
    }
    if let Some(why) = comparisons().find_map(|found| found.welch.err()) {
        remarks.push(format!("t-test missing: {why}"));
    }
    if comparisons().any(|found| found.means_are_doubtful(NORMALITY)) {
        remarks.push(
            "doubtful t-test: the launches' means are not normally distributed, or too few to test that".to_owned(),
        );
    }
    remarks
}

fn explanation(compared: &ComparedExperiments) -> String {
    let (confidence, average) = (
        percentage(compared.settings.confidence.share()),
        compared.comparison.average,
    );
    format!(
        "B - A: Hodges-Lehmann shift with its {confidence} interval; negative if B takes less time. Times: 1 + (B - A) / A.\n\
         p: Wilcoxon-Mann-Whitney test of the launches' {}, alternative \"{}\"; p, Holm: adjusted for the number of groups.\n\
         Stars, by the adjusted p: * p <= 0.05, ** p <= 0.01, *** p <= 0.001.\n\
         t-test: Welch's t-test of the launches' {}.\n",
        plural(average),
        compared.alternative.statement("A", "B"),
        plural(if average == Average::Reported {
            average
        } else {
            Average::Mean
        })
    )
}
