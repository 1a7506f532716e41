//! `downbeat-mpi bench` with bad input: one line, an exit code, and no rank that waits for another.

use std::fs;

use downbeat_launch::Outcome;
use downbeat_launch::command::finish;

use crate::job::{Failure, Jobs, LIMIT, expect, one_line, test};

const COMMAND: &str = "bench --clock monotonic";

/// Options that no rank can parse, each with a part of the message.
const NONSENSE: [(&str, &str); 46] = [
    ("--operation allredce", "there is no operation \"allredce\""),
    ("--operation allreduce,", "there is no operation \"\""),
    ("--scheme ms5", "--scheme"),
    ("--as osuu", "there is no preset \"osuu\""),
    ("--processing ps9", "there is no processing \"ps9\""),
    ("--barrier fast", "there is no barrier \"fast\""),
    (
        "--datatype quad",
        "there is no datatype \"quad\"; there are byte, char, ",
    ),
    ("--datatype quad", "float, double, long"),
    ("--reduction mean", "--reduction"),
    ("--sizes 8abc", "\"8abc\" is not a size"),
    ("--sizes -8", "\"-8\" is not a size"),
    ("--sizes 2^70", "does not fit into 64 bits"),
    ("--sizes 8..4*2", "ends before it begins"),
    ("--ranks 0", "--ranks"),
    ("--operation bandwidth --in-flight 0", "--in-flight"),
    ("--ranks -1", "--ranks"),
    ("--layout vector/2/1", "\"vector/2/1\" is no layout"),
    ("--layout row", "--layout"),
    ("--compute 0", "--compute"),
    ("--tests -1", "--tests"),
    ("--threads 0", "--threads"),
    ("--threads 1025", "--threads"),
    ("--partitions 0", "--partitions"),
    ("--epoch unlock", "there is no epoch \"unlock\""),
    ("--window-memory 1Mi", "--window-memory"),
    ("--reps 0", "--reps"),
    ("--reps -1", "--reps"),
    ("--max-reps 0", "--max-reps"),
    ("--time-slice 0", "--time-slice"),
    ("--time-slice -1s", "--time-slice"),
    ("--time-slice NaN", "--time-slice"),
    ("--scheme ms4 --window 0", "--window"),
    ("--scheme ms2 --calls 0", "--calls"),
    ("--slack NaN", "--slack"),
    ("--slack inf", "--slack"),
    ("--stop rse/NaN/1/3", "BOUND"),
    ("--stop often", "there is no stopping rule \"often\""),
    ("--reps 10 --time-slice 1s", "cannot be used with"),
    ("--root -1", "there is no root \"-1\""),
    ("--cache hot", "--cache"),
    ("--alignment 3", "--alignment"),
    ("--sync hca4", "there is no algorithm \"hca4\""),
    (
        "--sync hca3/0/skampi/10",
        "the number of fit points must be a positive number",
    ),
    ("--launch x", "--out"),
    ("--out DIR/new --launch ../x", "--launch"),
    ("--sizs 8", "--sizs"),
];

/// Options that contradict each other, the job or existing files, each with a part of the message.
const CONTRADICTIONS: [(&str, &str); 28] = [
    ("--sizes 12 --datatype double --reduction sum", "12 bytes"),
    (
        "--datatype double --reduction bor",
        "MPI has no reduction bor of double",
    ),
    ("--sizes 2^40", "1099511627776 bytes"),
    (
        "--operation bcast --root 2",
        "--root: there is no rank 2 among 2 ranks",
    ),
    (
        "--operation allreduce --root 2",
        "--root: there is no rank 2 among 2 ranks",
    ),
    (
        "--operation bcast --ranks 1,2 --root 1",
        "--root: there is no rank 1 among 1 rank",
    ),
    ("--ranks 9", "--ranks: this job has 2 ranks, and not 9"),
    (
        "--comm one-per-node --per-node 2 --ranks 2",
        "--ranks: --comm one-per-node selects 1 rank, and not 2",
    ),
    ("--comm some", "--comm"),
    (
        "--operation bcast_init --cache cold-walk --cache-size 65536",
        "bcast_init is made for one buffer",
    ),
    (
        "--operation bcast --layout vector/3/4",
        "a message of 8 elements has no whole blocks of vector/3/4",
    ),
    (
        "--layout struct/1/2",
        "allreduce takes no derived datatypes",
    ),
    (
        "--operation persistent-ping-pong --cache cold-walk --cache-size 65536",
        "persistent-ping-pong is made for one buffer",
    ),
    (
        "--operation compare_and_swap --datatype float",
        "compare_and_swap takes integers and bytes, not float",
    ),
    (
        "--operation get --cache cold-walk --cache-size 65536",
        "get is made for one buffer",
    ),
    (
        "--operation bandwidth --ranks 1",
        "--operation: bandwidth needs at least 2 ranks",
    ),
    (
        "--operation ping-pong --ranks 1,2",
        "ping-pong needs at least 2 ranks, not 1",
    ),
    (
        "--operation bcast --in-place",
        "bcast cannot be done in place",
    ),
    ("--scheme ms2 --processing ps1", "--processing and --scheme"),
    (
        "--window 1ms",
        "--window: does not apply to the scheme round-time",
    ),
    ("--cache-size 1", "--cache-size"),
    (
        "--cache cold-overwrite --cache-size 9 --scheme ms2",
        "--cache: this scheme times several calls together",
    ),
    (
        "--cache cold-overwrite --cache-size 9 --as mpptest",
        "--cache: this scheme times several calls together",
    ),
    ("--out /proc/nonexistent", "--out: /proc/nonexistent"),
    ("--out DIR/file", "--out: DIR/file"),
    (
        "--out DIR/known --launch b --scheme ms1 --reps 4",
        "the factor \"stop\" is \"count/3\" here, but \"count/4\"",
    ),
    (
        "--out DIR/known --launch a --scheme ms1 --reps 3 --sizes 8,16",
        "the launch is complete, without allreduce, 16 bytes, 2 ranks",
    ),
    (
        "--out DIR/damaged --launch a --scheme ms1 --reps 3",
        "\"NaN\" is not a valid run-time",
    ),
];

