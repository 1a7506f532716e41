//! The past, interpolated through sessions of simulated ranks, against their exchanges and the true time.

#![expect(clippy::unwrap_used, reason = "a failed test panics")]

#[path = "common/sessions.rs"]
mod sessions;

use std::cell::Cell;
use std::num::NonZeroU32;

use downbeat::{Duration, Global, Local, SessionLimits, SessionRule, Timestamp};
use downbeat_clock_core::offset::{Exchange, OffsetSample};
use downbeat_sync::pair::OffsetClient;
use sessions::{
    Exchanges, PastErrors, Replay, ReplayComm, answer, errors, nominal, prepare_session, reading,
    reliving, simulate, wandering,
};

const RANKS: [u32; 2] = [2, 4];

/// Short sessions, that the number ends, and one that the duration ends.
fn limits() -> impl Iterator<Item = SessionLimits> {
    let numbers = [1, 9, 10, 37, 100].map(|number| (number, Duration::from_secs(60)));
    let all = numbers
        .into_iter()
        .chain([(u32::MAX, Duration::from_micros(200))]);
    all.map(|(number, duration)| SessionLimits {
        exchanges: NonZeroU32::new(number).unwrap(),
        duration,
        rule: SessionRule::Lowest,
    })
}

#[test]
fn the_past_at_a_session_is_the_offset_of_its_exchanges_to_a_nanosecond() {
    let apart = Duration::from_millis(100);
    for ranks in RANKS {
        let limits = limits()
            .flat_map(|limits| SessionRule::ALL.map(|rule| SessionLimits { rule, ..limits }));
        for (seed, limits) in (0..).zip(limits) {
            let run = simulate(ranks, wandering(apart), seed, apart, limits);
            let errors: Vec<_> = errors(&run).collect();
            assert_eq!(errors.len(), ranks as usize - 1);
            for PastErrors { at_sessions, .. } in errors {
                assert!(at_sessions <= 1.0, "{at_sessions} ns with {limits:?}");
            }
        }
    }
}

/// Returns what the label `trace-collector/N` measures with these exchanges.
fn by_label(exchanges: Exchanges<'_>) -> OffsetSample<Local> {
    let replay = Replay::default();
    replay.reads(exchanges.first().map(|first| first.sent));
    replay.reads(exchanges.iter().flat_map(|one| [one.sent, one.received]));
    replay.receives([1]);
    replay.receives(exchanges.iter().map(answer));
    let label = format!("trace-collector/{}", exchanges.len());
    let mut client = OffsetClient::<Local, Global>::new(label.parse().unwrap(), 0).unwrap();
    let comm = ReplayComm::new(&replay);
    client.measure_blocking(&replay, &nominal(), &comm).unwrap()
}

#[test]
fn a_session_by_the_rule_of_a_label_is_the_measurement_that_the_label_makes_of_the_same_exchanges()
{
    let apart = Duration::from_millis(100);
    for ranks in RANKS {
        for (seed, limits) in (0..).zip(limits()) {
            let rule = SessionRule::TraceCollector;
            let limits = SessionLimits { rule, ..limits };
            let run = simulate(ranks, wandering(apart), seed, apart, limits);
            for rank in &run[1..] {
                let replay = Replay::default();
                let clock = reliving(&replay);
                for (number, exchanges) in rank.exchanges().enumerate() {
                    prepare_session(&replay, exchanges);
                    clock
                        .timesync_over(&ReplayComm::new(&replay), limits)
                        .unwrap();
                    let knot = clock.sessions()[number];
                    let sample = by_label(exchanges);
                    let offset = knot.at.as_nanos() - knot.image.as_nanos();
                    assert_eq!((knot.at, offset), (sample.at, sample.offset.as_nanos()));
                }
            }
        }
    }
}

