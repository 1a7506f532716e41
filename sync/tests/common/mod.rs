//! Helpers of several test programs.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use downbeat_sync::{ClusterError, ThreadCluster, ThreadComm};

/// Runs `program` on this number of ranks; fails after a minute, which means a deadlock.
#[expect(clippy::expect_used, reason = "test helpers fail like tests")]
pub(crate) fn run<T: Send + 'static>(
    ranks: u32,
    program: impl Fn(&ThreadComm) -> T + Send + Sync + 'static,
) -> Result<Vec<T>, ClusterError> {
    let (done, result) = mpsc::channel();
    thread::spawn(move || done.send(ThreadCluster::new(ranks).run(program)));
    result
        .recv_timeout(Duration::from_secs(60))
        .expect("the ranks are deadlocked")
}
