//! Analysis of one experiment.

use std::collections::BTreeMap;

use super::conditions::{BusySign, LaunchConditions};
use super::group::GroupAnalysis;
use super::settings::AnalysisSettings;
use crate::experiment::first_binding;
use crate::launch::{HOSTS, NODES};
use crate::{Factors, GroupKey, Launch, MeasuredGroup, RecordError};

/// Analysis of the launches of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// Settings of the analysis.
    pub settings: AnalysisSettings,
    /// Factors, common to all launches that have a group.
    pub factors: Factors,
    /// Hosts of the ranks: one value unless launches, or parts of them, ran on different ones.
    pub hosts: Vec<String>,
    /// Descriptions of the nodes: one value unless launches, or parts of them, ran on different kinds.
    pub nodes: Vec<String>,
    /// Names of the launches, in their order.
    pub launches: Vec<String>,
    /// Conditions of the machine during each of them.
    pub conditions: Vec<LaunchConditions>,
    /// Names of the launches that are not complete.
    pub incomplete: Vec<String>,
    /// Groups by operation, size and ranks.
    pub groups: Vec<GroupAnalysis>,
}

impl Analysis {
    /// Analyses launches, each with its name. They are not changed: a report may need the order of
    /// observations.
    ///
    /// # Errors
    /// If there is no launch, factors differ, a launch has the same group twice, or a time is not a
    /// number or longer than 292 years.
    pub fn new(
        launches: &[(String, Launch)],
        settings: &AnalysisSettings,
    ) -> Result<Self, RecordError> {
        let (_, first) = first_binding(launches).ok_or(RecordError::NoLaunches)?;
        for (name, launch) in launches.iter().filter(|(_, launch)| launch.binds()) {
            if let Some(factor) = first.factors.differing(&launch.factors) {
                return Err(RecordError::MixedFactors {
                    launch: name.clone(),
                    factor: factor.to_owned(),
                });
            }
        }
        let analysed = by_key(launches)?
            .into_iter()
            .map(|(key, groups)| GroupAnalysis::new(key, launches, &groups, settings));
        Ok(Self {
            settings: *settings,
            factors: first.factors.clone(),
            hosts: distinct(launches, HOSTS),
            nodes: distinct(launches, NODES),
            launches: launches.iter().map(|(name, _)| name.clone()).collect(),
            conditions: launches
                .iter()
                .map(|(name, launch)| LaunchConditions::new(name, launch))
                .collect(),
            incomplete: launches
                .iter()
                .filter(|(_, launch)| !launch.complete)
                .map(|(name, _)| name.clone())
                .collect(),
            groups: analysed.collect::<Result<_, _>>()?,
        })
    }

    /// Launches that were measured on a busy machine, with the signs of it.
    pub fn busy_launches(&self) -> Vec<(&LaunchConditions, Vec<BusySign>)> {
        let round_trips = self.conditions.iter().flat_map(|one| one.round_trips);
        let shortest = round_trips.flatten().reduce(f64::min);
        let signs = |one| (one, LaunchConditions::busy_signs(one, shortest));
        let found = self.conditions.iter().map(signs);
        found.filter(|(_, signs)| !signs.is_empty()).collect()
    }

    /// Analysis of one group.
    pub fn group(&self, key: &GroupKey) -> Option<&GroupAnalysis> {
        self.groups.iter().find(|group| group.key == *key)
    }
}

/// Distinct values of a fact in all parts of all launches, in their order.
fn distinct(launches: &[(String, Launch)], fact: &str) -> Vec<String> {
    let mut values: Vec<&str> = Vec::new();
    for value in launches
        .iter()
        .flat_map(|(_, launch)| launch.distinct(fact))
    {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values.into_iter().map(str::to_owned).collect()
}

/// For each key, the group of every launch that has it.
type ByKey<'a> = BTreeMap<&'a GroupKey, Vec<Option<&'a MeasuredGroup>>>;

fn by_key(launches: &[(String, Launch)]) -> Result<ByKey<'_>, RecordError> {
    let mut found = ByKey::new();
    for (index, (name, launch)) in launches.iter().enumerate() {
        for group in &launch.groups {
            let groups = found
                .entry(&group.key)
                .or_insert_with(|| vec![None; launches.len()]);
            if groups[index].replace(group).is_some() {
                return Err(RecordError::DuplicateGroup {
                    launch: name.clone(),
                    key: group.key.clone(),
                });
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::examples::{experiment, group, launch};
    use super::*;

    #[test]
    fn launches_that_cannot_be_analysed_are_named() {
        let error = |launches: &[(String, Launch)]| {
            Analysis::new(launches, &AnalysisSettings::default())
                .unwrap_err()
                .to_string()
        };
        assert_eq!(error(&[]), "there is no launch");
        let twice = [
            launch("a", &[group(8, &[1.0])]),
            launch("b", &[group(8, &[1.0]), group(8, &[2.0])]),
        ];
        assert_eq!(error(&twice), "b: bcast, 8 bytes, 2 ranks: measured twice");
        for nanos in [f64::NAN, f64::INFINITY, 1e19, -1e19] {
            assert_eq!(
                error(&experiment(&[&[1.0], &[1.0, nanos]])),
                "b: bcast, 8 bytes, 2 ranks: a time is not a number, or longer than 292 years",
                "{nanos}"
            );
        }
        let extreme = experiment(&[&[9e18, -9e18, 0.0]]);
        assert!(Analysis::new(&extreme, &AnalysisSettings::default()).is_ok());
        let mut mixed = experiment(&[&[1.0], &[1.0]]);
        mixed[1].1.factors = Factors::default().with("ranks", &3);
        assert_eq!(
            error(&mixed),
            "b: the factor \"ranks\" is not that of the first launch"
        );
    }

    #[test]
    fn launches_are_not_changed_and_incomplete_ones_are_listed() {
        let mut launches = experiment(&[&[3.0, 1.0, 2.0], &[5.0, 4.0]]);
        launches[1].1.complete = false;
        let before = launches.clone();
        let analysis = Analysis::new(&launches, &AnalysisSettings::default()).unwrap();
        assert_eq!(
            (launches, analysis.incomplete.join(" ")),
            (before, "b".to_owned())
        );
        assert_eq!(analysis.factors.get("ranks"), Some("2"));
    }
}
