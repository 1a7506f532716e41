//! Installation of libdownbeat, with what finds it, and of the programs.
//!
//! | path below the prefix, where `lib/` is what `--libdir` names | contents |
//! |---|---|
//! | `include/` | headers, also that of operations for `downbeat-mpi bench` |
//! | `lib/libdownbeat.a`, `lib/libdownbeat.so` | the library without MPI |
//! | `lib/LIBRARY/libdownbeat_mpi.*` | the library for an MPI library, such as `openmpi` |
//! | `lib/LIBRARY/libdownbeat_wtime.so` | to preload: makes `MPI_Wtime` global |
//! | `lib/LIBRARY/libdownbeat_trace.so` | to preload: records what the program does, for `downbeat record` |
//! | `include/downbeat.mod`, `include/LIBRARY/downbeat_mpi.mod` | modules of Fortran, with `--fortran` |
//! | `lib/libdownbeat_fortran.a`, `lib/LIBRARY/libdownbeat_mpi_fortran.a` | their procedures |
//! | `lib/pkgconfig/downbeat.pc`, `lib/pkgconfig/downbeat-LIBRARY.pc` | for pkg-config |
//! | `lib/cmake/Downbeat/` | for CMake's `find_package(Downbeat)` |
//! | `bin/downbeat` | the program without MPI |
//! | `bin/downbeat-mpi.LIBRARY`, `bin/downbeat-mpi` | the program for an MPI library; a link to that for the first one |
//! | `share/man/man1/downbeat*.1` | a man page for each program and each command |
//! | `share/bash-completion/completions/PROGRAM` | completions for bash |
//! | `share/zsh/site-functions/_PROGRAM` | for zsh |
//! | `share/fish/vendor_completions.d/PROGRAM.fish` | for fish |

mod builds;
mod programs;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, command};
use downbeat_launch::mpi::MpiLibrary;

use crate::args::Installation;
use crate::steps::Step;
use crate::workspace::Workspace;
pub(crate) use builds::{Builds, build_with, installed_mpi_program, installed_program};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Number in the soname, which `tools/capi/build.rs` gives the library.
const SO_VERSION: &str = "0";
/// What the static library needs, as `rustc --print native-static-libs` lists it.
const STATIC_NEEDS: &str = "-lgcc_s -lutil -lrt -lpthread -lm -ldl -lc";
/// Lets other copies of the library in the process find the one in the program.
const EXPORTED: &str = "--export-dynamic-symbol=downbeat_library";
const HEADERS: [&str; 3] = ["downbeat.h", "downbeat.hpp", "downbeat_operation.h"];
/// The first is that of programs without MPI.
const MODULES: [&str; 2] = ["downbeat", "downbeat_mpi"];
const SOURCES: &str = "tools/capi";

/// Installs what a user wants.
pub(crate) fn step(workspace: &Workspace, wanted: Installation) -> Step<'_> {
    let name = format!(
        "install libdownbeat and the programs in {}",
        wanted.prefix.display()
    );
    Step::new(name, move || {
        Installer::new(workspace, &wanted, Builds::Installed).install_all()
    })
}

pub(crate) struct Installer<'a> {
    workspace: &'a Workspace,
    wanted: &'a Installation,
    builds: Builds,
}

impl<'a> Installer<'a> {
    pub(crate) fn new(workspace: &'a Workspace, wanted: &'a Installation, builds: Builds) -> Self {
        Self {
            workspace,
            wanted,
            builds,
        }
    }

    /// Builds and installs everything.
    pub(crate) fn install_all(&self) -> Outcome {
        self.headers()?;
        self.library(None)?;
        for library in &self.wanted.mpi {
            self.library(Some(*library))?;
            self.wtime(*library)?;
            self.tracer(*library)?;
        }
        if self.wanted.fortran {
            self.fortran(None)?;
            for library in &self.wanted.mpi {
                self.fortran(Some(*library))?;
            }
        }
        self.cmake()?;
        self.program()?;
        self.mpi_programs()
    }

