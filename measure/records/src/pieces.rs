//! Pieces of a record in text: what is written at once, with its checksum.

use std::io::Read;

use downbeat_files::{ChecksumLine, Checksums, Flaw, Lines};

use super::content::{LaunchBuilder, RecordEnd};

/// Reader of the pieces of a record: what is written at once ends with a checksum, from version 2 on.
#[derive(Debug)]
pub(super) struct PieceReader {
    line: ChecksumLine,
    checksums: Checksums,
    is_sealed: bool,
    /// True between a piece and its checksum.
    is_open: bool,
    end: RecordEnd,
}

impl PieceReader {
    /// Begins to read a record, whose version tells if it has checksums.
    pub(super) fn new(line: ChecksumLine, is_sealed: bool, checksums: Checksums) -> Self {
        Self {
            line,
            checksums,
            is_sealed,
            is_open: false,
            end: RecordEnd::default(),
        }
    }

    /// Takes the last line of a piece, and reads its checksum; returns false if the file ends before
    /// it.
    pub(super) fn whole_piece<R: Read>(
        &mut self,
        lines: &mut Lines<R>,
        builder: &mut LaunchBuilder,
    ) -> Result<bool, Flaw> {
        self.piece(lines, builder)?;
        if self.is_open {
            if !lines.advance()? {
                self.line.check_unfinished(lines)?;
                return Ok(false);
            }
            self.take(lines, builder)?;
        }
        Ok(true)
    }

    /// Takes the last line of a piece.
    pub(super) fn piece<R: Read>(
        &mut self,
        lines: &mut Lines<R>,
        builder: &mut LaunchBuilder,
    ) -> Result<(), Flaw> {
        self.is_open = self.is_sealed && self.checksums == Checksums::Verify;
        if !self.is_open {
            self.commit(lines, builder);
        }
        if builder.is_complete() && !self.is_sealed {
            lines.end()?;
        }
        Ok(())
    }

    /// Takes the current line if it is a checksum; returns false if it is not.
    #[inline]
    pub(super) fn take<R: Read>(
        &mut self,
        lines: &mut Lines<R>,
        builder: &mut LaunchBuilder,
    ) -> Result<bool, Flaw> {
        if self.line.check(lines, self.checksums)? {
            if !self.is_sealed && self.checksums == Checksums::Verify {
                return Err(lines.flaw(0, "a record of version 1 has no checksums"));
            }
            self.is_open = false;
            self.commit(lines, builder);
            if builder.is_complete() {
                lines.end()?;
            }
            return Ok(true);
        }
        if self.is_open {
            return Err(lines.flaw(0, "the checksum of the lines before is missing"));
        }
        Ok(false)
    }

    fn commit<R: Read>(&mut self, lines: &mut Lines<R>, builder: &mut LaunchBuilder) {
        builder.commit();
        self.end = RecordEnd {
            bytes: lines.offset(),
            checksum: self.is_sealed.then(|| lines.checksum_through_line()),
        };
    }

    /// Returns the end of the last whole piece, after all lines.
    pub(super) fn end<R: Read>(self, lines: &Lines<R>) -> Result<RecordEnd, Flaw> {
        if self.is_sealed && self.checksums == Checksums::Verify {
            self.line.check_unfinished(lines)?;
        }
        Ok(self.end)
    }
}
