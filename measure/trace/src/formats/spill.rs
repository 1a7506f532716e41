//! Numbers that do not fit in memory, in temporary files without a name, which are deleted when
//! they are closed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use downbeat_files::FileError;
use downbeat_files::create_beside;

/// Number of values that are written or read at once.
const CHUNK: usize = 32 << 10;

/// Temporary file of numbers.
#[derive(Debug)]
struct Spill {
    file: File,
    /// Path of the output that the file is needed for, for error messages.
    path: PathBuf,
    /// Name of the file, if it could not be removed while the file is open.
    named: Option<PathBuf>,
    bytes: Vec<u8>,
}

impl Spill {
    /// Creates the file in the folder of `path`.
    fn new(path: &Path) -> Result<Self, FileError> {
        let open = |beside: &Path| {
            OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .open(beside)
        };
        let (name, file) = create_beside(path, open).map_err(FileError::io(path))?;
        let named = fs::remove_file(&name).is_err().then_some(name);
        Ok(Self {
            file,
            path: path.to_owned(),
            named,
            bytes: vec![],
        })
    }

    /// Writes numbers from index `at` on.
    fn write(&mut self, at: u64, numbers: &[u64]) -> Result<(), FileError> {
        self.bytes.clear();
        self.bytes
            .extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        self.seek(at)
            .and_then(|()| self.file.write_all(&self.bytes))
            .map_err(FileError::io(&self.path))
    }

    /// Reads `count` numbers from index `at` on.
    fn read(&mut self, at: u64, count: usize, to: &mut Vec<u64>) -> Result<(), FileError> {
        self.bytes.resize(8 * count, 0);
        let read = self
            .seek(at)
            .and_then(|()| self.file.read_exact(&mut self.bytes));
        read.map_err(FileError::io(&self.path))?;
        to.clear();
        to.extend(
            self.bytes
                .chunks_exact(8)
                .map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap_or_default())),
        );
        Ok(())
    }

    fn seek(&mut self, at: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(8 * at)).map(drop)
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        if let Some(name) = &self.named {
            // Errors cannot be reported here.
            let _ = fs::remove_file(name);
        }
    }
}

/// Stack of numbers: the last one comes back first.
#[derive(Debug)]
pub(super) struct Stack {
    spill: Spill,
    /// Number of values in the file: whole chunks.
    stored: u64,
    top: Vec<u64>,
}

impl Stack {
    /// Creates a stack in the folder of `path`.
    pub(super) fn new(path: &Path) -> Result<Self, FileError> {
        Ok(Self {
            spill: Spill::new(path)?,
            stored: 0,
            top: Vec::with_capacity(CHUNK),
        })
    }

    pub(super) fn clear(&mut self) {
        self.stored = 0;
        self.top.clear();
    }

    pub(super) fn push(&mut self, number: u64) -> Result<(), FileError> {
        self.top.push(number);
        if self.top.len() == CHUNK {
            self.spill.write(self.stored, &self.top)?;
            self.stored += CHUNK as u64;
            self.top.clear();
        }
        Ok(())
    }

    pub(super) fn pop(&mut self) -> Result<Option<u64>, FileError> {
        if self.top.is_empty() && self.stored > 0 {
            self.stored -= CHUNK as u64;
            self.spill.read(self.stored, CHUNK, &mut self.top)?;
        }
        Ok(self.top.pop())
    }
}

/// List of numbers that is filled roughly from its end to its beginning.
#[derive(Debug)]
pub(super) struct List {
    spill: Spill,
    /// Two chunks of the list, and the index of their first number.
    window: Vec<u64>,
    first: u64,
}

impl List {
    /// Creates a list of `len` numbers in the folder of `path`.
    pub(super) fn new(path: &Path, len: u64) -> Result<Self, FileError> {
        let chunk = CHUNK as u64;
        let first = (len / chunk).saturating_sub(1) * chunk;
        Ok(Self {
            spill: Spill::new(path)?,
            window: vec![0; 2 * CHUNK],
            first,
        })
    }

    /// Sets the number with this index.
    pub(super) fn put(&mut self, index: u64, number: u64) -> Result<(), FileError> {
        while index < self.first {
            self.spill
                .write(self.first + CHUNK as u64, &self.window[CHUNK..])?;
            self.window.copy_within(..CHUNK, CHUNK);
            self.first -= CHUNK as u64;
        }
        match self.window.get_mut((index - self.first) as usize) {
            Some(place) => *place = number,
            // Behind the window: written directly.
            None => self.spill.write(index, &[number])?,
        }
        Ok(())
    }

    /// Ends writing; the list is then read from its beginning.
    pub(super) fn finish(mut self) -> Result<Listed, FileError> {
        self.spill.write(self.first, &self.window)?;
        Ok(Listed {
            spill: self.spill,
            next: 0,
            chunk: vec![],
        })
    }
}

/// List that is read once.
#[derive(Debug)]
pub(super) struct Listed {
    spill: Spill,
    next: u64,
    chunk: Vec<u64>,
}

impl Listed {
    /// Returns the next number.
    pub(super) fn next(&mut self) -> Result<u64, FileError> {
        let within = (self.next % CHUNK as u64) as usize;
        if within == 0 {
            self.spill.read(self.next, CHUNK, &mut self.chunk)?;
        }
        self.next += 1;
        Ok(self.chunk[within])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_files::testing::Folder;

    #[test]
    fn spilled_numbers_come_back_and_leave_no_files() {
        let (folder, path) = Folder::with("a", b"");
        let mut stack = Stack::new(&path).unwrap();
        let many = 3 * CHUNK as u64 + 5;
        for round in 0..2 {
            (0..many).for_each(|number| stack.push(number + round).unwrap());
            let back = std::iter::from_fn(|| stack.pop().unwrap());
            assert!(back.eq((0..many).rev().map(|number| number + round)));
            (0..many).for_each(|number| stack.push(number).unwrap());
            stack.clear();
        }
        assert_eq!(stack.pop().unwrap(), None);
        for len in [0, 1, CHUNK as u64, many] {
            let mut list = List::new(&path, len).unwrap();
            // Every seventh number is late.
            let (late, others): (Vec<u64>, Vec<u64>) =
                (0..len).rev().partition(|index| index % 7 == 3);
            others
                .into_iter()
                .chain(late)
                .for_each(|index| list.put(index, index * 3).unwrap());
            let mut listed = list.finish().unwrap();
            assert!((0..len).all(|index| listed.next().unwrap() == index * 3));
        }
        // The files have no name, so that nothing remains after a crash.
        let names = || fs::read_dir(&folder.0).unwrap().count();
        assert_eq!(names(), if cfg!(unix) { 1 } else { 2 });
        drop(stack);
        assert_eq!(names(), 1);
    }
}
