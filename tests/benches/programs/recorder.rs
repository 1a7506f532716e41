//! Programs in C under the tracer, for tables: `downbeat` and the tracer are built as
//! users have them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use downbeat_launch::command::{self as shell, command};
use downbeat_launch::environment;
use downbeat_launch::mpi::MpiLibrary;

use crate::{temporary, variable};

const SOURCES: &str = "tools/tracer/benches";
/// Ranks of all programs, which have a core each.
const RANKS: &str = "2";

/// Installed programs and libraries that record programs of one MPI library.
pub(crate) struct Recorder {
    library: MpiLibrary,
    prefix: PathBuf,
    /// Folder for programs and recordings.
    folder: PathBuf,
}

impl Recorder {
    /// Finds what is installed for the library that the environment names.
    pub(crate) fn find() -> Result<Self, String> {
        let suffix = variable(environment::LIBRARY)?;
        let suffix = suffix.to_string_lossy();
        let library = MpiLibrary::with_suffix(&suffix)
            .ok_or_else(|| format!("{}: unknown MPI library {suffix:?}", environment::LIBRARY))?;
        let folder = temporary("recorder").join(&*suffix);
        fs::create_dir_all(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
        Ok(Self {
            library,
            prefix: variable(environment::INSTALLED)?,
            folder,
        })
    }

    pub(crate) fn library(&self) -> MpiLibrary {
        self.library
    }

    /// Compiles one of the tracer's programs.
    pub(crate) fn compile(&self, name: &str) -> Result<PathBuf, String> {
        let program = self.folder.join(name);
        let mut compile = command(&format!("mpicc.{} -O2", self.library.suffix()));
        compile.arg(Path::new(SOURCES).join(format!("{name}.c")));
        shell::run(compile.arg("-o").arg(&program))?;
        Ok(program)
    }

    /// Returns the path of a folder that does not exist.
    pub(crate) fn absent(&self, name: &str) -> PathBuf {
        let folder = self.folder.join(name);
        // What an earlier run left.
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    /// Returns the installed program `downbeat`.
    pub(crate) fn downbeat(&self) -> Command {
        Command::new(self.prefix.join("bin/downbeat"))
    }

    /// Returns the parent of a rank, whose recording goes to the folder `out`.
    pub(crate) fn record_rank(&self, out: &Path, program: &Command) -> Command {
        let mut parent = self.downbeat();
        parent.arg("record-rank").arg("--out").arg(out).arg("--");
        shell::started_by(parent, program)
    }

    /// Returns the launcher of all ranks of a job.
    pub(crate) fn launched(&self, job: &Command) -> Command {
        let mut mpirun = self.library.mpirun();
        mpirun.args(["-np", RANKS]);
        shell::started_by(mpirun, job)
    }
}

/// Returns the length of a file, or of all files in a folder and its subfolders.
pub(crate) fn bytes_on_disk(path: &Path) -> Result<u64, String> {
    let failed = |why| format!("{}: {why}", path.display());
    let found = fs::metadata(path).map_err(failed)?;
    if !found.is_dir() {
        return Ok(found.len());
    }
    let mut sum = 0;
    for entry in fs::read_dir(path).map_err(failed)? {
        sum += bytes_on_disk(&entry.map_err(failed)?.path())?;
    }
    Ok(sum)
}
