//! Programs under the tracer: its recordings must hold what the programs counted themselves.

mod counts;
mod merged;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, command};
use downbeat_launch::mpi::{MPICH, MpiLibrary, OPEN_MPI};

use super::tree::{InstalledTree, Launcher, Linking};
use crate::args::Depth;
use crate::steps::all_passed;
use counts::Counts;
use merged::MergedTrace;

const SOURCES: &str = "tools/tracer/tests/programs";
/// Headers of both libraries make gcc believe that an ignored status is an array.
const C: &str = "-g -Wall -Wextra -pthread -Wno-stringop-overflow -Wno-stringop-overread";
const FORTRAN: &str = "-g -w -fallow-argument-mismatch -ffree-line-length-none";
const BINDINGS: [&str; 3] = ["MPIF", "MPI", "F08"];
const LIMIT: Duration = Duration::from_secs(120);

/// Program with its arguments.
struct Program {
    name: &'static str,
    path: PathBuf,
    arguments: Vec<PathBuf>,
}

/// Every kind of message, request and collective operation in C and in three bindings of Fortran, threads, unusual uses, and MPI in a
/// module that is loaded.
pub(super) fn programs(tree: &InstalledTree<'_>, library: MpiLibrary) -> Outcome {
    let launcher = Launcher::new(tree, library)?;
    let ranks: &[u32] = if tree.depth == Depth::Long {
        &[2, 3, 4, 5]
    } else {
        &[2, 3]
    };
    let programs = compile_all(tree, library)?;
    all_passed(
        programs
            .iter()
            .flat_map(|program| ranks.iter().map(move |ranks| (program, *ranks)))
            .filter_map(|(program, ranks)| {
                let outcome = counted(tree, library, &launcher, program, ranks);
                outcome
                    .err()
                    .map(|why| format!("{} at {ranks} ranks: {why}", program.name))
            }),
    )
}

/// Regions of a program that uses libdownbeat, and its comparison of clocks.
pub(super) fn regions(tree: &InstalledTree<'_>) -> Outcome {
    for library in [OPEN_MPI, MPICH] {
        let launcher = Launcher::new(tree, library)?;
        for linking in [Linking::Shared, Linking::Static] {
            let program = tree.compile("traced.c", Some(library), linking, "")?;
            let folder = tree.built.join("tracer/regions");
            let _ = fs::remove_dir_all(&folder);
            let job = record_rank(tree, &folder, &program);
            shell::show_and_read(LIMIT, &mut shell::started_by(launcher.mpirun(2), &job))?;
            let trace = merge(tree, &folder)?;
            for rank in 0..2 {
                let entered = trace.of(rank).calls.get("solver phase").copied();
                if entered != Some(5) {
                    return Err(format!(
                        "rank {rank}: the region was entered {entered:?} times"
                    ));
                }
            }
            // When MPI is initialized, by the program, and before MPI is finalized.
            if trace.sessions(1) != 3 {
                return Err(format!("{} sessions", trace.sessions(1)));
            }
        }
    }
    Ok(())
}

