//! Programs that are traced.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use downbeat_launch::command::{self as shell, command};
use downbeat_launch::mpi::{MPICH, MpiLibrary};

use crate::tree::InstalledTree;

/// Folder of the sources.
pub(crate) const SOURCES: &str = "tools/tracer/tests/programs";
/// Headers of both libraries make gcc believe that an ignored status is an array.
const C: &str = "-g -Wall -Wextra -pthread -Wno-stringop-overflow -Wno-stringop-overread";
const FORTRAN: &str = "-g -w -fallow-argument-mismatch -ffree-line-length-none";
/// Sources of programs of Fortran, the binding that each is compiled for, and the name of
/// the program.
const FORTRAN_PROGRAMS: [[&str; 3]; 5] = [
    ["messages.F90", "MPIF", "messages_mpif"],
    ["messages.F90", "MPI", "messages_mpi"],
    ["messages.F90", "F08", "messages_f08"],
    ["session.F90", "MPI", "session_mpi"],
    ["session.F90", "F08", "session_f08"],
];

/// Program with its arguments.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) path: PathBuf,
    arguments: Vec<PathBuf>,
}

impl Program {
    /// Returns true if the program is not linked with MPI, which comes with a module.
    pub(crate) fn loads_mpi(&self) -> bool {
        !self.arguments.is_empty()
    }

    /// Returns the command.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments);
        command
    }
}

/// Compilers of an MPI library.
pub(crate) struct Compilers {
    library: MpiLibrary,
    options: String,
    built: PathBuf,
}

impl Compilers {
    /// Adds these options to all others.
    pub(crate) fn new(
        tree: &InstalledTree,
        library: MpiLibrary,
        options: &str,
    ) -> Result<Self, String> {
        let folder = format!("{}{options}", library.suffix());
        // Without the `=` of options, which `env` takes for a variable.
        let folder = folder.replace([' ', '=', ','], "");
        let built = tree.built.join("tracer").join(folder);
        fs::create_dir_all(&built).map_err(|why| format!("{}: {why}", built.display()))?;
        Ok(Self {
            library,
            options: options.to_owned(),
            built,
        })
    }

    /// Compiles files with these options.
    fn compile(
        &self,
        compiler: &str,
        options: &str,
        files: &[PathBuf],
        to: &str,
    ) -> Result<PathBuf, String> {
        let path = self.built.join(to);
        let mut compile = command(&format!("{compiler} {options} {}", self.options));
        compile.args(files).arg("-o").arg(&path).arg("-lm");
        shell::run(&mut compile).map(|()| path)
    }

    /// Compiles sources of C.
    pub(crate) fn c(&self, options: &str, sources: &[&str], to: &str) -> Result<PathBuf, String> {
        let compiler = format!("mpicc.{}", self.library.suffix());
        let files: Vec<PathBuf> = sources.iter().map(source).collect();
        self.compile(&compiler, &format!("{C} {options}"), &files, to)
    }

    /// Compiles a source of C as C++.
    pub(crate) fn cxx(&self, name: &str, to: &str) -> Result<PathBuf, String> {
        let compiler = format!("mpicxx.{}", self.library.suffix());
        self.compile(&compiler, "-g -O2 -Wall", &[source(&name)], to)
    }

    /// Compiles the mini application, whose language is that of the name.
    pub(crate) fn mini_application(&self, name: &str) -> Result<PathBuf, String> {
        let (language, options) = if name.ends_with(".c") {
            ("cc", "-g -O2".to_owned())
        } else {
            ("f90", format!("-g -O2 -J{}", self.modules(name)?))
        };
        let compiler = format!("mpi{language}.{}", self.library.suffix());
        let file = Path::new("tools/tracer/examples").join(name);
        self.compile(&compiler, &options, &[file], name)
    }

    /// Compiles the program in C with every kind of message, request and collective
    /// operation.
    pub(crate) fn messages(&self) -> Result<PathBuf, String> {
        let sources = [
            "messages.c",
            "messages_collective.c",
            "messages_mpi4.c",
            "messages_onesided.c",
            "counts.c",
        ];
        self.c("", &sources, "messages")
    }

    /// Creates the folder of a program's modules of Fortran.
    fn modules(&self, name: &str) -> Result<String, String> {
        let modules = self.built.join(format!("modules-{name}"));
        let shown = modules.display().to_string();
        fs::create_dir_all(modules).map_err(|why| format!("{shown}: {why}"))?;
        Ok(shown)
    }

    /// Compiles a program in a binding of Fortran.
    fn fortran(&self, [file, binding, name]: [&str; 3]) -> Result<PathBuf, String> {
        let modules = self.modules(name)?;
        // Calls that only one of the libraries has.
        let own = if self.library == MPICH {
            "-DMPI_4"
        } else {
            "-DOPEN_MPI_4"
        };
        let options = format!("{FORTRAN} -DBINDING_{binding} {own} -J{modules}");
        let compiler = format!("mpif90.{}", self.library.suffix());
        let counts = self.c("-c", &["counts.c"], "counts.o")?;
        self.compile(&compiler, &options, &[source(&file), counts], name)
    }

    /// Compiles all programs: messages and sessions in C and in bindings of Fortran,
    /// threads, unusual uses, and MPI in a module that is loaded.
    pub(crate) fn all(&self) -> Result<Vec<Program>, String> {
        let mut programs = vec![];
        let mut add = |name, path, arguments| {
            programs.push(Program {
                name,
                path,
                arguments,
            });
        };
        add("messages", self.messages()?, vec![]);
        // Only MPI 4 has sessions.
        let is_there = |name: &&str| self.library == MPICH || !name.starts_with("session");
        for program in FORTRAN_PROGRAMS.iter().filter(|[.., name]| is_there(name)) {
            add(program[2], self.fortran(*program)?, vec![]);
        }
        for name in ["odd", "threads", "session"]
            .into_iter()
            .filter(|name| is_there(name))
        {
            let path = self.c("", &[&format!("{name}.c"), "counts.c"], name)?;
            add(name, path, vec![]);
        }
        let module = ["plugin_mpi.c", "counts.c"];
        let module = self.c("-shared -fPIC", &module, "plugin_mpi.so")?;
        let path = self.compile("cc", C, &[source(&"loads_mpi.c")], "loads_mpi")?;
        add("loads_mpi", path, vec![module]);
        Ok(programs)
    }
}

fn source(name: &&str) -> PathBuf {
    Path::new(SOURCES).join(name)
}
