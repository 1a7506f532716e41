//! Safe wrapper of OTF2's reader for the definitions of an archive.
#![expect(unsafe_code, reason = "OTF2 is a C library")]

use core::ffi::{c_int, c_void};
use core::ptr::NonNull;
use std::ffi::CString;
use std::path::{Path, PathBuf};

use crate::OffsetKnot;
use rustc_hash::FxHashMap;

use super::anchor::ArchiveAnchor;
use super::definitions::Otf2Definitions;
use super::events::Mappings;
use super::failures::{self, check};
use super::files::{globals, local};
use super::globals::Callbacks;
use super::{Otf2Error, ffi};

/// Open archive.
#[derive(Debug)]
pub(super) struct ArchiveReader {
    raw: NonNull<ffi::Reader>,
    anchor: PathBuf,
    /// Chunk sizes from the anchor file.
    pub(super) chunks: ArchiveAnchor,
}

/// Local definitions of a location that are used.
#[derive(Clone, Debug, Default)]
pub(super) struct Locals {
    pub(super) offsets: Vec<OffsetKnot>,
    pub(super) mappings: Mappings,
}

impl ArchiveReader {
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
        // OTF2 reports a misleading error for missing files, and takes other files for an empty
        // archive.
        let file = std::fs::File::open(anchor).map_err(Otf2Error::io(anchor))?;
        if !file.metadata().map_err(Otf2Error::io(anchor))?.is_file() {
            return Err(wrong());
        }
        let chunks = ArchiveAnchor::read(anchor, &globals(anchor))?;
        let path = CString::new(anchor.as_os_str().as_encoded_bytes()).map_err(|_| wrong())?;
        failures::collect();
        // SAFETY: the path ends with a zero byte.
        let raw = unsafe { ffi::OTF2_Reader_Open(path.as_ptr()) };
        let raw = NonNull::new(raw).ok_or_else(|| failures::error(anchor, 1))?;
        let reader = Self {
            raw,
            anchor: anchor.to_owned(),
            chunks,
        };
        // SAFETY: the reader is open, and no file of the archive is open yet.
        check(anchor, unsafe {
            ffi::OTF2_Reader_SetSerialCollectiveCallbacks(raw.as_ptr())
        })?;
        Ok(reader)
    }

    /// Reads all global definitions.
    pub(super) fn definitions(&self) -> Result<Otf2Definitions, Otf2Error> {
        let path = globals(&self.anchor);
        failures::collect();
        // SAFETY: the reader is open.
        let globals = unsafe { ffi::OTF2_Reader_GetGlobalDefReader(self.raw.as_ptr()) };
        if globals.is_null() {
            return Err(failures::error(&path, 1));
        }
        let callbacks = Callbacks::new().ok_or_else(|| failures::error(&path, 1))?;
        let mut definitions = Otf2Definitions::default();
        let data = (&raw mut definitions).cast::<c_void>();
        // SAFETY: the reader and the callbacks are valid, and `data` is of the type that the
        // callbacks expect.
        let code = unsafe {
            ffi::OTF2_Reader_RegisterGlobalDefCallbacks(
                self.raw.as_ptr(),
                globals,
                callbacks.as_ptr(),
                data,
            )
        };
        check(&path, code)?;
        let mut read = 0;
        // SAFETY: as above; `definitions` is not used otherwise during the call.
        let code = unsafe {
            ffi::OTF2_Reader_ReadAllGlobalDefinitions(self.raw.as_ptr(), globals, &raw mut read)
        };
        check(&path, code)?;
        Ok(definitions)
    }

    /// Reads the local definitions of these locations. Must be called only once.
    pub(super) fn locals(&self, locations: &[u64]) -> Result<Vec<Locals>, Otf2Error> {
        failures::collect();
        for &location in locations {
            // SAFETY: the reader is open, and no files of locations are open yet.
            check(&self.anchor, unsafe {
                ffi::OTF2_Reader_SelectLocation(self.raw.as_ptr(), location)
            })?;
        }
        // SAFETY: the reader is open.
        check(&self.anchor, unsafe {
            ffi::OTF2_Reader_OpenDefFiles(self.raw.as_ptr())
        })?;
        let locals = locations
            .iter()
            .map(|&location| self.local(location))
            .collect::<Result<_, _>>()?;
        // SAFETY: the files are open, and no reader of them is left.
        check(&self.anchor, unsafe {
            ffi::OTF2_Reader_CloseDefFiles(self.raw.as_ptr())
        })?;
        Ok(locals)
    }

    fn local(&self, location: u64) -> Result<Locals, Otf2Error> {
        let path = local(&self.anchor, location, "def");
        let mut locals = Locals::default();
        // An archive without local definitions is valid.
        if !path.exists() {
            return Ok(locals);
        }
        // SAFETY: the files are open.
        let local = unsafe { ffi::OTF2_Reader_GetDefReader(self.raw.as_ptr(), location) };
        if local.is_null() {
            return Err(failures::error(&path, 1));
        }
        // SAFETY: has no preconditions.
        let callbacks = unsafe { ffi::OTF2_DefReaderCallbacks_New() };
        if callbacks.is_null() {
            return Err(failures::error(&path, 1));
        }
        // SAFETY: the callbacks are valid, and the function is one for clock offsets.
        unsafe { ffi::OTF2_DefReaderCallbacks_SetClockOffsetCallback(callbacks, clock_offset) };
        // SAFETY: as above, for mapping tables.
        unsafe { ffi::OTF2_DefReaderCallbacks_SetMappingTableCallback(callbacks, mapping_table) };
        let data = (&raw mut locals).cast::<c_void>();
        // SAFETY: the reader and the callbacks are valid, and `data` is of the type that the
        // callbacks expect.
        let registered = unsafe {
            ffi::OTF2_Reader_RegisterDefCallbacks(self.raw.as_ptr(), local, callbacks, data)
        };
        // SAFETY: created above; registering them made a copy.
        unsafe { ffi::OTF2_DefReaderCallbacks_Delete(callbacks) };
        check(&path, registered)?;
        let mut read = 0;
        // SAFETY: as above; `locals` is not used otherwise during the call.
        let code = unsafe {
            ffi::OTF2_Reader_ReadAllLocalDefinitions(self.raw.as_ptr(), local, &raw mut read)
        };
        check(&path, code)?;
        // SAFETY: the definition reader is open.
        check(&path, unsafe {
            ffi::OTF2_Reader_CloseDefReader(self.raw.as_ptr(), local)
        })?;
        Ok(locals)
    }
}

