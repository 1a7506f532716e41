//! Records as Parquet, for other programs that read large amounts of data. Each group is a row
//! group.
//!
//! Factors, facts and the ends of groups are key-value metadata: `factor ranks` is `4`, and `end
//! allreduce,8,4` is `valid=2 late=1 long=0 drifted=0 avg=378.125`. Columns that are constant in
//! a group repeat its key for other programs.
//!
//! Nothing is compressed, so that reading takes half the time of Snappy or LZ4. Dictionaries store
//! repeated run-times compactly.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::Read;
use std::panic::{self, UnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Once};
use std::thread;

use bytes::Bytes;
use downbeat_files::checksum::{PLACEHOLDER, is_sound, seal};
use downbeat_files::{Checksums, NewFile, open};
use parquet::basic::Encoding;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::content::{GroupRows, Keep, LaunchBuilder, LaunchContent, RecordEnd, Tally};
use super::error::RecordFlaw;
use super::{RecordError, csv};
use crate::{GroupKey, Launch, MeasuredGroup, ObservationState};

const SCHEMA: &str = "message launch {
    required binary operation (UTF8);
    required int64 bytes (INTEGER(64, false));
    required int64 ranks (INTEGER(64, false));
    required int64 call (INTEGER(64, false));
    required binary state (UTF8);
    required double nanos;
}";
const MAGIC: &str = "downbeat launch";
const VERSION: &str = "1";
/// Number of rows that are written or read at once.
const CHUNK: usize = 1 << 16;

/// Replaces a complete record in CSV by one in Parquet.
pub(super) fn replace(path: &Path) -> Result<(), RecordError> {
    let content = csv::read(open(path)?, Keep::Rows, Checksums::Verify);
    let content = content.map_err(|flaw| flaw.in_file(path))?;
    let target = path.with_extension("parquet");
    let columns = to_columns(&content.launch, &content.rows);
    let columns = columns.map_err(|why| RecordError::content(&target, one_line(&why)))?;
    NewFile::replace(&target, columns)?;
    fs::remove_file(path).map_err(RecordError::io(path))
}

/// Encodes the file.
fn to_columns(launch: &Launch, rows: &[GroupRows]) -> Result<Vec<u8>, ParquetError> {
    let properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_column_dictionary_enabled("call".into(), false)
        .set_column_encoding("call".into(), Encoding::DELTA_BINARY_PACKED)
        .set_key_value_metadata(Some(metadata(launch)))
        .build();
    let mut writer = SerializedFileWriter::new(
        vec![],
        Arc::new(parse_message_type(SCHEMA)?),
        Arc::new(properties),
    )?;
    for (MeasuredGroup { key, .. }, rows) in launch.groups.iter().zip(rows) {
        let mut to = writer.next_row_group()?;
        column::<ByteArrayType, _>(&mut to, rows, |_| ByteArray::from(key.operation.as_str()))?;
        column::<Int64Type, _>(&mut to, rows, |_| key.bytes as i64)?;
        column::<Int64Type, _>(&mut to, rows, |_| key.ranks.into())?;
        column::<Int64Type, _>(&mut to, rows, |i| rows.calls[i] as i64)?;
        column::<ByteArrayType, _>(&mut to, rows, |i| ByteArray::from(rows.states[i].name()))?;
        column::<DoubleType, _>(&mut to, rows, |i| rows.nanos[i])?;
        to.close()?;
    }
    let mut file = writer.into_inner()?;
    if seal(&mut file) {
        Ok(file)
    } else {
        Err(ParquetError::General(
            "its metadata is incomplete".to_owned(),
        ))
    }
}

/// Writes the next column.
fn column<T: DataType, F: Fn(usize) -> T::T>(
    to: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    rows: &GroupRows,
    value: F,
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("there is no such column".to_owned());
    let mut column = to.next_column()?.ok_or_else(missing)?;
    let typed: &mut ColumnWriterImpl<'_, T> = column.typed::<T>();
    let mut values = Vec::with_capacity(CHUNK);
    for begin in (0..rows.calls.len()).step_by(CHUNK) {
        values.clear();
        values.extend((begin..rows.calls.len().min(begin + CHUNK)).map(&value));
        typed.write_batch(&values, None, None)?;
    }
    column.close()
}

