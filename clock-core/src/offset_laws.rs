//! Properties of offset estimators, checked against brute force.

extern crate std;

use std::string::ToString;
use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::offset::{
    Exchange, LowestOffset, MeanRoundTrip, MeanRttOffset, OffsetSample, SkampiOffset,
    TraceCollectorOffset,
};
use crate::{Duration, FitError, Global, Local, Timestamp};

type TestExchange = Exchange<Local, Global>;
type Estimate = Result<OffsetSample<Local>, FitError>;

fn ping(sent: i64, answered: i64, received: i64) -> TestExchange {
    Exchange {
        sent: Timestamp::from_nanos(sent),
        answered: Timestamp::from_nanos(answered),
        received: Timestamp::from_nanos(received),
    }
}

fn sample(at: i128, offset: i128, half_width: Option<i128>) -> OffsetSample<Local> {
    OffsetSample {
        at: Timestamp::from_nanos(cut(at)),
        offset: span(offset),
        half_width: half_width.map(span),
    }
}

fn cut(wide: i128) -> i64 {
    i64::try_from(wide).unwrap_or(if wide < 0 { i64::MIN } else { i64::MAX })
}

fn span(wide: i128) -> Duration {
    Duration::from_nanos(cut(wide))
}

fn stamps(ping: &TestExchange) -> (i128, i128, i128) {
    (
        ping.sent.as_nanos().into(),
        ping.answered.as_nanos().into(),
        ping.received.as_nanos().into(),
    )
}

fn floor_half(doubled: i128) -> i128 {
    (doubled - doubled.rem_euclid(2)) / 2
}

/// The integer nearest to `sum / count`; of two, the larger.
fn round(sum: i128, count: i128) -> i128 {
    let below = (sum - sum.rem_euclid(count)) / count;
    if 2 * (sum - below * count) >= count {
        below + 1
    } else {
        below
    }
}

fn skampi(pings: &[TestExchange]) -> Estimate {
    let mut estimator = SkampiOffset::new();
    pings.iter().for_each(|ping| estimator.push(*ping).unwrap());
    estimator.estimate()
}

fn mean_rtt(round_trip: Duration, pings: &[TestExchange]) -> Estimate {
    let mut buffer = std::vec![Exchange::BLANK; pings.len()];
    let mut estimator = MeanRttOffset::new(round_trip, &mut buffer);
    pings.iter().for_each(|ping| estimator.push(*ping).unwrap());
    estimator.estimate()
}

fn trace_collector(pings: &[TestExchange]) -> Estimate {
    let mut buffer = std::vec![Exchange::BLANK; pings.len()];
    let mut estimator = TraceCollectorOffset::new(&mut buffer);
    pings.iter().for_each(|ping| estimator.push(*ping).unwrap());
    estimator.estimate()
}

fn lowest(pings: &[TestExchange]) -> Estimate {
    let mut buffer = std::vec![Exchange::BLANK; pings.len()];
    let mut estimator = LowestOffset::new(&mut buffer);
    pings.iter().for_each(|ping| estimator.push(*ping).unwrap());
    estimator.estimate()
}

fn mean_round_trip(pings: &[TestExchange]) -> Result<Duration, FitError> {
    let mut estimator = MeanRoundTrip::new();
    pings.iter().for_each(|ping| estimator.push(*ping).unwrap());
    estimator.mean()
}

/// The paper's definition, with its sign: reference minus client lies between the largest `t - b` and the smallest `t - a`.
fn skampi_oracle(pings: &[TestExchange]) -> Estimate {
    let low = pings
        .iter()
        .map(stamps)
        .map(|(_, t, b)| t - b)
        .max()
        .ok_or(FitError::NoExchanges)?;
    let high = pings
        .iter()
        .map(stamps)
        .map(|(a, t, _)| t - a)
        .min()
        .ok_or(FitError::NoExchanges)?;
    if low > high {
        return Err(FitError::Drifted {
            by: span(low - high),
        });
    }
    let (first, last) = (stamps(&pings[0]).0, stamps(&pings[pings.len() - 1]).2);
    Ok(sample(
        floor_half(first + last),
        floor_half(-(low + high)),
        Some(-floor_half(-(high - low))),
    ))
}

