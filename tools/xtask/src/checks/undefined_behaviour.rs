//! Undefined behaviour and data races, as an interpreter, sanitizers and valgrind find
//! them; only in the long run. All but valgrind need the nightly compiler.

use std::process::Command;
use std::time::Duration;

use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, command};

use crate::programs::Programs;
use crate::steps::Step;
use crate::workspace::{Workspace, host};

/// Interpreted and instrumented tests are slow.
const LIMIT: Duration = Duration::from_secs(40 * 60);

/// Tests that Miri runs: packages, and parts of the names of their unit tests.
const INTERPRETED: [(&str, &str); 4] = [
    ("downbeat-clock-core", "latch published encoding"),
    ("downbeat-regions", "registry region::"),
    ("downbeat-sync", "thread::"),
    (
        "downbeat-trace",
        "formats::tests::the_format formats::bytes formats::hostile::first formats::hostile::disk",
    ),
];

/// Tests that run with sanitizers: those of threads, registries and replays.
const SANITIZED: &str = "-p downbeat-regions -p downbeat-sync -p downbeat-trace --features downbeat-regions/json,downbeat-regions/ranks --lib --test stencil --test thread_comm";

pub(crate) fn steps(workspace: &Workspace) -> [Step<'_>; 4] {
    [
        Step::new("Miri", || {
            INTERPRETED.into_iter().try_for_each(|(package, tests)| {
                let mut miri = command("cargo +nightly miri test --lib -p");
                miri.args([package, "--target-dir"])
                    .arg(workspace.built("miri"))
                    .arg("--")
                    .args(tests.split_whitespace())
                    .env("MIRIFLAGS", "-Zmiri-disable-isolation")
                    .env("PROPTEST_CASES", "2");
                run(&mut miri)
            })
        }),
        Step::new("AddressSanitizer", || sanitize(workspace, "address")),
        Step::new("ThreadSanitizer", || sanitize(workspace, "thread")),
        Step::new("valgrind: damaged OTF2 archives", || valgrind(workspace)),
    ]
}

fn sanitize(workspace: &Workspace, sanitizer: &str) -> Outcome {
    let mut test = command("cargo +nightly test -Zbuild-std --target");
    test.arg(host()?)
        .args(SANITIZED.split_whitespace())
        .arg("--target-dir")
        .arg(workspace.built(sanitizer))
        .env("RUSTFLAGS", format!("-Zsanitizer={sanitizer}"))
        .env("PROPTEST_CASES", "16")
        // The registry of regions leaks on purpose.
        .env("ASAN_OPTIONS", "detect_leaks=0");
    run(&mut test)
}

/// Damaged archives, on the stable compiler.
fn valgrind(workspace: &Workspace) -> Outcome {
    let mut build =
        command("cargo test --no-run -p downbeat-trace --features otf2-tools --test otf2");
    build.arg("--target-dir").arg(workspace.built("openmpi"));
    let test = Programs::build(&mut build)?.executable("otf2")?;
    let mut valgrind = command("valgrind --quiet --error-exitcode=99 --leak-check=no");
    valgrind.arg(test).args(["errors", "truncated", "damaged"]);
    run(&mut valgrind)
}

fn run(command: &mut Command) -> Outcome {
    shell::show_and_read(LIMIT, command).map(drop)
}
