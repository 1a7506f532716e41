//! OTF2's reader, made safe: an archive that is read location by location.
#![expect(unsafe_code, reason = "OTF2 is a C library")]

use core::ffi::{c_int, c_void};
use core::ptr::NonNull;
use std::ffi::CString;
use std::path::{Path, PathBuf};

use downbeat_sync::postmortem::Knot;

use super::definitions::Definitions;
use super::events::{self, Take};
use super::failures::{self, check};
use super::{Otf2Error, ffi, globals};

/// An open archive.
#[derive(Debug)]
pub(super) struct Reader {
    raw: NonNull<ffi::Reader>,
    /// Its anchor file, `NAME.otf2`; beside it are `NAME.def` and the folder `NAME`.
    anchor: PathBuf,
}

impl Reader {
    pub(super) fn open(anchor: &Path) -> Result<Self, Otf2Error> {
        let wrong = || Otf2Error::content(anchor, "this is no name of an OTF2 anchor file, such as traces.otf2");
        if anchor.extension().is_none_or(|extension| extension != "otf2") {
            return Err(wrong());
        }
        // OTF2 takes something else for an empty archive, or says that it does not exist.
        let file = std::fs::File::open(anchor).map_err(Otf2Error::io(anchor))?;
        if !file.metadata().map_err(Otf2Error::io(anchor))?.is_file() {
            return Err(wrong());
        }
        let path = CString::new(anchor.as_os_str().as_encoded_bytes()).map_err(|_| wrong())?;
        failures::collect();
        // SAFETY: the path ends with a zero.
        let raw = unsafe { ffi::OTF2_Reader_Open(path.as_ptr()) };
        let raw = NonNull::new(raw).ok_or_else(|| failures::of(anchor, 1))?;
        let reader = Self { raw, anchor: anchor.to_owned() };
        // SAFETY: the reader is open; nothing of the archive is yet.
        check(anchor, unsafe { ffi::OTF2_Reader_SetSerialCollectiveCallbacks(raw.as_ptr()) })?;
        Ok(reader)
    }

    pub(super) fn anchor(&self) -> &Path {
        &self.anchor
    }

    /// Where the global definitions are.
    pub(super) fn globals(&self) -> PathBuf {
        self.anchor.with_extension("def")
    }

    /// Where definitions (`def`) or events (`evt`) of a location are.
    pub(super) fn local(&self, location: u64, extension: &str) -> PathBuf {
        self.anchor.with_extension("").join(format!("{location}.{extension}"))
    }

    /// Of files of definitions.
    pub(super) fn chunk_size(&self) -> Result<u64, Otf2Error> {
        let [mut events, mut definitions] = [0; 2];
        // SAFETY: the reader is open; both can be written to.
        let code = unsafe { ffi::OTF2_Reader_GetChunkSize(self.raw.as_ptr(), &raw mut events, &raw mut definitions) };
        check(&self.anchor, code)?;
        Ok(definitions)
    }

    /// Whether every location has files of its own.
    pub(super) fn is_plain(&self) -> Result<bool, Otf2Error> {
        let mut substrate = 0;
        // SAFETY: the reader is open; the result can be written to.
        let code = unsafe { ffi::OTF2_Reader_GetFileSubstrate(self.raw.as_ptr(), &raw mut substrate) };
        check(&self.anchor, code)?;
        Ok(substrate == ffi::SUBSTRATE_POSIX)
    }

    /// All global definitions.
    pub(super) fn definitions(&self) -> Result<Definitions, Otf2Error> {
        let path = self.globals();
        failures::collect();
        // SAFETY: the reader is open.
        let globals = unsafe { ffi::OTF2_Reader_GetGlobalDefReader(self.raw.as_ptr()) };
        if globals.is_null() {
            return Err(failures::of(&path, 1));
        }
        let callbacks = globals::Callbacks::new().ok_or_else(|| failures::of(&path, 1))?;
        let mut definitions = Definitions::default();
        let data = (&raw mut definitions).cast::<c_void>();
        // SAFETY: reader and callbacks are there, and these are what the callbacks expect as data.
        let code = unsafe {
            ffi::OTF2_Reader_RegisterGlobalDefCallbacks(self.raw.as_ptr(), globals, callbacks.as_ptr(), data)
        };
        check(&path, code)?;
        let mut read = 0;
        // SAFETY: as before; `definitions` is not used otherwise meanwhile.
        let code = unsafe { ffi::OTF2_Reader_ReadAllGlobalDefinitions(self.raw.as_ptr(), globals, &raw mut read) };
        check(&path, code)?;
        Ok(definitions)
    }

