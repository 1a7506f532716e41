//! `downbeat-mpi bench` with good input: by every preset, and of every operation.

use downbeat_launch::Outcome;
use serde_json::Value;

use crate::job::{Failure, Jobs, expect, test};

/// Presets with options that shorten them. Beside other processes, a barrier of oversubscribed ranks takes
/// milliseconds and an operation can take 50 ms, so that windows are longer.
const PRESETS: [(&str, &str); 13] = [
    ("osu", "--warm-up 5 --reps 10"),
    ("imb", "--reps 10"),
    ("imb-4.0", "--calls 10"),
    ("phloem", "--calls 10"),
    // It makes fewer calls than asked for if they would take more than 50 ms.
    ("phloem-1.6", ""),
    ("skampi", "--window 400ms --reps 3"),
    ("nbcbench", "--window 400ms --reps 3"),
    ("mpibench", "--reps 10"),
    ("mpiblib", "--reps 10"),
    ("mpicroscope", "--reps 10"),
    ("mpptest", "--calls 3 --stop near/0.5/3/4/8"),
    ("reprompi", "--slack 20 --time-slice 300ms"),
    ("reprompi-2018", "--slack 20 --time-slice 300ms"),
];

/// Names, sizes of messages, and numbers of ranks.
type Expected = (&'static [&'static str], &'static [u64], &'static [u64]);

/// Options of jobs of three ranks, with the expected groups.
const VARIANTS: [(&str, Expected); 26] = [
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
        "--operation bcast --cache cold-walk --cache-size 65536 --scheme ms2 --reps 5",
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
    (
        "--operation bandwidth,bidirectional,pair-ping-pong --in-flight 7 --sizes 0,64Ki --ranks 2,3 --reps 5",
        (
            &["bandwidth", "bidirectional", "pair-ping-pong"],
            &[0, 65_536],
            &[2, 3],
        ),
    ),
    (
        "--operation alltoallw,neighbor_alltoallw,ineighbor_allgather --radius 2 --datatype int32 --ranks 1,3 --reps 5",
        (
            &["alltoallw", "neighbor_alltoallw", "ineighbor_allgather"],
            &[8],
            &[1, 3],
        ),
    ),
    (
        "--operation put,get,accumulate,put-bandwidth --epoch pscw --in-flight 3 --sizes 0,8Ki --ranks 2,3 --reps 5",
        (
            &["put", "get", "accumulate", "put-bandwidth"],
            &[0, 8192],
            &[2, 3],
        ),
    ),
    (
        "--operation get_accumulate,get-bandwidth --epoch fence --window-memory create --datatype double --reps 5",
        (&["get_accumulate", "get-bandwidth"], &[8], &[3]),
    ),
    (
        "--operation fetch_and_op,compare_and_swap --epoch lock --window-memory create --datatype int64 --sizes 1,2,3 --reps 5",
        (&["fetch_and_op", "compare_and_swap"], &[8], &[3]),
    ),
    (
        "--operation alltoallw,igather,ping-pong,put --datatype int32 --layout indexed/4/10 --sizes 64,16Ki --reps 5",
        (
            &["alltoallw", "igather", "ping-pong", "put"],
            &[64, 16_384],
            &[3],
        ),
    ),
    (
        "--operation ibarrier+compute,iallgatherv+compute --compute 30us --tests 3 --reps 5",
        (&["ibarrier+compute", "iallgatherv+compute"], &[8], &[3]),
    ),
    (
        "--operation persistent-ping-pong --layout vector/2/4 --sizes 0,1Ki --ranks 2,3 --reps 5",
        (&["persistent-ping-pong"], &[0, 1024], &[2, 3]),
    ),
    (
        "--operation ping-pong,alltoall --threads 2 --sizes 0,1Ki --reps 5",
        (&["ping-pong", "alltoall"], &[0, 1024], &[3]),
    ),
    (
        "--operation barrier_init,allreduce_init,bcast_init --root rotating --sizes 8,1Ki --reps 5",
        (
            &["barrier_init", "allreduce_init", "bcast_init"],
            &[8, 1024],
            &[3],
        ),
    ),
    (
        "--operation allreduce --per-node 2 --comm one-per-node --reps 5",
        (&["allreduce"], &[8], &[2]),
    ),
    (
        "--operation alltoall --per-node 1 --per-socket 1 --comm one-per-socket --ranks 2,3 --reps 5",
        (&["alltoall"], &[8], &[2, 3]),
    ),
    (
        "--operation ping-pong --per-node 2 --comm across-nodes --ranks 2 --reps 5",
        (&["ping-pong"], &[8], &[2]),
    ),
];

#[test]
fn every_preset() -> Result<(), Failure> {
    let expected = |ranks: u32| groups(&["barrier", "iallreduce"], &[8, 1024], &[ranks.into()]);
    test("bench-presets", |jobs| {
        each(PRESETS.iter().enumerate(), |(case, (preset, short))| {
            jobs.ranks_of_case(case, &[2, 3, 4]).try_for_each(|ranks| {
                let short =
                    format!("--as {preset} --operation barrier,iallreduce --sizes 8,1Ki {short}");
                let report = measure(jobs, ranks, &short, expected(ranks))?;
                let found = &report["factors"]["as"];
                if found == preset {
                    Ok(())
                } else {
                    Err(format!("the record names {found} instead of {preset}"))
                }
            })
        })
    })
}

