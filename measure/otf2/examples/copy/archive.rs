//! Copy of an archive by typed records.

use std::path::Path;

use downbeat_otf2::definition;
use downbeat_otf2::raw::Order;
use downbeat_otf2::{Archive, ArchiveWriter, Definition, Error};

/// Copies an archive to a new folder in this byte order. Returns the number of events.
pub(crate) fn copy(from: &Path, folder: &Path, order: Order) -> Result<u64, Error> {
    let archive = Archive::open(from)?;
    let mut anchor = archive.anchor().clone();
    anchor.order = order;
    let name = from.file_stem().unwrap_or_default().to_string_lossy();
    let mut to = ArchiveWriter::create(folder, &name, anchor)?;
    let definitions = archive.definitions()?;
    let mut all = 0;
    for definition in definitions.iter() {
        let definition = definition?;
        to.define(&definition)?;
        let Definition::Location(definition::Location {
            reference, events, ..
        }) = definition
        else {
            continue;
        };
        // A location without events may have no files.
        if events == 0 {
            continue;
        }
        // The events of the copy have the references of the archive, and need no mappings.
        let mut writer = to.events_of(reference, &archive.local_definitions(reference)?.offsets)?;
        let mut reader = archive.events(reference)?;
        while let Some(record) = reader.next()? {
            let (Some(event), Some(attributes)) = (record.event(), record.attributes()) else {
                let why = format!("an event of location {} cannot be decoded", reference.0);
                return Err(Error::content(from, why));
            };
            writer.write_with(record.time, &event, &attributes)?;
        }
        all += writer.finish()?;
    }
    to.finish()?;
    Ok(all)
}
