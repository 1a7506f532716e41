use downbeat_clock_core::spline::SplineKnot;

use super::*;
use crate::{ClockOwner, Clocks, Event, Matching, Place, TraceBuilder};

const SECOND: i64 = 1_000_000_000;

fn sample(at: i64, image: i64) -> ClockSample {
    SplineKnot {
        at: Timestamp::from_nanos(at),
        image: Timestamp::from_nanos(image),
    }
}

/// Two locations, each with its own clock.
const APART: [u32; 2] = [0, 1];

fn location(index: u32) -> LocationId {
    LocationId(index)
}

fn with(interpolation: Interpolation) -> PreSynchronization {
    PreSynchronization {
        interpolation,
        ..PreSynchronization::new(location(0))
    }
}

/// Map of location 1 if location 0 is the master.
fn map(
    with: PreSynchronization,
    sessions: &[&[ClockSample]],
) -> Result<ClockMap, ClockOffsetError> {
    let sessions = [
        vec![],
        sessions.iter().map(|session| session.to_vec()).collect(),
    ];
    with.maps(&APART, &sessions)
        .map(|maps| maps.for_location(location(1)).clone())
}

fn shown(map: &ClockMap, at: &[i64]) -> Vec<i64> {
    at.iter()
        .map(|at| map.apply(Timestamp::from_nanos(*at)).as_nanos())
        .collect()
}

#[test]
fn the_line_goes_through_the_means_of_the_first_and_the_last_session() {
    let sessions: [&[_]; 3] = [
        &[sample(90, 1_100), sample(110, 1_120)],
        &[sample(SECOND, 5 * SECOND / 4)],
        &[sample(2 * SECOND + 100, 2 * SECOND + 2_110)],
    ];
    // The session in between is ignored. The clock is 1,010 ns behind at 100 ns and 2,010 ns behind
    // 2 s later.
    let sessions = [sessions[0], &[sample(SECOND, SECOND)], sessions[2]];
    let line = map(with(Interpolation::Linear), &sessions).unwrap();
    let wanted = [
        100 + 1_010,
        SECOND + 100 + 1_510,
        2 * SECOND + 100 + 2_010,
        4 * SECOND + 100 + 3_010,
        -SECOND + 610,
    ];
    assert_eq!(
        shown(
            &line,
            &[
                100,
                SECOND + 100,
                2 * SECOND + 100,
                4 * SECOND + 100,
                -SECOND + 100
            ]
        ),
        wanted
    );
}

/// `predict(lm(image ~ at))` of R 4.
#[test]
fn least_squares_are_those_of_r() {
    let sessions: [&[_]; 3] = [
        &[
            sample(1_000, 801_500),
            sample(51_003, 851_540),
            sample(101_017, 901_490),
        ],
        &[
            sample(900_000_007, 900_803_300),
            sample(900_050_100, 900_853_431),
        ],
        &[
            sample(1_800_000_000, 1_800_805_111),
            sample(1_800_049_990, 1_800_855_080),
            sample(1_800_100_333, 1_800_905_466),
        ],
    ];
    let asked = [0, 50_000, 900_000_000, 1_700_000_000, 3_600_000_000];
    let line = map(with(Interpolation::LeastSquares), &sessions).unwrap();
    let wanted = [
        800_629.389,
        850_629.517,
        900_802_933.387,
        1_700_804_981.385,
        3_600_809_845.380,
    ];
    for (found, wanted) in shown(&line, &asked).into_iter().zip(wanted) {
        // A line is rounded to the nearest nanosecond at its anchor, and its times are rounded
        // again.
        assert!(
            (found as f64 - wanted).abs() <= 1.0,
            "{found} instead of {wanted}"
        );
    }
    // Without the session in between, the spline is that line, too.
    let sessions = [sessions[0], &[], sessions[2]];
    let [line, spline] = [Interpolation::LeastSquares, Interpolation::Spline]
        .map(|kind| map(with(kind), &sessions).unwrap());
    assert_eq!(shown(&line, &asked), shown(&spline, &asked));
}