fn compile_all(tree: &InstalledTree<'_>, library: MpiLibrary) -> Result<Vec<Program>, String> {
    let suffix = library.suffix();
    let built = tree.built.join("tracer").join(suffix);
    fs::create_dir_all(&built).map_err(|why| format!("{}: {why}", built.display()))?;
    let compile = |compiler: &str, options: &str, sources: &[&str], to: &str| {
        let path = built.join(to);
        let mut compile = command(&format!("{compiler} {options}"));
        for source in sources {
            let generated = built.join(source);
            let is_object = Path::new(source).extension() == Some(OsStr::new("o"));
            compile.arg(if is_object {
                generated
            } else {
                Path::new(SOURCES).join(source)
            });
        }
        shell::run(compile.arg("-o").arg(&path)).map(|()| path)
    };
    let c = |options: &str, sources: &[&str], to: &str| {
        compile(
            &format!("mpicc.{suffix}"),
            &format!("{C} {options}"),
            sources,
            to,
        )
    };
    let mut programs = vec![];
    let mut add = |name, path| {
        programs.push(Program {
            name,
            path,
            arguments: vec![],
        });
    };
    let messages = [
        "messages.c",
        "messages_collective.c",
        "messages_mpi4.c",
        "messages_onesided.c",
        "counts.c",
    ];
    add("messages", c("", &messages, "messages")?);
    c("-c", &["counts.c"], "counts.o")?;
    // Calls that only one of the libraries has.
    let own = if library == MPICH {
        "-DMPI_4"
    } else {
        "-DOPEN_MPI_4"
    };
    for (binding, name) in
        BINDINGS
            .into_iter()
            .zip(["messages_mpif", "messages_mpi", "messages_f08"])
    {
        let modules = built.join(format!("modules-{binding}"));
        fs::create_dir_all(&modules).map_err(|why| format!("{}: {why}", modules.display()))?;
        let options = format!(
            "{FORTRAN} -DBINDING_{binding} {own} -J{}",
            modules.display()
        );
        let compiler = format!("mpif90.{suffix}");
        add(
            name,
            compile(&compiler, &options, &["messages.F90", "counts.o"], name)?,
        );
    }
    for name in ["odd", "threads"] {
        add(name, c("", &[&format!("{name}.c"), "counts.c"], name)?);
    }
    if library == MPICH {
        add("session", c("", &["session.c", "counts.c"], "session")?);
    }
    let plugin = c(
        "-shared -fPIC",
        &["plugin_mpi.c", "counts.c"],
        "plugin_mpi.so",
    )?;
    let path = compile("cc", C, &["loads_mpi.c"], "loads_mpi")?;
    programs.push(Program {
        name: "loads_mpi",
        // It is linked without MPI.
        path,
        arguments: vec![plugin],
    });
    Ok(programs)
}

/// Runs a program with and without the tracer, which must not change what it sees, and compares the trace with its own counts.
fn counted(
    tree: &InstalledTree<'_>,
    library: MpiLibrary,
    launcher: &Launcher,
    program: &Program,
    ranks: u32,
) -> Outcome {
    let folder = tree.built.join(format!(
        "tracer/{}-{}-{ranks}",
        program.name,
        library.suffix()
    ));
    // What an earlier run left.
    let _ = fs::remove_dir_all(&folder);
    // The library that lets ranks yield does not find an MPI library that a module brings in.
    let launcher = match program.arguments[..] {
        [] => launcher,
        _ => &launcher.bare(),
    };
    let run = |mut job: Command, counts: &Path| {
        job.args(&program.arguments);
        let mut mpirun = shell::started_by(launcher.mpirun(ranks), &job);
        shell::show_and_read(LIMIT, mpirun.env("MESSAGES_OUT", counts)).map(drop)
    };
    let [plain, traced] = ["plain", "traced"].map(|name| folder.with_extension(name));
    run(Command::new(&program.path), &plain)?;
    run(record_rank(tree, &folder, &program.path), &traced)?;
    let trace = merge(tree, &folder)?;
    let mut wrong = vec![];
    for rank in 0..ranks {
        let [plain, text] = [&plain, &traced].map(|counts| {
            let path = PathBuf::from(format!("{}.{rank}", counts.display()));
            fs::read_to_string(&path).map_err(|why| format!("{}: {why}", path.display()))
        });
        let (plain, text) = (plain?, text?);
        wrong.extend(seen_otherwise(&plain, &text).map(|line| format!("rank {rank}: {line}")));
        let own = Counts::parse(&text).ok_or("the program counted nothing")?;
        wrong.extend(
            own.differences(trace.of(rank))
                .map(|line| format!("rank {rank}: {line}")),
        );
    }
    match wrong.len() {
        0 => Ok(()),
        more => {
            wrong.truncate(10);
            Err(format!("{more} numbers differ: {}", wrong.join("; ")))
        }
    }
}

