//! Report on the clocks of all nodes: as a table, and as one JSON document.

use std::fmt::Write as _;

use downbeat_clock_core::Duration;
use downbeat_common::health::{ClockHealth, GaugeValues, odd_nodes};
use downbeat_common::output::time;
use downbeat_common::{Table, Text, units};
use downbeat_sync::check::RankOffset;
use serde::{Deserialize, Serialize};

/// Report as one JSON document.
#[derive(Debug, Serialize)]
pub(super) struct NodesReport {
    schema: &'static str,
    version: u32,
    nodes: Vec<NodeReport>,
    /// Largest difference between CLOCK_REALTIME of two nodes.
    largest_difference: NodesDifference,
    /// Two nodes of which at least one is farther from true time than it claims.
    contradiction: Option<String>,
    /// Properties in which a node differs from most others.
    odd: Vec<String>,
}

/// Clocks of one node, as they are reported, and sent to the first node without an offset.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct NodeReport {
    /// Rank that measured.
    pub(super) rank: u32,
    #[serde(flatten)]
    pub(super) health: ClockHealth,
    /// CLOCK_REALTIME minus that of the first node; `None` if the exchanges contradicted each other.
    pub(super) realtime_offset: Option<NodeOffset>,
    pub(super) unmet: Vec<String>,
    /// One for each gauge of a node that is watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) values: Vec<Option<f64>>,
}

/// Offset of a node's clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct NodeOffset {
    ns: i64,
    half_width_ns: i64,
}

/// Difference of the clocks of two nodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct NodesDifference {
    measured_ns: i64,
    /// Upper limit; `None` if an offset is unknown.
    at_most_ns: Option<i64>,
}

/// Twice what a quartz is off. Nodes are measured one after the other, and this is how much they may drift apart until the last.
const DRIFT_PPM: f64 = 100.0;

impl NodeReport {
    /// Adds the offsets of all but the first node, in the order in which they were measured.
    pub(super) fn add_offsets(nodes: &mut [Self], offsets: &[RankOffset]) {
        // By the clock of the first node, so that differences are times that passed.
        let at = |one: &RankOffset| {
            one.sample
                .map(|sample| (sample.at - sample.offset).as_nanos())
        };
        let last = offsets.iter().filter_map(at).max().unwrap_or(0);
        let offset_of = |one: &RankOffset| {
            let (sample, at) = (one.sample?, at(one)?);
            let aged = last.saturating_sub(at) as f64 * DRIFT_PPM * 1e-6;
            Some(NodeOffset {
                ns: sample.offset.as_nanos(),
                half_width_ns: sample
                    .half_width?
                    .as_nanos()
                    .saturating_add(aged.ceil() as i64),
            })
        };
        let first = Some(NodeOffset {
            ns: 0,
            half_width_ns: 0,
        });
        let offsets = [first].into_iter().chain(offsets.iter().map(offset_of));
        let hosts: Vec<String> = nodes.iter().map(|node| node.health.host.clone()).collect();
        let shared = |host: &String| hosts.iter().filter(|other| *other == host).count() > 1;
        for (node, offset) in nodes.iter_mut().zip(offsets) {
            node.realtime_offset = offset;
            // Ranks of one host that count as nodes.
            if shared(&node.health.host) {
                node.health.host += &format!(":{}", node.rank);
            }
        }
    }

    /// Returns the values of all gauges.
    pub(super) fn values(&self) -> GaugeValues {
        let offset = self.realtime_offset;
        let mut values = self.values.clone();
        values.extend([
            offset.map(|offset| offset.ns as f64),
            offset.map(|offset| offset.half_width_ns as f64),
        ]);
        GaugeValues {
            host: self.health.host.clone(),
            values,
        }
    }

    /// Returns the requirements that the node does not meet, with its name.
    pub(super) fn unmet(&self) -> impl Iterator<Item = String> {
        let named = |why| format!("{}: {why}", self.health.host);
        self.unmet.iter().map(named)
    }

    /// Limits of true time minus the first node's clock, as far as this node's claim is right.
    fn claim(&self) -> Option<(i64, i64)> {
        let time = self.health.system_time.as_ref().ok()?;
        let offset = self.realtime_offset?;
        let width = offset.half_width_ns.checked_add(time.maximum_error_ns)?;
        // True time is the clock minus its error.
        let limits = (
            offset.ns.saturating_neg().checked_sub(width)?,
            offset.ns.saturating_neg().checked_add(width)?,
        );
        time.synchronized.then_some(limits)
    }
}