/// Evaluates one segment of the cubic spline from the slopes at its ends: a Hermite polynomial.
#[test]
fn the_spline_goes_through_the_means_and_is_the_constrained_one() {
    let points = [
        (0.0, 500.0),
        (1e9, 1e9 + 4_500.0),
        (2e9, 2e9 + 4_000.0),
        (4e9, 4e9 + 9_000.0),
    ];
    let sessions = points.map(|(at, image)| {
        [
            sample(at as i64 - 10, image as i64 - 10),
            sample(at as i64 + 10, image as i64 + 10),
        ]
    });
    let sessions: Vec<&[_]> = sessions.iter().map(|session| &session[..]).collect();
    let spline = map(with(Interpolation::Spline), &sessions).unwrap();
    let chord = |i: usize| (points[i + 1].1 - points[i].1) / (points[i + 1].0 - points[i].0);
    let inner = |i: usize| 2.0 / (1.0 / chord(i) + 1.0 / chord(i - 1));
    let slopes = [
        1.5 * chord(0) - inner(1) / 2.0,
        inner(1),
        inner(2),
        1.5 * chord(2) - inner(2) / 2.0,
    ];
    for i in 0..3 {
        let ((x0, y0), (x1, y1)) = (points[i], points[i + 1]);
        for step in 0..=20 {
            let at = x0 + (x1 - x0) * f64::from(step) / 20.0;
            let (t, h) = ((at - x0) / (x1 - x0), x1 - x0);
            let wanted = y0 * (1.0 + 2.0 * t) * (1.0 - t).powi(2)
                + slopes[i] * h * t * (1.0 - t).powi(2)
                + y1 * t * t * (3.0 - 2.0 * t)
                + slopes[i + 1] * h * t * t * (t - 1.0);
            let found = shown(&spline, &[at as i64])[0];
            assert!(
                (found as f64 - wanted).abs() < 1.0,
                "{found} instead of {wanted}"
            );
        }
    }
    let beyond = shown(&spline, &[-1_000_000_000, 5_000_000_000]);
    assert!((beyond[0] as f64 - (500.0 - slopes[0] * 1e9)).abs() < 1.0);
    assert!((beyond[1] as f64 - (points[3].1 + slopes[3] * 1e9)).abs() < 1.0);
}

#[test]
fn a_single_session_is_reduced_to_its_mean() {
    let session = [sample(0, 1_000), sample(1_000, 1_990), sample(2_000, 3_020)];
    for kind in [
        Interpolation::Linear,
        Interpolation::LeastSquares,
        Interpolation::Spline,
    ] {
        assert_eq!(
            shown(&map(with(kind), &[&session]).unwrap(), &[0, SECOND]),
            [1_003, SECOND + 1_003]
        );
    }
    assert_eq!(
        shown(
            &map(with(Interpolation::Unchanged), &[&session]).unwrap(),
            &[5]
        ),
        [5]
    );
}

#[test]
fn samples_beyond_the_limits_of_a_session_are_ignored() {
    let session = [
        sample(0, 100),
        sample(50, 170),
        sample(100, 400),
        sample(101, 100_000),
    ];
    let offset = |with: PreSynchronization| shown(&map(with, &[&session]).unwrap(), &[0])[0];
    let base = with(Interpolation::Spline);
    assert_eq!(
        offset(PreSynchronization {
            most_samples: 2,
            ..base
        }),
        110
    );
    assert_eq!(
        offset(PreSynchronization {
            longest_session: Duration::from_nanos(99),
            ..base
        }),
        110
    );
    assert_eq!(
        offset(PreSynchronization {
            longest_session: Duration::from_nanos(100),
            ..base
        }),
        173
    );
    assert_eq!(
        offset(PreSynchronization {
            longest_session: Duration::ZERO,
            ..base
        }),
        100
    );
    assert_eq!(
        offset(PreSynchronization {
            most_samples: 0,
            ..base
        }),
        100
    );
}

#[test]
fn locations_that_share_a_clock_share_its_samples() {
    let place = |node, process| Place { node, process };
    let places = [
        place(0, 0),
        place(0, 1),
        place(1, 2),
        place(1, 2),
        place(1, 3),
    ];
    let of = |offset| vec![vec![sample(0, offset)]];
    let sessions = [of(9), of(1), of(2), vec![vec![]], of(4)];
    let with = |owner| (owner, PreSynchronization::new(location(0)));
    let offsets = |(owner, with): (ClockOwner, PreSynchronization)| {
        let clocks = Clocks::new(owner, places);
        with.maps(clocks.readers(), &sessions).map(|maps| {
            let offsets = (0..5)
                .map(|i| shown(maps.for_location(location(i)), &[0])[0])
                .collect::<Vec<_>>();
            (offsets, maps.unknown)
        })
    };
    assert_eq!(
        offsets(with(ClockOwner::Location)),
        Ok((vec![0, 1, 2, 0, 4], 1))
    );
    assert_eq!(
        offsets(with(ClockOwner::Process)),
        Ok((vec![0, 1, 2, 2, 4], 0))
    );
    assert_eq!(
        offsets(with(ClockOwner::Node)),
        Ok((vec![0, 0, 2, 2, 2], 0))
    );
    assert_eq!(offsets(with(ClockOwner::Cluster)), Ok((vec![0; 5], 0)));
    let on_node = |master| (ClockOwner::Node, PreSynchronization::new(location(master)));
    assert_eq!(offsets(on_node(4)), Ok((vec![9, 9, 0, 0, 0], 0)));
    assert_eq!(
        offsets(on_node(5)),
        Err(ClockOffsetError::NoMaster(location(5)))
    );
}