fn mean_rtt_oracle(round_trip: Duration, pings: &[TestExchange]) -> Estimate {
    let half = |(_, t, b)| {
        (
            floor_half(2 * (b - t) - i128::from(round_trip.as_nanos())),
            b,
        )
    };
    let mut samples: Vec<_> = pings.iter().map(stamps).map(half).collect();
    samples.sort_unstable();
    let (offset, at) = *samples
        .get(samples.len().wrapping_sub(1) / 2)
        .ok_or(FitError::NoExchanges)?;
    Ok(sample(at, offset, None))
}

fn trace_collector_oracle(pings: &[TestExchange]) -> Estimate {
    let mut sorted: Vec<_> = pings.iter().map(stamps).collect();
    sorted.sort_unstable_by_key(|(a, t, b)| (b - a, *a, *t));
    for _ in 0..pings.len() / 10 {
        sorted.pop();
    }
    if sorted.is_empty() {
        return Err(FitError::NoExchanges);
    }
    let count = sorted.len() as i128;
    let at: i128 = sorted.iter().map(|(a, _, b)| a + b).sum();
    let offset: i128 = sorted.iter().map(|(a, t, b)| a + b - 2 * t).sum();
    Ok(sample(round(at, 2 * count), round(offset, 2 * count), None))
}

/// Arbitrary timestamps in the only valid order.
fn any_ping() -> impl Strategy<Value = TestExchange> {
    any::<[i64; 3]>().prop_map(|[a, t, b]| ping(a.min(b), t, a.max(b)))
}

/// Timestamps so close together that round trips, offsets and times are often equal.
fn tied_ping() -> impl Strategy<Value = TestExchange> {
    (0_i64..4, -3_i64..4, 0_i64..4)
        .prop_map(|(sent, ahead, round_trip)| ping(sent, sent + ahead, sent + round_trip))
}

/// Delays of a session: pause before the exchange, latency to the reference, latency back.
fn delays(longest: i64) -> impl Strategy<Value = Vec<(i64, i64, i64)>> {
    vec((0..1_000_000_i64, 1..longest, 1..longest), 1..60)
}

/// Exchanges with these delays of a client that starts at `start` and is ahead by `offset(time)`.
fn session(
    start: i64,
    delays: &[(i64, i64, i64)],
    offset: impl Fn(i64) -> i64,
) -> Vec<TestExchange> {
    let mut now = start;
    let exchange = |&(pause, there, back): &(i64, i64, i64)| {
        let sent = now + pause;
        let answered = sent + there;
        now = answered + back;
        ping(sent, answered - offset(answered), now)
    };
    delays.iter().map(exchange).collect()
}