impl NodesDifference {
    pub(super) fn of(nodes: &[NodeReport]) -> Self {
        let known = nodes.iter().filter_map(|node| node.realtime_offset);
        let offsets: Vec<NodeOffset> = known.collect();
        let measured = offsets.iter().map(|offset| [offset.ns; 2]);
        let limits = offsets.iter().map(|offset| {
            let low = offset.ns.saturating_sub(offset.half_width_ns);
            [low, offset.ns.saturating_add(offset.half_width_ns)]
        });
        let at_most = largest_difference(&limits.collect::<Vec<_>>());
        Self {
            measured_ns: largest_difference(&measured.collect::<Vec<_>>()),
            at_most_ns: (offsets.len() == nodes.len()).then_some(at_most),
        }
    }

    /// Returns the reason why the nodes are not certainly within this limit.
    pub(super) fn beyond(&self, limit: Duration) -> Option<String> {
        match self.at_most_ns {
            Some(at_most) if at_most <= limit.as_nanos() => None,
            Some(at_most) => Some(format!(
                "--max-apart {limit} is exceeded: clocks of two nodes are {} apart, and certain only to be within {}",
                time(self.measured_ns as f64),
                time(at_most as f64)
            )),
            None => Some(format!(
                "--max-apart {limit} is not certain: exchanges with a node contradicted each other"
            )),
        }
    }
}

/// Largest difference of two clocks, given the limits of the offset of each: from the
/// lower limit of one to the upper limit of another.
fn largest_difference(limits: &[[i64; 2]]) -> i64 {
    let mut by_low: Vec<usize> = (0..limits.len()).collect();
    by_low.sort_unstable_by_key(|clock| limits[*clock][0]);
    let differences = limits.iter().enumerate().filter_map(|(clock, [_, high])| {
        let lowest = by_low.iter().find(|other| **other != clock)?;
        Some(high.saturating_sub(limits[*lowest][0]))
    });
    differences.max().unwrap_or(0)
}

/// Names two nodes whose claims exclude each other.
fn contradiction(nodes: &[NodeReport]) -> Option<String> {
    let claims = nodes.iter().filter_map(|node| Some((node, node.claim()?)));
    let claims: Vec<_> = claims.collect();
    let (one, (low, _)) = claims.iter().max_by_key(|(_, claim)| claim.0)?;
    let (other, (_, high)) = claims.iter().min_by_key(|(_, claim)| claim.1)?;
    (low > high).then(|| {
        format!(
            "{} and {}: at least one is {} or more farther from true time than it claims",
            one.health.host,
            other.health.host,
            time(low.saturating_sub(*high) as f64 / 2.0)
        )
    })
}

impl NodesReport {
    pub(super) fn new(nodes: Vec<NodeReport>) -> Self {
        let health: Vec<ClockHealth> = nodes.iter().map(|node| node.health.clone()).collect();
        Self {
            schema: "downbeat.nodes",
            version: 1,
            largest_difference: NodesDifference::of(&nodes),
            contradiction: contradiction(&nodes),
            odd: odd_nodes(&health),
            nodes,
        }
    }

    pub(super) fn text(&self, headline: &str) -> Text {
        let mut text = Text::from(format!("{headline}\n\n"));
        text += self.table();
        let difference = self.largest_difference;
        let at_most = difference.at_most_ns.map_or_else(
            || "an offset is unknown".to_owned(),
            |at_most| {
                format!(
                    "at most {}, if they drift by no more than {DRIFT_PPM} ppm while they are measured",
                    time(at_most as f64)
                )
            },
        );
        let apart = time(difference.measured_ns as f64);
        // Writing to a text cannot fail, here and below.
        let _ = match self.nodes.len() {
            1 => writeln!(text, "\nThere is one node, and nothing to compare it with."),
            _ => writeln!(text, "\nLargest difference: {apart}, {at_most}"),
        };
        if let Some(why) = &self.contradiction {
            let _ = writeln!(text, "Contradiction: {why}");
        }
        for one in &self.odd {
            let _ = writeln!(text, "Odd: {one}");
        }
        text += "\nerror: largest error of CLOCK_REALTIME, as the node claims. \
                 offset: CLOCK_REALTIME minus that of the first node.\n";
        text
    }

    fn table(&self) -> Table {
        let headings = [
            "node",
            "counter",
            "certain to",
            "clock source",
            "system time",
            "adjusted",
            "error",
            "offset",
            "+-",
        ];
        let mut table = Table::new(headings);
        for node in &self.nodes {
            table.row(node.row());
        }
        table
    }
}

