//! `downbeat guidelines`: operations that are slower than something else with the same result, after PGMPI and pgchecker.

mod document;
mod list;
mod page;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
use downbeat_clock_core::parse_share;
use downbeat_common::output::{count, probability, time};
use downbeat_common::page::PageOptions;
use downbeat_common::units::joined;
use downbeat_common::{Failure, PrintOptions, RowMark, Table, Text};
use downbeat_records::GroupKey;
use downbeat_records::analysis::{
    Analysis, AnalysisSettings, Average, Guideline, GuidelineTest, Guidelines, TestedGuideline,
};
use downbeat_records::stats::Interval;

use super::{AnalysisOptions, AverageOption, ResultTable, SeenLaunches, analyse, table_of_groups};
use super::{outliers_line, percentage, places, plural, protect_records};

#[derive(Args, Debug)]
#[command(
    after_help = "Guidelines: an operation is not slower than others that have the same result (allreduce <= reduce + bcast, \
                  gather <= allgather, ...; blocking <= non-blocking, persistent <= both), than itself with larger messages, and than several calls \
                  with parts of the message. Those whose operations and sizes were measured in the same launches are tested, at \
                  least twelve launches for some tens of guidelines.\n\n\
                  Examples:\n  downbeat run -n 20 --out guide -- mpirun -np 4 downbeat-mpi bench \\\n    \
                  --operation blocking --sizes 8,32,128,512 --time-slice 50ms\n  \
                  downbeat guidelines guide -o guidelines.html"
)]
pub(crate) struct GuidelineOptions {
    /// Folder of an experiment
    #[arg(value_name = "DIR", required_unless_present = "list")]
    folder: Option<PathBuf>,
    /// List the guidelines between operations, and test none
    #[arg(long, conflicts_with_all = ["folder", "output", "check", "all"])]
    list: bool,
    /// Multiple of the other side that an operation may take
    #[arg(long, value_name = "FACTOR", default_value = "1.05", value_parser = tolerance, allow_hyphen_values = true)]
    tolerance: f64,
    /// Significance level: the probability that any guideline is taken for violated though none is
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = parse_share, allow_hyphen_values = true)]
    level: f64,
    /// Also list the guidelines that hold
    #[arg(long)]
    all: bool,
    /// Fail with exit code 1 if a guideline is violated, and with 2 if there are too few
    /// launches to find that
    #[arg(long)]
    check: bool,
    /// Average of each launch to compare
    #[arg(long, value_enum, default_value_t = AverageOption::Median, value_name = "AVERAGE")]
    of: AverageOption,
    #[command(flatten)]
    page: PageOptions,
    #[command(flatten)]
    analysis: AnalysisOptions,
    #[command(flatten)]
    print: PrintOptions,
}

fn tolerance(text: &str) -> Result<f64, String> {
    let factor: f64 = text.parse().map_err(|_| "must be a number".to_owned())?;
    if factor.is_finite() && factor >= 1.0 {
        Ok(factor)
    } else {
        Err("must be at least 1".to_owned())
    }
}

/// Guidelines of an experiment, and their verdicts.
struct GuidelineReport<'a> {
    options: &'a GuidelineOptions,
    folder: &'a Path,
    settings: AnalysisSettings,
    analysis: Analysis,
    guidelines: Guidelines,
    tested: Vec<TestedGuideline>,
}

pub(crate) fn run(options: &GuidelineOptions) -> Result<(), Failure> {
    let Some(folder) = &options.folder else {
        return options.print.print(list::document, list::text);
    };
    protect_records(&options.page, [folder])?;
    let settings = options.analysis.settings();
    let mut seen = SeenLaunches::default();
    let analysis = analyse(folder, &settings, options.analysis.verify, &mut seen)?;
    let keys: Vec<GroupKey> = analysis.groups.iter().map(|one| one.key.clone()).collect();
    let guidelines = Guideline::all(&keys);
    let average = Average::from(options.of);
    let test = GuidelineTest {
        average,
        tolerance: options.tolerance,
        level: options.level,
        confidence: settings.confidence,
    };
    let tested = test.run(&guidelines.testable, &analysis);
    let report = GuidelineReport {
        options,
        folder,
        settings,
        analysis,
        guidelines,
        tested,
    };
    if report.tested.is_empty() {
        return Err(report.nothing_tested());
    }
    options.page.write_or(
        &format!("Performance guidelines: {}", folder.display()),
        || report.page(),
        || options.print.print(|| report.document(), || report.text()),
    )?;
    match options.check {
        true => report.check(),
        false => Ok(()),
    }
}

/// Counts guidelines, with the verb.
fn guidelines_are(number: usize) -> String {
    let verb = if number == 1 { "is" } else { "are" };
    format!("{} {verb}", count(number, "guideline"))
}