fn distance(estimate: OffsetSample<Local>, truth: i64) -> i64 {
    (estimate.offset.as_nanos() - truth).abs()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn skampi_matches_brute_force(pings in vec(any_ping(), 0..30), near in vec(tied_ping(), 0..30)) {
        prop_assert_eq!(skampi(&pings), skampi_oracle(&pings));
        prop_assert_eq!(skampi(&near), skampi_oracle(&near));
    }

    #[test]
    fn mean_rtt_matches_brute_force(
        round_trip: i64, pings in vec(any_ping(), 0..30), near in vec(tied_ping(), 0..30),
    ) {
        let round_trip = Duration::from_nanos(round_trip);
        prop_assert_eq!(mean_rtt(round_trip, &pings), mean_rtt_oracle(round_trip, &pings));
        prop_assert_eq!(mean_rtt(round_trip, &near), mean_rtt_oracle(round_trip, &near));
        let few = Duration::from_nanos(round_trip.as_nanos() % 4);
        prop_assert_eq!(mean_rtt(few, &near), mean_rtt_oracle(few, &near));
    }

    #[test]
    fn trace_collector_matches_brute_force(pings in vec(any_ping(), 0..45), near in vec(tied_ping(), 0..45)) {
        prop_assert_eq!(trace_collector(&pings), trace_collector_oracle(&pings));
        prop_assert_eq!(trace_collector(&near), trace_collector_oracle(&near));
    }

    #[test]
    fn the_mean_round_trip_is_the_exact_one_rounded(
        pings in vec(any_ping(), 1..30), near in vec(tied_ping(), 1..30),
    ) {
        for pings in [pings, near] {
            let sum: i128 = pings.iter().map(stamps).map(|(a, _, b)| b - a).sum();
            prop_assert_eq!(mean_round_trip(&pings), Ok(span(round(sum, pings.len() as i128))));
        }
    }

    /// Computing an estimate does not affect later ones, and the order of exchanges does not matter.
    #[test]
    fn estimates_do_not_depend_on_order_or_on_earlier_ones(
        pings in vec(any_ping(), 1..45), near in vec(tied_ping(), 1..45), turn in any::<prop::sample::Index>(),
    ) {
        for pings in [pings, near] {
            let mut turned = pings.clone();
            turned.rotate_left(turn.index(pings.len()));
            let mut buffers = [[Exchange::BLANK; 45]; 2];
            let [first, second] = &mut buffers;
            let mut median = MeanRttOffset::new(Duration::ZERO, first);
            let mut mean = TraceCollectorOffset::new(second);
            for (ping, pushed) in turned.iter().zip(1..) {
                median.push(*ping).unwrap();
                mean.push(*ping).unwrap();
                prop_assert_eq!(median.estimate(), mean_rtt_oracle(Duration::ZERO, &turned[..pushed]));
                prop_assert_eq!(mean.estimate(), trace_collector_oracle(&turned[..pushed]));
            }
            prop_assert_eq!(median.estimate(), mean_rtt(Duration::ZERO, &pings));
            prop_assert_eq!(mean.estimate(), trace_collector(&pings));
            prop_assert_eq!(lowest(&turned), lowest(&pings));
        }
    }

    #[test]
    fn a_constant_offset_is_in_skampis_interval(
        start in -1_i64 << 60..1 << 60, offset in -1_i64 << 60..1 << 60, delays in delays(100_000),
    ) {
        let estimate = skampi(&session(start, &delays, |_| offset)).unwrap();
        prop_assert!(distance(estimate, offset) <= estimate.half_width.unwrap().as_nanos());
        // The interval is as wide as the fastest message there and the fastest one back together.
        let fastest = delays.iter().map(|d| d.1).min().unwrap() + delays.iter().map(|d| d.2).min().unwrap();
        prop_assert_eq!(estimate.half_width.unwrap().as_nanos(), (fastest + 1) / 2);
    }

    /// If the drift over the session is smaller than the latency of the fastest message, the offset in the middle of the
    /// session is in the interval, too.
    #[test]
    fn a_slowly_drifting_offset_is_in_skampis_interval(
        start in -1_i64 << 60..1 << 60, offset in -1_i64 << 60..1 << 60, delays in delays(100_000), share in -1.0..1.0,
    ) {
        let length: i64 = delays.iter().map(|d| d.0 + d.1 + d.2).sum();
        let fastest = delays.iter().map(|d| d.1.min(d.2)).min().unwrap();
        let drift = share * fastest as f64 / length as f64;
        let truth = |now: i64| offset + libm::floor(drift * (now - start) as f64) as i64;
        let estimate = skampi(&session(start, &delays, truth)).unwrap();
        prop_assert!(distance(estimate, truth(estimate.at.as_nanos())) <= estimate.half_width.unwrap().as_nanos() + 1);
    }

    #[test]
    fn symmetric_delays_give_the_offset_to_a_nanosecond(
        start in -1_i64 << 60..1 << 60, offset in -1_i64 << 60..1 << 60, mut delays in delays(100_000), delay in 1_i64..1_000,
    ) {
        // The Trace Collector assumes that each exchange is symmetric, mean round trips that all are also equal.
        delays.iter_mut().for_each(|d| d.2 = d.1);
        let pings = session(start, &delays, |_| offset);
        prop_assert!(distance(trace_collector(&pings).unwrap(), offset) <= 1);
        prop_assert!(distance(lowest(&pings).unwrap(), offset) <= 1);
        prop_assert!(distance(skampi(&pings).unwrap(), offset) <= 1);
        delays.iter_mut().for_each(|d| (d.1, d.2) = (delay, delay));
        let pings = session(start, &delays, |_| offset);
        prop_assert!(distance(mean_rtt(mean_round_trip(&pings).unwrap(), &pings).unwrap(), offset) <= 1);
    }

    /// With asymmetric delays, the error is at most half the longest round trip, or the longest one for mean round trips.
    #[test]
    fn the_error_is_limited_by_the_longest_round_trip(
        start in -1_i64 << 60..1 << 60, offset in -1_i64 << 60..1 << 60, delays in delays(100_000),
    ) {
        let pings = session(start, &delays, |_| offset);
        let longest = delays.iter().map(|d| d.1 + d.2).max().unwrap();
        prop_assert!(distance(trace_collector(&pings).unwrap(), offset) <= longest / 2 + 1);
        prop_assert!(distance(lowest(&pings).unwrap(), offset) <= longest / 2 + 1);
        prop_assert!(distance(skampi(&pings).unwrap(), offset) <= longest / 2 + 1);
        // The latency of the median answer is between 0 and the longest round trip, and assumed to be half the mean.
        prop_assert!(distance(mean_rtt(mean_round_trip(&pings).unwrap(), &pings).unwrap(), offset) <= longest);
    }

    #[test]
    fn exchanges_received_before_they_were_sent_are_rejected(stamps: [i64; 3]) {
        let [sent, answered, received] = stamps;
        let expected = match sent <= received {
            true => Ok(()),
            false => Err(FitError::SteppedBack { by: span(i128::from(sent) - i128::from(received)) }),
        };
        let exchange = ping(sent, answered, received);
        prop_assert_eq!(SkampiOffset::new().push(exchange), expected);
        prop_assert_eq!(MeanRoundTrip::new().push(exchange), expected);
        prop_assert_eq!(MeanRttOffset::new(Duration::ZERO, &mut [Exchange::BLANK]).push(exchange), expected);
        prop_assert_eq!(TraceCollectorOffset::new(&mut [Exchange::BLANK]).push(exchange), expected);
        prop_assert_eq!(LowestOffset::new(&mut [Exchange::BLANK]).push(exchange), expected);
        prop_assert_eq!(exchange.round_trip(), span(i128::from(received) - i128::from(sent)));
    }
}

