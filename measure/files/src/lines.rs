//! Bounded line reading: never more than the longest allowed line is in memory.

use std::io::Read;
use std::ops::Range;

use crate::{CHUNK, Crc32, Flaw};

/// Error of a file that goes on behind its end.
pub const AFTER_END: &str = "something comes after the end of the record";

/// Reader of the lines of a file.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    longest: usize,
    buffer: Vec<u8>,
    /// Begin of the bytes in the buffer that are read from the file but not returned yet.
    begin: usize,
    end: usize,
    number: u64,
    offset: u64,
    /// Range of the last line in the buffer, without its line end.
    line: Range<usize>,
    windows_end: bool,
    /// Checksum of the file up to an index of the buffer.
    checksum: Crc32,
    summed: usize,
}

impl<R: Read> Lines<R> {
    /// Reads lines of at most `longest` bytes; longer ones are errors.
    pub fn new(reader: R, longest: usize) -> Self {
        Self {
            reader,
            longest,
            buffer: vec![0; CHUNK.min(longest + 1)],
            begin: 0,
            end: 0,
            number: 0,
            offset: 0,
            line: 0..0,
            windows_end: false,
            checksum: Crc32::default(),
            summed: 0,
        }
    }

    /// Returns the next complete line, without its line end. Bytes after the last line end are not
    /// a line.
    #[inline]
    pub fn next_line(&mut self) -> Result<Option<&[u8]>, Flaw> {
        Ok(self.advance()?.then(|| self.line()))
    }

    /// Advances to the next complete line; returns false if there is none.
    #[inline]
    pub fn advance(&mut self) -> Result<bool, Flaw> {
        let mut searched = self.begin;
        loop {
            if let Some(length) = line_end(&self.buffer[searched..self.end]) {
                let line = self.begin..searched + length;
                self.begin = line.end + 1;
                self.number += 1;
                self.offset += (line.len() + 1) as u64;
                self.windows_end = self.buffer[line.clone()].ends_with(b"\r");
                self.line = line.start..line.end - usize::from(self.windows_end);
                return Ok(true);
            }
            let unfinished = self.end - self.begin;
            if unfinished > self.longest {
                return Err(self.flaw(1, format!("it is longer than {} bytes", self.longest)));
            }
            if !self.fill()? {
                return Ok(false);
            }
            searched = self.begin + unfinished;
        }
    }

    /// The line that [`advance`](Self::advance) found, without its line end.
    #[inline]
    pub fn line(&self) -> &[u8] {
        &self.buffer[self.line.clone()]
    }

    /// True if the last line ended with `\r
    /// `.
    pub fn windows_end(&self) -> bool {
        self.windows_end
    }

    /// Reads more bytes into the buffer; returns false at the end of the file.
    fn fill(&mut self) -> Result<bool, Flaw> {
        self.sum_to(self.begin);
        self.summed = 0;
        self.line = 0..0;
        self.buffer.copy_within(self.begin..self.end, 0);
        self.end -= self.begin;
        self.begin = 0;
        if self.end == self.buffer.len() {
            self.buffer.resize((self.end * 2).min(self.longest + 1), 0);
        }
        loop {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(read) => {
                    self.end += read;
                    return Ok(read > 0);
                }
                Err(why) if why.kind() == std::io::ErrorKind::Interrupted => {}
                Err(why) => return Err(Flaw::Io(why)),
            }
        }
    }

    /// Adds the bytes of the buffer up to an index to the checksum.
    fn sum_to(&mut self, end: usize) {
        self.checksum.add(&self.buffer[self.summed..end]);
        self.summed = end;
    }

    /// Checksum of all bytes before the last line.
    pub fn checksum_before_line(&mut self) -> u32 {
        self.sum_to(self.line.start);
        self.checksum.value()
    }

    /// Checksum of all bytes up to the end of the last line, to be continued.
    pub fn checksum_through_line(&mut self) -> Crc32 {
        self.sum_to(self.begin);
        self.checksum.clone()
    }

    /// Checks that the end of the file is reached.
    pub fn expect_end(&mut self) -> Result<(), Flaw> {
        let another = self.next_line()?.is_some();
        if another || !self.unfinished().is_empty() {
            return Err(self.flaw(u64::from(!another), AFTER_END));
        }
        Ok(())
    }

    /// The bytes after the last line end, once there is no further line.
    pub fn unfinished(&self) -> &[u8] {
        &self.buffer[self.begin..self.end]
    }

    /// Number of lines read.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Number of bytes up to the end of the last line.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Makes a flaw of the line `after` lines after the last one.
    pub fn flaw(&self, after: u64, why: impl Into<String>) -> Flaw {
        Flaw::Line(self.number + after, why.into())
    }
}

/// Finds the first line end, eight bytes at a time: otherwise most of the reading time would be
/// spent here.
#[inline]
fn line_end(bytes: &[u8]) -> Option<usize> {
    const LOW: u64 = u64::from_ne_bytes([1; 8]);
    let mut words = bytes.chunks_exact(8);
    let mut at = 0;
    for word in &mut words {
        // A line end becomes a zero byte. Only the lowest zero is used: those above it may be false
        // matches.
        let word = word
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u64::from(*byte))
            ^ (LOW * u64::from(b'\n'));
        let found = word.wrapping_sub(LOW) & !word & (LOW << 7);
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    words
        .remainder()
        .iter()
        .position(|byte| *byte == b'\n')
        .map(|place| at + place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(text: &[u8], longest: usize) -> Result<(Vec<Vec<u8>>, Vec<u8>), String> {
        let mut lines = Lines::new(text, longest);
        let mut found = vec![];
        while let Some(line) = lines.next_line().map_err(|flaw| format!("{flaw:?}"))? {
            found.push(line.to_vec());
        }
        assert_eq!(lines.number(), found.len() as u64);
        assert_eq!(
            lines.offset() as usize,
            text.len() - lines.unfinished().len()
        );
        Ok((found, lines.unfinished().to_vec()))
    }

    #[test]
    fn lines_end_with_lf_or_crlf() {
        let words = |words: &[&str]| {
            words
                .iter()
                .map(|word| word.as_bytes().to_vec())
                .collect::<Vec<_>>()
        };
        assert_eq!(all(b"", 9), Ok((vec![], vec![])));
        assert_eq!(
            all(b"a\r\n\nb\r\r\nc", 9),
            Ok((words(&["a", "", "b\r"]), b"c".to_vec()))
        );
        assert_eq!(
            all(b"123456789\n1", 9),
            Ok((words(&["123456789"]), b"1".to_vec()))
        );
        assert!(
            all(b"1\n1234567890\n1", 9)
                .unwrap_err()
                .starts_with("Line(2, ")
        );
    }

    /// A line of unlimited length is an error.
    #[test]
    fn a_line_without_end_is_not_read_to_its_end() {
        let mut lines = Lines::new(std::io::repeat(b'x'), 1 << 20);
        assert!(matches!(lines.next_line(), Err(Flaw::Line(1, _))));
        assert!(lines.buffer.len() <= (1 << 20) + 1);
    }

    proptest! {
        #[test]
        fn lines_are_those_that_a_split_finds(text in proptest::collection::vec(prop_oneof![3 => any::<u8>(), 1 => Just(b'\n')], 0..200)) {
            let mut expected: Vec<_> = text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            let unfinished = expected.pop().unwrap();
            expected.iter_mut().filter(|line| line.ends_with(b"\r")).for_each(|line| { line.pop(); });
            prop_assert_eq!(all(&text, 200), Ok((expected, unfinished)));
        }
    }
}
