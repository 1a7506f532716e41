//! Whole correction of a trace: one direction from its measured times to corrected ones, with a
//! check at every stage.

use downbeat_clock_core::{Duration, Global, Timestamp};
use downbeat_sync::Comm;
use downbeat_sync::collective::all_reduce;

use super::check::Verdict;
use super::correction_error::CorrectionError;
use super::deviation::{Deviation, TruthComparison};
use super::logical::ControlVariable;
use super::presync::{
    ClockMaps, ClockSample, Interpolation, MessageHulls, PreSynchronization, Sessions,
};
use super::ranks::{TracePart, common_span};
use super::{
    Array, ControlledLogicalClock, ForwardPass, Latencies, NoRoom, Resolution, Totals, Trace,
};

/// Trace as measured, with what is known about its clocks. Ranks that share the trace have one each.
#[derive(Debug)]
pub struct MeasuredTrace {
    /// Events of this rank, with the times of their clocks.
    pub trace: TracePart,
    /// Comparisons of the locations' clocks with that of the master, by location and session; all
    /// ranks have all of them.
    pub sessions: Sessions,
    /// Same trace with true times, to compare the corrected ones with.
    pub truth: Option<TracePart>,
}

/// Settings of a correction.
#[derive(Clone, Copy, Debug)]
pub struct CorrectionSettings {
    /// Pre-synchronization; `None` if the measured times are those of one clock.
    pub pre_synchronization: Option<PreSynchronization>,
    /// Minimum latencies of messages; `None` to measure them in the trace.
    pub latencies: Option<Latencies>,
    /// Logical clock, apart from its latencies and its control variable.
    pub clock: ControlledLogicalClock,
    /// Speed of clocks after they were moved forward, in the first pass; `None` to derive
    /// it from the largest violation after pre-synchronization, and the time between two
    /// comparisons of the clocks, or that of the trace: see
    /// [`ControlVariable::for_errors`].
    pub control: Option<ControlVariable>,
    /// True to move the events before jumps, too.
    pub backward: bool,
    /// True to end after pre-synchronization: no event is moved, and violations may be
    /// left. Possible in memory only.
    pub only_pre_synchronized: bool,
    /// Resolution of the times that are written, which are never before the origin: if
    /// pre-synchronization leads to some, all times are shifted. If its ticks are longer
    /// than a nanosecond, all corrected times are those of ticks; latencies and distances
    /// are rounded up to them.
    pub resolution: Option<Resolution>,
}

/// Report on a correction, the same on all ranks.
#[derive(Clone, Debug)]
pub struct CorrectionReport {
    /// Numbers of events, messages and operations.
    pub totals: Totals,
    /// True if clocks were pre-synchronized; false if all were taken as correct.
    pub clocks_mapped: bool,
    /// Number of locations without samples, whose clocks were taken as correct.
    pub unknown_clocks: usize,
    /// Number of sessions left out because they contradict earlier ones.
    pub sessions_left_out: usize,
    /// Upper limit of the errors of the pre-synchronized clocks, if the method states one: see
    /// [`ClockMaps::bound`](crate::presync::ClockMaps::bound).
    pub clock_error: Option<Duration>,
    /// Minimum latencies, as given or measured.
    pub latencies: Latencies,
    /// Levels of latencies at which there are different clocks, in the order of
    /// [`Latencies::levels`]; those of them that are [unknown](Latencies::unknown) may be too small.
    pub levels: [bool; 3],
    /// Passes in their order; the last one gave the result.
    pub passes: Vec<ForwardPass>,
    /// Number of receives and exits that were moved farther than the events before them.
    pub jumps: u64,
    /// Violations by the measured times.
    pub as_measured: Verdict,
    /// Violations after pre-synchronization.
    pub pre_synchronized: Verdict,
    /// Violations after the correction: none, if there was one.
    pub corrected: Verdict,
    /// Change of times and intervals since pre-synchronization.
    pub deviation: Deviation,
    /// Errors after pre-synchronization and after the correction; `None` if the truth is unknown.
    pub truth: Option<[TruthComparison; 2]>,
}

/// Corrected trace. Ranks that share it have one each.
#[derive(Debug)]
pub struct CorrectedTrace {
    /// Events of this rank, with their pre-synchronized times.
    pub trace: TracePart,
    /// Corrected times of the events of this rank, by location.
    pub times: Vec<Array<Timestamp<Global>>>,
    /// Sessions, mapped to the same clock.
    pub sessions: Sessions,
}

