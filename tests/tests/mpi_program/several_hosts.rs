//! The MPI program on several hosts, which are emulated on one machine.

use std::fs;
use std::time::Duration;

use downbeat_launch::Outcome;
use downbeat_launch::command::{FinishedCommand, finish};
use downbeat_launch::hosts::{APART, Hosts};
use serde_json::Value;

use crate::job::{Failure, Jobs, test};

const NODES: u32 = 2;
const RANKS_PER_NODE: u32 = 2;

const LIMIT: Duration = Duration::from_secs(120);

/// A hierarchy finds the nodes by itself, and synchronizes clocks that are truly apart.
///
/// Only under Open MPI: the launcher of MPICH tends to hang over TCP with three ranks and more.
#[test]
fn hierarchy_over_two_hosts() -> Result<(), Failure> {
    test("several-hosts", |jobs| {
        let hosts = Hosts::set_up(NODES, &jobs.folder)?;
        let hosts = HostJobs { jobs, hosts };
        system_times_are_compared(&hosts.report(&["nodes", "--json"])?)?;
        let bench = "bench --operation allreduce --scheme ms1 --reps 20 --json";
        let bench: Vec<&str> = bench.split(' ').collect();
        round_trips_are_facts(&hosts.report(&bench)?)?;
        clocks_are_apart(&hosts.sync("none")?)?;
        clocks_are_synchronized(&hosts.sync("auto/300ms")?)?;
        clocks_are_synchronized(&hosts.sync("h2hca(hca3-offset/skampi/100,prop)")?)?;
        clocks_are_synchronized(
            &hosts.sync("h2hca(hca3/100/skampi/50/recompute,skampi/skampi/100)")?,
        )?;
        clocks_are_kept(&hosts.report(&KEEP)?)?;
        hosts.racks_are_looked_up()?;
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

/// Checks that both hosts report, whose CLOCK_REALTIME is that of the machine.
fn system_times_are_compared(report: &Value) -> Outcome {
    let nodes = report["nodes"].as_array().ok_or("no nodes")?;
    let within = |node: &Value| {
        let offset = &node["realtime_offset"];
        let width = offset["half_width_ns"].as_i64();
        width.is_some_and(|width| offset["ns"].as_i64().is_some_and(|ns| ns.abs() <= width))
    };
    match nodes.len() == NODES as usize && nodes.iter().all(within) {
        true => Ok(()),
        false => Err(format!("expected {NODES} hosts with one time: {report}")),
    }
}

/// Checks that a launch states the round trips between its ranks.
fn round_trips_are_facts(report: &Value) -> Outcome {
    let names = ["round_trip_at_start_ns", "round_trip_at_end_ns"];
    let is_positive = |name: &str| {
        let nanos = report["facts"][name]
            .as_str()
            .and_then(|nanos| nanos.parse().ok());
        nanos.is_some_and(|nanos: f64| nanos > 0.0)
    };
    match names.into_iter().all(is_positive) {
        true => Ok(()),
        false => Err(format!("expected round trips among the facts: {report}")),
    }
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

/// Keeps clocks of hosts that are truly apart.
const KEEP: [&str; 11] = [
    "keep",
    "--clock",
    "monotonic",
    "--truth",
    "--sync",
    "h2hca(cube/20/20,prop)",
    "--period",
    "200ms",
    "--during",
    "1s",
    "--json",
];

/// Checks that the second host takes part in the sessions, and no error exceeds its bound.
fn clocks_are_kept(report: &Value) -> Outcome {
    let measured = report["errors"].as_array().map_or(&[][..], Vec::as_slice);
    let is_within = |errors: &Value| errors["beyond_bound"] == 0;
    let is_kept = report["sessions"]["kept_ranks"] == RANKS_PER_NODE;
    match is_kept && measured.len() == 2 && measured.iter().all(is_within) {
        true => Ok(()),
        false => Err(format!(
            "expected clocks of {RANKS_PER_NODE} ranks, kept: {report}"
        )),
    }
}

/// Jobs of the MPI program on the hosts.
struct HostJobs<'a> {
    jobs: &'a Jobs,
    hosts: Hosts,
}

impl HostJobs<'_> {
    /// Synchronizes once; returns the run, with its largest error right after.
    fn sync(&self, algorithm: &str) -> Result<Value, String> {
        let report = self.report(&sync_arguments(algorithm))?;
        let factors = &report["factors"];
        let is = |factor: &str, number: u32| {
            factors[factor].as_str() == Some(number.to_string().as_str())
        };
        if !is("nodes", NODES) || !is("ranks", NODES * RANKS_PER_NODE) {
            return Err(format!("{algorithm}: the levels were not found: {factors}"));
        }
        Ok(largest_error(&report))
    }

    /// Puts each host into a rack of its own; the racks are found by a file only, which must list all hosts.
    fn racks_are_looked_up(&self) -> Outcome {
        let algorithm = "hlhca(rack=cube/50/50,node=none,rank=skampi)";
        let path = self.jobs.folder.join("places");
        let text = |hosts: u32| {
            let line = |host| format!("node{host} r{host}\n");
            let lines: String = (0..hosts).map(line).collect();
            format!("downbeat places 1\nhost rack\n{lines}")
        };
        let write = |hosts| fs::write(&path, text(hosts)).map_err(|why| why.to_string());
        let places = ["--places", &path.display().to_string()].map(str::to_owned);
        let arguments = || sync_arguments(algorithm).into_iter();
        let with_places: Vec<&str> = arguments()
            .chain(places.iter().map(String::as_str))
            .collect();
        write(NODES)?;
        clocks_are_synchronized(&largest_error(&self.report(&with_places)?))?;
        write(NODES - 1)?;
        let without: Vec<&str> = arguments().collect();
        for (arguments, says) in [
            (with_places, "--places: PATH: host node1 has no line"),
            (without, "needs the rack of each host"),
        ] {
            let job = self.finish(&arguments)?;
            let errors = job.stderr.replace(&places[1], "PATH");
            if job.code != Some(2) || !errors.contains(says) {
                return Err(format!("expected {says}, found {:?}: {errors}", job.code));
            }
        }
        Ok(())
    }

    fn mpirun(&self, algorithm: &str) -> Result<FinishedCommand, String> {
        self.finish(&sync_arguments(algorithm))
    }

    /// Returns the document that a command prints.
    fn report(&self, arguments: &[&str]) -> Result<Value, String> {
        let job = self.finish(arguments)?;
        if job.code != Some(0) {
            return Err(format!(
                "{arguments:?}: exit code {:?}: {}",
                job.code, job.stderr
            ));
        }
        serde_json::from_str(&job.stdout).map_err(|why| format!("{why} in {}", job.stdout))
    }

    fn finish(&self, arguments: &[&str]) -> Result<FinishedCommand, String> {
        let mut job = self.hosts.mpirun(RANKS_PER_NODE);
        job.arg(self.jobs.program());
        // The agent passes the words to a shell.
        job.args(arguments.iter().map(|word| format!("'{word}'")));
        finish(LIMIT, &mut job)
    }
}

/// Returns the first run of a report, with its largest error right after.
fn largest_error(report: &Value) -> Value {
    let mut run = report["runs"][0].clone();
    run["largest_error"] = run["checks"][0]["largest_error"].clone();
    run
}

fn sync_arguments(algorithm: &str) -> [&str; 9] {
    [
        "sync",
        "--clock",
        "monotonic",
        "--truth",
        "--check",
        "0",
        "--json",
        "--algorithm",
        algorithm,
    ]
}
