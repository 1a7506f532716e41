//! What several test programs need.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use downbeat_sync::{ClusterError, ThreadCluster, ThreadComm};

/// Runs `program` on so many ranks; fails if that takes so long that it must have got stuck.
#[expect(clippy::expect_used, reason = "a test's helpers fail like the test")]
pub(crate) fn run<T: Send + 'static>(
    ranks: u32,
    program: impl Fn(&ThreadComm) -> T + Send + Sync + 'static,
) -> Result<Vec<T>, ClusterError> {
    let (done, result) = mpsc::channel();
    thread::spawn(move || done.send(ThreadCluster::new(ranks).run(program)));
    result
        .recv_timeout(Duration::from_secs(60))
        .expect("the ranks wait for each other for ever")
}
