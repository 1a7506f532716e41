//! A clock model that another thread can replace while it is read.

use core::marker::PhantomData;

use crate::affine::Affine;
use crate::bound::drifted;
use crate::latch::{Latch, LatchWriter};
use crate::{
    ClockModel, Counter, CounterInstruction, Domain, Duration, ErrorBound, SlewedModel, Ticks,
    Timestamp,
};

/// A cell with a [`ClockModel`], and the bound of its error, that many threads read while one replaces them.
///
/// Readers take no lock and never wait for a writer, not even for one that was preempted half-way.
///
/// ```
/// use downbeat_clock_core::{ClockModel, Counter, Global, PublishedModel, TickRate, Ticks, Timestamp};
///
/// let first = ClockModel::<Counter, Global>::through(Ticks(0), Timestamp::ORIGIN, TickRate::NANOSECOND)?;
/// let clock = PublishedModel::new(first);
/// assert_eq!(clock.apply(Ticks(7)), Timestamp::from_nanos(7));
///
/// // A resynchronization finds that the clock is 3 ns ahead.
/// let second = ClockModel::through(Ticks(3), Timestamp::ORIGIN, TickRate::NANOSECOND)?;
/// clock.writer().expect("no other writer").publish(second);
/// assert_eq!(clock.apply(Ticks(7)), Timestamp::from_nanos(4));
/// # Ok::<(), downbeat_clock_core::ModelError>(())
/// ```
///
/// # Layout
/// Programs in other languages read the cell in place, as 64-bit words in the byte order of the machine. The lowest 32 bits
/// of the first word are the [number of this layout](Self::LAYOUT), the others the [`CounterInstruction`]. The second word is
/// a sequence number, which selects one of two copies of 24 words: the first copy, which follows it, while it is even, the
/// second while it is odd. A copy is valid if the sequence number is the same before and after it was read. Its words are
///
/// | words | contents |
/// |---|---|
/// | 0, 1 | present line: nanoseconds per tick, whole, and fraction in units of 2^-64 |
/// | 2, 3 | time at tick 0 plus half a nanosecond, in units of 2^-64 ns, a signed number of 128 bits: high word, low word |
/// | 4 | number of ticks from word 5 on to which this line may be applied without a check of overflow |
/// | 5 | tick at which the line begins, or at which it was learned if the clock does not slew |
/// | 6 to 9 | slewing line, as words 0 to 3 |
/// | 10 | tick at which the slewing line begins: it ends at word 5; 0 if the clock shows the present line all the time |
/// | 11 to 14 | earlier line, as words 0 to 3, which ends at word 10 |
/// | 15 | first tick to which it applies |
/// | 16 | tick at which the next two words hold, not before word 5 |
/// | 17, 18 | largest time by which the clock is ahead then, and by which it is behind: signed, in nanoseconds |
/// | 19 | growth of both per tick since then, in units of 2^-64 ns |
/// | 20 | number of ticks since then for which words 16 to 19 hold, with 3 ns for rounding in words 17 and 18 if they grow; 0 if these hold at word 22, without rounding |
/// | 21, 22 | growth per nanosecond, a double; time of the clock for which the bound was stated |
/// | 23 | 0 |
#[derive(Debug)]
#[repr(transparent)]
pub struct PublishedModel<D: Domain> {
    words: Latch<CELL>,
    domain: PhantomData<fn() -> D>,
}

/// Number of words of a copy.
const CELL: usize = 24;
/// Words of the present line that a read needs, in one line of a cache.
const LINE_WORDS: usize = 6;
/// Places of the slewing and the earlier line, and of the ticks where these begin.
const SLEWING: usize = 6;
const SLEW_BEGINS: usize = 10;
const EARLIER: usize = 11;
const SINCE: usize = 15;
const BOUND: usize = 16;
/// Words of a bound that a read needs, from [`BOUND`] on: with those of the model in two lines of a cache.
const BOUND_WORDS: usize = 5;

impl<D: Domain> PublishedModel<D> {
    /// Number of the layout in memory.
    pub const LAYOUT: u32 = 2;

