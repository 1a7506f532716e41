//! Sums of results over all ranks.

use downbeat_clock_core::{Duration, Global, Timestamp};

use super::super::check::check_fit;
use super::super::deviation::{Number, Numbers};
use super::super::trace::{NONE, Role};
use super::super::{Deviation, LeftOut, LocationId, Misfit, Relations, TruthComparison, Verdict};
use super::exchange::gather_everywhere;
use super::{PartError, TracePart};
use downbeat_sync::collective::all_reduce;
use downbeat_sync::{Comm, CommError};

/// Numbers of events, messages and operations in the parts of all ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// Number of events.
    pub events: u64,
    /// Number of messages.
    pub messages: u64,
    /// Number of collective operations.
    pub collectives: u64,
    /// Number of receives, and of exits of collective operations that wait for other members.
    pub arrivals: u64,
    /// Numbers of incomplete messages and operations.
    pub left_out: LeftOut,
}

impl TracePart {
    /// Counts the contents of all parts; collective.
    ///
    /// # Errors
    /// If a rank is gone.
    pub async fn totals<C: Comm>(&self, comm: &C) -> Result<Totals, CommError> {
        let messages = self.own().map(|location| {
            let marks = &self.trace.locations[location as usize].marks;
            marks
                .iter()
                .filter(|mark| mark.role() == Role::Receive)
                .count() as u64
        });
        // Each operation is counted on the rank of its first member.
        let mine = |instance: &u32| self.team(*instance).kept.first() == Some(&0);
        let exits = self
            .trace
            .instances
            .iter()
            .flat_map(|instance| self.trace.slots_of(instance));
        let exits = exits.filter(|slot| slot.exit != NONE).count() as u64;
        let messages = messages.sum::<u64>();
        let mut totals = Totals {
            events: self.trace.events(),
            messages,
            collectives: (0..self.trace.instances.len() as u32).filter(mine).count() as u64,
            arrivals: messages + exits,
            left_out: self.trace.left_out(),
        };
        total(&mut totals, comm).await?;
        Ok(totals)
    }
}

impl Deviation {
    /// Does the same as [`between`](Self::between) for a trace that ranks share; collective, with
    /// the same result on all ranks. `times` are those of this rank's locations, and empty for
    /// others.
    ///
    /// # Errors
    /// If the number of times is not that of events on any rank, or a rank is gone.
    pub async fn of_part<T: AsRef<[Timestamp<Global>]>, C: Comm>(
        part: &TracePart,
        times: &[T],
        comm: &C,
    ) -> Result<Self, PartError> {
        agree_on_fit(part, times, comm).await?;
        let mut deviation = Self::between(&part.trace, times).map_err(PartError::Misfit)?;
        total(&mut deviation, comm).await?;
        Ok(deviation)
    }
}

impl TruthComparison {
    /// Compares times of a shared trace with the truth: of all events first, and then of those in
    /// each of `groups` groups, where `group` returns the group of an event by its time in the
    /// trace. Collective, with the same result on all ranks. Locations of other ranks have no times
    /// in either list.
    ///
    /// # Errors
    /// If the number of times is not that of events on any rank, or a rank is gone.
    pub async fn of_part<T: AsRef<[Timestamp<Global>]>, U: AsRef<[Timestamp<Global>]>, C: Comm>(
        part: &TracePart,
        times: &[T],
        truth: &[U],
        (groups, group): (usize, impl Fn(Timestamp<Global>) -> usize),
        comm: &C,
    ) -> Result<Vec<Self>, PartError> {
        agree_on_fit(part, times, comm).await?;
        agree_on_fit(part, truth, comm).await?;
        let events = || {
            let locations = (0_u64..).zip(part.locations()).zip(times.iter().zip(truth));
            locations.flat_map(|((location, found), (times, truth))| {
                let events = found
                    .times()
                    .iter()
                    .zip(times.as_ref().iter().zip(truth.as_ref()));
                events.map(move |(at, (time, truth))| (location, *at, *time, *truth))
            })
        };
        // All errors are relative to that of the first event, of all or of the group.
        let mut firsts = vec![[u64::MAX; 3]; 1 + groups];
        for (location, at, time, truth) in events() {
            for first in [0, 1 + group(at)] {
                if let Some(first) = firsts.get_mut(first).filter(|first| first[0] == u64::MAX) {
                    *first = [location, time.as_nanos() as u64, truth.as_nanos() as u64];
                }
            }
        }
        for others in gather_everywhere(comm, firsts.concat()).await? {
            firsts
                .iter_mut()
                .zip(others.as_chunks().0)
                .for_each(|(first, other)| *first = (*first).min(*other));
        }
        let mut errors = vec![Self::default(); 1 + groups];
        for (error, [location, time, truth]) in errors.iter_mut().zip(firsts) {
            let first = i128::from(time as i64) - i128::from(truth as i64);
            error.first = (location != u64::MAX).then_some(first);
        }
        for (_, at, time, truth) in events() {
            for of in [0, 1 + group(at)] {
                errors
                    .get_mut(of)
                    .into_iter()
                    .for_each(|error| error.add(time, truth));
            }
        }
        total(&mut errors, comm).await?;
        Ok(errors)
    }
}

