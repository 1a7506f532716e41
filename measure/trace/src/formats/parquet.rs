//! Export to Parquet, for data frames: pandas, polars, DuckDB. There is one row for each event.
//!
//! | column | type | content |
//! |---|---|---|
//! | `location` | int32 | number of the location, from 0 |
//! | `name` | string | its name |
//! | `rank` | int32 | MPI rank, if the name begins with it; otherwise the number of the process |
//! | `time` | int64 | time in nanoseconds |
//! | `kind` | string | type of the event, by its name in text traces: `enter`, `leave`, `send`, `receive`, `collective`, `collective-end` and so on |
//! | `region` | string | name of the region, or of the metric; text of a note; for the end of a collective operation, the operation |
//! | `partner` | int32 | location at the other end of a message, or target of an access |
//! | `tag` | int32 | tag of a message |
//! | `bytes` | int64 | length of a message or an access, or the data that a member contributed to a collective operation, if it is known |
//! | `value` | double | value of a metric, in its unit; the kind is `metric` |
//!
//! Values that an event does not have are null. Rows are in the order of the items.
//!
//! ```
//! use std::path::Path;
//!
//! use downbeat_trace::formats::TraceReader;
//! use downbeat_trace::formats::parquet::ParquetWriter;
//!
//! # fn main() -> Result<(), Box<dyn core::error::Error>> {
//! # let to = std::env::temp_dir().join(format!("downbeat-{}.parquet", std::process::id()));
//! let text = "# downbeat trace 1 without checksum\nlocation 0 0 0 a\nregion 0 main\n0 7010 enter 0\n0 7900 leave 0\nend 2\n";
//! let mut reader = TraceReader::new(Path::new("text"), text.as_bytes())?;
//! let mut writer = ParquetWriter::create(&to)?;
//! while let Some(item) = reader.next_item()? {
//!     writer.write(&item)?;
//! }
//! assert_eq!(writer.finish()?, [1, 2]);
//! # std::fs::remove_file(&to)?;
//! # Ok(())
//! # }
//! ```

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use downbeat_clock_core::{Global, Timestamp};
use downbeat_files::{FileError, NewFile};
use parquet::basic::{Compression, Encoding};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::Item;
use super::definitions::FileDefinitions;
use crate::Event;

const SCHEMA: &str = "message trace {
    required int32 location;
    required binary name (UTF8);
    required int32 rank;
    required int64 time;
    required binary kind (UTF8);
    optional binary region (UTF8);
    optional int32 partner;
    optional int32 tag;
    optional int64 bytes;
    optional double value;
}";

/// Number of rows of a row group, which are in memory at a time.
const ROWS: usize = 1 << 17;

/// Writes a trace as Parquet, item by item. The file appears when [`finish`](Self::finish) returns; an
/// existing file is kept until then.
pub struct ParquetWriter {
    path: PathBuf,
    definitions: FileDefinitions,
    locations: Vec<TableLocation>,
    regions: Vec<ByteArray>,
    metrics: Vec<ByteArray>,
    /// Rows that are not written.
    rows: Vec<Row>,
    writer: SerializedFileWriter<Output>,
}

/// Cells of a location that do not change.
struct TableLocation {
    name: ByteArray,
    rank: i32,
    process: u32,
}

/// Row of an event.
struct Row {
    location: u32,
    time: i64,
    kind: &'static str,
    region: Option<ByteArray>,
    partner: Option<i32>,
    tag: Option<i32>,
    bytes: Option<i64>,
    value: Option<f64>,
}

/// New file that Parquet writes to.
struct Output {
    file: NewFile,
    buffer: Vec<u8>,
}

impl io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= downbeat_files::CHUNK {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write(&mut self.buffer).map_err(|why| match why {
            FileError::Io { why, .. } => why,
            other => io::Error::other(other),
        })
    }
}

impl ParquetWriter {
    /// Begins a file at `path`.
    ///
    /// # Errors
    /// If the file cannot be created, or something other than a file is there.
    pub fn create(path: &Path) -> Result<Self, FileError> {
        let output = Output {
            file: NewFile::create(path)?,
            buffer: vec![],
        };
        let writer = begin(output).map_err(|why| failed(path, why))?;
        Ok(Self {
            path: path.to_owned(),
            definitions: FileDefinitions::default(),
            locations: vec![],
            regions: vec![],
            metrics: vec![],
            rows: vec![],
            writer,
        })
    }

