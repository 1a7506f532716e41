//! `downbeat-mpi bench` of operations of users: examples in C and Fortran, and libraries that are wrong in every respect.

use std::fs;
use std::path::Path;
use std::process::Command;

use downbeat_launch::command::{self as shell, finish};
use downbeat_launch::mpi::{MPICH, MpiLibrary, OPEN_MPI};
use downbeat_launch::{Outcome, environment};
use serde_json::Value;

use crate::job::{Failure, Jobs, LIMIT, expect, is_long, one_line, test, variable};

const HEADERS: &str = "../tools/capi/include";
const C_EXAMPLE: &str = "../tools/capi/examples/operation.c";
const FORTRAN_EXAMPLE: &str = "../tools/capi/examples/operation.f90";
const VARIOUS: &str = "tests/mpi_program/plug_ins/various.c";
/// As a user who knows nothing of C23 or GNU's extensions.
const C: &str = "-std=c99 -pedantic -Wall -Wextra -Werror";
/// It calls a function of POSIX.
const C_OF_TESTS: &str = "-std=gnu99 -Wall -Wextra -Werror";
const FORTRAN: &str = "-std=gnu -Wall -Werror -Wno-unused-dummy-argument -fallow-argument-mismatch";

/// Begins every job.
const BENCH: &str = "bench --clock monotonic";

