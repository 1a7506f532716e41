//! Copies of files of definitions, markers and thumbnails in which some records differ.
//! OTF2 can only write whole archives, and an archive may contain records that the
//! installed version does not know.

use std::borrow::Cow;

use downbeat_otf2::raw::{Order, Record, RecordWriter, records};

/// Copies a file of chunks of this size record by record. Returns the writer, which takes
/// further records. `renewed` returns what takes the place of a record, if anything does.
pub(super) fn copy_records<'a>(
    file: &'a [u8],
    chunk: usize,
    mut renewed: impl FnMut(Record<'a>) -> Result<Option<Cow<'a, [u8]>>, String>,
) -> Result<RecordWriter<Vec<u8>>, String> {
    // Without one, the first record is an error.
    let order = Order::of_file(file).unwrap_or_default();
    let mut to = RecordWriter::new(vec![], chunk, order);
    for record in records(file, chunk) {
        if let Some(bytes) = renewed(record?)? {
            to.add(&bytes).map_err(|why| why.to_string())?;
        }
    }
    Ok(to)
}
