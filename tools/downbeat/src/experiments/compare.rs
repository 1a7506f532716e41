//! `downbeat compare`: whether two experiments differ, and by how much, as section 5.2 of the 2016 paper has it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use downbeat_common::Failure;
use downbeat_common::output::{self, Table, percent, probability, time, time_within};
use downbeat_measure::analysis::{Analysis, Average, ComparedGroup, ExperimentComparison, Settings};
use downbeat_measure::{GroupKey, PValues, RankMethod, stars};
use serde::Serialize;

use super::{AnalysisOptions, AverageOption, JsonFactors, JsonKey, JsonMethod, analyse, key_cells, percentage};
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
    settings: Settings,
    experiments: [Analysis; 2],
    found: ExperimentComparison,
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let settings = options.analysis.settings();
    let experiments = [analyse(&options.first, &settings)?, analyse(&options.second, &settings)?];
    let [first, second] = &experiments;
    let found = ExperimentComparison::of(first, second, options.of.into(), settings.confidence);
    if found.groups.is_empty() {
        return Err(nothing_in_common(options, &experiments));
    }
    let compared = Compared { settings, experiments, found };
    if options.json {
        output::print_json(&report(options, &compared))
    } else {
        output::print(&render(options, &compared))
    }
}

fn nothing_in_common(options: &Options, experiments: &[Analysis; 2]) -> Failure {
    let of = Average::from(options.of);
    let first =
        |folder: &Path, analysis: &Analysis| match analysis.groups.iter().find(|group| group.averages(of).is_some()) {
            Some(group) => format!("{} begins with {}", folder.display(), group.key),
            None => format!("{} has no {}", folder.display(), plural(of)),
        };
    let (one, other) = (first(&options.first, &experiments[0]), first(&options.second, &experiments[1]));
    Failure::Input(format!("the experiments have nothing in common that could be compared: {one}, {other}"))
}

fn render(options: &Options, compared: &Compared) -> String {
    let Compared { settings, experiments, found } = compared;
    let mut text = String::new();
    for (letter, folder, analysis) in [("A", &options.first, &experiments[0]), ("B", &options.second, &experiments[1])]
    {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(text, "{letter}: {}, {}", folder.display(), super::launches(analysis.launches.len()));
    }
    text += &factors(options, found);
    text.push('\n');
    let average = found.of.name();
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
    let names: Vec<&str> = found.factors.iter().map(|factor| factor.name.as_str()).collect();
    let mut text = format!("Factors that differ: {}\n", names.join(", "));
    if options.factor_differences {
        let mut table = Table::new(["factor", "A", "B"]);
        for factor in &found.factors {
            let [first, second] = factor.values.clone().map(|value| value.unwrap_or_else(|| "(none)".to_owned()));
            table.row([factor.name.clone(), first, second]);
        }
        text.push('\n');
        text += &table.render();
    }
    text
}

fn row(options: &Options, group: &ComparedGroup) -> [String; 13] {
    let ComparedGroup { key, comparison: found, adjusted } = group;
    let [operation, bytes, ranks] = key_cells(key);
    let adjusted = options.alternative.of(adjusted);
    let shift = &found.shift;
    let doubt = if found.means_are_doubtful(NORMALITY) { " (doubtful)" } else { "" };
    let t_test = found.welch.as_ref().ok().map(|t| format!("{}{doubt}", probability(options.alternative.of(&t.p))));
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
            remarks.push(format!("{who} has no {} of {}", plural(found.of), names.join("; ")));
        }
    }
    for (who, analysis) in ["A", "B"].into_iter().zip(&compared.experiments) {
        if !analysis.incomplete.is_empty() {
            remarks.push(format!("{who}: not measured to the end: {}", analysis.incomplete.join(", ")));
        }
    }
    let wanted = compared.settings.confidence.share();
    let least = found.groups.iter().map(|group| group.comparison.shift.confidence).fold(1.0, f64::min);
    // An interval that counts on the normal distribution has just what was asked for, but for rounding.
    if least < wanted * (1.0 - 1e-9) {
        let (wanted, least) = (percentage(wanted), percentage(least));
        remarks.push(format!("there are too few launches for intervals of {wanted}: the least confident has {least}"));
    }
    if found.groups.iter().any(|group| group.comparison.welch.is_err()) {
        let why = found.groups.iter().find_map(|group| group.comparison.welch.err());
        remarks.extend(why.map(|why| format!("where there is no t-test: {why}")));
    }
    if found.groups.iter().any(|group| group.comparison.means_are_doubtful(NORMALITY)) {
        remarks.push("doubtful t-tests: the launches' means are not normal, or too few to tell".to_owned());
    }
    remarks
}

