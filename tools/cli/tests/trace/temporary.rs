//! Corrections with events in a temporary file, compared with those in memory.

use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use super::*;

#[test]
fn a_correction_in_a_file_equals_one_in_memory() {
    let folder = TraceFolder::new("in-file");
    folder.says(
        "generate -o plain.dbt --nodes 3 --processes 2 --threads 2 --fork-every 9 --events 6000",
    );
    folder.says("generate -o curved.dbt --nodes 6 --events 6000 --sessions 5 --traffic stencil");
    folder.says("generate -o alone.dbt --sessions 0 --events 3000");
    folder.says(
        "generate -o requests.dbt --asynchronous --processes 2 --threads 3 --fork-every 2 --collective-every 3 --traffic ring --events 6000",
    );
    // Without a few lines in the middle, some events do not match.
    let whole = fs::read_to_string(folder.path("plain.dbt")).expect("it is there");
    let whole = handwritten(&whole);
    let lines: Vec<&str> = whole
        .lines()
        .filter(|line| !line.starts_with("end "))
        .collect();
    let (head, tail) = lines.split_at(lines.len() / 2);
    let kept = [head, &tail[5..]].concat();
    let events = kept
        .iter()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_digit()))
        .count();
    fs::write(
        folder.path("torn.dbt"),
        kept.join("\r\n") + &format!("\nend {events}\n"),
    )
    .expect("it can be written");
    // Long arrays only are in the file.
    folder.says("generate -o long.dbt --nodes 3 --events 105000 --traffic stencil");
    for arguments in [
        "plain.dbt",
        "plain.dbt --latencies 200ns,500ns,2us --threshold 1us --max-passes 3",
        "plain.dbt --no-backward --skip-alltoallv",
        "curved.dbt",
        "curved.dbt --pre-synchronization least-squares --clock-of node --gradient 0.1 --control 0.9",
        "alone.dbt --latencies 1us",
        "requests.dbt --clock-of location",
        "requests.dbt --pre-synchronization hull --latencies 200ns,500ns,2us",
        "torn.dbt",
        "long.dbt --threshold 1us",
        "long.dbt --clock-of node --truth long.dbt",
        "long.dbt --only-pre-synchronize",
    ] {
        let printed = PLACES.map(|(place, output)| {
            let said = folder.says(&format!("correct {arguments} -o {output} --json {place}"));
            let mut said = json(&said);
            assert_eq!(said["in_file"].take(), !place.is_empty());
            said
        });
        assert_eq!(printed[0], printed[1], "{arguments}");
        let [memory, file] = both(&folder);
        assert!(memory == file, "{arguments}");
    }
    let [memory, file] =
        PLACES.map(|(place, _)| folder.says(&format!("correct long.dbt -o out.dbt {place}")));
    assert_eq!(
        file,
        memory + "The events were in a temporary file instead of in memory\n"
    );
    let checked = PLACES
        .map(|(place, _)| folder.says(&format!("check out.dbt --against long.dbt --json {place}")));
    assert_eq!(checked[0], checked[1]);
    let expected = [
        "alone.dbt",
        "curved.dbt",
        "file",
        "long.dbt",
        "memory",
        "out.dbt",
        "plain.dbt",
        "requests.dbt",
        "torn.dbt",
    ];
    assert_eq!(folder.names(), expected);
}

/// Options for the places of events, and names of outputs.
const PLACES: [(&str, &str); 2] = [("", "memory"), ("--temporary .", "file")];

/// Returns the outputs of corrections with events in both places.
fn both(folder: &TraceFolder) -> [Vec<u8>; 2] {
    PLACES.map(|(_, name)| fs::read(folder.path(name)).expect("it is there"))
}

const HEAD: &str =
    "# downbeat trace 1 without checksum\nlocation 0 0 0 a\nlocation 1 1 1 b\ncommunicator 0 0 1\n";

#[test]
fn events_may_be_before_those_they_wait_for_in_the_file() {
    let folder = TraceFolder::new("disorder");
    let write = |name: &str, text: &str| {
        fs::write(folder.path(name), format!("{HEAD}{text}")).expect("it can be");
    };
    write("message.dbt", "1 5 receive 0 0 0\n0 9 send 1 0 0\nend 2\n");
    let barrier = "collective-end 0 barrier 0 none";
    write(
        "barrier.dbt",
        &format!("0 1 collective 0\n0 9 {barrier}\n1 20 collective 0\n1 25 {barrier}\nend 4\n"),
    );
    for name in ["message", "barrier"] {
        for (place, output) in PLACES {
            folder.says(&format!("correct {name}.dbt -o {output} {place}"));
        }
        let [memory, file] = both(&folder);
        assert!(memory == file, "{name}");
    }
    write(
        "cycle.dbt",
        "0 1 receive 1 0 0\n0 2 send 1 0 0\n1 1 receive 0 0 0\n1 2 send 0 0 0\nend 4\n",
    );
    let lines =
        PLACES.map(|(place, _)| folder.fails(2, &format!("correct cycle.dbt -o out {place}")));
    assert_eq!(lines[0], lines[1]);
}

