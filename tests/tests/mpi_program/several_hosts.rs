//! Several hosts on one machine: namespaces with their own name, address and CLOCK_MONOTONIC, and an MPI job across
//! them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use downbeat_launch::Outcome;
use downbeat_launch::command::{FinishedCommand, command, finish, run};
use serde_json::Value;

use crate::job::{Failure, Jobs, test};

const NODES: u32 = 2;
const RANKS_PER_NODE: u32 = 2;

/// Offset of CLOCK_MONOTONIC from each node to the next, in seconds.
const APART: i64 = 1_000;

const LIMIT: Duration = Duration::from_secs(120);

/// A hierarchy finds the nodes by itself, and synchronizes clocks that are truly apart.
///
/// Only under Open MPI: the launcher of MPICH tends to hang over TCP with three ranks and more.
#[test]
fn hierarchy_over_two_hosts() -> Result<(), Failure> {
    test("several-hosts", |jobs| {
        let hosts = Hosts::set_up(jobs)?;
        clocks_are_apart(&hosts.sync("none")?)?;
        clocks_are_synchronized(&hosts.sync("h2hca(hca3-offset/skampi/100,prop)")?)?;
        clocks_are_synchronized(
            &hosts.sync("h2hca(hca3/100/skampi/50/recompute,skampi/skampi/100)")?,
        )?;
        // One kernel, but two clocks: no rank may take over the clock of the other host.
        let refused = hosts.mpirun("prop")?;
        if refused.code == Some(1) && refused.stderr.contains("do not share a source of time") {
            return Ok(());
        }
        Err(format!(
            "expected all ranks to refuse one clock for two hosts, found {:?}: {}",
            refused.code, refused.stderr
        ))
    })
}

/// Checks that, without synchronization, the error is the offset of the namespaces.
fn clocks_are_apart(check: &Value) -> Outcome {
    let apart = APART * i64::from(NODES - 1) * 1_000_000_000;
    let error = check["largest_error"]["ns"].as_i64().ok_or("no error")?;
    // The true error is measured by comparing clocks, to some ten nanoseconds.
    if (error - apart).abs() < 1_000 {
        Ok(())
    } else {
        Err(format!(
            "the hosts' clocks are {error} ns apart, not {apart}"
        ))
    }
}

/// Checks that no error exceeds its bound.
fn clocks_are_synchronized(run: &Value) -> Outcome {
    let error = &run["largest_error"];
    let number = |value: &Value| {
        value
            .as_i64()
            .ok_or(format!("there is a number missing in {run}"))
    };
    // Bounds of the synchronization, of the comparison, and of rounding.
    let certain = number(&run["half_width_ns"])? + number(&error["half_width_ns"])? + 2;
    println!(
        "   largest error {} ns, certain to {certain} ns",
        error["ns"]
    );
    if number(&error["ns"])?.abs() <= certain {
        Ok(())
    } else {
        Err(format!("it can be off by {certain} ns at most: {run}"))
    }
}

/// Network namespaces; deleted on drop.
struct Hosts<'a> {
    jobs: &'a Jobs,
    agent: PathBuf,
}

impl<'a> Hosts<'a> {
    fn set_up(jobs: &'a Jobs) -> Result<Self, String> {
        let agent = jobs.folder.join("remote-shell-agent");
        // Drops its options, and finds the node by the last byte of the address.
        let script = "#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\nnode=$((${1##*.} - 1)); shift\n\
                      exec ip netns exec dbn$node unshare --uts --time --monotonic $((node * APART)) \
                      --boottime $((node * APART)) --fork sh -c 'hostname node'$node'; exec \"$0\" \"$@\"' sh -c \"$*\"\n";
        fs::write(&agent, script.replace("APART", &APART.to_string()))
            .map_err(|why| why.to_string())?;
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755))
            .map_err(|why| why.to_string())?;
        // Namespaces of an earlier run that was killed.
        let hosts = Self { jobs, agent };
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
        for node in 0..NODES {
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
        for name in (0..NODES)
            .map(|node| format!("dbn{node}"))
            .chain(["dbsw".to_owned()])
        {
            // Usually there is nothing to delete.
            let _ = Command::new("ip")
                .args(["netns", "delete", &name])
                .stderr(Stdio::null())
                .status();
        }
    }

    /// Synchronizes once; returns the run, with its largest error right after.
    fn sync(&self, algorithm: &str) -> Result<Value, String> {
        let job = self.mpirun(algorithm)?;
        if job.code != Some(0) {
            return Err(format!(
                "{algorithm}: exit code {:?}: {}",
                job.code, job.stderr
            ));
        }
        let report: Value =
            serde_json::from_str(&job.stdout).map_err(|why| format!("{why} in {}", job.stdout))?;
        let factors = &report["factors"];
        let is = |factor: &str, number: u32| {
            factors[factor].as_str() == Some(number.to_string().as_str())
        };
        if !is("nodes", NODES) || !is("ranks", NODES * RANKS_PER_NODE) {
            return Err(format!("{algorithm}: the levels were not found: {factors}"));
        }
        let mut run = report["runs"][0].clone();
        run["largest_error"] = run["checks"][0]["largest_error"].clone();
        Ok(run)
    }

    fn mpirun(&self, algorithm: &str) -> Result<FinishedCommand, String> {
        let hosts: Vec<String> = (1..=NODES)
            .map(|last| format!("10.99.0.{last}:{RANKS_PER_NODE}"))
            .collect();
        // The launcher runs on the first of the hosts.
        let mut job = Command::new(&self.agent);
        job.arg("10.99.0.1")
            .args(["mpirun.openmpi", "--bind-to", "none"]);
        job.args(
            "--mca mpi_yield_when_idle 1 --mca btl self,vader,tcp --mca plm_rsh_agent".split(' '),
        )
        .arg(&self.agent);
        job.args("--mca oob_tcp_if_include eth0 --mca btl_tcp_if_include eth0".split(' '));
        job.args([
            "--host",
            &hosts.join(","),
            "-np",
            &(NODES * RANKS_PER_NODE).to_string(),
        ])
        .arg(self.jobs.program());
        job.args([
            "sync",
            "--clock",
            "monotonic",
            "--truth",
            "--check",
            "0",
            "--json",
        ]);
        // The agent passes the words to a shell.
        job.args(["--algorithm", &format!("'{algorithm}'")])
            .envs(self.jobs.library.environment());
        finish(LIMIT, &mut job)
    }
}

impl Drop for Hosts<'_> {
    fn drop(&mut self) {
        self.take_down();
    }
}
