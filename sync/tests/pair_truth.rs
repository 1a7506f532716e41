//! Offsets between ranks whose clocks have known errors, compared with the truth: exact,
//! independent of the load of the machine.

#![expect(clippy::unwrap_used, reason = "test helpers fail like tests")]

mod common;

use core::num::NonZeroU32;

use common::run;
use downbeat_clock_core::offset::OffsetSample;
use downbeat_clock_core::{
    Clock, ClockModel, Counter, Duration, FitError, Global, Local, Timestamp,
};
use downbeat_sync::pair::{OffsetClient, answer_blocking};
use downbeat_sync::{Comm, CommError, OffsetAlgorithm, SyncError};
use downbeat_timers::skew::{Skew, SkewedClock, Truth};
use downbeat_timers::{SystemClock, SystemClockId};

const EXCHANGES: NonZeroU32 = NonZeroU32::new(50).unwrap();

type ClientClock = SkewedClock<SystemClock>;

/// Result of a client, and the times of its first measurement and of the end of this one.
#[derive(Clone, Copy, Debug)]
struct ClientResult {
    result: Result<OffsetSample<Local>, SyncError>,
    began: Timestamp<Truth>,
    ended: Timestamp<Truth>,
}

/// Clocks of all ranks: skews of one true clock.
fn clocks(skews: &[Skew]) -> Vec<ClientClock> {
    let raw = SystemClock::detect(SystemClockId::MonotonicRaw).unwrap();
    let truth =
        ClockModel::<Counter, Truth>::through(raw.ticks(), Timestamp::ORIGIN, SystemClock::RATE)
            .unwrap();
    skews
        .iter()
        .map(|skew| ClientClock::new(raw, truth, skew.clone()).unwrap())
        .collect()
}

/// Every rank except the first measures its offset to the first, twice.
fn measure(algorithm: OffsetAlgorithm, clocks: Vec<ClientClock>) -> Vec<ClientResult> {
    let found = run(clocks.len() as u32, move |comm| {
        let clock = &clocks[comm.rank() as usize];
        let local = ClientClock::nominal_model().unwrap();
        if comm.rank() == 0 {
            let global = ClockModel::<Counter, Global>::through(
                ClientClock::ZERO,
                Timestamp::ORIGIN,
                ClientClock::RATE,
            )
            .unwrap();
            for client in (1..comm.size()).flat_map(|client| [client; 2]) {
                answer_blocking(clock, &global, comm, client).unwrap();
            }
            return vec![];
        }
        let mut client = OffsetClient::<Local, Global>::new(algorithm, 0).unwrap();
        // The second measurement uses the round trip of the first.
        let began = clock.true_now();
        let mut measure = || {
            let result = client.measure_blocking(clock, &local, comm);
            ClientResult {
                result,
                began,
                ended: clock.true_now(),
            }
        };
        vec![measure(), measure()]
    });
    found.unwrap().concat()
}

/// Clocks with these constant offsets.
fn constant(offsets: &[Duration]) -> Vec<ClientClock> {
    clocks(
        &offsets
            .iter()
            .map(|offset| Skew {
                offset: *offset,
                ..Skew::default()
            })
            .collect::<Vec<_>>(),
    )
}

const OFFSETS: [Duration; 5] = [
    Duration::from_nanos(-7),
    Duration::from_secs(-3_600),
    Duration::from_nanos(123_456_789),
    Duration::ZERO,
    Duration::from_secs(86_400),
];

/// Results for clocks with constant offsets: `(sample, true offset, time that the client took)`.
fn results_with_constant_offsets(
    algorithm: OffsetAlgorithm,
    ranks: usize,
) -> Vec<(OffsetSample<Local>, Duration, Duration)> {
    let clocks = constant(&OFFSETS[..ranks]);
    let truths: Vec<_> = clocks
        .iter()
        .map(|clock| clock.deviation(Timestamp::ORIGIN))
        .collect();
    let truths = truths[1..]
        .iter()
        .flat_map(|deviation| [*deviation - truths[0]; 2]);
    let found = measure(algorithm, clocks);
    assert_eq!(found.len(), 2 * (ranks - 1));
    truths
        .zip(found)
        .map(|(truth, found)| (found.result.unwrap(), truth, found.ended - found.began))
        .collect()
}

