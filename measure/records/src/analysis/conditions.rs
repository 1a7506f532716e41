//! Conditions of the machine during launches, by what their records state.

use crate::launch::{LOAD, ROUND_TRIPS};
use crate::{Launch, ObservationState};

/// Conditions of the machine during a launch; `None` where the record does not state
/// them.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchConditions {
    /// Name of the launch.
    pub launch: String,
    /// Share of the processors' time that the host of a virtual machine took: mean of the
    /// groups.
    pub stolen: Option<f64>,
    /// Load when the launch began: mean number of tasks that ran or waited for a
    /// disk, for each processor.
    pub load: Option<f64>,
    /// Share of the observations that began late.
    pub late: Option<f64>,
    /// Longest round trip between two neighbouring ranks at the start and at the end, in
    /// nanoseconds.
    pub round_trips: [Option<f64>; 2],
}

/// Sign that a launch was measured on a busy machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BusySign {
    /// The host took this share of the processors' time, more than [`Self::MOST_STOLEN`].
    Stolen(f64),
    /// This load for each processor, more than [`Self::MOST_LOAD`].
    Load(f64),
    /// This share of the observations began late, more than [`Self::MOST_LATE`].
    Late(f64),
    /// A round trip took at least [`Self::DOUBLED`] times the shortest one of the
    /// experiment.
    RoundTrip {
        /// Longest round trip of the launch, in nanoseconds.
        longest: f64,
        /// Shortest round trip of all launches of the experiment, in nanoseconds.
        shortest: f64,
    },
}

impl BusySign {
    /// Share of stolen time that is usual: the kernel counts it in steps of 10 ms.
    pub const MOST_STOLEN: f64 = 0.02;
    /// Load that is usual: the launch before may have kept every processor busy.
    pub const MOST_LOAD: f64 = 1.5;
    /// Share of late observations that is usual.
    pub const MOST_LATE: f64 = 0.1;
    /// Ratio of two round trips from which one has doubled.
    pub const DOUBLED: f64 = 2.0;
}

/// Name of the figure that states the stolen time of a group, in nanoseconds for each
/// second.
const STOLEN: &str = "stolen_per_s";
/// Name of the figure of all groups whose stolen time was counted; one without any has no
/// figure of it.
const INTERRUPTS: &str = "between_interrupts";

impl LaunchConditions {
    /// Reads the conditions of a launch.
    pub fn new(name: &str, launch: &Launch) -> Self {
        Self {
            launch: name.to_owned(),
            stolen: stolen_share(launch),
            load: greatest_fact(launch, LOAD),
            late: late_share(launch),
            round_trips: ROUND_TRIPS
                .map(|name| greatest_fact(launch, name).filter(|nanos| *nanos > 0.0)),
        }
    }

    /// Returns the signs that the machine was busy, given the shortest round trip of the
    /// experiment.
    pub fn busy_signs(&self, shortest: Option<f64>) -> Vec<BusySign> {
        let stolen = self.stolen.filter(|share| *share > BusySign::MOST_STOLEN);
        let load = self.load.filter(|load| *load > BusySign::MOST_LOAD);
        let late = self.late.filter(|share| *share > BusySign::MOST_LATE);
        let longest = self.round_trips.into_iter().flatten().reduce(f64::max);
        let round_trip = longest
            .zip(shortest)
            .filter(|(longest, shortest)| *longest >= BusySign::DOUBLED * shortest)
            .map(|(longest, shortest)| BusySign::RoundTrip { longest, shortest });
        let signs = [
            stolen.map(BusySign::Stolen),
            load.map(BusySign::Load),
            late.map(BusySign::Late),
            round_trip,
        ];
        signs.into_iter().flatten().collect()
    }
}

/// Returns the greatest value of a fact over all parts of a launch.
fn greatest_fact(launch: &Launch, name: &str) -> Option<f64> {
    let values = launch.distinct(name).into_iter();
    let values = values.filter_map(|value| value.parse::<f64>().ok());
    values.filter(|value| value.is_finite()).reduce(f64::max)
}

