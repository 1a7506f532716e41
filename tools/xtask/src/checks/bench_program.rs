//! `bench` of the rank program with good input: by every preset, and of every operation.

use std::path::Path;

use serde_json::Value;

use crate::checks::job::{Jobs, want};
use crate::checks::mpi::Library;
use crate::steps::Outcome;

/// Each suite's method, as short as may be: on crowded cores a barrier can take milliseconds, and nobody knows a window
/// that is long enough.
const PRESETS: [(&str, &str); 10] = [
    ("osu", "--warm-up 5 --reps 10"),
    ("imb", "--calls 10"),
    ("phloem", "--calls 10"),
    ("skampi", "--window 50ms --reps 8"),
    ("nbcbench", "--window 50ms --reps 8"),
    ("mpibench", "--reps 10"),
    ("mpiblib", "--reps 10"),
    ("mpicroscope", "--reps 10"),
    ("mpptest", "--calls 3 --stop near/0.5/3/4/8"),
    ("reprompi", "--slack 20 --time-slice 100ms"),
];

/// Names, sizes of messages, and numbers of ranks.
type Expected = (&'static [&'static str], &'static [u64], &'static [u64]);

/// What one job measures, among three ranks, and what it is to find.
const VARIANTS: [(&str, Expected); 12] = [
    (
        "--operation allreduce,empty,scan --ranks 1,2,3 --reps 5",
        (&["allreduce", "empty", "scan"], &[8], &[1, 2, 3]),
    ),
    (
        "--operation allreduce,ireduce --datatype double --reduction sum --reps 5",
        (&["allreduce", "ireduce"], &[8], &[3]),
    ),
    (
        "--operation reduce_scatter --datatype int32 --reduction max --sizes 4,12,400 --reps 5",
        (&["reduce_scatter"], &[4, 12, 400], &[3]),
    ),
    (
        "--operation bcast,igather --root rotating --reps 7",
        (&["bcast", "igather"], &[8], &[3]),
    ),
    (
        "--operation scatterv,reduce --root 2 --sizes 0,1,1Ki --reps 5",
        (&["scatterv", "reduce"], &[0, 1, 1024], &[3]),
    ),
    (
        "--operation allreduce,allgather --in-place --alignment 4096 --reps 5",
        (&["allreduce", "allgather"], &[8], &[3]),
    ),
    (
        "--operation alltoall --cache cold-overwrite --cache-size 65536 --reps 5",
        (&["alltoall"], &[8], &[3]),
    ),
    (
        "--operation bcast --cache cold-walk --cache-size 65536 --reps 5",
        (&["bcast"], &[8], &[3]),
    ),
    (
        "--operation exscan --barrier dissemination --stop rse/0.5/5/20",
        (&["exscan"], &[8], &[3]),
    ),
    (
        "--operation exscan --barrier double --stop interval/0.9/0.5/5/20",
        (&["exscan"], &[8], &[3]),
    ),
    (
        "--operation sendrecv --barrier tree --stop decay/linear/5/20",
        (&["sendrecv"], &[8], &[3]),
    ),
    (
        "--operation ping-pong --scheme ms3 --calls 5 --processing ps7 --stop near/0.5/2/3/9",
        (&["ping-pong"], &[8], &[3]),
    ),
];

pub(crate) fn by_presets(program: &Path, library: Library, scratch: &Path) -> Outcome {
    let jobs = Jobs::new(program, library, scratch, "bench-presets")?;
    let expected = |ranks: u32| groups(&["barrier", "iallreduce"], &[8, 1024], &[ranks.into()]);
    let results = PRESETS.into_iter().map(|(preset, short)| {
        let run = |ranks: u32| {
            let short =
                format!("--as {preset} --operation barrier,iallreduce --sizes 8,1Ki {short}");
            let report = measured(&jobs, ranks, &short, expected(ranks))?;
            let found = &report["factors"]["as"];
            if found == preset {
                Ok(())
            } else {
                Err(format!("the record names {found} instead of {preset}"))
            }
        };
        (preset, [2, 3, 4].into_iter().try_for_each(run))
    });
    let results: Vec<_> = results.collect();
    jobs.end(results)
}

pub(crate) fn of_operations(program: &Path, library: Library, scratch: &Path) -> Outcome {
    let jobs = Jobs::new(program, library, scratch, "bench-operations")?;
    let variants = VARIANTS
        .into_iter()
        .map(|(arguments, (names, sizes, ranks))| {
            let scheme = if arguments.contains("--scheme") {
                ""
            } else {
                "--scheme ms1 --warm-up 2"
            };
            (
                arguments,
                measured(
                    &jobs,
                    3,
                    &format!("{arguments} {scheme}"),
                    groups(names, sizes, ranks),
                )
                .map(drop),
            )
        });
    let results: Vec<_> = [("all of them", all(&jobs))]
        .into_iter()
        .chain(variants)
        .collect();
    jobs.end(results)
}

