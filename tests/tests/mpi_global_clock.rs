//! A program for `mpirun`: one call to a global clock, and its failures on all ranks.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed test panics")]

mod job;

use downbeat::{ClockName, Duration, GlobalClock, GlobalClockError, Meeting, MpiComm, from_first};
use downbeat_clock_core::Clock;
use job::job;
use mpi::Threading;
use mpi::topology::{Color, SimpleCommunicator};
use mpi::traits::Communicator;

fn main() {
    job(Threading::Serialized, |world| {
        one_call_gives_a_global_clock(world);
        a_part_of_the_ranks_continues_its_time(world);
        all_ranks_meet(world);
        a_clock_is_kept(world);
        a_rank_that_fails_is_one_error_on_all_ranks(world);
    });
}

fn one_call_gives_a_global_clock(world: &SimpleCommunicator) {
    let clock = GlobalClock::builder().pin(true).synchronize(world).unwrap();
    assert_eq!(
        (clock.rank() as i32, clock.size() as i32),
        (world.rank(), world.size())
    );
    for _ in 0..2 {
        assert_shared(&clock, &MpiComm::duplicate(world).unwrap());
        clock.resynchronize(world).unwrap();
    }
    let error = clock.rate_error();
    assert!(error < 1e-3, "{error}");
}

/// Checks that all ranks, which share a counter, show one time at one reading of it, and begin together.
fn assert_shared(clock: &GlobalClock, comm: &MpiComm) {
    let at = from_first(comm, clock.clock().ticks()).unwrap();
    let shown = clock.model().apply(at);
    let reference = from_first(comm, shown).unwrap();
    let bound = clock.bound().at_time(shown);
    assert!(
        (shown - reference).abs() <= bound,
        "{shown} +- {bound}, not {reference}"
    );
    let start = from_first(comm, clock.now() + Duration::from_micros(100)).unwrap();
    assert!(clock.wait_until(start) >= start);
}

/// Halves of the ranks synchronize again by themselves: both are still in the time of all.
fn a_part_of_the_ranks_continues_its_time(world: &SimpleCommunicator) {
    let clock = GlobalClock::synchronize(world).unwrap();
    let before = clock.now();
    let half = world
        .split_by_color(Color::with_value(world.rank() % 2))
        .unwrap();
    clock.resynchronize(&half).unwrap();
    let (now, error) = clock.now_with_error();
    assert!(
        now > before && now - before < Duration::from_secs(100),
        "{before} to {now}"
    );
    assert!(error < Duration::from_secs(1), "{error}");
}

fn all_ranks_meet(world: &SimpleCommunicator) {
    // Of clocks that may drift by a tenth nothing is known soon.
    let clock = GlobalClock::builder()
        .max_drift(0.1)
        .synchronize(world)
        .unwrap();
    let comm = MpiComm::duplicate(world).unwrap();
    let synchronized = || clock.last_synchronization().map(|last| last.bound.at);
    let first = synchronized();
    let mut meetings = clock.meetings(&comm, Duration::from_secs(1));
    for _ in 0..20 {
        let meeting = meetings.harmonize().unwrap();
        assert!(
            !matches!(meeting, Meeting::Missed { by } if by <= Duration::ZERO),
            "{meeting}"
        );
    }
    assert_eq!(synchronized(), first);
    let mut meetings = clock.meetings(&comm, Duration::from_millis(100));
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    // Ranks that share cores may be less certain than that, which all of them know.
    match meetings.harmonize() {
        Ok(_) | Err(GlobalClockError::Uncertain { .. }) => {
            // The clock of a single rank is exact.
            assert!(synchronized() > first || world.size() == 1);
        }
        Err(why) => panic!("{why}"),
    }
    let impossible = clock.meetings(&comm, Duration::from_nanos(-1)).harmonize();
    assert!(
        matches!(impossible, Err(GlobalClockError::Uncertain { .. })),
        "{impossible:?}"
    );
}

fn a_clock_is_kept(world: &SimpleCommunicator) {
    let clock = GlobalClock::synchronize(world).unwrap();
    let comm = MpiComm::duplicate(world).unwrap();
    let mut keeping = clock.keeping(&comm, Duration::from_millis(500)).unwrap();
    let (mut sessions, mut last) = (0_u64, clock.now());
    let mut ended = false;
    while !ended {
        let now = clock.now();
        assert!(now >= last, "{now} after {last}");
        last = now;
        sessions += u64::from(keeping.keep().unwrap().is_some());
        ended = from_first(&comm, u64::from(sessions >= 3)).unwrap() == 1;
    }
    // All ranks made the same.
    assert_eq!(from_first(&comm, sessions).unwrap(), sessions);
    assert_shared(&clock, &comm);
}

fn a_rank_that_fails_is_one_error_on_all_ranks(world: &SimpleCommunicator) {
    let last = world.size() - 1;
    let missing = if cfg!(target_arch = "aarch64") {
        ClockName::Tsc
    } else {
        ClockName::Cntvct
    };
    let name = if world.rank() == last {
        missing
    } else {
        ClockName::Recommended
    };
    let failed = GlobalClock::builder()
        .clock(name)
        .synchronize(world)
        .unwrap_err();
    let GlobalClockError::Rank { rank, why } = failed else {
        panic!("{failed}");
    };
    assert_eq!(rank as i32, last);
    assert!(why.starts_with("this is not an "), "{why}");
    // The clock of a group that could not be synchronized again is as before.
    let clock = GlobalClock::synchronize(world).unwrap();
    let last = clock.last_synchronization().map(|last| last.model);
    assert_eq!(last, Some(clock.model()));
}
