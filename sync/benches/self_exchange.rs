//! Overhead of the `Comm` trait per message: a send and a receive of a rank to itself through it,
//! compared with the same written by hand as a blocking call. Between two ranks the difference
//! would be lost in the noise of the ping-pong.
//!
//! `cargo bench -p downbeat-sync --bench self_exchange`; with `-- --gate`, the exit code is 1 when
//! the overhead exceeds the nanosecond that the project promises. The two alternate, so that
//! changes of the machine do not favour one of them.

#![expect(clippy::print_stdout, reason = "the benchmark prints its results")]
#![expect(clippy::expect_used, reason = "benchmarks fail by panics")]

use std::hint::{black_box, spin_loop};
use std::process::ExitCode;
use std::time::Instant;

use downbeat_sync::internal::{Mailbox, Sleeper};
use downbeat_sync::{Comm, CommError, ThreadCluster, ThreadComm, block_on_ready};
use downbeat_timers::cores::pin_rank;

const TURNS: usize = 2_000;
const EXCHANGES: u32 = 5_000;
const PROMISED: f64 = 1.0;

fn main() -> ExitCode {
    let found = ThreadCluster::new(1)
        .pin(pin_rank)
        .run(measure)
        .expect("a thread can be started");
    let [by_hand, by_comm] = found[0];
    let added = by_comm - by_hand;
    println!("| send and receive to oneself | ns |\n|---|---|");
    println!("| by hand, blocking | {by_hand:.2} |\n| through `Comm` | {by_comm:.2} |");
    println!(
        "\n| bound | found | must not exceed |\n|---|---|---|\n| added by `Comm`, ns | {added:.2} | {PROMISED:.2} |"
    );
    u8::from(added > PROMISED && std::env::args().any(|argument| argument == "--gate")).into()
}

/// Returns the median times of an exchange by hand and by the trait, in nanoseconds.
fn measure(comm: &ThreadComm) -> [f64; 2] {
    let links = [(Mailbox::<6>::new(), Sleeper::new())];
    let mut times = [const { vec![] }; 2];
    for _ in 0..TURNS {
        times[0].push(time(|| {
            exchange_by_hand(black_box(&links), black_box(0), black_box(7))
        }));
        times[1].push(time(|| {
            exchange_by_comm(black_box(comm), black_box(0), black_box(7)).ok()
        }));
    }
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    })
}

fn time(mut exchange: impl FnMut() -> Option<u64>) -> f64 {
    let start = Instant::now();
    for _ in 0..EXCHANGES {
        black_box(exchange());
    }
    start.elapsed().as_nanos() as f64 / f64::from(EXCHANGES)
}

#[inline]
fn exchange_by_comm(comm: &ThreadComm, peer: u32, ball: u64) -> Result<u64, CommError> {
    block_on_ready(async {
        comm.send(peer, ball).await?;
        comm.recv::<u64>(peer).await
    })
}

/// Includes the minimum work of any communicator: find the other rank, and wake it if it sleeps.
#[inline]
fn exchange_by_hand(links: &[(Mailbox<6>, Sleeper)], peer: usize, ball: u64) -> Option<u64> {
    let (mailbox, sleeper) = links.get(peer)?;
    while mailbox.try_put(&[ball, 0, 0, 0, 0, 0], 1).is_err() {
        spin_loop();
    }
    sleeper.nudge();
    let (mailbox, sleeper) = links.get(peer)?;
    let words = loop {
        match mailbox.try_take(1) {
            Ok((words, _)) => break words,
            Err(_) => spin_loop(),
        }
    };
    sleeper.nudge();
    Some(words[0])
}
