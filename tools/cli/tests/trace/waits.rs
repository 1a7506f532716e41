//! Command-line tests of `downbeat trace waits`.

use std::fs;

use serde_json::Value;

use super::TraceFolder;

/// Two ranks: a receive waits 60 ns for its send, and a barrier 15 ns for the last member.
const TRACE: &str = "# downbeat trace 1 without checksum\nlocation 0 0 0 first\nlocation 1 1 1 second\ncommunicator 0 0 1\n\
                     region 0 MPI_Send\nregion 1 MPI_Recv\nregion 2 MPI_Barrier\n\
                     1 100 enter 1\n0 160 enter 0\n0 165 send 1 0 7\n0 170 leave 0\n1 180 receive 0 0 7\n\
                     1 190 leave 1\n0 185 enter 2\n0 185 collective 0\n1 200 enter 2\n1 200 collective 0\n\
                     0 210 collective-end 0 barrier 0 none\n1 210 collective-end 0 barrier 0 none\n\
                     0 260 leave 2\n1 300 leave 2\nend 14\n";

#[test]
fn waits_are_listed_by_location_and_region() {
    let folder = TraceFolder::new("waits");
    fs::write(folder.0.join("a.dbt"), TRACE).expect("a test may write here");
    let expected = "a.dbt: 2 locations, 14 events\n\
                    In MPI: 275 ns, 91.7 % of the time of all locations\n\n\
                    call         calls    time   share\n\
                    MPI_Barrier      2  175 ns  58.3 %\n\
                    MPI_Recv         1   90 ns  30.0 %\n\
                    MPI_Send         1   10 ns   3.3 %\n\n\
                    location  calls    time   share\n\
                    second        2  190 ns  95.0 %\n\
                    first         2   85 ns  85.0 %\n\n\
                    Lost by waiting: 75 ns in 2 calls, 25.0 % of the time of all locations\n\n\
                    pattern          calls   lost   share  longest\n\
                    late sender          1  60 ns  20.0 %    60 ns\n\
                    wait at barrier      1  15 ns   5.0 %    15 ns\n\n\
                    By location:\n\
                    location  calls   lost   share  mostly\n\
                    second        1  60 ns  30.0 %  late sender\n\
                    first         1  15 ns  15.0 %  wait at barrier\n\n\
                    By region:\n\
                    region       calls   lost  pattern\n\
                    MPI_Recv         1  60 ns  late sender\n\
                    MPI_Barrier      1  15 ns  wait at barrier\n";
    assert_eq!(folder.says("waits a.dbt"), expected);
    let document: Value =
        serde_json::from_str(&folder.says("waits a.dbt --json")).expect("it is JSON");
    assert_eq!(document["schema"], "downbeat.trace_waits");
    assert_eq!(document["by_location"][0]["patterns"][0]["lost_nanos"], 60);
    assert_eq!(document["by_region"][1]["region"], "MPI_Barrier");
    assert_eq!(document["patterns"].as_array().map(Vec::len), Some(7));

    // The same in an archive, named by its folder.
    folder.says("convert a.dbt a");
    let of_archive = folder.says("waits a");
    assert_eq!(of_archive, expected.replace("a.dbt:", "a/traces.otf2:"));
}

#[test]
fn times_that_must_be_corrected_first_are_told() {
    let folder = TraceFolder::new("waits-reversed");
    let reversed = TRACE
        .replace("0 165 send", "0 165 send 1 0 8\n0 168 send")
        .replace("1 180 receive", "1 164 receive 0 0 8\n1 180 receive")
        .replace("end 14", "end 16");
    fs::write(folder.0.join("a.dbt"), reversed).expect("a test may write here");
    let said = folder.says("waits a.dbt");
    let warning = "a.dbt: 2 locations, 16 events\n\
                   1 of 2 messages are received before they were sent:\n\
                   the times must be corrected first (downbeat trace correct)\n\
                   In MPI: ";
    assert!(said.starts_with(warning), "{said}");
}