    /// Takes these locations, and no others later, and their local definitions: their clock offsets, as far as these are
    /// not left out.
    pub(super) fn select(&self, locations: &[u64]) -> Result<Vec<Vec<Knot>>, Otf2Error> {
        failures::collect();
        for &location in locations {
            // SAFETY: the reader is open, and no files of locations are yet.
            check(&self.anchor, unsafe { ffi::OTF2_Reader_SelectLocation(self.raw.as_ptr(), location) })?;
        }
        // SAFETY: the reader is open.
        check(&self.anchor, unsafe { ffi::OTF2_Reader_OpenDefFiles(self.raw.as_ptr()) })?;
        let offsets = locations.iter().map(|&location| self.offsets(location)).collect::<Result<_, _>>()?;
        // SAFETY: they were opened, and no reader of them is left.
        check(&self.anchor, unsafe { ffi::OTF2_Reader_CloseDefFiles(self.raw.as_ptr()) })?;
        // SAFETY: the reader is open.
        check(&self.anchor, unsafe { ffi::OTF2_Reader_OpenEvtFiles(self.raw.as_ptr()) })?;
        Ok(offsets)
    }

    fn offsets(&self, location: u64) -> Result<Vec<Knot>, Otf2Error> {
        let path = self.local(location, "def");
        let mut offsets: Vec<Knot> = vec![];
        // An archive without any local definitions is fine.
        if !path.exists() {
            return Ok(offsets);
        }
        // SAFETY: the files are open.
        let local = unsafe { ffi::OTF2_Reader_GetDefReader(self.raw.as_ptr(), location) };
        if local.is_null() {
            return Err(failures::of(&path, 1));
        }
        // SAFETY: has no conditions.
        let callbacks = unsafe { ffi::OTF2_DefReaderCallbacks_New() };
        if callbacks.is_null() {
            return Err(failures::of(&path, 1));
        }
        // SAFETY: these are callbacks, and the function is one for clock offsets.
        unsafe { ffi::OTF2_DefReaderCallbacks_SetClockOffsetCallback(callbacks, clock_offset) };
        let data = (&raw mut offsets).cast::<c_void>();
        // SAFETY: reader and callbacks are there, and these are what the callback expects as data.
        let registered = unsafe { ffi::OTF2_Reader_RegisterDefCallbacks(self.raw.as_ptr(), local, callbacks, data) };
        // SAFETY: they were made above; who registers them copies them.
        unsafe { ffi::OTF2_DefReaderCallbacks_Delete(callbacks) };
        check(&path, registered)?;
        let mut read = 0;
        // SAFETY: as before; `offsets` is not used otherwise meanwhile.
        let code = unsafe { ffi::OTF2_Reader_ReadAllLocalDefinitions(self.raw.as_ptr(), local, &raw mut read) };
        check(&path, code)?;
        // SAFETY: it is open.
        check(&path, unsafe { ffi::OTF2_Reader_CloseDefReader(self.raw.as_ptr(), local) })?;
        Ok(offsets)
    }

    /// Hands all events of a selected location to `take`, with times as they were recorded. How many the file has,
    /// also of kinds that are not handed over; fewer if `take` had enough.
    pub(super) fn events<F: Take>(&self, location: u64, mut take: F) -> Result<u64, Otf2Error> {
        let path = self.local(location, "evt");
        failures::collect();
        // SAFETY: the location is selected, and the files are open.
        let events = unsafe { ffi::OTF2_Reader_GetEvtReader(self.raw.as_ptr(), location) };
        if events.is_null() {
            return Err(failures::of(&path, 1));
        }
        let callbacks = events::Callbacks::new::<F>().ok_or_else(|| failures::of(&path, 1))?;
        let data = (&raw mut take).cast::<c_void>();
        // SAFETY: reader and callbacks are there, and this is what the callbacks expect as data.
        let code =
            unsafe { ffi::OTF2_Reader_RegisterEvtCallbacks(self.raw.as_ptr(), events, callbacks.as_ptr(), data) };
        check(&path, code)?;
        // SAFETY: the reader is there.
        check(&path, unsafe { ffi::OTF2_EvtReader_ApplyMappingTables(events, true) })?;
        // SAFETY: the reader is there.
        check(&path, unsafe { ffi::OTF2_EvtReader_ApplyClockOffsets(events, false) })?;
        let mut read = 0;
        // SAFETY: as before; `take` is not used otherwise meanwhile.
        let code = unsafe { ffi::OTF2_Reader_ReadAllLocalEvents(self.raw.as_ptr(), events, &raw mut read) };
        // SAFETY: it is open, and not used any more.
        let closed = unsafe { ffi::OTF2_Reader_CloseEvtReader(self.raw.as_ptr(), events) };
        check(&path, code)?;
        check(&path, closed)?;
        Ok(read)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // SAFETY: it is open, and used no more; it closes what is open of it.
        unsafe { ffi::OTF2_Reader_Close(self.raw.as_ptr()) };
    }
}

extern "C" fn clock_offset(data: *mut c_void, time: u64, offset: i64, _deviation: f64) -> c_int {
    // SAFETY: `offsets` registers this function together with an address of knots, which live and are nobody else's until
    // OTF2 has read all definitions; OTF2 calls it on the same thread, one at a time.
    let offsets = unsafe { &mut *data.cast::<Vec<Knot>>() };
    match i64::try_from(time) {
        Ok(at) => {
            offsets.push(Knot { at, offset });
            ffi::CALLBACK_SUCCESS
        }
        Err(_) => ffi::CALLBACK_INTERRUPT,
    }
}
