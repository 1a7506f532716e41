//! Assembles operations from the events of their members, also if some are missing.

use std::collections::BTreeMap;

use super::{Column, MemberOperation, Summary, Track, sends};
use crate::definitions::Definitions;
use crate::events::Columns;
use crate::trace::{Instance, LeftOut, Location, NONE, Slot};
use crate::{Array, ArrayStore, NoRoom, TraceError};

/// Operations of a team on one track.
#[derive(Debug)]
pub(crate) struct Operations {
    pub(crate) summaries: Array<Summary>,
    /// Columns of the members, by their ranks.
    columns: Vec<(u32, Column)>,
}

/// All operations, by team and track.
#[derive(Debug)]
pub(crate) struct Tracks(pub(crate) BTreeMap<(u32, Track), Operations>);

/// Operations of a trace, in the order of their first events, and their members.
#[derive(Debug)]
pub(crate) struct Assembled {
    pub(crate) instances: Array<Instance>,
    pub(crate) slots: Array<Slot>,
}

impl Operations {
    fn new(store: &ArrayStore) -> Self {
        Self {
            summaries: Array::new(store.clone()),
            columns: vec![],
        }
    }

    fn add(&mut self, rank: u32, column: Column) -> Result<(), NoRoom> {
        for (index, part) in column.operations.iter().enumerate() {
            let summary = Summary::of_member(part);
            match self.summaries.get_mut(index) {
                Some(known) => known.merge(&summary),
                None => self.summaries.push(summary)?,
            }
        }
        self.columns.push((rank, column));
        Ok(())
    }
}

impl Tracks {
    /// Collects the operations of the members of some processes.
    pub(crate) fn new(
        processes: impl IntoIterator<Item = Columns>,
        store: &ArrayStore,
    ) -> Result<Self, NoRoom> {
        let mut tracks: BTreeMap<(u32, Track), Operations> = BTreeMap::new();
        for ((team, track, rank), column) in processes.into_iter().flatten() {
            tracks
                .entry((team, track))
                .or_insert_with(|| Operations::new(store))
                .add(rank, column)?;
        }
        for operations in tracks.values_mut() {
            operations.columns.sort_unstable_by_key(|(rank, _)| *rank);
        }
        Ok(Self(tracks))
    }

    /// Returns the position and the error of the first event that states another kind or root than
    /// an earlier one.
    pub(crate) fn first_disagreement(&self) -> Option<(u64, TraceError)> {
        let all = self
            .0
            .values()
            .flat_map(|operations| operations.summaries.iter());
        all.filter_map(Summary::disagreement)
            .min_by_key(|(position, _)| *position)
    }

    /// Assembles the operations, as far as possible also incomplete ones. Those whose
    /// first members are on this rank are counted if they are left out.
    pub(crate) fn assemble(
        self,
        definitions: &Definitions,
        is_own: impl Fn(u32) -> bool,
        locations: &mut [Location],
        left_out: &mut LeftOut,
        store: &ArrayStore,
    ) -> Result<Assembled, TraceError> {
        let tracks: Vec<_> = self.0.into_iter().collect();
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
        let slots = tracks.iter().map(|(_, of)| of.parts());
        assembled.slots.reserve_exact(slots.sum())?;
        for (_, number, index) in order {
            let [number, index] = [number, index].map(|index| index as usize);
            let ((team, _), operations) = &tracks[number];
            let of = Assembling {
                members: definitions.members(*team),
                summary: operations.summaries[index],
                parts: operations.parts_of(index),
            };
            let first = of.parts.first().map(|(_, part)| part.location);
            if !of.put(*team, &mut assembled, locations)? && first.is_some_and(&is_own) {
                left_out.collectives += 1;
            }
        }
        Ok(assembled)
    }
}

impl Operations {
    fn parts(&self) -> usize {
        self.columns
            .iter()
            .map(|(_, column)| column.operations.len())
            .sum()
    }

    /// Returns the events of all members that took part in an operation, by their ranks.
    fn parts_of(&self, index: usize) -> Vec<(u32, MemberOperation)> {
        let part = |column: &Column| column.operations.get(index).copied();
        let parts = self
            .columns
            .iter()
            .filter_map(|(rank, column)| Some((*rank, part(column)?)));
        parts.collect()
    }
}

/// Operation that is being assembled.
struct Assembling<'a> {
    members: &'a [u32],
    summary: Summary,
    parts: Vec<(u32, MemberOperation)>,
}

impl Assembling<'_> {
    /// Adds the operation. Returns true if it is complete.
    fn put(
        self,
        team: u32,
        to: &mut Assembled,
        locations: &mut [Location],
    ) -> Result<bool, NoRoom> {
        let all = self.members.len();
        let mut found = self.summary.instance(team, all as u32);
        let is_complete = self.summary.is_complete(found.members);
        let is_known = self.summary.stated.is_some();
        let (root, number) = (found.root, to.instances.len() as u32);
        found.first = to.slots.len();
        if self.parts.len() < all {
            // Only members that took part count, each by its index among them.
            let index = self.parts.iter().position(|(rank, _)| *rank == root);
            found.root = index.map_or(NONE, |index| index as u32);
        }
        found.members = self.parts.len() as u32;
        let by_rank = self.parts.len() == all;
        for (index, (rank, part)) in (0..).zip(self.parts) {
            let mut slot = Slot {
                location: part.location,
                enter: part.enter,
                exit: part.exit,
            };
            let counts = [is_known && sends(found.kind, root, rank), is_known];
            for (mark, counts) in [&mut slot.enter, &mut slot.exit].into_iter().zip(counts) {
                if *mark == NONE {
                    continue;
                }
                let found = &mut locations[slot.location as usize].marks[*mark as usize];
                if counts {
                    *found = found.with(if by_rank { rank } else { index }, number);
                } else {
                    *found = found.alone();
                    *mark = NONE;
                }
            }
            to.slots.push(slot)?;
        }
        to.instances.push(found)?;
        Ok(is_complete)
    }
}
