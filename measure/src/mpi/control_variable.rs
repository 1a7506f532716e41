//! Control variables of the MPI library, read and written through its tool interface.
#![expect(unsafe_code, reason = "MPI is a C library")]

use core::ffi::{CStr, c_char, c_int};
use core::ptr;
use std::ffi::CString;

use downbeat_sync::MpiError;
use mpi::ffi::{self, MPI_T_cvar_handle, MPI_T_enum};

use super::constants::int;

/// Variable of the library that holds an `int`, which can be one of some named values.
///
/// The tool interface is initialized as long as a variable exists.
#[derive(Debug)]
pub(super) struct ControlVariable {
    handle: MPI_T_cvar_handle,
    pub(super) facts: VariableFacts,
    _tool: ToolInterface,
}

/// Facts that the library states about a variable.
#[derive(Debug)]
pub(super) struct VariableFacts {
    pub(super) description: String,
    /// Names of its values, if the library states them.
    pub(super) values: Vec<NamedValue>,
}

pub(super) type NamedValue = (String, c_int);

/// Initialized tool interface.
#[derive(Debug)]
struct ToolInterface;

impl ToolInterface {
    fn new() -> Result<Self, MpiError> {
        let mut provided = 0;
        // SAFETY: the result can be written to; the interface may be initialized at any time.
        let code =
            unsafe { ffi::MPI_T_init_thread(ffi::MPI_THREAD_SINGLE as c_int, &raw mut provided) };
        MpiError::check("MPI_T_init_thread", code).map(|()| Self)
    }
}

impl Drop for ToolInterface {
    fn drop(&mut self) {
        // SAFETY: it was initialized as often as it is finalized. A failure leaves it initialized, which harms nothing.
        unsafe { ffi::MPI_T_finalize() };
    }
}

impl ControlVariable {
    /// Finds the first variable of these names; `None` if the library has none of them that holds an `int`.
    pub(super) fn find(names: &[&str]) -> Result<Option<Self>, MpiError> {
        // MPICH has no variables any more after the interface was finalized.
        let tool = ToolInterface::new()?;
        for name in names {
            let Some(index) = index_of(name) else {
                continue;
            };
            let Some(facts) = describe(index)? else {
                continue;
            };
            let mut handle: MPI_T_cvar_handle = ptr::null_mut();
            let mut count = 0;
            // SAFETY: the tool interface is initialized, the variable exists and is bound to no object, and both results can be
            // written to.
            let code = unsafe {
                ffi::MPI_T_cvar_handle_alloc(
                    index,
                    ptr::null_mut(),
                    &raw mut handle,
                    &raw mut count,
                )
            };
            // One that belongs to an object has no value of its own.
            if code == ffi::MPI_SUCCESS as c_int && count == 1 {
                return Ok(Some(Self {
                    handle,
                    facts,
                    _tool: tool,
                }));
            }
        }
        Ok(None)
    }

    pub(super) fn read(&self) -> Result<c_int, MpiError> {
        let mut value: c_int = 0;
        // SAFETY: the handle is valid, and its variable is one `int`.
        let code = unsafe { ffi::MPI_T_cvar_read(self.handle, (&raw mut value).cast()) };
        MpiError::check("MPI_T_cvar_read", code).map(|()| value)
    }

    pub(super) fn write(&self, value: c_int) -> Result<(), MpiError> {
        // SAFETY: as above.
        let code = unsafe { ffi::MPI_T_cvar_write(self.handle, (&raw const value).cast()) };
        MpiError::check("MPI_T_cvar_write", code)
    }
}

impl Drop for ControlVariable {
    fn drop(&mut self) {
        // SAFETY: the handle is valid, and not used after this.
        unsafe { ffi::MPI_T_cvar_handle_free(&raw mut self.handle) };
    }
}

fn index_of(name: &str) -> Option<c_int> {
    let name = CString::new(name).ok()?;
    let mut index = 0;
    // SAFETY: the tool interface is initialized; the name ends with a NUL, and the result can be written to.
    let code = unsafe { ffi::MPI_T_cvar_get_index(name.as_ptr(), &raw mut index) };
    (code == ffi::MPI_SUCCESS as c_int).then_some(index)
}

/// Returns the facts about a variable; `None` if it does not hold an `int`.
fn describe(index: c_int) -> Result<Option<VariableFacts>, MpiError> {
    let (mut name, mut description) = (Text::new(), Text::new());
    let (mut verbosity, mut bind, mut scope) = (0, 0, 0);
    let mut datatype = int();
    let mut names: MPI_T_enum = ptr::null_mut();
    // SAFETY: the tool interface is initialized, and all results can be written to; texts are as long as stated.
    let code = unsafe {
        ffi::MPI_T_cvar_get_info(
            index,
            name.start(),
            &raw mut name.length,
            &raw mut verbosity,
            &raw mut datatype,
            &raw mut names,
            description.start(),
            &raw mut description.length,
            &raw mut bind,
            &raw mut scope,
        )
    };
    MpiError::check("MPI_T_cvar_get_info", code)?;
    if datatype != int() {
        return Ok(None);
    }
    let values = if names.is_null() {
        Vec::new()
    } else {
        named_values(names)?
    };
    Ok(Some(VariableFacts {
        description: description.text(),
        values,
    }))
}

fn named_values(names: MPI_T_enum) -> Result<Vec<NamedValue>, MpiError> {
    let mut number = 0;
    let mut name = Text::new();
    // SAFETY: the enumeration is valid, and the results can be written to.
    let code = unsafe {
        ffi::MPI_T_enum_get_info(names, &raw mut number, name.start(), &raw mut name.length)
    };
    MpiError::check("MPI_T_enum_get_info", code)?;
    let item = |index| {
        let mut name = Text::new();
        let mut value = 0;
        // SAFETY: as above; the index is below the number of items.
        let code = unsafe {
            ffi::MPI_T_enum_get_item(
                names,
                index,
                &raw mut value,
                name.start(),
                &raw mut name.length,
            )
        };
        MpiError::check("MPI_T_enum_get_item", code).map(|()| (name.text(), value))
    };
    (0..number).map(item).collect()
}

/// Text that MPI writes, at most as long as this; it cuts longer ones.
struct Text {
    bytes: Vec<u8>,
    length: c_int,
}

impl Text {
    fn new() -> Self {
        let bytes = vec![0; 4096];
        Self {
            length: bytes.len() as c_int,
            bytes,
        }
    }

    fn start(&mut self) -> *mut c_char {
        self.bytes.as_mut_ptr().cast()
    }

    fn text(&self) -> String {
        CStr::from_bytes_until_nul(&self.bytes)
            .map(|text| text.to_string_lossy().into_owned())
            .unwrap_or_default()
    }
}