#[test]
fn options_that_cannot_be_parsed() -> Result<(), Failure> {
    test("bench-nonsense", |jobs| {
        jobs.all_fail(2, COMMAND, &NONSENSE)
    })
}

#[test]
fn options_that_contradict_each_other() -> Result<(), Failure> {
    test("bench-contradictions", |jobs| {
        write_records(jobs)?;
        jobs.all_fail(2, COMMAND, &CONTRADICTIONS)
    })
}

/// Writes a good record, a damaged one, and a file in the place of a folder. By this scheme no call is late on a busy machine.
fn write_records(jobs: &Jobs) -> Outcome {
    let job = jobs.run(&[(
        2,
        "bench --clock monotonic --scheme ms1 --reps 3 --out DIR/known --launch a",
    )])?;
    expect(job.code == Some(0), &job, "a record")?;
    let path = |name: &str| jobs.folder.join(name);
    let io = |why: std::io::Error| why.to_string();
    let record = fs::read_to_string(path("known/a.csv")).map_err(io)?;
    let (head, rest) = record
        .split_once(",valid,")
        .ok_or(format!("no valid observation in:\n{record}"))?;
    let (_, rest) = rest.split_once('\n').unwrap_or_default();
    fs::create_dir(path("damaged")).map_err(io)?;
    fs::write(path("damaged/a.csv"), format!("{head},valid,NaN\n{rest}")).map_err(io)?;
    fs::write(path("file"), "").map_err(io)
}

#[test]
fn options_that_differ_between_ranks() -> Result<(), Failure> {
    test("bench-options-differ", |jobs| {
        jobs.fails(
            &[
                (1, &format!("{COMMAND} --reps 3")),
                (1, &format!("{COMMAND} --reps 4")),
            ],
            2,
            "different options",
        )?;
        jobs.fails(
            &[
                (1, &format!("{COMMAND} --reps 3")),
                (1, &format!("{COMMAND} --reps 0")),
            ],
            2,
            "--reps",
        )?;
        jobs.fails(
            &[(1, COMMAND), (1, "sync --clock monotonic")],
            2,
            "different options",
        )
    })
}

/// Other suites print 0.0 and exit with success.
#[test]
fn no_valid_observation() -> Result<(), Failure> {
    test("bench-nothing-valid", |jobs| {
        let none = "none of 160 observations is valid: ";
        jobs.fails(
            &[(
                2,
                "bench --clock monotonic --scheme ms4 --window 1ns --reps 40 --json",
            )],
            1,
            none,
        )?;
        let recorded =
            "bench --clock monotonic --scheme ms4 --window 1ns --reps 40 --out DIR/none --launch a";
        jobs.fails(&[(2, recorded)], 1, none)?;
        let record =
            fs::read_to_string(jobs.folder.join("none/a.csv")).map_err(|why| why.to_string())?;
        if record.contains("# end") || record.contains("# complete") {
            return Err(format!("there is an empty group:\n{record}"));
        }
        Ok(())
    })
}

/// Standard output of the ranks; that of the launcher is not tested.
#[test]
fn full_standard_output() -> Result<(), Failure> {
    test("bench-full-output", |jobs| {
        for json in ["", "--json"] {
            let script = format!(
                "exec PROGRAM bench --clock monotonic --scheme ms1 --reps 3 {json} > /dev/full"
            );
            let mut mpirun = jobs.mpirun_shells(2, &script);
            let job = finish(LIMIT, &mut mpirun)?;
            expect(job.code == Some(1), &job, "exit code 1 for a full output")?;
            one_line(&job, "cannot write to standard output")?;
        }
        Ok(())
    })
}
