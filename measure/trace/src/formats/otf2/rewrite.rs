//! Rewrites the events of a location with new times; everything else is copied byte by byte.

use std::fs::File;
use std::path::Path;

use downbeat_clock_core::{Global, Timestamp};

use super::chunks::RecordWriter;
use super::event_file::EventFile;
use super::files::local;
use super::{Archive, Otf2Error};

impl Archive {
    /// Writes the events of a location to a file, with these times.
    pub(super) fn rewrite(
        &self,
        index: usize,
        times: &[Timestamp<Global>],
        to: &Path,
    ) -> Result<(), Otf2Error> {
        let path = local(&self.anchor, self.locations()[index].id, "evt");
        let mut file = EventFile::open(&path, self.chunks.events)?;
        let new = File::create_new(to).map_err(Otf2Error::io(to))?;
        let mut new = RecordWriter::new(new, self.chunks.events, file.order());
        let (mut times, mut last) = (times.iter(), 0);
        while let Some(record) = file.next()? {
            let time = *times.next().ok_or_else(|| self.wrong_times(index))?;
            let [first, end] = self.ticks_between(index, time, time)?;
            // `end` is not negative.
            let time = (first.max(0) as u64).midpoint(end as u64);
            if time < last {
                let why = "the corrected time of an event is before that of the preceding one";
                return Err(Otf2Error::content(&path, why));
            }
            last = time;
            new.add_event(time, record.bytes)
                .map_err(Otf2Error::io(to))?;
        }
        match times.next() {
            Some(_) => Err(self.wrong_times(index)),
            None => new.end().map(drop).map_err(Otf2Error::io(to)),
        }
    }
}
