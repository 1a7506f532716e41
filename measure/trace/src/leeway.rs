//! Ranges in which corrected times may vary without new violations.

use downbeat_clock_core::{Duration, Global, Timestamp};

use super::trace::Role;
use super::{EventId, LocationId, Trace};

/// Events that are at most this far apart are not moved towards each other.
const NEAR: u64 = 2;

/// Longest distance by which an event may move.
const MOST: Duration = Duration::from_nanos(1);

impl Trace {
    /// Returns the events of a clock, given by its first location, in their order, each with the
    /// range of times that it may take, given the corrected times of all locations: at most a
    /// nanosecond away. Events that others depend on may only become earlier, events that depend on
    /// others only later, and events keep their order, even if they are a nanosecond apart. So no
    /// message becomes faster than with the given times.
    ///
    /// Used to write few [`Knots`](super::knots::Knots).
    pub fn leeway<'a, T: AsRef<[Timestamp<Global>]>>(
        &'a self,
        clock: LocationId,
        times: &'a [T],
    ) -> impl Iterator<Item = (EventId, [Timestamp<Global>; 2])> + use<'a, T> {
        let timeline = self.timelines().of(clock.0);
        let mut next = vec![0; timeline.locations.len()];
        // Where times are missing, the iteration ends.
        let events = timeline.events().map_while(move |(part, id)| {
            let marks = &self.locations[id.location.index()].marks;
            let mark = marks.get(next[part]).filter(|mark| mark.event == id.event);
            next[part] += usize::from(mark.is_some());
            let times = times.get(id.location.index())?.as_ref();
            let time = *times.get(id.event as usize)?;
            Some((id, mark.map_or(Role::Nothing, |mark| mark.role()), time))
        });
        let (mut events, mut before) = (events.peekable(), None);
        core::iter::from_fn(move || {
            let (id, role, time) = events.next()?;
            let after = events.peek().map(|(.., time)| *time);
            let is_far = |other: Option<Timestamp<Global>>| {
                let distance = other.map(|other| (other - time).as_nanos().unsigned_abs());
                distance.is_none_or(|distance| distance > NEAR)
            };
            let may_be_earlier = !matches!(role, Role::Receive | Role::Exit) && is_far(before);
            let may_be_later = !matches!(role, Role::Send | Role::Enter) && is_far(after);
            let [earlier, later] =
                [may_be_earlier, may_be_later].map(|may| if may { MOST } else { Duration::ZERO });
            let window = [time - earlier, time + later];
            before = Some(time);
            Some((id, window))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Event, Matching, Place, TraceBuilder};
    use super::*;

    #[test]
    fn sends_may_become_earlier_and_receives_later_in_the_same_order() {
        let mut builder = TraceBuilder::new(Matching::default());
        let a = builder
            .add_location(Place {
                node: 0,
                process: 0,
            })
            .unwrap();
        let b = builder
            .add_location(Place {
                node: 0,
                process: 1,
            })
            .unwrap();
        let world = builder.add_communicator(&[a, b]).unwrap();
        let times = [0, 10, 20, 22, 25, 25, 40].map(Timestamp::from_nanos);
        for (i, time) in times.into_iter().enumerate() {
            let send = Event::Send {
                to: b.into(),
                communicator: world.into(),
                tag: 0,
                request: None,
                bytes: None,
            };
            let receive = Event::Receive {
                from: b.into(),
                communicator: world.into(),
                tag: 0,
                request: None,
                bytes: None,
            };
            builder
                .push(
                    a,
                    time,
                    [Event::Note("work"), send, receive][if i < 3 { i } else { 0 }],
                )
                .unwrap();
        }
        for event in [
            Event::Send {
                to: a.into(),
                communicator: world.into(),
                tag: 0,
                request: None,
                bytes: None,
            },
            Event::Receive {
                from: a.into(),
                communicator: world.into(),
                tag: 0,
                request: None,
                bytes: None,
            },
        ] {
            builder.push(b, times[1], event).unwrap();
        }
        let trace = builder.finish().unwrap();
        let found: Vec<_> = trace
            .leeway(a, &[&times[..], &[]])
            .map(|(_, between)| between.map(Timestamp::as_nanos))
            .collect();
        assert_eq!(
            found,
            [
                [-1, 1],
                [9, 10],
                [20, 20],
                [22, 23],
                [24, 25],
                [25, 26],
                [39, 41]
            ]
        );
    }
}
