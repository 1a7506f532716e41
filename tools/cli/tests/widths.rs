//! Tables of all commands fit the width that they are given.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
#![expect(dead_code, reason = "helpers of other tests")]

#[path = "report/experiments.rs"]
mod experiments;
#[path = "regions/made.rs"]
mod made;
mod shown;

use std::path::PathBuf;
use std::process::Command;

use experiments::MadeExperiment;
use made::MadeRegions;
use shown::{is_long, scratch};

/// Returns the columns of terminals; in a long run of more.
fn terminal_widths() -> &'static [usize] {
    if is_long() {
        &[60, 80, 100, 140]
    } else {
        &[60, 80]
    }
}

/// Commands whose output only depends on their input: all words must be the same at all widths.
const REPEATABLE: [&[&str]; 12] = [
    &["analyze", "a", "b"],
    &["compare", "a", "b", "--factor-differences"],
    &["reproducibility", "a", "b"],
    &["samplesize", "a", "--means", "50"],
    &["guidelines", "a", "--all"],
    &["import", "osu.txt", "--ranks", "4", "--out", "osu"],
    &["regions", "show", "run.json"],
    &["regions", "diff", "run.json", "other.json"],
    &["trace", "check", "right.dbt", "--against", "raw.dbt"],
    &["trace", "waits", "right.dbt"],
    &[
        "simulate",
        "--ranks",
        "8",
        "--keep",
        "1s",
        "--lasting",
        "30s",
    ],
    &[
        "trace",
        "correct",
        "raw.dbt",
        "-o",
        "again.dbt",
        "--truth",
        "truth.dbt",
    ],
];

/// Commands that measure.
const MEASURING: [&[&str]; 6] = [
    &["clocks"],
    &["calibrate", "--duration", "10ms"],
    &[
        "sync",
        "--algorithm",
        "skampi/skampi/10",
        "--check",
        "0,10s",
    ],
    &[
        "simulate",
        "--ranks",
        "8",
        "--algorithm",
        "jk/10/skampi/10,hca3/10/skampi/10",
        "--repeat",
        "2",
    ],
    &[
        "bench",
        "--operation",
        "bcast",
        "--scheme",
        "ms1",
        "--reps",
        "10",
    ],
    &[
        "time",
        "-n",
        "2",
        "--variant",
        "one",
        "--parameter",
        "seconds=0,0.001",
        "--",
        "sleep",
        "{seconds}",
    ],
];

/// Commands with help.
const HELP: [&str; 26] = [
    "",
    "clocks",
    "calibrate",
    "sync",
    "simulate",
    "bench",
    "run",
    "time",
    "import",
    "analyze",
    "compare",
    "guidelines",
    "reproducibility",
    "samplesize",
    "report",
    "regions",
    "regions show",
    "regions diff",
    "record",
    "record-rank",
    "trace correct",
    "trace check",
    "trace show",
    "trace waits",
    "trace convert",
    "trace merge",
];

struct Inputs(PathBuf);

impl Inputs {
    fn new(test: &str) -> Self {
        let folder = scratch(test);
        for (name, slower, library) in [("a", 1.0, "Open MPI"), ("b", 1.3, "MPICH")] {
            let made = MadeExperiment {
                launches: 6,
                observations: 40,
                slower,
                library,
            };
            made.write(&folder.join(name));
        }
        MadeRegions::on(16, 4).write(&folder.join("run.json"));
        let other = MadeRegions {
            balanced: true,
            ..MadeRegions::on(16, 4)
        };
        other.write(&folder.join("other.json"));
        let printed =
            "# OSU MPI Allreduce Latency Test v7.4\n# Size       Avg Latency(us)\n8 28.46\n";
        std::fs::write(folder.join("osu.txt"), printed).expect("a file can be written");
        let inputs = Self(folder);
        // The next import finds the record.
        inputs.shown(&["import", "osu.txt", "--ranks", "4", "--out", "osu"], None);
        inputs.shown(
            &[
                "trace",
                "generate",
                "-o",
                "raw.dbt",
                "--truth",
                "truth.dbt",
                "--events",
                "500",
            ],
            None,
        );
        inputs.shown(&["trace", "correct", "raw.dbt", "-o", "right.dbt"], None);
        inputs
    }

