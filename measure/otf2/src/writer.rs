//! New archives.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::events::{Attributes, put_event};
use crate::raw::{Order, RecordWriter, put_record};
use crate::{Anchor, ClockOffset, Definition, Error, Event, LocationRef, files};

/// Archive that is written. Its anchor file is the last one, so that an incomplete archive has none.
///
/// ```
/// use downbeat_otf2::{
///     Anchor, ArchiveWriter, Definition, Event, LocationGroupRef, LocationRef, LocationType, StringRef,
///     RegionRef, definition, event,
/// };
///
/// # let folder = std::env::temp_dir().join(format!("otf2-writer-{}", std::process::id()));
/// let mut archive = ArchiveWriter::create(&folder, "traces", Anchor::default())?;
/// let mut events = archive.events(LocationRef(0))?;
/// events.write(100, &Event::Enter(event::Enter { region: RegionRef(0) }))?;
/// events.write(250, &Event::Leave(event::Leave { region: RegionRef(0) }))?;
/// let count = events.finish()?;
/// archive.define(&Definition::String(definition::String { reference: StringRef(0), text: "master".into() }))?;
/// archive.define(&Definition::Location(definition::Location {
///     reference: LocationRef(0),
///     name: StringRef(0),
///     location_type: LocationType::CPU_THREAD,
///     events: count,
///     group: LocationGroupRef::UNDEFINED,
/// }))?;
/// // ... the clock, its process, the node, the region ...
/// let anchor = archive.finish()?;
/// assert!(anchor.ends_with("traces.otf2"));
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), downbeat_otf2::Error>(())
/// ```
#[derive(Debug)]
pub struct ArchiveWriter {
    path: PathBuf,
    anchor: Anchor,
    definitions: RecordWriter<Vec<u8>>,
    record: Vec<u8>,
    scratch: Vec<u8>,
}

impl ArchiveWriter {
    /// Begins an archive with this name in a folder, which is created if it does not exist. The byte order,
    /// the sizes of chunks and the texts are those of `anchor`; the numbers of locations and definitions are
    /// counted.
    ///
    /// # Errors
    /// If the archive exists, a folder cannot be created, or a chunk size is not one that OTF2 reads.
    pub fn create(folder: &Path, name: &str, anchor: Anchor) -> Result<Self, Error> {
        let path = folder.join(format!("{name}.otf2"));
        if path.symlink_metadata().is_ok() {
            return Err(Error::content(&path, "this already exists"));
        }
        anchor
            .check_chunks()
            .map_err(|why| Error::content(&path, why))?;
        let locations = path.with_extension("");
        fs::create_dir_all(&locations).map_err(Error::io(&locations))?;
        Ok(Self {
            definitions: RecordWriter::new(vec![], anchor.definition_chunk, anchor.order),
            anchor: Anchor {
                locations: 0,
                definitions: 0,
                ..anchor
            },
            path,
            record: vec![],
            scratch: vec![],
        })
    }

    /// Adds a global definition.
    ///
    /// # Errors
    /// If it is larger than a chunk.
    pub fn define(&mut self, definition: &Definition<'_>) -> Result<(), Error> {
        let order = self.anchor.order;
        self.scratch.clear();
        definition.encode(order, &mut self.scratch);
        self.record.clear();
        put_record(definition.kind(), &self.scratch, order, &mut self.record);
        let added = self.definitions.add(&self.record);
        added.map_err(Error::io(&files::global_definitions(&self.path)))?;
        self.anchor.definitions += 1;
        self.anchor.locations += u64::from(matches!(definition, Definition::Location(_)));
        Ok(())
    }

    /// Begins the events of a location, which has the offsets of its clock, and references of the archive.
    /// Locations may be written at the same time.
    ///
    /// # Errors
    /// If a file exists or cannot be created.
    pub fn events_of(
        &self,
        location: LocationRef,
        offsets: &[ClockOffset],
    ) -> Result<EventWriter, Error> {
        let Anchor { order, .. } = self.anchor;
        let path = files::local(&self.path, location, "def");
        let file = File::create_new(&path).map_err(Error::io(&path))?;
        let mut local = RecordWriter::new(file, self.anchor.definition_chunk, order);
        for offset in offsets {
            let mut record = vec![];
            offset.write_to(order, &mut record);
            local.add(&record).map_err(Error::io(&path))?;
        }
        local.finish().map_err(Error::io(&path))?;
        let path = files::local(&self.path, location, "evt");
        let file = File::create_new(&path).map_err(Error::io(&path))?;
        Ok(EventWriter {
            to: RecordWriter::new(file, self.anchor.event_chunk, order),
            path,
            order,
            last: 0,
            record: vec![],
            scratch: vec![],
        })
    }

    /// Begins the events of a location without offsets of its clock.
    ///
    /// # Errors
    /// As [`events_of`](Self::events_of).
    pub fn events(&self, location: LocationRef) -> Result<EventWriter, Error> {
        self.events_of(location, &[])
    }

    /// Writes the global definitions and the anchor file, and returns the path of the latter. All events
    /// must be written.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn finish(self) -> Result<PathBuf, Error> {
        let path = files::global_definitions(&self.path);
        let file = self.definitions.finish().map_err(Error::io(&path))?;
        fs::write(&path, file).map_err(Error::io(&path))?;
        fs::write(&self.path, self.anchor.encode()).map_err(Error::io(&self.path))?;
        Ok(self.path)
    }
}

/// Writer of the events of a location.
#[derive(Debug)]
pub struct EventWriter {
    to: RecordWriter<File>,
    path: PathBuf,
    order: Order,
    last: u64,
    record: Vec<u8>,
    scratch: Vec<u8>,
}

impl EventWriter {
    /// Adds an event at this time in ticks.
    ///
    /// # Errors
    /// If the time is before that of the last event, or the file cannot be written.
    pub fn write(&mut self, time: u64, event: &Event<'_>) -> Result<(), Error> {
        self.write_with(time, event, &Attributes::default())
    }

    /// Adds an event with attributes.
    ///
    /// # Errors
    /// If the time is before that of the last event, or the file cannot be written.
    pub fn write_with(
        &mut self,
        time: u64,
        event: &Event<'_>,
        attributes: &Attributes<'_>,
    ) -> Result<(), Error> {
        if time < self.last {
            let why = format!("an event at {time} follows one at {}", self.last);
            return Err(Error::content(&self.path, why));
        }
        self.last = time;
        self.record.clear();
        put_event(
            event,
            attributes,
            self.order,
            &mut self.record,
            &mut self.scratch,
        );
        let added = self.to.add_event(time, &self.record);
        added.map_err(Error::io(&self.path))
    }

    /// Ends the file, and returns the number of events, which the definition of the location contains.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(self) -> Result<u64, Error> {
        let events = self.to.events();
        self.to.finish().map_err(Error::io(&self.path))?;
        Ok(events)
    }
}