#[test]
fn sessions_that_contradict_the_one_before_are_left_out() {
    let [start, set, late] = [
        [sample(0, 0)],
        [sample(SECOND, 2 * SECOND)],
        [sample(2 * SECOND, 2 * SECOND + 100)],
    ];
    let left_out = |sessions: &[&[ClockSample]]| {
        let sessions = sessions.iter().map(|session| session.to_vec());
        let sessions = [vec![], sessions.collect()];
        let maps = with(Interpolation::Spline).maps(&APART, &sessions).unwrap();
        let at_a_second = shown(maps.for_location(location(1)), &[SECOND])[0];
        (maps.left_out, at_a_second)
    };
    assert_eq!(left_out(&[&late, &[], &start]), (1, SECOND + 100));
    assert_eq!(left_out(&[&start, &start]), (1, SECOND));
    assert_eq!(left_out(&[&start, &set, &late]), (1, SECOND + 50));
    // A drift of 1 % is just accepted.
    let [accepted, refused] = [[sample(100, 101)], [sample(100, 102)]];
    assert_eq!(left_out(&[&start, &accepted]).0, 0);
    assert_eq!(left_out(&[&start, &refused]).0, 1);

    let error = |sessions: &[&[ClockSample]]| {
        let error = map(with(Interpolation::LeastSquares), sessions).unwrap_err();
        (error, error.to_string())
    };
    let far = [sample(i64::MAX, i64::MIN)];
    assert_eq!(error(&[&far]).0, ClockOffsetError::TooFar(location(1)));
    // The means show no drift, but the samples of the second session do.
    let steep = [
        sample(SECOND, SECOND / 2),
        sample(3 * SECOND, 7 * SECOND / 2),
    ];
    let (why, text) = error(&[&start, &steep]);
    assert_eq!(why, ClockOffsetError::Jump(location(1)));
    assert_eq!(
        text,
        "the samples of the clock of location 1 contradict each other"
    );
}

#[test]
fn increasing_times_stay_increasing() {
    let mut builder = TraceBuilder::new(Matching::default());
    let place = |number| Place {
        node: number,
        process: number,
    };
    let ids = APART.map(|number| builder.add_location(place(number)).unwrap());
    for at in [0, 1, 1, 2, 3, 500, 501, 502] {
        builder
            .push(ids[1], Timestamp::from_nanos(at), Event::Note("work"))
            .unwrap();
    }
    let mut trace = builder.finish().unwrap();
    let sessions = [
        vec![],
        vec![vec![sample(0, 1_000)], vec![sample(1_000, 1_990)]],
    ];
    let maps = with(Interpolation::Linear).maps(&APART, &sessions).unwrap();
    // 99 ns for 100; 501 would be at 1,495.99 and 500 at 1,495.
    maps.correct(&mut trace).unwrap();
    let times: Vec<_> = trace.locations()[1]
        .times()
        .iter()
        .map(|time| time.as_nanos())
        .collect();
    assert_eq!(
        times,
        [1_000, 1_001, 1_001, 1_002, 1_003, 1_495, 1_496, 1_497]
    );
}

#[test]
fn a_spline_applied_in_order_is_the_same_spline() {
    let session = |number: i64| {
        vec![sample(
            number * SECOND,
            number * SECOND + 900 * number % 7 * 1_000,
        )]
    };
    let sessions = [vec![], (0..9).map(session).collect()];
    let maps = with(Interpolation::Spline).maps(&APART, &sessions).unwrap();
    let map = maps.for_location(location(1));
    let mut in_order = map.in_order();
    for at in (-2 * SECOND..11 * SECOND)
        .step_by(12_345_679)
        .map(Timestamp::from_nanos)
    {
        assert_eq!(in_order(at), map.apply(at));
    }
}

