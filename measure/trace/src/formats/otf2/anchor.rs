//! Anchor file of an archive, which describes the layout of its other files.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use super::Otf2Error;
use super::error::open;
use super::files::globals;
use super::record::{CHUNK_HEADER, END, Order, TRUNCATED};

const MAGIC: &[u8] = b"OTF2\0";
const PLAIN_FILES: u8 = 1;
const NOT_COMPRESSED: u8 = 1;
/// Latest known format; later ones only add fields.
const FORMAT: u8 = 3;
const TOO_MANY: &str = "the number of definitions is larger than the definition file allows";
/// Range that OTF2 allows.
const CHUNK_SIZES: core::ops::RangeInclusive<u64> = 256 << 10..=16 << 20;

/// Chunk sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ArchiveAnchor {
    /// Chunk size of event files.
    pub(super) events: usize,
    /// Chunk size of definition files.
    pub(super) definitions: usize,
}

impl ArchiveAnchor {
    /// Opens an archive by its anchor file.
    pub(super) fn open(anchor: &Path) -> Result<Self, Otf2Error> {
        let wrong = || {
            Otf2Error::content(
                anchor,
                "this is not the path of an OTF2 anchor file, such as traces.otf2",
            )
        };
        if anchor
            .extension()
            .is_none_or(|extension| extension != "otf2")
        {
            return Err(wrong());
        }
        let file = fs::metadata(anchor).map_err(Otf2Error::io(anchor))?;
        if !file.is_file() {
            return Err(wrong());
        }
        Self::read(anchor, &globals(anchor))
    }

    /// Reads the anchor file, and checks that the archive consists of plain files.
    pub(super) fn read(path: &Path, global_definitions: &Path) -> Result<Self, Otf2Error> {
        let mut bytes = vec![];
        open(path)?
            .read_to_end(&mut bytes)
            .map_err(Otf2Error::io(path))?;
        let at_fault = |why: Option<_>| Otf2Error::content(path, why.unwrap_or(TRUNCATED));
        let (anchor, definitions) = Self::parse(&bytes).map_err(at_fault)?;
        let size = fs::metadata(global_definitions)
            .map_err(Otf2Error::io(global_definitions))?
            .len();
        // The shortest record has two bytes.
        if definitions > size / 2 {
            return Err(at_fault(Some(TOO_MANY)));
        }
        Ok(anchor)
    }

    /// Parses the file. Returns the sizes and the number of global definitions; `Err(None)` if
    /// bytes are missing.
    fn parse(bytes: &[u8]) -> Result<(Self, u64), Option<&'static str>> {
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
        // Version numbers, which OTF2 checks.
        rest.take(4)?;
        let [events, definitions] = [rest.number()?, rest.number()?];
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
        let [locations, all] = [rest.number()?, rest.number()?];
        if ![events, definitions]
            .iter()
            .all(|size| CHUNK_SIZES.contains(size))
        {
            return Err(Some("the size of chunks is not one that OTF2 writes"));
        }
        if locations > all {
            return Err(Some(TOO_MANY));
        }
        rest.strings(3)?;
        if format > 1 {
            let properties = rest.half()?;
            rest.strings(2 * u64::from(properties))?;
            rest.number()?;
        }
        if format > 2 {
            // Numbers of snapshots and thumbnails, which have their own files.
            rest.take(8)?;
        }
        if format == 0 || format == FORMAT && !rest.bytes.starts_with(&END) {
            return Err(None);
        }
        // Both are within `CHUNK_SIZES`.
        Ok((
            Self {
                events: events as usize,
                definitions: definitions as usize,
            },
            all,
        ))
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

    /// Skips strings, which end with a zero byte.
    fn strings(&mut self, count: u64) -> Result<(), Option<&'static str>> {
        for _ in 0..count {
            let length = self.bytes.iter().position(|&byte| byte == 0).ok_or(None)?;
            self.take(length + 1)?;
        }
        Ok(())
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
        bytes
    }

    #[test]
    fn chunk_sizes_are_read() {
        let expected = ArchiveAnchor {
            events: 256 << 10,
            definitions: 4 << 20,
        };
        assert_eq!(ArchiveAnchor::parse(&anchor()), Ok((expected, 50)));
        let mut older = anchor();
        older[7] = 1;
        assert_eq!(ArchiveAnchor::parse(&older), Ok((expected, 50)));
    }

    #[test]
    fn invalid_anchor_files_are_refused() {
        let good = anchor();
        for length in 0..good.len() {
            assert!(ArchiveAnchor::parse(&good[..length]).is_err(), "{length}");
        }
        let refused = |at: usize, byte: u8, expected: &str| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            let why = ArchiveAnchor::parse(&bytes).unwrap_err();
            assert!(
                why.unwrap_or("truncated").contains(expected),
                "{at}: {why:?}"
            );
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
