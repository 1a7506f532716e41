//! A process that forks while its threads use regions.
#![cfg(unix)]
#![expect(unsafe_code, reason = "code runs between fork and exec")]

use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use downbeat_regions::{Region, profile, region};

/// The parent may fork while another thread holds the registry; the child must not wait for that thread.
#[test]
fn a_child_uses_regions_while_threads_of_its_parent_do() {
    static DONE: AtomicBool = AtomicBool::new(false);
    let busy = thread::spawn(|| {
        while !DONE.load(Ordering::Relaxed) {
            drop(profile());
        }
    });
    for _ in 0..200 {
        let mut child = Command::new("true");
        let use_regions = || {
            // SAFETY: it only sets a timer, whose signal ends a child that waits for ever.
            unsafe { libc::alarm(60) };
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
