//! Archives whose events ranks share.

use crate::ranks::Load;
use crate::{Matching, Place, TraceBuilder, TraceError};

use super::Otf2Error;
use super::archive::{Archive, Origin, PartRead, ReadOptions};
use super::error::ReadError;
use super::teams::Otf2Teams;
use crate::formats::Unread;

impl Archive {
    /// Returns the loads of all locations of the trace, with events of all kinds; none if the
    /// definitions make no sense.
    pub fn loads(&self) -> Vec<Load> {
        let mut builder = TraceBuilder::new(Matching::default());
        let teams = Otf2Teams::new(&self.definitions, &mut builder);
        let Ok(teams) = teams else {
            return vec![];
        };
        let load = |(process, place): (u32, &Place)| Load {
            process,
            place: *place,
            events: 0,
        };
        let mut loads: Vec<_> = (0..).zip(&builder.definitions.places).map(load).collect();
        for (location, found) in teams.locations.iter().zip(&self.locations) {
            let load = &mut loads[location.index()];
            load.process = builder.definitions.processes[location.index()];
            load.events = self.most_events(found) as u64;
        }
        loads
    }

    /// Reads the events of this rank, as [`read`](Self::read) does; all ranks then finish their builders.
    ///
    /// # Errors
    /// As there. Of ranks that find other mistakes, the one that found the first one is right.
    pub fn load(
        &self,
        reading: &ReadOptions,
        builder: &mut TraceBuilder,
    ) -> Result<Origin, Unread<Otf2Error>> {
        let unread = |after: usize, why: ReadError<TraceError>| Unread {
            after: after as u64,
            why: Box::new(why.into_error(|why| self.trace_error(why))),
        };
        let mut teams = Otf2Teams::new(&self.definitions, builder).map_err(|why| unread(0, why))?;
        let mut all = PartRead::default();
        for index in 0..self.locations.len() {
            let location = teams.locations[index];
            if builder.owns(location) {
                // Unused memory is not taken from the system, and freed at the end.
                let most = self.most_events(&self.locations[index]);
                let reserved = builder
                    .reserve(location, most, most)
                    .map_err(ReadError::Sink);
                reserved.map_err(|why| unread(index, why))?;
                let read = self.read_location(index, reading, &mut teams, builder);
                all.add(read.map_err(|why| unread(index + 1, why))?);
            }
        }
        Ok(Origin {
            locations: teams.locations,
            offsets: self.adds_offsets(reading),
            read: all,
        })
    }
}