#[test]
fn the_interval_of_skampi_contains_the_truth() {
    for ranks in 2..=5 {
        for (sample, truth, session) in
            results_with_constant_offsets(OffsetAlgorithm::skampi(EXCHANGES), ranks)
        {
            let half_width = sample.half_width.unwrap();
            assert!(
                (sample.offset - truth).abs() <= half_width,
                "{sample:?}, in truth {truth}"
            );
            assert!(half_width <= session, "{sample:?} within {session}");
        }
    }
}

/// The error of every estimate is at most the time that its exchanges took.
#[test]
fn errors_are_at_most_the_duration_of_the_exchanges() {
    for algorithm in OffsetAlgorithm::all(EXCHANGES) {
        for ranks in 2..=5 {
            for (sample, truth, session) in results_with_constant_offsets(algorithm, ranks) {
                assert!(
                    (sample.offset - truth).abs() <= session,
                    "{algorithm}: {sample:?} in {session}, truth {truth}"
                );
            }
        }
    }
}

/// Exchanges of a drifting clock contradict each other by at most the drift; otherwise the clock is
/// found where it was at the sample's time.
#[test]
fn a_drift_widens_the_interval_by_no_more_than_itself() {
    let drifts = [0.0, 3e-6, -20e-6];
    let skews = drifts.map(|drift| Skew {
        offset: Duration::from_millis(5),
        drift,
        ..Skew::default()
    });
    let clocks = clocks(&skews);
    let found = measure(OffsetAlgorithm::skampi(EXCHANGES), clocks.clone());
    for (
        i,
        ClientResult {
            result,
            began,
            ended,
        },
    ) in found.into_iter().enumerate()
    {
        let rank = 1 + i / 2;
        let (client, reference) = (&clocks[rank], &clocks[0]);
        // Each of three timestamps is rounded.
        let drifted = Duration::from_nanos(
            ((ended - began).as_nanos() as f64 * drifts[rank].abs()) as i64 + 3,
        );
        match result {
            Ok(sample) => {
                // Correct to a nanosecond: the drift of the deviation is negligible.
                let at =
                    Timestamp::<Truth>::from_nanos((sample.at - skews[rank].offset).as_nanos());
                let at = at - (client.deviation(at) - skews[rank].offset);
                assert!(
                    began <= at + Duration::from_nanos(1) && at <= ended + Duration::from_nanos(1),
                    "{sample:?}"
                );
                let truth = client.deviation(at) - reference.deviation(at);
                assert!(
                    (sample.offset - truth).abs() <= sample.half_width.unwrap() + drifted,
                    "{sample:?}, {truth}"
                );
            }
            Err(SyncError::Fit(FitError::Drifted { by })) => {
                assert!(by <= drifted, "{by} of {drifted}");
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_partner_that_has_left_is_an_error_on_either_side() {
    let results = run(3, |comm| {
        let clock = SystemClock::detect(SystemClockId::MonotonicRaw).unwrap();
        let base = ClockModel::<Counter, Local>::through(
            clock.ticks(),
            Timestamp::ORIGIN,
            SystemClock::RATE,
        )
        .unwrap();
        match comm.rank() {
            0 => Ok(()),
            1 => answer_blocking(&clock, &base, comm, 0).map_err(SyncError::from),
            _ => {
                let mut client =
                    OffsetClient::<Local, Local>::new(OffsetAlgorithm::all(EXCHANGES)[1], 0)
                        .unwrap();
                client.measure_blocking(&clock, &base, comm).map(|_| ())
            }
        }
    });
    let left = Err(SyncError::Comm(CommError::Left { rank: 0 }));
    assert_eq!(results.unwrap(), [Ok(()), left, left]);
}
