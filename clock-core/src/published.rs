//! A clock model that another thread can replace while it is read.

use core::marker::PhantomData;

use crate::latch::{Latch, LatchWriter};
use crate::model::WORDS;
use crate::{
    ClockModel, Counter, CounterInstruction, Domain, Duration, ErrorBound, Source, Ticks, Timestamp,
};

/// A cell with a [`ClockModel`], and the bound of its error, that many threads read while one replaces them.
///
/// Readers take no lock and never wait for a writer, not even for one that was preempted half-way.
///
/// ```
/// use downbeat_clock_core::{ClockModel, Counter, Global, Published, TickRate, Ticks, Timestamp};
///
/// let first = ClockModel::<Counter, Global>::through(Ticks(0), Timestamp::ORIGIN, TickRate::NANOSECOND)?;
/// let clock = Published::new(first);
/// assert_eq!(clock.load().apply(Ticks(7)), Timestamp::from_nanos(7));
///
/// // A resynchronization finds that the clock is 3 ns ahead.
/// let second = ClockModel::through(Ticks(3), Timestamp::ORIGIN, TickRate::NANOSECOND)?;
/// clock.writer().expect("no other writer").publish(second);
/// assert_eq!(clock.load().apply(Ticks(7)), Timestamp::from_nanos(4));
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
/// | 0, 1 | nanoseconds per tick: whole, and fraction in units of 2^-64 |
/// | 2, 3 | time at tick 0 plus half a nanosecond, in units of 2^-64 ns, a signed number of 128 bits: high word, low word |
/// | 4 | the highest tick to which this line may be applied without a check of overflow |
/// | 5 | tick at which the model was learned |
/// | 6 to 15 | room for two more lines, each with words as the first four, and the tick where it begins: 2^64 - 1 if unused |
/// | 16 | tick at which the next two words hold |
/// | 17, 18 | largest time by which the clock is ahead then, and by which it is behind: signed, in nanoseconds |
/// | 19 | growth of both per tick since then, in units of 2^-64 ns |
/// | 20 | number of ticks since then for which words 16 to 19 hold, with 3 ns for rounding in words 17 and 18: 0 if they do not |
/// | 21, 22 | growth per nanosecond, a double; time at which words 17 and 18 hold |
/// | 23 | 0 |
#[derive(Debug)]
#[repr(transparent)]
pub struct Published<A: Source, B: Domain> {
    words: Latch<CELL>,
    domains: PhantomData<fn() -> (A, B)>,
}

/// Number of words of a copy.
const CELL: usize = 24;
/// Places of the words that tell where the second and the third line begin.
const LINE_BEGINS: [usize; 2] = [10, 15];
const BOUND: usize = 16;
/// Words of a bound that a read needs, from [`BOUND`] on: with those of the model in two lines of a cache.
const BOUND_WORDS: usize = 5;

impl<A: Source, B: Domain> Published<A, B> {
    /// Number of the layout in memory.
    pub const LAYOUT: u32 = 1;

    /// Creates a cell that holds `model`, of whose error nothing is known.
    pub fn new(model: ClockModel<A, B>) -> Self {
        Self::with_bound(model, ErrorBound::UNKNOWN, CounterInstruction::None)
    }

    /// Creates a cell that holds `model` and the bound of its error; `instruction` reads the counter.
    pub fn with_bound(
        model: ClockModel<A, B>,
        bound: ErrorBound<B>,
        instruction: CounterInstruction,
    ) -> Self {
        let tag = u64::from(Self::LAYOUT) | (instruction as u64) << 32;
        Self {
            words: Latch::new(tag, words(model, bound)),
            domains: PhantomData,
        }
    }

    /// Reads the model published last.
    #[inline(always)]
    pub fn load(&self) -> ClockModel<A, B> {
        ClockModel::from_words(self.words.read_first())
    }