#[test]
fn lines_fit_a_terminal() {
    let folder = TraceFolder::new("waits-lines");
    let long = TRACE
        .replace(
            "location 0 0 0 first",
            &format!("location 0 0 0 {}", "x".repeat(200)),
        )
        .replace("MPI_Recv", &format!("MPI_{}", "y".repeat(200)));
    fs::write(folder.0.join("a.dbt"), long).expect("a test may write here");
    let said = folder.says("waits a.dbt");
    assert!(
        said.lines().all(|line| line.chars().count() <= 80),
        "{said}"
    );
    let first = folder.says("waits a.dbt --top 1");
    assert!(first.contains("By location, the first 1 of 2:"), "{first}");
    folder.says("generate -o b.dbt --nodes 3");
    let said = folder.says("waits b.dbt");
    assert!(
        said.lines().all(|line| line.chars().count() <= 80),
        "{said}"
    );
    assert!(said.contains("wait at N x N"), "{said}");
}

#[test]
fn traces_without_waits_are_no_failures() {
    let folder = TraceFolder::new("waits-none");
    fs::write(
        folder.0.join("a.dbt"),
        "# downbeat trace 1 without checksum\nend 0\n",
    )
    .expect("a test may write here");
    let said = folder.says("waits a.dbt");
    assert_eq!(
        said,
        "a.dbt: 0 locations, 0 events\nNo time was lost by waiting, as far as calls of MPI and collective \
         operations are in the trace.\n"
    );
    let alone = "# downbeat trace 1 without checksum\nlocation 0 0 0 a\nlocation 1 1 1 b\ncommunicator 0 0 1\n\
                 region 0 MPI_Send\n0 1 enter 0\n0 2 send 1 0 7\n0 3 leave 0\n0 4 collective 0\nend 4\n";
    fs::write(folder.0.join("b.dbt"), alone).expect("a test may write here");
    let said = folder.says("waits b.dbt");
    let line = "Left out: 1 message without a receive, 0 messages without a send, \
                1 collective operation without some members\n";
    assert!(said.contains(line), "{said}");
    folder.refuses("waits none.dbt", "none.dbt: No such file");
    fs::write(folder.0.join("c.dbt"), &alone[..alone.len() - 20]).expect("a test may write here");
    folder.refuses("waits c.dbt", "c.dbt: line ");
}

/// The recordings of two ranks that a signal ended: one in a collective operation and
/// with a posted receive, a non-blocking operation and a send under way.
#[test]
fn a_recording_that_ended_early_is_examined_by_all_commands() {
    let folder = TraceFolder::new("waits-ended");
    let text = "# downbeat trace 1 without checksum\nlocation 0 0 0 a\nlocation 1 1 1 b\ncommunicator 0 0 1\n\
                region 0 MPI_Irecv\nregion 1 MPI_Recv\nregion 2 MPI_Send\nregion 3 MPI_Barrier\n\
                1 10 enter 0\n1 11 receive-post 5\n1 12 leave 0\n1 20 collective-start 0 6\n\
                1 100 enter 1\n0 160 enter 2\n0 165 send 1 0 7\n0 170 leave 2\n1 180 receive 0 0 7\n1 190 leave 1\n\
                0 200 enter 2\n0 201 send 1 0 8\n0 210 leave 2\n0 220 enter 3\n0 220 collective 0\nend 15\n";
    fs::write(folder.0.join("a.dbt"), text).expect("a test may write here");
    // The operation that one rank has started and the other one entered is one.
    let line = "Left out: 1 message without a receive, 0 messages without a send, \
                1 collective operation without some members\n";
    for arguments in [
        "waits a.dbt",
        "show a.dbt -o page.html",
        "check a.dbt",
        "correct a.dbt -o b.dbt",
    ] {
        let said = folder.says(arguments);
        assert!(said.contains(line), "{arguments}: {said}");
    }
    let said = folder.says("waits a.dbt");
    assert!(said.contains("\nlate sender      1  60 ns"), "{said}");
}
