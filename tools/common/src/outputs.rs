//! Outputs of a command: none of them is an input or another output, and a file appears only when it
//! is complete.

use std::ffi::OsString;
use std::fs::{self, FileType, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use downbeat_files::{NewFile, create_folder};

use crate::Failure;
use crate::output::print;

/// Files that a command reads and writes. Outputs are added before the work begins, so that an output
/// that cannot be written costs no time.
#[derive(Debug, Default)]
pub struct Outputs {
    inputs: Vec<(PathBuf, Identity)>,
    /// Outputs, with their options.
    outputs: Vec<(String, PathBuf, Identity)>,
}

/// Identity of a file, which other paths to it share.
#[derive(Debug)]
struct Identity {
    /// Device and index of the file, if it exists.
    file: Option<FileNumber>,
    /// Folder and name, which also identify a file that does not exist yet.
    entry: Option<(FileNumber, OsString)>,
}

#[cfg(unix)]
type FileNumber = (u64, u64);
#[cfg(not(unix))]
type FileNumber = PathBuf;

impl Outputs {
    /// Creates a list without outputs; no output may be one of these inputs.
    pub fn new(inputs: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        Self {
            inputs: inputs
                .into_iter()
                .map(Into::into)
                .map(|path: PathBuf| (path.clone(), Identity::of(&path)))
                .collect(),
            outputs: vec![],
        }
    }

    /// Adds an output that is written by other means: a new folder, or a file that grows in place.
    ///
    /// # Errors
    /// If it is an input or another output; the message names the option.
    pub fn claim(&mut self, option: &str, path: &Path) -> Result<(), Failure> {
        let this = Identity::of(path);
        if let Some((input, _)) = self.inputs.iter().find(|(_, input)| this.is(input)) {
            let why = format!(
                "{} is the same file as {}, which is only read",
                path.display(),
                input.display()
            );
            return Err(Failure::option(option, why));
        }
        if let Some((other, ..)) = self.outputs.iter().find(|(.., other)| this.is(other)) {
            let why = format!("{} is also the file of {other}", path.display());
            return Err(Failure::option(option, why));
        }
        self.outputs
            .push((option.to_owned(), path.to_owned(), this));
        Ok(())
    }

    /// Adds a regular file, which is replaced when its new content is complete.
    ///
    /// # Errors
    /// As [`claim`](Self::claim), and if the file cannot be written.
    pub fn file(&mut self, option: &str, path: &Path) -> Result<(), Failure> {
        self.claim(option, path)?;
        // Dropping it removes its temporary file.
        NewFile::create(path)
            .map(drop)
            .map_err(|why| Failure::option(option, why))
    }

    /// Adds a file for text: a regular one, a stream, or `-` for standard output.
    ///
    /// # Errors
    /// As [`file`](Self::file).
    pub fn text(&mut self, option: &str, path: &Path) -> Result<(), Failure> {
        match is_stream(path) {
            true => Ok(()),
            false => self.file(option, path),
        }
    }

    /// Adds a page, a file for text, and the folder of its pictures.
    ///
    /// # Errors
    /// As [`text`](Self::text) and [`folder`](Self::folder).
    pub fn page(
        &mut self,
        option: &str,
        path: &Path,
        pictures: Option<&Path>,
    ) -> Result<(), Failure> {
        self.text(option, path)?;
        pictures.map_or(Ok(()), |folder| self.folder("--svg", folder, "svg"))
    }

    /// Adds a folder for any number of files with this extension. One that does not exist is left
    /// to be created with its files.
    ///
    /// # Errors
    /// If it cannot be created or written, or contains an input or another output with that extension.
    pub fn folder(&mut self, option: &str, path: &Path, extension: &str) -> Result<(), Failure> {
        let failed = |why| Failure::option(option, format!("{}: {why}", path.display()));
        let is_new = !path.exists();
        create_folder(path).map_err(|why| Failure::option(option, why))?;
        let has_extension = |path: &Path| path.extension().is_some_and(|found| found == extension);
        let claimed = || {
            let outputs = self.outputs.iter().map(|(_, path, this)| (path, this));
            self.inputs
                .iter()
                .map(|(path, this)| (path, this))
                .chain(outputs)
        };
        let folder = number_of(path);
        let is_inside = |(path, this): &(&PathBuf, &Identity)| {
            let other = this.entry.as_ref().map(|(folder, _)| folder);
            has_extension(path) && other == folder.as_ref()
        };
        let mut taken = claimed().find(is_inside).map(|_| path.to_owned());
        for entry in fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?.path();
            let this = Identity::of(&entry);
            if has_extension(&entry) && claimed().any(|(_, other)| this.is(other)) {
                taken = Some(entry);
            }
        }
        if let Some(taken) = taken {
            let why = format!("{} leads to an input or another output", taken.display());
            return Err(Failure::option(option, why));
        }
        NewFile::create(&path.join(format!("new.{extension}")))
            .map(drop)
            .map_err(|why| Failure::option(option, why))?;
        match is_new {
            true => fs::remove_dir(path).map_err(failed),
            false => Ok(()),
        }
    }
}