fn stolen_share(launch: &Launch) -> Option<f64> {
    let (mut sum, mut counted) = (0.0, 0_u32);
    for group in &launch.groups {
        let figure = |wanted: &str| {
            let found = group.figures.iter().find(|(name, _)| name == wanted);
            found.map(|(_, value)| *value)
        };
        let stolen = figure(STOLEN).map(|nanos| nanos / 1e9);
        if let Some(share) = stolen.or_else(|| figure(INTERRUPTS).map(|_| 0.0)) {
            sum += share;
            counted += 1;
        }
    }
    (counted > 0).then(|| sum / f64::from(counted))
}

fn late_share(launch: &Launch) -> Option<f64> {
    let (mut late, mut all) = (0, 0);
    for (state, count) in launch.groups.iter().flat_map(|group| &group.counts) {
        all += count;
        if *state == ObservationState::Late {
            late += count;
        }
    }
    (all > 0).then(|| late as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::super::examples::{group, launch};
    use super::super::{Analysis, AnalysisSettings};
    use super::*;
    use crate::MeasuredGroup;

    /// A launch with these facts, whose two groups have this stolen time together.
    fn conditioned(name: &str, stolen: f64, facts: &[(&str, f64)]) -> (String, Launch) {
        let nanos = [1.0; 99];
        let groups = [(8, 2e9 * stolen), (16, 0.0)].map(|(bytes, stolen)| {
            let mut figures = vec![(INTERRUPTS.to_owned(), 1e6)];
            figures.extend((stolen > 0.0).then(|| (STOLEN.to_owned(), stolen)));
            MeasuredGroup {
                figures,
                ..group(bytes, &nanos)
            }
        });
        let (name, mut launch) = launch(name, &groups);
        for (fact, value) in facts {
            launch.facts = launch.facts.with(fact, value);
        }
        (name, launch)
    }

    #[test]
    fn signs_of_a_busy_machine_are_found_in_each_launch() {
        let [start, end] = ROUND_TRIPS;
        let mut late = conditioned("late", 0.0, &[(start, 500.0)]);
        late.1.groups[0].counts[1].1 = 40;
        let launches = [
            conditioned("quiet", 0.02, &[(LOAD, 1.5), (start, 400.0), (end, 799.0)]),
            conditioned("stolen", 0.1, &[]),
            conditioned("load", 0.0, &[(LOAD, 0.5), ("load_per_core (2)", 3.0)]),
            late,
            conditioned("far", 0.0, &[(start, 410.0), (end, 800.0)]),
        ];
        let found = Analysis::new(&launches, &AnalysisSettings::default()).unwrap();
        let quiet = &found.conditions[0];
        assert_eq!((quiet.stolen, quiet.late), (Some(0.02), Some(0.01)));
        let signs: Vec<_> = found
            .busy_launches()
            .into_iter()
            .map(|(launch, signs)| (launch.launch.as_str(), signs))
            .collect();
        let round_trip = BusySign::RoundTrip {
            longest: 800.0,
            shortest: 400.0,
        };
        let expected = [
            ("stolen", vec![BusySign::Stolen(0.1)]),
            ("load", vec![BusySign::Load(3.0)]),
            ("late", vec![BusySign::Late(41.0 / 239.0)]),
            ("far", vec![round_trip]),
        ];
        assert_eq!(signs, expected);
    }

    #[test]
    fn records_that_state_no_conditions_show_no_busy_machine() {
        let launches = [launch("a", &[group(8, &[1.0; 99])])];
        let found = Analysis::new(&launches, &AnalysisSettings::default()).unwrap();
        let conditions = &found.conditions[0];
        let stated = (conditions.stolen, conditions.load, conditions.round_trips);
        assert_eq!(stated, (None, None, [None; 2]));
        assert!(found.busy_launches().is_empty());
    }
}
