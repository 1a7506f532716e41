//! How far times of a trace may be off without a new violation.

use downbeat_clock_core::{Duration, Global, Timestamp};

use super::trace::Role;
use super::{LocationId, Trace};

/// Events that are no farther apart are not moved towards each other.
const NEAR: i64 = 2;

impl Trace {
    /// Between which times each event of a location may be, if these are its times and none is moved by more than a
    /// nanosecond: what others depend on may only be earlier, what depends on others only later, and the order of events
    /// remains, also where they are a nanosecond apart. So no message is faster than it is by these times.
    ///
    /// Whoever writes few [`Knots`](super::Knots) uses that.
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
    fn sends_may_be_earlier_and_receives_later_and_order_remains() {
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
