//! Several hosts on one machine: namespaces with their own name, address and `CLOCK_MONOTONIC`, and MPI jobs across them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Outcome;
use crate::command::{command, run};
use crate::mpi::OPEN_MPI;

/// Offset of `CLOCK_MONOTONIC` from each host to the next, in seconds.
pub const APART: i64 = 1_000;

/// Network namespaces, one for each host; deleted on drop. They need root.
#[derive(Debug)]
pub struct Hosts {
    hosts: u32,
    agent: PathBuf,
}

impl Hosts {
    /// Makes the hosts, after those of an earlier run that was killed are deleted. The folder gets a file.
    ///
    /// # Errors
    /// If this system does not allow it.
    pub fn set_up(hosts: u32, folder: &Path) -> Result<Self, String> {
        let agent = folder.join("remote-shell-agent");
        // Drops its options, and finds the host by the last byte of the address.
        let script = "#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\nnode=$((${1##*.} - 1)); shift\n\
                      exec ip netns exec dbn$node unshare --uts --time --monotonic $((node * APART)) \
                      --boottime $((node * APART)) --fork sh -c 'hostname node'$node'; exec \"$0\" \"$@\"' sh -c \"$*\"\n";
        fs::write(&agent, script.replace("APART", &APART.to_string()))
            .map_err(|why| why.to_string())?;
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
            ip(&format!("netns add dbn{node}"))?;
            ip(&format!("-n dbn{node} link set lo up"))?;
            ip(&format!(
                "-n dbsw link add p{node} type veth peer name eth0 netns dbn{node}"
            ))?;
            ip(&format!("-n dbsw link set p{node} master br0 up"))?;
            ip(&format!(
                "-n dbn{node} address add 10.99.0.{}/24 dev eth0",
                node + 1
            ))?;
            ip(&format!("-n dbn{node} link set eth0 up"))?;
        }
        Ok(())
    }

    fn take_down(&self) {
        let hosts = (0..self.hosts).map(|node| format!("dbn{node}"));
        for name in hosts.chain(["dbsw".to_owned()]) {
            // Usually there is nothing to delete.
            let _ = Command::new("ip")
                .args(["netns", "delete", &name])
                .stderr(Stdio::null())
                .status();
        }
    }

    /// Returns the launcher of Open MPI with this number of ranks on each host. Further words are those of the job, which a shell
    /// reads.
    pub fn mpirun(&self, ranks_per_host: u32) -> Command {
        let hosts = (1..=self.hosts).map(|last| format!("10.99.0.{last}:{ranks_per_host}"));
        // The launcher runs on the first of the hosts.
        let mut job = Command::new(&self.agent);
        job.args(["10.99.0.1", "mpirun.openmpi", "--bind-to", "none"]);
        job.args(
            "--mca mpi_yield_when_idle 1 --mca btl self,vader,tcp --mca plm_rsh_agent".split(' '),
        )
        .arg(&self.agent);
        job.args("--mca oob_tcp_if_include eth0 --mca btl_tcp_if_include eth0 --host".split(' '));
        job.arg(hosts.collect::<Vec<_>>().join(","));
        job.args(["-np", &(self.hosts * ranks_per_host).to_string()]);
        job.envs(OPEN_MPI.environment());
        job
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.take_down();
    }
}
