//! Agreement of ranks on the first of all errors.

use downbeat_sync::Comm;
use downbeat_sync::collective::all_reduce;

use super::super::{LocationId, TraceError};
use super::CorrectionError;
use super::exchange::heard;
use super::words::{event_of, word_of};

/// Key for the order in which errors are reported: disagreements, then messages, then collective
/// operations.
pub(super) type FaultKey = [u64; 3];

/// Makes all ranks fail with the first of all errors, if there is any. A rank that knows only the
/// position of that error leaves it to the others.
pub(super) async fn agree<C: Comm>(
    comm: &C,
    fault: Option<(FaultKey, Option<TraceError>)>,
) -> Result<(), CorrectionError> {
    const NOTHING: [u64; 4] = [u64::MAX; 4];
    let (mine, why) = match fault {
        Some(([a, b, c], why)) => {
            let speaker = if why.is_some() {
                comm.rank().into()
            } else {
                u64::MAX
            };
            ([a, b, c, speaker], why)
        }
        None => (NOTHING, None),
    };
    let first = all_reduce(comm, mine, Ord::min).await?;
    if first == NOTHING {
        return Ok(());
    }
    let words = why.filter(|_| mine == first).map_or([0; 3], words_of);
    Err(CorrectionError::Trace(error_of(
        all_reduce(comm, words, heard).await?,
    )))
}

/// Encodes an error that is found after all events were added.
fn words_of(why: TraceError) -> [u64; 3] {
    match why {
        TraceError::UnmatchedSend(event) => [0, word_of(event), 0],
        TraceError::UnmatchedReceive(event) => [1, word_of(event), 0],
        TraceError::NotEntered(event) => [2, word_of(event), 0],
        TraceError::Absent { event, absent } => [3, word_of(event), absent.0.into()],
        TraceError::Decreasing(event) => [4, word_of(event), 0],
        TraceError::TooFar(event) => [5, word_of(event), 0],
        TraceError::NotLeft(event) => [6, word_of(event), 0],
        TraceError::OtherKind { event, other } => [7, word_of(event), word_of(other)],
        TraceError::OtherRoot { event, other } => [8, word_of(event), word_of(other)],
        other => {
            debug_assert!(false, "{other} is found when events are added");
            [u64::MAX; 3]
        }
    }
}

fn error_of([kind, word, other]: [u64; 3]) -> TraceError {
    let event = event_of(word);
    match kind {
        0 => TraceError::UnmatchedSend(event),
        1 => TraceError::UnmatchedReceive(event),
        2 => TraceError::NotEntered(event),
        3 => TraceError::Absent {
            event,
            absent: LocationId(other as u32),
        },
        4 => TraceError::Decreasing(event),
        5 => TraceError::TooFar(event),
        7 => TraceError::OtherKind {
            event,
            other: event_of(other),
        },
        8 => TraceError::OtherRoot {
            event,
            other: event_of(other),
        },
        _ => TraceError::NotLeft(event),
    }
}
