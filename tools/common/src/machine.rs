//! The machine that a program runs on, as far as results depend on it.

use std::fs;

use downbeat_records::Factors;

/// How the program was built, and what it runs on.
pub fn factors(factors: Factors) -> Factors {
    let build = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    factors
        .with("build", &build)
        .with("kernel", &line_of("/proc/sys/kernel/osrelease"))
        .with("processor", &processor())
        .with(
            "governor",
            &line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        )
        .with("turbo", &turbo())
}

/// What the machine is called.
pub fn host_name() -> String {
    line_of("/proc/sys/kernel/hostname")
}

/// What the system says in a file of one line.
fn line_of(path: &str) -> String {
    fs::read_to_string(path).map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| "unknown".to_owned(), |(_, name)| name.trim().to_owned())
}

/// Two kernel drivers tell it in two ways.
fn turbo() -> &'static str {
    let says = |path, yes| fs::read_to_string(path).ok().map(|text| text.trim() == yes);
    let intel = || says("/sys/devices/system/cpu/intel_pstate/no_turbo", "0");
    match says("/sys/devices/system/cpu/cpufreq/boost", "1").or_else(intel) {
        Some(true) => "on",
        Some(false) => "off",
        None => "unknown",
    }
}
