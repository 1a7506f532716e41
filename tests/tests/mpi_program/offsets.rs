//! `downbeat-mpi offsets`.

use std::fs;
use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::job::{Failure, expect, test};

#[test]
fn offsets_of_shared_and_skewed_clocks_are_found() -> Result<(), Failure> {
    test("offsets", |jobs| {
        let (job, report) = jobs.report(3, "offsets --json")?;
        let ranks = report["ranks"].as_array().cloned().unwrap_or_default();
        let number = |rank: &Value, part: &str| rank[part].as_i64().unwrap_or(i64::MAX);
        let shared = |rank: &Value| {
            number(rank, "offset_ns").abs() < 100
                && number(rank, "at_least_ns") <= 0
                && number(rank, "at_most_ns") >= 0
        };
        expect(
            report["schema"] == "downbeat.offsets" && ranks.len() == 3 && ranks.iter().all(shared),
            &job,
            "ranks that share a clock",
        )?;
        let skewed = "offsets --per-node 2 --skew offset=1s,drift=0ppm,per=node,seed=3 --json \
                      --clock monotonic --perfetto-manifest DIR/m.json --traces {host}/{rank}.pftrace";
        let (job, report) = jobs.report(4, skewed)?;
        let offset = |rank: usize| number(&report["ranks"][rank], "offset_ns");
        expect(
            offset(1).abs() < 100
                && offset(2).abs() > 100_000
                && offset(2).abs_diff(offset(3)) < 100,
            &job,
            "two nodes apart",
        )?;
        let written = fs::read_to_string(jobs.folder.join("m.json"));
        let manifest: Value = written
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default();
        let files = &manifest["perfetto_manifest"]["files"];
        let host = report["ranks"][0]["host"].as_str().unwrap_or_default();
        let path = |rank: usize| format!("{host}/{rank}.pftrace");
        let expected = serde_json::json!({
            "path": path(3),
            "machine": {"name": host},
            "clocks": {
                "clock": "MONOTONIC",
                "sync_to": {"file": path(0), "clock": "MONOTONIC"},
                "offset_ns": -offset(2),
            },
        });
        expect(
            manifest["perfetto_manifest"]["version"] == 1
                && files[0] == serde_json::json!({"path": path(0), "machine": {"name": host}})
                && files[3] == expected
                && files[4].is_null(),
            &job,
            &format!("relations of clocks in {manifest}"),
        )?;
        let of_hosts = jobs.run(&[(
            2,
            "offsets --perfetto-manifest DIR/h.json --traces {host}.pftrace",
        )])?;
        expect(of_hosts.code == Some(0), &of_hosts, "one trace of a host")
    })
}

#[test]
fn traces_of_kineto_are_shifted() -> Result<(), Failure> {
    test("offsets-kineto", |jobs| {
        let trace = |base: &str| {
            format!(
                "{{\"baseTimeNanoseconds\": {base}, \"traceEvents\": [{{\"ph\": \"X\", \"ts\": 5000000000.5}}]}}"
            )
        };
        for rank in 0..2 {
            let path = jobs.folder.join(format!("k{rank}.json"));
            fs::write(path, trace("7")).map_err(|why| why.to_string())?;
        }
        let shift = "offsets --per-node 1 --skew offset=1s,drift=0ppm,per=node,seed=3 --json \
                     --kineto DIR/k{rank}.json --shifted DIR/s{rank}.json";
        let (job, report) = jobs.report(2, shift)?;
        for rank in 0..2 {
            let offset = report["ranks"][rank]["offset_ns"].as_i64().unwrap_or(0);
            let after = 5_000_000_000_500 - offset;
            let expected = format!("\"ts\":{}.{:03}", after / 1_000, after % 1_000);
            let shifted = fs::read_to_string(jobs.folder.join(format!("s{rank}.json")));
            let shifted = shifted.map_err(|why| why.to_string())?;
            expect(
                shifted.contains(&expected),
                &job,
                &format!("{expected} in {shifted}"),
            )?;
        }
        // Profilers compress large traces.
        for rank in 0..2 {
            let file = fs::File::create(jobs.folder.join(format!("k{rank}.json.gz")));
            let file = file.map_err(|why| why.to_string())?;
            let mut compressor = GzEncoder::new(file, Compression::fast());
            let written = compressor.write_all(trace("7").as_bytes());
            let finished = written.and_then(|()| compressor.finish());
            finished.map_err(|why| why.to_string())?;
        }
        let compressed = "offsets --per-node 1 --skew offset=1s,drift=0ppm,per=node,seed=3 --json \
                          --kineto DIR/k{rank}.json.gz --shifted DIR/s{rank}.json.gz";
        let (job, report) = jobs.report(2, compressed)?;
        let offset = report["ranks"][1]["offset_ns"].as_i64().unwrap_or(0);
        let after = 5_000_000_000_500 - offset;
        let expected = format!("\"ts\":{}.{:03}", after / 1_000, after % 1_000);
        let file = fs::File::open(jobs.folder.join("s1.json.gz")).map_err(|why| why.to_string())?;
        let mut shifted = String::new();
        let read = MultiGzDecoder::new(file).read_to_string(&mut shifted);
        read.map_err(|why| why.to_string())?;
        let told = format!("{expected} in {shifted}");
        expect(shifted.contains(&expected), &job, &told)?;
        fs::write(jobs.folder.join("damaged.gz"), [0x1f, 0x8b, 0x08, 0, 1])
            .map_err(|why| why.to_string())?;
        fs::write(jobs.folder.join("k1.json"), trace("8")).map_err(|why| why.to_string())?;
        let cases = [
            (
                "--kineto DIR/k{rank}.json --shifted DIR/new{rank}.json",
                "--kineto: the traces count from different times of the epoch",
            ),
            (
                "--kineto DIR/k{rank}.json --shifted DIR/new.json",
                "--shifted: ranks 0 and 1 both have",
            ),
            (
                "--kineto DIR/k0.json --shifted DIR/k{rank}.json",
                "k0.json, which is only read",
            ),
            (
                "--kineto DIR/none{rank}.json --shifted DIR/new{rank}.json",
                "--kineto: DIR/none0.json: No such file",
            ),
            (
                "--kineto DIR --shifted DIR/new{rank}.json",
                "it is not a file",
            ),
            (
                "--kineto DIR/k{rank}.json --shifted /nonexistent/{rank}",
                "--shifted: /nonexistent/0: ",
            ),
            (
                "--kineto DIR/damaged.gz --shifted DIR/new{rank}.json",
                "--kineto: DIR/damaged.gz: ",
            ),
            ("--kineto DIR/k{rank}.json", "--shifted <NAME>"),
            (
                "--kineto {node} --shifted x",
                "only {rank} and {host} are replaced",
            ),
            ("--traces x", "--perfetto-manifest <FILE>"),
            (
                "--perfetto-manifest DIR/m.json --traces x.pftrace",
                "--traces: ranks 0 and 1 have one trace, x.pftrace: add {rank}",
            ),
            (
                "--perfetto-manifest /nonexistent/x",
                "--perfetto-manifest: /nonexistent/x: ",
            ),
            ("--clock tsc", "--clock"),
            ("--sync hca9", "--sync"),
        ];
        jobs.all_fail(2, "offsets", &cases)?;
        match fs::exists(jobs.folder.join("new0.json")) {
            Ok(false) => Ok(()),
            other => Err(format!(
                "a rank wrote its trace though another failed: {other:?}"
            )),
        }
    })
}
