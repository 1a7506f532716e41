//! Archives whose events ranks share.

use crate::PartBuilder;

use super::Otf2Error;
use super::archive::{Archive, Origin, ReadOptions};
use super::sink::ReadError;
use crate::formats::Unread;

impl Archive {
    /// Of every location of the trace, the number of the one that stands for its process, mostly its own, and how many events
    /// it has, of all kinds. There are none if the definitions make no sense.
    pub fn loads(&self) -> Vec<(u32, u64)> {
        let Some(teams) = self.teams() else {
            return vec![];
        };
        let mut loads = vec![(0, 0); teams.locations.len()];
        for (location, found) in teams.locations.iter().zip(&self.locations) {
            loads[location.index()] = (teams.rank_of(*location).index() as u32, found.events);
        }
        loads
    }

    /// As [`read`](Self::read), of what a rank keeps; the builder is to be finished when all went well.
    ///
    /// # Errors
    /// As there. Of ranks that find other mistakes, the one that found the first one is right.
    pub fn load(
        &self,
        reading: &ReadOptions,
        builder: &mut PartBuilder,
    ) -> Result<Origin, Unread<Otf2Error>> {
        match self.read_into(reading, &mut **builder) {
            Ok((locations, _)) => Ok(Origin {
                locations,
                offsets: reading.offsets,
            }),
            // Where the same event is the last one, a rank that could not take it was earlier.
            Err(ReadError::Archive(why)) => Err(Unread {
                after: 2 * builder.added() + 1,
                why: Box::new(why),
            }),
            Err(ReadError::Sink(why)) => Err(Unread {
                after: 2 * builder.added(),
                why: Box::new(self.trace_error(why)),
            }),
        }
    }
}
