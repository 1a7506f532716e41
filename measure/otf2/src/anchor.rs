//! Anchor file of an archive, which describes the layout of its other files.

use std::borrow::Cow;
use std::fs;
use std::path::Path;

use crate::Error;
use crate::error::read;
use crate::files;
use crate::raw::{CHUNK_HEADER, Decoder, END, Order, TRUNCATED};

/// Content of an anchor file, as far as it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Anchor {
    /// Byte order of the anchor file.
    pub order: Order,
    /// Version of OTF2 that wrote the archive.
    pub version: [u8; 3],
    /// Chunk size in bytes of files of events and snapshots.
    pub event_chunk: usize,
    /// Chunk size in bytes of files of definitions, markers and thumbnails.
    pub definition_chunk: usize,
    /// Number of locations.
    pub locations: u64,
    /// Number of global definitions.
    pub definitions: u64,
    /// Name of the machine on which the program ran.
    pub machine: String,
    /// Program that wrote the archive.
    pub creator: String,
    /// Description of the archive.
    pub description: String,
    /// Names and values of properties.
    pub properties: Vec<(String, String)>,
    /// Random number of the trace.
    pub trace_id: u64,
}

const MAGIC: &[u8] = b"OTF2\0";
/// Latest known format; later ones only add fields.
const FORMAT: u8 = 3;
/// Latest known format of records.
const RECORDS: u8 = 2;
const PLAIN_FILES: u8 = 1;
const NOT_COMPRESSED: u8 = 1;
const TOO_MANY: &str = "the number of definitions is larger than the definition file allows";
/// Range that OTF2 allows.
const CHUNK_SIZES: core::ops::RangeInclusive<usize> = 256 << 10..=16 << 20;

impl Default for Anchor {
    /// An archive of the latest known version, without definitions, with chunk sizes as Score-P has them.
    fn default() -> Self {
        Self {
            order: Order::Little,
            version: [3, 0, 0],
            event_chunk: 1 << 20,
            definition_chunk: 4 << 20,
            locations: 0,
            definitions: 0,
            machine: String::new(),
            creator: String::new(),
            description: String::new(),
            properties: vec![],
            trace_id: 0,
        }
    }
}

