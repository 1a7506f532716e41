//! Tests of all formats. Tables are excerpts of outputs that users published, unless it is said otherwise.

use downbeat_files::Flaw;
use proptest::prelude::*;

use super::{AVERAGES, ImportFormat, ImportSettings, Imported, import};
use crate::{Launch, ObservationState};

const OSU: &str = "# OSU MPI Allreduce Latency Test v7.4\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n\
                   1                      28.46\n2                      64.22\n";

const IMB: &str = "#    Intel(R) MPI Benchmarks 2021.6, MPI-1 part\n# Benchmarking Allreduce \n# #processes = 144 \n\
                   #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n\
                   8         1000         3.82         3.99         3.89\n\
                   67108864            1     49608.12     52453.49     50430.43\n\n\n# All processes entering MPI_Finalize\n";

/// Made by hand after the print functions of ReproMPI: the same two calls by rows of processes.
const PROCESSES: &str = "#@datatype_size_bytes=4\n#@nprocs=2\n#@nrep=2\n\
    process test nrep count errorcode loc_tstart_sec loc_tend_sec gl_tstart_sec gl_tend_sec \n\
    0 MPI_Bcast 0 3 0 1700000000.0000000000 1700000000.0000010000 5.0000000000 5.0000010000\n\
    0 MPI_Bcast 1 3 2 1700000001.0000000000 1700000001.0000020000 6.0000000000 6.0000020000\n\
    1 MPI_Bcast 0 3 0 9.0000000000 9.0000015000 5.0000001000 5.0000016000\n\
    1 MPI_Bcast 1 3 0 9.5000000000 9.5000015000 6.0000001000 6.0000016000\n";

const HYPERFINE: &str = r#"{"results": [
    {"command": "sort -n", "times": [0.354719390, 0.343944077], "user": 0.3, "memory_usage_byte": [138768384, 138899456],
     "exit_codes": [0, 1], "parameters": {"file": "a/b.csv"}},
    {"command": "sort -g", "times": [1], "parameters": {"file": "a/b.csv"}}]}"#;

fn ranks(ranks: u32) -> ImportSettings {
    ImportSettings {
        ranks: Some(ranks),
        ..ImportSettings::default()
    }
}

fn read(text: &str, settings: &ImportSettings) -> Result<Imported, String> {
    import(text.as_bytes(), settings).map_err(|flaw| match flaw {
        Flaw::Line(line, why) => format!("{line}: {why}"),
        Flaw::Whole(why) => why,
        other => format!("{other:?}"),
    })
}

fn launches(text: &str, settings: &ImportSettings) -> Vec<Launch> {
    let found = read(text, settings).unwrap().launches;
    found.into_iter().map(|found| found.launch).collect()
}

/// Groups with their observations.
fn groups(launch: &Launch) -> Vec<String> {
    let group = |group: &crate::MeasuredGroup| format!("{}: {:?}", group.key, group.nanos);
    launch.groups.iter().map(group).collect()
}

fn refused(text: &str, settings: &ImportSettings, why: &str) {
    let found = read(text, settings).unwrap_err();
    assert!(found.contains(why), "{found}");
}

#[test]
fn every_suite_is_recognized() {
    for (text, format) in [
        (OSU, ImportFormat::Osu),
        (IMB, ImportFormat::Imb),
        (PROCESSES, ImportFormat::Reprompi),
        #[cfg(feature = "json")]
        (HYPERFINE, ImportFormat::Hyperfine),
    ] {
        let found = read(text, &ranks(2)).unwrap();
        assert_eq!(found.format, format);
        assert_eq!(format.name().parse(), Ok(format));
        // Windows writes other line ends, and may write a mark in front.
        let other = format!("\u{feff}{}", text.replace('\n', "\r\n"));
        assert_eq!(read(&other, &ranks(2)).unwrap(), found);
        let noise = format!("Lmod is automatically replacing x.\n\n{text}\nreal\t0m7.832s\n$ \n");
        if text != HYPERFINE {
            assert_eq!(read(&noise, &ranks(2)).unwrap(), found);
            let given = ImportSettings {
                from: Some(format),
                ..ranks(2)
            };
            assert_eq!(read(text, &given).unwrap(), found);
        }
    }
    refused("", &ranks(2), "known: osu, imb, reprompi");
    refused("\0\u{1}\n", &ranks(2), "known: osu, imb, reprompi");
    refused(
        &(OSU.to_owned() + IMB),
        &ranks(2),
        "6: here begins output of imb, after that of osu",
    );
    let osu = ImportSettings {
        from: Some(ImportFormat::Osu),
        ..ranks(2)
    };
    assert_eq!(launches(&(OSU.to_owned() + IMB), &osu).len(), 1);
    refused(IMB, &osu, "no table of times of osu");
    refused("command,mean,stddev,median\n", &ranks(2), "export JSON");
}

