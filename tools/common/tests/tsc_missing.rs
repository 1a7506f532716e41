//! If one rank may not read the time stamp counter, all ranks fail and none waits for it.

#![cfg(target_os = "linux")]

use downbeat_common::{Failure, agree};
use downbeat_sync::{Comm, CommError, ThreadCluster, block_on_ready};
use downbeat_timers::{ClockUnavailable, TscClock};

/// Switches reading the counter on or off for the calling thread.
fn allow_counter(allowed: bool) {
    let mode = if allowed {
        libc::PR_TSC_ENABLE
    } else {
        libc::PR_TSC_SIGSEGV
    };
    // SAFETY: the call takes a number. Nothing reads the counter while it is off, not even for the time.
    let done = unsafe { libc::prctl(libc::PR_SET_TSC, mode) };
    assert_eq!(done, 0, "the kernel cannot switch the counter off");
}

#[test]
fn a_rank_without_a_counter_fails_all_ranks_with_a_reason() {
    for (ranks, without) in [(1, 0), (2, 1), (5, 3)] {
        let found = ThreadCluster::new(ranks).run(|comm| {
            let rank = comm.rank();
            allow_counter(rank != without);
            let clock = TscClock::detect();
            allow_counter(true);
            assert_eq!(
                clock.err() == Some(ClockUnavailable::Trapped),
                rank == without
            );
            let clock = clock
                .map_err(|why| Failure::Run(format!("rank {rank}: no time stamp counter: {why}")));
            block_on_ready(async { Ok::<_, CommError>(agree(comm, clock).await.map(drop)) })
        });
        let why = format!(
            "rank {without}: no time stamp counter: {}",
            ClockUnavailable::Trapped
        );
        for (rank, outcome) in found.unwrap().into_iter().enumerate() {
            let Failure::Run(message) = outcome.unwrap().unwrap_err() else {
                unreachable!("not a failure of the input")
            };
            assert_eq!(
                message,
                if rank == 0 {
                    why.clone()
                } else {
                    String::new()
                }
            );
        }
    }
}
