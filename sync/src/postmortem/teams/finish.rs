//! Which operations are complete, and what is made of the others.

use super::{LeftOut, Operations, Progress, Teams, Track, sends};
use crate::postmortem::trace::{Instance, Location, Mark, NONE, Slot};
use crate::postmortem::{EventId, LocationId, TraceError};

/// What operations are put together from.
struct Finishing<'a> {
    lenient: bool,
    instances: Vec<Instance>,
    progress: Vec<Progress>,
    slots: Vec<Slot>,
    locations: &'a mut [Location],
    left_out: &'a mut LeftOut,
}

impl Teams {
    /// The operations and their members.
    ///
    /// # Errors
    /// When one is incomplete, unless this is to be counted.
    pub(in crate::postmortem) fn finish(
        self,
        lenient: bool,
        locations: &mut [Location],
        left_out: &mut LeftOut,
    ) -> Result<(Vec<Instance>, Vec<Slot>), TraceError> {
        let Self { teams, mut instances, progress, .. } = self;
        instances.shrink_to_fit();
        let columns = teams.iter().flat_map(|team| &team.tracks).flat_map(|operations| &operations.columns);
        let slots = Vec::with_capacity(columns.map(|column| column.slots.len()).sum());
        let mut finishing = Finishing { lenient, instances, progress, slots, locations, left_out };
        for team in teams {
            for (operations, track) in team.tracks.into_iter().zip([Track::Collective, Track::Fork, Track::Join]) {
                finishing.take(&team.members, &operations, track)?;
            }
        }
        Ok((finishing.instances, finishing.slots))
    }
}

impl Finishing<'_> {
    fn take(&mut self, members: &[u32], operations: &Operations, track: Track) -> Result<(), TraceError> {
        // Whoever is not in one operation is in none after it.
        let mut present: Vec<_> = (0..).zip(&operations.columns).collect();
        for (index, number) in operations.instances.iter().enumerate() {
            present.retain(|(_, column)| column.slots.len() > index);
            let found = &mut self.instances[*number as usize];
            let progress = &self.progress[*number as usize];
            let is_complete = progress.is_complete(found);
            if !is_complete && !self.lenient {
                let columns = &operations.columns;
                let counts: Vec<_> = columns.iter().map(|column| (column.entered, column.left)).collect();
                let enters = |rank: usize| {
                    let Slot { location, enter, .. } = *columns[rank].slots.get(index)?;
                    let mark = self.locations[location as usize].marks.get(enter as usize)?;
                    Some(EventId { location: LocationId(location), event: mark.event })
                };
                return Err(progress.refusal(track, index as u32, members, &counts, enters));
            }
            found.first = self.slots.len();
            self.slots.extend(present.iter().map(|(_, column)| column.slots[index]));
            let slots = &mut self.slots[found.first..];
            if slots.len() < found.members as usize {
                let ranks = present.iter().map(|(rank, _)| *rank);
                leave_absent_out(found, ranks.zip(&*slots), self.locations);
            }
            if !is_complete {
                self.left_out.collectives += 1;
                forget(found, progress, slots, self.locations);
            }
        }
        Ok(())
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
        for mark in [slot.enter, slot.exit].into_iter().filter(|mark| *mark != NONE) {
            let mark = &mut locations[slot.location as usize].marks[mark as usize];
            *mark = mark.with(members, mark.partner);
        }
        members += 1;
    }
    (instance.members, instance.root) = (members, root);
}

/// Makes the best of an incomplete operation: nothing, if nobody left it; or else those who did not leave it gave data.
fn forget(instance: &Instance, progress: &Progress, slots: &mut [Slot], locations: &mut [Location]) {
    let alone = |location: u32, mark: &mut u32, locations: &mut [Location]| {
        if let Some(found) = locations[location as usize].marks.get_mut(*mark as usize) {
            *found = Mark::alone(*found);
        }
        *mark = NONE;
    };
    for (rank, slot) in slots.iter_mut().enumerate() {
        let sends = sends(instance.kind, instance.root, rank as u32);
        let known = progress.said_by.is_some();
        if !known || !sends {
            alone(slot.location, &mut slot.enter, locations);
        }
        if !known {
            alone(slot.location, &mut slot.exit, locations);
        }
    }
}
