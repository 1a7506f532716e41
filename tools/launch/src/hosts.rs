//! Several hosts on one machine: namespaces with their own name, address,
//! `CLOCK_MONOTONIC` and shared memory, and MPI jobs across them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::Outcome;
use crate::command::{command, run, text};
use crate::mpi::OPEN_MPI;
use crate::process;

/// Offset of `CLOCK_MONOTONIC` from each host to the next, in seconds.
pub const APART: i64 = 1_000;

/// Network namespaces, one for each host; deleted on drop, with all processes in them.
/// They need root.
#[derive(Debug)]
pub struct Hosts {
    hosts: u32,
    agent: PathBuf,
}

/// Remote shell: drops its options, and finds the host by the last byte of the address.
/// The shared memory of a host is a file system that the machine sees, too.
const AGENT: &str = r#"#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
node=$((${1##*.} - 1)); shift
exec nsenter --net=/run/netns/dbn$node \
    unshare --uts --mount --time --monotonic $((node * APART)) --boottime $((node * APART)) --fork \
    sh -c 'hostname "$0" && mount --bind "$1" /dev/shm && shift && exec "$@"' node$node MEMORY$node sh -c "$*"
"#;

/// Options of Open MPI over hosts; the last one is for windows: `sm` only has those that
/// members share on one host.
pub(crate) const OPEN_MPI_OPTIONS: [(&str, &str); 3] = [
    ("mpi_yield_when_idle", "1"),
    ("btl", "self,vader,tcp"),
    ("osc", "pt2pt,sm"),
];

/// First part of the names of namespaces.
const NAMESPACE: &str = "dbn";
/// First part of the folders of shared memory.
const MEMORY: &str = "/run/dbn";

impl Hosts {
    /// Makes the hosts, after those of an earlier run that was killed are deleted. The folder gets a file.
    ///
    /// # Errors
    /// If this system does not allow it.
    pub fn set_up(hosts: u32, folder: &Path) -> Result<Self, String> {
        let agent = folder.join("remote-shell-agent");
        let script = AGENT.replace("APART", &APART.to_string());
        fs::write(&agent, script.replace("MEMORY", MEMORY)).map_err(|why| why.to_string())?;
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755))
            .map_err(|why| why.to_string())?;
        let hosts = Self { hosts, agent };
        hosts.take_down();
        hosts.connect().map_err(|why| {
            format!("{why}; it takes root, and a kernel with namespaces for network and time")
        })?;
        Ok(hosts)
    }

    fn connect(&self) -> Outcome {
        let ip = |line: &str| run(&mut command(&format!("ip {line}")));
        ip("netns add dbsw")?;
        ip("-n dbsw link add br0 type bridge")?;
        ip("-n dbsw link set br0 up")?;
        for node in 0..self.hosts {
            let memory = self.memory(node);
            fs::create_dir(&memory).map_err(|why| format!("{}: {why}", memory.display()))?;
            run(command("mount -t tmpfs -o mode=1777 tmpfs").arg(memory))?;
            ip(&format!("netns add dbn{node}"))?;
            ip(&format!("-n dbn{node} link set lo up"))?;
            ip(&format!(
                "-n dbsw link add p{node} type veth peer name eth0 netns dbn{node}"
            ))?;
            ip(&format!("-n dbsw link set p{node} master br0 up"))?;
            ip(&format!(
                "-n dbn{node} address add {}/24 dev eth0",
                self.address(node)
            ))?;
            ip(&format!("-n dbn{node} link set eth0 up"))?;
        }
        Ok(())
    }

    fn take_down(&self) {
        self.end_processes();
        let hosts = (0..self.hosts).map(|node| format!("{NAMESPACE}{node}"));
        for name in hosts.chain(["dbsw".to_owned()]) {
            // Usually there is nothing to delete.
            let _ = Command::new("ip")
                .args(["netns", "delete", &name])
                .stderr(Stdio::null())
                .status();
        }
        for node in 0..self.hosts {
            let memory = self.memory(node);
            let mut unmount = Command::new("umount");
            let _ = unmount.arg(&memory).stderr(Stdio::null()).status();
            let _ = fs::remove_dir(memory);
        }
    }

    /// Kills all processes on the hosts, however they were started.
    pub fn end_processes(&self) {
        end_all(|| (0..self.hosts).flat_map(processes_on).collect());
    }

    /// Kills all processes on one host, as its failure does.
    pub fn fail(&self, host: u32) {
        end_all(|| processes_on(host));
    }

    /// Returns the number of hosts.
    pub fn count(&self) -> u32 {
        self.hosts
    }

    /// Returns the address of a host, counted from 0.
    pub fn address(&self, host: u32) -> String {
        format!("10.99.0.{}", host + 1)
    }

    /// Returns the folder with the shared memory of a host, which is its `/dev/shm`.
    pub fn memory(&self, host: u32) -> PathBuf {
        format!("{MEMORY}{host}").into()
    }

    /// Returns the command that runs another one on a host, whose words a shell reads.
    pub fn on(&self, host: u32) -> Command {
        let mut command = Command::new(&self.agent);
        command.arg(self.address(host));
        command
    }

    /// Returns the launcher of Open MPI with this number of ranks on each host. Further
    /// words are those of the job, which a shell reads.
    pub fn mpirun(&self, ranks_per_host: u32) -> Command {
        let hosts = (0..self.hosts).map(|host| format!("{}:{ranks_per_host}", self.address(host)));
        // The launcher runs on the first of the hosts.
        let mut job = self.on(0);
        job.args(["mpirun.openmpi", "--bind-to", "none"]);
        for (name, value) in OPEN_MPI_OPTIONS {
            job.args(["--mca", name, value]);
        }
        job.args(["--mca", "plm_rsh_agent"]).arg(&self.agent);
        job.args("--mca oob_tcp_if_include eth0 --mca btl_tcp_if_include eth0 --host".split(' '));
        job.arg(hosts.collect::<Vec<_>>().join(","));
        job.args(["-np", &(self.hosts * ranks_per_host).to_string()]);
        job.envs(OPEN_MPI.environment());
        job
    }
}

/// Kills all processes that are listed until there is none.
fn end_all(list: impl Fn() -> Vec<u32>) {
    // What is listed may have started others meanwhile.
    for _ in 0..50 {
        let processes = list();
        if processes.is_empty() {
            return;
        }
        process::signal("KILL", &processes);
        thread::sleep(Duration::from_millis(20));
    }
}

/// Lists the processes on a host; none if there is no such host.
fn processes_on(host: u32) -> Vec<u32> {
    let mut list = Command::new("ip");
    list.args(["netns", "pids", &format!("{NAMESPACE}{host}")])
        .stderr(Stdio::null());
    let listed = list.output().map(|output| text(&output.stdout));
    let listed = listed.unwrap_or_default();
    listed.lines().filter_map(|pid| pid.parse().ok()).collect()
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.take_down();
    }
}