#[test]
fn an_average_of_many_calls_is_one_observation() {
    let [osu] = &*launches(OSU, &ranks(4)) else {
        panic!()
    };
    assert_eq!(
        groups(osu),
        [
            "allreduce, 1 bytes, 4 ranks: [28460.0]",
            "allreduce, 2 bytes, 4 ranks: [64220.0]"
        ]
    );
    assert_eq!(osu.factors.get("suite version"), Some("7.4"));
    assert_eq!(osu.factors.get("datatype of allreduce"), Some("MPI_CHAR"));
    assert_eq!(osu.facts.get(AVERAGES), Some("an unknown number of calls"));
    // The output states the number of ranks.
    let [imb] = &*launches(IMB, &ranks(4)) else {
        panic!()
    };
    assert_eq!(imb.groups[0].key.ranks, 144);
    assert_eq!(imb.facts.get(AVERAGES), Some("1 to 1,000 calls"));
    assert_eq!(
        imb.groups[0].figures,
        [("avg", 3_890.0), ("min", 3_820.0), ("max", 3_990.0)]
            .map(|(name, nanos)| (name.to_owned(), nanos))
    );
    assert!(imb.complete);
    let whole = IMB
        .strip_suffix("# All processes entering MPI_Finalize\n")
        .unwrap();
    assert!(!launches(whole, &ranks(4))[0].complete);
    refused(
        OSU,
        &ImportSettings::default(),
        "3: the output does not state the number of ranks",
    );
}

#[test]
fn the_column_can_be_chosen() {
    for name in ["max", "MAX", "t_max", "t_max[usec]", "Max Latency(us)"] {
        let column = Some(name.split(' ').next().unwrap_or(name).to_owned());
        let settings = ImportSettings { column, ..ranks(4) };
        let found = launches(IMB, &settings);
        assert_eq!(found[0].groups[0].nanos, [3_990.0]);
        assert_eq!(found[0].groups[0].figures[0].0, "max");
        assert_eq!(found[0].factors.get("column"), Some("max"));
    }
    let max = ImportSettings {
        column: Some("max".to_owned()),
        ..ranks(4)
    };
    refused(
        OSU,
        &max,
        "3: there is no column \"max\"; the table has avg",
    );
    // One time stands for all.
    let pingpong = "# Benchmarking PingPong\n# #processes = 2\n#bytes #repetitions t[usec] Mbytes/sec\n0 1000 1.66 0.00\n";
    assert_eq!(
        groups(&launches(pingpong, &max)[0]),
        ["pingpong, 0 bytes, 2 ranks: [1660.0]"]
    );
    refused(PROCESSES, &max, "no column to choose");
}

#[test]
fn tails_and_checks_of_messages_are_understood() {
    let text = "# OSU MPI-CUDA Broadcast Latency Test v7.5\n\
                # Size Avg Latency(us) Min Latency(us) Max Latency(us) Iterations P50 Tail Lat(us) P90 Tail Lat(us) P99 Tail Lat(us) Validation\n\
                1 2.24 0.42 2.94 5000 2.2 2.5 2.9 Pass\n";
    let found = &launches(text, &ranks(8))[0];
    assert_eq!(groups(found), ["bcast, 1 bytes, 8 ranks: [2240.0]"]);
    assert_eq!(
        found.groups[0].figures.last(),
        Some(&("p99".to_owned(), 2_900.0))
    );
    assert_eq!(found.factors.get("buffers"), Some("CUDA"));
    refused(
        &text.replace("Pass", "Fail"),
        &ranks(8),
        "3: the validation of these messages says \"Fail\"",
    );
    refused(
        &text.replace("P50 Tail", "P42 Tail"),
        &ranks(8),
        "2: the column \"P42",
    );
}