/// Clocks that only messages tell: by a whole trace, by ranks that share it, and by a stream.
#[test]
fn messages_in_one_direction_bound_no_clock() {
    let mut builder = TraceBuilder::new(Matching::default());
    let place = |number| Place {
        node: number,
        process: number,
    };
    let ids = [0, 1].map(|number| builder.add_location(place(number)).unwrap());
    let communicator = builder.add_communicator(&ids).unwrap().into();
    let (tag, request, bytes) = (0, None, None);
    let events = [
        (
            0,
            200,
            Event::Send {
                to: 1,
                communicator,
                tag,
                request,
                bytes,
            },
        ),
        (
            1,
            100,
            Event::Receive {
                from: 0,
                communicator,
                tag,
                request,
                bytes,
            },
        ),
    ];
    for (location, nanos, event) in events {
        let time = Timestamp::from_nanos(nanos);
        builder.push(ids[location], time, event).unwrap();
    }
    let trace = builder.finish().unwrap();
    let method = PreSynchronization {
        interpolation: Interpolation::Hull,
        ..PreSynchronization::new(location(0))
    };
    let hulls = MessageHulls::of_trace(&trace, &crate::Latencies::ZERO);
    let maps = method.maps_of_messages(&trace.clocks(), hulls).unwrap();
    assert_eq!((maps.unknown, maps.bound), (1, None));
}

#[test]
fn messages_tell_the_clocks_within_the_bound_that_follows() {
    use crate::CorrectionError;
    use crate::generate::SyntheticProgram;
    use crate::presync::MessageHulls;
    use crate::ranks::{LocationLoad, LocationShares};
    use downbeat_sync::{Comm, ThreadCluster, block_on_ready};
    for seed in 0..6 {
        let mut program = SyntheticProgram {
            processes: 1 + seed as u32 % 3,
            asynchronous: seed % 2 == 0,
            sessions: 0,
            duration: Duration::from_secs(10),
            seed,
            ..SyntheticProgram::new(4, 20_000)
        };
        program.clocks.wander = None;
        let method = PreSynchronization {
            interpolation: Interpolation::Hull,
            ..PreSynchronization::new(program.master())
        };
        let mut trace = program.trace(Matching::default()).unwrap();
        let least = program.latencies;
        let maps = method.maps_of_messages(&trace.clocks(), MessageHulls::of_trace(&trace, &least));
        let maps = maps.unwrap();
        assert!(maps.are_needed() && maps.unknown == 0);

        let loads = trace.locations().iter().map(|of| LocationLoad {
            process: of.place().process,
            place: of.place(),
            events: of.times().len() as u64,
        });
        let shares = LocationShares::new(3, ClockOwner::Process, &loads.collect::<Vec<_>>());
        let shared = ThreadCluster::new(3).run(|comm| {
            let builder = TraceBuilder::new(Matching::default());
            let mut builder = builder.for_rank(comm.rank(), shares.clone());
            for place in program.places() {
                builder.add_location(place).unwrap();
            }
            for members in program.communicators() {
                builder.add_communicator(&members).unwrap();
            }
            let mut position = 0;
            let see = |event: crate::generate::SyntheticEvent| {
                let time = Timestamp::from_nanos(event.local.as_nanos());
                if builder.owns(event.location) {
                    builder.set_position(position);
                    builder.push(event.location, time, event.event).unwrap();
                }
                position += 1;
                Ok::<_, downbeat_sync::ClusterError>(())
            };
            program.run(see).unwrap();
            block_on_ready(async {
                let part = builder.finish_on_ranks(comm).await?;
                let hulls = MessageHulls::of_part(&part, &least, comm).await;
                Ok::<_, CorrectionError>(hulls?)
            })
        });
        for hulls in shared.unwrap() {
            let hulls = hulls.unwrap();
            let same = method.maps_of_messages(&trace.clocks(), hulls).unwrap();
            assert_eq!(same.bound, maps.bound);
            for location in trace.ids() {
                let ends = [0, 5_000_000_000, 10_000_000_000].map(Timestamp::from_nanos);
                let apply = |maps: &ClockMaps| ends.map(|at| maps.for_location(location).apply(at));
                assert_eq!(apply(&same), apply(&maps));
            }
        }

        maps.correct(&mut trace).unwrap();
        let error = program.error(&trace.times()).unwrap();
        let largest = error.bias().abs() + error.largest_centred();
        let bound = maps.bound.unwrap();
        assert!(largest <= bound.as_nanos() as f64, "{largest} {bound}");
        assert!(largest < 2_000.0, "{largest}");

        // Clocks that nothing contradicts stay as they are.
        let unless = PreSynchronization {
            unless_possible: true,
            ..method
        };
        let again = MessageHulls::of_trace(&trace, &least);
        let again = unless.maps_of_messages(&trace.clocks(), again).unwrap();
        assert!(!again.are_needed() && again.bound.is_none());
        assert_eq!(
            method.maps(&trace.clocks(), &[]).unwrap_err(),
            ClockOffsetError::NeedsMessages
        );
    }
}
