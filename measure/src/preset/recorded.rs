//! Backend that records the calls of a preset, with a clock that the test controls.

use core::cell::{Cell, RefCell};

use downbeat_clock_core::{Clock, ClockModel, ReadOrdering, TickRate, Ticks, Timestamp};
use downbeat_sync::{Comm, CommError, ThreadCluster, ThreadComm, block_on_ready};

use super::Preset;
use crate::{ClockBasis, Coordinator, MeasureContext, Measurement, Operation};

/// Events on a rank in order, and its clock, which only advances by reading it, barriers and operations.
#[derive(Default)]
struct RecordingRank {
    events: RefCell<Vec<String>>,
    nanos: Cell<i64>,
    /// Duration of reading the clock.
    reading: i64,
    /// Duration of a barrier.
    barrier: i64,
}

impl RecordingRank {
    fn note(&self, event: impl Into<String>) {
        self.events.borrow_mut().push(event.into());
    }

    fn pass(&self, nanos: i64) {
        self.nanos.set(self.nanos.get() + nanos);
    }
}

impl Clock for RecordingRank {
    fn ticks(&self) -> Ticks {
        self.pass(self.reading);
        Ticks(self.nanos.get() as u64)
    }

    fn ordering(&self) -> ReadOrdering {
        ReadOrdering::Fenced
    }
}

impl Coordinator for RecordingRank {
    async fn barrier(&self) -> Result<(), CommError> {
        self.note("barrier");
        self.pass(self.barrier);
        Ok(())
    }

    async fn broadcast(&self, value: u64) -> Result<u64, CommError> {
        self.note("broadcast");
        Ok(value)
    }

    async fn bitwise_or(&self, value: u64) -> Result<u64, CommError> {
        self.note("union");
        Ok(value)
    }
}

/// Operation that takes these times in turn.
struct RecordingOperation<'a> {
    record: &'a RecordingRank,
    preset: Preset,
    nanos: &'a [i64],
    done: usize,
}

/// Number of ranks by which roots rotate.
pub(super) const RANKS: u32 = 3;

impl Operation for RecordingOperation<'_> {
    async fn call(&mut self, number: u32) -> Result<(), CommError> {
        let root = if self.preset.rotates_root() {
            number % RANKS
        } else {
            0
        };
        self.record.note(format!("call {number} root {root}"));
        self.record.pass(self.nanos[self.done % self.nanos.len()]);
        self.done += 1;
        Ok(())
    }
}

/// Measures messages of this size with a given duration of a barrier, and times that the operation takes in turn on each
/// rank. Returns the result and the events on rank 0.
pub(super) fn measure(
    preset: Preset,
    operation: &str,
    bytes: u64,
    barrier: i64,
    times: &[&[i64]],
) -> (Measurement, Vec<String>) {
    let method = preset.method(operation, bytes);
    let program = |comm: &ThreadComm| {
        let (zero, origin, rate) = (Ticks(0), Timestamp::ORIGIN, TickRate::NANOSECOND);
        // The clock must advance while a rank waits for a start.
        let (time, reading) = if method.needs_global_time() {
            (
                ClockBasis::Global(ClockModel::through(zero, origin, rate).unwrap()),
                100,
            )
        } else {
            (
                ClockBasis::Local(ClockModel::through(zero, Timestamp::ORIGIN, rate).unwrap()),
                0,
            )
        };
        let record = RecordingRank {
            reading,
            barrier,
            ..RecordingRank::default()
        };
        let context = MeasureContext {
            comm,
            coordinator: &record,
            clock: &record,
            clock_basis: time,
        };
        let mut operation = RecordingOperation {
            record: &record,
            preset,
            nanos: times[comm.rank() as usize],
            done: 0,
        };
        let measured = block_on_ready(method.measure(&context, &mut operation)).unwrap();
        (measured, record.events.into_inner())
    };
    let (measured, events) = ThreadCluster::new(times.len() as u32)
        .run(program)
        .unwrap()
        .remove(0);
    (measured.unwrap(), events)
}