/// The walk of typical clocks lasts 100 s, and so do these sessions.
#[test]
fn between_sessions_on_wandering_clocks_the_past_is_nearer_to_the_truth_than_lines() {
    let apart = Duration::from_secs(10);
    for ranks in RANKS {
        let all = (0..20).flat_map(|seed| {
            let limits = SessionLimits::default();
            errors(&simulate(ranks, wandering(apart), seed, apart, limits)).collect::<Vec<_>>()
        });
        let all = all.fold(PastErrors::default(), PastErrors::and);
        let (spline, lines) = (all.spline(), all.lines());
        assert!(spline <= lines, "{spline} ns, lines {lines} ns");
    }
}

/// Drifts wander little in a second: what remains is the noise of the sessions.
#[test]
fn between_sessions_a_second_apart_the_past_is_within_nanoseconds_of_the_truth() {
    let apart = Duration::from_secs(1);
    for ranks in RANKS {
        let all = (0..20).flat_map(|seed| {
            let limits = SessionLimits::default();
            errors(&simulate(ranks, wandering(apart), seed, apart, limits)).collect::<Vec<_>>()
        });
        let all = all.fold(PastErrors::default(), PastErrors::and);
        assert!(all.spline() <= 6.0, "{} ns", all.spline());
    }
}

/// Exchange in the middle of which the clock of rank 0 is 500 ns behind.
const EXCHANGE: Exchange<Local, Global> = Exchange {
    sent: Timestamp::from_nanos(1_000),
    answered: Timestamp::from_nanos(600),
    received: Timestamp::from_nanos(1_200),
};

#[test]
fn a_single_session_is_a_constant_offset() {
    let replay = Replay::default();
    let (clock, comm) = (reliving(&replay), ReplayComm::new(&replay));
    prepare_session(&replay, &[EXCHANGE]);
    clock
        .timesync_over(&comm, SessionLimits::default())
        .unwrap();
    for local in [-1_000_000, 1_100, 1_000_000] {
        let past = clock.past(reading(Timestamp::from_nanos(local)));
        assert_eq!(past.as_nanos(), local - 500);
    }
}

#[test]
fn a_step_between_two_sessions_changes_no_time_between_others() {
    let replay = Replay::default();
    let (clock, comm) = (reliving(&replay), ReplayComm::new(&replay));
    // A second apart; the clock of this rank steps by 10 ms before the fourth session.
    let second = Duration::from_secs(1);
    for number in 0..6 {
        let step = if number < 3 {
            Duration::ZERO
        } else {
            Duration::from_millis(10)
        };
        let passed = Duration::from_nanos(second.as_nanos() * number);
        prepare_session(
            &replay,
            &[Exchange {
                sent: EXCHANGE.sent + passed + step,
                answered: EXCHANGE.answered + passed,
                received: EXCHANGE.received + passed + step,
            }],
        );
        clock
            .timesync_over(&comm, SessionLimits::default())
            .unwrap();
    }
    let [[before, after]] = clock.session_steps()[..] else {
        panic!("one step")
    };
    assert_eq!([before, after], clock.sessions()[2..4]);
    for (local, offset) in [
        (-5_000, 500),
        (1_900_000_000, 500),
        (4_100_000_000, 10_000_500),
    ] {
        let past = clock.past(reading(Timestamp::from_nanos(local)));
        assert_eq!(past.as_nanos(), local - offset);
    }
}

/// A session can last a minute.
#[test]
fn the_past_can_be_read_during_a_session() {
    let (replay, reads) = (Replay::default(), Cell::new(0));
    let clock = reliving(&replay);
    prepare_session(&replay, &[EXCHANGE]);
    let meanwhile = || {
        let at = reading(Timestamp::ORIGIN);
        assert_eq!(clock.past(at), clock.model().apply(at));
        reads.set(reads.get() + 1);
    };
    let comm = ReplayComm {
        replay: &replay,
        meanwhile: &meanwhile,
    };
    clock
        .timesync_over(&comm, SessionLimits::default())
        .unwrap();
    assert!(reads.get() > 0);
}