/// Corrects a trace: maps its times to one clock, and moves events by the controlled
/// logical clock. Returns the report and the corrected trace after a check that no
/// violation is left, unless only pre-synchronization is wanted. Collective.
///
/// ```
/// use downbeat_clock_core::{Duration, Timestamp};
/// use downbeat_sync::ThreadComm;
/// use downbeat_trace::{Event, CorrectionSettings, Latencies, Matching, MeasuredTrace, Place, TraceBuilder};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let mut builder = TraceBuilder::new(Matching::default());
/// let sender = builder.add_location(Place { node: 0, process: 0 })?;
/// let receiver = builder.add_location(Place { node: 1, process: 1 })?;
/// let world = builder.add_communicator(&[sender, receiver])?;
/// builder.push(sender, Timestamp::from_nanos(500), Event::Send { to: receiver.into(), communicator: world.into(), tag: 7, request: None, bytes: None })?;
/// builder.push(receiver, Timestamp::from_nanos(300), Event::Receive { from: sender.into(), communicator: world.into(), tag: 7, request: None, bytes: None })?;
/// let source = MeasuredTrace { trace: builder.finish()?.into(), sessions: vec![], truth: None };
///
/// let mut settings = CorrectionSettings::default();
/// settings.latencies = Latencies::new(Duration::ZERO, Duration::ZERO, Duration::from_nanos(20));
/// let comm = ThreadComm::alone();
/// let correct = downbeat_trace::correct(&comm, source, &settings);
/// let (report, corrected) = downbeat_sync::block_on_ready(correct)?;
/// assert_eq!(corrected.times[1][0], Timestamp::from_nanos(520));
/// assert_eq!((report.as_measured.messages.violated, report.corrected.messages.violated), (1, 0));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the sessions are ones that no clock can have produced, the truth belongs to another trace,
/// events wait for each other in a cycle, or a rank is gone; on all ranks.
pub async fn correct<C: Comm>(
    comm: &C,
    source: MeasuredTrace,
    settings: &CorrectionSettings,
) -> Result<(CorrectionReport, CorrectedTrace), CorrectionError> {
    let MeasuredTrace {
        mut trace,
        mut sessions,
        truth,
    } = source;
    let workers = settings.clock.workers;
    if let Some(truth) = &truth {
        trace.agree_on_events(truth, comm).await?;
    }
    let maps = settings.clock_maps(&trace, &sessions, comm).await?;
    let measured = settings
        .pre_synchronize(&maps, &mut trace, &mut sessions, comm)
        .await?;
    let latencies = match settings.latencies {
        Some(latencies) => latencies,
        None => Latencies::measured_in_part(&trace, workers, comm).await?,
    };
    let now = trace.times();
    let pre_synchronized = Verdict::of_part(&trace, &now, &latencies, workers, comm).await?;
    let as_measured = match measured {
        Some(then) => Verdict::of_part(&trace, &then, &latencies, workers, comm).await?,
        None => pre_synchronized.clone(),
    };

    let span = common_span(trace.span(), comm).await?;
    let mut clock = settings.clock;
    clock.latencies = latencies;
    clock.rule.control = settings.control(&pre_synchronized, &sessions, span);
    let possible = match settings.only_pre_synchronized {
        true => PossibleTimes {
            times: copied(&trace)?,
            passes: vec![],
            jumps: 0,
        },
        false => settings.possible_times(clock, &mut trace, comm).await?,
    };
    let PossibleTimes {
        times,
        passes,
        jumps,
    } = possible;
    let mut found = pre_synchronized.clone();
    if !settings.only_pre_synchronized {
        found = Verdict::of_part(&trace, &times, &latencies, workers, comm).await?;
        let violations = found.violations_since(&pre_synchronized);
        if violations > 0 {
            return Err(CorrectionError::Violated(violations));
        }
    }
    let report = CorrectionReport {
        totals: trace.totals(comm).await?,
        clocks_mapped: maps.are_needed(),
        unknown_clocks: maps.unknown,
        sessions_left_out: maps.left_out,
        clock_error: maps.bound,
        latencies,
        levels: trace.levels(),
        passes,
        jumps,
        as_measured,
        pre_synchronized,
        corrected: found,
        deviation: Deviation::of_part(&trace, &times, workers, comm).await?,
        truth: errors(&trace, &times, truth.as_ref(), comm).await?,
    };
    let corrected = CorrectedTrace {
        trace,
        times,
        sessions,
    };
    Ok((report, corrected))
}

/// Times by the logical clock, and how it found them.
struct PossibleTimes {
    times: Vec<Array<Timestamp<Global>>>,
    passes: Vec<ForwardPass>,
    jumps: u64,
}

