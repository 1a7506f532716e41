//! Blocking calls of `async` functions.

use core::pin::pin;
use core::task::{Context, Poll, Waker};

use crate::CommError;

/// Runs a future that never suspends: an algorithm on a backend whose calls are complete when they
/// return.
///
/// # Errors
/// The error of the algorithm; [`CommError::NotReady`] if it suspends, as a simulated rank does,
/// which only its simulator can run. The work is then incomplete.
///
/// ```
/// use downbeat_sync::{CommError, block_on_ready};
///
/// assert_eq!(block_on_ready(async { Ok::<_, CommError>(1 + 1) }), Ok(2));
/// assert_eq!(block_on_ready(core::future::pending::<Result<(), _>>()), Err(CommError::NotReady));
/// ```
#[inline]
pub fn block_on_ready<T, E: From<CommError>>(
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Err(CommError::NotReady.into()),
    }
}