    /// Creates a cell that holds `model`, of whose error nothing is known.
    pub fn new(model: ClockModel<Counter, D>) -> Self {
        Self::with_bound(model, ErrorBound::UNKNOWN, CounterInstruction::None)
    }

    /// Creates a cell that holds `model` and the bound of its error; `instruction` reads the counter.
    pub fn with_bound(
        model: ClockModel<Counter, D>,
        bound: ErrorBound<D>,
        instruction: CounterInstruction,
    ) -> Self {
        let tag = u64::from(Self::LAYOUT) | (instruction as u64) << 32;
        Self {
            words: Latch::new(tag, words(&model.into(), bound)),
            domain: PhantomData,
        }
    }

    /// Applies the model published last to a reading. A reading from before the last change but one is applied to the earlier line.
    #[inline(always)]
    pub fn apply(&self, at: Ticks) -> Timestamp<D> {
        self.apply_near(at).unwrap_or_else(|| self.apply_far(at).0)
    }

    /// Applies the present line to a reading that is on it, and near enough that nothing can overflow.
    #[inline(always)]
    pub(crate) fn apply_near(&self, at: Ticks) -> Option<Timestamp<D>> {
        let words = self.words.read_first::<LINE_WORDS>();
        let [.., span, begins] = words;
        // Earlier ticks wrap to a large distance.
        let is_near = at.0.wrapping_sub(begins) <= span;
        is_near.then(|| Timestamp::from_nanos(Affine::of_words(words).eval_near(at.0)))
    }

    /// Applies the line for a reading; returns false beside it if the reading is from before the earlier line.
    #[inline(never)]
    pub(crate) fn apply_far(&self, at: Ticks) -> (Timestamp<D>, bool) {
        let (present, others) = self
            .words
            .read_two::<LINE_WORDS, { BOUND - SLEWING }>(SLEWING);
        let [slewing @ .., slew_begins, _, _, _, _, since] = others;
        let [_, _, _, _, _, earlier @ .., _] = others;
        let line = if at.0 >= present[5] || slew_begins == 0 {
            Affine::of_words(present)
        } else if at.0 >= slew_begins {
            Affine::of_words(slewing)
        } else {
            Affine::of_words(earlier)
        };
        let shown = Timestamp::from_nanos(line.eval_checked(at.0));
        (shown, at.0 >= since)
    }

    /// Returns the line of the model published last: what the clock shows once it has [slewed](SlewedModel).
    pub fn load(&self) -> ClockModel<Counter, D> {
        self.load_slewed().present()
    }

    /// Returns all lines of the model published last.
    pub fn load_slewed(&self) -> SlewedModel<D> {
        slewed(&self.words.read())
    }

    /// Reads the model published last, and the bound of what the clock shows.
    pub fn load_with_bound(&self) -> (SlewedModel<D>, ErrorBound<D>) {
        let words = self.words.read();
        let shown = slewed(&words);
        let stated = ErrorBound {
            at: Timestamp::from_nanos(words[BOUND + 6] as i64),
            ahead: Duration::from_nanos(words[BOUND + 1] as i64),
            behind: Duration::from_nanos(words[BOUND + 2] as i64),
            drift: f64::from_bits(words[BOUND + 5]),
        };
        let is_near = words[BOUND + 4] > 0;
        let grown = if is_near {
            grown_until(Ticks(words[BOUND]), &shown.present, &stated)
        } else {
            Duration::ZERO
        };
        let bound = ErrorBound {
            ahead: stated.ahead - grown,
            behind: stated.behind - grown,
            ..stated
        };
        (shown, bound)
    }

    /// The exclusive right to replace the model; `None` while another caller holds it.
    pub fn writer(&self) -> Option<ModelPublisher<'_, D>> {
        self.words.writer().map(|words| ModelPublisher {
            words,
            domain: PhantomData,
        })
    }
}

/// Returns the line whose words stand at a place.
fn line<D: Domain>(words: &[u64; CELL], place: usize, anchor: Ticks) -> ClockModel<Counter, D> {
    let words: [u64; 4] = core::array::from_fn(|i| words[place + i]);
    ClockModel::from_parts(Affine::of_words(words).limited(), anchor.0)
}