/// Returns what a program saw only without, or only with the tracer, apart from the numbers of tests that found nothing.
fn seen_otherwise<'a>(plain: &'a str, traced: &'a str) -> impl Iterator<Item = String> {
    let lines = |text: &'a str| -> BTreeSet<&'a str> {
        text.lines()
            .filter(|line| !line.starts_with("failed "))
            .collect()
    };
    let [plain, traced] = [plain, traced].map(lines);
    let only = |these: &BTreeSet<&str>, others: &BTreeSet<&str>, how: &str| -> Vec<String> {
        let lines = these.difference(others);
        lines
            .map(|line| format!("only {how} the tracer: {line}"))
            .collect()
    };
    let without = only(&plain, &traced, "without");
    without.into_iter().chain(only(&traced, &plain, "with"))
}

fn record_rank(tree: &InstalledTree<'_>, folder: &Path, program: &Path) -> Command {
    let mut job = Command::new(tree.prefix.join("bin/downbeat"));
    job.args(["record-rank", "--out"])
        .arg(folder)
        .arg("--")
        .arg(program);
    job
}

fn merge(tree: &InstalledTree<'_>, folder: &Path) -> Result<MergedTrace, String> {
    let trace = folder.with_extension("dbt");
    let mut merge = Command::new(tree.prefix.join("bin/downbeat"));
    merge
        .args(["trace", "merge"])
        .arg(folder)
        .arg("-o")
        .arg(&trace);
    shell::run(&mut merge)?;
    MergedTrace::read(&trace)
}

