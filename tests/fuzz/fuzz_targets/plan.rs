//! Plans of `downbeat run`.
#![no_main]
#![expect(dead_code, reason = "the program uses the rest")]

#[path = "../../../tools/cli/src/run/alike.rs"]
mod alike;
#[path = "../../../tools/cli/src/run/command.rs"]
mod command;
#[path = "../../../tools/cli/src/run/parameters.rs"]
mod parameters;
#[path = "../../../tools/cli/src/run/plan.rs"]
mod plan;
#[path = "../../../tools/cli/src/run/programs.rs"]
mod programs;
#[path = "../../../tools/cli/src/run/timing.rs"]
mod timing;

/// Says nothing, as millions of runs would say too much.
mod log {
    pub(crate) fn say(_: &str) {}
}

use std::fs;
use std::path::PathBuf;
use std::process;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // The plan has a fixed name in its folder.
    let folder = PathBuf::from(format!("/dev/shm/downbeat-{}", process::id()));
    let written = fs::create_dir_all(&folder);
    let written = written.and_then(|()| fs::write(folder.join("plan.json"), data));
    if written.is_ok()
        && let Ok(Some(plan)) = plan::LaunchPlan::load(&folder)
    {
        let _ = (plan.launches(), plan.variants(), plan.folders(&folder));
    }
    let _ = fs::remove_dir_all(&folder);
});
