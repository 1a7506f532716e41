//! Programs in C, C++ and Fortran against the installed libdownbeat: through pkg-config, shared and static, and through CMake;
//! and the programs that are installed with it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, command};
use downbeat_launch::mpi::{MPICH, MpiLibrary, OPEN_MPI, preload};

use crate::args::Installation;
use crate::install::install;
use crate::mpi_builds::{programs, yielding};
use crate::steps::{Step, all_passed};
use crate::workspace::Workspace;

const PACKAGE: &str = "tools/capi";
const C: &str = "-std=c99 -pedantic -Wall -Wextra -Werror -O2";
const CPP: &str = "-std=c++11 -pedantic -Wall -Wextra -Werror -O2";
const FORTRAN: &str = "-std=gnu -Wall -O2";
const VALGRIND: &str = "valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,possible";
const RANKS: [u32; 4] = [1, 2, 3, 5];
/// Files that the programs need, one of each kind for each program.
const INSTALLED: [&str; 14] = [
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
const RUN_LIMIT: Duration = Duration::from_secs(120);

pub(crate) fn steps(workspace: &Workspace) -> Vec<Step<'_>> {
    let tree = move || InstalledTree::of(workspace);
    let mut steps = vec![
        Step::new("libdownbeat: install", move || tree().install()),
        Step::new("libdownbeat: programs without MPI", move || tree().local()),
        Step::new("libdownbeat: CMake", move || tree().cmake()),
    ];
    for library in [OPEN_MPI, MPICH] {
        let name = format!("libdownbeat: programs over {}", library.name());
        steps.push(Step::new(name, move || tree().parallel(library)));
    }
    steps
}

struct InstalledTree<'a> {
    workspace: &'a Workspace,
    prefix: PathBuf,
    /// Programs that were built.
    built: PathBuf,
}

impl<'a> InstalledTree<'a> {
    fn of(workspace: &'a Workspace) -> Self {
        let root = env::current_dir().unwrap_or_default();
        let below = |name| root.join(workspace.built(name));
        Self {
            workspace,
            prefix: below("installed/prefix"),
            built: below("installed/programs"),
        }
    }

    fn install(&self) -> Outcome {
        let wanted = Installation {
            prefix: self.prefix.clone(),
            destdir: None,
            mpi: vec![OPEN_MPI, MPICH],
            fortran: true,
        };
        // If this fails, the steps that need it fail, too.
        let _ = fs::remove_dir_all(&self.prefix);
        install(self.workspace, &wanted)?;
        all_passed(INSTALLED.iter().filter_map(|file| {
            let path = self.prefix.join(file);
            let is_missing = fs::metadata(&path).map_or(true, |found| found.len() == 0);
            is_missing.then(|| format!("{}: missing or empty", path.display()))
        }))?;
        let downbeat = self.prefix.join("bin/downbeat");
        shell::run(Command::new(downbeat).arg("--version"))
    }

    /// What pkg-config prints.
    fn flags(&self, package: &str, linking: Linking) -> Result<Vec<String>, String> {
        let mut pkg_config = command("pkg-config --cflags --libs");
        if linking == Linking::Static {
            pkg_config.arg("--static");
        }
        let folder = self.prefix.join("lib/pkgconfig");
        let text = shell::read(pkg_config.arg(package).env("PKG_CONFIG_PATH", folder))?;
        let flags = text.split_whitespace().map(str::to_owned);
        Ok(match linking {
            Linking::Shared => flags.collect(),
            // The linker prefers the shared library where both are found.
            Linking::Static => flags
                .flat_map(|flag| match flag.strip_prefix("-ldownbeat") {
                    Some(rest) => vec![format!("-l:libdownbeat{rest}.a")],
                    None => vec![flag],
                })
                .collect(),
        })
    }

    /// Compiles a program, and returns its path.
    fn compile(&self, program: &CompiledProgram, linking: Linking) -> Result<PathBuf, String> {
        let CompiledProgram {
            name,
            compiler,
            source,
            package,
        } = program;
        fs::create_dir_all(&self.built)
            .map_err(|why| format!("{}: {why}", self.built.display()))?;
        let program = self.built.join(format!("{name}-{package}-{linking:?}"));
        let mut compile = command(compiler);
        compile
            .arg(Path::new(PACKAGE).join(source))
            .arg("-o")
            .arg(&program);
        shell::run(compile.args(self.flags(package, linking)?))?;
        Ok(program)
    }