impl GuidelineReport<'_> {
    fn violated(&self) -> impl Iterator<Item = &TestedGuideline> + Clone {
        self.tested.iter().filter(|one| one.violated)
    }

    /// Fails if a guideline is violated, or if none could be found to be.
    fn check(&self) -> Result<(), Failure> {
        let violated = self.violated().count();
        if violated > 0 {
            let violated = guidelines_are(violated);
            return Err(Failure::Run(format!("{violated} violated")));
        }
        match self.too_few_launches() {
            Some((few, why)) if few == self.tested.len() => Err(Failure::option("--check", why)),
            _ => Ok(()),
        }
    }

    /// Counts the guidelines that were measured in too few launches, if there are any,
    /// and says how many are needed.
    fn too_few_launches(&self) -> Option<(usize, String)> {
        // Exact p values of the signed-rank test cannot be less, and Holm's method
        // multiplies the least by the number of tests.
        let least = |launches: i32| 0.5_f64.powi(launches) * self.tested.len() as f64;
        let can_show = |launches: i32| least(launches) <= self.options.level;
        let few = self
            .tested
            .iter()
            .filter(|one| !can_show(one.launches as i32))
            .count();
        let needed = (1..).find(|launches| can_show(*launches))?;
        let why = format!(
            "{} measured in too few launches to find a violation among {}, which takes {needed}",
            guidelines_are(few),
            count(self.tested.len(), "guideline")
        );
        (few > 0).then_some((few, why))
    }

    fn nothing_tested(&self) -> Failure {
        let folder = self.folder.display();
        let why = match (self.guidelines.testable.is_empty(), self.missing()) {
            (true, Some(missing)) => missing,
            (true, None) => {
                "no operations with the same result, or other sizes, were measured".to_owned()
            }
            (false, _) => format!(
                "no launch has {} of both sides of one",
                plural(self.options.of.into())
            ),
        };
        Failure::Input(format!("{folder}: no guideline can be tested: {why}"))
    }

    /// Verdict in one sentence.
    fn verdict(&self) -> String {
        let tested = count(self.tested.len(), "guideline");
        match self.violated().count() {
            0 => format!("None of {tested} is violated"),
            1 => format!("1 of {tested} is violated"),
            violated => format!("{violated} of {tested} are violated"),
        }
    }

    /// Names what must be measured for the guidelines that were not tested, if there are any.
    fn missing(&self) -> Option<String> {
        let Guidelines {
            missing,
            untestable,
            ..
        } = &self.guidelines;
        if missing.is_empty() {
            return None;
        }
        let operations: BTreeSet<&str> = missing.iter().map(|key| &*key.operation).collect();
        let sizes: BTreeSet<u64> = missing.iter().map(|key| key.bytes).collect();
        Some(format!(
            "{} that were not measured in any launch: add --operation {} and --sizes {}",
            match untestable {
                1 => "1 guideline needs groups".to_owned(),
                many => format!("{many} guidelines need groups"),
            },
            joined(operations, ","),
            joined(sizes.iter().map(u64::to_string), ",")
        ))
    }

    /// Lines below tables.
    fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.missing().into_iter().collect();
        let apart = self.guidelines.testable.len() - self.tested.len();
        if apart > 0 {
            notes.push(format!(
                "{} not tested, as no launch has both sides",
                guidelines_are(apart)
            ));
        }
        notes.extend(self.too_few_launches().map(|(_, why)| why));
        notes.extend(places(&self.analysis));
        notes
    }

    /// Explanations of the columns.
    fn explanation(&self) -> String {
        let GuidelineOptions {
            tolerance, level, ..
        } = self.options;
        format!(
            "Takes, at most: {} of the launches. Times: operation / other side in the same launch, with its {} interval.\n\
             p: Wilcoxon's signed-rank test that it takes more than {tolerance} times as long, adjusted by Holm's method. Violated: p <= {level}.\n",
            plural(self.options.of.into()),
            percentage(self.settings.confidence.share()),
        )
    }

    fn text(&self) -> Text {
        let (folder, launches) = (self.folder.display(), self.analysis.launches.len());
        let is_shown = |one: &&TestedGuideline| one.violated || self.options.all;
        let results = ResultTable {
            table: table(self.tested.iter().filter(is_shown)),
            notes: self.notes(),
            explanation: outliers_line(&self.settings) + &self.explanation(),
        };
        let launches = super::launches(launches);
        results.text(format!("{}: {folder}, {launches}\n\n", self.verdict()))
    }
}

/// Creates the table of some guidelines.
fn table<'a>(guidelines: impl Iterator<Item = &'a TestedGuideline>) -> Table {
    table_of_groups(guidelines, |one| &one.guideline.key)
        .column("not slower than", |one| one.guideline.bound())
        .column("takes", |one| time(one.medians[0]))
        .column("at most", |one| time(one.medians[1]))
        .column("times", |one| {
            let Interval { low, high } = one.interval;
            format!("{:.2} [{low:.2}, {high:.2}]", one.times)
        })
        .column("p", |one| probability(one.adjusted))
        .column("", |one| {
            if one.violated { "violated" } else { "" }.to_owned()
        })
        .mark(|one| one.violated.then_some(RowMark::Highlight))
        .named_by(4)
}
