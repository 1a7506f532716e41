//! What cargo and its tools check: format, documentation, other compilers and systems,
//! undefined behaviour, dependencies.

use std::collections::BTreeMap;
use std::time::Duration;

use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, command};

use crate::args::Depth;
use crate::checks::loom::MODELS;
use crate::mpi_builds::everything;
use crate::programs::Programs;
use crate::steps::Step;
use crate::workspace::{Package, Workspace, host};

/// Crates without std, in a program of a workspace of its own.
pub(crate) const NO_STD_PROBE: &str = "tests/no_std/Cargo.toml";

/// Other systems and processors; only in the long run, as nothing differs from the others
/// but the machine code.
const TARGETS: [&str; 5] = [
    "aarch64-unknown-linux-gnu",
    "aarch64-apple-darwin",
    "x86_64-unknown-linux-musl",
    "riscv64gc-unknown-linux-gnu",
    "x86_64-pc-windows-gnu",
];
/// It has no std, and no 64-bit atomics either.
const BARE_TARGET: &str = "thumbv7em-none-eabihf";

const EMULATED: &str = "aarch64-unknown-linux-gnu";
const EMULATOR: &str = "qemu-aarch64 -L /usr/aarch64-linux-gnu";

/// Interpreted and instrumented tests are slow.
const SLOW_LIMIT: Duration = Duration::from_secs(40 * 60);

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

/// The code is as rustfmt writes it.
pub(crate) fn format_steps<'a>() -> [Step<'a>; 3] {
    let check = |name, arguments: &str| {
        Step::command(name, command(&format!("cargo fmt {arguments} --check")))
    };
    [
        check("fmt", "--all"),
        check(
            "fmt: no_std probe",
            &format!("--manifest-path {NO_STD_PROBE}"),
        ),
        check("fmt: models of loom", &format!("--manifest-path {MODELS}")),
    ]
}

/// The documentation of users, and that of private items in the long run: a link from
/// public to private items is only noticed in the former.
pub(crate) fn documentation_steps<'a>(workspace: &Workspace, depth: Depth) -> Vec<Step<'a>> {
    let document = |name, options| {
        let mut doc = everything(workspace, depth, "cargo doc --no-deps --keep-going");
        doc.env("RUSTDOCFLAGS", "-D warnings").args(options);
        Step::command(name, doc)
    };
    let mut steps = vec![document("documentation", None)];
    if depth == Depth::Long {
        let private = Some("--document-private-items");
        steps.push(document("documentation of private items", private));
    }
    steps
}

/// Libraries and programs compile for other systems and processors, one step for each.
pub(crate) fn target_steps<'a>(workspace: &Workspace, depth: Depth) -> Vec<Step<'a>> {
    let check = |target: &str, options: &[&str], is_checked: fn(&Package) -> bool| {
        let words = format!("cargo check --lib --bins --target {target} --target-dir");
        let mut check = command(&words);
        check.arg(workspace.built("targets")).args(options);
        // What registries get and needs no MPI library.
        let packages = workspace
            .packages
            .iter()
            .filter(|package| package.published);
        for package in packages.filter(|package| is_checked(package)) {
            check.args(["-p", &package.name]);
        }
        // Code that is unused on one platform only is found here.
        check.env("RUSTFLAGS", "-D warnings");
        Step::command(format!("target: {target}"), check)
    };
    let mut steps = vec![];
    if depth == Depth::Long {
        steps.extend(TARGETS.map(|target| check(target, &[], |_| true)));
    }
    let options = &["--no-default-features"];
    steps.push(check(BARE_TARGET, options, |package| package.is_no_std));
    steps
}

/// What takes long: older compilers, an emulated processor, dependencies, undefined
/// behaviour.
pub(crate) fn long_steps(workspace: &Workspace) -> Vec<Step<'_>> {
    let mut steps = oldest_compilers(workspace);
    steps.extend([
        Step::command(
            "licences and sources of dependencies",
            command("cargo deny --offline --all-features check licenses bans sources"),
        ),
        Step::new("aarch64: unit tests under qemu", || {
            // One by one, each with a time limit: packages that contain code of the
            // processor, or arithmetic close to it.
            ["downbeat-clock-core", "downbeat-timers", "downbeat-sync"]
                .iter()
                .try_for_each(|package| emulate(workspace, &format!("test --lib -p {package}"), ""))
        }),
        Step::new("aarch64: the counter is calibrated under qemu", || {
            let calibrate = "calibrate --duration 100ms --repeat 2";
            emulate(workspace, "run -p downbeat-cli", calibrate)
        }),
        Step::new("Miri", || interpret(workspace)),
        Step::new("AddressSanitizer", || sanitize(workspace, "address")),
        Step::new("ThreadSanitizer", || sanitize(workspace, "thread")),
        Step::new("valgrind: damaged OTF2 archives", || {
            check_memory(workspace)
        }),
    ]);
    steps
}

/// Packages compile with the oldest compiler that their manifests declare, one step for
/// each version; clippy only knows which functions that one has. Features that need an MPI
/// library are left out: its bindings are those of the machine.
fn oldest_compilers<'a>(workspace: &Workspace) -> Vec<Step<'a>> {
    let mut by_version: BTreeMap<&str, Vec<&Package>> = BTreeMap::new();
    for package in &workspace.packages {
        let packages = by_version.entry(&package.rust_version).or_default();
        packages.push(package);
    }
    let check = |(version, packages): (&str, Vec<&Package>)| {
        let words = format!("cargo +{version} check --lib --bins --target-dir");
        let mut check = command(&words);
        check.arg(workspace.built("oldest-compiler"));
        for package in packages {
            check.args(["-p", &package.name]);
            check.args(package.features_without_mpi());
        }
        Step::command(format!("oldest compiler: {version}"), check)
    };
    by_version.into_iter().map(check).collect()
}

fn emulate(workspace: &Workspace, words: &str, arguments: &str) -> Outcome {
    let mut cargo = command(&format!("cargo {words} --target {EMULATED} --target-dir"));
    cargo.arg(workspace.built("targets"));
    cargo.arg("--").args(arguments.split_whitespace());
    shell::run(cargo.envs([
        (
            "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER",
            "aarch64-linux-gnu-gcc",
        ),
        ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", EMULATOR),
        // Instructions take ten times as long.
        ("PROPTEST_CASES", "16"),
    ]))
}

fn interpret(workspace: &Workspace) -> Outcome {
    INTERPRETED.into_iter().try_for_each(|(package, tests)| {
        let mut miri = command("cargo +nightly miri test --lib -p");
        miri.args([package, "--target-dir"])
            .arg(workspace.built("miri"))
            .arg("--")
            .args(tests.split_whitespace())
            .env("MIRIFLAGS", "-Zmiri-disable-isolation")
            .env("PROPTEST_CASES", "2");
        shell::show_and_read(SLOW_LIMIT, &mut miri).map(drop)
    })
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
    shell::show_and_read(SLOW_LIMIT, &mut test).map(drop)
}

/// Damaged archives, on the stable compiler.
fn check_memory(workspace: &Workspace) -> Outcome {
    let mut build =
        command("cargo test --no-run -p downbeat-trace --features otf2-tools --test otf2");
    build.arg("--target-dir").arg(workspace.built("openmpi"));
    let test = Programs::build(&mut build)?.executable("otf2")?;
    let mut valgrind = command("valgrind --quiet --error-exitcode=99 --leak-check=no");
    valgrind.arg(test).args(["errors", "truncated", "damaged"]);
    shell::show_and_read(SLOW_LIMIT, &mut valgrind).map(drop)
}