#[test]
fn a_bandwidth_is_a_time_per_message() {
    let text = "# OSU MPI Bandwidth Test v7.5\n# Size      Bandwidth (MB/s)\n268435456           12254.16\n";
    let found = &launches(text, &ImportSettings::default())[0];
    assert_eq!(found.groups[0].nanos, [268_435_456e3 / 12_254.16]);
    assert_eq!(
        found.facts.get("times of bandwidth"),
        Some("time per message, from MB/s")
    );
    refused(
        &text.replace("12254.16", "0.00"),
        &ranks(2),
        "3: the bandwidth is 0",
    );
    let rates = "# OSU MPI Multiple Bandwidth / Message Rate Test v5.7\n# [ pairs: 15 ] [ window size: 64 ]\n\
                 # Size                  MB/s        Messages/s\n1                       6.39        6385003.80\n";
    refused(rates, &ranks(30), "no table of times of osu");
    let found = read(&(rates.to_owned() + OSU), &ranks(30)).unwrap();
    assert_eq!((found.left_out.len(), found.launches.len()), (1, 1));
}

#[test]
fn the_nth_output_belongs_to_the_nth_launch() {
    let other = OSU.replace("Allreduce", "Broadcast");
    let found = launches(&[OSU, OSU, &other, OSU, &other].concat(), &ranks(4));
    let numbers: Vec<usize> = found.iter().map(|launch| launch.groups.len()).collect();
    assert_eq!(numbers, [4, 4, 2]);
    let set: Vec<_> = found.iter().map(|launch| &launch.factors).collect();
    assert!(
        set.windows(2)
            .all(|pair| pair[0].differing(pair[1]).is_none())
    );
    let other_type = OSU.to_owned() + &OSU.replace("MPI_CHAR", "MPI_INT");
    refused(
        &other_type,
        &ranks(4),
        "7: datatype of allreduce is \"MPI_INT\" here, but \"MPI_CHAR\"",
    );
    let mixed = read(
        &(OSU.to_owned() + &other.replace("v7.4", "v7.3")),
        &ranks(4),
    )
    .unwrap_err();
    assert!(
        mixed.contains("suite version is \"7.3\" here, but \"7.4\""),
        "{mixed}"
    );
    // A row that repeats a size is a further observation of the same launch.
    let twice = format!("{OSU}2 64.24\n");
    let found = launches(&twice, &ranks(4));
    assert_eq!(
        groups(&found[0])[1],
        "allreduce, 2 bytes, 4 ranks: [64220.0, 64240.0]"
    );
    assert!(found[0].groups[1].figures.is_empty());
}

/// Columns of an output of Pallas' suite, from which Intel's has them.
#[test]
fn groups_of_processes_are_observations_of_one_operation() {
    let text = "# Benchmarking Multi-PingPong\n# ( 2 groups of 2 processes each running simultaneous )\n# Group    0 : 0 1\n\
                Group       #bytes #repetitions      t[usec]   Mbytes/sec\n\n\
                0            0         1000        10.19         0.00\n1            0         1000        10.22         0.00\n\n\
                0            1         1000         7.28         0.13\n1            1         1000         7.13         0.13\n\n\
                0 2 time-out.; Time limit\n";
    let found = launches(text, &ImportSettings::default());
    assert_eq!(
        groups(&found[0]),
        [
            "multi-pingpong-x2, 0 bytes, 2 ranks: [10190.0, 10220.0]",
            "multi-pingpong-x2, 1 bytes, 2 ranks: [7280.0, 7130.0]"
        ]
    );
}

