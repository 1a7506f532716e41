//! Time of the correction of an OTF2 archive, from the command to the copy on disk, relative to the time that OTF2's own
//! reader takes to read it: `cargo bench -p downbeat-cli --features otf2-tools --bench otf2`. With `-- --gate`, the exit code is 1
//! when the median of five turns exceeds what the project promises. Without cargo's `--bench`, a small archive takes one
//! turn. It also needs a C compiler.

#![expect(
    clippy::print_stdout,
    reason = "this is a program, and this is its output"
)]
#![expect(clippy::expect_used, reason = "a benchmark that fails has no caller")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

const PROMISED: f64 = 4.0;
const TURNS: usize = 5;
/// Rounds of 51 events on four locations, of messages, collective operations and threads: 8 million events.
const ROUNDS: u32 = 157_000;

fn main() -> ExitCode {
    let is = |argument: &str| std::env::args().any(|given| given == argument);
    let (turns, rounds) = if is("--bench") {
        (TURNS, ROUNDS)
    } else {
        (1, 20)
    };
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-otf2-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("there can be a folder");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let writer = compile(
        &sources.join("../../measure/trace/tests/otf2/archive.c"),
        &folder,
    );
    let reader = compile(&sources.join("../../measure/otf2/benches/read.c"), &folder);
    let archive = folder.join("written");
    let (anchor, to) = (archive.join("traces.otf2"), folder.join("to"));
    seconds(
        Command::new(writer)
            .arg(&archive)
            .args(["1000000000", &rounds.to_string(), "plain"]),
    );

    println!("| turn | OTF2 reads, s | corrected, s | rewritten, s |\n|---|---|---|---|");
    let mut ratios = [vec![], vec![]];
    for turn in 1..=turns {
        let reads = seconds(Command::new(&reader).arg(&anchor));
        let corrected = [&[][..], &["--rewrite"]].map(|more| {
            let mut downbeat = Command::new(env!("CARGO_BIN_EXE_downbeat"));
            downbeat
                .args(["trace", "correct"])
                .arg(&anchor)
                .arg("-o")
                .arg(&to)
                .args(["--latencies", "500ns"]);
            let corrected = seconds(downbeat.args(more));
            fs::remove_dir_all(&to).expect("it was written");
            corrected
        });
        println!(
            "| {turn} | {reads:.2} | {:.2} | {:.2} |",
            corrected[0], corrected[1]
        );
        for (ratios, corrected) in ratios.iter_mut().zip(corrected) {
            ratios.push(corrected / reads);
        }
    }
    fs::remove_dir_all(&folder).expect("it was made");
    let [corrected, rewritten] = ratios.map(|mut ratios| {
        ratios.sort_by(f64::total_cmp);
        ratios[turns / 2]
    });
    println!(
        "\n| in the time that OTF2 takes to read it | found | must not exceed |\n|---|---|---|"
    );
    println!(
        "| the whole correction | {corrected:.2} | {PROMISED} |\n| with all events rewritten | {rewritten:.2} | |"
    );
    u8::from(corrected > PROMISED && is("--gate")).into()
}

fn compile(source: &Path, folder: &Path) -> PathBuf {
    let flags = Command::new("otf2-config")
        .args(["--cflags", "--ldflags", "--libs"])
        .output();
    let flags = String::from_utf8(flags.expect("OTF2 is installed").stdout).expect("they are text");
    let program = folder.join(source.file_stem().expect("it is a file"));
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-o"])
        .arg(&program)
        .arg(source)
        .args(flags.split_whitespace());
    assert!(
        cc.status().expect("there is a C compiler").success(),
        "{} cannot be compiled",
        source.display()
    );
    program
}

/// Runs a command; returns its duration in seconds.
fn seconds(command: &mut Command) -> f64 {
    let start = Instant::now();
    let status = command
        .stdout(Stdio::null())
        .status()
        .expect("the program starts");
    assert!(status.success(), "{command:?} failed");
    start.elapsed().as_secs_f64()
}
