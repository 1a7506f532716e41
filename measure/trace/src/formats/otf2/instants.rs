//! Times besides those of events: markers, samples of thumbnails, and snapshots. Readers of OTF2 add
//! no clock offsets to them, so they are rewritten where the events around them move.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use downbeat_otf2::raw::{
    ATTRIBUTES, Decoder, Order, Record, RecordWriter, put_record, record_range,
};
use downbeat_otf2::{EventReader, EventRecord, files};

use super::records::copy_records;
use super::rewrite::MovedClock;
use super::times::ArchiveTimes;
use super::{Archive, Otf2Error};

/// Record of a marker: its time, its duration, its definition, and its scope.
pub(super) const MARKER: u8 = 6;
/// Record of a sample of a thumbnail, which begins with its time.
pub(super) const SAMPLE: u8 = 11;
/// First kind of events in snapshots, which begin with their original times in eight bytes.
const SNAPSHOT_EVENT: u8 = 12;

/// Scopes of markers that name locations.
const LOCATION: u8 = 1;
const LOCATION_GROUP: u8 = 2;
const SYSTEM_TREE_NODE: u8 = 3;

impl Archive {
    /// Returns the new times of markers and samples of thumbnails by the clocks of the selected
    /// locations, in ticks, each with its number among all. A marker moves with the first location of
    /// its scope, all others with the first one of the archive.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn moved_instants(&self, times: ArchiveTimes<'_>) -> Result<Vec<[u64; 2]>, Otf2Error> {
        let mut by_location: Vec<Vec<(u64, u64)>> = vec![vec![]; self.locations().len()];
        let mut count = 0;
        for path in self.files_with_instants()? {
            self.with_instants(&path, |location, time| {
                by_location[location].push((time, count));
                count += 1;
                time
            })?;
        }
        let mut moved = vec![];
        for (index, mut instants) in by_location.into_iter().enumerate() {
            let is_selected = !instants.is_empty() && (times.selected)(times.location(index));
            if !is_selected || times.is_unmoved(index) {
                continue;
            }
            instants.sort_unstable();
            let mut clock = MovedClock::open(self, index, times, &self.locals[index])?;
            for (time, number) in instants {
                moved.push([number, clock.apply(time)?]);
            }
        }
        Ok(moved)
    }

    /// Writes the markers and thumbnails of the copy in `part` with these times, of which each has
    /// its number among all.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn write_instants(&self, part: &Path, mut moved: Vec<[u64; 2]>) -> Result<(), Otf2Error> {
        moved.sort_unstable();
        let mut moved = moved.into_iter().peekable();
        if moved.peek().is_none() {
            return Ok(());
        }
        let mut count = 0;
        for path in self.files_with_instants()? {
            let new = self.with_instants(&path, |_, time| {
                let found = moved.next_if(|[number, _]| *number == count);
                count += 1;
                found.map_or(time, |[_, moved]| moved)
            })?;
            let to = part.join(path.file_name().unwrap_or_default());
            fs::write(&to, new).map_err(Otf2Error::io(&to))?;
        }
        Ok(())
    }

    /// Writes the snapshots of a location, if it has any, with the times of the events around them.
    pub(super) fn write_snapshots(
        &self,
        index: usize,
        times: ArchiveTimes<'_>,
        anchor: &Path,
    ) -> Result<(), Otf2Error> {
        let [from, to] = [self.anchor(), anchor].map(|anchor| self.path_in(anchor, index, "snap"));
        if !from.exists() {
            return Ok(());
        }
        let chunk = self.files.anchor().event_chunk;
        let mut file = EventReader::open(&from, chunk, Arc::default())?;
        let (mut records, mut all) = (vec![], vec![]);
        while let Some(record) = file.next()? {
            let original = original_time_of(record);
            if record.kind >= SNAPSHOT_EVENT && original.is_none() {
                return Err(Otf2Error::content(&from, TRUNCATED));
            }
            all.push(record.time);
            all.extend(original.map(|(_, time)| time));
            records.push((record.time, original, record.bytes.to_vec()));
        }
        all.sort_unstable();
        all.dedup();
        let mut clock = MovedClock::open(self, index, times, &self.locals[index])?;
        let moved = all.iter().map(|time| clock.apply(*time));
        let moved: Vec<u64> = moved.collect::<Result<_, _>>()?;
        // All of them are there.
        let new = |time: u64| all.binary_search(&time).map_or(time, |at| moved[at]);
        let failed = |why: io::Error| Otf2Error::content(&from, why.to_string());
        let mut writer = RecordWriter::new(vec![], chunk, file.order());
        for (time, original, mut bytes) in records {
            if let Some((at, original)) = original {
                let end = at + size_of_val(&original);
                bytes[at..end].copy_from_slice(&file.order().bytes(new(original)));
            }
            writer.add_event(new(time), &bytes).map_err(failed)?;
        }
        let content = writer.finish().map_err(failed)?;
        // The copy of all files is there.
        fs::write(&to, content).map_err(Otf2Error::io(&to))
    }

    /// Lists the files of markers and of thumbnails.
    fn files_with_instants(&self) -> Result<Vec<PathBuf>, Otf2Error> {
        let is_one = |path: &PathBuf| {
            let extension = path.extension().unwrap_or_default();
            extension == "marker" || extension == "thumb"
        };
        let all = files::all(self.anchor())?.into_iter();
        let beside = |name: PathBuf| files::folder(self.anchor()).join(name);
        Ok(all.filter(is_one).map(beside).collect())
    }

    /// Returns the content of a file with all times replaced by the results of `new`, which gets each
    /// with the location by whose clock it moves, given by its index.
    fn with_instants(
        &self,
        path: &Path,
        mut new: impl FnMut(usize, u64) -> u64,
    ) -> Result<Vec<u8>, Otf2Error> {
        let failed = |why: String| Otf2Error::content(path, why);
        let file = fs::read(path).map_err(Otf2Error::io(path))?;
        let is_marker = path
            .extension()
            .is_some_and(|extension| extension == "marker");
        let copied = copy_records(&file, self.files.anchor().definition_chunk, |record| {
            let mut data = record.fields();
            let renewed = match record.kind {
                MARKER if is_marker => self.marker(record, &mut new),
                SAMPLE if !is_marker => data
                    .u64()
                    .map(|time| with_numbers(SAMPLE, &[new(0, time)], &data, record.order)),
                _ => return Ok(Some(record.bytes.into())),
            };
            renewed
                .map(|record| Some(record.into()))
                .ok_or_else(|| TRUNCATED.to_owned())
        });
        let copied = copied.map_err(failed)?;
        copied.finish().map_err(|why| failed(why.to_string()))
    }

    /// Returns the record of a marker with new times; `None` if it is truncated.
    fn marker(
        &self,
        record: Record<'_>,
        new: &mut impl FnMut(usize, u64) -> u64,
    ) -> Option<Vec<u8>> {
        let mut data = record.fields();
        let (time, duration) = (data.u64()?, data.u64()?);
        let mut rest = data;
        let (_definition, scope, reference) = (rest.u32()?, rest.u8()?, rest.u64()?);
        let location = self.of_scope(scope, reference);
        let start = new(location, time);
        let lasting = match duration {
            0 => 0,
            _ => new(location, time.saturating_add(duration)).saturating_sub(start),
        };
        Some(with_numbers(MARKER, &[start, lasting], &data, record.order))
    }

    /// Returns the index of the first location in the scope of a marker; 0 if that is not one that
    /// names locations.
    fn of_scope(&self, scope: u8, reference: u64) -> usize {
        let all = &self.definitions.locations;
        let found = all.iter().position(|location| match scope {
            LOCATION => location.reference.0 == reference,
            LOCATION_GROUP => u64::from(location.group.0) == reference,
            SYSTEM_TREE_NODE => u64::from(self.definitions.node_of(location.group.0)) == reference,
            _ => true,
        });
        found.unwrap_or(0)
    }
}

const TRUNCATED: &str = "a record is truncated, or the file is not part of an OTF2 archive";

/// Returns the place and the value of the original time of an event in a snapshot, which
/// is after its attributes; `None` if the record repeats no event, or is truncated.
pub(super) fn original_time_of(record: EventRecord<'_>) -> Option<(usize, u64)> {
    if record.kind < SNAPSHOT_EVENT {
        return None;
    }
    let (bytes, order) = (record.bytes, record.order);
    let mut at = 0;
    while *bytes.get(at)? == ATTRIBUTES {
        at = record_range(bytes, at, order)?[1];
    }
    let [start, end] = record_range(bytes, at, order)?;
    Some((start, Decoder::new(&bytes[start..end], order).fixed(8)?))
}

/// Returns a record that begins with these numbers, and ends with the other fields.
fn with_numbers(kind: u8, numbers: &[u64], others: &Decoder<'_>, order: Order) -> Vec<u8> {
    let mut fields = vec![];
    numbers
        .iter()
        .for_each(|number| order.write_number(*number, &mut fields));
    fields.extend(others.remaining());
    let mut record = vec![];
    put_record(kind, &fields, order, &mut record);
    record
}
