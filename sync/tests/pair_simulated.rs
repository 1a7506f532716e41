//! Two ranks on one thread, in virtual time: a backend that suspends, with exactly known times.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "test helpers fail like tests"
)]

use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::num::NonZeroU32;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use std::collections::VecDeque;

use downbeat_clock_core::offset::OffsetSample;
use downbeat_clock_core::{
    Clock, ClockModel, Counter, Duration, FitError, Global, Local, TickRate, Ticks, Timestamp,
};
use downbeat_sync::pair::{OffsetClient, answer, answer_blocking};
use downbeat_sync::payload::{Payload, Words};
use downbeat_sync::{Comm, CommError, OffsetAlgorithm, SyncError};
use proptest::prelude::*;

/// State that the two ranks share; rank 0 is the client.
#[derive(Default)]
struct TestNetwork {
    /// Latency of the messages of each rank.
    delays: [u64; 2],
    /// True time of each rank.
    now: [Cell<u64>; 2],
    /// Messages sent by each rank, with their times of arrival.
    sent: [RefCell<VecDeque<(u64, Words)>>; 2],
    messages: Cell<u64>,
}

struct TestComm<'a> {
    network: &'a TestNetwork,
    rank: usize,
}

impl TestComm<'_> {
    fn post(&self, payload: impl Payload) {
        let mut words = Words::default();
        payload.put(&mut words);
        let arrival = self.network.now[self.rank].get() + self.network.delays[self.rank];
        self.network.sent[self.rank]
            .borrow_mut()
            .push_back((arrival, words));
        self.network.messages.set(self.network.messages.get() + 1);
    }
}

impl Comm for TestComm<'_> {
    fn rank(&self) -> u32 {
        self.rank as u32
    }
    fn size(&self) -> u32 {
        2
    }
    async fn send<P: Payload>(&self, _: u32, payload: P) -> Result<(), CommError> {
        self.post(payload);
        Ok(())
    }
    async fn send_sync<P: Payload>(&self, _: u32, payload: P) -> Result<(), CommError> {
        self.post(payload);
        let taken = || {
            if self.network.sent[self.rank].borrow().is_empty() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        };
        poll_fn(|_| taken()).await;
        Ok(())
    }
    async fn recv<P: Payload>(&self, from: u32) -> Result<P, CommError> {
        let next = || self.network.sent[from as usize].borrow_mut().pop_front();
        let (arrival, words) = poll_fn(|_| next().map_or(Poll::Pending, Poll::Ready)).await;
        let now = &self.network.now[self.rank];
        now.set(now.get().max(arrival));
        P::get(&words).ok_or(CommError::WrongType { from })
    }
    async fn split(&self, _: Option<u32>, _: u32) -> Result<Option<Self>, CommError> {
        Ok(None)
    }
}

/// Clock of a rank: ahead of true time, and set back once after the given reading.
struct TestClock<'a> {
    comm: &'a TestComm<'a>,
    ahead: u64,
    readings: Cell<u32>,
    set_back_after: Option<u32>,
}

impl Clock for TestClock<'_> {
    fn ticks(&self) -> Ticks {
        let reading = self.readings.replace(self.readings.get() + 1);
        let back = if self.set_back_after.is_some_and(|after| reading > after) {
            1_000_000
        } else {
            0
        };
        Ticks(self.comm.network.now[self.comm.rank].get() + self.ahead - back)
    }
}

/// Polls two ranks in turn until run_both are done.
fn run_both<A, B>(a: impl Future<Output = A>, b: impl Future<Output = B>) -> (A, B) {
    fn advance<T>(task: Pin<&mut impl Future<Output = T>>, done: &mut Option<T>) {
        if done.is_none()
            && let Poll::Ready(result) = task.poll(&mut Context::from_waker(Waker::noop()))
        {
            *done = Some(result);
        }
    }
    let (mut a, mut b) = (pin!(a), pin!(b));
    let mut done = (None, None);
    // Every turn moves a message until run_both are done: more turns than that mean a deadlock.
    for _ in 0..1_000 {
        advance(a.as_mut(), &mut done.0);
        advance(b.as_mut(), &mut done.1);
    }
    done.0.zip(done.1).expect("the ranks are deadlocked")
}

fn model<D: downbeat_clock_core::Domain>() -> ClockModel<Counter, D> {
    ClockModel::through(Ticks(1 << 40), Timestamp::ORIGIN, TickRate::NANOSECOND).unwrap()
}

