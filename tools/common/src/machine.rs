//! The machine that a program runs on: its properties on which results depend, its time, and random numbers.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::thread;
use std::time::SystemTime;

use downbeat_records::Factors;
use downbeat_timers::core_cycle;

use crate::digest;
use crate::output::count;

/// Number of threads that can run at the same time.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Returns a different number at each call.
pub fn random_seed() -> u64 {
    // The standard library draws the keys of its hashes at random.
    RandomState::new().hash_one(std::process::id())
}

/// Turns writes beyond the file size limit of this process into errors like any other; otherwise a
/// signal ends it, and leaves unfinished files.
pub fn survive_file_size_limit() {
    #[cfg(unix)]
    {
        use std::sync::{Arc, atomic::AtomicBool};
        // Without the handler, the signal ends the program as before.
        let _ = signal_hook::flag::register(
            signal_hook::consts::SIGXFSZ,
            Arc::new(AtomicBool::new(false)),
        );
    }
}

/// Date and time in UTC: `2026-11-21T20:34:49Z`.
pub fn now() -> String {
    // A clock that was never set may show an earlier time, which has no such form.
    humantime::format_rfc3339_seconds(SystemTime::now().max(SystemTime::UNIX_EPOCH)).to_string()
}

/// Parses a time as [`now`] writes it.
pub fn parse_time(text: &str) -> Option<SystemTime> {
    humantime::parse_rfc3339(text).ok()
}

/// Adds the build of the program, the machine that it runs on, and its [governors] to the
/// factors.
pub fn factors(factors: Factors, governors: &str) -> Factors {
    let build = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    factors
        .with("build", &build)
        .with("compiler", &env!("DOWNBEAT_COMPILER"))
        .with("program digest", &digest::of_this_program())
        .with("kernel", &line_of(KERNEL))
        .with("processor", &of_first_cpu("model name"))
        .with("governor", &governors)
        .with("turbo", &turbo())
}

/// Returns the host name.
pub fn host_name() -> String {
    line_of("/proc/sys/kernel/hostname")
}