/// Checks on all ranks that the number of times is that of events.
pub(super) async fn agree_on_fit<T: AsRef<[Timestamp<Global>]>, C: Comm>(
    part: &TracePart,
    times: &[T],
    comm: &C,
) -> Result<(), PartError> {
    let misfit = check_fit(&part.trace, times)
        .err()
        .map_or(u64::MAX, |of| of.location.0.into());
    match all_reduce(comm, misfit, u64::min).await? {
        u64::MAX => Ok(()),
        misfit => Err(PartError::Misfit(Misfit {
            location: LocationId(misfit as u32),
        })),
    }
}

/// Combines the results of all ranks.
pub(super) async fn total<C: Comm>(mine: &mut impl Numbers, comm: &C) -> Result<(), CommError> {
    let (mut words, mut count) = (vec![], 0);
    mine.numbers(&mut |number| {
        let [low, high] = number.words();
        // A zero changes nothing, and most numbers are zero.
        if [low, high] != [0; 2] {
            words.extend([count, low, high]);
        }
        count += 1;
    });
    let all = gather_everywhere(comm, words).await?;
    for words in (0..)
        .zip(&all)
        .filter(|(rank, _)| *rank != comm.rank())
        .map(|(_, words)| words)
    {
        let (mut words, mut count) = (words.as_chunks::<3>().0.iter().peekable(), 0);
        mine.numbers(&mut |number| {
            if let Some([_, low, high]) = words.next_if(|[of, ..]| *of == count) {
                number.absorb([*low, *high]);
            }
            count += 1;
        });
    }
    Ok(())
}

impl Number<'_> {
    fn words(self) -> [u64; 2] {
        let word = match self {
            Self::Count(count) => u128::from(*count),
            Self::Sum(sum) => *sum,
            Self::Signed(number) | Self::Least(number) | Self::Greatest(number) => *number as u128,
            Self::Longest(duration) => duration.as_nanos() as u128,
            Self::Largest(share) => share.to_bits().into(),
        };
        [word as u64, (word >> 64) as u64]
    }

    fn absorb(self, [low, high]: [u64; 2]) {
        let word = u128::from(high) << 64 | u128::from(low);
        match self {
            Self::Count(count) => *count += low,
            Self::Sum(sum) => *sum = sum.saturating_add(word),
            Self::Signed(number) => *number += word as i128,
            Self::Least(number) => *number = (*number).min(word as i128),
            Self::Greatest(number) => *number = (*number).max(word as i128),
            Self::Longest(duration) => {
                *duration = (*duration).max(Duration::from_nanos(low as i64));
            }
            Self::Largest(share) => *share = share.max(f64::from_bits(low)),
        }
    }
}

impl Numbers for Totals {
    fn numbers(&mut self, see: &mut impl FnMut(Number<'_>)) {
        let Self {
            events,
            messages,
            collectives,
            arrivals,
            left_out,
        } = self;
        let LeftOut {
            sends,
            receives,
            collectives: incomplete,
        } = left_out;
        let counts = [
            events,
            messages,
            collectives,
            arrivals,
            sends,
            receives,
            incomplete,
        ];
        counts
            .into_iter()
            .for_each(|count| see(Number::Count(count)));
    }
}

impl<T: Numbers> Numbers for Vec<T> {
    fn numbers(&mut self, see: &mut impl FnMut(Number<'_>)) {
        self.iter_mut().for_each(|each| each.numbers(see));
    }
}

/// All numbers except the faults.
impl Numbers for Verdict {
    fn numbers(&mut self, see: &mut impl FnMut(Number<'_>)) {
        let Self {
            events,
            decreasing,
            merged,
            messages,
            collectives,
            reversal,
            faults: _,
        } = self;
        [events, decreasing, merged]
            .into_iter()
            .for_each(|count| see(Number::Count(count)));
        for of in [messages, collectives] {
            let Relations {
                total,
                reversed,
                violated,
            } = of;
            [total, reversed, violated]
                .into_iter()
                .for_each(|count| see(Number::Count(count)));
        }
        see(Number::Sum(&mut reversal.total));
        see(Number::Longest(&mut reversal.largest));
    }
}