/// The mini application in C and Fortran by `downbeat record`: its results are those without the tracer, and its trace is right after
/// the correction.
pub(super) fn mini_application(tree: &InstalledTree<'_>) -> Outcome {
    let folder = tree.built.join("tracer");
    fs::create_dir_all(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    for library in [OPEN_MPI, MPICH] {
        let suffix = library.suffix();
        let launch = Launcher::new(tree, library)?;
        // Its variables are set below.
        let launcher = launch.mpirun(4);
        let mut words = Command::new(launcher.get_program());
        words.args(launcher.get_args());
        for (compiler, source) in [("mpicc", "poisson.c"), ("mpif90", "poisson.F90")] {
            let program = folder.join(format!("{source}-{suffix}"));
            let mut compile = command(&format!("{compiler}.{suffix} -O2"));
            compile.arg(Path::new("tools/tracer/examples").join(source));
            shell::run(compile.arg("-o").arg(&program).arg("-lm"))?;
            let mut plain = shell::started_by(launch.mpirun(4), &Command::new(&program));
            let plain = shell::show_and_read(LIMIT, plain.args(["12", "20"]))?;

            let out = folder.join(format!("{source}-{suffix}-recorded"));
            let _ = fs::remove_dir_all(&out);
            let mut record = Command::new(tree.prefix.join("bin/downbeat"));
            record.args(["record", "--launcher", &shell::shown(&words), "--out"]);
            record.arg(&out).arg("--").arg(&program).args(["12", "20"]);
            record.envs(library.environment());
            let recorded = shell::show_and_read(LIMIT, &mut record)?;
            for line in plain
                .lines()
                .chain(["no violation is left", "wait at N x N"])
            {
                if !recorded.contains(line) {
                    return Err(format!("{source} over {}: no `{line}`", library.name()));
                }
            }
        }
    }
    Ok(())
}

/// Programs that nobody here wrote, with and without the tracer: `hpcc`, whose tests must pass, and a script of mpi4py, which must print
/// the same.
pub(super) fn real_programs(tree: &InstalledTree<'_>) -> Outcome {
    let folder = tree.built.join("tracer/real");
    // What an earlier run left.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    let failed = |why: std::io::Error| why.to_string();
    let sources = Path::new(SOURCES);
    fs::copy(sources.join("hpccinf.txt"), folder.join("hpccinf.txt")).map_err(failed)?;
    let script = fs::canonicalize(sources.join("objects.py")).map_err(failed)?;
    let mut python = Command::new("/usr/bin/python3");
    python.arg(script);
    // Debian builds both for Open MPI.
    let launcher = Launcher::new(tree, OPEN_MPI)?;
    let run = |program: &Command| {
        let mut mpirun = shell::started_by(launcher.mpirun(4), program);
        let said = shell::show_and_read(LIMIT, mpirun.current_dir(&folder))?;
        // hpcc writes to a file, to which it adds.
        let results = folder.join("hpccoutf.txt");
        let written = fs::read_to_string(&results).unwrap_or_default();
        let _ = fs::remove_file(results);
        let passed = written.lines().filter(|line| line.contains("PASSED"));
        Ok::<_, String>((said, passed.count(), written.contains("FAILED")))
    };
    for (name, program) in [("hpcc", Command::new("hpcc")), ("mpi4py", python)] {
        let out = folder.join(name);
        let mut traced = record_rank(tree, &out, Path::new(program.get_program()));
        traced.args(program.get_args());
        let (plain, traced) = (run(&program)?, run(&traced)?);
        if plain != traced || traced.2 {
            return Err(format!(
                "{name}: {plain:?} without the tracer, {traced:?} with it"
            ));
        }
        let trace = merge(tree, &out)?;
        if trace.of(1).sent.is_empty() || trace.of(1).received.is_empty() {
            return Err(format!("{name}: rank 1 has no messages"));
        }
    }
    Ok(())
}

/// Ranks that end by SIGKILL, `_exit` and `MPI_Abort` at any moment: their traces are complete to the last call, and nothing stays in
/// shared memory.
pub(super) fn killed(tree: &InstalledTree<'_>) -> Outcome {
    let times = if tree.depth == Depth::Long { 20 } else { 2 };
    let mut wrong = vec![];
    let mut seed = u64::from(std::process::id());
    for library in [OPEN_MPI, MPICH] {
        let launcher = Launcher::new(tree, library)?;
        let program = tree.built.join(format!("tracer/kill-{}", library.suffix()));
        fs::create_dir_all(tree.built.join("tracer")).map_err(|why| why.to_string())?;
        let mut compile = command(&format!("mpicc.{} {C}", library.suffix()));
        shell::run(
            compile
                .arg(Path::new(SOURCES).join("kill.c"))
                .arg("-o")
                .arg(&program),
        )?;
        for way in ["kill", "exit", "abort"] {
            for _ in 0..times {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let moment = 1_000 + (seed >> 33) % 300_000;
                if let Err(why) = killed_at(tree, &launcher, &program, way, moment) {
                    let name = library.name();
                    wrong.push(format!("{name}, {way} after {moment} us: {why}"));
                }
            }
        }
    }
    all_passed(wrong)
}

fn killed_at(
    tree: &InstalledTree<'_>,
    launcher: &Launcher,
    program: &Path,
    way: &str,
    moment: u64,
) -> Outcome {
    let folder = tree.built.join("tracer/killed");
    let _ = fs::remove_dir_all(&folder);
    let calls = folder.with_extension("calls");
    let mut job = record_rank(tree, &folder, program);
    job.args([way, &moment.to_string(), "0"]);
    let mut mpirun = shell::started_by(launcher.mpirun(2), &job);
    shell::finish(LIMIT, mpirun.env("KILL_OUT", &calls))?;
    // Launchers may not wait for the parents of ranks, and may kill them, too.
    let mut left = left_in_memory();
    for _ in 0..100 {
        if left.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
        let mut clean = Command::new(tree.prefix.join("bin/downbeat"));
        shell::run(clean.args(["record", "--clean"]))?;
        left = left_in_memory();
    }
    if !left.is_empty() {
        return Err(format!("{} is left", left.join(", ")));
    }
    let trace = merge(tree, &folder)?;
    for rank in 0..2 {
        let path = PathBuf::from(format!("{}.{rank}", calls.display()));
        let bytes = fs::read(&path).map_err(|why| format!("{}: {why}", path.display()))?;
        let counted = bytes
            .first_chunk()
            .map_or(0, |count| u64::from_le_bytes(*count));
        let found = trace.of(rank).all_calls();
        // The number of the last call may not be written yet, and a call may be under way; MPI_Abort is not counted.
        if !(counted..=counted + 2).contains(&found) {
            return Err(format!(
                "rank {rank}: {counted} calls, and {found} in the trace"
            ));
        }
    }
    Ok(())
}

/// Names of what recordings have in shared memory.
fn left_in_memory() -> Vec<String> {
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names
        .filter(|name| name.starts_with("downbeat-trace."))
        .collect()
}