/// Compiles a library, in a folder below that of the jobs.
fn compile(jobs: &Jobs, library: MpiLibrary, source: &str, options: &str, target: &str) -> Outcome {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let compiler = if source.ends_with(".c") {
        "mpicc"
    } else {
        "mpif90"
    };
    let path = jobs.folder.join(target);
    let folder = path.parent().unwrap_or(&jobs.folder);
    fs::create_dir_all(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    let words = format!("{compiler}.{} {options}", library.suffix());
    let mut compile = shell::command(&words);
    // Compilers of Fortran write modules there.
    compile.current_dir(folder);
    compile.args(["-shared", "-fPIC", "-O2", "-I"]);
    compile.arg(root.join(HEADERS)).arg(root.join(source));
    shell::run(compile.arg("-o").arg(path))
}

fn various(jobs: &Jobs) -> Outcome {
    compile(jobs, jobs.library, VARIOUS, C_OF_TESTS, "x.so")
}

fn examples(jobs: &Jobs) -> Outcome {
    compile(jobs, jobs.library, C_EXAMPLE, C, "mine.so")?;
    compile(jobs, jobs.library, FORTRAN_EXAMPLE, FORTRAN, "forth.so")
}

/// Methods of every scheme, stopping rules, and a suite.
const METHODS: [&str; 7] = [
    "--scheme ms1 --reps 10",
    "--scheme ms2 --calls 5 --reps 10",
    "--scheme ms3 --calls 5 --reps 10",
    "--scheme ms4 --window 50ms --reps 8",
    "--slack 20 --time-slice 50ms",
    "--scheme ms1 --stop rse/0.5/5/20 --cache cold-overwrite --cache-size 65536",
    "--as osu --warm-up 5 --reps 10",
];

#[test]
fn examples_by_every_scheme() -> Result<(), Failure> {
    test("plug-in-examples", |jobs| {
        examples(jobs)?;
        let operations = "allreduce,DIR/mine.so:doubling,DIR/forth.so:ring";
        METHODS.iter().enumerate().try_for_each(|(case, method)| {
            let ranks = [2, 4][case % 2];
            let arguments =
                format!("{BENCH} --operation {operations} --verify --sizes 8,1Ki {method} --json");
            let (_, report) = jobs.report(ranks, &arguments)?;
            let groups = report["groups"].as_array().ok_or("no groups")?;
            let mut found: Vec<(&str, u64)> = groups
                .iter()
                // All of them may be late on a disturbed machine.
                .filter(|group| group["made"].as_u64() > Some(0))
                .filter_map(|group| Some((group["operation"].as_str()?, group["bytes"].as_u64()?)))
                .collect();
            found.sort_unstable();
            let names = ["allreduce", "forth:ring", "mine:doubling"];
            let expected = names.map(|name| [(name, 8), (name, 1024)]).concat();
            if found != expected {
                return Err(format!("{method}: measured {found:?}"));
            }
            let digest = |name: &str| report["factors"][format!("library {name}")].as_str();
            match (digest("mine"), digest("forth")) {
                (Some(one), Some(other)) if one != other => Ok(()),
                found => Err(format!("{method}: digests {found:?}")),
            }
        })
    })
}

#[test]
fn the_example_says_that_it_needs_a_power_of_two() -> Result<(), Failure> {
    test("plug-in-power-of-two", |jobs| {
        examples(jobs)?;
        let arguments =
            "--operation DIR/mine.so:doubling,DIR/forth.so:ring --ranks 2,3 --scheme ms1 --reps 5";
        let job = jobs.run(&[(3, &format!("{BENCH} {arguments}"))])?;
        let why = "mine:doubling, 8 bytes, 3 ranks: rank 0: setup: the number of ranks must be a power of two";
        expect(job.code == Some(1), &job, "exit code 1")?;
        one_line(&job, why)?;
        let rows = job.stdout.lines().filter(|line| line.ends_with("s"));
        let measured = rows.filter(|line| line.contains(":doubling") || line.contains(":ring"));
        expect(measured.count() >= 3, &job, "the other three groups")
    })
}

/// Plug-ins that no rank can use, each with a part of the message.
const UNUSABLE: [(&str, &str); 26] = [
    (
        "--operation DIR/none.so:good",
        "--operation: DIR/none.so: No such file",
    ),
    ("--operation DIR:good", "--operation: DIR: it is not a file"),
    ("--operation DIR/text.so:good", "--operation: DIR/text.so: "),
    (
        "--operation DIR/x.so",
        "\"DIR/x.so\" names no operation of that library: write DIR/x.so:NAME",
    ),
    ("--operation DIR/x.so:", "must end with :NAME"),
    ("--operation DIR/x.so:a-b", "must end with :NAME"),
    (
        "--operation DIR/x.so:good,DIR/other/x.so:good",
        "would have one name in records",
    ),
    (
        "--operation allreduce,DIR/x.so:absent",
        "DIR/x.so: it has no function downbeat_operation_absent",
    ),
    (
        "--operation DIR/x.so:no_table",
        "downbeat_operation_no_table returned no table",
    ),
    (
        "--operation DIR/x.so:version",
        "downbeat_operation_version is for version 2 of downbeat_operation.h, and not 1",
    ),
    (
        "--operation DIR/x.so:size",
        "the table of downbeat_operation_size has 16 bytes, and must have at least 64",
    ),
    (
        "--operation DIR/x.so:comm_size",
        "DIR/x.so: it is built for another MPI library: its MPI_Comm has 12 bytes",
    ),
    (
        "--operation DIR/x.so:no_setup",
        "the table of downbeat_operation_no_setup has no function setup",
    ),
    (
        "--operation DIR/x.so:no_call",
        "the table of downbeat_operation_no_call has no function call",
    ),
    (
        "--operation DIR/x.so:no_teardown",
        "the table of downbeat_operation_no_teardown has no function teardown",
    ),
    (
        "--operation DIR/x.so:limits",
        "downbeat_operation_limits needs at least 5 ranks, and allows at most 3",
    ),
    (
        "--operation DIR/x.so:three",
        "--operation: x:three needs at least 3 ranks, not 2",
    ),
    (
        "--operation DIR/x.so:one",
        "--operation: x:one takes at most 1 rank, not 2",
    ),
    (
        "--operation DIR/x.so:no_check --verify",
        "--verify: x:no_check has no function check",
    ),
    (
        "--operation DIR/x.so:good --cache cold-walk --cache-size 65536",
        "--cache: x:good has no function prepare",
    ),
    (
        "--operation DIR/x.so:good --buffers DIR/other/x.so:inverted",
        "--buffers: DIR/x.so and DIR/other/x.so would have one name in records",
    ),
    (
        "--operation DIR/x.so:good --threads 2",
        "--threads: x:good is called by one thread",
    ),
    (
        "--buffers DIR/x.so:inverted --operation put",
        "--window-memory: MPI allocates this memory: select create for that of --buffers",
    ),
    (
        "--buffers DIR/x.so:absent",
        "--buffers: DIR/x.so: it has no function downbeat_buffers_absent",
    ),
    (
        "--buffers DIR/x.so:version",
        "downbeat_buffers_version is for version 2",
    ),
    (
        "--buffers DIR/x.so:no_copy",
        "the table of downbeat_buffers_no_copy has no function copy",
    ),
];

#[test]
fn libraries_that_cannot_be_used() -> Result<(), Failure> {
    test("plug-in-unusable", |jobs| {
        various(jobs)?;
        fs::write(jobs.folder.join("text.so"), "not a library").map_err(|why| why.to_string())?;
        jobs.all_fail(2, BENCH, &UNUSABLE)
    })
}

#[test]
fn a_library_for_the_other_mpi() -> Result<(), Failure> {
    test("plug-in-other-mpi", |jobs| {
        let other = match jobs.library {
            OPEN_MPI => MPICH,
            _ => OPEN_MPI,
        };
        compile(jobs, other, C_EXAMPLE, C, "c.so")?;
        compile(jobs, other, FORTRAN_EXAMPLE, FORTRAN, "f.so")?;
        let why = "it is built for another MPI library: it needs libmpi";
        let cases = [
            ("--operation allreduce,DIR/c.so:doubling", why),
            ("--operation DIR/f.so:ring", why),
        ];
        jobs.all_fail(2, BENCH, &cases)
    })
}

/// Operations that fail on a rank, each with the reason.
const FAILING: [(&str, &str); 3] = [
    ("setup_fails", "rank 1: setup: no card in this node"),
    ("setup_fails_silently", "rank 0: setup failed with 42"),
    ("check_fails", "rank 1: check: element 3 is 4, and not 5"),
];

#[test]
fn an_operation_that_fails_costs_no_other() -> Result<(), Failure> {
    test("plug-in-fails", |jobs| {
        various(jobs)?;
        FAILING.iter().try_for_each(|(name, why)| {
            let operations = format!("allreduce,DIR/x.so:{name},DIR/x.so:good,DIR/x.so:longer");
            let arguments = format!(
                "{BENCH} --scheme ms1 --reps 5 --verify --operation {operations} --out DIR/{name} --launch a"
            );
            let job = jobs.run(&[(2, &arguments)])?;
            expect(job.code == Some(1), &job, "exit code 1")?;
            let failure = format!("x:{name}, 8 bytes, 2 ranks: {why}");
            one_line(&job, &failure)?;
            let is_shown = job.stdout.contains(&failure) && job.stdout.contains("x:good");
            expect(is_shown, &job, "the failure beside the results")?;
            let record = jobs.folder.join(name).join("a.csv");
            let record = fs::read_to_string(&record).map_err(|why| why.to_string())?;
            let groups = ["allreduce,8,2,", "x:good,0,2,", "x:longer,8,2,"];
            let has_all = groups.iter().all(|group| record.contains(group));
            let is_complete = record.contains("failure of x:") && record.contains(why);
            expect(has_all && is_complete, &job, &format!("a record, not\n{record}"))
        })
    })
}

#[test]
fn ranks_that_wait_for_one_whose_setup_failed() -> Result<(), Failure> {
    test("plug-in-waits", |jobs| {
        // This takes half a minute.
        if !is_long() {
            return Ok(());
        }
        various(jobs)?;
        let job = jobs.run(&[(3, &format!("{BENCH} --operation DIR/x.so:setup_waits"))])?;
        expect(job.code == Some(1), &job, "exit code 1")?;
        let why = "rank 1: x:setup_waits, 8 bytes, 3 ranks: setup: no card; other ranks do not return from it";
        one_line(&job, why)
    })
}

#[test]
fn all_operations_fail() -> Result<(), Failure> {
    test("plug-in-all-fail", |jobs| {
        various(jobs)?;
        let arguments = "--operation DIR/x.so:setup_fails --sizes 8,16,32";
        let job = jobs.run(&[(2, &format!("{BENCH} {arguments}"))])?;
        expect(job.code == Some(1), &job, "exit code 1")?;
        one_line(
            &job,
            "rank 1: setup: no card in this node (2 other groups failed, too)",
        )
    })
}

#[test]
fn a_call_that_fails_ends_the_job() -> Result<(), Failure> {
    test("plug-in-call-fails", |jobs| {
        various(jobs)?;
        let why = "rank 1: x:call_fails, 8 bytes, 2 ranks: call: the card is gone";
        ["", "--verify --root rotating"]
            .iter()
            .try_for_each(|options| {
                let arguments =
                    format!("{BENCH} --scheme ms1 --operation DIR/x.so:call_fails {options}");
                let ranks = if options.is_empty() { 2 } else { 4 };
                let job = jobs.run(&[(ranks, &arguments)])?;
                expect(job.code != Some(0), &job, "a failure")?;
                one_line(&job, &why.replace("2 ranks", &format!("{ranks} ranks")))
            })
    })
}

/// Operations that crash, each with the end of the line.
const CRASHING: [(&str, &str); 7] = [
    (
        "get_crashes",
        "x.so: downbeat_operation_get_crashes crashed with SIGSEGV",
    ),
    (
        "setup_crashes",
        "x.so:setup_crashes: setup crashed with SIGSEGV",
    ),
    (
        "setup_aborts",
        "x.so:setup_aborts: setup crashed with SIGABRT",
    ),
    (
        "call_crashes",
        "x.so:call_crashes: call crashed with SIGSEGV",
    ),
    (
        "check_crashes",
        "x.so:check_crashes: check crashed with SIGSEGV",
    ),
    (
        "prepare_crashes",
        "x.so:prepare_crashes: prepare crashed with SIGSEGV",
    ),
    (
        "teardown_crashes",
        "x.so:teardown_crashes: teardown crashed with SIGSEGV",
    ),
];

#[test]
fn a_crash_is_reported_in_one_line() -> Result<(), Failure> {
    test("plug-in-crashes", |jobs| {
        various(jobs)?;
        CRASHING.iter().try_for_each(|(name, why)| {
            let verify = if *name == "check_crashes" {
                "--verify"
            } else {
                ""
            };
            let arguments =
                format!("{BENCH} --scheme ms1 --reps 5 --operation DIR/x.so:{name} {verify}");
            let job = jobs.run(&[(2, &arguments)])?;
            expect(job.code.is_some_and(|code| code != 0), &job, "a failure")?;
            // A function that crashes on each rank can be reported before the first crash ends the job.
            let ours = job
                .stderr
                .lines()
                .filter(|line| line.contains("downbeat-mpi: "));
            let lines: Vec<&str> = ours.collect();
            let each_tells =
                |line: &&str| line.contains("downbeat-mpi: rank ") && line.ends_with(why);
            let most = if *name == "get_crashes" { 2 } else { 1 };
            let told = !lines.is_empty() && lines.len() <= most && lines.iter().all(each_tells);
            expect(told, &job, &format!("one line with `{why}`"))
        })
    })
}

#[test]
fn a_crash_leaves_what_was_measured_before() -> Result<(), Failure> {
    test("plug-in-crash-record", |jobs| {
        various(jobs)?;
        let operations = "allreduce,DIR/x.so:setup_crashes";
        let common = format!(
            "{BENCH} --scheme ms1 --reps 5 --operation {operations} --out DIR/cut --launch a"
        );
        let record = || {
            let path = jobs.folder.join("cut/a.csv");
            fs::read_to_string(path).map_err(|why| why.to_string())
        };
        // With these seeds, other groups come before one that crashes.
        let sizes = "--ranks 1,2 --sizes 1..2Ki*2";
        for seed in 1..=2 {
            let job = jobs.run(&[(2, &format!("{common} {sizes} --seed {seed}"))])?;
            expect(job.code.is_some_and(|code| code != 0), &job, "a failure")?;
        }
        let kept = record()?;
        if !kept.contains("\nallreduce,") {
            return Err(format!("no group before the crash in\n{kept}"));
        }
        // The same launch ends without the operation that crashes, by another one of its library.
        let rest = common.replace("setup_crashes", "good");
        let job = jobs.run(&[(2, &format!("{rest} {sizes} --seed 1"))])?;
        expect(job.code == Some(0), &job, "the rest of the launch")?;
        let whole = record()?;
        expect(whole.starts_with(&kept), &job, "what was measured before")?;
        let has_all = whole.contains("\nx:good,0,2,") && whole.contains("# complete");
        expect(has_all, &job, &format!("a complete record, not\n{whole}"))
    })
}

#[test]
fn what_an_operation_is_told() -> Result<(), Failure> {
    test("plug-in-context", |jobs| {
        various(jobs)?;
        let measured = |arguments: &str| {
            let job = jobs.run(&[(3, &format!("{BENCH} {arguments}"))])?;
            expect(
                job.code == Some(0),
                &job,
                &format!("success of {arguments}"),
            )?;
            Ok::<_, String>(job)
        };
        measured("--scheme ms1 --reps 5 --operation DIR/x.so:rotating --root rotating --verify")?;
        measured("--operation DIR/x.so:rotating --as mpptest --calls 3 --stop count/2 --verify")?;
        let cold = "--operation DIR/x.so:cold --cache cold-walk --cache-size 65536 --alignment 256";
        let job = measured(&format!(
            "{cold} --scheme ms2 --calls 5 --reps 5 --warm-up 0"
        ))?;
        expect(
            job.stderr.contains("prepared all"),
            &job,
            "preparations within series",
        )
    })
}

#[test]
fn messages_in_memory_of_a_plug_in() -> Result<(), Failure> {
    test("plug-in-buffers", |jobs| {
        various(jobs)?;
        // Only what was copied to the memory and from it is right.
        let operations = "DIR/x.so:in_buffers,bcast,alltoall,gatherv,sendrecv";
        let arguments = format!(
            "{BENCH} --scheme ms1 --reps 5 --buffers DIR/x.so:inverted --verify --sizes 8,1Ki"
        );
        let (_, report) =
            jobs.report(3, &format!("{arguments} --operation {operations} --json"))?;
        let factors = &report["factors"];
        let is_known = factors["buffers"] == "x:inverted" && factors["library x"] != Value::Null;
        if !is_known {
            return Err(format!("the factors are {factors}"));
        }
        let windows = "--operation put,get --window-memory create --json";
        jobs.report(3, &format!("{arguments} {windows}"))?;
        let cold = "--operation bcast,allgather --cache cold-walk --cache-size 10000 --json";
        jobs.report(3, &format!("{arguments} {cold}"))?;
        let cases = [
            // The bitwise or of inverted bits is not the inverted one.
            (
                "--buffers DIR/x.so:inverted --operation scan --verify",
                "a wrong result",
            ),
            (
                "--buffers DIR/x.so:inverted --sizes 1Mi",
                "allocate: x:inverted has no memory for 1048576 bytes",
            ),
            (
                "--buffers DIR/x.so:copy_fails",
                "copy: x:copy_fails returned 1",
            ),
        ];
        jobs.all_fail(1, BENCH, &cases)
    })
}

#[test]
fn two_builds_are_compared() -> Result<(), Failure> {
    test("plug-in-compare", |jobs| {
        for (build, options) in [("old", "-DOLD"), ("new", "-O3")] {
            let target = format!("{build}/mine.so");
            compile(
                jobs,
                jobs.library,
                C_EXAMPLE,
                &format!("{C} {options} -g"),
                &target,
            )?;
            let operation = format!("--operation DIR/{build}/mine.so:doubling");
            for launch in 0..3 {
                let arguments = format!(
                    "{BENCH} --scheme ms1 --reps 10 {operation} --out DIR/r/{build} --launch {launch}"
                );
                let job = jobs.run(&[(2, &arguments)])?;
                expect(job.code == Some(0), &job, "a launch")?;
            }
        }
        let mut compare = Command::new(variable(environment::PROGRAM)?);
        compare.arg("compare");
        compare.args(["old", "new"].map(|build| jobs.folder.join("r").join(build)));
        let job = finish(LIMIT, &mut compare)?;
        let names_both = ["mine:doubling", "library mine"]
            .iter()
            .all(|text| job.stdout.contains(text));
        expect(
            job.code == Some(0) && names_both,
            &job,
            "the operation and the factor that differs",
        )
    })
}
