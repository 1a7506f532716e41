//! Tests of regions in threads. Tests run in parallel in one process: each uses its own names.

use super::{
    LONGEST_NAME, Profile, Region, RegionError, RegionProfile, RegionSettings, configure, profile,
};
use super::{profile_of_this_thread, setup};
use crate::region;

fn region_profile(name: &str) -> RegionProfile {
    profile()
        .region(name)
        .cloned()
        .unwrap_or_else(|| RegionProfile::new(name))
}

fn events_in_bins(found: &RegionProfile) -> u64 {
    found.bins.iter().map(|(_, count)| count).sum()
}

#[test]
fn two_call_sites_of_one_name_are_one_region() {
    drop(region!("tests: two sites"));
    drop(region!("tests: two sites"));
    drop(Region::named("tests: two sites").enter());
    let found = region_profile("tests: two sites");
    assert_eq!(
        (found.events, found.threads, events_in_bins(&found)),
        (3, 1, 3)
    );
}

#[test]
fn recursion_is_one_event() {
    fn descend(depth: u32) {
        let _guard = region!("tests: recursion");
        if depth > 0 {
            descend(depth - 1);
        }
    }
    descend(9);
    let found = region_profile("tests: recursion");
    assert_eq!((found.events, found.remarks.recursions), (1, 9));
}

#[test]
fn the_time_of_inner_regions_is_included() {
    {
        let _outer = region!("tests: outer");
        (0..10).for_each(|_| drop(region!("tests: inner")));
    }
    let (outer, inner) = (
        region_profile("tests: outer"),
        region_profile("tests: inner"),
    );
    assert_eq!((outer.events, inner.events), (1, 10));
    // Each total is rounded down once.
    assert!(
        outer.total + 1 >= inner.total,
        "{} {}",
        outer.total,
        inner.total
    );
}

#[test]
fn paths_and_threads_are_told_apart() {
    fn halo() {
        let _halo = region!("tests: halo");
    }
    fn step(depth: u32) {
        let _step = region!("tests: step");
        halo();
        if depth > 0 {
            step(depth - 1);
        }
    }
    step(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            step(1);
            halo();
        });
    });
    let paths = |name| {
        let paths = region_profile(name).paths.into_iter();
        paths
            .map(|path| (path.callers, path.events))
            .collect::<Vec<_>>()
    };
    let inside = vec!["tests: step".to_owned()];
    assert_eq!(paths("tests: halo"), [(vec![], 1), (inside, 3)]);
    // The inner step of the recursion is part of the outer one.
    assert_eq!(paths("tests: step"), [(vec![], 2)]);
    let (step, halo) = (region_profile("tests: step"), region_profile("tests: halo"));
    let events: Vec<_> = halo.by_thread.iter().map(|thread| thread.events).collect();
    assert!(events == [1, 3] || events == [3, 1], "{events:?}");
    // Each time is rounded down once.
    let of_threads: u64 = halo.by_thread.iter().map(|thread| thread.total).sum();
    assert!(of_threads <= halo.total && of_threads + 2 > halo.total);
    assert!(step.own() <= Some(step.total) && halo.own() <= Some(halo.total));
}

#[test]
fn a_tree_in_a_region_that_is_running() {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _outer = region!("tests: running");
            drop(region!("tests: done"));
            let report = crate::ProfileReport::new(&profile_of_this_thread());
            let tree = report.call_tree();
            let shown: Vec<_> = tree
                .iter()
                .map(|entry| (entry.depth, entry.name, entry.path.is_some()))
                .collect();
            assert_eq!(
                shown,
                [(0, "tests: running", false), (1, "tests: done", true)]
            );
            let text = report.text(&crate::TextOptions::default());
            assert!(text.contains(" - | tests: running\n"), "{text}");
            assert!(text.contains(" |   tests: done\n"), "{text}");
        });
    });
}