#[test]
fn lines_between_rows_are_refused_and_others_ignored() {
    let warning = format!("{OSU}[node1] 3 more processes sent help message\n");
    assert_eq!(read(&warning, &ranks(4)), read(OSU, &ranks(4)));
    refused(
        &format!("{warning}4 1.5\n"),
        &ranks(4),
        "7: before this row, inside of the table, is a line that is none: \"[node1]",
    );
    for (row, why) in [
        ("4", "\"4\" is no row of this table, which has 2 columns"),
        ("4 1.5 1", "no row of this table"),
        ("4 1,5", "\"1,5\" has a comma"),
        ("4 NaN", "\"NaN\" is no time"),
        ("4 inf", "\"inf\" is no time"),
        ("4 1e999999999999", "is no time"),
        ("4 1e40", "is no time"),
        ("4 -0.01", "\"-0.01\" is negative"),
        ("4x 1.5", "\"4x\" is no whole number"),
        ("99999999999999999999 1.5", "is no whole number"),
    ] {
        refused(
            &format!("{OSU}{row}\n"),
            &ranks(4),
            &format!("6: {}", if why.starts_with('"') { why } else { "" }),
        );
        refused(&format!("{OSU}{row}\n"), &ranks(4), why);
    }
    refused(
        &format!("{OSU}4 12.3"),
        &ranks(4),
        "6: the table ends within a line",
    );
    assert_eq!(read(&format!("{OSU}$ "), &ranks(4)), read(OSU, &ranks(4)));
    // What is too fast to be printed is no error.
    assert_eq!(
        launches(&format!("{OSU}4 -0.00\n"), &ranks(4))[0].groups[2].nanos,
        [0.0]
    );
}

#[test]
fn run_times_of_processes_are_those_that_reprompi_computes() {
    let [launch] = &*launches(PROCESSES, &ImportSettings::default()) else {
        panic!()
    };
    assert_eq!(groups(launch), ["bcast, 12 bytes, 2 ranks: [1600.0]"]);
    let long = launch.groups[0]
        .counts
        .iter()
        .find(|(state, _)| *state == ObservationState::Long);
    assert_eq!(long, Some(&(ObservationState::Long, 1)));
    // Without a global clock, it is the longest time of a process.
    let local: String = PROCESSES
        .lines()
        .map(|line| {
            if line.starts_with("#@") {
                format!("{line}\n")
            } else {
                line.split_whitespace()
                    .take(7)
                    .collect::<Vec<_>>()
                    .join(" ")
                    + "\n"
            }
        })
        .collect();
    assert_eq!(
        launches(&local, &ImportSettings::default())[0].groups[0].nanos,
        [1_500.0]
    );
    let cut = PROCESSES
        .strip_suffix("1 MPI_Bcast 1 3 0 9.5000000000 9.5000015000 6.0000001000 6.0000016000\n")
        .unwrap();
    let cut = &launches(cut, &ImportSettings::default())[0];
    assert_eq!(
        (groups(cut).len(), cut.complete, launch.complete),
        (1, false, true)
    );
    for (old, new, why) in [
        (
            "nprocs=2",
            "nprocs=3",
            "no call of bcast, 12 bytes, 3 ranks has the times of all 3",
        ),
        (
            "\n1 MPI",
            "\n0 MPI",
            "process 0 has call 0 of bcast, 12 bytes, 2 ranks twice",
        ),
        ("\n1 MPI", "\n2 MPI", "no process 2 among 2"),
        ("5.0000016000", "4.0000016000", "ends before it begins"),
        ("5.0000016000", "-4.0", "\"-4.0\" is no moment"),
        (
            "#@datatype_size_bytes=4\n",
            "",
            "does not state the size of its datatype",
        ),
    ] {
        refused(&PROCESSES.replace(old, new), &ranks(9), why);
    }
}

#[test]
fn calls_of_reprompi_are_observations_in_their_order() {
    let table = "          test       nrep        count    runtime_sec\n\
                 MPI_Allreduce          0            1   0.0000109819\nMPI_Allreduce          1            1   0.0000030911\n";
    let text = format!(
        "#@datatype_size_bytes=1\n#@nprocs=4\n#@bcast_runtime_s=0.1\n#@sync=MPI_Barrier\n#@nrep=2\n{table}"
    );
    let [launch] = &*launches(&text, &ImportSettings::default()) else {
        panic!()
    };
    assert_eq!(
        groups(launch),
        ["allreduce, 1 bytes, 4 ranks: [10981.9, 3091.1]"]
    );
    assert_eq!(
        (
            launch.factors.get("sync"),
            launch.facts.get("bcast_runtime_s")
        ),
        (Some("MPI_Barrier"), Some("0.1"))
    );
    assert_eq!((launch.complete, launch.facts.get(AVERAGES)), (true, None));
    assert!(
        !launches(
            &text.replace("nrep=2", "nrep=3"),
            &ImportSettings::default()
        )[0]
        .complete
    );
    assert_eq!(
        launches(&text.repeat(2), &ImportSettings::default()).len(),
        2
    );
    refused(
        &text.replace("  1            1", "  2            1"),
        &ranks(4),
        "8: call 2 of allreduce, 1 bytes, 4 ranks comes where call 1 should be",
    );
    refused(
        &text.replace("MPI_A", "MPI_,A"),
        &ranks(4),
        "7: \",allreduce\" is not a valid operation name",
    );
    let summary = "test count total_nrep valid_nrep mean_sec\nMPI_Allreduce 1 10 10 0.0000038767\n";
    refused(
        summary,
        &ranks(4),
        "1: this is a summary of ReproMPI; import the raw data",
    );
}

