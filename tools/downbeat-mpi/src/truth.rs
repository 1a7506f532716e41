//! True errors of global clocks: ranks on one machine share a counter.

use downbeat_clock_core::offset::OffsetSample;
use downbeat_clock_core::{Clock, ClockModel, Counter, Duration, Global, Ticks, Timestamp};
use downbeat_common::records::LargestDeviation;
use downbeat_sync::check::RankOffset;
use downbeat_sync::{CommError, collective};
use downbeat_timers::MachineClock;
use downbeat_timers::calibration::Bracket;

use crate::clock::{CalibratedCounter, JobClock};
use crate::ranks::JobRanks;

/// Returns the reading of a clock when the shared counter showed `then`, and its largest error in
/// nanoseconds; `None` if the two cannot be compared.
fn ticks_when(
    clock: &JobClock<'_>,
    counter: &CalibratedCounter,
    then: Ticks,
) -> Option<(Ticks, u64)> {
    match clock {
        // The shared counter itself, as far as those of the cores agree.
        JobClock::Machine(MachineClock::Tsc(_) | MachineClock::Cntvct(_)) => Some((then, 0)),
        JobClock::Skewed(clock) => {
            let (ticks, half_width) = ticks_when(clock.clock(), counter, then)?;
            Some((clock.ticks_at(clock.truth().apply(ticks)), half_width))
        }
        other => compare(other, counter, then),
    }
}

/// Reads both clocks now, and goes back by the time since `then` as the counter tells it.
fn compare(clock: &JobClock<'_>, counter: &CalibratedCounter, then: Ticks) -> Option<(Ticks, u64)> {
    let now = Bracket::measure(&counter.time.clock, clock)?;
    let since = now.middle().signed_since(then) as f64 * counter.rate().nanos_per_tick();
    let half_width = now.width() as f64 * counter.rate().nanos_per_tick() / 2.0;
    Some((
        Ticks(
            now.reference
                .0
                .saturating_add_signed(-(since.round() as i64)),
        ),
        half_width.ceil() as u64,
    ))
}

/// Returns the current true offsets to rank 0 of what all ranks show that can be compared, those of rank 0 first; only on rank 0. All ranks
/// call this.
pub(crate) async fn true_offsets(
    ranks: &JobRanks<'_>,
    counter: &CalibratedCounter,
    clock: &JobClock<'_>,
    shown: &ClockModel<Counter, Global>,
) -> Result<Vec<RankOffset>, CommError> {
    let then = collective::broadcast(ranks.all, counter.time.clock.ticks()).await?;
    let reading = ticks_when(clock, counter, then);
    let own = reading.map_or([0; 3], |(ticks, width)| {
        [1, shown.apply(ticks).as_nanos() as u64, width]
    });
    let all = collective::gather(ranks.all, own).await?;
    let Some([1, reference, reference_width]) = all.first().copied() else {
        return Ok(Vec::new());
    };
    let counters = counter.agreement.unwrap_or_default();
    let offset = |(rank, [_, time, width]): (u32, [u64; 3])| {
        // Rank 0 has read its own counter; those of other cores may differ.
        let (of_reference, counters) = match rank {
            0 => (0, Some(Duration::ZERO)),
            _ => (reference_width, counters.within),
        };
        let widths = Duration::from_nanos((width + of_reference) as i64);
        let [at, reference] = [time, reference].map(|nanos| Timestamp::from_nanos(nanos as i64));
        RankOffset {
            rank,
            sample: Some(OffsetSample {
                at,
                offset: at - reference,
                half_width: counters.map(|counters| widths + counters),
            }),
        }
    };
    let comparable = (0..)
        .zip(all)
        .filter(|(_, [comparable, ..])| *comparable == 1);
    Ok(comparable.map(offset).collect())
}

/// Returns the largest current true error of the global clock of any rank, on rank 0. All ranks call this.
pub(crate) async fn largest_error(
    ranks: &JobRanks<'_>,
    counter: &CalibratedCounter,
    clock: &JobClock<'_>,
    global: &ClockModel<Counter, Global>,
) -> Result<Option<LargestDeviation>, CommError> {
    let offsets = true_offsets(ranks, counter, clock, global).await?;
    let known = offsets
        .into_iter()
        .filter_map(|RankOffset { rank, sample }| {
            let OffsetSample {
                offset, half_width, ..
            } = sample?;
            Some(LargestDeviation {
                ns: offset.as_nanos(),
                half_width_ns: half_width.map(Duration::as_nanos),
                rank,
            })
        });
    Ok(LargestDeviation::among(known))
}