#[test]
fn a_rejected_exchange_changes_nothing() {
    let (good, bad) = (ping(10, 1_000, 30), ping(10, 5, 9));
    let stepped = Err(FitError::SteppedBack {
        by: Duration::from_nanos(1),
    });
    let mut buffers = [[Exchange::BLANK; 2]; 2];
    let [first, second] = &mut buffers;
    let mut skampi_estimator = SkampiOffset::new();
    let mut median = MeanRttOffset::new(Duration::from_nanos(20), first);
    let mut mean = TraceCollectorOffset::new(second);
    let mut round_trip = MeanRoundTrip::default();
    for (exchange, taken) in [(bad, stepped), (good, Ok(())), (bad, stepped)] {
        assert_eq!(skampi_estimator.push(exchange), taken);
        assert_eq!(median.push(exchange), taken);
        assert_eq!(mean.push(exchange), taken);
        assert_eq!(round_trip.push(exchange), taken);
    }
    let expected = sample(20, -980, None);
    assert_eq!(
        skampi_estimator.estimate(),
        Ok(OffsetSample {
            half_width: Some(span(10)),
            ..expected
        })
    );
    assert_eq!(
        median.estimate(),
        Ok(OffsetSample {
            at: Timestamp::from_nanos(30),
            ..expected
        })
    );
    assert_eq!(mean.estimate(), Ok(expected));
    assert_eq!(round_trip.mean(), Ok(Duration::from_nanos(20)));
}

#[test]
fn a_full_buffer_is_an_error_and_keeps_its_exchanges() {
    let (first, second) = (ping(0, 0, 2), ping(100, 0, 102));
    let mut buffer = [Exchange::BLANK];
    let mut median = MeanRttOffset::new(Duration::from_nanos(2), &mut buffer);
    assert_eq!(median.push(first), Ok(()));
    assert_eq!(median.push(second), Err(FitError::BufferFull));
    assert_eq!(median.estimate(), Ok(sample(2, 1, None)));
    let mut mean = TraceCollectorOffset::new(&mut buffer);
    assert_eq!(mean.estimate(), Err(FitError::NoExchanges));
    assert_eq!(mean.push(first), Ok(()));
    assert_eq!(mean.push(second), Err(FitError::BufferFull));
    assert_eq!(mean.estimate(), Ok(sample(1, 1, None)));
    assert_eq!(
        TraceCollectorOffset::new(&mut []).push(first),
        Err(FitError::BufferFull)
    );
    assert_eq!(
        LowestOffset::new(&mut []).push(first),
        Err(FitError::BufferFull)
    );
}

