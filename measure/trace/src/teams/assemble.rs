//! Assembles operations from the events of their members, also if some are missing.

use std::collections::BTreeMap;

use super::summary::Summary;
use super::{MemberOperation, Track};
use crate::definitions::Definitions;
use crate::events::Columns;
use crate::trace::{Instance, Location, NONE, Slot, UnmatchedEvents};
use crate::{Array, ArrayStore, CollectiveKind, NoRoom, TraceError};

/// Operations of a team on one track.
#[derive(Debug)]
struct Operations {
    summaries: Array<Summary>,
    /// Operations of the members, by their ranks.
    columns: Vec<(u32, Array<MemberOperation>)>,
}

/// All operations, by team and track.
#[derive(Debug)]
pub(crate) struct Tracks {
    operations: BTreeMap<(u32, Track), Operations>,
    /// Position and error of the first exit from an operation that was not entered.
    unentered: Option<(u64, TraceError)>,
}

/// Operations of a trace, in the order of their first events, and their members.
#[derive(Debug)]
pub(crate) struct Assembled {
    pub(crate) instances: Array<Instance>,
    pub(crate) slots: Array<Slot>,
}

impl Tracks {
    /// Collects the operations of the members of some processes.
    pub(crate) fn new(
        processes: impl IntoIterator<Item = Columns>,
        store: &ArrayStore,
    ) -> Result<Self, NoRoom> {
        let mut tracks: BTreeMap<(u32, Track), Operations> = BTreeMap::new();
        let mut unentered: Option<(u64, TraceError)> = None;
        for ((team, track, rank), column) in processes.into_iter().flatten() {
            let both = unentered.into_iter().chain(column.first_error());
            unentered = both.min_by_key(|(position, _)| *position);
            let all = tracks.entry((team, track)).or_insert_with(|| Operations {
                summaries: Array::new(store.clone()),
                columns: vec![],
            });
            for (index, part) in column.operations.iter().enumerate() {
                if index == all.summaries.len() {
                    all.summaries.push(Summary::NONE)?;
                }
                all.summaries[index].add(part);
            }
            all.columns.push((rank, column.operations));
        }
        for operations in tracks.values_mut() {
            operations.columns.sort_unstable_by_key(|(rank, _)| *rank);
        }
        Ok(Self {
            operations: tracks,
            unentered,
        })
    }

    /// Returns the position and the error of the first event that states another kind or root than
    /// an earlier one, or that leaves an operation that was not entered.
    pub(crate) fn first_error(&self) -> Option<(u64, TraceError)> {
        let all = self.operations.values().flat_map(|of| of.summaries.iter());
        all.filter_map(Summary::disagreement)
            .chain(self.unentered)
            .min_by_key(|(position, _)| *position)
    }

    /// Assembles the operations, as far as possible also incomplete ones. Those whose
    /// first members are on this rank are counted if they are left out.
    pub(crate) fn assemble(
        self,
        definitions: &Definitions,
        is_own: impl Fn(u32) -> bool,
        locations: &mut [Location],
        left_out: &mut UnmatchedEvents,
        store: &ArrayStore,
    ) -> Result<Assembled, TraceError> {
        let tracks: Vec<_> = self.operations.into_iter().collect();
        let mut order: Array<(u64, u32, u32)> = Array::new(store.clone());
        for (number, (_, operations)) in (0..).zip(&tracks) {
            for (index, summary) in (0..).zip(&operations.summaries) {
                order.push((summary.first, number, index))?;
            }
        }
        order.sort_unstable();
        u32::try_from(order.len()).map_err(|_| TraceError::TooManyCollectives)?;
        let mut assembled = Assembled {
            instances: Array::new(store.clone()),
            slots: Array::new(store.clone()),
        };
        assembled.instances.reserve_exact(order.len())?;
        let columns = tracks.iter().flat_map(|(_, of)| &of.columns);
        let slots = columns.map(|(_, column)| column.len()).sum();
        assembled.slots.reserve_exact(slots)?;
        let mut parts = vec![];
        for (_, number, index) in order.iter().copied() {
            let ((team, _), operations) = &tracks[number as usize];
            let summary = &operations.summaries[index as usize];
            let members = definitions.teams[*team as usize].len();
            parts.clear();
            parts.extend(operations.columns.iter().filter_map(|(rank, column)| {
                let part = column.get(index as usize)?;
                Some((*rank, *part))
            }));
            let is_first_own = parts.first().is_some_and(|(_, part)| is_own(part.location));
            if is_first_own && !summary.is_complete(members as u32) {
                left_out.collectives += 1;
            }
            assembled.add(*team, members, summary, &parts, locations)?;
        }
        Ok(assembled)
    }
}

impl Assembled {
    /// Adds an operation of a team with this number of members, given those that took
    /// part by their ranks.
    fn add(
        &mut self,
        team: u32,
        members: usize,
        summary: &Summary,
        parts: &[(u32, MemberOperation)],
        locations: &mut [Location],
    ) -> Result<(), NoRoom> {
        let is_known = summary.stated.is_some();
        let stated = summary.stated.map(|stated| (stated.kind, stated.root));
        let (kind, root) = stated.unwrap_or((CollectiveKind::Barrier, 0));
        let number = self.instances.len() as u32;
        // If some are missing, each counts by its index among those that took part.
        let is_whole = parts.len() == members;
        let index = parts.iter().position(|(rank, _)| *rank == root);
        let index = index.map_or(NONE, |index| index as u32);
        self.instances.push(Instance {
            kind,
            root: if is_whole { root } else { index },
            team,
            first: self.slots.len(),
            members: parts.len() as u32,
        })?;
        for (index, (rank, part)) in (0..).zip(parts) {
            let marks = &mut locations[part.location as usize].marks;
            let mut settle = |mark: u32, counts: bool| {
                let Some(found) = marks.get_mut(mark as usize) else {
                    return NONE;
                };
                if !counts {
                    *found = found.alone();
                    return NONE;
                }
                *found = found.with(if is_whole { *rank } else { index }, number);
                mark
            };
            self.slots.push(Slot {
                location: part.location,
                enter: settle(part.enter, is_known && kind.roles(root, *rank)[0]),
                exit: settle(part.exit, is_known),
            })?;
        }
        Ok(())
    }
}
