//! Anchor file of an archive, which describes the layout of its other files.

use std::borrow::Cow;
use std::fs;
use std::path::Path;

use crate::Error;
use crate::error::read;
use crate::files;
use crate::raw::{CHUNK_HEADER, END, Order, TRUNCATED};

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
const CHUNK_SIZES: core::ops::RangeInclusive<u64> = 256 << 10..=16 << 20;

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
        let parsed = Self::parsed(file).map_err(|why| why.unwrap_or(TRUNCATED));
        parsed.map(|(anchor, _)| anchor)
    }

    /// Returns the content of an anchor file with other properties; `None` if its format has none.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn with_properties(
        file: &[u8],
        properties: &[(String, String)],
    ) -> Result<Option<Vec<u8>>, &'static str> {
        let (anchor, place) = Self::parsed(file).map_err(|why| why.unwrap_or(TRUNCATED))?;
        Ok(place.map(|[start, end]| {
            let mut new = file[..start].to_vec();
            put_properties(properties, anchor.order, &mut new);
            new.extend(&file[end..]);
            new
        }))
    }

    /// Parses the file, and returns the place of its properties, too; `Err(None)` if bytes are
    /// missing.
    fn parsed(bytes: &[u8]) -> Result<(Self, Option<[usize; 2]>), Option<&'static str>> {
        let mut rest = AnchorParser {
            bytes,
            order: Order::Little,
        };
        let [kind, order] = rest.take(2)? else {
            return Err(None);
        };
        rest.order = Order::from_byte(*order)
            .filter(|_| *kind == CHUNK_HEADER)
            .ok_or(None)?;
        if rest.take(MAGIC.len())? != MAGIC {
            return Err(None);
        }
        let format = rest.byte()?;
        let _records = rest.byte()?;
        let version = [rest.byte()?, rest.byte()?, rest.byte()?];
        let [events, chunk] = [rest.number()?, rest.number()?];
        if rest.byte()? != PLAIN_FILES {
            return Err(Some(
                "the files of this archive are in a SIONlib container, which is not supported",
            ));
        }
        if rest.byte()? != NOT_COMPRESSED {
            return Err(Some(
                "the files of this archive are compressed (zlib), which is not supported",
            ));
        }
        let [locations, definitions] = [rest.number()?, rest.number()?];
        check_chunks([events, chunk])?;
        if locations > definitions {
            return Err(Some(TOO_MANY));
        }
        let (machine, creator, description) = (rest.text()?, rest.text()?, rest.text()?);
        let (mut properties, mut trace_id, mut place) = (vec![], 0, None);
        if format > 1 {
            let start = bytes.len() - rest.bytes.len();
            let count = rest.half()?;
            for _ in 0..count {
                properties.push((rest.text()?, rest.text()?));
            }
            place = Some([start, bytes.len() - rest.bytes.len()]);
            trace_id = rest.number()?;
        }
        if format > 2 {
            // Numbers of snapshots and thumbnails, which have their own files.
            rest.take(8)?;
        }
        if format == 0 || format == FORMAT && !rest.bytes.starts_with(&END) {
            return Err(None);
        }
        let anchor = Self {
            order: rest.order,
            version,
            // Both are within `CHUNK_SIZES`.
            event_chunk: events as usize,
            definition_chunk: chunk as usize,
            locations,
            definitions,
            machine,
            creator,
            description,
            properties,
            trace_id,
        };
        Ok((anchor, place))
    }

    /// Checks that OTF2 reads chunks of these sizes.
    pub(crate) fn check_chunks(&self) -> Result<(), &'static str> {
        check_chunks([self.event_chunk as u64, self.definition_chunk as u64])
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
        // OTF2 writes it, too.
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

fn check_chunks(sizes: [u64; 2]) -> Result<(), &'static str> {
    match sizes.iter().all(|size| CHUNK_SIZES.contains(size)) {
        true => Ok(()),
        false => Err("the size of chunks is not one that OTF2 reads"),
    }
}

/// Rest of the file that is not parsed.
struct AnchorParser<'a> {
    bytes: &'a [u8],
    order: Order,
}

impl<'a> AnchorParser<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Option<&'static str>> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(None)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Option<&'static str>> {
        self.take(1).map(|byte| byte[0])
    }

    fn half(&mut self) -> Result<u32, Option<&'static str>> {
        self.take(4).map(|bytes| self.order.number(bytes) as u32)
    }

    fn number(&mut self) -> Result<u64, Option<&'static str>> {
        self.take(8).map(|bytes| self.order.number(bytes))
    }

    /// Parses a text, which ends with a zero byte.
    fn text(&mut self) -> Result<String, Option<&'static str>> {
        let length = self.bytes.iter().position(|&byte| byte == 0).ok_or(None)?;
        let text = self.take(length + 1)?;
        Ok(String::from_utf8_lossy(&text[..length]).into_owned())
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
