//! The anchor file of an archive, which says how its other files are laid out.
//!
//! OTF2 believes all numbers in it: it loops over records that there cannot be, and takes memory for them. So they are
//! looked at before OTF2 sees the file.

use std::fs;
use std::path::Path;

use super::Otf2Error;
use super::record::{CHUNK_HEADER, END_OF_BUFFER, END_OF_FILE, Order};

const MAGIC: &[u8] = b"OTF2\0";
const PLAIN_FILES: u8 = 1;
const NOT_COMPRESSED: u8 = 1;
/// The last format that is known; later ones only add to it.
const FORMAT: u8 = 3;
const TOO_MANY: &str = "it says that there are more definitions than there can be";
/// What may follow is a zero.
const END: [u8; 2] = [END_OF_FILE, END_OF_BUFFER];
/// As OTF2 has it.
const CHUNK_SIZES: core::ops::RangeInclusive<u64> = 256 << 10..=16 << 20;

/// How large chunks are, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ArchiveAnchor {
    /// Of files of events.
    pub(super) events: usize,
    /// Of files of definitions.
    pub(super) definitions: usize,
}

impl ArchiveAnchor {
    /// Reads the anchor file of an archive whose files can be read one by one.
    pub(super) fn read(path: &Path, global_definitions: &Path) -> Result<Self, Otf2Error> {
        let bytes = fs::read(path).map_err(Otf2Error::io(path))?;
        let at_fault = |why: Option<_>| {
            Otf2Error::content(
                path,
                why.unwrap_or("the file is cut short, or of no OTF2 archive"),
            )
        };
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

    /// And how many global definitions there are. `Err(None)` where bytes are missing.
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
        // Versions, which OTF2 looks at.
        rest.take(4)?;
        let [events, definitions] = [rest.number()?, rest.number()?];
        if rest.byte()? != PLAIN_FILES {
            return Err(Some(
                "the files of this archive are inside of another one (SIONlib), which is not read",
            ));
        }
        if rest.byte()? != NOT_COMPRESSED {
            return Err(Some(
                "the files of this archive are compressed (zlib), which is not read",
            ));
        }
        let [locations, all] = [rest.number()?, rest.number()?];
        if ![events, definitions]
            .iter()
            .all(|size| CHUNK_SIZES.contains(size))
        {
            return Err(Some(
                "it says that chunks have a size that OTF2 does not write",
            ));
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
            // Snapshots and thumbnails, which have files of their own.
            rest.take(8)?;
        }
        if format == 0 || format == FORMAT && !rest.bytes.starts_with(&END) {
            return Err(None);
        }
        // They are in range.
        Ok((
            Self {
                events: events as usize,
                definitions: definitions as usize,
            },
            all,
        ))
    }
}

/// What of the file was not read yet.
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

    /// Strings end with a zero.
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

    /// With a property, as OTF2 3.0.2 writes it.
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
    fn sizes_of_chunks_are_read() {
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
    fn what_cannot_be_is_refused() {
        let good = anchor();
        for length in 0..good.len() {
            assert!(ArchiveAnchor::parse(&good[..length]).is_err(), "{length}");
        }
        let refused = |at: usize, byte: u8, expected: &str| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            let why = ArchiveAnchor::parse(&bytes).unwrap_err();
            assert!(why.unwrap_or("cut").contains(expected), "{at}: {why:?}");
        };
        refused(0, 0, "cut");
        refused(1, 0, "cut");
        refused(2, b'o', "cut");
        refused(7, 0, "cut");
        refused(14, 3, "chunks");
        refused(19, 1, "chunks");
        refused(28, 2, "SIONlib");
        refused(29, 2, "zlib");
        refused(33, 1, "more definitions");
        refused(63, 2, "cut");
        refused(66, 0x80, "cut");
    }
}