fn slewed<D: Domain>(words: &[u64; CELL]) -> SlewedModel<D> {
    let present = line(words, 0, Ticks(words[5]));
    let [begins, since] = [words[SLEW_BEGINS], words[SINCE]].map(Ticks);
    if begins == Ticks(0) {
        return present.into();
    }
    SlewedModel {
        since,
        earlier: line(words, EARLIER, since),
        begins,
        slewing: line(words, SLEWING, begins),
        present,
    }
}

/// Words of a copy.
fn words<D: Domain>(shown: &SlewedModel<D>, bound: ErrorBound<D>) -> [u64; CELL] {
    let SlewedModel {
        since,
        earlier,
        begins,
        slewing,
        present,
    } = shown;
    let mut words = [0; CELL];
    let (map, begin) = present.parts();
    for (place, line) in [(0, present), (SLEWING, slewing), (EARLIER, earlier)] {
        words[place..place + 4].copy_from_slice(&line.parts().0.to_words());
    }
    words[4] = map.limit.saturating_sub(begin);
    words[5] = begin;
    words[SLEW_BEGINS] = begins.0;
    words[SINCE] = since.0;
    let near = NearBound::new(present, &bound, shown.settled());
    let NearBound {
        since,
        ahead,
        behind,
        growth,
        ticks,
    } = near.unwrap_or(NearBound {
        ahead: bound.ahead.as_nanos(),
        behind: bound.behind.as_nanos(),
        ..NearBound::default()
    });
    words[BOUND..CELL - 1].copy_from_slice(&[
        since,
        ahead as u64,
        behind as u64,
        growth,
        ticks,
        bound.drift.to_bits(),
        bound.at.as_nanos() as u64,
    ]);
    words
}

/// Nanoseconds for the fraction of a growth that is cut off, for the rounding of a model, and for the growth within the tick during which
/// a bound begins to hold.
const ROUNDING: Duration = Duration::from_nanos(3);

/// Returns what a bound grows by until a tick, rounded up.
fn grown_until<D: Domain>(
    since: Ticks,
    present: &ClockModel<Counter, D>,
    bound: &ErrorBound<D>,
) -> Duration {
    // What does not grow, such as the bound of rank 0, holds at all times.
    if bound.drift == 0.0 {
        return Duration::ZERO;
    }
    drifted(bound.drift, present.apply(since) - bound.at) + ROUNDING
}

/// A bound by ticks, as far as they are near enough for sums that cannot overflow.
#[derive(Clone, Copy, Debug, Default)]
struct NearBound {
    /// Tick at which it holds.
    since: u64,
    ahead: i64,
    behind: i64,
    /// Growth per tick, in units of 2^-64 ns.
    growth: u64,
    /// Number of ticks since then for which it may be applied.
    ticks: u64,
}

impl NearBound {
    /// Returns the bound, from a tick on, if its sums stay below 2^63: times below 2^62 either way, limits below 2^60, and a growth of
    /// less than a nanosecond per nanosecond and per tick.
    fn new<D: Domain>(
        present: &ClockModel<Counter, D>,
        bound: &ErrorBound<D>,
        from: Ticks,
    ) -> Option<Self> {
        const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;
        let (map, since) = (present.parts().0, present.tick_of(bound.at)?.max(from).0);
        let growth = libm::ceil(
            bound.drift * map.rate.nanos_per_tick() * (1.0 + 4.0 * f64::EPSILON) * TWO_TO_64,
        );
        let grown = grown_until(Ticks(since), present, bound);
        let limits = [bound.ahead, bound.behind].map(|limit| limit + grown);
        let is_small = |span: &Duration| span.as_nanos().unsigned_abs() < 1 << 60;
        let near = (0.0..1.0).contains(&bound.drift)
            && growth < TWO_TO_64
            && limits.iter().all(is_small)
            && map.constant.unsigned_abs() < 1 << 125;
        let ticks = (map.limit / 2).saturating_sub(since);
        let [ahead, behind] = limits.map(Duration::as_nanos);
        (near && ticks > 0).then_some(Self {
            since,
            ahead,
            behind,
            growth: growth as u64,
            ticks,
        })
    }
}

