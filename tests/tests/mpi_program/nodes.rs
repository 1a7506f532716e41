//! `downbeat-mpi nodes`.

use std::fs;
use std::time::Duration;

use downbeat_launch::command::finish;
use serde_json::Value;

use crate::job::{Failure, expect, test};

const LIMIT: Duration = Duration::from_secs(60);

/// The ranks share a clock: all differences are within their bounds, unless the clock is made wrong.
#[test]
fn clocks_of_nodes_are_compared() -> Result<(), Failure> {
    test("nodes", |jobs| {
        let (job, report) = jobs.report(3, "nodes --per-node 1 --json")?;
        let nodes = report["nodes"].as_array().cloned().unwrap_or_default();
        let number = |value: &Value| value.as_i64().unwrap_or(i64::MAX);
        let offset = |node: &Value, part: &str| number(&node["realtime_offset"][part]);
        let within = |node: &Value| offset(node, "ns").abs() <= offset(node, "half_width_ns");
        let told = |node: &Value| {
            node["counter"].is_object() && node["system_time"]["synchronized"].is_boolean()
        };
        expect(
            report["schema"] == "downbeat.nodes"
                && nodes.len() == 3
                && nodes.iter().all(|node| within(node) && told(node)),
            &job,
            "three nodes with one clock",
        )?;
        expect(
            report["odd"] == serde_json::json!([]) && report["contradiction"].is_null(),
            &job,
            "nodes that are alike",
        )?;
        let one = jobs.run(&[(2, "nodes")])?;
        let refers = one.stdout.contains("nothing to compare it with");
        expect(one.code == Some(0) && refers, &one, "one node")?;

        let apart = jobs.run(&[(2, "nodes --per-node 1 --max-apart 1h")])?;
        expect(apart.code == Some(0), &apart, "one clock")?;
        let skewed = "nodes --per-node 1 --skew offset=10s,drift=0ppm --max-apart 1ms";
        let apart = jobs.run(&[(2, skewed)])?;
        let reason = "--max-apart 1.000 ms is exceeded";
        expect(
            apart.code == Some(1)
                && apart.stderr.contains(reason)
                && apart.stdout.contains("Largest difference"),
            &apart,
            reason,
        )
    })
}

/// Containers of one node share no memory, and emulated hosts one kernel.
#[test]
fn a_variable_names_the_node_of_a_rank() -> Result<(), Failure> {
    test("nodes-named", |jobs| {
        let script = "DOWNBEAT_NODE=node$((${OMPI_COMM_WORLD_RANK:-$PMI_RANK} / 2)) exec PROGRAM sync \
                      --algorithm auto/20ms --check 0";
        let job = finish(LIMIT, &mut jobs.mpirun_shells(4, script))?;
        expect(
            job.code == Some(0) && job.stdout.contains("4 ranks on 2 nodes"),
            &job,
            "four ranks on two nodes",
        )
    })
}

#[test]
fn nodes_are_watched_and_logged() -> Result<(), Failure> {
    test("nodes-watch", |jobs| {
        let watch = "nodes --per-node 1 --watch 20ms --samples 2 --log DIR/log.csv";
        for launch in 1..=2 {
            let job = jobs.run(&[(2, watch)])?;
            let log = fs::read_to_string(jobs.folder.join("log.csv"));
            let log = log.map_err(|why| why.to_string())?;
            let columns: Vec<usize> = log.lines().map(|line| line.split(',').count()).collect();
            expect(
                job.code == Some(0)
                    && job.stdout.is_empty()
                    && columns.len() == 1 + launch * 2 * 2
                    && columns.iter().all(|count| *count == columns[0]),
                &job,
                &format!("two lines for each node and sample in\n{log}"),
            )?;
        }
        let metrics = "nodes --per-node 1 --watch 20ms --samples 1 --log-form openmetrics";
        let job = jobs.run(&[(2, metrics)])?;
        let series = job
            .stdout
            .matches("downbeat_realtime_offset_ns{host=")
            .count();
        expect(
            job.code == Some(0) && series == 2 && job.stdout.ends_with("# EOF\n"),
            &job,
            "metrics of two nodes",
        )?;
        // A requirement that is not met for as long as it lasts ends nothing early.
        let strict = format!("{metrics} --max-apart 1ns");
        let job = jobs.run(&[(2, strict.as_str())])?;
        expect(
            job.code == Some(1) && job.stdout.ends_with("# EOF\n"),
            &job,
            "an exceeded limit",
        )
    })
}

#[test]
fn bad_input_is_refused() -> Result<(), Failure> {
    const CASES: [(&str, &str); 8] = [
        ("nodes --max-apart 0s", "--max-apart"),
        ("nodes --max-ppm nan", "--max-ppm"),
        ("nodes --require sinchronized", "did you mean synchronized?"),
        ("nodes --check-by skampi/0", "--check-by"),
        ("nodes --watch 0s", "--watch"),
        ("nodes --samples 3", "--watch"),
        ("nodes --watch 1s --json", "--json"),
        ("nodes --watch 1s --log /proc/nonexistent/x", "--log"),
    ];
    test("nodes-refused", |jobs| jobs.all_fail(2, "", &CASES))
}