/// In a process of its own, which has one configuration.
#[test]
fn settings_come_from_the_environment() {
    const TICK: &str = "DOWNBEAT_REGIONS_TICK";
    match std::env::var(TICK).as_deref() {
        Ok("2us") => {
            drop(region!("tests: environment"));
            let (profile, found) = (profile(), region_profile("tests: environment"));
            assert_eq!(profile.tick.as_nanos(), 2_000);
            assert!(profile.overhead.subtracted && profile.warning.is_none());
            assert!(
                profile.clock.starts_with("CLOCK_MONOTONIC"),
                "{}",
                profile.clock
            );
            assert_eq!(found.paths, []);
        }
        Ok(wrong) => {
            let expected = match wrong {
                "0s" => {
                    "DOWNBEAT_REGIONS_TICK: a tick is positive; all settings are the usual ones"
                }
                _ => "DOWNBEAT_REGIONS_TICK: ",
            };
            let warning = profile().warning.unwrap_or_default();
            assert!(warning.starts_with(expected), "{warning}");
            let text = crate::ProfileReport::new(&profile()).text(&crate::TextOptions::default());
            assert!(
                text.contains("\nwarning: DOWNBEAT_REGIONS_TICK: "),
                "{text}"
            );
        }
        Err(_) => {
            for tick in ["2us", "0s", "x\u{1b}"] {
                let mut child = std::process::Command::new(std::env::current_exe().unwrap());
                child.args(["--exact", "tests::settings_come_from_the_environment"]);
                child.envs([(TICK, tick), ("DOWNBEAT_REGIONS_CLOCK", "system")]);
                child.envs([
                    ("DOWNBEAT_REGIONS_SUBTRACT", "yes"),
                    ("DOWNBEAT_REGIONS_NESTED", "no"),
                ]);
                let output = child.output().unwrap();
                let text = String::from_utf8_lossy(&output.stdout);
                assert!(
                    output.status.success() && text.contains("1 passed"),
                    "{text}"
                );
            }
        }
    }
}

#[test]
fn misuse_is_counted_and_loses_nothing() {
    static REGION: Region = Region::new("tests: misuse");
    REGION.stop();
    REGION.start();
    REGION.start();
    REGION.stop();
    REGION.stop();
    let found = region_profile("tests: misuse");
    assert_eq!(
        (
            found.events,
            found.remarks.started_while_running,
            found.remarks.stopped_while_stopped
        ),
        (1, 1, 2)
    );
}

#[test]
fn misuse_without_events_is_reported() {
    Region::named("tests: only stopped").stop();
    let found = region_profile("tests: only stopped");
    assert_eq!(
        (
            found.events,
            found.threads,
            found.remarks.stopped_while_stopped
        ),
        (0, 0, 1)
    );
}

#[test]
fn started_in_one_thread_and_stopped_in_another() {
    static REGION: Region = Region::new("tests: two threads");
    REGION.start();
    std::thread::scope(|scope| scope.spawn(|| REGION.stop()).join().unwrap());
    let found = region_profile("tests: two threads");
    assert_eq!(
        (
            found.events,
            found.remarks.running,
            found.remarks.stopped_while_stopped
        ),
        (0, 1, 1)
    );
    REGION.stop();
    assert_eq!(
        (
            region_profile("tests: two threads").events,
            region_profile("tests: two threads").remarks.running
        ),
        (1, 0)
    );
}

#[test]
fn a_report_inside_a_running_region() {
    drop(region!("tests: inside"));
    let guard = region!("tests: inside");
    let found = region_profile("tests: inside");
    assert_eq!((found.events, found.remarks.running), (1, 1));
    drop(guard);
    assert_eq!(
        (
            region_profile("tests: inside").events,
            region_profile("tests: inside").remarks.running
        ),
        (2, 0)
    );
}

#[test]
fn strange_names() {
    for (given, recorded) in [
        ("", "(unnamed)"),
        ("tests: \u{1b}[31m\r\n", "tests: \\u{1b}[31m\\r\\n"),
    ] {
        let before = region_profile(recorded).events;
        drop(Region::named(given).enter());
        assert_eq!(region_profile(recorded).events, before + 1, "{recorded}");
    }
    let long = "tests: long ".repeat(1_000);
    drop(Region::named(&long).enter());
    drop(Region::named(&format!("{long}!")).enter());
    let profile = profile();
    let found: Vec<_> = profile
        .regions()
        .iter()
        .filter(|region| region.name.starts_with("tests: long "))
        .collect();
    assert_eq!(
        found.iter().map(|region| region.events).collect::<Vec<_>>(),
        [1, 1]
    );
    assert!(found.iter().all(|region| region.name.len() <= LONGEST_NAME));
}