fn explanation(options: &Options, compared: &Compared) -> String {
    let (confidence, of) = (percentage(compared.settings.confidence.share()), compared.found.of);
    format!(
        "A - B: Hodges and Lehmann's shift, with its {confidence} interval; negative where A takes less time.\n\
         p: how likely such {} of launches are by chance alone, against \"{}\"; Wilcoxon, Mann and Whitney's test.\n\
         Holm's counts how many groups were asked, and has the stars: * p <= 0.05, ** p <= 0.01, *** p <= 0.001.\n\
         t-test: Welch's, of the launches' {}.\n",
        plural(of),
        options.alternative.question(),
        plural(if of == Average::Reported { of } else { Average::Mean })
    )
}

/// Everything, as one JSON document.
#[derive(Debug, Serialize)]
struct Report<'a> {
    schema: &'static str,
    version: u32,
    #[serde(flatten)]
    method: JsonMethod,
    alternative: &'static str,
    /// Which average of each launch was compared.
    of: &'static str,
    experiments: [ExperimentReport<'a>; 2],
    differing_factors: Vec<&'a str>,
    groups: Vec<GroupReport<'a>>,
}

#[derive(Debug, Serialize)]
struct ExperimentReport<'a> {
    folder: String,
    factors: JsonFactors<'a>,
    launches: &'a [String],
    incomplete: &'a [String],
    /// The groups that it has no averages of, though the other one has.
    missing: Vec<JsonKey<'a>>,
}

#[derive(Debug, Serialize)]
struct GroupReport<'a> {
    #[serde(flatten)]
    key: JsonKey<'a>,
    launches: [usize; 2],
    medians_ns: [f64; 2],
    shift_ns: f64,
    shift_low_ns: f64,
    shift_high_ns: f64,
    shift_confidence: f64,
    /// The shift as a share of the second median.
    relative_shift: Option<f64>,
    u: f64,
    p_method: &'static str,
    p: Sides,
    p_holm: Sides,
    /// By Holm's p of the alternative.
    stars: &'static str,
    t_test: Option<TTest>,
    /// Whether the means of each look normal; not known if there are too few.
    normality_p: [Option<f64>; 2],
}

#[derive(Debug, Serialize)]
struct Sides {
    two_sided: f64,
    less: f64,
    greater: f64,
}

impl From<PValues> for Sides {
    fn from(PValues { two_sided, less, greater }: PValues) -> Self {
        Self { two_sided, less, greater }
    }
}

#[derive(Debug, Serialize)]
struct TTest {
    t: f64,
    freedom: f64,
    p: Sides,
    /// The means are not normal, or too few to tell.
    doubtful: bool,
}

fn report<'a>(options: &Options, compared: &'a Compared) -> Report<'a> {
    let Compared { experiments: [first, second], found, .. } = compared;
    let experiment = |folder: &Path, analysis: &'a Analysis, missing: &'a [GroupKey]| ExperimentReport {
        folder: folder.display().to_string(),
        factors: JsonFactors(&analysis.factors),
        launches: &analysis.launches,
        incomplete: &analysis.incomplete,
        missing: missing.iter().map(JsonKey::from).collect(),
    };
    Report {
        schema: "downbeat.comparison",
        version: 1,
        method: options.analysis.method(),
        alternative: options.alternative.name(),
        of: found.of.name(),
        experiments: [
            experiment(&options.first, first, &found.missing[0]),
            experiment(&options.second, second, &found.missing[1]),
        ],
        differing_factors: found.factors.iter().map(|factor| factor.name.as_str()).collect(),
        groups: found.groups.iter().map(|group| group_report(options, group)).collect(),
    }
}

fn group_report<'a>(options: &Options, group: &'a ComparedGroup) -> GroupReport<'a> {
    let ComparedGroup { key, comparison: found, adjusted } = group;
    let t_test = found.welch.as_ref().ok().map(|welch| TTest {
        t: welch.t,
        freedom: welch.freedom,
        p: welch.p.into(),
        doubtful: found.means_are_doubtful(NORMALITY),
    });
    GroupReport {
        key: key.into(),
        launches: found.launches,
        medians_ns: found.medians,
        shift_ns: found.shift.shift,
        shift_low_ns: found.shift.interval.low,
        shift_high_ns: found.shift.interval.high,
        shift_confidence: found.shift.confidence,
        relative_shift: found.relative_shift(),
        u: found.mann_whitney.u,
        p_method: method(found.mann_whitney.method),
        p: found.mann_whitney.p.into(),
        p_holm: (*adjusted).into(),
        stars: stars(options.alternative.of(adjusted)),
        t_test,
        normality_p: found.normality.map(|tested| tested.ok().map(|tested| tested.p)),
    }
}