#[test]
fn variants_of_operations() -> Result<(), Failure> {
    test("bench-variants", |jobs| {
        each(VARIANTS, |(arguments, (names, sizes, ranks))| {
            let scheme = if arguments.contains("--scheme") {
                ""
            } else {
                "--scheme ms1 --warm-up 2"
            };
            let arguments = format!("{arguments} {scheme}");
            measure(jobs, 3, &arguments, groups(names, sizes, ranks)).map(drop)
        })
    })
}

/// Checks each case, also after a failure.
fn each<T>(cases: impl IntoIterator<Item = T>, check: impl Fn(T) -> Outcome) -> Outcome {
    let failed = cases.into_iter().filter_map(|case| check(case).err());
    let failed: Vec<String> = failed.collect();
    if failed.is_empty() {
        Ok(())
    } else {
        Err(failed.join("; "))
    }
}

/// Blocking and nonblocking operations.
#[test]
fn every_operation() -> Result<(), Failure> {
    const OTHERS: [&str; 7] = [
        "ping-pong",
        "pair-ping-pong",
        "bandwidth",
        "bidirectional",
        "sendrecv",
        "reduce_local",
        "empty",
    ];
    const COLLECTIVES: [&str; 22] = [
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
        "alltoallw",
        "neighbor_allgather",
        "neighbor_allgatherv",
        "neighbor_alltoall",
        "neighbor_alltoallv",
        "neighbor_alltoallw",
        "reduce_scatter",
        "reduce_scatter_block",
        "scan",
        "exscan",
    ];
    let names = COLLECTIVES
        .into_iter()
        .flat_map(|name| [name.to_owned(), format!("i{name}")]);
    let names: Vec<String> = names.chain(OTHERS.map(str::to_owned)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    test("bench-operations", |jobs| {
        let all = "--operation all --sizes 24 --scheme ms1 --warm-up 2 --reps 3";
        measure(jobs, 3, all, groups(&names, &[24], &[3])).map(drop)
    })
}

/// Name, bytes and ranks.
type Key = (String, u64, u64);

/// Returns all combinations; operations without a message have the size 0.
fn groups(names: &[&str], sizes: &[u64], ranks: &[u64]) -> Vec<Key> {
    let mut all = Vec::new();
    for name in names {
        let sizes = if matches!(
            *name,
            "barrier" | "ibarrier" | "barrier_init" | "ibarrier+compute" | "empty"
        ) {
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

/// Measures with verified results; checks that each of these groups is reported once, with plausible figures.
fn measure(
    jobs: &Jobs,
    ranks: u32,
    arguments: &str,
    mut expected: Vec<Key>,
) -> Result<Value, String> {
    let all =
        format!("bench --verify --json --clock monotonic --sync hca3-offset/skampi/20 {arguments}");
    let (job, report) = jobs.report(ranks, &all)?;
    expect(
        report["schema"] == "downbeat.bench" && report["factors"]["verify"] == "true",
        &job,
        "a schema, and results checked",
    )?;
    expect(
        report["factors"]["ranks"] == ranks.to_string().as_str(),
        &job,
        &format!("{ranks} ranks"),
    )?;
    let nodes = report["facts"]["numa nodes"].as_str().unwrap_or_default();
    expect(
        nodes == "unknown" || nodes.parse::<u32>().is_ok_and(|nodes| nodes > 0),
        &job,
        "the number of NUMA nodes",
    )?;
    for of in ["program digest", "mpi digest"] {
        let digest = report["factors"][of].as_str();
        expect(
            digest.is_some_and(|digest| digest.ends_with(" bytes")),
            &job,
            of,
        )?;
    }
    let groups = report["groups"].as_array().ok_or("no groups")?;
    let mut found: Vec<Key> = groups.iter().filter_map(key).collect();
    found.sort();
    expected.sort();
    expect(found == expected, &job, &format!("the groups {expected:?}"))?;
    let mut words = arguments.split_whitespace();
    let reps = words
        .find(|word| *word == "--reps")
        .and_then(|_| words.next()?.parse().ok());
    groups.iter().try_for_each(|group| {
        plausible(group, reps).map_err(|why| format!("{arguments}: {why} in {group}"))
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

/// Checks that the counts add up and the times are possible.
fn plausible(group: &Value, reps: Option<u64>) -> Outcome {
    let count = |state: &str| group[state].as_u64().ok_or(format!("no count of {state}"));
    let (valid, all) = (
        count("valid")?,
        count("valid")? + count("late")? + count("long")? + count("drifted")?,
    );
    // Invalid ones are replaced, up to a limit.
    let is_enough = |reps| valid == reps || valid < reps && all == 4 * reps;
    if valid == 0 || !reps.is_none_or(is_enough) {
        return Err(format!("{valid} valid of {all} observations"));
    }
    let figures = group["figures_ns"]
        .as_object()
        .filter(|figures| !figures.is_empty())
        .ok_or("no figures")?;
    for (name, nanos) in figures {
        // A confidence interval of few observations can begin below zero.
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
