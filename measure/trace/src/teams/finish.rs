//! Which operations are complete, and what is made of the others.

use super::{
    LeftOut, Matched, OperationKey, Operations, Progress, TRACKS, Team, Teams, Track, sends,
};
use crate::trace::{Instance, Location, Mark, NONE, Slot};
use crate::{EventId, LocationId, TraceError};

/// What operations are put together from.
struct Finishing<'a> {
    instances: Vec<Instance>,
    progress: Vec<Progress>,
    slots: Vec<Slot>,
    locations: &'a mut [Location],
    left_out: &'a mut LeftOut,
}

impl Teams {
    /// The first operation that is incomplete, and what it is refused for, unless only who keeps an event of it can say so.
    pub(crate) fn first_incomplete(
        &self,
        locations: &[Location],
    ) -> Option<(OperationKey, Option<TraceError>)> {
        for (number, team) in (0..).zip(&self.teams) {
            for (operations, track) in team.tracks.iter().zip(TRACKS) {
                for (index, instance) in (0..).zip(&operations.instances) {
                    let progress = &self.progress[*instance as usize];
                    if !progress.is_complete(&self.instances[*instance as usize]) {
                        let key = [number, track as u32, index];
                        return Some((
                            key,
                            progress.refused(track, index, team, operations, locations),
                        ));
                    }
                }
            }
        }
        None
    }

    /// The operations and their members, and the best that can be made of those that are incomplete.
    pub(crate) fn finish(self, locations: &mut [Location], left_out: &mut LeftOut) -> Matched {
        let Self {
            teams,
            mut instances,
            names,
            progress,
            ..
        } = self;
        instances.shrink_to_fit();
        let columns = teams
            .iter()
            .flat_map(|team| &team.tracks)
            .flat_map(|operations| &operations.columns);
        let slots = Vec::with_capacity(columns.map(|column| column.slots.len()).sum());
        let mut finishing = Finishing {
            instances,
            progress,
            slots,
            locations,
            left_out,
        };
        let mut members = Vec::with_capacity(teams.len());
        for mut team in teams {
            for operations in std::mem::take(&mut team.tracks) {
                finishing.take(&team, &operations);
            }
            members.push((team.members, team.kept));
        }
        Matched {
            instances: finishing.instances,
            slots: finishing.slots,
            names,
            teams: members,
        }
    }
}

impl Progress {
    fn refused(
        &self,
        track: Track,
        index: u32,
        team: &Team,
        Operations { columns, .. }: &Operations,
        locations: &[Location],
    ) -> Option<TraceError> {
        let counts: Vec<_> = columns
            .iter()
            .map(|column| (column.entered, column.left))
            .collect();
        let enters = |rank: usize| {
            let Slot {
                location, enter, ..
            } = *columns[rank].slots.get(index as usize)?;
            let mark = locations[location as usize].marks.get(enter as usize)?;
            Some(EventId {
                location: LocationId(location),
                event: mark.event,
            })
        };
        self.refusal(track, index, &team.members, &counts, enters)
    }
}

impl Finishing<'_> {
    fn take(&mut self, team: &Team, operations: &Operations) {
        // Whoever is not in one operation is in none after it.
        let mut present: Vec<_> = (0..).zip(&operations.columns).collect();
        for (index, number) in operations.instances.iter().enumerate() {
            let found = &mut self.instances[*number as usize];
            let progress = &self.progress[*number as usize];
            let is_complete = progress.is_complete(found);
            found.first = self.slots.len();
            if let Some(kept) = &team.kept {
                // Who is absent elsewhere is not known here: so everybody counts, by his rank.
                let absent = |rank: usize| Slot {
                    location: team.members[rank],
                    enter: NONE,
                    exit: NONE,
                };
                let slot = |rank: usize| operations.columns[rank].slots.get(index).copied();
                self.slots.extend(
                    kept.iter()
                        .map(|rank| *rank as usize)
                        .map(|rank| slot(rank).unwrap_or(absent(rank))),
                );
                found.members = kept.len() as u32;
            } else {
                present.retain(|(_, column)| column.slots.len() > index);
                self.slots
                    .extend(present.iter().map(|(_, column)| column.slots[index]));
            }
            let slots = &mut self.slots[found.first..];
            if slots.len() < found.members as usize {
                let ranks = present.iter().map(|(rank, _)| *rank);
                leave_absent_out(found, ranks.zip(&*slots), self.locations);
            }
            if !is_complete {
                // Each is counted where its first member is.
                self.left_out.collectives += u64::from(
                    team.kept
                        .as_ref()
                        .is_none_or(|kept| kept.first() == Some(&0)),
                );
                forget(found, progress, team.kept.as_deref(), slots, self.locations);
            }
        }
    }
}

/// Counts only those members of an operation that were there: each by its rank.
fn leave_absent_out<'a>(
    instance: &mut Instance,
    present: impl Iterator<Item = (u32, &'a Slot)>,
    locations: &mut [Location],
) {
    let (mut members, mut root) = (0, NONE);
    for (rank, slot) in present {
        if rank == instance.root {
            root = members;
        }
        for mark in [slot.enter, slot.exit]
            .into_iter()
            .filter(|mark| *mark != NONE)
        {
            let mark = &mut locations[slot.location as usize].marks[mark as usize];
            *mark = mark.with(members, mark.partner);
        }
        members += 1;
    }
    (instance.members, instance.root) = (members, root);
}

/// Makes the best of an incomplete operation: nothing, if nobody left it; or else those who did not leave it gave data.
fn forget(
    instance: &Instance,
    progress: &Progress,
    kept: Option<&[u32]>,
    slots: &mut [Slot],
    locations: &mut [Location],
) {
    let alone = |location: u32, mark: &mut u32, locations: &mut [Location]| {
        if let Some(found) = locations[location as usize].marks.get_mut(*mark as usize) {
            *found = Mark::alone(*found);
        }
        *mark = NONE;
    };
    for (rank, slot) in slots.iter_mut().enumerate() {
        let rank = kept.map_or(rank as u32, |kept| kept[rank]);
        let sends = sends(instance.kind, instance.root, rank);
        let known = progress.said_by.is_some();
        if !known || !sends {
            alone(slot.location, &mut slot.enter, locations);
        }
        if !known {
            alone(slot.location, &mut slot.exit, locations);
        }
    }
}
