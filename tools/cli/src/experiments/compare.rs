//! `downbeat compare`: tests whether two experiments differ, and by how much, by section 5.2 of Hunold 2016.

mod compared;
mod document;

use std::path::PathBuf;

use clap::Args;
use downbeat_common::output::{percent, probability, time, time_within};
use downbeat_common::units::joined;
use downbeat_common::{Failure, PrintOptions, Table, Text};
use downbeat_records::analysis::{Average, ComparedGroup, ExperimentComparison, FactorDifference};
use downbeat_records::stats::{Comparison, HodgesLehmann, PValues, stars};

use super::verdict::verdict;
use super::{
    Alternative, AnalysisOptions, AverageOption, ResultTable, SeenLaunches, analyse, percentage,
};
use super::{
    incomplete_launches, many_outliers, or_dash, outliers_line, places, plural, table_of_groups,
};
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
    for ((letter, folder), analysis) in ["A", "B"].into_iter().zip([a, b]).zip(&compared.analyses) {
        let launches = super::launches(analysis.launches.len());
        text += format!("{letter}: {folder}, {launches}\n");
    }
    text += factors(factor_differences, comparison);
    let results = ResultTable {
        table: table(compared),
        notes: remarks(compared),
        explanation: outliers_line(&compared.settings) + &explanation(compared),
    };
    text += results.text("\n".to_owned());
    text
}

/// Factors in which the experiments differ.
fn factors(differences: bool, comparison: &ExperimentComparison) -> Text {
    if comparison.factors.is_empty() {
        return Text::from("No recorded factor differs.\n".to_owned());
    }
    let names = comparison.factors.iter().map(|factor| &factor.name);
    let mut text = Text::from(format!("Factors that differ: {}\n", joined(names, ", ")));
    if differences {
        let value = |factor: &FactorDifference, experiment: usize| {
            let value = factor.values[experiment].clone();
            value.unwrap_or_else(|| "(none)".to_owned())
        };
        text += "\n";
        text += Table::of(&comparison.factors)
            .column("factor", |factor| factor.name.clone())
            .column("A", |factor| value(factor, 1))
            .column("B", |factor| value(factor, 0))
            .table();
    }
    text
}

fn table(compared: &ComparedExperiments) -> Table {
    let comparison = &compared.comparison;
    let average = comparison.average.name();
    let p = |p: &PValues| compared.alternative.p_value(p);
    let t_test = |found: &Comparison| {
        let doubt = match found.means_are_doubtful(NORMALITY) {
            true => " (doubtful)",
            false => "",
        };
        let welch = found.welch.as_ref().ok();
        or_dash(welch.map(|t| format!("{}{doubt}", probability(p(&t.p)))))
    };
    table_of_groups(&comparison.groups, |group| &group.key)
        .column("launches", |group| {
            let [of_b, of_a] = group.comparison.launches;
            format!("{of_a} + {of_b}")
        })
        .column(&format!("{average} A"), |group| {
            time(group.comparison.medians[1])
        })
        .column(&format!("{average} B"), |group| {
            time(group.comparison.medians[0])
        })
        .column("B - A", |group| {
            let HodgesLehmann {
                shift, interval, ..
            } = group.comparison.shift;
            time_within(shift, [interval.low, interval.high])
        })
        .column("of A", |group| {
            or_dash(group.comparison.relative_shift().map(percent))
        })
        .column("p", |group| {
            probability(p(&group.comparison.mann_whitney.p))
        })
        .column("by", |group| {
            method_name(group.comparison.mann_whitney.method).to_owned()
        })
        .column("p, Holm", |group| probability(p(&group.adjusted)))
        .column("", |group| stars(p(&group.adjusted)).to_owned())
        .column("p, t-test", |group| t_test(&group.comparison))
        .named_by(3)
}

/// Notes below the table.
fn remarks(compared: &ComparedExperiments) -> Vec<String> {
    let found = &compared.comparison;
    let mut remarks = Vec::new();
    for (letter, missing) in ["B", "A"].into_iter().zip(&found.missing).rev() {
        if !missing.is_empty() {
            let names = joined(missing.iter().map(ToString::to_string), "; ");
            remarks.push(format!(
                "{letter} has no {} of {names}",
                plural(found.average)
            ));
        }
    }
    for (letter, analysis) in ["A", "B"].into_iter().zip(&compared.analyses) {
        remarks.extend(incomplete_launches(analysis).map(|note| format!("{letter}: {note}")));
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
