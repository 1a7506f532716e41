//! Bursts that keep each core from all other processes, as other guests of a host do.

use std::env;
use std::hint;
use std::ops::RangeInclusive;
use std::os::unix::process::parent_id;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use downbeat_launch::command::command;

/// Length of a burst, in milliseconds.
const BURST: RangeInclusive<u64> = 5..=120;
/// Pause between bursts, in milliseconds.
const PAUSE: RangeInclusive<u64> = 200..=2_200;

/// A process of real-time priority for each core; all end with this value.
pub(crate) struct Disturbance(Vec<Child>);

impl Disturbance {
    pub(crate) fn begin() -> Result<Self, String> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let mut disturbance = Self(vec![]);
        for core in 0..cores {
            let this = env::current_exe().map_err(|why| why.to_string())?;
            let mut bursts = command("chrt --fifo 50 taskset --cpu-list");
            bursts.arg(core.to_string()).arg(this);
            bursts.args(["bursts", &core.to_string()]);
            let started = bursts.stdin(Stdio::null()).spawn();
            disturbance
                .0
                .push(started.map_err(|why| format!("chrt: {why}"))?);
        }
        // Without the right to this priority, chrt ends at once.
        thread::sleep(Duration::from_millis(500));
        for process in &mut disturbance.0 {
            if let Ok(Some(status)) = process.try_wait() {
                let why = "real-time priority needs root";
                return Err(format!("`--disturbed`: chrt or taskset: {status}; {why}"));
            }
        }
        Ok(disturbance)
    }
}

impl Drop for Disturbance {
    fn drop(&mut self) {
        for process in &mut self.0 {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Takes the core in bursts until the parent is gone.
pub(crate) fn take_core_in_bursts(core: u64) {
    let mut random = fastrand::Rng::with_seed(core);
    let parent = parent_id();
    while parent_id() == parent {
        thread::sleep(Duration::from_millis(random.u64(PAUSE)));
        let length = Duration::from_millis(random.u64(BURST));
        let start = Instant::now();
        while start.elapsed() < length {
            hint::spin_loop();
        }
    }
}
