//! Agreement of ranks on the first of all errors.

use downbeat_sync::Comm;
use downbeat_sync::collective::all_reduce;

use super::super::TraceError;
use super::CorrectionError;
use super::exchange::heard;
use super::words::{event_of, word_of};

/// Makes all ranks fail with the first of all errors, if there is any. Errors are in the
/// order of their keys.
pub(super) async fn agree<C: Comm>(
    comm: &C,
    fault: Option<(u64, TraceError)>,
) -> Result<(), CorrectionError> {
    const NOTHING: [u64; 2] = [u64::MAX; 2];
    let mine = fault.map_or(NOTHING, |(key, _)| [key, comm.rank().into()]);
    let first = all_reduce(comm, mine, Ord::min).await?;
    if first == NOTHING {
        return Ok(());
    }
    let words = fault.filter(|_| mine == first);
    let words = words.map_or([0; 3], |(_, why)| words_of(why));
    Err(CorrectionError::Trace(error_of(
        all_reduce(comm, words, heard).await?,
    )))
}

/// Encodes an error that is found after all events were added.
fn words_of(why: TraceError) -> [u64; 3] {
    match why {
        TraceError::Decreasing(event) => [0, word_of(event), 0],
        TraceError::TooFar(event) => [1, word_of(event), 0],
        TraceError::OtherKind { event, other } => [2, word_of(event), word_of(other)],
        TraceError::OtherRoot { event, other } => [3, word_of(event), word_of(other)],
        other => {
            debug_assert!(false, "{other} is found when events are added");
            [u64::MAX; 3]
        }
    }
}

fn error_of([kind, word, other]: [u64; 3]) -> TraceError {
    let [event, other] = [word, other].map(event_of);
    match kind {
        0 => TraceError::Decreasing(event),
        1 => TraceError::TooFar(event),
        2 => TraceError::OtherKind { event, other },
        _ => TraceError::OtherRoot { event, other },
    }
}
