//! Programs under the tracer: its recordings must hold what the programs counted
//! themselves.

mod counts;
mod killed;
mod memory;
mod merged;
mod pictures;
mod programs;
mod recording;
mod several_hosts;
mod shortage;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use downbeat_launch::command as shell;
use downbeat_launch::environment::is_long;
use downbeat_launch::mpi::{MPICH, MpiLibrary, OPEN_MPI};
use downbeat_launch::{Outcome, all_passed};

use crate::tree::{InstalledTree, Launcher, Linking};
pub(crate) use killed::killed;
pub(crate) use memory::{under_valgrind, with_sanitizers};
pub(crate) use pictures::pictures;
use programs::{Compilers, Program, SOURCES};
use recording::{
    LIMIT, has_all_counted, have_messages, merge, none_differs, record_rank, trace_command, written,
};
pub(crate) use several_hosts::{over_hosts, under_slurm};
use shortage::FLOOD_CALLS;
pub(crate) use shortage::shortage;

/// Every kind of message, request and collective operation in C and in three bindings of
/// Fortran, threads, unusual uses, and MPI in a module that is loaded.
pub(crate) fn programs(tree: &InstalledTree, library: MpiLibrary) -> Outcome {
    let launcher = Launcher::new(library)?;
    let ranks: &[u32] = match library {
        _ if is_long() => &[2, 3, 4, 5],
        MPICH => &[2, 4],
        _ => &[2, 3],
    };
    let programs = Compilers::new(tree, library, "")?.all()?;
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
pub(crate) fn regions(tree: &InstalledTree) -> Outcome {
    for library in [OPEN_MPI, MPICH] {
        let launcher = Launcher::new(library)?;
        for linking in [Linking::Shared, Linking::Static] {
            let program = tree.compile("traced.c", Some(library), linking, "")?;
            let folder = tree.built.join("tracer/regions");
            let _ = fs::remove_dir_all(&folder);
            let job = shell::started_by(record_rank(tree, &folder), &Command::new(program));
            shell::show_and_read(LIMIT, &mut shell::started_by(launcher.mpirun(2), &job))?;
            let trace = merge(tree, &folder)?;
            for rank in 0..2 {
                let entered = trace.of(rank).calls.get("solver phase").copied();
                if entered != Some(5) {
                    return Err(format!(
                        "rank {rank}: the region was entered {entered:?} times"
                    ));
                }
                let found = trace.of(rank);
                let messages = found.sent.len() + found.received.len();
                if messages > 0 || found.collectives != 5 {
                    return Err(format!(
                        "rank {rank}: libdownbeat's messages: {messages} kinds, {} operations",
                        found.collectives
                    ));
                }
            }
            let merged = folder.with_extension("dbt");
            let waits = shell::read(&mut trace_command(tree, "waits", &merged))?;
            if !waits.contains("Besides the program, the tracer took ") {
                return Err(format!("time of the tracer is missing: {waits}"));
            }
            // When MPI is initialized, by the program, and before MPI is finalized.
            if trace.sessions(1) != 3 {
                return Err(format!("{} sessions", trace.sessions(1)));
            }
        }
    }
    Ok(())
}

/// Ranks of one machine whose clocks have an error each: without another algorithm, they
/// are synchronized when MPI is initialized and before MPI is finalized.
pub(crate) fn artificial_errors(tree: &InstalledTree) -> Outcome {
    let launcher = Launcher::new(OPEN_MPI)?;
    let program = tree.compile("traced.c", Some(OPEN_MPI), Linking::Shared, "")?;
    let folder = tree.built.join("tracer/artificial-errors");
    let _ = fs::remove_dir_all(&folder);
    let job = shell::started_by(record_rank(tree, &folder), &Command::new(program));
    let mut mpirun = shell::started_by(launcher.mpirun(2), &job);
    mpirun.env("DOWNBEAT_SKEW", "offset=1s,drift=20ppm");
    shell::show_and_read(LIMIT, &mut mpirun)?;
    match merge(tree, &folder)?.sessions(1) {
        2 => Ok(()),
        sessions => Err(format!("{sessions} sessions")),
    }
}

/// Many threads that find no memory for their records, since nobody collects them, and
/// must not wait for it: calls that are recorded and calls that are not are all.
pub(crate) fn little_memory(tree: &InstalledTree) -> Outcome {
    const MESSAGES: u64 = 20_000;
    const THREADS: u64 = 8;
    let launcher = Launcher::new(OPEN_MPI)?;
    let program = Compilers::new(tree, OPEN_MPI, "")?.c("", &["flood.c"], "flood")?;
    let folder = tree.built.join("tracer/little-memory");
    let _ = fs::remove_dir_all(&folder);
    let mut flood = Command::new(program);
    flood.args([MESSAGES, THREADS].map(|number| number.to_string()));
    let job = shell::started_by(record_rank(tree, &folder), &flood);
    let mut mpirun = shell::started_by(launcher.mpirun(2), &job);
    mpirun.envs([
        ("FLOOD_END", "stopped"),
        ("DOWNBEAT_TRACE_MEMORY", "4"),
        ("DOWNBEAT_TRACE_OVERFLOW", "drop"),
    ]);
    shell::show_and_read(LIMIT, &mut mpirun)?;
    let trace = merge(tree, &folder)?;
    let made = MESSAGES * THREADS + FLOOD_CALLS;
    for rank in 0..2 {
        let found = trace.of(rank);
        let dropped = found.failed.get("(not recorded)").copied().unwrap_or(0);
        // Libraries make a few calls, too.
        if dropped == 0 || !(made..=made + 10).contains(&found.all_calls()) {
            let found = found.all_calls();
            return Err(format!(
                "rank {rank}: {made} calls, {found} in the trace, of which {dropped} are not recorded"
            ));
        }
    }
    Ok(())
}

/// Calls that fail, by their error code, left by longjmp or by an exception of C++: the
/// rest of the trace is as if they had not been made.
pub(crate) fn failures(tree: &InstalledTree) -> Outcome {
    const ROUNDS: u64 = 50;
    for library in [OPEN_MPI, MPICH] {
        let launcher = Launcher::new(library)?;
        let programs = Compilers::new(tree, library, "")?;
        let c = Command::new(programs.c("", &["faulty.c"], "faulty")?);
        let cxx = Command::new(programs.cxx("faulty.c", "faulty_cxx")?);
        for (program, ranks) in [(&c, 2), (&c, 3), (&cxx, 2)] {
            let folder = tree.built.join("tracer/failures");
            let _ = fs::remove_dir_all(&folder);
            let run = |job: &Command| {
                let mut mpirun = shell::started_by(launcher.mpirun(ranks), job);
                shell::show_and_read(LIMIT, &mut mpirun)
            };
            let traced = shell::started_by(record_rank(tree, &folder), program);
            let (plain, traced) = (run(program)?, run(&traced)?);
            if plain != traced {
                return Err(format!("{plain} without the tracer, {traced} with it"));
            }
            let trace = merge(tree, &folder)?;
            for rank in 0..ranks {
                let found = trace.of(rank);
                // Two or four of them fail.
                let failed = if rank + 1 == ranks { 4 } else { 2 };
                let broadcasts = found.calls.get("MPI_Bcast").copied();
                let received: u64 = found.received.values().sum();
                if broadcasts != Some(ROUNDS + failed) || received != ROUNDS {
                    return Err(format!(
                        "rank {rank} of {ranks}: {broadcasts:?} broadcasts, {received} messages"
                    ));
                }
            }
            let mut correct = trace_command(tree, "correct", &folder.with_extension("dbt"));
            let corrected = shell::read(
                correct
                    .arg("-o")
                    .arg(folder.with_extension("corrected.dbt")),
            )?;
            if corrected.contains("Left out: ") {
                return Err(format!("an operation lacks members:\n{corrected}"));
            }
        }
    }
    Ok(())
}

/// Runs a program with and without the tracer, which must not change what it sees, and
/// compares the trace with its own counts.
fn counted(
    tree: &InstalledTree,
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
    // The library that lets ranks yield does not find an MPI library that a module brings
    // in.
    let launcher = if program.loads_mpi() {
        &launcher.bare()
    } else {
        launcher
    };
    let run = |job: &Command, counts: &Path| {
        let mut mpirun = shell::started_by(launcher.mpirun(ranks), job);
        shell::show_and_read(LIMIT, mpirun.env("MESSAGES_OUT", counts)).map(drop)
    };
    let [plain, traced] = ["plain", "traced"].map(|name| folder.with_extension(name));
    let command = program.command();
    run(&command, &plain)?;
    let job = shell::started_by(record_rank(tree, &folder), &command);
    run(&job, &traced)?;
    let mut wrong = vec![];
    for rank in 0..ranks {
        let (plain, traced) = (written(&plain, rank)?, written(&traced, rank)?);
        wrong.extend(seen_otherwise(&plain, &traced).map(|line| format!("rank {rank}: {line}")));
    }
    none_differs(wrong)?;
    has_all_counted(&merge(tree, &folder)?, &traced, ranks)
}

/// Returns what a program saw only without, or only with the tracer, apart from the
/// numbers of tests that found nothing.
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

/// The mini application in C and Fortran by `downbeat record`: its results are those
/// without the tracer, and its trace is right after the correction.
pub(crate) fn mini_application(tree: &InstalledTree) -> Outcome {
    for library in [OPEN_MPI, MPICH] {
        let launch = Launcher::new(library)?;
        // Its variables are set below.
        let launcher = launch.mpirun(4);
        let mut words = Command::new(launcher.get_program());
        words.args(launcher.get_args());
        let compilers = Compilers::new(tree, library, "")?;
        for source in ["poisson.c", "poisson.F90"] {
            let program = compilers.mini_application(source)?;
            let mut plain = shell::started_by(launch.mpirun(4), &Command::new(&program));
            let plain = shell::show_and_read(LIMIT, plain.args(["12", "20"]))?;

            let out = program.with_extension("recorded");
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

/// Programs that nobody here wrote, with and without the tracer: `hpcc`, whose tests must
/// pass, and a script of mpi4py, which must print the same.
pub(crate) fn real_programs(tree: &InstalledTree) -> Outcome {
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
    let launcher = Launcher::new(OPEN_MPI)?;
    let run = |program: &Command| {
        let mut mpirun = shell::started_by(launcher.mpirun(4), program);
        let said = shell::show_and_read(LIMIT, mpirun.current_dir(&folder))?;
        // hpcc writes to a file, to which it adds.
        let results = folder.join("hpccoutf.txt");
        let written = fs::read_to_string(&results).unwrap_or_default();
        let _ = fs::remove_file(results);
        // hpcc leaves out the line of a test's processor time where that time is below
        // its resolution.
        let passed = |line: &&str| line.contains("PASSED") && !line.starts_with("CPU");
        let passed = written.lines().filter(passed).count();
        Ok::<_, String>((said, passed, written.contains("FAILED")))
    };
    for (name, program) in [("hpcc", Command::new("hpcc")), ("mpi4py", python)] {
        let out = folder.join(name);
        let traced = shell::started_by(record_rank(tree, &out), &program);
        let (plain, traced) = (run(&program)?, run(&traced)?);
        let verified = name != "hpcc" || traced.1 > 0;
        if plain != traced || traced.2 || !verified {
            return Err(format!(
                "{name}: {plain:?} without the tracer, {traced:?} with it"
            ));
        }
        let messages = have_messages(&merge(tree, &out)?, 1..2);
        messages.map_err(|why| format!("{name}: {why}"))?;
    }
    Ok(())
}