fn metadata(launch: &Launch) -> Vec<KeyValue> {
    let entry = |kind: &str, name: &str, value: &str| {
        KeyValue::new(format!("{kind} {name}"), value.to_owned())
    };
    let mut all = vec![KeyValue::new(MAGIC.to_owned(), VERSION.to_owned())];
    all.extend(
        launch
            .factors
            .iter()
            .map(|(name, value)| entry("factor", name, value)),
    );
    all.extend(
        launch
            .facts
            .iter()
            .map(|(name, value)| entry("fact", name, value)),
    );
    all.extend(launch.groups.iter().map(|group| {
        entry(
            "end",
            &csv::key(&group.key),
            &csv::summary(&group.counts, &group.figures),
        )
    }));
    // The last entry: the checksum is searched from the end.
    all.push(KeyValue::new("checksum".to_owned(), PLACEHOLDER.to_owned()));
    all
}

/// Reads a record. Its checksum is always verified: the Parquet reader trusts its input, so that damage can make it panic
/// or read wrong numbers.
pub(super) fn read(mut file: File, keep: Keep) -> Result<LaunchContent, RecordFlaw> {
    let mut bytes = vec![];
    file.read_to_end(&mut bytes)?;
    if !is_sound(&bytes) {
        return Err(RecordFlaw::whole(
            "it is not a record of a launch, or is damaged: its checksum is wrong".to_owned(),
        ));
    }
    // The checksum of a file that another program made may be correct.
    let found = quietly(|| {
        let reader = SerializedFileReader::new(Bytes::from(bytes)).map_err(|why| flaw(&why))?;
        read_from(&reader, keep)
    });
    found.unwrap_or_else(|_| Err(RecordFlaw::whole("it is damaged".to_owned())))
}

thread_local! {
    /// True while a panic of this thread is no defect of ours.
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Does work that may panic, without a message of the panic. Others are printed as before.
fn quietly<T>(work: impl FnOnce() -> T + UnwindSafe) -> thread::Result<T> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |why| {
            if !IS_QUIET.get() {
                before(why);
            }
        }));
    });
    let outer = IS_QUIET.replace(true);
    let result = catch_unwind(work);
    IS_QUIET.set(outer);
    result
}

fn read_from(reader: &dyn FileReader, keep: Keep) -> Result<LaunchContent, RecordFlaw> {
    let mut builder = LaunchBuilder::default();
    let ends = read_metadata(reader, &mut builder).map_err(RecordFlaw::whole)?;
    if keep == Keep::Header {
        return Ok(builder.found());
    }
    if ends.len() != reader.num_row_groups() {
        let why = format!(
            "there are {} row groups, but {} groups end",
            reader.num_row_groups(),
            ends.len()
        );
        return Err(RecordFlaw::whole(why));
    }
    for (i, (key, (counts, figures))) in ends.into_iter().enumerate() {
        let in_group = |why: String| RecordFlaw::whole(format!("{key}: {why}"));
        let row_group = reader.get_row_group(i).map_err(|why| flaw(&why))?;
        let (rows, tally) = read_group(row_group.as_ref()).map_err(in_group)?;
        let observed = rows.states.iter().zip(&rows.nanos);
        let valid = observed.filter(|(state, _)| **state == ObservationState::Valid);
        let nanos = valid.map(|(_, nanos)| *nanos).collect();
        let group = MeasuredGroup {
            key: key.clone(),
            nanos,
            counts,
            figures,
        };
        builder
            .group(group, &tally, (keep == Keep::Rows).then_some(rows))
            .map_err(in_group)?;
    }
    builder.complete();
    builder.commit(RecordEnd::default());
    Ok(builder.found())
}

