//! The container of the documents: its recipe is built, and ranks in it find each other
//! by every launcher that can be had here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use downbeat_launch::Outcome;
use downbeat_launch::command::{self as shell, command, started_by};
use downbeat_launch::hosts::Hosts;
use downbeat_launch::mpi::OPEN_MPI;
use downbeat_launch::slurm::Slurm;

use crate::packages::debian;
use crate::tree::temporary;

const RECIPE: &str = "docs/packaging/Containerfile";
const IMAGE: &str = "localhost/downbeat";
/// Those of Podman are more than some machines allow.
const LIMITS: [&str; 2] = ["--ulimit=nofile=20000:20000", "--ulimit=nproc=1000:1000"];

/// The image of this name on the registry has more, which the recipe does not use.
const DEBIAN: &str = "docker.io/library/debian:bookworm-slim";
/// Stands for the image of this name on the registry; the toolchain is that of this
/// machine.
const RUST: &str = "docker.io/library/rust:1-bookworm";
const RUST_RECIPE: &str = "FROM docker.io/library/debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates gcc libc6-dev
ENV PATH=/usr/local/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
";
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Time for the program and the libraries, with all they depend on.
const BUILD_LIMIT: Duration = Duration::from_secs(40 * 60);
const JOB_LIMIT: Duration = Duration::from_secs(120);
const RANKS: u32 = 2;
const RANK: &str = "downbeat-mpi sync --algorithm hca3/100/skampi/20";

/// Builds the recipe, and runs ranks in its container.
pub(crate) fn in_containers() -> Outcome {
    let podman = Podman::new()?;
    podman.build_recipe()?;
    podman.run_ranks()?;
    let image = podman.unpacked()?;
    run_unpacked(&image)?;
    run_by_slurm(&image, &podman.folder)
}

/// Podman with images of its own, which are removed on drop: no registry is asked, and
/// what the user has stays as it is.
struct Podman {
    folder: PathBuf,
}

impl Podman {
    fn new() -> Result<Self, String> {
        let folder = temporary("container");
        // The folder of a build that needs no files.
        make(&folder.join("empty"))?;
        let podman = Self { folder };
        // What a run left that was killed.
        podman.remove_all();
        Ok(podman)
    }

    fn command(&self, words: &str) -> Command {
        // Other runtimes refuse the control groups of some machines.
        let mut podman = command("podman --runtime runc --cgroup-manager cgroupfs");
        podman.arg("--root").arg(self.folder.join("storage"));
        podman.arg("--runroot").arg(self.folder.join("state"));
        podman.args(words.split_whitespace());
        podman
    }

    /// Builds the recipe of the documents as it is, from images that take the places of
    /// those that it names.
    fn build_recipe(&self) -> Outcome {
        let archive = self.folder.join("debian.tar");
        let mut pack = command("tar -cf");
        pack.arg(&archive).arg("-C");
        shell::run(pack.arg(debian()?).arg("."))?;
        shell::run(self.command("import").arg(&archive).arg(DEBIAN))?;

        let recipe = self.folder.join("rust");
        fs::write(&recipe, RUST_RECIPE).map_err(|why| format!("{}: {why}", recipe.display()))?;
        let mut build = self.build(RUST);
        build.arg("--file").arg(recipe);
        shell::run(build.arg(self.folder.join("empty")))?;

        let toolchain = shell::read(&mut command("rustc --print sysroot"))?;
        let mut build = self.build(IMAGE);
        build.arg(format!("--volume={}:/usr/local/rust:ro", toolchain.trim()));
        // The registry of crates may be reached by a proxy that only this machine knows.
        build.arg(format!("--volume={CERTIFICATES}:{CERTIFICATES}:ro"));
        shell::run_within(BUILD_LIMIT, build.args(["--file", RECIPE, "."]))
    }

    fn build(&self, image: &str) -> Command {
        let mut build = self.command("build --pull=never --isolation=chroot --network=host");
        build.args(LIMITS).args(["--tag", image]);
        build
    }

    fn run(&self) -> Command {
        let mut run = self.command("run --rm --env-host --net=host --pid=host --ipc=host");
        run.args(LIMITS).arg(IMAGE).envs(OPEN_MPI.environment());
        run
    }

    fn run_ranks(&self) -> Outcome {
        shell::run(&mut self.run())?;
        meet(1, &mut started_by(self.run(), &mpirun(&command(RANK))))?;
        meet(1, &mut mpirun(&started_by(self.run(), &command(RANK))))
    }

    /// Writes the files of the container to a folder.
    fn unpacked(&self) -> Result<PathBuf, String> {
        let [folder, archive] = ["unpacked", "unpacked.tar"].map(|name| self.folder.join(name));
        let _ = fs::remove_dir_all(&folder);
        make(&folder)?;
        let container = shell::read(self.command("create").arg(IMAGE))?;
        let mut export = self.command("export --output");
        shell::run(export.arg(&archive).arg(container.trim()))?;
        let mut unpack = command("tar -xf");
        shell::run(unpack.arg(&archive).arg("-C").arg(&folder))?;
        Ok(folder)
    }

    fn remove_all(&self) {
        for words in ["rm --all --force", "rmi --all --force"] {
            let _ = shell::run(&mut self.command(words));
        }
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        self.remove_all();
    }
}

/// Runs ranks in unpacked files by Charliecloud, which needs no rights and no daemon.
fn run_unpacked(image: &Path) -> Outcome {
    meet(1, &mut charliecloud(image, &mpirun(&command(RANK))))?;
    meet(1, &mut mpirun(&charliecloud(image, &command(RANK))))
}

/// Runs a rank on each of several nodes, whose daemons tell it the others by sockets in
/// their folder.
fn run_by_slurm(image: &Path, folder: &Path) -> Outcome {
    let hosts = Hosts::set_up(RANKS, folder)?;
    let slurm = Slurm::start(&hosts, 1)?;
    let daemons = slurm.folder();
    make(&image.join(daemons.strip_prefix("/").unwrap_or(daemons)))?;
    let rank = ch_run(&[Path::new("--bind"), daemons, image]);
    let rank = started_by(rank, &command(RANK));
    meet(RANKS, &mut started_by(slurm.srun(OPEN_MPI, 1), &rank))
}

fn ch_run(arguments: &[&Path]) -> Command {
    let mut outside = command("ch-run");
    // It ends without a user's name.
    outside.args(arguments).arg("--").env("USER", "downbeat");
    outside
}

fn charliecloud(image: &Path, inside: &Command) -> Command {
    started_by(ch_run(&[image]), inside)
}

fn mpirun(rank: &Command) -> Command {
    let mut mpirun = OPEN_MPI.oversubscribed_mpirun();
    mpirun.args(["-np", &RANKS.to_string()]);
    started_by(mpirun, rank)
}

/// Runs the ranks, which must be one job on this number of nodes.
fn meet(nodes: u32, job: &mut Command) -> Outcome {
    let report = shell::show_and_read(JOB_LIMIT, job)?;
    let expected = format!("{RANKS} ranks on {nodes} node");
    match report.starts_with(&expected) {
        true => Ok(()),
        false => Err(format!(
            "`{}` does not print {expected:?} first",
            shell::shown(job)
        )),
    }
}

fn make(folder: &Path) -> Outcome {
    fs::create_dir_all(folder).map_err(|why| format!("{}: {why}", folder.display()))
}
