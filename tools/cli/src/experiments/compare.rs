//! `downbeat compare`: whether two experiments differ, and by how much, as section 5.2 of the 2016 paper has it.

mod document;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use downbeat_common::Failure;
use downbeat_common::output::{self, Table, percent, probability, time, time_within};
use downbeat_records::analysis::{
    Analysis, AnalysisSettings, Average, ComparedGroup, ExperimentComparison,
};
use downbeat_records::stats::{PValues, RankMethod, stars};

use super::{AnalysisOptions, AverageOption, analyse, key_cells, percentage};
use super::{or_dash, outliers_line, plural};

#[derive(Args, Debug)]
#[command(
    after_help = "Every launch comes to one median. Wilcoxon, Mann and Whitney's test says whether those of A and B differ, \
                  Hodges and Lehmann's shift by how much.\n\n\
                  Examples:\n  downbeat compare results/openmpi results/mpich\n  \
                  downbeat compare results/before results/after --alternative greater"
)]
pub(crate) struct Options {
    /// The folder of the first experiment
    #[arg(value_name = "A")]
    first: PathBuf,
    /// The folder of the second one
    #[arg(value_name = "B")]
    second: PathBuf,
    /// What is to be shown: that A and B differ, that A takes less time, or that A takes more
    #[arg(long, value_enum, default_value_t = Alternative::TwoSided)]
    alternative: Alternative,
    /// Which average of each launch is compared
    #[arg(long, value_enum, default_value_t = AverageOption::Median, value_name = "AVERAGE")]
    of: AverageOption,
    /// Show the values of the factors that differ, too
    #[arg(long)]
    factor_differences: bool,
    #[command(flatten)]
    analysis: AnalysisOptions,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Alternative {
    TwoSided,
    Less,
    Greater,
}

impl Alternative {
    fn of(self, p: &PValues) -> f64 {
        match self {
            Self::TwoSided => p.two_sided,
            Self::Less => p.less,
            Self::Greater => p.greater,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::TwoSided => "two-sided",
            Self::Less => "less",
            Self::Greater => "greater",
        }
    }

    const fn question(self) -> &'static str {
        match self {
            Self::TwoSided => "A and B differ",
            Self::Less => "A takes less time",
            Self::Greater => "A takes more time",
        }
    }
}

/// The level at which means have to look normal for their t-test to be believed.
const NORMALITY: f64 = 0.05;

/// What was compared.
struct Compared {
    settings: AnalysisSettings,
    experiments: [Analysis; 2],
    found: ExperimentComparison,
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let settings = options.analysis.settings();
    let experiments = [
        analyse(&options.first, &settings)?,
        analyse(&options.second, &settings)?,
    ];
    let [first, second] = &experiments;
    let found = ExperimentComparison::new(first, second, options.of.into(), settings.confidence);
    if found.groups.is_empty() {
        return Err(nothing_in_common(options, &experiments));
    }
    let compared = Compared {
        settings,
        experiments,
        found,
    };
    if options.json {
        output::print_json(&document::report(options, &compared))
    } else {
        output::print(&render(options, &compared))
    }
}

fn nothing_in_common(options: &Options, experiments: &[Analysis; 2]) -> Failure {
    let of = Average::from(options.of);
    let first = |folder: &Path, analysis: &Analysis| match analysis
        .groups
        .iter()
        .find(|group| group.averages(of).is_some())
    {
        Some(group) => format!("{} begins with {}", folder.display(), group.key),
        None => format!("{} has no {}", folder.display(), plural(of)),
    };
    let (one, other) = (
        first(&options.first, &experiments[0]),
        first(&options.second, &experiments[1]),
    );
    Failure::Input(format!(
        "the experiments have nothing in common that could be compared: {one}, {other}"
    ))
}

fn render(options: &Options, compared: &Compared) -> String {
    let Compared {
        settings,
        experiments,
        found,
    } = compared;
    let mut text = String::new();
    for (letter, folder, analysis) in [
        ("A", &options.first, &experiments[0]),
        ("B", &options.second, &experiments[1]),
    ] {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(
            text,
            "{letter}: {}, {}",
            folder.display(),
            super::launches(analysis.launches.len())
        );
    }
    text += &factors(options, found);
    text.push('\n');
    let average = found.average.name();
    let (of_a, of_b) = (format!("{average} A"), format!("{average} B"));
    let mut table = Table::new([
        "operation",
        "bytes",
        "ranks",
        "launches",
        &of_a,
        &of_b,
        "A - B",
        "of B",
        "p",
        "by",
        "p, Holm",
        "",
        "p, t-test",
    ]);
    for group in &found.groups {
        table.row(row(options, group));
    }
    text += &table.render();
    text.push('\n');
    for remark in remarks(compared) {
        let _ = writeln!(text, "Note: {remark}");
    }
    text += &outliers_line(settings);
    text += &explanation(options, compared);
    text
}