impl Anchor {
    /// Reads an anchor file, and checks that the archive consists of plain files.
    ///
    /// # Errors
    /// If it cannot be read, is not an anchor file, or belongs to a kind of archive that is not supported.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let wrong = || {
            let why = "this is not the path of an OTF2 anchor file, such as traces.otf2";
            Error::content(path, why)
        };
        if path.extension().is_none_or(|extension| extension != "otf2") {
            return Err(wrong());
        }
        if !fs::metadata(path).map_err(Error::io(path))?.is_file() {
            return Err(wrong());
        }
        let anchor = Self::parse(&read(path)?).map_err(|why| Error::content(path, why))?;
        let definitions = files::global_definitions(path);
        let size = fs::metadata(&definitions).map_err(Error::io(&definitions))?;
        // The shortest record has two bytes.
        if anchor.definitions > size.len() / 2 {
            return Err(Error::content(path, TOO_MANY));
        }
        Ok(anchor)
    }

    /// Parses the content of an anchor file.
    ///
    /// # Errors
    /// If it is truncated, is not an anchor file, or belongs to a kind of archive that is not supported.
    pub fn parse(file: &[u8]) -> Result<Self, &'static str> {
        Self::parsed(file).map(|(anchor, _)| anchor)
    }

    /// Returns the value of a property; `None` if there is no property of this name.
    pub fn property(&self, name: &str) -> Option<&str> {
        let found = self.properties.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the content of an anchor file with other properties; `None` if its format has none.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn with_properties(
        file: &[u8],
        properties: &[(String, String)],
    ) -> Result<Option<Vec<u8>>, &'static str> {
        let (anchor, place) = Self::parsed(file)?;
        Ok(place.map(|[start, end]| {
            let mut new = file[..start].to_vec();
            put_properties(properties, anchor.order, &mut new);
            new.extend(&file[end..]);
            new
        }))
    }

    /// Parses the file, and returns the place of its properties, too.
    fn parsed(file: &[u8]) -> Result<(Self, Option<[usize; 2]>), &'static str> {
        let (anchor, place, [files, compression]) = Self::decode(file).ok_or(TRUNCATED)?;
        if files != PLAIN_FILES {
            return Err(
                "the files of this archive are in a SIONlib container, which is not supported",
            );
        }
        if compression != NOT_COMPRESSED {
            return Err("the files of this archive are compressed (zlib), which is not supported");
        }
        anchor.check_chunks()?;
        if anchor.locations > anchor.definitions {
            return Err(TOO_MANY);
        }
        Ok((anchor, place))
    }

    /// Decodes the file, the place of its properties, and the codes of the kinds of its
    /// files and of their compression; `None` if bytes are missing.
    fn decode(file: &[u8]) -> Option<(Self, Option<[usize; 2]>, [u8; 2])> {
        let [CHUNK_HEADER, order, rest @ ..] = file else {
            return None;
        };
        let order = Order::from_byte(*order)?;
        let mut from = Decoder::new(rest.strip_prefix(MAGIC)?, order);
        let (format, _records) = (from.u8()?, from.u8()?);
        let version = [from.u8()?, from.u8()?, from.u8()?];
        let [events, chunk] = [from.fixed(8)?, from.fixed(8)?];
        let kinds = [from.u8()?, from.u8()?];
        let mut anchor = Self {
            order,
            version,
            event_chunk: usize::try_from(events).unwrap_or(usize::MAX),
            definition_chunk: usize::try_from(chunk).unwrap_or(usize::MAX),
            locations: from.fixed(8)?,
            definitions: from.fixed(8)?,
            machine: from.text()?.into_owned(),
            creator: from.text()?.into_owned(),
            description: from.text()?.into_owned(),
            properties: vec![],
            trace_id: 0,
        };
        let mut place = None;
        if format > 1 {
            let start = file.len() - from.remaining().len();
            for _ in 0..from.fixed(4)? {
                let [name, value] = [from.text()?, from.text()?];
                anchor
                    .properties
                    .push((name.into_owned(), value.into_owned()));
            }
            place = Some([start, file.len() - from.remaining().len()]);
            anchor.trace_id = from.fixed(8)?;
        }
        if format > 2 {
            // Numbers of snapshots and thumbnails, which have their own files.
            from.fixed(8)?;
        }
        // OTF2 closes the file with a zero.
        if format == 0 || format == FORMAT && from.remaining() != [END[0], END[1], 0] {
            return None;
        }
        Some((anchor, place, kinds))
    }

    /// Checks that OTF2 reads chunks of these sizes.
    pub(crate) fn check_chunks(&self) -> Result<(), &'static str> {
        let sizes = [self.event_chunk, self.definition_chunk];
        match sizes.iter().all(|size| CHUNK_SIZES.contains(size)) {
            true => Ok(()),
            false => Err("the size of chunks is not one that OTF2 reads"),
        }
    }

    /// Returns the content of the anchor file of an archive without snapshots and thumbnails.
    pub fn encode(&self) -> Vec<u8> {
        let order = self.order;
        let mut file = vec![CHUNK_HEADER, order as u8];
        file.extend(MAGIC);
        file.extend([FORMAT, RECORDS]);
        file.extend(self.version);
        for size in [self.event_chunk, self.definition_chunk] {
            file.extend(order.bytes(size as u64));
        }
        file.extend([PLAIN_FILES, NOT_COMPRESSED]);
        for number in [self.locations, self.definitions] {
            file.extend(order.bytes(number));
        }
        for of in [&self.machine, &self.creator, &self.description] {
            put_text(of, order, &mut file);
        }
        put_properties(&self.properties, order, &mut file);
        file.extend(order.bytes(self.trace_id));
        // No snapshots and no thumbnails.
        file.extend([0; 8]);
        file.extend(END);
        file.push(0);
        file
    }
}

