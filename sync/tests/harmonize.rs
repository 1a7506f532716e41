//! Ranks return from a meeting together, whatever delays their messages; a rank that is late says so.

#![expect(clippy::unwrap_used, reason = "tests report failures by panics")]

use downbeat_clock_core::{Duration, Global, Timestamp};
use downbeat_sync::Comm;
use downbeat_sync::harmonize::{Harmonizer, Meeting};
use downbeat_sync::sim::{Clocks, Network, SimClock, SimCluster, SimComm, VirtualTime};

const MEETINGS: usize = 300;

/// Outcome of each meeting of a rank, with the true time at its end.
type Ends = Vec<(Meeting, Timestamp<VirtualTime>)>;

fn meet(ranks: u32, network: Network) -> Vec<Ends> {
    let cluster = SimCluster {
        ranks,
        ranks_per_node: 2,
        sockets_per_node: 1,
        nodes_per_rack: None,
        network,
        clocks: Clocks {
            read_cost: Duration::from_nanos(20),
            ..Clocks::perfect()
        },
        seed: 1,
    };
    let program = async |comm: &SimComm| {
        let clock = comm.clock();
        let model = SimClock::nominal_model().unwrap().renamed::<Global>();
        let mut harmonizer = Harmonizer::new(Duration::from_nanos(10));
        let mut ends = Ends::new();
        for round in 0..MEETINGS {
            let work = (round as u32 * 7 + comm.true_now().as_nanos() as u32 % 31) % 13;
            comm.pause(Duration::from_micros(work.into()));
            let error = Duration::from_nanos(10);
            let meeting = harmonizer.meet(&clock, &model, error, comm).await.unwrap();
            ends.push((meeting.unwrap(), comm.true_now()));
        }
        // One rank is unsure: all must synchronize.
        let error = Duration::from_nanos(if comm.true_now().as_nanos() % 2 == 0 {
            11
        } else {
            12
        });
        let unsure = harmonizer.meet(&clock, &model, error, comm).await.unwrap();
        assert_eq!(unsure, None);
        // Ranks that demand different errors agree, too: one of them cannot keep its own.
        harmonizer.within(Duration::from_nanos(9 + i64::from(comm.rank())));
        let unsure = harmonizer.meet(&clock, &model, Duration::from_nanos(10), comm);
        assert_eq!(unsure.await.unwrap(), None);
        ends
    };
    cluster.run(program).unwrap()
}

#[test]
fn ranks_that_met_returned_together() {
    for ranks in [1, 2, 3, 5, 8, 33] {
        let ends = meet(ranks, Network::typical());
        let mut missed = 0;
        for round in 0..MEETINGS {
            let of_round = || ends.iter().map(|ends| ends[round]);
            let met = of_round().filter(|(meeting, _)| *meeting == Meeting::Met);
            let times: Vec<_> = met.map(|(_, time)| time).collect();
            let (first, last) = (times.iter().min(), times.iter().max());
            if let (Some(first), Some(last)) = (first, last) {
                assert!(
                    *last - *first <= Duration::from_nanos(40),
                    "{ranks}: {}",
                    *last - *first
                );
            }
            // A rank that missed the instant returned after those that did not.
            for (meeting, time) in of_round() {
                if let Meeting::Missed { by } = meeting {
                    assert!(by > Duration::ZERO && first.is_none_or(|first| time > *first));
                    missed += 1;
                }
            }
        }
        assert!(
            missed <= MEETINGS * ranks as usize / 20,
            "{ranks}: {missed}"
        );
    }
}