/// In what the experiments differ.
fn factors(options: &Options, found: &ExperimentComparison) -> String {
    if found.factors.is_empty() {
        return "No recorded factor differs.\n".to_owned();
    }
    let names: Vec<&str> = found
        .factors
        .iter()
        .map(|factor| factor.name.as_str())
        .collect();
    let mut text = format!("Factors that differ: {}\n", names.join(", "));
    if options.factor_differences {
        let mut table = Table::new(["factor", "A", "B"]);
        for factor in &found.factors {
            let [first, second] = factor
                .values
                .clone()
                .map(|value| value.unwrap_or_else(|| "(none)".to_owned()));
            table.row([factor.name.clone(), first, second]);
        }
        text.push('\n');
        text += &table.render();
    }
    text
}

fn row(options: &Options, group: &ComparedGroup) -> [String; 13] {
    let ComparedGroup {
        key,
        comparison: found,
        adjusted,
    } = group;
    let [operation, bytes, ranks] = key_cells(key);
    let adjusted = options.alternative.of(adjusted);
    let shift = &found.shift;
    let doubt = if found.means_are_doubtful(NORMALITY) {
        " (doubtful)"
    } else {
        ""
    };
    let t_test = found
        .welch
        .as_ref()
        .ok()
        .map(|t| format!("{}{doubt}", probability(options.alternative.of(&t.p))));
    [
        operation,
        bytes,
        ranks,
        format!("{} + {}", found.launches[0], found.launches[1]),
        time(found.medians[0]),
        time(found.medians[1]),
        time_within(shift.shift, [shift.interval.low, shift.interval.high]),
        or_dash(found.relative_shift().map(percent)),
        probability(options.alternative.of(&found.mann_whitney.p)),
        method(found.mann_whitney.method).to_owned(),
        probability(adjusted),
        stars(adjusted).to_owned(),
        or_dash(t_test),
    ]
}

const fn method(method: RankMethod) -> &'static str {
    match method {
        RankMethod::Exact => "exact",
        _ => "approximate",
    }
}

/// What the table cannot say.
fn remarks(compared: &Compared) -> Vec<String> {
    let found = &compared.found;
    let mut remarks = Vec::new();
    for (who, missing) in ["A", "B"].into_iter().zip(&found.missing) {
        if !missing.is_empty() {
            let names: Vec<String> = missing.iter().map(ToString::to_string).collect();
            remarks.push(format!(
                "{who} has no {} of {}",
                plural(found.average),
                names.join("; ")
            ));
        }
    }
    for (who, analysis) in ["A", "B"].into_iter().zip(&compared.experiments) {
        if !analysis.incomplete.is_empty() {
            remarks.push(format!(
                "{who}: not measured to the end: {}",
                analysis.incomplete.join(", ")
            ));
        }
    }
    let wanted = compared.settings.confidence.share();
    let least = found
        .groups
        .iter()
        .map(|group| group.comparison.shift.confidence)
        .fold(1.0, f64::min);
    // An interval that counts on the normal distribution has just what was asked for, but for rounding.
    if least < wanted * (1.0 - 1e-9) {
        let (wanted, least) = (percentage(wanted), percentage(least));
        remarks.push(format!(
            "there are too few launches for intervals of {wanted}: the least confident has {least}"
        ));
    }
    if found
        .groups
        .iter()
        .any(|group| group.comparison.welch.is_err())
    {
        let why = found
            .groups
            .iter()
            .find_map(|group| group.comparison.welch.err());
        remarks.extend(why.map(|why| format!("where there is no t-test: {why}")));
    }
    if found
        .groups
        .iter()
        .any(|group| group.comparison.means_are_doubtful(NORMALITY))
    {
        remarks.push(
            "doubtful t-tests: the launches' means are not normal, or too few to tell".to_owned(),
        );
    }
    remarks
}

fn explanation(options: &Options, compared: &Compared) -> String {
    let (confidence, of) = (
        percentage(compared.settings.confidence.share()),
        compared.found.average,
    );
    format!(
        "A - B: Hodges and Lehmann's shift, with its {confidence} interval; negative where A takes less time.\n\
         p: how likely such {} of launches are by chance alone, against \"{}\"; Wilcoxon, Mann and Whitney's test.\n\
         Holm's counts how many groups were asked, and has the stars: * p <= 0.05, ** p <= 0.01, *** p <= 0.001.\n\
         t-test: Welch's, of the launches' {}.\n",
        plural(of),
        options.alternative.question(),
        plural(if of == Average::Reported {
            of
        } else {
            Average::Mean
        })
    )
}
