//! Ranges in which corrected times may vary without new violations.

use downbeat_clock_core::{Duration, Global, Timestamp};

use super::trace::Role;
use super::{LocationId, Trace};

/// Events that are at most this far apart are not moved towards each other.
const NEAR: i64 = 2;

impl Trace {
    /// Returns the range of times that each event of a location may take, given its corrected
    /// times: at most a nanosecond away. Events that others depend on may only become earlier,
    /// events that depend on others only later, and events keep their order, even if they are a
    /// nanosecond apart. So no message becomes faster than with the given times.
    ///
    /// Used to write few [`Knots`](super::Knots).
    pub fn leeway<'a>(
        &'a self,
        location: LocationId,
        times: &'a [Timestamp<Global>],
    ) -> impl Iterator<Item = [Timestamp<Global>; 2]> + use<'a> {
        const MOST: Duration = Duration::from_nanos(1);
        let marks = self
            .locations
            .get(location.index())
            .map_or(&[][..], |found| &found.marks);
        let mut marks = marks.iter().peekable();
        times.iter().enumerate().map(move |(event, &time)| {
            let mark = marks.next_if(|mark| mark.event as usize == event);
            let role = mark.map_or(Role::Nothing, |mark| mark.role());
            let far = |other: Option<&Timestamp<Global>>| {
                other.is_none_or(|&other| (other - time).as_nanos().unsigned_abs() > NEAR as u64)
            };
            let before = if event == 0 {
                None
            } else {
                times.get(event - 1)
            };
            let earlier = !matches!(role, Role::Receive | Role::Exit) && far(before);
            let later = !matches!(role, Role::Send | Role::Enter) && far(times.get(event + 1));
            [
                if earlier { time - MOST } else { time },
                if later { time + MOST } else { time },
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Action, Matching, Place, TraceBuilder};
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
            let send = Action::Send {
                to: b,
                communicator: world,
                tag: 0,
            };
            let receive = Action::Receive {
                from: b,
                communicator: world,
                tag: 0,
            };
            builder
                .push(
                    a,
                    time,
                    [Action::Internal, send, receive][if i < 3 { i } else { 0 }],
                )
                .unwrap();
        }
        for action in [
            Action::Send {
                to: a,
                communicator: world,
                tag: 0,
            },
            Action::Receive {
                from: a,
                communicator: world,
                tag: 0,
            },
        ] {
            builder.push(b, times[1], action).unwrap();
        }
        let trace = builder.finish().unwrap();
        let found: Vec<_> = trace
            .leeway(a, &times)
            .map(|between| between.map(Timestamp::as_nanos))
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
