//! Programs in C, C++ and Fortran against libdownbeat as it is installed.

use std::fs;
use std::process::Command;
use std::time::Duration;

use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, command};
use downbeat_launch::environment::is_long;
use downbeat_launch::mpi::{MPICH, MpiLibrary, OPEN_MPI};

use crate::tree::{InstalledTree, Launcher, Linking};
use crate::wtime;

/// Numbers of ranks of programs.
const RANKS: [u32; 5] = [1, 2, 3, 4, 5];
/// Numbers of ranks under MPICH, except in a long run.
const RANKS_OF_MPICH: [u32; 2] = [2, 4];
const RUN_LIMIT: Duration = Duration::from_secs(120);

/// Programs without MPI, shared and static, and one that loads another copy.
pub(crate) fn local(tree: &InstalledTree) -> Outcome {
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
fn older_program(tree: &InstalledTree) -> Outcome {
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

fn rank_counts(library: MpiLibrary) -> &'static [u32] {
    if library == MPICH && !is_long() {
        &RANKS_OF_MPICH
    } else {
        &RANKS
    }
}

/// Programs over an MPI library.
pub(crate) fn parallel(tree: &InstalledTree, library: MpiLibrary) -> Outcome {
    let launcher = Launcher::new(library)?;
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
            (Linking::Shared, rank_counts(library)),
            (Linking::Static, &[2]),
        ] {
            let program = tree.compile(source, Some(library), linking, options)?;
            launcher.run(ranks, &Command::new(program))?;
        }
    }
    wtime::parallel(tree, library, &launcher)
}

/// Programs that find the library by CMake.
pub(crate) fn with_cmake(tree: &InstalledTree) -> Outcome {
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
            let launcher = Launcher::new(library)?;
            let ranks = rank_counts(library);
            launcher.run(ranks, &Command::new(build.join("global_c")))?;
            launcher.run(ranks, &Command::new(build.join("global_f08")))?;
        }
    }
    Ok(())
}