/// Returns the errors before and after the correction, if the truth is known.
async fn errors<C: Comm>(
    trace: &TracePart,
    times: &[Array<Timestamp<Global>>],
    truth: Option<&TracePart>,
    comm: &C,
) -> Result<Option<[TruthComparison; 2]>, CorrectionError> {
    let Some(truth) = truth else {
        return Ok(None);
    };
    let (before, truth) = (trace.times(), truth.times());
    Ok(Some([
        TruthComparison::of_part(trace, &before, &truth, comm).await?,
        TruthComparison::of_part(trace, times, &truth, comm).await?,
    ]))
}

impl CorrectionSettings {
    /// Maps the times of a trace to one clock, and to the resolution of its archive. Returns the
    /// measured times if they change.
    async fn pre_synchronize<C: Comm>(
        &self,
        maps: &ClockMaps,
        trace: &mut TracePart,
        sessions: &mut Sessions,
        comm: &C,
    ) -> Result<Option<Vec<Array<Timestamp<Global>>>>, CorrectionError> {
        let mut measured = None;
        if maps.are_needed() {
            measured = Some(copied(trace)?);
            let before = common_span(trace.span(), comm).await?;
            trace.correct(maps, comm).await?;
            maps.correct_samples(sessions);
            let after = common_span(trace.span(), comm).await?;
            if let Some(([before, _], [after, _])) =
                before.zip(after).filter(|_| self.resolution.is_some())
                && after < Timestamp::ORIGIN
                && before >= Timestamp::ORIGIN
            {
                // One clock is as good as another that differs by a constant.
                trace.trace_mut().shift(before - after)?;
            }
        }
        if let Some(resolution) = self.coarse_resolution() {
            if measured.is_none() {
                measured = Some(copied(trace)?);
            }
            trace.trace_mut().put_in_ticks(resolution);
            trace.trace_mut().put_in_nanos(resolution);
        }
        Ok(measured)
    }

    /// Corrects the times by the logical clock, forward and backward.
    async fn possible_times<C: Comm>(
        &self,
        mut clock: ControlledLogicalClock,
        trace: &mut TracePart,
        comm: &C,
    ) -> Result<PossibleTimes, CorrectionError> {
        let resolution = self.coarse_resolution();
        if let Some(resolution) = resolution {
            clock = resolution.clock(&clock);
            trace.trace_mut().put_in_ticks(resolution);
        }
        let mut corrected = clock.forward_part(trace, comm).await?;
        let jumps = corrected.jumps().count() as u64;
        let jumps = all_reduce(comm, jumps, |one, other| one + other).await?;
        if self.backward {
            let amortize = corrected.amortize_part(trace, clock.gradient, comm);
            amortize.await?;
        }
        let mut passes = corrected.passes().to_vec();
        let mut times = corrected.into_times();
        if let Some(resolution) = resolution {
            passes = passes
                .into_iter()
                .map(|pass| resolution.pass(pass))
                .collect();
            resolution.times(&mut times);
            trace.trace_mut().put_in_nanos(resolution);
        }
        Ok(PossibleTimes {
            times,
            passes,
            jumps,
        })
    }

    /// Returns the resolution of the archive, if it is coarser than nanoseconds.
    fn coarse_resolution(&self) -> Option<Resolution> {
        self.resolution.filter(|resolution| resolution.is_coarse())
    }

    /// Returns the clock maps of pre-synchronization. All ranks have all sessions, or all
    /// hulls, and find the same.
    async fn clock_maps<C: Comm>(
        &self,
        trace: &TracePart,
        sessions: &Sessions,
        comm: &C,
    ) -> Result<ClockMaps, CorrectionError> {
        let clocks = trace.clocks();
        Ok(match self.pre_synchronization {
            None => ClockMaps::unchanged(clocks.len()),
            Some(method) if method.interpolation == Interpolation::Hull => {
                let least = self.latencies.unwrap_or(Latencies::ZERO);
                let hulls = MessageHulls::of_part(trace, &least, comm).await?;
                method.maps_of_messages(&clocks, hulls)?
            }
            Some(method) => method.maps(&clocks, sessions)?,
        })
    }