/// Clocks drift by 10 us in the session, and 5 of 100 messages of each direction are
/// quick. They are found, although the differences at one end of the session are lower.
#[test]
fn the_quickest_messages_are_found_while_clocks_drift() {
    for drift in [-1_000_i64, 0, 1_000] {
        let offset = |now: i64| 5_000 + drift * now / 1_000_000;
        let pings: Vec<_> = (0..100)
            .map(|number| {
                let sent = number * 100_000;
                let late = |quick: i64| if number % 20 == quick { 0 } else { 700 };
                let answered = sent + 300 + late(3);
                let received = answered + 300 + late(13);
                ping(sent + offset(sent), answered, received + offset(received))
            })
            .collect();
        let found = lowest(&pings).unwrap();
        let truth = offset((found.at - found.offset).as_nanos());
        assert!(distance(found, truth) <= 1, "{drift}: {found:?}");
    }
}

#[test]
fn an_offset_needs_exchanges() {
    assert_eq!(skampi(&[]), Err(FitError::NoExchanges));
    assert_eq!(
        SkampiOffset::<Local, Global>::default().estimate(),
        Err(FitError::NoExchanges)
    );
    assert_eq!(mean_rtt(Duration::ZERO, &[]), Err(FitError::NoExchanges));
    assert_eq!(trace_collector(&[]), Err(FitError::NoExchanges));
    assert_eq!(lowest(&[]), Err(FitError::NoExchanges));
    assert_eq!(mean_round_trip(&[]), Err(FitError::NoExchanges));
}

#[test]
fn a_clock_that_drifts_too_fast_for_skampi_is_reported() {
    // The client gains 1 us between two exchanges of 100 ns.
    let pings = [ping(0, 50, 100), ping(11_000, 10_050, 11_100)];
    assert_eq!(
        skampi(&pings),
        Err(FitError::Drifted {
            by: Duration::from_nanos(900)
        })
    );
    // A drift equal to the latencies leaves a single consistent offset.
    let pings = [ping(0, 50, 100), ping(10_100, 10_050, 10_200)];
    assert_eq!(skampi(&pings).unwrap().half_width, Some(Duration::ZERO));
}

/// Computed by hand: one of ten is dropped, none of nine, two of twenty.
#[test]
fn the_trace_collector_drops_a_tenth_rounded_down() {
    let pings: Vec<_> = (1..=20).map(|i| ping(0, 0, 2 * i)).collect();
    // The samples are 1, 2, 3, ...
    assert_eq!(
        trace_collector(&pings[..9]).unwrap().offset,
        Duration::from_nanos(5)
    );
    assert_eq!(
        trace_collector(&pings[..10]).unwrap().offset,
        Duration::from_nanos(5)
    );
    assert_eq!(
        trace_collector(&pings[..11]).unwrap().offset,
        Duration::from_nanos(6),
        "55 / 10 rounds up"
    );
    assert_eq!(
        trace_collector(&pings).unwrap().offset,
        Duration::from_nanos(10),
        "171 / 18"
    );
}

/// Computed by hand: of four samples the second, with its own time.
#[test]
fn the_median_of_an_even_number_is_the_lower_middle() {
    let pings = [
        ping(0, 0, 40),
        ping(0, 90, 100),
        ping(0, 170, 200),
        ping(0, 280, 300),
    ];
    let median = mean_rtt(Duration::from_nanos(8), &pings);
    assert_eq!(median, Ok(sample(300, 16, None)));
}

#[test]
fn error_messages_name_the_fault() {
    let by = Duration::from_nanos(1_500);
    let message = |error: &dyn core::error::Error| error.to_string();
    assert_eq!(
        message(&FitError::SteppedBack { by }),
        "the clock stepped back by 1.500 us or more during an exchange"
    );
    assert_eq!(
        message(&FitError::BufferFull),
        "the buffer for exchanges is full"
    );
    assert_eq!(
        message(&FitError::NoExchanges),
        "an offset needs at least one exchange"
    );
    assert_eq!(
        message(&FitError::Drifted { by }),
        "the clocks drifted 1.500 us more than the round trips allow for"
    );
}
