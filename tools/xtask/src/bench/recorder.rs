//! Programs in C under the tracer, for tables: `downbeat` and the tracer are built as
//! users have them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::args::Installation;
use crate::install::install_recorder;
use crate::workspace::Workspace;
use downbeat_launch::command::{self as shell, command};
use downbeat_launch::mpi::MpiLibrary;

const SOURCES: &str = "tools/tracer/benches";
/// Ranks of all programs, which have a core each.
const RANKS: &str = "2";

/// Installed programs and libraries that record programs of one MPI library.
pub(super) struct Recorder {
    library: MpiLibrary,
    prefix: PathBuf,
    /// Folder for programs and recordings.
    folder: PathBuf,
}

impl Recorder {
    /// Builds and installs them.
    pub(super) fn install(workspace: &Workspace, library: MpiLibrary) -> Result<Self, String> {
        let folder = workspace.built("recorder").join(library.suffix());
        let folder =
            std::path::absolute(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
        let wanted = Installation {
            prefix: folder.join("prefix"),
            mpi: vec![library],
            ..Installation::default()
        };
        install_recorder(workspace, &wanted)?;
        Ok(Self {
            library,
            prefix: wanted.prefix,
            folder,
        })
    }

    pub(super) fn library(&self) -> MpiLibrary {
        self.library
    }

    /// Compiles one of the tracer's programs.
    pub(super) fn compile(&self, name: &str) -> Result<PathBuf, String> {
        let program = self.folder.join(name);
        let mut compile = command(&format!("mpicc.{} -O2", self.library.suffix()));
        compile.arg(Path::new(SOURCES).join(format!("{name}.c")));
        shell::run(compile.arg("-o").arg(&program))?;
        Ok(program)
    }

    /// Returns the path of a folder that does not exist.
    pub(super) fn absent(&self, name: &str) -> PathBuf {
        let folder = self.folder.join(name);
        // What an earlier run left.
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    /// Returns the installed program `downbeat`.
    pub(super) fn downbeat(&self) -> Command {
        Command::new(self.prefix.join("bin/downbeat"))
    }

    /// Returns the parent of a rank, whose recording goes to the folder `out`.
    pub(super) fn record_rank(&self, out: &Path, program: &Command) -> Command {
        let mut parent = self.downbeat();
        parent.arg("record-rank").arg("--out").arg(out).arg("--");
        shell::started_by(parent, program)
    }

    /// Returns the launcher of all ranks of a job.
    pub(super) fn launched(&self, job: &Command) -> Command {
        let mut mpirun = self.library.mpirun();
        mpirun.args(["-np", RANKS]);
        shell::started_by(mpirun, job)
    }
}

/// Returns the length of a file, or of all files in a folder and its subfolders.
pub(super) fn bytes_on_disk(path: &Path) -> Result<u64, String> {
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
