//! Archives that are read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::read;
use crate::raw::{Order, Record, records};
use crate::{Anchor, Definition, Error, EventReader, LocalDefinitions, LocationRef, files};

/// Archive that is open for reading. It is never modified.
#[derive(Clone, Debug)]
pub struct Archive {
    path: PathBuf,
    anchor: Anchor,
}

impl Archive {
    /// Opens an archive by its anchor file, `NAME.otf2`.
    ///
    /// # Errors
    /// If the file is missing, is not an anchor file, or belongs to a kind of archive that is not
    /// supported.
    pub fn open(anchor: impl AsRef<Path>) -> Result<Self, Error> {
        let path = anchor.as_ref().to_owned();
        let anchor = Anchor::read(&path)?;
        Ok(Self { path, anchor })
    }

    /// Returns the path of the anchor file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the content of the anchor file.
    pub const fn anchor(&self) -> &Anchor {
        &self.anchor
    }

    /// Reads the global definitions.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn definitions(&self) -> Result<Definitions, Error> {
        let path = files::global_definitions(&self.path);
        Ok(Definitions {
            file: read(&path)?,
            chunk: self.anchor.definition_chunk,
            path,
        })
    }

    /// Reads the local definitions of a location. Some archives have none.
    ///
    /// # Errors
    /// If the file exists and cannot be read or decoded.
    pub fn local_definitions(&self, location: LocationRef) -> Result<LocalDefinitions, Error> {
        let path = files::local(&self.path, location, "def");
        if !path.exists() {
            return Ok(LocalDefinitions::default());
        }
        LocalDefinitions::parse(&read(&path)?, self.anchor.definition_chunk)
            .map_err(|why| Error::content(&path, why))
    }

    /// Opens the events of a location, whose local definitions are read for them.
    ///
    /// # Errors
    /// If a file cannot be read, or the local definitions cannot be decoded.
    pub fn events(&self, location: LocationRef) -> Result<EventReader, Error> {
        let local = Arc::new(self.local_definitions(location)?);
        self.events_with(location, local)
    }

    /// Opens the events of a location with local definitions that were read before.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn events_with(
        &self,
        location: LocationRef,
        local: Arc<LocalDefinitions>,
    ) -> Result<EventReader, Error> {
        let path = files::local(&self.path, location, "evt");
        EventReader::open(&path, self.anchor.event_chunk, local)
    }
}

/// File of global definitions.
#[derive(Clone, Debug)]
pub struct Definitions {
    file: Vec<u8>,
    chunk: usize,
    path: PathBuf,
}

impl Definitions {
    /// Takes the content of a file with chunks of this size; the path is for errors.
    pub fn new(file: Vec<u8>, chunk: usize, path: &Path) -> Self {
        Self {
            file,
            chunk,
            path: path.to_owned(),
        }
    }

    /// Returns the byte order of the file; `None` if it is not one of definitions.
    pub fn order(&self) -> Option<Order> {
        Order::of_file(&self.file)
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Iterates over all definitions, in their order. After an error of the file there are no further
    /// definitions; a definition that cannot be decoded is an error of its own.
    pub fn iter(&self) -> impl Iterator<Item = Result<Definition<'_>, Error>> {
        self.records().enumerate().map(|(number, record)| {
            let record = record?;
            Definition::decode(record.kind, record.fields()).ok_or_else(|| {
                let kind = record.kind;
                let why = format!("definition {number} (kind {kind}) cannot be decoded");
                Error::content(&self.path, why)
            })
        })
    }

    /// Iterates over all records, in their order.
    pub fn records(&self) -> impl Iterator<Item = Result<Record<'_>, Error>> {
        records(&self.file, self.chunk)
            .map(|record| record.map_err(|why| Error::content(&self.path, why)))
    }
}
