//! What the user asked for.

pub(crate) const HELP: &str = "\
Checks and benchmarks of Downbeat.

Usage: cargo xtask test [--quick] [--only TEXT]
       cargo xtask bench [--gate] [--criterion] [--only TEXT]

  test         every check that the project promises: format, lints over all features,
               documentation, tests, examples, no_std, loom, and MPI programs under Open MPI
               and MPICH. Installs missing Debian packages when it may (root or passwordless sudo).
    --quick      only the checks that need no system packages
    --only TEXT  only the steps whose name contains the text

  bench        the tables of ratios, one of them under Open MPI
    --gate       fail when a bound that the project promises is missed
    --criterion  every crate's criterion benchmarks too
    --only TEXT  only the tables whose name contains the text

  -h, --help   this text

Each step prints the exact command it runs. The last line counts the steps: `21 passed, 0 failed`.
The exit code is 0 when all passed, 1 when one failed, 2 when the arguments are wrong.

Example: cargo xtask test --quick
";

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Help,
    Test {
        quick: bool,
        only: String,
    },
    Bench {
        gate: bool,
        criterion: bool,
        only: String,
    },
}

pub(crate) fn parse(args: impl Iterator<Item = String>) -> Result<Task, String> {
    let args: Vec<String> = args.collect();
    let mut words: Vec<&str> = args.iter().map(String::as_str).collect();
    if words.iter().any(|&word| word == "--help" || word == "-h") {
        return Ok(Task::Help);
    }
    // All names contain nothing.
    let mut only = String::new();
    if let Some(at) = words.iter().position(|&word| word == "--only") {
        only = words
            .get(at + 1)
            .ok_or("`--only` needs a text")?
            .to_string();
        words.drain(at..=at + 1);
    }
    match words.as_slice() {
        [] => Err("nothing to do".into()),
        ["test", options @ ..] => {
            let [quick] = switches("test", options, ["--quick"])?;
            Ok(Task::Test { quick, only })
        }
        ["bench", options @ ..] => {
            let [gate, criterion] = switches("bench", options, ["--gate", "--criterion"])?;
            Ok(Task::Bench {
                gate,
                criterion,
                only,
            })
        }
        [other, ..] => Err(format!("there is no task `{other}`")),
    }
}

/// Which of the `known` switches are among the options.
fn switches<const N: usize>(
    task: &str,
    options: &[&str],
    known: [&str; N],
) -> Result<[bool; N], String> {
    match options.iter().find(|option| !known.contains(option)) {
        Some(unknown) => Err(format!("`{task}` has no option `{unknown}`")),
        None => Ok(known.map(|switch| options.contains(&switch))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Task, String> {
        parse(line.split_whitespace().map(String::from))
    }

    #[test]
    fn tasks_and_their_switches() {
        let test = |quick, only: &str| {
            Ok(Task::Test {
                quick,
                only: only.to_owned(),
            })
        };
        let bench = |gate, criterion| {
            Ok(Task::Bench {
                gate,
                criterion,
                only: String::new(),
            })
        };
        assert_eq!(parsed("test"), test(false, ""));
        assert_eq!(parsed("test --quick"), test(true, ""));
        assert_eq!(parsed("test --only MPICH --quick"), test(true, "MPICH"));
        assert!(parsed("test --only").is_err());
        assert_eq!(parsed("bench --criterion"), bench(false, true));
        assert_eq!(parsed("bench --criterion --gate"), bench(true, true));
        assert_eq!(parsed("bench --help"), Ok(Task::Help));
    }

    #[test]
    fn what_is_unknown_is_named() {
        assert_eq!(parsed("tset"), Err("there is no task `tset`".into()));
        assert_eq!(
            parsed("test --quik"),
            Err("`test` has no option `--quik`".into())
        );
        assert_eq!(
            parsed("test --gate"),
            Err("`test` has no option `--gate`".into())
        );
        assert!(parsed("").is_err());
    }
}
