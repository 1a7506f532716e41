//! True errors of global clocks: ranks on one machine share a counter.

use downbeat_clock_core::offset::OffsetSample;
use downbeat_clock_core::{Clock, ClockModel, Counter, Duration, Global, Ticks, Timestamp};
use downbeat_sync::check::RankOffset;
use downbeat_sync::{CommError, collective};
use downbeat_timers::AnyClock;
use downbeat_timers::calibration::Bracket;

use crate::Job;
use crate::clock::{CalibratedCounter, JobClock};
use crate::ranks::JobRanks;

/// Returns the reading of a clock when the shared counter showed `then`, and its largest
/// error;
/// `None` if the two cannot be compared.
fn ticks_when<Own: Clock>(
    clock: &AnyClock<Own>,
    counter: &CalibratedCounter,
    then: Ticks,
) -> Option<(Ticks, Duration)> {
    match clock {
        // The shared counter itself, as far as those of the cores agree.
        AnyClock::Machine(clock) if clock.name() == counter.time.clock.name() => {
            Some((then, Duration::ZERO))
        }
        AnyClock::Skewed(clock) => {
            let (ticks, half_width) = ticks_when(clock.clock(), counter, then)?;
            Some((clock.ticks_at(clock.truth().apply(ticks)), half_width))
        }
        other => compare(other, counter, then),
    }
}

/// Reads both clocks now, and goes back by the time since `then` as the counter tells it.
fn compare(
    clock: &impl Clock,
    counter: &CalibratedCounter,
    then: Ticks,
) -> Option<(Ticks, Duration)> {
    let now = Bracket::measure(&counter.time.clock, clock)?;
    let since = now.middle().signed_since(then) as f64 * counter.rate().nanos_per_tick();
    let half_width = now.width() as f64 * counter.rate().nanos_per_tick() / 2.0;
    Some((
        Ticks(
            now.reference
                .0
                .saturating_add_signed(-(since.round() as i64)),
        ),
        Duration::from_nanos(half_width.ceil() as i64),
    ))
}

/// Returns true if a clock reads the shared counter, so that its errors are known for all times.
pub(crate) fn reads_counter<Own>(clock: &AnyClock<Own>, counter: &CalibratedCounter) -> bool
where
    Own: Clock,
{
    match clock {
        AnyClock::Machine(clock) => clock.name() == counter.time.clock.name(),
        AnyClock::Skewed(clock) => reads_counter(clock.clock(), counter),
        _ => false,
    }
}

/// Returns the true offsets to rank 0, this long after now, of what all ranks show that can be compared, those of rank 0 first; only on
/// rank 0. All ranks call this.
pub(crate) async fn true_offsets<J: Job>(
    ranks: &JobRanks<'_, J>,
    counter: &CalibratedCounter,
    clock: &JobClock<J>,
    shown: &ClockModel<Counter, Global>,
    after: Duration,
) -> Result<Vec<RankOffset>, CommError> {
    let now = counter.time.model.apply(counter.time.clock.ticks());
    let then = counter.time.model.invert(now + after);
    let then = collective::broadcast(ranks.all, then).await?;
    let reading = ticks_when(clock, counter, then);
    let own = reading.map_or(
        (false, Timestamp::ORIGIN, Duration::ZERO),
        |(ticks, width)| (true, shown.apply(ticks), width),
    );
    let all = collective::gather(ranks.all, own).await?;
    let Some((true, reference, reference_width)) = all.first().copied() else {
        return Ok(Vec::new());
    };
    let counters = counter.agreement.unwrap_or_default();
    let offset = |(rank, (_, at, width))| {
        // Rank 0 has read its own counter; those of other cores may differ.
        let (of_reference, counters) = match rank {
            0 => (Duration::ZERO, Some(Duration::ZERO)),
            _ => (reference_width, counters.within),
        };
        RankOffset {
            rank,
            sample: Some(OffsetSample {
                at,
                offset: at - reference,
                half_width: counters.map(|counters| width + of_reference + counters),
            }),
        }
    };
    let comparable = (0..).zip(all).filter(|(_, (comparable, ..))| *comparable);
    Ok(comparable.map(offset).collect())
}
