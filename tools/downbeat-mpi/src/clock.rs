//! The clock that a rank reads, and the time that it believes in.

use core::fmt;
use std::fs;

use clap::ValueEnum;
use downbeat_clock_core::{
    Clock, ClockModel, Counter, Duration, Local, ModelError, TickRate, Ticks, Timestamp,
};
use downbeat_common::{CalibrationOptions, Failure, SkewSpec, agree};
use downbeat_sync::{Comm, block_on_ready, collective};
use downbeat_timers::{SkewedClock, SystemClock, SystemClockId, Truth, TscClock, WtimeClock};

use crate::ranks::{Ranks, number_of};
use crate::truth::Traceable;
use downbeat_common::block_on_ready_failure;

/// The clocks to choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// The time stamp counter
    Tsc,
    /// CLOCK_MONOTONIC
    Monotonic,
    /// CLOCK_MONOTONIC_RAW
    Raw,
    /// CLOCK_REALTIME, which can be set
    Realtime,
    /// MPI_Wtime
    Wtime,
}

/// As on the command line.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_possible_value()
            .map_or(Ok(()), |value| f.write_str(value.get_name()))
    }
}

/// What works with any clock. Each is a type, and so what reads it is compiled for each.
pub(crate) trait ClockUser {
    /// Works with this one.
    fn with<K: Traceable + Copy>(&self, base: &Timebase<K>) -> Result<(), Failure>;
}

impl Kind {
    /// Has the user work with a clock of this kind. The time stamp counter must be calibrated.
    pub(crate) fn give(
        self,
        ranks: &Ranks<'_>,
        tsc: Option<&Tsc>,
        user: &impl ClockUser,
    ) -> Result<(), Failure> {
        let system = |id| Timebase::system(ranks, id);
        match (self, tsc) {
            (Self::Tsc, Some(tsc)) => user.with(&Timebase::tsc(ranks, tsc)?),
            (Self::Tsc, None) => Err(Failure::run("the time stamp counter is not calibrated")),
            (Self::Monotonic, _) => user.with(&system(SystemClockId::Monotonic)?),
            (Self::Raw, _) => user.with(&system(SystemClockId::MonotonicRaw)?),
            (Self::Realtime, _) => user.with(&system(SystemClockId::Realtime)?),
            (Self::Wtime, _) => user.with(&Timebase::wtime(ranks)?),
        }
    }
}

/// How long the time stamp counter is calibrated.
const CALIBRATION: Duration = Duration::from_millis(50);

/// The time stamp counter of a rank, and how fast it counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tsc {
    pub(crate) clock: TscClock,
    pub(crate) rate: TickRate,
    pub(crate) uncertainty: f64,
}

impl Tsc {
    /// One rank of every node calibrates; the others, which would only disturb it, are told.
    pub(crate) fn calibrated(
        ranks: &Ranks<'_>,
        options: &CalibrationOptions,
    ) -> Result<Self, Failure> {
        let clock = TscClock::detect();
        let calibrated = || {
            let tsc =
                clock.map_err(|why| ranks.failure(format!("no time stamp counter: {why}")))?;
            if ranks.of_node.rank() > 0 {
                return Ok((tsc, None));
            }
            let raw = SystemClock::detect(SystemClockId::MonotonicRaw).map_err(Failure::run)?;
            let known = options.calibrate(&clock, &raw, CALIBRATION)?;
            Ok((
                tsc,
                known.map(|known| (known.calibration.rate(), known.calibration.uncertainty())),
            ))
        };
        let (clock, known) = block_on_ready_failure(agree(ranks.all, calibrated()))?;
        let (rate, uncertainty) = known.unwrap_or((TickRate::NANOSECOND, 0.0));
        // A rate travels as a model.
        let model = ClockModel::<Counter, Local>::through(Ticks(0), Timestamp::ORIGIN, rate)
            .map_err(Failure::run)?;
        let model =
            block_on_ready(collective::broadcast(&ranks.of_node, model)).map_err(Failure::run)?;
        Ok(Self {
            clock,
            rate: model.rate(),
            uncertainty,
        })
    }
}

/// A clock, and what it shows.
#[derive(Clone, Debug)]
pub(crate) struct Timebase<K> {
    pub(crate) clock: K,
    /// The time that the rank believes in.
    pub(crate) local: ClockModel<Counter, Local>,
    /// Equal where ranks read one source, as far as they know.
    pub(crate) source: u64,
}

impl Timebase<SystemClock> {
    pub(crate) fn system(ranks: &Ranks<'_>, id: SystemClockId) -> Result<Self, Failure> {
        let clock = SystemClock::detect(id).map_err(|why| ranks.failure(why));
        let clock = block_on_ready_failure(agree(ranks.all, clock))?;
        // A container may have a time of its own.
        let namespace = fs::read_link("/proc/self/ns/time").unwrap_or_default();
        let local = of_nanoseconds().map_err(Failure::run)?;
        Ok(Self {
            clock,
            local,
            source: number_of(&(id.name(), ranks.boot, namespace)),
        })
    }
}

impl Timebase<WtimeClock> {
    pub(crate) fn wtime(ranks: &Ranks<'_>) -> Result<Self, Failure> {
        let clock = WtimeClock::attach().map_err(Failure::run)?;
        // Whether processes share it, only the check of whoever relies on that can tell.
        let local = of_nanoseconds().map_err(Failure::run)?;
        Ok(Self {
            clock,
            local,
            source: number_of(&("MPI_Wtime", ranks.boot)),
        })
    }
}

impl Timebase<TscClock> {
    pub(crate) fn tsc(ranks: &Ranks<'_>, tsc: &Tsc) -> Result<Self, Failure> {
        let local = since_now(ranks, &tsc.clock, tsc.rate)?;
        Ok(Self {
            clock: tsc.clock,
            local,
            source: number_of(&("TSC", ranks.boot)),
        })
    }
}

impl<K: Clock + Copy> Timebase<K> {
    /// The same clock made wrong. Ranks of a node agree on what is true, so they can also be wrong together.
    pub(crate) fn skewed(
        &self,
        ranks: &Ranks<'_>,
        spec: &SkewSpec,
    ) -> Result<Timebase<SkewedClock<K>>, Failure> {
        let truth: ClockModel<Counter, Truth> =
            since_now(ranks, &self.clock, self.local.rate())?.renamed();
        let which = if spec.is_per_node() {
            ranks.place.node
        } else {
            ranks.all.rank()
        };
        let clock = SkewedClock::new(self.clock, truth, spec.for_clock(which))
            .map_err(|why| Failure::option("--skew", why));
        let clock = block_on_ready_failure(agree(ranks.all, clock))?;
        let local = SkewedClock::<K>::nominal_model().map_err(Failure::run)?;
        Ok(Timebase {
            clock,
            local,
            source: number_of(&(self.source, which)),
        })
    }
}

/// Time that a node's first rank begins now, for all ranks of the node.
fn since_now(
    ranks: &Ranks<'_>,
    clock: &impl Clock,
    rate: TickRate,
) -> Result<ClockModel<Counter, Local>, Failure> {
    let model =
        ClockModel::through(clock.ticks(), Timestamp::ORIGIN, rate).map_err(Failure::run)?;
    block_on_ready(collective::broadcast(&ranks.of_node, model)).map_err(Failure::run)
}

/// What a clock shows that counts nanoseconds.
fn of_nanoseconds() -> Result<ClockModel<Counter, Local>, ModelError> {
    ClockModel::through(Ticks(0), Timestamp::ORIGIN, TickRate::NANOSECOND)
}