impl<D: Domain> PublishedModel<D> {
    /// Applies the model published last to a reading; returns the earliest and the latest time that its bound leaves to the reference
    /// then, rounded outward. They saturate.
    #[inline(always)]
    pub fn limits(&self, at: Ticks) -> [Timestamp<D>; 2] {
        match self.near_bound(at) {
            Some((shown, [ahead, behind])) => {
                [shown.wrapping_sub(ahead), shown.wrapping_add(behind)].map(Timestamp::from_nanos)
            }
            None => self.far_limits(at),
        }
    }

    /// Applies the model published last to a reading; returns the time that it shows and the largest error of that by its bound, rounded
    /// up, or [`Duration::MAX`].
    #[inline(always)]
    pub fn apply_with_error(&self, at: Ticks) -> (Timestamp<D>, Duration) {
        match self.near_bound(at) {
            Some((shown, [ahead, behind])) => (
                Timestamp::from_nanos(shown),
                Duration::from_nanos(ahead.max(behind)),
            ),
            None => self.far_error(at),
        }
    }

    /// Applies the present line to a reading, and the growth to both limits; `None` if the bound does not hold there, as it does on the
    /// present line only, as far as that is near.
    #[inline(always)]
    fn near_bound(&self, at: Ticks) -> Option<(i64, [i64; 2])> {
        let (line, bound) = self.words.read_two::<LINE_WORDS, BOUND_WORDS>(BOUND);
        let [since, ahead, behind, growth, ticks] = bound;
        let age = at.0.wrapping_sub(since);
        if age >= ticks {
            return None;
        }
        let grown = ((u128::from(age) * u128::from(growth)) >> 64) as i64;
        let limits = [ahead, behind].map(|limit| (limit as i64).wrapping_add(grown));
        Some((Affine::of_words(line).eval_near(at.0), limits))
    }

    #[cold]
    #[inline(never)]
    fn far_limits(&self, at: Ticks) -> [Timestamp<D>; 2] {
        let (shown, bound) = self.load_with_bound();
        let rounding = Duration::from_nanos(1);
        let [earliest, latest] = bound.around(shown.apply(at));
        [earliest - rounding, latest + rounding]
    }

    #[cold]
    #[inline(never)]
    fn far_error(&self, at: Ticks) -> (Timestamp<D>, Duration) {
        let (model, bound) = self.load_with_bound();
        let shown = model.apply(at);
        (shown, bound.at_time(shown))
    }
}

/// The exclusive right to replace the model of a [`PublishedModel`] cell; released on drop.
#[derive(Debug)]
pub struct ModelPublisher<'a, D: Domain> {
    words: LatchWriter<'a, CELL>,
    domain: PhantomData<fn() -> D>,
}