impl Identity {
    fn of(path: &Path) -> Self {
        let folder = match path.parent() {
            Some(parent) if parent.as_os_str().is_empty() => Some(Path::new(".")),
            parent => parent,
        };
        let entry = folder.zip(path.file_name());
        Self {
            file: number_of(path),
            entry: entry.and_then(|(folder, name)| Some((number_of(folder)?, name.to_owned()))),
        }
    }

    /// Returns true if both are one file, also by links.
    fn is(&self, other: &Self) -> bool {
        (self.file.is_some() && self.file == other.file)
            || (self.entry.is_some() && self.entry == other.entry)
    }
}

#[cfg(unix)]
fn number_of(path: &Path) -> Option<FileNumber> {
    use std::os::unix::fs::MetadataExt;
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn number_of(path: &Path) -> Option<FileNumber> {
    fs::canonicalize(path).ok()
}

/// Returns true for standard output, and for a terminal, a pipe or a device that takes text.
fn is_stream(path: &Path) -> bool {
    is_stdout(path) || fs::metadata(path).is_ok_and(|found| takes_text(found.file_type()))
}

fn is_stdout(path: &Path) -> bool {
    path == Path::new("-") || path == Path::new("/dev/stdout")
}

#[cfg(unix)]
fn takes_text(of: FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    of.is_char_device() || of.is_fifo()
}

#[cfg(not(unix))]
fn takes_text(_: FileType) -> bool {
    false
}

/// Writes text to a file, which keeps its old content until the new one is complete, or to a stream.
///
/// # Errors
/// A failure to create it is one of the option; a failure to write it is one at run time.
pub fn write_text(option: &str, path: &Path, text: &str) -> Result<(), Failure> {
    if is_stdout(path) {
        return print(text);
    }
    if is_stream(path) {
        let message = |why| format!("{}: {why}", path.display());
        let mut stream = OpenOptions::new()
            .write(true)
            .open(path)
            .map_err(|why| Failure::option(option, message(why)))?;
        return stream
            .write_all(text.as_bytes())
            .map_err(|why| Failure::Run(message(why)));
    }
    let mut file = NewFile::create(path).map_err(|why| Failure::option(option, why))?;
    file.write(&mut text.as_bytes().to_vec())
        .and_then(|()| file.finish())
        .map_err(Failure::run)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use downbeat_files::testing::TemporaryFolder;
    use std::os::unix::fs::symlink;

    #[expect(clippy::unwrap_used, reason = "a failed test panics")]
    fn refused(result: Result<(), Failure>) -> String {
        let why = result.unwrap_err();
        assert!(matches!(why, Failure::Input(_)), "{why:?}");
        format!("{why:?}")
    }

    /// An input by its name, by links, and through a link to its folder; and so for other outputs.
    #[test]
    fn no_file_is_written_twice_or_read_and_written() {
        let (folder, _) = TemporaryFolder::with_file("in", b"precious");
        let path = |name: &str| folder.file(name);
        symlink(path("in"), path("soft")).unwrap();
        fs::hard_link(path("in"), path("hard")).unwrap();
        symlink(path("."), path("here")).unwrap();
        for name in ["in", "./in", "soft", "hard", "here/in", "here/soft"] {
            let mut outputs = Outputs::new([path("in")]);
            for result in [
                outputs.file("-o", &path(name)),
                outputs.text("-o", &path(name)),
                outputs.claim("-o", &path(name)),
            ] {
                assert!(refused(result).contains("which is only read"), "{name}");
            }
        }
        for name in ["new", "./new", "here/new"] {
            let mut outputs = Outputs::new([path("in")]);
            outputs.file("-o", &path("new")).unwrap();
            let why = refused(outputs.text("--page", &path(name)));
            assert!(why.contains("is also the file of -o"), "{why}");
        }
        assert_eq!(fs::read_to_string(path("in")).unwrap(), "precious");
        assert!(!path("new").exists());
    }

    #[test]
    fn a_folder_of_pictures_holds_no_input() {
        let (folder, _) = TemporaryFolder::with_file("other", b"");
        let path = |name: &str| folder.file(name);
        fs::create_dir(path("a")).unwrap();
        fs::write(path("a/in.svg"), "precious").unwrap();
        fs::create_dir(path("b")).unwrap();
        symlink(path("a/in.svg"), path("b/violations.svg")).unwrap();
        for name in ["a", "b"] {
            let mut outputs = Outputs::new([path("a/in.svg")]);
            let why = refused(outputs.folder("--svg", &path(name), "svg"));
            assert!(why.contains("leads to an input or another output"), "{why}");
        }
        let mut outputs = Outputs::new([path("a/in.svg")]);
        outputs.folder("--svg", &path("c"), "svg").unwrap();
        assert!(!path("c").exists());
    }

    #[test]
    fn text_goes_to_devices_and_data_does_not() {
        let mut outputs = Outputs::default();
        for stream in ["-", "/dev/null", "/dev/stdout"] {
            outputs.text("-o", Path::new(stream)).unwrap();
        }
        let why = refused(outputs.file("-o", Path::new("/dev/null")));
        assert!(why.contains("-o: /dev/null: it is not a file"), "{why}");
        write_text("-o", Path::new("/dev/null"), "text").unwrap();
        assert!(fs::metadata("/dev/null").is_ok_and(|found| !found.is_file()));
        let full = write_text("-o", Path::new("/dev/full"), "text");
        assert!(matches!(full, Err(Failure::Run(_))), "{full:?}");
    }
}