#[test]
fn bad_input_is_refused_as_in_memory() {
    let folder = TraceFolder::new("in-file-bad");
    folder.says("generate -o a.dbt --events 100");
    let good = fs::read_to_string(folder.path("a.dbt")).expect("it is there");
    let write =
        |name: &str, text: &str| fs::write(folder.path(name), text).expect("it can be written");
    write("cut.dbt", &good[..good.len() / 2]);
    write(
        "back.dbt",
        &format!("{HEAD}0 5 note a\n0 4 note b\nend 2\n"),
    );
    write(
        "root.dbt",
        &format!("{HEAD}0 0 collective 0\n0 0 collective-end 0 gather 2 both\nend 2\n"),
    );
    write(
        "jump.dbt",
        &format!("{HEAD}sample 1 0 0 0\nsample 1 1 100 50\nsample 1 1 300 350\nend 0\n"),
    );
    let far = i64::MAX / 2 - 5;
    write(
        "far.dbt",
        &format!("{HEAD}sample 1 0 0 1000\n1 {far} note x\nend 1\n"),
    );
    for name in ["cut", "back", "root", "jump", "far", "nothing"] {
        let lines = PLACES
            .map(|(place, _)| folder.fails(2, &format!("correct {name}.dbt -o out.dbt {place}")));
        assert_eq!(lines[0], lines[1]);
    }
    let (why, _) = folder.fails(2, "correct a.dbt -o out.dbt --temporary missing");
    assert!(why.starts_with("--temporary: missing: "), "{why}");
    assert!(!folder.path("out.dbt").exists());
}

/// The limit holds for private memory, not for mappings of shared files.
#[cfg(target_os = "linux")]
#[test]
fn events_in_a_file_take_no_memory() {
    let folder = TraceFolder::new("in-file-only");
    folder.says("generate -o a.dbt --nodes 2 --events 300000");
    let correct = |place: &str| {
        let arguments = format!("correct a.dbt -o out.dbt --threads 1 {place}");
        folder.limited("ulimit -d 8000", &arguments)
    };
    assert_eq!(correct("--temporary ."), (Some(0), String::new()));
    let (code, said) = correct("");
    assert_eq!((code, said.lines().count()), (Some(1), 1), "{said}");
    let lacking = "there is not enough memory for the events\n";
    assert!(
        said.starts_with("downbeat: a.dbt: ") && said.ends_with(lacking),
        "{said}"
    );
}

/// A limited file size is like a full disk.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_no_temporary_files() {
    let folder = TraceFolder::new("in-file-full");
    folder.says("generate -o a.dbt --nodes 2 --events 200000");
    for blocks in [8, 2_000, 9_000] {
        let limit = format!("ulimit -f {blocks}; trap '' XFSZ");
        let (code, said) = folder.limited(&limit, "correct a.dbt -o out --temporary .");
        assert_eq!(
            (code, said.lines().count()),
            (Some(1), 1),
            "{blocks}: {said}"
        );
        assert!(
            said.starts_with("downbeat: the temporary file for the events: .: File too large"),
            "{blocks}: {said}"
        );
        assert_eq!(folder.names(), ["a.dbt"]);
    }
}

#[cfg(unix)]
#[test]
fn a_signal_leaves_no_temporary_files() {
    let folder = TraceFolder::new("in-file-ended");
    folder.says("generate -o a.dbt --events 150000");
    for (signal, millis) in [("-INT", 50), ("-TERM", 300), ("-INT", 900)] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_downbeat"));
        program
            .args(["trace", "correct", "a.dbt", "-o", "out", "--temporary", "."])
            .stdout(Stdio::null());
        let mut running = program
            .current_dir(&folder.0)
            .spawn()
            .expect("the program starts");
        sleep(Duration::from_millis(millis));
        let sent = Command::new("kill")
            .args([signal, &running.id().to_string()])
            .status();
        sent.expect("kill is installed");
        // It may have ended before the signal.
        running.wait().expect("it ends");
        let _ = fs::remove_file(folder.path("out"));
        assert_eq!(folder.names(), ["a.dbt"], "{signal} after {millis} ms");
    }
}

/// Traces without some events, and with threads that begin or end in teams of others: in
/// memory and in a file, both corrections give the same, or neither is possible.
#[test]
fn incomplete_traces_are_corrected_alike() {
    let folder = TraceFolder::new("incomplete");
    folder.says(
        "generate -o whole.dbt --nodes 2 --processes 2 --threads 2 --fork-every 3 --events 600",
    );
    let whole = fs::read_to_string(folder.path("whole.dbt")).expect("it is there");
    let whole = handwritten(&whole);
    let mut rng = fastrand::Rng::with_seed(5);
    let mut corrected = 0;
    for case in 0..60 {
        let strange = case % 4 == 0;
        let is_of_team = |line: &str| {
            line.contains(" thread-") || line.contains("fork") || line.contains("join")
        };
        let (mut torn, mut events) = (String::new(), 0);
        for line in whole.lines() {
            let is_event = line.starts_with(|first: char| first.is_ascii_digit());
            // An exit without its enter is an error.
            let is_kept = !is_event || line.contains(" collective ") || rng.u8(..) > 1;
            if line.starts_with("end ") || !is_kept {
                continue;
            }
            events += u32::from(is_event);
            match line.rsplit_once(' ') {
                Some((start, _)) if strange && is_event && is_of_team(line) && rng.u8(..) < 8 => {
                    torn += &format!("{start} {}\n", rng.u32(2..6));
                }
                _ => torn += &format!("{line}\n"),
            }
        }
        torn += &format!("end {events}\n");
        fs::write(folder.path("torn.dbt"), &torn).expect("it can be written");
        let [memory, file] = PLACES
            .map(|(place, output)| folder.call(&format!("correct torn.dbt -o {output} {place}")));
        assert_eq!(
            memory.status.code(),
            file.status.code(),
            "case {case}: {} {}",
            text(&memory.stderr),
            text(&file.stderr)
        );
        if !memory.status.success() {
            assert_eq!(memory.status.code(), Some(2), "{}", text(&memory.stderr));
            continue;
        }
        corrected += 1;
        let [memory, file] = both(&folder);
        assert!(memory == file, "case {case}");
    }
    assert!(corrected > 10, "{corrected} of 60 traces were corrected");
}