fn put_text(text: &str, order: Order, to: &mut Vec<u8>) {
    crate::field::Field::encode(&Cow::Borrowed(text), order, to);
}

fn put_properties(properties: &[(String, String)], order: Order, to: &mut Vec<u8>) {
    let count = properties.len() as u32;
    to.extend(match order {
        Order::Little => count.to_le_bytes(),
        Order::Big => count.to_be_bytes(),
    });
    for (name, value) in properties {
        put_text(name, order, to);
        put_text(value, order, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Anchor file with a property, as OTF2 3.0.2 writes it.
    fn anchor() -> Vec<u8> {
        let mut bytes = vec![3, 0x42];
        bytes.extend(MAGIC);
        bytes.extend([3, 2, 3, 0, 2]);
        bytes.extend(
            [256_u64 << 10, 4 << 20]
                .map(u64::to_le_bytes)
                .as_flattened(),
        );
        bytes.extend([PLAIN_FILES, NOT_COMPRESSED]);
        bytes.extend([4_u64, 50].map(u64::to_le_bytes).as_flattened());
        bytes.extend(b"machine\0creator\0\0\x01\0\0\0NAME\0value\0");
        bytes.extend([7; 8]);
        bytes.extend([0; 8]);
        bytes.extend(END);
        bytes.push(0);
        bytes
    }

    #[test]
    fn anchors_are_those_that_otf2_writes() {
        let expected = Anchor {
            order: Order::Little,
            version: [3, 0, 2],
            event_chunk: 256 << 10,
            definition_chunk: 4 << 20,
            locations: 4,
            definitions: 50,
            machine: "machine".to_owned(),
            creator: "creator".to_owned(),
            description: String::new(),
            properties: vec![("NAME".to_owned(), "value".to_owned())],
            trace_id: 0x0707_0707_0707_0707,
        };
        assert_eq!(Anchor::parse(&anchor()), Ok(expected.clone()));
        let found = ["NAME", "NAM"].map(|name| expected.property(name));
        assert_eq!(found, [Some("value"), None]);
        assert_eq!(expected.encode(), anchor());
        let big = Anchor {
            order: Order::Big,
            ..expected
        };
        assert_eq!(Anchor::parse(&big.encode()), Ok(big));
        let mut older = anchor();
        older[7] = 1;
        assert_eq!(Anchor::parse(&older).unwrap().properties, []);
    }

    #[test]
    fn properties_are_replaced_and_all_else_is_kept() {
        let mut file = anchor();
        // Numbers of snapshots and thumbnails.
        let at = file.len() - 11;
        file[at..at + 8].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
        let other = [("A::B".to_owned(), "c\nd".to_owned())];
        let new = Anchor::with_properties(&file, &other).unwrap().unwrap();
        assert_eq!(Anchor::parse(&new).unwrap().properties, other);
        let old = [("NAME".to_owned(), "value".to_owned())];
        assert_eq!(Anchor::with_properties(&new, &old), Ok(Some(file.clone())));
        file[7] = 1;
        assert_eq!(Anchor::with_properties(&file, &old), Ok(None));
    }

    #[test]
    fn invalid_anchor_files_are_refused() {
        let good = anchor();
        for length in 0..good.len() - 1 {
            assert!(Anchor::parse(&good[..length]).is_err(), "{length}");
        }
        let refused = |at: usize, byte: u8, expected: &str| {
            let mut bad = good.clone();
            bad[at] = byte;
            let found = Anchor::parse(&bad).unwrap_err();
            assert!(found.contains(expected), "{found}");
        };
        refused(0, 0, "truncated");
        refused(1, 0, "truncated");
        refused(2, b'o', "truncated");
        refused(7, 0, "truncated");
        refused(14, 3, "chunks");
        refused(19, 1, "chunks");
        refused(28, 2, "SIONlib");
        refused(29, 2, "zlib");
        refused(33, 1, "number of definitions");
        refused(63, 2, "truncated");
        refused(66, 0x80, "truncated");
    }
}
