//! Programs in C, C++ and Fortran against the installed libdownbeat: through pkg-config,
//! shared and static, and through CMake; and the programs that are installed with it.

mod memory;
mod pages;
mod tracer;
mod tree;
mod wtime;

use std::fs;
use std::process::Command;
use std::time::Duration;

use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, command};
use downbeat_launch::mpi::{MPICH, MpiLibrary, OPEN_MPI};

use crate::args::{Depth, Installation};
use crate::install::builds::{TESTED, TESTED_LONG};
use crate::install::install;
use crate::steps::{Lane, Step, all_passed};
use crate::workspace::Workspace;
use tree::{InstalledTree, Launcher, Linking};

/// Numbers of ranks of programs.
const RANKS: [u32; 5] = [1, 2, 3, 4, 5];
/// Numbers of ranks under MPICH, except in a long run.
const RANKS_OF_MPICH: [u32; 2] = [2, 4];
/// Files that the programs need, one of each kind for each program.
const INSTALLED: [&str; 16] = [
    "lib/openmpi/libdownbeat_trace.so",
    "lib/mpich/libdownbeat_trace.so",
    "bin/downbeat",
    "bin/downbeat-mpi",
    "bin/downbeat-mpi.openmpi",
    "bin/downbeat-mpi.mpich",
    "share/man/man1/downbeat.1",
    "share/man/man1/downbeat-trace-correct.1",
    "share/man/man1/downbeat-mpi.1",
    "share/man/man1/downbeat-mpi-trace-correct.1",
    "share/bash-completion/completions/downbeat",
    "share/bash-completion/completions/downbeat-mpi",
    "share/zsh/site-functions/_downbeat",
    "share/zsh/site-functions/_downbeat-mpi",
    "share/fish/vendor_completions.d/downbeat.fish",
    "share/fish/vendor_completions.d/downbeat-mpi.fish",
];
/// Steps that mostly wait, and steps on emulated hosts.
const WAITING: [&str; 6] = [
    "lines of the documents",
    "starts of the README",
    "MPI_Wtime of several hosts",
    "traced over several hosts",
    "traced under Slurm",
    "pictures of a traced program",
];
const INSTALL: &str = "libdownbeat: install";
const RUN_LIMIT: Duration = Duration::from_secs(120);

pub(crate) fn steps(workspace: &Workspace, depth: Depth) -> Vec<Step<'_>> {
    let tree = InstalledTree::of(workspace, depth);
    let mut steps = vec![];
    let mut step = |name: &str, check: fn(&InstalledTree<'_>) -> Outcome| {
        let mut tree = tree.clone();
        // Steps of two lanes may compile a program of the same name.
        tree.built = tree.built.join(name.replace(' ', "-"));
        let step = Step::new(format!("libdownbeat: {name}"), move || {
            fs::create_dir_all(&tree.built)
                .map_err(|why| format!("{}: {why}", tree.built.display()))?;
            check(&tree)
        });
        steps.push(match name {
            "install" => step,
            _ if WAITING.contains(&name) => step.in_lane(Lane::Wait, &[INSTALL]),
            _ => step.in_lane(Lane::Ranks, &[INSTALL]),
        });
    };
    step("install", installation);
    step("programs without MPI", local);
    step("CMake", with_cmake);
    step("programs over Open MPI", |tree| parallel(tree, OPEN_MPI));
    step("MPI_Wtime of several hosts", wtime::over_hosts);
    step("programs traced over Open MPI", |tree| {
        tracer::programs(tree, OPEN_MPI)
    });
    step("real programs traced", tracer::real_programs);
    step("regions of a traced program", tracer::regions);
    step("traced with artificial errors", tracer::artificial_errors);
    step("traced with little memory", tracer::little_memory);
    step("the mini application recorded", tracer::mini_application);
    step("traces of programs that are killed", tracer::killed);
    step("traced without memory or a disk", tracer::shortage);
    step("calls that fail under the tracer", tracer::failures);
    step("traced over several hosts", tracer::over_hosts);
    if depth == Depth::Long {
        step("programs over MPICH", |tree| parallel(tree, MPICH));
        step("programs traced over MPICH", |tree| {
            tracer::programs(tree, MPICH)
        });
        step("lines of the documents", pages::lines_of_documents);
        step("starts of the README", pages::starts_of_readme);
        step("traced under Slurm", tracer::under_slurm);
        step("pictures of a traced program", tracer::pictures);
        step("memory of programs without MPI", memory::local);
        step("memory of programs over Open MPI", |tree| {
            memory::parallel(tree, OPEN_MPI)
        });
        step("memory of programs over MPICH", |tree| {
            memory::parallel(tree, MPICH)
        });
        step("traced over Open MPI under valgrind", |tree| {
            tracer::under_valgrind(tree, OPEN_MPI)
        });
        step("traced over MPICH under valgrind", |tree| {
            tracer::under_valgrind(tree, MPICH)
        });
        step("traced over Open MPI with sanitizers", |tree| {
            tracer::with_sanitizers(tree, OPEN_MPI)
        });
        step("traced over MPICH with sanitizers", |tree| {
            tracer::with_sanitizers(tree, MPICH)
        });
    }
    steps
}