    fn local(&self) -> Outcome {
        let program = |name, compiler: &str, options, source, package: &str| CompiledProgram {
            name,
            compiler: format!("{compiler} {options}"),
            source,
            package: package.to_owned(),
        };
        let programs = [
            program("c", "gcc", C, "tests/programs/clock.c", "downbeat"),
            program("cpp", "g++", CPP, "tests/programs/clock.cpp", "downbeat"),
            program(
                "fortran",
                "gfortran",
                FORTRAN,
                "tests/programs/clock.f90",
                "downbeat-fortran",
            ),
        ];
        for program in &programs {
            for linking in [Linking::Shared, Linking::Static] {
                shell::run(&mut Command::new(self.compile(program, linking)?))?;
            }
        }
        let c = &programs[0];
        let mut valgrind = command(VALGRIND);
        shell::run(valgrind.arg(self.compile(c, Linking::Shared)?))?;
        // Finds leaks, too.
        let sanitized = CompiledProgram {
            name: "sanitized",
            compiler: format!("{} -g -fsanitize=address,undefined", c.compiler),
            source: c.source,
            package: c.package.clone(),
        };
        shell::run(&mut Command::new(
            self.compile(&sanitized, Linking::Static)?,
        ))
    }

    fn parallel(&self, library: MpiLibrary) -> Outcome {
        let suffix = library.suffix();
        let program = |name, compiler, options: &str, source, package| CompiledProgram {
            name,
            compiler: format!("{compiler}.{suffix} {options}"),
            source,
            package: format!("downbeat-{suffix}{package}"),
        };
        let fortran = |name, binding| {
            let options = format!("{FORTRAN} -fallow-argument-mismatch {binding}");
            program(
                name,
                "mpif90",
                &options,
                "tests/programs/global.F90",
                "-fortran",
            )
        };
        let programs = [
            program("c", "mpicc", C, "tests/programs/global.c", ""),
            // The headers of Open MPI have warnings in C++.
            program(
                "cpp",
                "mpicxx",
                "-std=c++11 -O2",
                "tests/programs/global.cpp",
                "",
            ),
            fortran("mpi_f08", "-DUSE_F08"),
            fortran("mpi", "-DUSE_MPI"),
            fortran("mpif_h", ""),
        ];
        let hello = [
            program("hello_c", "mpicc", C, "examples/hello.c", ""),
            program(
                "hello_cpp",
                "mpicxx",
                "-std=c++11 -O2",
                "examples/hello.cpp",
                "",
            ),
            program(
                "hello_fortran",
                "mpif90",
                FORTRAN,
                "examples/hello.f90",
                "-fortran",
            ),
        ];
        for program in &hello {
            let mut mpirun = library.mpirun();
            mpirun.args(["-np", "2"]);
            let program = Command::new(self.compile(program, Linking::Shared)?);
            shell::show_and_read(RUN_LIMIT, &mut shell::started_by(mpirun, &program))?;
        }
        for program in &programs {
            for linking in [Linking::Shared, Linking::Static] {
                self.run_ranks(&self.compile(program, linking)?, library)?;
            }
        }
        Ok(())
    }

    fn run_ranks(&self, program: &Path, library: MpiLibrary) -> Outcome {
        let yielding = yielding(library, &programs(library, self.workspace)?)?;
        all_passed(RANKS.iter().filter_map(|ranks| {
            let mut mpirun = library.oversubscribed_mpirun();
            if let Some(yielding) = &yielding {
                preload(&mut mpirun, yielding);
            }
            mpirun.args(["-np", &ranks.to_string()]);
            let mut mpirun = shell::started_by(mpirun, &Command::new(program));
            let one_job = format!("rank 0 of {ranks}: all checks passed");
            match shell::show_and_read(RUN_LIMIT, &mut mpirun) {
                Ok(output) if output.matches(&one_job).count() == 1 => None,
                Ok(_) => Some(format!("{ranks} ranks: no line `{one_job}`")),
                Err(why) => Some(format!("{ranks} ranks: {why}")),
            }
        }))
    }

    fn cmake(&self) -> Outcome {
        for (components, mpi) in [
            ("downbeat", None),
            ("mpi", Some(OPEN_MPI)),
            ("mpi", Some(MPICH)),
        ] {
            let name = format!("cmake-{}", mpi.map_or("none", MpiLibrary::suffix));
            let build = self.built.join(name);
            let mut configure = command("cmake -S");
            configure
                .arg(Path::new(PACKAGE).join("tests/programs/cmake"))
                .arg("-B")
                .arg(&build);
            configure.arg(format!("-DCMAKE_PREFIX_PATH={}", self.prefix.display()));
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
                self.run_ranks(&build.join("global_c"), library)?;
                self.run_ranks(&build.join("global_f08"), library)?;
            }
        }
        Ok(())
    }
}

/// A program, and the package of pkg-config that it uses.
struct CompiledProgram {
    name: &'static str,
    compiler: String,
    source: &'static str,
    package: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Linking {
    Shared,
    Static,
}
