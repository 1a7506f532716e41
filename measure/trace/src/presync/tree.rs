//! Clocks from their offsets in pairs: those with the smallest errors connect all clocks to the
//! master's.

use downbeat_clock_core::{ClockModel, Duration, TickRate, Timestamp};
use rustc_hash::FxHashMap;

use super::hulls::{MessageHulls, OffsetLine};
use super::map::{ClockMap, ClockMaps, MapShape};
use super::{ClockOffsetError, PreSynchronization};
use crate::LocationId;

/// Minimum distance between the points of a line: times are rounded to nanoseconds.
const APART: i64 = 1 << 40;

/// Clock that is connected to the master's.
#[derive(Clone, Copy)]
struct Reached {
    map: ClockModel<downbeat_clock_core::Local, downbeat_clock_core::Global>,
    bound: Option<f64>,
}

impl PreSynchronization {
    /// Computes the clock maps of locations from the messages between their clocks, if there are no
    /// sessions. For each pair of clocks with messages in both directions, the offset is the line
    /// between the convex hulls of the messages there and of those back (Duda 1987) that
    /// keeps the same margin to both, as large as possible; a flatter one if that has nine tenths of
    /// the margin, as a few messages do not tell a drift. The pairs with the smallest errors
    /// connect each clock to the master's; those that no pair connects are
    /// [unknown](ClockMaps::unknown), and taken as correct.
    ///
    /// `readers` is as for [`maps`](Self::maps).
    ///
    /// # Errors
    /// If the master is unknown, or clocks are more than 146 years apart.
    pub fn maps_of_messages(
        &self,
        readers: &[u32],
        mut messages: MessageHulls,
    ) -> Result<ClockMaps, ClockOffsetError> {
        let master = self.masters_clock(readers)?;
        let mut found = ClockMaps::unchanged(readers.len());
        if self.unless_possible && !messages.are_reversed {
            return Ok(found);
        }
        found.bound = Some(Duration::ZERO);
        let reached = reach(master, &tree(messages.lines()))?;
        let mut indices = FxHashMap::from_iter([(master, 0)]);
        for (location, clock) in readers.iter().enumerate() {
            let Some(Reached { map, bound }) = reached.get(clock) else {
                found.unknown += 1;
                continue;
            };
            let maps = &mut found.maps;
            found.map_indices[location] = *indices.entry(*clock).or_insert_with(|| {
                let shape = MapShape::Line(*map);
                maps.push(ClockMap { shape });
                let bound = bound.map(|bound| Duration::from_nanos(bound.ceil() as i64));
                found.bound = found.bound.zip(bound).map(|(one, other)| one.max(other));
                maps.len() - 1
            });
        }
        if found.maps.len() == 1 && found.unknown > 0 {
            // Of no clock but the master's is anything known.
            found.bound = None;
        }
        Ok(found)
    }
}

type Neighbours = FxHashMap<u32, Vec<([u32; 2], OffsetLine)>>;

/// Keeps the first lines, the most certain ones, that connect clocks which none before connects.
fn tree(lines: Vec<([u32; 2], OffsetLine)>) -> Neighbours {
    let mut groups: FxHashMap<u32, u32> = FxHashMap::default();
    let mut neighbours = Neighbours::default();
    for (ends, line) in lines {
        let [one, other] = ends.map(|end| root(&mut groups, end));
        if one != other {
            groups.insert(one, other);
            for end in ends {
                neighbours.entry(end).or_default().push((ends, line));
            }
        }
    }
    neighbours
}

/// Returns the representative of a clock's group.
fn root(groups: &mut FxHashMap<u32, u32>, clock: u32) -> u32 {
    let mut at = clock;
    while let Some(next) = groups.get(&at).copied() {
        // Paths get shorter on the way.
        if let Some(after) = groups.get(&next).copied() {
            groups.insert(at, after);
        }
        at = next;
    }
    at
}

/// Composes the lines from the master to each clock.
fn reach(
    master: u32,
    neighbours: &Neighbours,
) -> Result<FxHashMap<u32, Reached>, ClockOffsetError> {
    let start = Reached {
        map: ClockModel::IDENTITY,
        bound: Some(0.0),
    };
    let mut found = FxHashMap::from_iter([(master, start)]);
    let mut next = vec![master];
    while let Some(from) = next.pop() {
        let before = found[&from];
        for (ends, line) in neighbours.get(&from).into_iter().flatten() {
            let is_first = ends[0] == from;
            let to = ends[usize::from(is_first)];
            if found.contains_key(&to) {
                continue;
            }
            // Two times of the one clock, and what the other one shows.
            let [first, last] = line.span;
            let times = [first, first.saturating_add(APART).max(last)];
            let too_far = ClockOffsetError::TooFar(LocationId(to));
            // What this clock shows then, and the one before it.
            let shown = |at: i64| {
                let second = i64::try_from(line.second(at)).map_err(|_| too_far)?;
                if is_first {
                    return Ok([second, at]);
                }
                // Back from the rounded time.
                let first = i64::try_from(line.first(second)).map_err(|_| too_far)?;
                Ok::<_, ClockOffsetError>([first, second])
            };
            let [start, end] = [shown(times[0])?, shown(times[1])?];
            let image = |at: i64| before.map.apply(Timestamp::from_nanos(at));
            let images = [image(start[1]), image(end[1])];
            let run = end[0].abs_diff(start[0]);
            let rise = images[1].as_nanos().abs_diff(images[0].as_nanos());
            let rate = TickRate::from_ratio(rise, run).map_err(|_| too_far)?;
            let at = Timestamp::from_nanos(start[0]);
            let map = ClockModel::through(at, images[0], rate).map_err(|_| too_far)?;
            let bound = before.bound.zip(line.bound).map(|(one, other)| one + other);
            found.insert(to, Reached { map, bound });
            next.push(to);
        }
    }
    Ok(found)
}