    /// Builds and installs what records programs: `downbeat`, and the libraries that it
    /// loads into them.
    pub(crate) fn install_recorder(&self) -> Outcome {
        for library in &self.wanted.mpi {
            self.library(Some(*library))?;
            self.tracer(*library)?;
        }
        self.program()
    }

    fn headers(&self) -> Outcome {
        for header in HEADERS {
            let source = Path::new(SOURCES).join("include").join(header);
            copy(&source, &self.place("include", header)?)?;
        }
        Ok(())
    }

    /// Builds a library, shared and static, and installs both.
    fn library(&self, mpi: Option<MpiLibrary>) -> Outcome {
        let (name, package, flags) = match mpi {
            Some(library) => (
                "downbeat_mpi",
                format!("downbeat-{}", library.suffix()),
                "-I${includedir} -DDOWNBEAT_MPI",
            ),
            None => ("downbeat", "downbeat".to_owned(), "-I${includedir}"),
        };
        let soname = format!("lib{name}.so.{SO_VERSION}");
        let built = self.builds.library(self.workspace, mpi)?;
        let [archive, shared] = ["a", "so"].map(|ending| built.library("downbeat_c", ending));
        let folder = self.below(&self.wanted.libdir, mpi);
        copy(&archive?, &self.place(&folder, &format!("lib{name}.a"))?)?;
        let full = format!("lib{name}.so.{SO_VERSION}.{VERSION}");
        copy(&shared?, &self.place(&folder, &full)?)?;
        link(&full, &self.place(&folder, &soname)?)?;
        link(&soname, &self.place(&folder, &format!("lib{name}.so"))?)?;

        let description = "one precise clock for the ranks of a parallel program";
        let rest = format!(
            "Libs: -L${{libdir}} -Wl,-rpath,${{libdir}} -l{name}\n\
             Libs.private: -Wl,{EXPORTED} {STATIC_NEEDS}\nCflags: {flags}\n"
        );
        self.pkgconfig(&package, description, ["include", &folder], &rest)
    }

    /// Compiles the library that makes `MPI_Wtime` global.
    fn wtime(&self, library: MpiLibrary) -> Outcome {
        let suffix = library.suffix();
        let folder = self.below(&self.wanted.libdir, Some(library));
        let place = self.place(&folder, "libdownbeat_wtime.so")?;
        let mut compile = command(&format!(
            "mpicc.{suffix} -std=c99 -Wall -Wextra -Werror -O2 -fPIC -shared -Wl,-rpath,$ORIGIN"
        ));
        let folder = place.parent().unwrap_or(Path::new("."));
        compile
            .arg("-I")
            .arg(self.place("include", "")?)
            .arg("-L")
            .arg(folder);
        compile.arg(Path::new(SOURCES).join("wtime/wtime.c"));
        shell::run(compile.args(["-ldownbeat_mpi", "-ldl", "-o"]).arg(&place))
    }

    /// Builds the library that records programs.
    fn tracer(&self, library: MpiLibrary) -> Outcome {
        let built = self.builds.tracer(self.workspace, library)?;
        let built = built.library("downbeat_tracer", "so")?;
        let folder = self.below(&self.wanted.libdir, Some(library));
        copy(&built, &self.place(&folder, "libdownbeat_trace.so")?)
    }

    /// Compiles the modules of Fortran, and installs them with a library of their
    /// procedures.
    fn fortran(&self, mpi: Option<MpiLibrary>) -> Outcome {
        let (compiler, sources, suffix) = match mpi {
            None => ("gfortran".to_owned(), &MODULES[..1], ""),
            Some(library) => (format!("mpif90.{}", library.suffix()), &MODULES[..], "_mpi"),
        };
        let [include, lib] = ["include", &self.wanted.libdir].map(|root| self.below(root, mpi));
        let place = self.place(&include, "")?;
        let work = self
            .workspace
            .built(mpi.map_or("fortran", MpiLibrary::suffix))
            .join("modules");
        fs::create_dir_all(&work).map_err(|why| format!("{}: {why}", work.display()))?;
        let mut archive = command("ar rcs");
        let library = self.place(&lib, &format!("libdownbeat{suffix}_fortran.a"))?;
        let _ = fs::remove_file(&library);
        archive.arg(&library);
        for module in sources {
            let object = work.join(module).with_extension("o");
            let mut compile = command(&compiler);
            compile.args("-std=f2008 -Wall -Wextra -Werror -O2 -fPIC -c -J".split(' '));
            compile.arg(&place).arg("-I").arg(&place);
            compile.arg(Path::new(SOURCES).join(format!("fortran/{module}.f90")));
            shell::run(compile.arg("-o").arg(&object))?;
            archive.arg(object);
        }
        shell::run(&mut archive)?;

        let of = mpi.map_or(String::new(), |library| format!("-{}", library.suffix()));
        let rest = format!(
            "Requires: downbeat{of}\nLibs: -L${{libdir}} -ldownbeat{suffix}_fortran\nCflags: -I${{includedir}}\n"
        );
        let package = format!("downbeat{of}-fortran");
        let description = "libdownbeat for Fortran";
        self.pkgconfig(&package, description, [&include, &lib], &rest)
    }