    /// Runs the program; returns its output.
    fn shown(&self, words: &[&str], width: Option<usize>) -> String {
        let width = width.map(|width| ("COLUMNS", width.to_string()));
        self.shown_with(words, width)
    }

    /// Runs the program with environment variables; returns its output.
    fn shown_with(
        &self,
        words: &[&str],
        variables: impl IntoIterator<Item = (&'static str, String)>,
    ) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_downbeat"));
        for ours in ["COLUMNS", "NO_COLOR", "CLICOLOR_FORCE"] {
            command.env_remove(ours);
        }
        command.args(words).current_dir(&self.0).envs(variables);
        let output = command.output().expect("the program starts");
        assert!(
            output.status.success(),
            "{words:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).expect("the program writes UTF-8")
    }
}

fn fits(text: &str, width: usize) -> bool {
    text.lines().all(|line| line.chars().count() <= width)
}

#[test]
fn no_line_is_wider_than_the_terminal_and_no_word_is_broken() {
    let inputs = Inputs::new("widths");
    let help = HELP.map(|command| {
        command
            .split_whitespace()
            .chain(["--help"])
            .collect::<Vec<_>>()
    });
    for words in REPEATABLE.into_iter().chain(help.iter().map(Vec::as_slice)) {
        let whole = inputs.shown(words, None);
        let known: Vec<&str> = whole.split_whitespace().collect();
        for &width in terminal_widths() {
            let text = inputs.shown(words, Some(width));
            assert!(fits(&text, width), "{words:?} in {width} columns:\n{text}");
            // Continued commands have them.
            let words_shown = text.split_whitespace().filter(|word| *word != "\\");
            for word in words_shown {
                assert!(
                    known.contains(&word),
                    "{words:?} in {width} columns: {word} in\n{text}"
                );
            }
        }
    }
    for words in MEASURING {
        for &width in terminal_widths() {
            let text = inputs.shown(words, Some(width));
            assert!(fits(&text, width), "{words:?} in {width} columns:\n{text}");
        }
    }
}

#[test]
fn headings_are_bold_where_colours_are_wanted() {
    let inputs = Inputs::new("bold");
    for words in REPEATABLE {
        let styled = |variables: &[(&'static str, &str)]| {
            let variables = variables.iter();
            inputs.shown_with(
                words,
                variables.map(|(name, value)| (*name, (*value).to_owned())),
            )
        };
        let plain = styled(&[]);
        assert!(!plain.contains('\u{1b}'), "{words:?}: {plain}");
        assert_eq!(styled(&[("NO_COLOR", "1")]), plain, "{words:?}");
        let bold = styled(&[("CLICOLOR_FORCE", "1")]);
        let unstyled = bold.replace("\u{1b}[1m", "").replace("\u{1b}[0m", "");
        assert_eq!(unstyled, plain, "{words:?}");
        // Reports of regions have the form of another program, checks and corrections are
        // sentences, and this trace has no waits.
        let without = [
            ["regions", "show"],
            ["trace", "check"],
            ["trace", "correct"],
            ["trace", "waits"],
        ];
        let is_table = !without.contains(&[words[0], words[1]]);
        assert_eq!(bold.contains("\u{1b}[1m"), is_table, "{words:?}: {bold}");
    }
}

#[test]
fn tables_have_other_forms() {
    let inputs = Inputs::new("forms");
    let form = |name| inputs.shown(&["analyze", "a", "--format", name], Some(60));
    let lines =
        |text: &str, begin: &str| text.lines().filter(|line| line.starts_with(begin)).count();
    let groups = experiments::OPERATIONS
        .iter()
        .map(|(_, sizes)| sizes.len())
        .sum::<usize>();
    assert_eq!(lines(&form("markdown"), "| "), groups + 2);
    assert_eq!(lines(&form("csv"), "operation,bytes,ranks,launches,"), 1);
    assert_eq!(lines(&form("csv"), "allreduce,"), 6);
    let latex = form("latex");
    assert_eq!(
        (
            lines(&latex, "\\begin{tabular}{"),
            lines(&latex, "\\end{tabular}")
        ),
        (1, 1)
    );
    assert_eq!(
        lines(&latex, "% "),
        latex.lines().filter(|line| !line.is_empty()).count() - groups - 6
    );
}