/// Also those that do not block.
fn all(jobs: &Jobs<'_>) -> Outcome {
    const ALONE: [&str; 3] = ["ping-pong", "sendrecv", "empty"];
    const OF_MPI: [&str; 16] = [
        "barrier",
        "bcast",
        "reduce",
        "allreduce",
        "gather",
        "gatherv",
        "scatter",
        "scatterv",
        "allgather",
        "allgatherv",
        "alltoall",
        "alltoallv",
        "reduce_scatter",
        "reduce_scatter_block",
        "scan",
        "exscan",
    ];
    let names = OF_MPI
        .into_iter()
        .flat_map(|name| [name.to_owned(), format!("i{name}")]);
    let names: Vec<String> = names.chain(ALONE.map(str::to_owned)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    measured(
        jobs,
        3,
        "--operation all --sizes 24 --scheme ms1 --warm-up 2 --reps 3",
        groups(&names, &[24], &[3]),
    )
    .map(drop)
}

/// Name, bytes and ranks.
type Key = (String, u64, u64);

/// All of these; what has no message has the size 0.
fn groups(names: &[&str], sizes: &[u64], ranks: &[u64]) -> Vec<Key> {
    let mut all = Vec::new();
    for name in names {
        let sizes = if matches!(*name, "barrier" | "ibarrier" | "empty") {
            &[0]
        } else {
            sizes
        };
        for bytes in sizes {
            all.extend(
                ranks
                    .iter()
                    .map(|ranks| ((*name).to_owned(), *bytes, *ranks)),
            );
        }
    }
    all
}

/// Measures, with results checked; wants these groups, each once, and figures that can be.
fn measured(
    jobs: &Jobs<'_>,
    ranks: u32,
    arguments: &str,
    mut expected: Vec<Key>,
) -> Result<Value, String> {
    let job = jobs.run(&[(
        ranks,
        &format!(
            "bench --verify --json --clock monotonic --sync hca3-offset/skampi/20 {arguments}"
        ),
    )])?;
    want(
        job.code == Some(0),
        &job,
        &format!("exit code 0 of {ranks} ranks with {arguments}"),
    )?;
    let report: Value =
        serde_json::from_str(&job.stdout).map_err(|why| format!("{why} in {}", job.stdout))?;
    want(
        report["schema"] == "downbeat.bench" && report["factors"]["verify"] == "true",
        &job,
        "a schema, and results checked",
    )?;
    want(
        report["factors"]["ranks"] == ranks.to_string().as_str(),
        &job,
        &format!("{ranks} ranks"),
    )?;
    let groups = report["groups"].as_array().ok_or("no groups")?;
    let mut found: Vec<Key> = groups.iter().filter_map(key).collect();
    found.sort();
    expected.sort();
    want(found == expected, &job, &format!("the groups {expected:?}"))?;
    let mut words = arguments.split_whitespace();
    let reps = words
        .find(|word| *word == "--reps")
        .and_then(|_| words.next()?.parse().ok());
    groups.iter().try_for_each(|group| {
        makes_sense(group, reps).map_err(|why| format!("{arguments}: {why} in {group}"))
    })?;
    Ok(report)
}

fn key(group: &Value) -> Option<Key> {
    Some((
        group["operation"].as_str()?.to_owned(),
        group["bytes"].as_u64()?,
        group["ranks"].as_u64()?,
    ))
}

/// Counts that add up, and times that can be.
fn makes_sense(group: &Value, reps: Option<u64>) -> Outcome {
    let count = |state: &str| group[state].as_u64().ok_or(format!("no count of {state}"));
    let (valid, all) = (
        count("valid")?,
        count("valid")? + count("late")? + count("long")?,
    );
    if valid == 0 || reps.is_some_and(|reps| all != reps) {
        return Err(format!("{valid} valid of {all} observations"));
    }
    let figures = group["figures_ns"]
        .as_object()
        .filter(|figures| !figures.is_empty())
        .ok_or("no figures")?;
    for (name, nanos) in figures {
        // An interval of few observations can begin below zero.
        let possible = |nanos: f64| nanos.is_finite() && (nanos > 0.0 || name.ends_with("-low"));
        if !nanos.as_f64().is_some_and(possible) {
            return Err(format!("{name} is {nanos}"));
        }
    }
    if group["elapsed_s"]
        .as_f64()
        .is_some_and(|seconds| seconds > 0.0)
    {
        Ok(())
    } else {
        Err("it took no time".to_owned())
    }
}
