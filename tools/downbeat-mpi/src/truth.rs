//! The true error of global clocks: where all ranks run on one machine, they share a counter.

use downbeat_clock_core::{Clock, ClockModel, Counter, Global, Ticks};
use downbeat_common::records::LargestDeviation;
use downbeat_sync::{CommError, collective};
use downbeat_timers::{Bracket, SkewedClock, SystemClock, TscClock, WtimeClock};

use crate::clock::Tsc;
use crate::ranks::Ranks;

/// A clock of which it can be told what it showed when the shared counter showed something else than now.
pub(crate) trait Traceable: Clock {
    /// What it showed then, and how far that can be wrong, in nanoseconds; `None` if the two cannot be compared.
    fn shown_when(&self, tsc: &Tsc, then: Ticks) -> Option<(Ticks, u64)>;
}

/// The shared counter itself.
impl Traceable for TscClock {
    fn shown_when(&self, _: &Tsc, then: Ticks) -> Option<(Ticks, u64)> {
        Some((then, 0))
    }
}

impl Traceable for SystemClock {
    fn shown_when(&self, tsc: &Tsc, then: Ticks) -> Option<(Ticks, u64)> {
        compared(self, tsc, then)
    }
}

impl Traceable for WtimeClock {
    fn shown_when(&self, tsc: &Tsc, then: Ticks) -> Option<(Ticks, u64)> {
        compared(self, tsc, then)
    }
}

impl<K: Traceable> Traceable for SkewedClock<K> {
    fn shown_when(&self, tsc: &Tsc, then: Ticks) -> Option<(Ticks, u64)> {
        let (ticks, half_width) = self.clock().shown_when(tsc, then)?;
        Some((self.ticks_at(self.truth().apply(ticks)), half_width))
    }
}

/// By reading both clocks now, and going back by the counter for the moment since.
fn compared(clock: &impl Clock, tsc: &Tsc, then: Ticks) -> Option<(Ticks, u64)> {
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

/// The largest true error of any rank's global clock, now, on rank 0. All ranks call this.
pub(crate) async fn largest_error(
    ranks: &Ranks<'_>,
    tsc: &Tsc,
    clock: &impl Traceable,
    global: &ClockModel<Counter, Global>,
) -> Result<Option<LargestDeviation>, CommError> {
    let then = collective::broadcast(ranks.all, tsc.clock.ticks()).await?;
    let shown = clock.shown_when(tsc, then);
    let mine = shown.map_or([0; 3], |(ticks, width)| {
        [1, global.apply(ticks).as_nanos() as u64, width]
    });
    let all = collective::gather(ranks.all, mine).await?;
    let Some([1, reference, its_width]) = all.first().copied() else {
        return Ok(None);
    };
    let known = (0..).zip(&all).filter(|(_, [known, ..])| *known == 1);
    Ok(LargestDeviation::among(known.map(
        |(rank, [_, shown, width])| LargestDeviation {
            ns: (*shown as i64).saturating_sub(reference as i64),
            half_width_ns: Some((width + if rank == 0 { 0 } else { its_width }) as i64),
            rank,
        },
    )))
}
