//! What a message costs: through a bare mailbox, through a blocking communicator written by hand, and through the `Comm`
//! trait.
//!
//! The exchange with oneself shows what the trait adds, which is far below the noise of the ping-pong. Compare within
//! one run.

use std::error::Error;
use std::hint::{black_box, spin_loop};
use std::thread;

use criterion::{Criterion, Throughput};
use downbeat_sync::{Comm, CommError, Mailbox, Obstacle, Sleeper, ThreadCluster, ThreadComm, block_on_ready};
use downbeat_timers::{allowed_cores, pin_to};

/// Ends a ping-pong.
const STOP: u64 = u64::MAX;

fn main() -> Result<(), Box<dyn Error>> {
    let cores = allowed_cores();
    let pin = |rank: u32| cores.iter().cycle().nth(rank as usize).map_or(Ok(()), |core| pin_to(*core));
    ThreadCluster::new(1).pin(pin).run(with_oneself)?;
    ThreadCluster::new(2).pin(pin).run(between_ranks)?;
    bare_ping_pong(&pin)?;
    Criterion::default().configure_from_args().final_summary();
    Ok(())
}

fn with_oneself(comm: &ThreadComm) {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("with oneself");
    group.throughput(Throughput::Elements(1));

    let mailboxes = [Mailbox::<6>::new()];
    group.bench_function("mailbox", |bencher| {
        let mailboxes = black_box(&mailboxes[..]);
        bencher.iter(|| {
            let mailbox = &mailboxes[black_box(0_usize)];
            put(mailbox, black_box(7_u64));
            take(mailbox)
        });
    });
    let links = [(Mailbox::<6>::new(), Sleeper::new())];
    group.bench_function("by hand", |bencher| {
        let links = black_box(&links[..]);
        bencher.iter(|| {
            let peer = black_box(0_usize);
            send_by_hand(links, peer, black_box(7_u64))?;
            recv_by_hand(links, peer)
        });
    });
    group.bench_function("comm", |bencher| {
        bencher.iter(|| {
            let peer = black_box(0_u32);
            block_on_ready(async {
                comm.send(peer, black_box(7_u64)).await?;
                comm.recv::<u64>(peer).await
            })
        });
    });
    group.finish();
}

fn between_ranks(comm: &ThreadComm) -> Result<(), CommError> {
    if comm.rank() == 1 {
        return block_on_ready(echo(comm));
    }
    let mut criterion = Criterion::default().configure_from_args();
    criterion.bench_function("ping-pong/comm", |bencher| {
        bencher.iter(|| {
            block_on_ready(async {
                comm.send(1, black_box(7_u64)).await?;
                comm.recv::<u64>(1).await
            })
        });
    });
    block_on_ready(comm.send(1, STOP))
}

async fn echo(comm: &ThreadComm) -> Result<(), CommError> {
    loop {
        match comm.recv::<u64>(0).await? {
            STOP => return Ok(()),
            ball => comm.send(0, ball).await?,
        }
    }
}

fn bare_ping_pong<E: Error + Send + 'static>(pin: &(impl Fn(u32) -> Result<(), E> + Sync)) -> Result<(), E> {
    let (there, back) = (Mailbox::<6>::new(), Mailbox::<6>::new());
    thread::scope(|scope| {
        let echo = scope.spawn(|| {
            pin(1)?;
            loop {
                match take(&there) {
                    STOP => return Ok(()),
                    ball => put(&back, ball),
                }
            }
        });
        pin(0)?;
        let mut criterion = Criterion::default().configure_from_args();
        criterion.bench_function("ping-pong/mailbox", |bencher| {
            bencher.iter(|| {
                put(&there, black_box(7_u64));
                take(&back)
            });
        });
        put(&there, STOP);
        echo.join().unwrap_or(Ok(()))
    })
}

/// What any communicator must do besides: find the other rank, and wake it if it sleeps.
fn send_by_hand(links: &[(Mailbox<6>, Sleeper)], to: usize, ball: u64) -> Option<()> {
    let (mailbox, sleeper) = links.get(to)?;
    put(mailbox, ball);
    sleeper.nudge();
    Some(())
}

fn recv_by_hand(links: &[(Mailbox<6>, Sleeper)], from: usize) -> Option<u64> {
    let (mailbox, sleeper) = links.get(from)?;
    let ball = take(mailbox);
    sleeper.nudge();
    Some(ball)
}

fn put(mailbox: &Mailbox<6>, ball: u64) {
    while mailbox.try_put(&[ball, 0, 0, 0, 0, 0], 1).is_err() {
        spin_loop();
    }
}

fn take(mailbox: &Mailbox<6>) -> u64 {
    loop {
        match mailbox.try_take(1) {
            Ok((words, _)) => return words[0],
            Err(Obstacle::NotYet | Obstacle::Gone(_)) => spin_loop(),
        }
    }
}