/// Reads the keys, counts and figures of the groups, in their order.
fn read_metadata(
    reader: &dyn FileReader,
    builder: &mut LaunchBuilder,
) -> Result<Vec<(GroupKey, csv::CsvSummary)>, String> {
    let all = reader
        .metadata()
        .file_metadata()
        .key_value_metadata()
        .map_or(&[][..], Vec::as_slice);
    let pair = |pair: &KeyValue| (pair.key.clone(), pair.value.clone().unwrap_or_default());
    let all: Vec<(String, String)> = all.iter().map(pair).collect();
    match all.iter().find(|(key, _)| key == MAGIC) {
        None => {
            return Err(format!(
                "this is not a record of a launch: its metadata has no \"{MAGIC}\""
            ));
        }
        Some((_, version)) if version == VERSION => {}
        Some((_, version)) => {
            return Err(format!(
                "version \"{}\" is not supported",
                version.escape_debug()
            ));
        }
    }
    let mut ends = Vec::new();
    let known = |key: &str| {
        csv::read_key(key).ok_or_else(|| format!("\"{}\" is not a group", key.escape_debug()))
    };
    for (name, value) in &all {
        if let Some(name) = name.strip_prefix("factor ") {
            builder.factor(name, value)?;
        } else if let Some(name) = name.strip_prefix("fact ") {
            builder.fact(name, value)?;
        } else if let Some(key) = name.strip_prefix("end ") {
            ends.push((known(key)?, csv::read_summary(value)?));
        }
    }
    Ok(ends)
}

fn read_group(row_group: &dyn RowGroupReader) -> Result<(GroupRows, Tally), String> {
    let names = row_group
        .metadata()
        .columns()
        .iter()
        .map(|column| column.column_path().string());
    if !names.eq(csv::COLUMNS.split(',')) {
        return Err(format!("the columns are not {}", csv::COLUMNS));
    }
    let column = |i| row_group.get_column_reader(i).map_err(|why| one_line(&why));
    let mut rows = GroupRows::default();
    match (column(3)?, column(4)?, column(5)?) {
        (
            ColumnReader::Int64ColumnReader(calls),
            ColumnReader::ByteArrayColumnReader(states),
            ColumnReader::DoubleColumnReader(nanos),
        ) => {
            read_column(calls, |call| u64::try_from(*call).ok(), &mut rows.calls)?;
            read_column(
                states,
                |state| {
                    ObservationState::ALL
                        .into_iter()
                        .find(|one| state.data() == one.name().as_bytes())
                },
                &mut rows.states,
            )?;
            read_column(
                nanos,
                |nanos| Some(*nanos).filter(|nanos| nanos.is_finite()),
                &mut rows.nanos,
            )?;
        }
        _ => return Err("the columns are not of the right types".to_owned()),
    }
    let GroupRows {
        calls,
        states,
        nanos,
    } = &rows;
    if calls.len() != states.len() || calls.len() != nanos.len() {
        return Err(format!(
            "there are {} calls, {} states and {} run-times",
            calls.len(),
            states.len(),
            nanos.len()
        ));
    }
    let mut tally = Tally::default();
    calls
        .iter()
        .zip(states)
        .try_for_each(|(call, state)| tally.add(*call, *state))?;
    Ok((rows, tally))
}

/// Reads all values of a column.
fn read_column<T: DataType, V>(
    mut column: ColumnReaderImpl<T>,
    value: impl Fn(&T::T) -> Option<V>,
    to: &mut Vec<V>,
) -> Result<(), String> {
    let mut values = Vec::with_capacity(CHUNK);
    loop {
        let (records, ..) = column
            .read_records(CHUNK, None, None, &mut values)
            .map_err(|why| one_line(&why))?;
        if records == 0 {
            return Ok(());
        }
        for found in values.drain(..) {
            to.push(value(&found).ok_or_else(|| format!("row {} has {found:?}", to.len() + 1))?);
        }
    }
}

fn flaw(why: &ParquetError) -> RecordFlaw {
    RecordFlaw::whole(one_line(why))
}