    /// Reads the model published last, and the bound of its error.
    pub fn load_with_bound(&self) -> (ClockModel<A, B>, ErrorBound<B>) {
        let words = self.words.read();
        let model = core::array::from_fn(|i| words[i]);
        let rounding = if words[BOUND + 4] > 0 { ROUNDING } else { 0 };
        let limit = |place: usize| Duration::from_nanos(words[BOUND + place] as i64 - rounding);
        let bound = ErrorBound {
            at: Timestamp::from_nanos(words[BOUND + 6] as i64),
            ahead: limit(1),
            behind: limit(2),
            drift: f64::from_bits(words[BOUND + 5]),
        };
        (ClockModel::from_words(model), bound)
    }

    /// The exclusive right to replace the model; `None` while another caller holds it.
    pub fn writer(&self) -> Option<Publisher<'_, A, B>> {
        self.words.writer().map(|words| Publisher {
            words,
            domains: PhantomData,
        })
    }
}

/// Words of a copy.
fn words<A: Source, B: Domain>(model: ClockModel<A, B>, bound: ErrorBound<B>) -> [u64; CELL] {
    let mut words = [0; CELL];
    words[..WORDS].copy_from_slice(&model.to_words());
    LINE_BEGINS
        .into_iter()
        .for_each(|place| words[place] = u64::MAX);
    let NearBound {
        since,
        growth,
        ticks,
    } = NearBound::new(&model, &bound).unwrap_or_default();
    let rounding = if ticks > 0 { ROUNDING } else { 0 };
    words[BOUND..CELL - 1].copy_from_slice(&[
        since,
        (bound.ahead.as_nanos() + rounding) as u64,
        (bound.behind.as_nanos() + rounding) as u64,
        growth,
        ticks,
        bound.drift.to_bits(),
        bound.at.as_nanos() as u64,
    ]);
    words
}

/// Nanoseconds for the fraction of a growth that is cut off, for the rounding of a model, and for the growth within the tick during which
/// a bound begins to hold.
const ROUNDING: i64 = 3;

/// A bound by ticks, as far as they are near enough for sums that cannot overflow.
#[derive(Clone, Copy, Debug, Default)]
struct NearBound {
    /// Tick at which it holds.
    since: u64,
    /// Growth per tick, in units of 2^-64 ns.
    growth: u64,
    /// Number of ticks since then for which it may be applied.
    ticks: u64,
}

impl NearBound {
    /// Returns the bound if its sums stay below 2^63: times below 2^62 either way, limits below 2^60, and a growth of less than a
    /// nanosecond per nanosecond and per tick.
    fn new<A: Source, B: Domain>(model: &ClockModel<A, B>, bound: &ErrorBound<B>) -> Option<Self> {
        const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;
        let (map, since) = (model.parts().0, model.bits_of(bound.at)?);
        let growth = libm::ceil(
            bound.drift * map.rate.nanos_per_tick() * (1.0 + 4.0 * f64::EPSILON) * TWO_TO_64,
        );
        let limit = map.limit / 2;
        let is_small = |span: Duration| span.as_nanos().unsigned_abs() < 1 << 60;
        let near = (0.0..1.0).contains(&bound.drift)
            && growth < TWO_TO_64
            && is_small(bound.ahead)
            && is_small(bound.behind)
            && map.constant.unsigned_abs() < 1 << 125;
        near.then_some(Self {
            since,
            growth: growth as u64,
            ticks: limit.saturating_sub(since),
        })
    }
}

impl<B: Domain> Published<Counter, B> {
    /// Applies the model published last to a reading; returns the earliest and the latest time that its bound leaves to the reference
    /// then, rounded outward. They saturate.
    #[inline(always)]
    pub fn limits(&self, at: Ticks) -> [Timestamp<B>; 2] {
        let (model, bound) = self.words.read_two::<WORDS, BOUND_WORDS>(BOUND);
        let [since, ahead, behind, growth, ticks] = bound;
        let age = at.0.wrapping_sub(since);
        if age >= ticks {
            return self.far_limits(at);
        }
        let (map, _) = ClockModel::<Counter, B>::from_words(model).parts();
        let (shown, grown) = (
            map.eval_near(at.0),
            ((u128::from(age) * u128::from(growth)) >> 64) as i64,
        );
        [
            Timestamp::from_nanos(shown.wrapping_sub((ahead as i64).wrapping_add(grown))),
            Timestamp::from_nanos(shown.wrapping_add((behind as i64).wrapping_add(grown))),
        ]
    }

