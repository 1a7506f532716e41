//! An event of a timer in C and in Fortran that gets its timer by the name each time, as
//! a ratio to one of a kept timer in the same program: `cargo bench -p downbeat-capi
//! --bench timers [-- --gate]`.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a benchmark prints its table"
)]

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Largest ratio.
const MOST: f64 = 1.3;

fn main() -> ExitCode {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let module = package.join("fortran/downbeat.f90");
    let programs = [
        ("C", "gcc", vec![package.join("benches/timers/timers.c")]),
        (
            "Fortran",
            "gfortran",
            vec![module, package.join("benches/timers/timers.f90")],
        ),
    ];
    println!(
        "| an event in | with a kept timer, ns | that gets its timer, ns | ratio | must not exceed |\n|---|---|---|---|---|"
    );
    let mut is_missed = false;
    for (language, compiler, sources) in programs {
        let [kept, got, ratio] = measure(compiler, &sources, package);
        println!("| {language} | {kept:.1} | {got:.1} | {ratio:.2} | {MOST} |");
        is_missed |= ratio > MOST;
    }
    u8::from(is_missed && env::args().any(|argument| argument == "--gate")).into()
}

/// Compiles and runs a program; returns the medians of its times and of their ratio.
fn measure(compiler: &str, sources: &[impl AsRef<Path>], package: &Path) -> [f64; 3] {
    let library = env::current_exe().expect("this program has a path");
    let library = library.with_file_name("libdownbeat_c.so");
    let folder = env::temp_dir().join(format!("downbeat-timers-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("the folder for temporary files can be written to");
    // Its name for the dynamic linker.
    symlink(&library, folder.join("libdownbeat.so.0")).expect("the folder is empty");
    let program = folder.join("program");
    let mut compile = Command::new(compiler);
    compile.arg("-O2").arg("-I").arg(package.join("include"));
    compile.args(sources.iter().map(AsRef::as_ref));
    compile.arg("-o").arg(&program).arg(&library);
    compile.current_dir(&folder);
    let compiled = compile.status();
    assert!(
        compiled.is_ok_and(|status| status.success()),
        "{compile:?} failed"
    );
    let mut run = Command::new(&program);
    let output = run.env("LD_LIBRARY_PATH", &folder).output();
    let output = output.expect("the program runs");
    assert!(output.status.success(), "{output:?}");
    fs::remove_dir_all(&folder).expect("a folder of our own");
    let lines = String::from_utf8(output.stdout).expect("numbers");
    let times = lines.lines().map(|line| {
        let mut numbers = line.split_whitespace();
        [(); 2].map(|()| {
            let number = numbers.next().and_then(|number| number.parse().ok());
            number.expect("two numbers in each line")
        })
    });
    let times: Vec<[f64; 2]> = times.collect();
    let median = |value: fn(&[f64; 2]) -> f64| {
        let mut values: Vec<f64> = times.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    [
        median(|times| times[0]),
        median(|times| times[1]),
        median(|times| times[1] / times[0]),
    ]
}
