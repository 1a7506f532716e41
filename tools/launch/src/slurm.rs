//! A cluster of Slurm on emulated hosts.

use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::Outcome;
use crate::command::{await_true, command, finish, shown, started_by};
use crate::hosts::{Hosts, OPEN_MPI_OPTIONS};
use crate::mpi::{MpiLibrary, OPEN_MPI};

/// Daemons, which are taken down on drop, each on its host; the files of all are in one
/// folder.
#[derive(Debug)]
pub struct Slurm<'a> {
    hosts: &'a Hosts,
    folder: PathBuf,
    daemons: Vec<Child>,
}

/// Folder that only root can write to, as the daemons demand; its name is short, as those
/// of sockets must be.
const FOLDER: &str = "/run/downbeat-slurm";
/// Debian keeps daemons apart from other programs.
const DAEMONS: &str = "/usr/sbin";
/// Time for all nodes to become idle.
const START_LIMIT: Duration = Duration::from_secs(60);
/// Time for a question to the controller.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

impl<'a> Slurm<'a> {
    /// Starts a cluster, whose nodes run this number of tasks each, and waits until they are idle.
    ///
    /// # Errors
    /// If a daemon does not start; the message has what it wrote.
    pub fn start(hosts: &'a Hosts, tasks_per_node: u32) -> Result<Self, String> {
        let folder = PathBuf::from(FOLDER);
        // What a run left that was killed.
        let _ = fs::remove_dir_all(&folder);
        let mut slurm = Self {
            hosts,
            folder,
            daemons: vec![],
        };
        slurm
            .write_files(tasks_per_node)
            .map_err(|why| format!("{FOLDER}: {why}"))?;
        slurm.start_daemons()?;
        slurm
            .await_idle()
            .map_err(|why| format!("{why}\n{}", slurm.said()))?;
        Ok(slurm)
    }

    /// Returns the folder of all that the daemons write, also of the sockets by which
    /// ranks find each other.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn write_files(&self, tasks_per_node: u32) -> io::Result<()> {
        let folder = |name: &str, mode| {
            let mut builder = DirBuilder::new();
            builder.mode(mode).create(self.folder.join(name))
        };
        folder("", 0o755)?;
        // Everybody may use the socket.
        folder("munge", 0o711)?;
        folder("state", 0o700)?;
        folder("log", 0o700)?;
        let mut conf = include_str!("slurm.conf")
            .replace("FOLDER", FOLDER)
            .replace("CONTROLLER", &self.hosts.address(0));
        for node in 0..self.hosts.count() {
            folder(&format!("spool-node{node}"), 0o755)?;
            folder(&format!("tmp-node{node}"), 0o755)?;
            let address = self.hosts.address(node);
            conf += &format!("NodeName=node{node} NodeAddr={address} CPUs={tasks_per_node}\n");
        }
        conf += "PartitionName=main Nodes=ALL Default=YES\n";
        fs::write(self.configuration(), conf)?;
        let mut key = [0; 128];
        File::open("/dev/urandom")?.read_exact(&mut key)?;
        let mut file = OpenOptions::new();
        file.write(true).create_new(true).mode(0o600);
        file.open(self.folder.join("munge/key"))?.write_all(&key)
    }

    fn configuration(&self) -> PathBuf {
        self.folder.join("slurm.conf")
    }

    fn start_daemons(&mut self) -> Outcome {
        let munge = |name: &str| format!("{FOLDER}/munge/{name}");
        let [socket, key, pid, log, seed] = ["socket", "key", "pid", "log", "seed"].map(munge);
        let munged = format!(
            "munged --foreground --num-threads 2 --socket {socket} --key-file {key} --pid-file {pid} --log-file {log} \
             --seed-file {seed}"
        );
        self.start_daemon("munged", 0, &munged)?;
        // The others fail without it.
        await_true("munged", START_LIMIT, || Path::new(&socket).exists())?;
        self.start_daemon("slurmctld", 0, "slurmctld -D")?;
        (0..self.hosts.count()).try_for_each(|node| {
            let name = format!("slurmd-node{node}");
            self.start_daemon(&name, node, &format!("slurmd -D -N node{node}"))
        })
    }

    fn start_daemon(&mut self, name: &str, host: u32, words: &str) -> Outcome {
        let failed = |why: io::Error| format!("{name}: {why}");
        let log = File::create(self.log(name)).map_err(failed)?;
        let both = log.try_clone().map_err(failed)?;
        let path = env::var("PATH").unwrap_or_default();
        let mut daemon = started_by(self.hosts.on(host), &command(words));
        println!("   {}", shown(&daemon));
        // If this process is itself part of a job, its variables are not those of the
        // cluster.
        daemon
            .env_clear()
            .env("PATH", format!("{path}:{DAEMONS}:/sbin"))
            .env("SLURM_CONF", self.configuration());
        let started = daemon.stdin(Stdio::null()).stdout(log).stderr(both).spawn();
        self.daemons.push(started.map_err(failed)?);
        Ok(())
    }

    fn log(&self, name: &str) -> PathBuf {
        self.folder.join("log").join(name)
    }

    fn await_idle(&self) -> Outcome {
        await_true("idle nodes", START_LIMIT, || {
            let mut ask = self.command("sinfo --noheader --Node --format %T");
            let answer = finish(ANSWER_LIMIT, &mut ask).map(|answer| answer.stdout);
            let states = answer.unwrap_or_default();
            let idle = states.lines().filter(|state| state.trim() == "idle");
            idle.count() == self.hosts.count() as usize
        })
    }

    /// Returns the last lines of all daemons.
    fn said(&self) -> String {
        let logs = fs::read_dir(self.folder.join("log")).into_iter().flatten();
        let last = logs.flatten().map(|log| {
            let text = fs::read_to_string(log.path()).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let last = lines[lines.len().saturating_sub(5)..].join("\n");
            format!("{}:\n{last}", log.file_name().to_string_lossy())
        });
        last.collect::<Vec<_>>().join("\n")
    }

    /// Returns the launcher of ranks of a library on all nodes. Further words are those
    /// of the job, which a shell reads.
    pub fn srun(&self, library: MpiLibrary, ranks_per_node: u32) -> Command {
        let nodes = self.hosts.count();
        let mut srun = self.command("srun");
        // By another interface each rank would be a job of its own.
        let interface = if library == OPEN_MPI { "pmix" } else { "pmi2" };
        srun.args([&format!("--mpi={interface}"), "--kill-on-bad-exit"]);
        srun.args([
            format!("-N{nodes}"),
            format!("-n{}", nodes * ranks_per_node),
        ]);
        srun
    }

    /// Returns a command of Slurm, which runs on the first node; a shell reads its words.
    /// Ranks of Open MPI, which may be root, get what they need by variables.
    pub fn command(&self, words: &str) -> Command {
        let mut command = self.hosts.on(0);
        command.args(words.split_whitespace());
        command.env("SLURM_CONF", self.configuration());
        command.envs(OPEN_MPI.environment());
        let options = OPEN_MPI_OPTIONS.into_iter();
        command.envs(options.map(|(name, value)| (format!("OMPI_MCA_{name}"), value)));
        command
    }
}

impl Drop for Slurm<'_> {
    fn drop(&mut self) {
        // Also what the daemons have started.
        self.hosts.end_processes();
        for daemon in &mut self.daemons {
            let _ = daemon.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}
