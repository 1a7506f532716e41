//! Collection of the times of calls from all ranks.
//!
//! Every rank keeps its own observations. Rank 0 gets one of all ranks for each call,
//! reduced on the way through a tree. So its memory does not grow with the number of
//! ranks.

use downbeat_clock_core::Clock;
use downbeat_records::{Observation, ObservationState, Observations};
use downbeat_sync::collective::{broadcast, broadcast_bytes, greatest_to_first};
use downbeat_sync::{Comm, CommError};

use crate::context::{CallSpan, MeasureContext};
use crate::error::MeasureError;
use crate::operation::Coordinator;
use crate::scheme::Basis;
use crate::thinning::Thinning;

/// Number of calls that are reduced together: their messages are short enough for any memory, and long enough for bandwidth.
pub(crate) const TOGETHER: usize = 4_096;

/// Reduces values of calls to the greatest of all ranks, call by call, which rank 0 gets in order. All ranks name the same number
/// of calls.
///
/// No rank needs memory for more than some thousand calls.
///
/// # Errors
/// If a rank is gone.
pub async fn reduce_calls<M: Comm, const N: usize>(
    comm: &M,
    calls: usize,
    own: impl Fn(usize) -> [i64; N],
    mut greatest: impl FnMut([i64; N]),
) -> Result<(), CommError> {
    let mut values = Vec::with_capacity(calls.min(TOGETHER));
    for first in (0..calls).step_by(TOGETHER) {
        values.clear();
        values.extend((first..calls.min(first + TOGETHER)).map(&own));
        greatest_to_first(comm, values.as_flattened_mut()).await?;
        if comm.rank() == 0 {
            values.iter().copied().for_each(&mut greatest);
        }
    }
    Ok(())
}

/// Returns the place of a duration in the order of all: of two, the longer one has the
/// greater place. The place of a place, as bits, is the duration again.
pub(crate) fn place_of(nanos: f64) -> i64 {
    turn_negative(nanos.to_bits() as i64)
}

/// Returns the duration at a place in their order.
pub(crate) fn duration_at(place: i64) -> f64 {
    f64::from_bits(turn_negative(place) as u64)
}

/// Turns the order of negative floating-point numbers around, as [`f64::total_cmp`] does.
fn turn_negative(bits: i64) -> i64 {
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

/// Returns what is reduced of an observation: its state, negative begin, end, and the
/// place of its duration. The least begin is the greatest negative one.
fn words_of(own: &Observation) -> [i64; 4] {
    [
        severity(own.state),
        own.begin.saturating_neg(),
        own.end(),
        place_of(own.nanos),
    ]
}

/// Observations that this rank keeps of a measurement.
#[derive(Debug)]
pub(crate) struct Collection {
    basis: Basis,
    /// Number of calls that a time is the sum of.
    calls_together: f64,
    own: Observations,
    thinning: Thinning,
}

impl Collection {
    /// Creates the collection of a measurement whose times have this basis, and are each
    /// of a number of calls.
    pub(crate) fn new(basis: Basis, calls_together: u32) -> Self {
        Self {
            basis,
            calls_together: f64::from(calls_together),
            own: Observations::default(),
            thinning: Thinning::default(),
        }
    }

    /// Adds a batch of calls, the first of which has the number `first`, of which some
    /// are kept. Rank 0 gets these as on all ranks, and the durations of the valid ones
    /// on the slowest rank.
    pub(crate) async fn add<M: Comm, T: Coordinator, K: Clock>(
        &mut self,
        context: &MeasureContext<'_, M, T, K>,
        spans: Vec<CallSpan>,
        first: u32,
        thinning: Thinning,
    ) -> Result<(Observations, Vec<f64>), MeasureError> {
        self.thinning.raise(thinning, &mut self.own.0);
        let from = self.own.len();
        for (_, span) in (first..)
            .zip(spans)
            .filter(|(call, _)| thinning.keeps(*call))
        {
            // Here ticks become nanoseconds.
            let begin = context.nanos(span.start);
            let nanos = context.nanos(span.end).saturating_sub(begin);
            self.own.0.push(Observation {
                state: span.state,
                begin: match self.basis {
                    Basis::Global | Basis::Local => begin,
                    Basis::Means => 0,
                },
                nanos: nanos as f64 / self.calls_together,
            });
        }
        let own = &self.own[from..];
        let words = |call: usize| words_of(&own[call]);
        let (mut all, mut slowest) = (Vec::new(), Vec::new());
        let add = |[severity, negative_begin, end, place]: [i64; 4]| {
            let (begin, nanos) = match self.basis {
                Basis::Global => (
                    negative_begin.saturating_neg(),
                    end.saturating_add(negative_begin) as f64,
                ),
                // By local clocks, a rank's own duration counts.
                Basis::Local | Basis::Means => (0, duration_at(place)),
            };
            let found = Observation {
                state: worst_state(severity),
                begin,
                nanos,
            };
            if found.is_valid() {
                slowest.push(duration_at(place));
            }
            all.push(found);
        };
        reduce_calls(context.comm, own.len(), words, add).await?;
        Ok((Observations(all), slowest))
    }

    /// Returns the observations of this rank that rank 0 has after its thinning, in the
    /// states that it knows: rank 0 names both.
    pub(crate) async fn finish<M: Comm>(
        mut self,
        comm: &M,
        all: &Observations,
        thinning: Thinning,
    ) -> Result<Observations, CommError> {
        let level = broadcast(comm, u64::from(thinning.level())).await?;
        let thinning = Thinning::at(level as u32);
        self.thinning.raise(thinning, &mut self.own.0);
        let states = all.iter().map(|found| found.state as u8).collect();
        let states = broadcast_bytes(comm, states).await?;
        let states = states
            .iter()
            .filter_map(|place| ObservationState::ALL.get(usize::from(*place)));
        // All ranks have kept the same calls.
        for (own, state) in self.own.0.iter_mut().zip(states) {
            own.state = *state;
        }
        Ok(self.own)
    }
}

/// States of a call on a rank, from the best to the worst: a call is only valid if it is on all ranks.
const STATES: [ObservationState; 3] = [
    ObservationState::Valid,
    ObservationState::Long,
    ObservationState::Late,
];

fn severity(state: ObservationState) -> i64 {
    let place = STATES.iter().position(|one| *one == state);
    place.map_or(0, |place| place as i64)
}

fn worst_state(severity: i64) -> ObservationState {
    let found = usize::try_from(severity).ok();
    let found = found.and_then(|place| STATES.get(place));
    found.copied().unwrap_or(ObservationState::Late)
}