/// Repeats a measurement on a network with these delays, with a client that is ahead by `ahead -
/// 2^40`. Returns the results and the number of messages of each.
fn measure_repeatedly(
    algorithm: OffsetAlgorithm,
    delays: [u64; 2],
    ahead: u64,
    times: usize,
    set_back_after: Option<u32>,
) -> Vec<(Result<OffsetSample<Local>, SyncError>, u64)> {
    let network = TestNetwork {
        delays,
        ..TestNetwork::default()
    };
    let comms = [0, 1].map(|rank| TestComm {
        network: &network,
        rank,
    });
    let clock_of = |rank: usize, ahead, set_back_after| TestClock {
        comm: &comms[rank],
        ahead,
        readings: Cell::new(0),
        set_back_after,
    };
    let clocks = [
        clock_of(0, ahead, set_back_after),
        clock_of(1, 1 << 40, None),
    ];
    let mut client = OffsetClient::<Local, Global>::new(algorithm, 1).unwrap();
    (0..times)
        .map(|_| {
            network.messages.set(0);
            let (sample, answered) = run_both(
                client.measure(&clocks[0], &model(), &comms[0]),
                answer(&clocks[1], &model::<Global>(), &comms[1], 0),
            );
            answered.unwrap();
            (sample, network.messages.get())
        })
        .collect()
}

proptest! {
    /// With constant delays the error of every estimator is half the difference of the two
    /// directions.
    #[test]
    fn constant_delays_give_the_same_offset_by_every_algorithm(
        delays in [0_u64..1 << 40, 0..1 << 40], ahead in 1_u64 << 39..1 << 50, exchanges in 1_u32..40,
    ) {
        for algorithm in OffsetAlgorithm::all(NonZeroU32::new(exchanges).unwrap()) {
            let doubled = 2 * (i128::from(ahead) - (1 << 40)) + i128::from(delays[1]) - i128::from(delays[0]);
            for (result, _) in measure_repeatedly(algorithm, delays, ahead, 2, None) {
                let error = 2 * i128::from(result.unwrap().offset.as_nanos()) - doubled;
                // Mean-RTT rounds the round trip, and half of it.
                prop_assert!(error.abs() <= 2, "{algorithm}: {error}");
            }
        }
    }

    #[test]
    fn an_exchange_is_two_messages_and_the_round_trip_is_measured_once(exchanges in 1_u32..40) {
        let messages = |algorithm| measure_repeatedly(algorithm, [300, 500], 1 << 41, 3, None).into_iter().map(|(_, messages)| messages);
        let messages = OffsetAlgorithm::all(NonZeroU32::new(exchanges).unwrap()).map(|algorithm| messages(algorithm).collect::<Vec<_>>());
        // One more message is that of the reference that it is ready.
        let once = 2 * u64::from(exchanges) + 1;
        prop_assert_eq!(messages, [vec![once; 3], vec![2 * once - 1, once, once], vec![once; 3]]);
    }

    /// With constant delays every exchange is as quick as the quickest.
    #[test]
    fn an_early_exit_comes_two_exchanges_after_the_tenth_and_the_reference_knows(exchanges in 1_u32..40) {
        let algorithm = OffsetAlgorithm::Skampi { exchanges: NonZeroU32::new(exchanges).unwrap(), early_exit: true };
        for (result, messages) in measure_repeatedly(algorithm, [300, 500], 1 << 41, 3, None) {
            prop_assert_eq!(messages, 1 + 2 * u64::from(exchanges.min(12)));
            prop_assert_eq!(result.unwrap().offset, Duration::from_nanos((1 << 40) + 100));
        }
    }

    /// The session ends at once, also for the reference, and the next one is not affected.
    #[test]
    fn a_clock_that_steps_back_fails_only_its_own_session(exchanges in 1_u32..40, at in 0_u32..80) {
        // Set back between the timestamps of an exchange; the first reading is before the session.
        let after = 1 + at % (2 * exchanges) / 2 * 2;
        for algorithm in OffsetAlgorithm::all(NonZeroU32::new(exchanges).unwrap()) {
            let results = measure_repeatedly(algorithm, [300, 500], 1 << 41, 2, Some(after));
            let by = Duration::from_nanos(1_000_000 - 800);
            prop_assert_eq!(results[0].0, Err(SyncError::Fit(FitError::SteppedBack { by })));
            let offset = (1 << 41) - (1 << 40) - 1_000_000 + 100;
            prop_assert_eq!(results[1].0.unwrap().offset, Duration::from_nanos(offset));
        }
    }
}

#[test]
fn a_blocking_call_on_a_suspending_backend_is_an_error() {
    let network = TestNetwork::default();
    let comm = TestComm {
        network: &network,
        rank: 1,
    };
    let clock = TestClock {
        comm: &comm,
        ahead: 0,
        readings: Cell::new(0),
        set_back_after: None,
    };
    let result = answer_blocking(&clock, &model::<Global>(), &comm, 0);
    assert_eq!(result, Err(CommError::NotReady));
}
