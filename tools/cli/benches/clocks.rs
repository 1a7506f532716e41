//! Duration of `downbeat clocks`: `cargo bench -p downbeat-cli`. With `-- --gate`, the exit code is 1
//! when the median of five runs exceeds the two seconds that the project promises for a machine with two cores.

#![expect(
    clippy::print_stdout,
    reason = "this is a program, and this is its output"
)]
#![expect(clippy::expect_used, reason = "a benchmark that fails has no caller")]

use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

const PROMISED: f64 = 2.0;

fn main() -> ExitCode {
    let mut seconds: Vec<f64> = (0..5)
        .map(|_| {
            let start = Instant::now();
            let mut command = Command::new(env!("CARGO_BIN_EXE_downbeat"));
            let status = command
                .arg("clocks")
                .stdout(Stdio::null())
                .status()
                .expect("the program starts");
            assert!(status.success(), "downbeat clocks failed");
            start.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    println!(
        "| command | s | must not exceed |\n|---|---|---|\n| `downbeat clocks` | {:.2} | {PROMISED} |",
        seconds[2]
    );
    u8::from(seconds[2] > PROMISED && std::env::args().any(|argument| argument == "--gate")).into()
}