impl<D: Domain> ModelPublisher<'_, D> {
    /// Replaces the model by one of whose error nothing is known.
    pub fn publish(&mut self, model: ClockModel<Counter, D>) {
        self.publish_with_bound(model, ErrorBound::UNKNOWN);
    }

    /// Replaces the model and the bound of its error: the time that the clock shows jumps.
    pub fn publish_with_bound(&mut self, model: ClockModel<Counter, D>, bound: ErrorBound<D>) {
        self.words.publish(words(&model.into(), bound));
    }

    /// Replaces the model by one that goes on from it, and the [bound](SlewedModel::bound) of what it shows, unless the counter has reached
    /// the begin of the slew by now: then readers may have seen other times than the new model shows. Returns true if it was replaced.
    #[must_use]
    pub fn publish_slewed(
        &mut self,
        shown: &SlewedModel<D>,
        bound: ErrorBound<D>,
        now: impl FnOnce() -> Ticks,
    ) -> bool {
        self.words
            .publish_if(words(shown, bound), || now() < shown.begins)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Global, TickRate};

    #[test]
    fn a_model_is_replaced_together_with_its_bound() {
        let model = |at| {
            ClockModel::<Counter, Global>::through(
                Ticks(at),
                Timestamp::ORIGIN,
                TickRate::NANOSECOND,
            )
            .unwrap()
        };
        let bound = ErrorBound {
            at: Timestamp::from_nanos(-7),
            ahead: Duration::from_nanos(30),
            behind: Duration::from_nanos(-4),
            drift: 1e-6,
        };
        let cell = PublishedModel::new(model(0));
        assert_eq!(
            cell.load_with_bound(),
            (model(0).into(), ErrorBound::UNKNOWN)
        );
        let mut writer = cell.writer().unwrap();
        writer.publish_with_bound(model(5), bound);
        assert_eq!(cell.load_with_bound(), (model(5).into(), bound));
        writer.publish(model(9));
        assert_eq!(
            cell.load_with_bound(),
            (model(9).into(), ErrorBound::UNKNOWN)
        );
    }

    #[test]
    fn the_layout_is_that_of_the_documentation() {
        assert_eq!(size_of::<PublishedModel<Global>>(), 448);
        assert_eq!(align_of::<PublishedModel<Global>>(), 64);
        let model = ClockModel::<Counter, Global>::through(
            Ticks(7),
            Timestamp::from_nanos(-3),
            TickRate::from_ratio(5, 2).unwrap(),
        )
        .unwrap();
        let bound = ErrorBound {
            at: Timestamp::from_nanos(-1),
            ahead: Duration::from_nanos(2),
            behind: Duration::from_nanos(-3),
            drift: 0.5,
        };
        let cell = PublishedModel::with_bound(model, bound, CounterInstruction::Rdtscp);
        assert_eq!(cell.words.tag(), 1 << 32 | 2);
        let half = 1 << 63;
        // At tick 0: -3 - 17.5 ns, and half a nanosecond.
        let line = [2, half, -20_i64 as u64, 0];
        // The bound grows by 1.25 ns per tick: too much for words 16 to 20.
        let bound = [
            0,
            2,
            -3_i64 as u64,
            0,
            0,
            0.5_f64.to_bits(),
            -1_i64 as u64,
            0,
        ];
        let found = cell.words.read();
        assert_eq!([&found[..4], &found[6..10], &found[11..15]], [line; 3]);
        // The limit follows from the rate.
        assert!(found[4] > 1 << 60);
        assert_eq!([found[5], found[10], found[15]], [7, 0, 0]);
        assert_eq!(found[BOUND..], bound);

        let (now, second) = (Ticks(1 << 40), Duration::from_secs(1));
        let ahead = model.apply(now) + Duration::from_nanos(5);
        let wanted = ClockModel::through(now, ahead, model.rate()).unwrap();
        let shown = SlewedModel::from(model).toward(wanted, now, second);
        let shown = shown.unwrap().unwrap();
        let mut writer = cell.writer().unwrap();
        assert!(writer.publish_slewed(&shown, bound_of(&shown), || now));
        let found = cell.words.read();
        assert_eq!(found[11..15], line);
        assert_eq!(
            [found[5], found[10], found[15]],
            [shown.settled().0, shown.begins.0, 0]
        );
        assert_eq!(found[6..10], shown.slewing.parts().0.to_words());
        assert_eq!(found[16], found[5]);
    }

    fn bound_of(shown: &SlewedModel<Global>) -> ErrorBound<Global> {
        let begins = shown.present.apply(shown.begins);
        shown.bound(ErrorBound::symmetric(
            begins,
            Duration::from_nanos(40),
            1e-6,
        ))
    }

    #[test]
    fn a_slewed_clock_is_read_by_all_its_lines() {
        let line = |ahead| {
            let rate = TickRate::from_ratio(5, 13).unwrap();
            ClockModel::<Counter, Global>::through(Ticks(7), Timestamp::from_nanos(ahead), rate)
        };
        let (now, half) = (Ticks(1 << 44), Duration::from_millis(500));
        for ahead in [-30_000, 0, 400] {
            let shown = SlewedModel::from(line(0).unwrap());
            let shown = shown.toward(line(ahead).unwrap(), now, half);
            let shown = shown.unwrap().unwrap();
            let cell = PublishedModel::new(line(0).unwrap());
            let mut writer = cell.writer().unwrap();
            // Too late: readers may have gone on by the line before.
            let late = writer.publish_slewed(&shown, bound_of(&shown), || shown.begins);
            assert!(!late);
            assert_eq!(cell.load_slewed(), line(0).unwrap().into());
            assert!(writer.publish_slewed(&shown, bound_of(&shown), || now));
            let (found, bound) = cell.load_with_bound();
            assert_eq!(bound, bound_of(&shown));
            for at in (0..3_000).map(|i| Ticks(now.0 + i * 1_000_003)) {
                assert_eq!(cell.apply(at), shown.apply(at));
                assert_eq!(found.apply(at), shown.apply(at));
                let [from, to] = bound.around(shown.apply(at));
                let [earliest, latest] = cell.limits(at);
                let wider = [from - earliest, latest - to];
                let is_tight = |wider: Duration| (0..=4).contains(&wider.as_nanos());
                assert!(wider.into_iter().all(is_tight), "{ahead} {at:?}: {wider:?}");
            }
        }
    }

    #[test]
    fn limits_contain_the_bound_and_hardly_exceed_it() {
        let model = ClockModel::<Counter, Global>::through(
            Ticks(1_000),
            Timestamp::from_nanos(-3),
            TickRate::from_ratio(5, 13).unwrap(),
        )
        .unwrap();
        for drift in [0.0, 1e-9, 1e-6, 1e-3, 0.9] {
            let bound = ErrorBound {
                at: Timestamp::from_nanos(500),
                ahead: Duration::from_nanos(40),
                behind: Duration::from_nanos(-5),
                drift,
            };
            let cell = PublishedModel::with_bound(model, bound, CounterInstruction::None);
            for ticks in [0, 1, 1_500, 1 << 20, 1 << 50] {
                let [earliest, latest] = cell.limits(Ticks(ticks));
                let shown = model.apply(Ticks(ticks));
                let [from, to] = bound.around(shown);
                let wider = [from - earliest, latest - to].map(Duration::as_nanos);
                let is_tight = |wider| match wider {
                    0 => drift == 0.0,
                    wider => (1..=3).contains(&wider),
                };
                assert!(
                    wider.into_iter().all(is_tight),
                    "{drift} {ticks}: {wider:?}"
                );
                let (now, error) = cell.apply_with_error(Ticks(ticks));
                let largest = (now - earliest).max(latest - now);
                assert_eq!(now, shown);
                // Limits far away are rounded once more.
                assert!(
                    (0..=1).contains(&(largest - error).as_nanos()),
                    "{drift} {ticks}: {error}"
                );
            }
        }
    }

    /// The counter was not yet 0 then.
    #[test]
    fn a_bound_from_before_the_counter_began_grows_all_the_time() {
        let model = ClockModel::<Counter, Global>::through(
            Ticks(0),
            Timestamp::ORIGIN,
            TickRate::NANOSECOND,
        )
        .unwrap();
        let bound = ErrorBound::symmetric(Timestamp::from_nanos(-1_000), Duration::ZERO, 0.5);
        let cell = PublishedModel::with_bound(model, bound, CounterInstruction::None);
        let [earliest, latest] = cell.limits(Ticks(10));
        assert_eq!(
            [earliest.as_nanos(), latest.as_nanos()],
            [10 - 506, 10 + 506]
        );
    }

    #[test]
    fn limits_of_unknown_clocks_are_the_widest() {
        let model = ClockModel::<Counter, Global>::through(
            Ticks(0),
            Timestamp::ORIGIN,
            TickRate::NANOSECOND,
        )
        .unwrap();
        let at = Timestamp::ORIGIN;
        let none = Duration::ZERO;
        for bound in [
            ErrorBound::UNKNOWN,
            ErrorBound::symmetric(at, none, f64::INFINITY),
        ] {
            let cell = PublishedModel::with_bound(model, bound, CounterInstruction::None);
            let [earliest, latest] = cell.limits(Ticks(7));
            assert_eq!(
                cell.apply_with_error(Ticks(7)).1,
                Duration::MAX,
                "{bound:?}"
            );
            assert!(earliest.as_nanos() <= 7 - i64::MAX, "{bound:?}");
            assert_eq!(latest.as_nanos(), i64::MAX, "{bound:?}");
        }
    }
}
