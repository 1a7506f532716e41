//! Checksums by which a reader notices that a file was damaged, or edited by hand.
//!
//! All are CRC-32, as of gzip and PNG. A text that grows has [lines](ChecksumLine) with the checksum of all bytes before
//! them; a file that is written at once can have its checksum at any [place](seal).

use std::io::Read;

use crate::{Crc32, Flaw, Lines};

/// Treatment of the checksums of files that are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksums {
    /// A wrong or missing checksum is an error.
    #[default]
    Verify,
    /// Checksums are skipped: files that were edited by hand can be read.
    Ignore,
}

/// End of the errors of files whose content contradicts itself. Such files can be read with [`Checksums::Ignore`].
pub const DAMAGED: &str = "the file was damaged or edited after it was written";

/// Reason of the errors of files whose checksum is wrong; ends with [`DAMAGED`].
pub const WRONG_CHECKSUM: &str =
    "its checksum is wrong: the file was damaged or edited after it was written";

/// Reason of the errors of files that lack their checksum; ends with [`DAMAGED`].
pub const MISSING_CHECKSUM: &str =
    "its checksum is missing: the file was damaged or edited after it was written";

/// Spelling of the lines of a text format that hold the checksum of all bytes of the file before them.
#[derive(Clone, Copy, Debug)]
pub struct ChecksumLine {
    /// Text before the eight hexadecimal digits.
    pub before: &'static str,
    /// Text behind them.
    pub after: &'static str,
}

impl ChecksumLine {
    /// Returns the line, without its line end.
    pub fn line_of(&self, checksum: u32) -> String {
        format!("{}{checksum:08x}{}", self.before, self.after)
    }

    /// Returns true if the current line is a checksum.
    ///
    /// # Errors
    /// If it is wrong.
    #[inline]
    pub fn check<R: Read>(&self, lines: &mut Lines<R>, checksums: Checksums) -> Result<bool, Flaw> {
        if !lines.line().starts_with(self.before.as_bytes()) {
            return Ok(false);
        }
        let expected = self.line_of(lines.checksum_before_line());
        match checksums {
            Checksums::Verify if lines.line() != expected.as_bytes() => {
                Err(lines.flaw(0, WRONG_CHECKSUM))
            }
            _ => Ok(true),
        }
    }

    /// Checks that the unfinished last line is not a checksum whose line end was damaged.
    ///
    /// # Errors
    /// If it is one.
    pub fn check_unfinished<R: Read>(&self, lines: &Lines<R>) -> Result<(), Flaw> {
        let rest = lines.unfinished();
        if rest.starts_with(self.before.as_bytes()) && rest.len() > self.line_of(0).len() {
            return Err(lines.flaw(1, WRONG_CHECKSUM));
        }
        Ok(())
    }
}

/// Placeholder for the checksum of a file that is written at once. It must not occur again after its place.
pub const PLACEHOLDER: &str = "downbeat crc32 00000000";
const ZEROS: &[u8] = b"00000000";
const BEGIN: &[u8] = b"downbeat crc32 ";

/// Replaces the [`PLACEHOLDER`] by the checksum of the file, computed with zeros in its place; returns false if there is
/// none.
pub fn seal(file: &mut [u8]) -> bool {
    let Some((place, checksum)) = compute(file) else {
        return false;
    };
    file[place..place + ZEROS.len()].copy_from_slice(format!("{checksum:08x}").as_bytes());
    true
}

/// Returns true if the checksum of a [sealed](seal) file is correct.
pub fn is_sound(file: &[u8]) -> bool {
    compute(file).is_some_and(|(place, checksum)| {
        file[place..].starts_with(format!("{checksum:08x}").as_bytes())
    })
}

/// Finds the offset of the checksum and computes its correct value.
fn compute(file: &[u8]) -> Option<(usize, u32)> {
    let place = file.windows(BEGIN.len()).rposition(|part| part == BEGIN)? + BEGIN.len();
    let mut crc = Crc32::default();
    [&file[..place], ZEROS, file.get(place + ZEROS.len()..)?]
        .iter()
        .for_each(|part| crc.add(part));
    Some((place, crc.value()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::is_noticed;

    #[test]
    fn every_change_of_a_sealed_file_is_detected() {
        let mut file = format!("downbeat crc32 before, {PLACEHOLDER}, after").into_bytes();
        assert!(!is_sound(&file));
        assert!(seal(&mut file) && is_sound(&file));
        is_noticed(&file, |damaged| !is_sound(damaged));
        for length in 0..file.len() {
            assert!(!is_sound(&file[..length]));
        }
        assert!(!seal(&mut b"downbeat crc32 000".to_vec()) && !seal(&mut []));
    }

    const LINE: ChecksumLine = ChecksumLine {
        before: "<",
        after: ">",
    };

    /// Reads a text, all of which must be followed by a checksum.
    fn read(text: &[u8], checksums: Checksums) -> Result<usize, Flaw> {
        // Short, so that the buffer is filled many times.
        let mut lines = Lines::new(text, 12);
        let (mut open, mut found) = (false, 0);
        while lines.advance()? {
            open = !LINE.check(&mut lines, checksums)?;
            found += usize::from(!open);
        }
        LINE.check_unfinished(&lines)?;
        if open || !lines.unfinished().is_empty() {
            return Err(lines.flaw(1, "cut off"));
        }
        Ok(found)
    }

    #[test]
    fn every_change_before_a_checksum_line_is_detected() {
        let mut text = String::new();
        for part in ["first\n", "\r\n", "a\nlonger\npiece\n"] {
            text += part;
            text += &format!("{}\n", LINE.line_of(Crc32::of_bytes(text.as_bytes())));
        }
        assert_eq!(read(text.as_bytes(), Checksums::Verify).unwrap(), 3);
        is_noticed(text.as_bytes(), |damaged| {
            read(damaged, Checksums::Verify).is_err()
        });
        let edited = text.replace("longer", "shorter");
        let why = read(edited.as_bytes(), Checksums::Verify).unwrap_err();
        assert!(matches!(why, Flaw::Line(8, why) if why == WRONG_CHECKSUM));
        assert!(
            [WRONG_CHECKSUM, MISSING_CHECKSUM]
                .iter()
                .all(|why| why.ends_with(DAMAGED))
        );
        assert_eq!(read(edited.as_bytes(), Checksums::Ignore).unwrap(), 3);
    }
}
