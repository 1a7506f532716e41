//! Regions of threads. Tests run side by side in one process: each has names of its own.

use super::{
    LONGEST_NAME, Profile, Region, RegionError, RegionProfile, RegionSettings, configure, profile,
};
use super::{profile_of_this_thread, setup};
use crate::region;

fn of(name: &str) -> RegionProfile {
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
    let found = of("tests: two sites");
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
    let found = of("tests: recursion");
    assert_eq!((found.events, found.remarks.recursions), (1, 9));
}

#[test]
fn what_is_in_a_region_is_in_its_time() {
    {
        let _outer = region!("tests: outer");
        (0..10).for_each(|_| drop(region!("tests: inner")));
    }
    let (outer, inner) = (of("tests: outer"), of("tests: inner"));
    assert_eq!((outer.events, inner.events), (1, 10));
    // Ticks are cut, each total once.
    assert!(
        outer.total + 1 >= inner.total,
        "{} {}",
        outer.total,
        inner.total
    );
}

#[test]
fn misuse_is_counted_and_loses_nothing() {
    static REGION: Region = Region::new("tests: misuse");
    REGION.stop();
    REGION.start();
    REGION.start();
    REGION.stop();
    REGION.stop();
    let found = of("tests: misuse");
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
fn a_timer_that_was_only_misused_is_told() {
    Region::named("tests: only stopped").stop();
    let found = of("tests: only stopped");
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
    let found = of("tests: two threads");
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
            of("tests: two threads").events,
            of("tests: two threads").remarks.running
        ),
        (1, 0)
    );
}

#[test]
fn a_report_inside_a_running_region() {
    drop(region!("tests: inside"));
    let guard = region!("tests: inside");
    let found = of("tests: inside");
    assert_eq!((found.events, found.remarks.running), (1, 1));
    drop(guard);
    assert_eq!(
        (
            of("tests: inside").events,
            of("tests: inside").remarks.running
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
        let before = of(recorded).events;
        drop(Region::named(given).enter());
        assert_eq!(of(recorded).events, before + 1, "{recorded}");
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
    let found = of("tests: of all threads");
    assert_eq!(
        (
            found.events,
            u64::from(found.threads),
            events_in_bins(&found)
        ),
        (THREADS, THREADS, THREADS)
    );
    let own: u64 = (0..10)
        .map(|thread| of(&format!("tests: thread {thread}")).events)
        .sum();
    assert_eq!(own, 5 * THREADS);
}

#[test]
fn a_thread_knows_its_own_events() {
    static REGION: Region = Region::new("tests: own");
    drop(REGION.enter());
    std::thread::scope(|scope| {
        let of_thread = || {
            assert_eq!(profile_of_this_thread().regions(), []);
            drop(REGION.enter());
            drop(REGION.enter());
            profile_of_this_thread()
                .region("tests: own")
                .map(|found| found.events)
        };
        assert_eq!(scope.spawn(of_thread).join().unwrap(), Some(2));
    });
    assert_eq!(
        profile_of_this_thread()
            .region("tests: own")
            .map(|found| found.events),
        Some(1)
    );
    assert_eq!(of("tests: own").events, 3);
}

/// Also when the timers of the thread were handed back already.
#[test]
fn regions_in_the_destructors_of_a_thread() {
    struct Late;
    impl Drop for Late {
        fn drop(&mut self) {
            drop(region!("tests: late"));
        }
    }
    thread_local!(static LATE: Late = const { Late });
    // Only a join waits for destructors, too. They run in one order or the other.
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
    assert_eq!(of("tests: late").events, 80);
}

#[test]
fn a_thread_that_leaves_a_region_running() {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            drop(region!("tests: left"));
            core::mem::forget(region!("tests: left"));
        });
    });
    let found = of("tests: left");
    assert_eq!((found.events, found.remarks.running), (1, 1));
}

#[test]
fn a_profile_while_other_threads_run() {
    const EVENTS: u64 = 200_000;
    std::thread::scope(|scope| {
        let busy = scope.spawn(|| (0..EVENTS).for_each(|_| drop(region!("tests: busy"))));
        while !busy.is_finished() {
            let found = of("tests: busy");
            assert_eq!(events_in_bins(&found), found.events);
            assert!(found.events <= EVENTS);
        }
    });
    let found = of("tests: busy");
    assert_eq!((events_in_bins(&found), found.events), (EVENTS, EVENTS));
}

#[test]
fn it_is_settled_once() {
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