/// Returns the [`Locals`] behind the user data of a callback.
macro_rules! locals {
    ($data:ident) => {
        // SAFETY: `local` registers the callbacks with a pointer to locals that live and are not
        // used otherwise until OTF2 has read all definitions; OTF2 calls them on the same thread,
        // one at a time.
        unsafe { &mut *$data.cast::<Locals>() }
    };
}

extern "C" fn clock_offset(data: *mut c_void, time: u64, offset: i64, _deviation: f64) -> c_int {
    match i64::try_from(time) {
        Ok(at) => {
            locals!(data).offsets.push(OffsetKnot { at, offset });
            ffi::CALLBACK_SUCCESS
        }
        Err(_) => ffi::CALLBACK_INTERRUPT,
    }
}

extern "C" fn mapping_table(data: *mut c_void, kind: u8, table: *const ffi::IdMap) -> c_int {
    let mappings = &mut locals!(data).mappings;
    let mapping = match kind {
        ffi::MAPPING_REGION => &mut mappings.regions,
        ffi::MAPPING_COMM => &mut mappings.communicators,
        _ => return ffi::CALLBACK_SUCCESS,
    };
    // SAFETY: the table lives until the call returns, and `data` is of the type that `pair`
    // expects.
    match unsafe { ffi::OTF2_IdMap_Traverse(table, pair, core::ptr::from_mut(mapping).cast()) } {
        ffi::SUCCESS => ffi::CALLBACK_SUCCESS,
        _ => ffi::CALLBACK_INTERRUPT,
    }
}

extern "C" fn pair(local: u64, global: u64, data: *mut c_void) {
    // SAFETY: `mapping_table` passes a pointer to a mapping that is not used otherwise during the
    // call.
    let mapping = unsafe { &mut *data.cast::<FxHashMap<u32, u32>>() };
    // References to regions and communicators have 32 bits.
    mapping.insert(local as u32, global as u32);
}

impl Drop for ArchiveReader {
    fn drop(&mut self) {
        // SAFETY: the reader is open and not used afterwards; this closes everything of it.
        unsafe { ffi::OTF2_Reader_Close(self.raw.as_ptr()) };
    }
}