    fn cmake(&self) -> Outcome {
        let libraries: Vec<&str> = self
            .wanted
            .mpi
            .iter()
            .map(|library| library.suffix())
            .collect();
        let text = include_str!("install/DownbeatConfig.cmake")
            .replace("@LIBRARIES@", &libraries.join(" "))
            .replace("@NEEDS@", STATIC_NEEDS)
            .replace("@EXPORTED@", EXPORTED)
            .replace("@LIBDIR@", &self.wanted.libdir);
        let folder = format!("{}/cmake/Downbeat", self.wanted.libdir);
        let folder = folder.as_str();
        write(&self.place(folder, "DownbeatConfig.cmake")?, &text)?;
        let version =
            include_str!("install/DownbeatConfigVersion.cmake").replace("@VERSION@", VERSION);
        write(
            &self.place(folder, "DownbeatConfigVersion.cmake")?,
            &version,
        )
    }

    /// Folder of an MPI library below another one.
    fn below(&self, folder: &str, mpi: Option<MpiLibrary>) -> String {
        match mpi {
            Some(library) => format!("{folder}/{}", library.suffix()),
            None => folder.to_owned(),
        }
    }

    /// Installs the file of a package for pkg-config, with its folders of headers and
    /// libraries.
    fn pkgconfig(
        &self,
        package: &str,
        description: &str,
        [include, lib]: [&str; 2],
        rest: &str,
    ) -> Outcome {
        let prefix = self.wanted.prefix.display();
        let text = format!(
            "prefix={prefix}\nincludedir=${{prefix}}/{include}\nlibdir=${{prefix}}/{lib}\n\n\
             Name: {package}\nDescription: {description}\nVersion: {VERSION}\n{rest}"
        );
        let folder = format!("{}/pkgconfig", self.wanted.libdir);
        write(&self.place(&folder, &format!("{package}.pc"))?, &text)
    }

    /// Returns the path of a file to write, in a folder below the prefix, which exists
    /// then.
    fn place(&self, folder: &str, name: &str) -> Result<PathBuf, String> {
        let Installation {
            prefix, destdir, ..
        } = self.wanted;
        let root = match destdir {
            // The prefix is absolute, and would replace the destination.
            Some(destdir) => destdir.join(prefix.strip_prefix("/").unwrap_or(prefix)),
            None => prefix.clone(),
        };
        let folder = root.join(folder);
        fs::create_dir_all(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
        Ok(folder.join(name))
    }
}

fn copy(from: &Path, to: &Path) -> Outcome {
    println!("   {}", to.display());
    // A program that runs keeps the file that it has loaded.
    let _ = fs::remove_file(to);
    match fs::copy(from, to) {
        Ok(_) => Ok(()),
        Err(why) => Err(format!("{}: {why}", to.display())),
    }
}

fn write(path: &Path, text: &str) -> Outcome {
    println!("   {}", path.display());
    fs::write(path, text).map_err(|why| format!("{}: {why}", path.display()))
}

fn link(to: &str, path: &Path) -> Outcome {
    println!("   {} -> {to}", path.display());
    let _ = fs::remove_file(path);
    symlink(to, path).map_err(|why| format!("{}: {why}", path.display()))
}
