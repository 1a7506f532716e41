//! A file as bytes and numbers of variable length, without ever holding more of it than a piece.

use std::io::Read;

use downbeat_files::Flaw;

/// How much is read at once.
const CHUNK: usize = 256 << 10;

/// The bytes of a file.
#[derive(Debug)]
pub(super) struct Bytes<R> {
    reader: R,
    buffer: Vec<u8>,
    /// What of the buffer is read, but not yet handed out.
    begin: usize,
    end: usize,
    /// Where in the file the buffer begins.
    base: u64,
}

impl<R: Read> Bytes<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader,
            buffer: vec![0; CHUNK],
            begin: 0,
            end: 0,
            base: 0,
        }
    }

    /// Where the next byte is in the file.
    pub(super) fn offset(&self) -> u64 {
        self.base + self.begin as u64
    }

    /// The next byte; `None` at the end of the file.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<u8>, Flaw> {
        if self.begin == self.end && !self.fill()? {
            return Ok(None);
        }
        let byte = self.buffer[self.begin];
        self.begin += 1;
        Ok(Some(byte))
    }

    /// The next byte, which has to be there.
    #[inline]
    fn byte(&mut self) -> Result<u8, Flaw> {
        self.next()?.ok_or_else(|| self.cut_off())
    }

    /// The next number, seven bits to a byte, the lowest first.
    #[inline]
    pub(super) fn number(&mut self) -> Result<u64, Flaw> {
        let offset = self.offset();
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Flaw::Byte(
            offset,
            "a number has more than 64 bits".to_owned(),
        ))
    }

    /// The next number, which is one of `what`.
    #[inline]
    pub(super) fn u32(&mut self, what: &str) -> Result<u32, Flaw> {
        let offset = self.offset();
        let number = self.number()?;
        u32::try_from(number).map_err(|_| Flaw::Byte(offset, format!("{number} is not {what}")))
    }

    /// The next number, which may be negative: the lowest bit is its sign.
    #[inline]
    pub(super) fn signed(&mut self) -> Result<i64, Flaw> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// The next text, which is at most so long, to `text`.
    pub(super) fn text(&mut self, longest: usize, text: &mut String) -> Result<(), Flaw> {
        let offset = self.offset();
        let length = self.number()?;
        if length > longest as u64 {
            return Err(Flaw::Byte(
                offset,
                format!("a text of {length} bytes is longer than {longest} bytes"),
            ));
        }
        let mut bytes = core::mem::take(text).into_bytes();
        bytes.clear();
        for _ in 0..length {
            bytes.push(self.byte()?);
        }
        *text = String::from_utf8(bytes)
            .map_err(|_| Flaw::Byte(offset, "a text is no UTF-8".to_owned()))?;
        Ok(())
    }

    pub(super) fn cut_off(&self) -> Flaw {
        Flaw::Byte(self.offset(), "the file is cut off here".to_owned())
    }

    /// Reads on; false at the end of the file.
    #[cold]
    fn fill(&mut self) -> Result<bool, Flaw> {
        loop {
            match self.reader.read(&mut self.buffer) {
                Ok(read) => {
                    self.base += self.end as u64;
                    (self.begin, self.end) = (0, read);
                    return Ok(read > 0);
                }
                Err(why) if why.kind() == std::io::ErrorKind::Interrupted => {}
                Err(why) => return Err(Flaw::Io(why)),
            }
        }
    }
}

/// Adds a number as [`Bytes::number`] reads it.
pub(super) fn put(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Adds a number as [`Bytes::signed`] reads it.
pub(super) fn put_signed(to: &mut Vec<u8>, number: i64) {
    put(to, (number << 1 ^ number >> 63) as u64);
}

/// Adds a text as [`Bytes::text`] reads it.
pub(super) fn put_text(to: &mut Vec<u8>, text: &str) {
    put(to, text.len() as u64);
    to.extend_from_slice(text.as_bytes());
}
