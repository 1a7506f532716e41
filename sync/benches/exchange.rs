//! Time of a ping-pong of two threads: through bare mailboxes, and through the `Comm` trait.
//! Compare within one run.

use std::error::Error;
use std::hint::{black_box, spin_loop};
use std::thread;

use criterion::Criterion;
use downbeat_sync::internal::{Mailbox, MailboxBlocked};
use downbeat_sync::{Comm, CommError, ThreadCluster, ThreadComm, block_on_ready};
use downbeat_timers::cores::{CoreError, pin_rank};

/// Message that ends a ping-pong.
const STOP: u64 = u64::MAX;

fn main() -> Result<(), Box<dyn Error>> {
    ThreadCluster::new(2).pin(pin_rank).run(between_ranks)?;
    bare_ping_pong()?;
    Criterion::default().configure_from_args().final_summary();
    Ok(())
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

fn bare_ping_pong() -> Result<(), CoreError> {
    let (there, back) = (Mailbox::<6>::new(), Mailbox::<6>::new());
    thread::scope(|scope| {
        let echo = scope.spawn(|| {
            pin_rank(1)?;
            loop {
                match take(&there) {
                    STOP => return Ok(()),
                    ball => put(&back, ball),
                }
            }
        });
        pin_rank(0)?;
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

fn put(mailbox: &Mailbox<6>, ball: u64) {
    while mailbox.try_put(&[ball, 0, 0, 0, 0, 0], 1).is_err() {
        spin_loop();
    }
}

fn take(mailbox: &Mailbox<6>) -> u64 {
    loop {
        match mailbox.try_take(1) {
            Ok((words, _)) => return words[0],
            Err(MailboxBlocked::NotYet | MailboxBlocked::Gone(_)) => spin_loop(),
        }
    }
}