/// Returns the content of a system file of one line, or `unknown`.
fn line_of(path: &str) -> String {
    fs::read_to_string(path).map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

/// Describes what makes a node differ from another, its [governors] among it, in one
/// line; what the system does not tell is unknown.
pub fn kind_of_node(governors: &str) -> String {
    format!(
        "{}; kernel {}; governor {}; microcode {}; clock source {}",
        of_first_cpu("model name"),
        line_of(KERNEL),
        governors,
        of_first_cpu("microcode"),
        line_of("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    )
}

/// Measures the frequency at which the core of this thread runs at the moment: `2.99GHz`.
pub fn core_frequency() -> String {
    core_cycle().map_or_else(
        || "unknown".to_owned(),
        |nanos| format!("{:.2}GHz", 1.0 / nanos),
    )
}

const KERNEL: &str = "/proc/sys/kernel/osrelease";

/// Returns the governor of all cores with its limits: `performance at 0.8 to 2.3 GHz`, or
/// where cores differ `performance at 0.8 to 2.3 GHz on 4 cores, powersave on 8 cores`.
pub fn governors() -> String {
    governors_in(Path::new("/sys/devices/system/cpu"))
}

fn governors_in(cpus: &Path) -> String {
    let mut cores_of = BTreeMap::<String, usize>::new();
    for cpu in fs::read_dir(cpus).into_iter().flatten().flatten() {
        if let Some(governor) = read_governor(&cpu.path().join("cpufreq")) {
            *cores_of.entry(governor).or_default() += 1;
        }
    }
    let all: Vec<_> = cores_of.into_iter().collect();
    match &all[..] {
        [] => "unknown".to_owned(),
        [(governor, _)] => governor.clone(),
        several => {
            let shares = several.iter();
            let shares =
                shares.map(|(governor, of)| format!("{governor} on {}", count(*of, "core")));
            shares.collect::<Vec<_>>().join(", ")
        }
    }
}

/// Returns the governor that a folder of the system describes, with the frequency that a
/// user has set or else the limits of the frequency; `None` for folders that are not of a
/// core.
fn read_governor(cpufreq: &Path) -> Option<String> {
    let read = |file| fs::read_to_string(cpufreq.join(file)).ok();
    let read_gigahertz = |file| {
        let kilohertz: u32 = read(file)?.trim().parse().ok()?;
        Some(f64::from(kilohertz) / 1e6)
    };
    let governor = read("scaling_governor")?.trim().to_owned();
    // A number for the governor `userspace` only.
    if let Some(frequency) = read_gigahertz("scaling_setspeed") {
        return Some(format!("{governor} at {frequency} GHz"));
    }
    let limits = ["scaling_min_freq", "scaling_max_freq"].map(read_gigahertz);
    Some(match limits {
        [Some(min), Some(max)] => format!("{governor} at {min} to {max} GHz"),
        _ => governor,
    })
}

/// Returns the first value of this name in the list of processors.
fn of_first_cpu(name: &str) -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.split_once(':'));
    value.map_or_else(
        || "unknown".to_owned(),
        |(_, value)| value.trim().to_owned(),
    )
}

/// Returns the state of turbo frequencies, which two kernel drivers report in different files.
fn turbo() -> &'static str {
    let equals = |path, yes| fs::read_to_string(path).ok().map(|text| text.trim() == yes);
    let intel = || equals("/sys/devices/system/cpu/intel_pstate/no_turbo", "0");
    match equals("/sys/devices/system/cpu/cpufreq/boost", "1").or_else(intel) {
        Some(true) => "on",
        Some(false) => "off",
        None => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes files of one core, which end in a newline as those of the system.
    fn write_core(cpus: &Path, core: u32, files: &[[&str; 2]]) {
        let folder = cpus.join(format!("cpu{core}/cpufreq"));
        fs::create_dir_all(&folder).unwrap();
        for [file, value] in files {
            fs::write(folder.join(file), format!("{value}\n")).unwrap();
        }
    }

    #[test]
    fn governors_are_those_of_all_cores() {
        let cpus = std::env::temp_dir().join(format!("downbeat-governors-{}", std::process::id()));
        assert_eq!(governors_in(&cpus), "unknown");
        for core in 0..3 {
            write_core(&cpus, core, &[["scaling_governor", "performance"]]);
        }
        assert_eq!(governors_in(&cpus), "performance");

        // Folders and files that are not of a core are skipped.
        for (folder, file) in [("cpufreq", "boost"), ("cpuidle", "current_governor")] {
            fs::create_dir_all(cpus.join(folder)).unwrap();
            fs::write(cpus.join(folder).join(file), "1\n").unwrap();
        }
        fs::write(cpus.join("online"), "0-2\n").unwrap();
        assert_eq!(governors_in(&cpus), "performance");

        write_core(&cpus, 2, &[["scaling_governor", "powersave"]]);
        assert_eq!(
            governors_in(&cpus),
            "performance on 2 cores, powersave on 1 core"
        );
        fs::remove_dir_all(cpus).unwrap();
    }

    #[test]
    fn governors_have_frequencies() {
        let cpus =
            std::env::temp_dir().join(format!("downbeat-frequencies-{}", std::process::id()));
        for core in 0..2 {
            let files = [
                ["scaling_governor", "performance"],
                ["scaling_min_freq", "800000"],
                ["scaling_max_freq", "2300000"],
                ["scaling_setspeed", "<unsupported>"],
            ];
            write_core(&cpus, core, &files);
        }
        assert_eq!(governors_in(&cpus), "performance at 0.8 to 2.3 GHz");

        write_core(&cpus, 0, &[["scaling_max_freq", "2301000"]]);
        assert_eq!(
            governors_in(&cpus),
            "performance at 0.8 to 2.3 GHz on 1 core, performance at 0.8 to 2.301 GHz on 1 core"
        );

        for core in 0..2 {
            let files = [
                ["scaling_governor", "userspace"],
                ["scaling_setspeed", "800000"],
            ];
            write_core(&cpus, core, &files);
        }
        assert_eq!(governors_in(&cpus), "userspace at 0.8 GHz");
        fs::remove_dir_all(cpus).unwrap();
    }
}