#[test]
fn a_thousand_threads_lose_nothing() {
    const THREADS: u64 = if cfg!(miri) { 4 } else { 1_000 };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                let _all = region!("tests: of all threads");
                let own = Region::named(&format!("tests: thread {}", thread % 10));
                (0..5).for_each(|_| drop(own.enter()));
            });
        }
    });
    let found = region_profile("tests: of all threads");
    assert_eq!(
        (
            found.events,
            u64::from(found.threads),
            events_in_bins(&found)
        ),
        (THREADS, THREADS, THREADS)
    );
    let own: u64 = (0..10)
        .map(|thread| region_profile(&format!("tests: thread {thread}")).events)
        .sum();
    assert_eq!(own, 5 * THREADS);
}

#[test]
fn a_thread_knows_its_own_events() {
    static REGION: Region = Region::new("tests: own");
    drop(REGION.enter());
    std::thread::scope(|scope| {
        let in_thread = || {
            assert_eq!(profile_of_this_thread().regions(), []);
            drop(REGION.enter());
            drop(REGION.enter());
            profile_of_this_thread()
                .region("tests: own")
                .map(|found| found.events)
        };
        assert_eq!(scope.spawn(in_thread).join().unwrap(), Some(2));
    });
    assert_eq!(
        profile_of_this_thread()
            .region("tests: own")
            .map(|found| found.events),
        Some(1)
    );
    assert_eq!(region_profile("tests: own").events, 3);
}

/// Destructors may run after the timers of the thread were returned.
#[test]
fn regions_in_the_destructors_of_a_thread() {
    struct Late;
    impl Drop for Late {
        fn drop(&mut self) {
            drop(region!("tests: late"));
        }
    }
    thread_local!(static LATE: Late = const { Late });
    // Only a join waits for destructors. The two threads cover both orders.
    for _ in 0..20 {
        let first = std::thread::spawn(|| {
            LATE.with(|_| ());
            drop(region!("tests: late"));
        });
        let last = std::thread::spawn(|| {
            drop(region!("tests: late"));
            LATE.with(|_| ());
        });
        [first, last]
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    }
    assert_eq!(region_profile("tests: late").events, 80);
}

#[test]
fn a_thread_that_exits_in_a_running_region() {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            drop(region!("tests: left"));
            core::mem::forget(region!("tests: left"));
        });
    });
    let found = region_profile("tests: left");
    assert_eq!((found.events, found.remarks.running), (1, 1));
}

#[test]
fn a_profile_while_other_threads_run() {
    const EVENTS: u64 = 200_000;
    std::thread::scope(|scope| {
        let busy = scope.spawn(|| (0..EVENTS).for_each(|_| drop(region!("tests: busy"))));
        while !busy.is_finished() {
            let found = region_profile("tests: busy");
            assert_eq!(events_in_bins(&found), found.events);
            assert!(found.events <= EVENTS);
        }
    });
    let found = region_profile("tests: busy");
    assert_eq!((events_in_bins(&found), found.events), (EVENTS, EVENTS));
}

#[test]
fn the_configuration_is_final() {
    drop(region!("tests: settled"));
    assert!(matches!(
        configure(RegionSettings::default()),
        Err(RegionError::TooLate)
    ));
    assert_eq!(profile().tick, setup::setup().tick);
    assert!(profile().overhead.whole_picos >= profile().overhead.within_picos);
}

#[test]
fn regions_of_one_name_are_added_up() {
    let region = |name: &str, events| RegionProfile {
        events,
        ..RegionProfile::new(name)
    };
    let regions = vec![region("b", 1), region("a", 2), region("b", 4)];
    let profile = Profile::new(
        "",
        RegionSettings::default().tick,
        super::Overhead::default(),
        regions,
    );
    assert_eq!(
        profile
            .regions()
            .iter()
            .map(|found| found.events)
            .collect::<Vec<_>>(),
        [2, 5]
    );
}