#[cfg(feature = "json")]
#[test]
fn every_run_of_hyperfine_is_a_launch() {
    let found = read(HYPERFINE, &ImportSettings::default()).unwrap();
    let shown: Vec<String> = found
        .launches
        .iter()
        .map(|found| {
            format!(
                "{}: {}",
                found.variant.as_deref().unwrap_or("-"),
                groups(&found.launch).join("; ")
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            "file=a-b-csv: wall, 0 bytes, 1 ranks: [354719390.0]",
            "file=a-b-csv: wall, 0 bytes, 1 ranks: [343944077.0]",
            "file=a-b-csv-2: wall, 0 bytes, 1 ranks: [1000000000.0]"
        ]
    );
    let second = &found.launches[1].launch;
    assert_eq!(second.factors.get("parameter file"), Some("a/b.csv"));
    assert_eq!(
        (second.facts.get("run"), second.facts.get("exit code")),
        (Some("2"), Some("1"))
    );
    assert_eq!(second.facts.get("largest memory"), Some("138899456 bytes"));
    for (old, new, why) in [
        ("[1]", "[]", "results[1]: the times of its runs are missing"),
        ("[1]", "[-1]", "results[1]: \"-1\" is negative"),
        (
            "[0, 1]",
            "[0]",
            "results[0]: there are not as many exit_codes as times",
        ),
        ("[1]", "[\"1\"]", "no JSON export of hyperfine"),
        ("results", "result", "no JSON export of hyperfine"),
    ] {
        refused(
            &HYPERFINE.replace(old, new),
            &ImportSettings::default(),
            why,
        );
    }
    refused(
        "{\"results\": []}",
        &ImportSettings::default(),
        "it has no results",
    );
    refused(
        &HYPERFINE[..100],
        &ImportSettings::default(),
        "no JSON export of hyperfine",
    );
}

#[test]
fn a_line_without_end_is_not_read_to_its_end() {
    use std::io::Read as _;
    let endless = OSU.as_bytes().chain(std::io::repeat(b'8'));
    assert!(matches!(import(endless, &ranks(2)), Err(Flaw::Line(6, _))));
}

proptest! {
    /// Times of two decimals, as suites print them, are recorded as these and no others.
    #[test]
    fn a_printed_time_is_recorded_exactly(hundredths in 0_u64..1_000_000_000_000, size in any::<u64>()) {
        let text = format!("# OSU MPI Barrier Latency Test v7.1\n# Size  Avg Latency(us)\n{size} {}.{:02}\n", hundredths / 100, hundredths % 100);
        let found = launches(&text, &ranks(3));
        prop_assert_eq!(&found[0].groups[0].nanos, &[hundredths as f64 * 10.0]);
        prop_assert_eq!(found[0].groups[0].key.bytes, size);
    }

    /// Damaged outputs give an error or launches that are fit to be written: none panics.
    #[test]
    fn damaged_outputs_do_no_harm(which in 0..4_usize, changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), length in any::<prop::sample::Index>()) {
        let mut bytes = [OSU, IMB, PROCESSES, HYPERFINE][which].as_bytes().to_vec();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        bytes.truncate(length.index(bytes.len()) + 1);
        if let Ok(found) = import(bytes.as_slice(), &ranks(2)) {
            prop_assert!(!found.launches.is_empty());
            for found in found.launches {
                prop_assert!(!found.launch.groups.is_empty());
                let nanos = found.launch.groups.iter().flat_map(|group| &group.nanos);
                prop_assert!(nanos.copied().all(|nanos| nanos.is_finite() && nanos >= 0.0));
            }
        }
    }
}
