//! New archives of the items of any trace.

mod contents;
mod definitions;
mod events;

use std::path::{Path, PathBuf};

use downbeat_clock_core::Duration;
use downbeat_otf2::{Anchor, ArchiveWriter, LocationRef};

use self::contents::{NewDefinitions, StringTable};
use self::events::LocationWriter;
use super::Otf2Error;
use super::write::ArchiveCopy;
use crate::formats::MergedItems;

/// Archive that was created.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewArchive {
    /// Anchor file.
    pub anchor: PathBuf,
    /// Number of locations.
    pub locations: usize,
    /// Number of events.
    pub events: u64,
    /// Time by which all events are shifted for other readers, as OTF2 has no negative
    /// times; 0 if there are none.
    pub shift: Duration,
}

const NAME: &str = "traces";

/// Writes a new archive into a new folder, `traces.otf2` there. Messages, collective
/// operations, accesses, teams of threads and values of metrics become those of OTF2,
/// signals and waits releases and acquisitions of locks, and notes parameters. A
/// communicator with accesses is also a window; each process is a location group. Each
/// session becomes a clock offset.
///
/// [`Archive::for_each_item`](super::Archive::for_each_item) returns the same items: what
/// OTF2 cannot express is stated in properties and attributes. Events are in the order of
/// time, and those at one time in the order of their locations. The folder appears when
/// it is complete, or not at all.
///
/// # Errors
/// If the folder exists or cannot be written, or times are too far apart.
pub fn create(items: &MergedItems, folder: &Path) -> Result<NewArchive, Otf2Error> {
    let copy = ArchiveCopy::begin(folder)?;
    let mut definitions = NewDefinitions::of(items);
    let [first, last] = items.span().unwrap_or_default();
    let offsets = definitions.shift_times([first, last]).ok_or_else(|| {
        Otf2Error::content(
            folder,
            "some times are negative, and times are too far apart",
        )
    })?;
    let shift = definitions.exact.shift;
    let span = [first.saturating_add(shift), last.saturating_add(shift)];
    let mut anchor = Anchor::default();
    anchor.creator = "Downbeat".to_owned();
    anchor.trace_id = span[0] as u64 ^ (span[1] as u64).rotate_left(32);
    anchor.properties = definitions.exact.properties();
    let mut archive = ArchiveWriter::create(copy.part(), NAME, anchor)?;
    let mut signals = definitions.signal_numbers()?;
    let (mut counts, mut texts) = (vec![], StringTable::default());
    for (location, offsets) in (0..).zip(&offsets) {
        let events = archive.events_of(LocationRef(location.into()), offsets)?;
        let mut writer = LocationWriter {
            definitions: &definitions,
            unpaired: definitions.unpaired(location)?,
            signals: std::mem::take(&mut signals[location as usize]),
            texts: &mut texts,
            events,
        };
        writer.write(location)?;
        counts.push(writer.events.finish()?);
    }
    definitions.write(span, &counts, (texts, &mut archive))?;
    let anchor = archive.finish()?;
    Ok(NewArchive {
        anchor: copy.finish(anchor.file_name().unwrap_or_default())?,
        locations: counts.len(),
        events: counts.iter().sum(),
        shift: Duration::from_nanos(shift),
    })
}
