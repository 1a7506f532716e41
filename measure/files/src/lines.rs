//! A file line by line, without ever holding more of it than the longest line may have.

use std::io::Read;
use std::ops::Range;

use crate::Flaw;

/// How much is read at once.
const CHUNK: usize = 256 << 10;

/// The lines of a file.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    longest: usize,
    buffer: Vec<u8>,
    /// What of the buffer is read, but not yet handed out.
    begin: usize,
    end: usize,
    number: u64,
    offset: u64,
    /// The last line, without its end.
    line: Range<usize>,
    windows_end: bool,
}

impl<R: Read> Lines<R> {
    /// Refuses lines that are longer than this.
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
        }
    }

    /// The next whole line, without its end; what comes behind the last line end is none.
    #[inline]
    pub fn next_line(&mut self) -> Result<Option<&[u8]>, Flaw> {
        Ok(self.advance()?.then(|| self.line()))
    }

    /// Goes to the next whole line, if there is one.
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

    /// The line that was gone to, without its end.
    #[inline]
    pub fn line(&self) -> &[u8] {
        &self.buffer[self.line.clone()]
    }

    /// Whether it ends as on Windows.
    pub fn windows_end(&self) -> bool {
        self.windows_end
    }

    /// Reads on; false at the end of the file.
    fn fill(&mut self) -> Result<bool, Flaw> {
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

    /// Makes sure that nothing follows.
    pub fn end(&mut self) -> Result<(), Flaw> {
        let another = self.next_line()?.is_some();
        if another || !self.unfinished().is_empty() {
            return Err(self.flaw(
                u64::from(!another),
                "something comes after the end of the record",
            ));
        }
        Ok(())
    }

    /// What stands behind the last line end, once there is no further line.
    pub fn unfinished(&self) -> &[u8] {
        &self.buffer[self.begin..self.end]
    }

    /// How many lines there were.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// How many bytes there were, up to the end of the last line.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// What is wrong with the line that comes so many lines after the last one.
    pub fn flaw(&self, after: u64, why: impl Into<String>) -> Flaw {
        Flaw::Line(self.number + after, why.into())
    }
}

/// Eight bytes at a time: most of the time that reading takes would go into this.
#[inline]
fn line_end(bytes: &[u8]) -> Option<usize> {
    const LOW: u64 = u64::from_ne_bytes([1; 8]);
    let mut words = bytes.chunks_exact(8);
    let mut at = 0;
    for word in &mut words {
        // A byte that is a line end becomes zero, and only the lowest zero is looked for: those above may be wrong.
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
    fn lines_end_in_either_way_and_the_last_one_need_not() {
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

    /// One that nobody wants to wait for the end of.
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
