//! A process that forks while its threads use regions.
#![cfg(unix)]
#![expect(unsafe_code, reason = "code runs between fork and exec")]

use std::os::unix::process::CommandExt as _;
use std::process::{self, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use downbeat_regions::{Region, profile, region};

/// The child may fork while another thread holds the registry, and must not wait for it.
#[test]
fn a_child_uses_regions_while_threads_of_its_parent_do() {
    static DONE: AtomicBool = AtomicBool::new(false);
    thread::spawn(|| {
        for _ in 0..600 {
            thread::sleep(Duration::from_millis(100));
            if DONE.load(Ordering::Relaxed) {
                return;
            }
        }
        // The parent waits for its child inside the standard library.
        eprintln!("a child waits for a thread that it does not have");
        process::abort();
    });
    let busy = thread::spawn(|| {
        while !DONE.load(Ordering::Relaxed) {
            drop(profile());
        }
    });
    for _ in 0..200 {
        let mut child = Command::new("true");
        let use_regions = || {
            drop(region!("in the child"));
            drop(Region::named("by name").enter());
            Ok(())
        };
        // SAFETY: the allocator and the registry of regions are usable after a fork.
        unsafe { child.pre_exec(use_regions) };
        assert!(child.status().unwrap().success());
    }
    DONE.store(true, Ordering::Relaxed);
    busy.join().unwrap();
    // What happened in the children stays there.
    assert!(profile().regions().iter().all(|region| region.events == 0));
}