impl NodeReport {
    fn row(&self) -> [String; 9] {
        let unknown = || "unknown".to_owned();
        let health = &self.health;
        let [counter, certain] = match &health.counter {
            Ok(counter) => [
                format!("{:.6} GHz", counter.ticks_per_second / 1e9),
                format!("{:.2} ppm", counter.steady_ppm),
            ],
            Err(why) => [why.clone(), "-".to_owned()],
        };
        let [state, adjusted, error] = match &health.system_time {
            Ok(found) => {
                let adjustment = units::without_negative_zero(found.adjustment_ppm, 3);
                let adjusted = format!("{adjustment:+.3} ppm");
                match found.synchronized {
                    true => [
                        "synchronized".to_owned(),
                        adjusted,
                        time(found.maximum_error_ns as f64),
                    ],
                    false => ["NOT synchronized".to_owned(), adjusted, unknown()],
                }
            }
            Err(_) => [unknown(), unknown(), unknown()],
        };
        let [offset, width] = match self.realtime_offset {
            Some(offset) => [offset.ns, offset.half_width_ns].map(|nanos| time(nanos as f64)),
            None => [unknown(), unknown()],
        };
        [
            health.host.clone(),
            counter,
            certain,
            health.clocksource.clone().unwrap_or_else(unknown),
            state,
            adjusted,
            error,
            offset,
            width,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_clock_core::Timestamp;
    use downbeat_clock_core::offset::OffsetSample;
    use downbeat_common::health::SystemTimeHealth;

    fn state(host: &str, synchronized: bool, maximum_error_ns: i64) -> NodeReport {
        let health = ClockHealth {
            host: host.to_owned(),
            kind: String::new(),
            hypervisor: None,
            counter: Err("no counter".to_owned()),
            clocksource: None,
            clocksources: Vec::new(),
            system_time: Ok(SystemTimeHealth {
                synchronized,
                adjustment_ppm: 0.0,
                offset_ns: 0,
                maximum_error_ns,
                estimated_error_ns: 0,
                tai_offset_s: None,
            }),
            ptp: Vec::new(),
        };
        NodeReport {
            rank: 0,
            health,
            realtime_offset: None,
            unmet: Vec::new(),
            values: Vec::new(),
        }
    }

    fn join(mut nodes: Vec<NodeReport>, offsets: &[RankOffset]) -> Vec<NodeReport> {
        NodeReport::add_offsets(&mut nodes, offsets);
        nodes
    }

    /// Offset that was measured when the first node's clock showed this.
    fn offset(at: i64, [offset, half_width]: [i64; 2]) -> RankOffset {
        let [offset, half_width] = [offset, half_width].map(Duration::from_nanos);
        RankOffset {
            rank: 1,
            sample: Some(OffsetSample {
                at: Timestamp::from_nanos(at) + offset,
                offset,
                half_width: Some(half_width),
            }),
        }
    }

    #[test]
    fn the_largest_difference_includes_all_uncertainties() {
        let states = || ["a", "b", "c"].map(|host| state(host, true, 0)).into();
        // 200 us later, clocks can differ by 20 ns more.
        let mut offsets = [offset(1_000, [-70, 5]), offset(201_000, [30, 10])];
        let found = NodesDifference::of(&join(states(), &offsets));
        assert_eq!((found.measured_ns, found.at_most_ns), (100, Some(135)));
        assert_eq!(found.beyond(Duration::from_nanos(135)), None);
        assert!(found.beyond(Duration::from_nanos(134)).is_some());
        // The uncertainty of one clock does not count twice.
        let states_of_two = ["a", "b"].map(|host| state(host, true, 0)).into();
        let found = NodesDifference::of(&join(states_of_two, &[offset(1_000, [-30, 501])]));
        assert_eq!((found.measured_ns, found.at_most_ns), (30, Some(531)));
        offsets[1].sample = None;
        let found = NodesDifference::of(&join(states(), &offsets));
        assert_eq!(found.at_most_ns, None);
        assert!(found.beyond(Duration::from_secs(9)).is_some());
    }

    #[test]
    fn claims_that_exclude_each_other_are_a_contradiction() {
        let found = |synchronized, error| {
            let states = vec![state("a", true, 100), state("b", synchronized, error)];
            contradiction(&join(states, &[offset(0, [1_000, 50])]))
        };
        // Errors of 100 and 850 and an uncertainty of 50 just explain 1,000.
        assert_eq!(found(true, 850), None);
        let named = found(true, 750).unwrap();
        assert!(named.contains("at least one is 50.0 ns or more"), "{named}");
        assert_eq!(found(false, 750), None);
        assert_eq!(contradiction(&[]), None);
    }
}