    /// Returns the control variable, given the violations after pre-synchronization.
    pub(crate) fn control(
        &self,
        violated: &Verdict,
        sessions: &Sessions,
        span: Option<[Timestamp<Global>; 2]>,
    ) -> ControlVariable {
        let largest = violated.largest_violation;
        let method = self.pre_synchronization.map(|method| method.interpolation);
        let distance = method.and_then(|method| between_sessions(sessions, method));
        let derived = || match distance {
            Some(distance) => {
                ControlVariable::for_errors(largest, distance, ControlVariable::LEAST_COMPARED)
            }
            None => {
                let span = span.map_or(Duration::ZERO, |[first, last]| last - first);
                ControlVariable::for_errors(largest, span, ControlVariable::LEAST)
            }
        };
        self.control.unwrap_or_else(derived)
    }
}

/// Returns the time between two sessions of a clock where the error of its interpolation
/// is 0, the shortest of all clocks; `None` if no clock has two, or the method takes
/// none.
fn between_sessions(sessions: &Sessions, method: Interpolation) -> Option<Duration> {
    let between = |sessions: &Vec<Vec<ClockSample>>| {
        let starts = sessions.iter().filter_map(|session| session.first());
        let starts = starts.map(|sample| sample.at).collect::<Vec<_>>();
        let [first, .., last] = starts[..] else {
            return None;
        };
        match method {
            Interpolation::Unchanged | Interpolation::Hull => None,
            Interpolation::Linear | Interpolation::LeastSquares => Some(last - first),
            Interpolation::Spline => Some((last - first) / (starts.len() as i64 - 1)),
        }
    };
    sessions.iter().filter_map(between).min()
}

impl Default for CorrectionSettings {
    fn default() -> Self {
        Self {
            pre_synchronization: None,
            latencies: None,
            clock: ControlledLogicalClock::new(Latencies::ZERO),
            control: None,
            backward: true,
            only_pre_synchronized: false,
            resolution: None,
        }
    }
}

fn copied(trace: &Trace) -> Result<Vec<Array<Timestamp<Global>>>, NoRoom> {
    let times = trace.times().into_iter();
    let copies = times.map(|times| Array::collect(&trace.store, times.iter().copied()));
    copies.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LocationId, Matching, TraceBuilder};

    #[test]
    fn the_control_variable_fits_what_was_compared() {
        let trace = TraceBuilder::new(Matching::default()).finish().unwrap();
        let violated = |micros| {
            let mut verdict = Verdict::new(&trace, &trace.times(), &Latencies::ZERO).unwrap();
            verdict.largest_violation = Duration::from_micros(micros);
            verdict
        };
        let second = |second: i64| Timestamp::from_nanos(second * 1_000_000_000);
        let clock = |seconds: &[i64]| {
            let nanos = |second: i64| second * 1_000_000_000;
            let session = |second: &i64| {
                vec![ClockSample {
                    at: Timestamp::from_nanos(nanos(*second)),
                    image: Timestamp::from_nanos(nanos(*second)),
                }]
            };
            seconds.iter().map(session).collect()
        };
        let mut settings = CorrectionSettings::default();
        let lost = |settings: &CorrectionSettings, violation, clocks: &[&[i64]]| {
            let sessions = clocks.iter().copied().map(clock).collect();
            let span = Some([second(0), second(100)]);
            let control = settings.control(&violated(violation), &sessions, span);
            (1e9 * (1.0 - control.get())).round()
        };
        // Raw clocks: by the span of the trace.
        assert_eq!(lost(&settings, 100, &[&[], &[0, 10]]), 2e3);
        assert_eq!(lost(&settings, 1_000_000, &[]), 1e6);
        let mut by = |interpolation| {
            settings.pre_synchronization = Some(PreSynchronization {
                interpolation,
                ..PreSynchronization::new(LocationId(0))
            });
            settings
        };
        let spline = by(Interpolation::Spline);
        assert_eq!(lost(&spline, 100, &[&[], &[0]]), 2e3);
        assert_eq!(lost(&spline, 100, &[&[], &[0, 80]]), 2_500.0);
        assert_eq!(lost(&spline, 100, &[&[], &[0, 80], &[0, 10, 80]]), 5e3);
        assert_eq!(lost(&spline, 1_000_000, &[&[], &[0, 80]]), 1e4);
        // A line has no errors at the ends only.
        let line = by(Interpolation::Linear);
        assert_eq!(lost(&line, 100, &[&[], &[0, 80], &[0, 10, 80]]), 2_500.0);
        let hull = by(Interpolation::Hull);
        assert_eq!(lost(&hull, 100, &[&[], &[0, 80]]), 2e3);
        let given = CorrectionSettings {
            control: ControlVariable::new(0.5),
            ..spline
        };
        assert_eq!(lost(&given, 100, &[]), 5e8);
    }
}