    /// Writes the next item.
    ///
    /// # Errors
    /// If it cannot be written, or is not valid here.
    pub fn write(&mut self, item: &Item<'_>) -> Result<(), FileError> {
        self.definitions.take(item).map_err(FileError::Unwritable)?;
        match *item {
            Item::Location { place, name } => self.add_location(place.process, name),
            Item::Thread { rank, name } => {
                let process = self.locations[rank as usize].process;
                self.add_location(process, name);
            }
            Item::Region { name } => self.regions.push(ByteArray::from(name)),
            Item::Communicator { .. } | Item::Master { .. } | Item::Sample { .. } => {}
            Item::Metric { name, .. } => self.metrics.push(ByteArray::from(name)),
            Item::Event {
                location,
                time,
                event,
            } => {
                self.row(location, time, event);
                if self.rows.len() == ROWS {
                    self.end_group()?;
                }
            }
        }
        Ok(())
    }

    /// Adds the row of an event.
    fn row(&mut self, location: u32, time: Timestamp<Global>, event: Event<'_>) {
        let region = match event {
            Event::Enter { region } | Event::Leave { region } => {
                self.regions.get(region as usize).cloned()
            }
            Event::Note(text) => Some(ByteArray::from(text)),
            Event::CollectiveEnd { kind, .. } => Some(ByteArray::from(kind.name())),
            Event::Metric { metric, .. } => self.metrics.get(metric as usize).cloned(),
            _ => None,
        };
        let bytes = event.bytes();
        self.rows.push(Row {
            location,
            time: time.as_nanos(),
            kind: row_kind(event),
            region,
            partner: event.peer().map(|peer| peer as i32),
            tag: event.tag(),
            bytes: bytes.map(|bytes| bytes.min(i64::MAX as u64) as i64),
            value: match event {
                Event::Metric { value, .. } => Some(value.as_f64()),
                _ => None,
            },
        });
    }

    fn add_location(&mut self, process: u32, name: &str) {
        let of_rank = name.strip_prefix("rank ");
        let rank = of_rank.and_then(|rest| rest.split(',').next()?.parse().ok());
        self.locations.push(TableLocation {
            name: ByteArray::from(name),
            rank: rank.unwrap_or(process as i32),
            process,
        });
    }

    fn end_group(&mut self) -> Result<(), FileError> {
        let written = write_group(&mut self.writer, &self.locations, &self.rows);
        self.rows.clear();
        written.map_err(|why| failed(&self.path, why))
    }

    /// Ends the file, and replaces an existing one. Returns the numbers of locations and of events.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> Result<[u64; 2], FileError> {
        if !self.rows.is_empty() {
            self.end_group()?;
        }
        let output = self.writer.into_inner();
        let Output {
            mut file,
            mut buffer,
        } = output.map_err(|why| failed(&self.path, why))?;
        file.write(&mut buffer)?;
        file.finish()?;
        Ok([self.definitions.locations().into(), self.definitions.events])
    }
}

fn begin(output: Output) -> Result<SerializedFileWriter<Output>, ParquetError> {
    let mut properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_compression(Compression::UNCOMPRESSED)
        .set_column_dictionary_enabled("time".into(), false)
        .set_column_encoding("time".into(), Encoding::DELTA_BINARY_PACKED);
    properties =
        properties.set_created_by(concat!("downbeat ", env!("CARGO_PKG_VERSION")).to_owned());
    SerializedFileWriter::new(
        output,
        Arc::new(parse_message_type(SCHEMA)?),
        Arc::new(properties.build()),
    )
}

fn write_group(
    writer: &mut SerializedFileWriter<Output>,
    locations: &[TableLocation],
    rows: &[Row],
) -> Result<(), ParquetError> {
    let location_of = |row: &Row| &locations[row.location as usize];
    let mut columns = Columns {
        group: writer.next_row_group()?,
        rows,
    };
    columns.add::<Int32Type>(|row| row.location as i32)?;
    columns.add::<ByteArrayType>(|row| location_of(row).name.clone())?;
    columns.add::<Int32Type>(|row| location_of(row).rank)?;
    columns.add::<Int64Type>(|row| row.time)?;
    columns.add::<ByteArrayType>(|row| ByteArray::from(row.kind))?;
    columns.add_nullable::<ByteArrayType>(|row| row.region.clone())?;
    columns.add_nullable::<Int32Type>(|row| row.partner)?;
    columns.add_nullable::<Int32Type>(|row| row.tag)?;
    columns.add_nullable::<Int64Type>(|row| row.bytes)?;
    columns.add_nullable::<DoubleType>(|row| row.value)?;
    columns.group.close().map(drop)
}

/// Columns of a row group, one after the other.
struct Columns<'a> {
    group: SerializedRowGroupWriter<'a, Output>,
    rows: &'a [Row],
}

