//! Records as bytes: what all files of an archive consist of. A record is a kind, a length and data, so
//! that records of unknown kinds can be skipped and copied.

mod chunks;
mod decoder;
mod order;
mod records;

pub use chunks::RecordWriter;
pub use decoder::Decoder;
pub use order::Order;
pub use records::{Record, put_record, record_range, records};

/// Kind of the global definition of the clock.
pub const CLOCK_PROPERTIES: u8 = 5;
/// Kind of a local definition of an offset of the clock.
pub const CLOCK_OFFSET: u8 = 6;
/// Kind of the attributes of the next event, in files of events and snapshots.
pub const ATTRIBUTES: u8 = 6;
/// Kind of an event whose data is the time at which a buffer had been flushed, in eight bytes.
pub const BUFFER_FLUSH: u8 = 10;

// Kinds in all files.
pub(crate) const END_OF_CHUNK: u8 = 0;
pub(crate) const END_OF_BUFFER: u8 = 1;
pub(crate) const END_OF_FILE: u8 = 2;
pub(crate) const CHUNK_HEADER: u8 = 3;
/// End of the last chunk.
pub(crate) const END: [u8; 2] = [END_OF_FILE, END_OF_BUFFER];
/// In event files: the time of all following events, in eight bytes.
pub(crate) const TIMESTAMP: u8 = 5;
/// Size of a chunk header: kind, byte order, and the numbers of the first and of the last event.
pub(crate) const HEADER: usize = 18;
/// Length code: the actual length follows in eight bytes. As a number: undefined.
pub(crate) const LONG: u8 = 0xff;
/// Error of a file that ends in the middle of a record, or is another one.
pub(crate) const TRUNCATED: &str = "the file is truncated, or is not part of an OTF2 archive";
