//! True errors of global clocks: ranks on one machine share a counter.

use downbeat_clock_core::offset::OffsetSample;
use downbeat_clock_core::{Clock, ClockModel, Counter, Duration, Global, Ticks, Timestamp};
use downbeat_common::records::LargestDeviation;
use downbeat_sync::check::RankOffset;
use downbeat_sync::{CommError, collective};
use downbeat_timers::calibration::Bracket;
use downbeat_timers::skew::SkewedClock;
use downbeat_timers::{SystemClock, TscClock, WtimeClock};

use crate::ranks::JobRanks;
use crate::tsc::CalibratedTsc;

/// A clock whose reading at another reading of the shared counter can be computed.
pub(crate) trait Traceable: Clock {
    /// Returns the reading of this clock when the counter showed `then`, and the largest error of it in nanoseconds; `None`
    /// if the two cannot be compared.
    fn ticks_when(&self, tsc: &CalibratedTsc, then: Ticks) -> Option<(Ticks, u64)>;
}

/// The shared counter itself, as far as those of the cores agree.
impl Traceable for TscClock {
    fn ticks_when(&self, _: &CalibratedTsc, then: Ticks) -> Option<(Ticks, u64)> {
        Some((then, 0))
    }
}

impl Traceable for SystemClock {
    fn ticks_when(&self, tsc: &CalibratedTsc, then: Ticks) -> Option<(Ticks, u64)> {
        compare(self, tsc, then)
    }
}

impl Traceable for WtimeClock<'_> {
    fn ticks_when(&self, tsc: &CalibratedTsc, then: Ticks) -> Option<(Ticks, u64)> {
        compare(self, tsc, then)
    }
}

impl<K: Traceable> Traceable for SkewedClock<K> {
    fn ticks_when(&self, tsc: &CalibratedTsc, then: Ticks) -> Option<(Ticks, u64)> {
        let (ticks, half_width) = self.clock().ticks_when(tsc, then)?;
        Some((self.ticks_at(self.truth().apply(ticks)), half_width))
    }
}

/// Reads both clocks now, and goes back by the time since `then` as the counter tells it.
fn compare(clock: &impl Clock, tsc: &CalibratedTsc, then: Ticks) -> Option<(Ticks, u64)> {
    let now = Bracket::measure(&tsc.clock, clock)?;
    let since = now.middle().signed_since(then) as f64 * tsc.rate.nanos_per_tick();
    let half_width = now.width() as f64 * tsc.rate.nanos_per_tick() / 2.0;
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
    tsc: &CalibratedTsc,
    clock: &impl Traceable,
    shown: &ClockModel<Counter, Global>,
) -> Result<Vec<RankOffset>, CommError> {
    let then = collective::broadcast(ranks.all, tsc.clock.ticks()).await?;
    let reading = clock.ticks_when(tsc, then);
    let own = reading.map_or([0; 3], |(ticks, width)| {
        [1, shown.apply(ticks).as_nanos() as u64, width]
    });
    let all = collective::gather(ranks.all, own).await?;
    let Some([1, reference, reference_width]) = all.first().copied() else {
        return Ok(Vec::new());
    };
    let counters = tsc.counters.unwrap_or_default();
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
    tsc: &CalibratedTsc,
    clock: &impl Traceable,
    global: &ClockModel<Counter, Global>,
) -> Result<Option<LargestDeviation>, CommError> {
    let offsets = true_offsets(ranks, tsc, clock, global).await?;
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