impl Columns<'_> {
    fn add<T: DataType>(&mut self, value: impl Fn(&Row) -> T::T) -> Result<(), ParquetError> {
        let values: Vec<T::T> = self.rows.iter().map(value).collect();
        self.write::<T>(&values, None)
    }

    fn add_nullable<T: DataType>(
        &mut self,
        value: impl Fn(&Row) -> Option<T::T>,
    ) -> Result<(), ParquetError> {
        let cells: Vec<Option<T::T>> = self.rows.iter().map(value).collect();
        let levels: Vec<i16> = cells.iter().map(|cell| cell.is_some().into()).collect();
        let values: Vec<T::T> = cells.into_iter().flatten().collect();
        self.write::<T>(&values, Some(&levels))
    }

    fn write<T: DataType>(
        &mut self,
        values: &[T::T],
        levels: Option<&[i16]>,
    ) -> Result<(), ParquetError> {
        let missing = || ParquetError::General("there is no such column".to_owned());
        let mut column = self.group.next_column()?.ok_or_else(missing)?;
        column.typed::<T>().write_batch(values, levels, None)?;
        column.close()
    }
}

fn failed(path: &Path, why: ParquetError) -> FileError {
    let why = match why {
        ParquetError::External(why) => match why.downcast::<io::Error>() {
            Ok(why) => *why,
            Err(why) => io::Error::other(why),
        },
        why => io::Error::other(why),
    };
    FileError::Io {
        path: path.to_owned(),
        why,
    }
}

/// Returns the kind of an event, which is one for all sends.
const fn row_kind(event: Event<'_>) -> &'static str {
    match event {
        Event::Send { .. } => "send",
        _ => event.name(),
    }
}

impl core::fmt::Debug for ParquetWriter {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ParquetWriter")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use downbeat_files::testing::TemporaryFolder;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::*;
    use crate::formats::TraceReader;

    #[test]
    fn rows_have_the_values_of_events() {
        let text = "# downbeat trace 1 without checksum\nlocation 0 0 4 a\nlocation 1 1 5 rank 12, Master thread\ncommunicator 0 0 1\n\
                    region 0 main\n0 5 enter 0\n0 7 send 1 0 -42 99\n0 8 note some text\n0 9 leave 0\n1 9 receive 0 0 -42\n\
                    1 10 collective 0\n1 11 collective-end 0 scan 0 both\n1 12 get 0 0 3 8\nend 8\n";
        let (_folder, path) = TemporaryFolder::with_file("a.parquet", b"");
        let mut reader = TraceReader::new(Path::new("text"), text.as_bytes()).unwrap();
        let mut writer = ParquetWriter::create(&path).unwrap();
        while let Some(item) = reader.next_item().unwrap() {
            writer.write(&item).unwrap();
        }
        assert_eq!(writer.finish().unwrap(), [2, 8]);
        let file = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        let rows = file.get_row_iter(None).unwrap().map(|row| {
            let row = row.unwrap();
            let cell = |column: usize| row.get_column_iter().nth(column).unwrap().1.to_string();
            let rank = row.get_int(2).unwrap();
            (
                row.get_int(0).unwrap(),
                rank,
                row.get_long(3).unwrap(),
                [4, 5, 6, 7, 8].map(cell),
            )
        });
        let found: Vec<_> = rows.collect();
        let row = |location, rank, time, cells: [&str; 5]| {
            (location, rank, time, cells.map(str::to_owned))
        };
        let expected = [
            row(0, 4, 5, ["\"enter\"", "\"main\"", "null", "null", "null"]),
            row(0, 4, 7, ["\"send\"", "null", "1", "-42", "99"]),
            row(
                0,
                4,
                8,
                ["\"note\"", "\"some text\"", "null", "null", "null"],
            ),
            row(0, 4, 9, ["\"leave\"", "\"main\"", "null", "null", "null"]),
            row(1, 12, 9, ["\"receive\"", "null", "0", "-42", "null"]),
            row(
                1,
                12,
                10,
                ["\"collective\"", "null", "null", "null", "null"],
            ),
            row(
                1,
                12,
                11,
                ["\"collective-end\"", "\"scan\"", "null", "null", "null"],
            ),
            row(1, 12, 12, ["\"get\"", "null", "0", "null", "8"]),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn groups_are_limited() {
        let (_folder, path) = TemporaryFolder::with_file("a.parquet", b"");
        let mut writer = ParquetWriter::create(&path).unwrap();
        let place = crate::Place {
            node: 0,
            process: 0,
        };
        writer.write(&Item::Location { place, name: "a" }).unwrap();
        let events = ROWS as i64 + 3;
        for time in 0..events {
            let item = Item::Event {
                location: 0,
                time: Timestamp::from_nanos(time),
                event: Event::Signal { id: 1 },
            };
            writer.write(&item).unwrap();
        }
        writer.finish().unwrap();
        let file = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        assert_eq!(file.num_row_groups(), 2);
        assert_eq!(file.metadata().file_metadata().num_rows(), events);
    }
}