fn installation(tree: &InstalledTree<'_>) -> Outcome {
    let wanted = Installation {
        prefix: tree.prefix.clone(),
        mpi: vec![OPEN_MPI, MPICH],
        fortran: true,
        ..Installation::default()
    };
    // If this fails, the steps that need it fail, too.
    let _ = fs::remove_dir_all(&tree.prefix);
    let builds = match tree.depth {
        Depth::Long => TESTED_LONG,
        _ => TESTED,
    };
    install(tree.workspace, &wanted, builds)?;
    all_passed(INSTALLED.iter().filter_map(|file| {
        let path = tree.prefix.join(file);
        let is_missing = fs::metadata(&path).map_or(true, |found| found.len() == 0);
        is_missing.then(|| format!("{}: missing or empty", path.display()))
    }))?;
    let downbeat = tree.prefix.join("bin/downbeat");
    shell::run(Command::new(downbeat).arg("--version"))
}

fn local(tree: &InstalledTree<'_>) -> Outcome {
    for source in ["clock.c", "clock.cpp", "clock.f90"] {
        for linking in [Linking::Shared, Linking::Static] {
            shell::run(&mut Command::new(tree.compile(source, None, linking, "")?))?;
        }
    }
    // A module with a copy of its own, whose functions nothing else finds.
    let hidden = "-fPIC -shared -Wl,--exclude-libs,ALL -Wl,-Bsymbolic";
    let module = tree.compile("plugin.c", None, Linking::Static, hidden)?;
    for linking in [Linking::Shared, Linking::Static] {
        let program = tree.compile("host.c", None, linking, "")?;
        shell::run(Command::new(program).arg(&module))?;
    }
    older_program(tree)
}

/// Runs a program that was compiled with a header of another layout of models: it reads
/// them by calls of the library.
fn older_program(tree: &InstalledTree<'_>) -> Outcome {
    let (known, older) = ("<< 32 | 2)", "<< 32 | 1)");
    let header = tree.prefix.join("include/downbeat.h");
    let text = fs::read_to_string(&header).map_err(|why| format!("{}: {why}", header.display()))?;
    if text.matches(known).count() != 1 {
        return Err(format!("{}: no layout `{known}`", header.display()));
    }
    let folder = tree.built.join("older");
    let written = fs::create_dir_all(&folder)
        .and_then(|()| fs::write(folder.join("downbeat.h"), text.replace(known, older)));
    written.map_err(|why| format!("{}: {why}", folder.display()))?;
    let options = format!("-I {}", folder.display());
    shell::run(&mut Command::new(tree.compile(
        "clock.c",
        None,
        Linking::Shared,
        &options,
    )?))
}

fn rank_counts(tree: &InstalledTree<'_>, library: MpiLibrary) -> &'static [u32] {
    if library == MPICH && tree.depth < Depth::Long {
        &RANKS_OF_MPICH
    } else {
        &RANKS
    }
}

fn parallel(tree: &InstalledTree<'_>, library: MpiLibrary) -> Outcome {
    let launcher = Launcher::new(tree, library)?;
    for hello in ["hello.c", "hello.cpp", "hello.f90"] {
        let source = format!("../../examples/{hello}");
        let program = tree.compile(&source, Some(library), Linking::Shared, "")?;
        let mut mpirun = library.mpirun();
        mpirun.args(["-np", "2"]);
        shell::show_and_read(
            RUN_LIMIT,
            &mut shell::started_by(mpirun, &Command::new(program)),
        )?;
    }
    // Operations for `downbeat-mpi bench` need a header, and nothing of the library.
    let include = tree.prefix.join("include");
    let options = format!("-shared -fPIC -I {}", include.display());
    tree.compile(
        "../../examples/operation.c",
        Some(library),
        Linking::Without,
        &options,
    )?;
    let bindings = ["-DUSE_F08", "-DUSE_MPI", ""].map(|binding| ("global.F90", binding));
    let others = [
        ("global.c", ""),
        ("misuse.c", "-pthread"),
        ("global.cpp", ""),
    ];
    for (source, options) in others.into_iter().chain(bindings) {
        for (linking, ranks) in [
            (Linking::Shared, rank_counts(tree, library)),
            (Linking::Static, &[2]),
        ] {
            let program = tree.compile(source, Some(library), linking, options)?;
            launcher.run(ranks, &Command::new(program))?;
        }
    }
    wtime::parallel(tree, library, &launcher)
}

fn with_cmake(tree: &InstalledTree<'_>) -> Outcome {
    for (components, mpi) in [
        ("downbeat", None),
        ("mpi", Some(OPEN_MPI)),
        ("mpi", Some(MPICH)),
    ] {
        let name = format!("cmake-{}", mpi.map_or("none", MpiLibrary::suffix));
        let build = tree.built.join(name);
        // Another checkout could have configured it.
        let _ = fs::remove_dir_all(&build);
        let mut configure = command("cmake -S");
        configure
            .arg("tools/capi/tests/programs/cmake")
            .arg("-B")
            .arg(&build);
        configure.arg(format!("-DCMAKE_PREFIX_PATH={}", tree.prefix.display()));
        configure.arg(format!("-DCOMPONENTS={components}"));
        if let Some(library) = mpi {
            let suffix = library.suffix();
            configure.arg(format!("-DMPI_C_COMPILER=/usr/bin/mpicc.{suffix}"));
            configure.arg(format!("-DMPI_Fortran_COMPILER=/usr/bin/mpif90.{suffix}"));
        }
        shell::run(&mut configure)?;
        shell::run(command("cmake --build").arg(&build))?;
        shell::run(&mut Command::new(build.join("clock_c")))?;
        shell::run(&mut Command::new(build.join("clock_cpp")))?;
        shell::run(&mut Command::new(build.join("clock_f90")))?;
        if let Some(library) = mpi {
            let launcher = Launcher::new(tree, library)?;
            let ranks = rank_counts(tree, library);
            launcher.run(ranks, &Command::new(build.join("global_c")))?;
            launcher.run(ranks, &Command::new(build.join("global_f08")))?;
        }
    }
    Ok(())
}