    #[cold]
    #[inline(never)]
    fn far_limits(&self, at: Ticks) -> [Timestamp<B>; 2] {
        let (model, bound) = self.load_with_bound();
        let rounding = Duration::from_nanos(1);
        let [earliest, latest] = bound.around(model.apply(at));
        [earliest - rounding, latest + rounding]
    }
}

/// The exclusive right to replace the model of a [`Published`] cell; released on drop.
#[derive(Debug)]
pub struct Publisher<'a, A: Source, B: Domain> {
    words: LatchWriter<'a, CELL>,
    domains: PhantomData<fn() -> (A, B)>,
}

impl<A: Source, B: Domain> Publisher<'_, A, B> {
    /// Replaces the model by one of whose error nothing is known.
    pub fn publish(&mut self, model: ClockModel<A, B>) {
        self.publish_with_bound(model, ErrorBound::UNKNOWN);
    }

    /// Replaces the model and the bound of its error.
    pub fn publish_with_bound(&mut self, model: ClockModel<A, B>, bound: ErrorBound<B>) {
        self.words.publish(words(model, bound));
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
        let cell = Published::new(model(0));
        assert_eq!(cell.load_with_bound(), (model(0), ErrorBound::UNKNOWN));
        let mut writer = cell.writer().unwrap();
        writer.publish_with_bound(model(5), bound);
        assert_eq!(cell.load_with_bound(), (model(5), bound));
        writer.publish(model(9));
        assert_eq!(cell.load_with_bound(), (model(9), ErrorBound::UNKNOWN));
    }

    #[test]
    fn the_layout_is_that_of_the_documentation() {
        assert_eq!(size_of::<Published<Counter, Global>>(), 448);
        assert_eq!(align_of::<Published<Counter, Global>>(), 64);
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
        let cell = Published::with_bound(model, bound, CounterInstruction::Rdtscp);
        assert_eq!(cell.words.tag(), 1 << 32 | 1);
        let half = 1 << 63;
        // At tick 0: -3 - 17.5 ns, and half a nanosecond.
        let expected: [u64; CELL] = [
            2,
            half,
            -20_i64 as u64,
            0,
            u64::MAX,
            7,
            0,
            0,
            0,
            0,
            u64::MAX,
            0,
            0,
            0,
            0,
            u64::MAX,
            // The bound grows by 1.25 ns per tick: too much for these words.
            0,
            2,
            -3_i64 as u64,
            0,
            0,
            0.5_f64.to_bits(),
            -1_i64 as u64,
            0,
        ];
        let mut found = cell.words.read();
        // The limit follows from the rate.
        assert!(found[4] > 1 << 60);
        found[4] = u64::MAX;
        assert_eq!(found, expected);
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
            let cell = Published::with_bound(model, bound, CounterInstruction::None);
            for ticks in [0, 1, 1_500, 1 << 20, 1 << 50] {
                let [earliest, latest] = cell.limits(Ticks(ticks));
                let [from, to] = bound.around(model.apply(Ticks(ticks)));
                let most = Duration::from_nanos(3);
                let wider = [from - earliest, latest - to];
                let is_tight = |wider: Duration| wider > Duration::ZERO && wider <= most;
                assert!(
                    wider.into_iter().all(is_tight),
                    "{drift} {ticks}: {wider:?}"
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
        let cell = Published::with_bound(model, bound, CounterInstruction::None);
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
            let cell = Published::with_bound(model, bound, CounterInstruction::None);
            let [earliest, latest] = cell.limits(Ticks(7));
            assert!(earliest.as_nanos() <= 7 - i64::MAX, "{bound:?}");
            assert_eq!(latest.as_nanos(), i64::MAX, "{bound:?}");
        }
    }
}