fn one_line(why: &ParquetError) -> String {
    why.to_string().replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::*;
    use crate::{Factors, Observation, Observations, RecordFormat};
    use crate::{Journal, launch_files, read_launch};
    use downbeat_files::Crc32;
    use downbeat_files::testing::TemporaryFolder;

    fn journal(folder: &TemporaryFolder) -> Journal {
        let factors = Factors::default().with("ranks", &4);
        Journal::open(
            &folder.0,
            "a",
            RecordFormat::Parquet,
            true,
            &factors,
            &Factors::default(),
        )
        .unwrap()
    }

    fn append(journal: &mut Journal, bytes: u64) {
        let observe = |i: i32| Observation {
            state: match i % 10 {
                9 => ObservationState::Late,
                _ => ObservationState::Valid,
            },
            begin: 0,
            nanos: f64::from(i * i % 17) + 400.0,
        };
        let observations = Observations((0..100).map(observe).collect());
        let key = GroupKey {
            operation: "allreduce".to_owned(),
            bytes,
            ranks: 4,
        };
        let figures = vec![("min".to_owned(), 400.0)];
        journal
            .append(
                &MeasuredGroup {
                    key,
                    nanos: vec![],
                    counts: vec![],
                    figures,
                },
                &observations,
            )
            .unwrap();
    }

    /// A small record.
    fn written() -> (TemporaryFolder, PathBuf, Vec<u8>) {
        let folder = TemporaryFolder::new();
        let mut journal = journal(&folder);
        append(&mut journal, 8);
        append(&mut journal, 16);
        journal.complete().unwrap();
        let path = folder.file("a.parquet");
        let bytes = fs::read(&path).unwrap();
        (folder, path, bytes)
    }

    #[test]
    fn an_interrupted_record_becomes_parquet_in_the_end() {
        let folder = TemporaryFolder::new();
        append(&mut journal(&folder), 8);
        let mut second = journal(&folder);
        assert_eq!(second.groups().len(), 1);
        append(&mut second, 16);
        let lines = fs::read(folder.file("a.csv")).unwrap();
        second.complete().unwrap();
        assert!(!folder.file("a.csv").exists());
        let found = read_launch(&folder.file("a.parquet"), Checksums::Verify).unwrap();
        assert_eq!(
            found
                .groups
                .iter()
                .map(|group| group.nanos.len())
                .collect::<Vec<_>>(),
            [90, 90]
        );

        // Killed before the CSV file was removed,
        fs::write(folder.file("a.csv"), &lines).unwrap();
        assert_eq!(
            launch_files(&folder.0).unwrap(),
            [("a".to_owned(), folder.file("a.parquet"))]
        );
        assert!(journal(&folder).is_complete() && !folder.file("a.csv").exists());
        // or before the Parquet file was complete.
        fs::remove_file(folder.file("a.parquet")).unwrap();
        let mut complete = [&lines, b"# complete\n".as_slice()].concat();
        let checksum = csv::CHECKSUM.line_of(Crc32::of_bytes(&complete));
        complete.extend(format!("{checksum}\n").bytes());
        fs::write(folder.file("a.csv"), complete).unwrap();
        assert!(journal(&folder).is_complete() && !folder.file("a.csv").exists());
        assert_eq!(
            read_launch(&folder.file("a.parquet"), Checksums::Verify).unwrap(),
            found
        );
    }

    /// A file that was written when the format was new.
    #[test]
    fn the_format_is_unchanged() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        let golden = read_launch(&folder.join("version-1.parquet"), Checksums::Verify).unwrap();
        let (_folder, path, _) = written();
        let launch = read_launch(&path, Checksums::Verify).unwrap();
        assert_eq!(golden, launch);
    }

    #[test]
    fn a_file_that_was_cut_off_is_an_error() {
        let (_folder, path, whole) = written();
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let why = read_launch(&path, Checksums::Verify)
                .unwrap_err()
                .to_string();
            assert!(
                why.starts_with(&format!("{}: ", path.display())) && !why.contains('\n'),
                "{why}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn a_damaged_file_is_an_error(damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
            static WRITTEN: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| written().2);
            let mut bytes = WRITTEN.clone();
            damage.iter().for_each(|(place, byte)| bytes[place.index(WRITTEN.len())] ^= byte);
            let (_folder, path) = TemporaryFolder::with_file("a.parquet", &bytes);
            prop_assert_eq!(read_launch(&path, Checksums::Verify).is_err(), bytes != *WRITTEN);
            if let Err(why) = crate::read_header(&path, Checksums::Verify) {
                prop_assert!(!why.to_string().contains('\n'));
            }
        }
    }
}
