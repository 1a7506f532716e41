//! Declarations of the used part of OTF2 3.0, after its headers.
#![expect(unsafe_code, reason = "OTF2 is a C library")]

use core::ffi::{c_char, c_int, c_void};

/// Declares opaque types.
macro_rules! opaque {
    ($($name:ident)*) => {$(
        #[repr(C)]
        pub(super) struct $name {
            _inside: [u8; 0],
        }
    )*};
}

opaque! {
    Reader GlobalDefReader DefReader GlobalDefReaderCallbacks DefReaderCallbacks IdMap
}

pub(super) const SUCCESS: c_int = 0;
pub(super) const CALLBACK_SUCCESS: c_int = 0;
pub(super) const CALLBACK_INTERRUPT: c_int = 1;
pub(super) const MAPPING_REGION: u8 = 3;
pub(super) const MAPPING_COMM: u8 = 6;

/// Error callback of OTF2. The last two arguments are a format and a `va_list`, which is passed as
/// a pointer on all platforms of OTF2.
pub(super) type ErrorCallback = extern "C" fn(
    *mut c_void,
    *const c_char,
    u64,
    *const c_char,
    c_int,
    *const c_char,
    *mut c_void,
) -> c_int;

/// Declares functions that set the callback for a kind of record, with the arguments of the
/// callback after the common first one.
macro_rules! callbacks {
    ($of:ident: $($set:ident($($argument:ty),*);)*) => {
        unsafe extern "C" {$(
            pub(super) fn $set(
                callbacks: *mut $of,
                callback: extern "C" fn(*mut c_void $(, $argument)*) -> c_int,
            ) -> c_int;
        )*}
    };
}

callbacks! { GlobalDefReaderCallbacks:
    OTF2_GlobalDefReaderCallbacks_SetClockPropertiesCallback(u64, u64, u64, u64);
    OTF2_GlobalDefReaderCallbacks_SetStringCallback(u32, *const c_char);
    OTF2_GlobalDefReaderCallbacks_SetSystemTreeNodeCallback(u32, u32, u32, u32);
    OTF2_GlobalDefReaderCallbacks_SetSystemTreeNodeDomainCallback(u32, u8);
    OTF2_GlobalDefReaderCallbacks_SetLocationGroupCallback(u32, u32, u8, u32, u32);
    OTF2_GlobalDefReaderCallbacks_SetLocationCallback(u64, u32, u8, u64, u32);
    OTF2_GlobalDefReaderCallbacks_SetRegionCallback(u32, u32, u32, u32, u8, u8, u32, u32, u32, u32);
    OTF2_GlobalDefReaderCallbacks_SetGroupCallback(u32, u32, u8, u8, u32, u32, *const u64);
    OTF2_GlobalDefReaderCallbacks_SetCommCallback(u32, u32, u32, u32, u32);
    OTF2_GlobalDefReaderCallbacks_SetInterCommCallback(u32, u32, u32, u32, u32, u32);
}

callbacks! { DefReaderCallbacks:
    OTF2_DefReaderCallbacks_SetClockOffsetCallback(u64, i64, f64);
    OTF2_DefReaderCallbacks_SetMappingTableCallback(u8, *const IdMap);
}

unsafe extern "C" {
    pub(super) fn OTF2_Error_RegisterCallback(
        callback: ErrorCallback,
        user_data: *mut c_void,
    ) -> Option<ErrorCallback>;
    pub(super) fn OTF2_Error_GetDescription(code: c_int) -> *const c_char;

    pub(super) fn OTF2_Reader_Open(anchor: *const c_char) -> *mut Reader;
    pub(super) fn OTF2_Reader_Close(reader: *mut Reader) -> c_int;
    pub(super) fn OTF2_Reader_SetSerialCollectiveCallbacks(reader: *mut Reader) -> c_int;
    pub(super) fn OTF2_Reader_SelectLocation(reader: *mut Reader, location: u64) -> c_int;

    pub(super) fn OTF2_Reader_GetGlobalDefReader(reader: *mut Reader) -> *mut GlobalDefReader;
    pub(super) fn OTF2_Reader_RegisterGlobalDefCallbacks(
        reader: *mut Reader,
        definitions: *mut GlobalDefReader,
        callbacks: *const GlobalDefReaderCallbacks,
        user_data: *mut c_void,
    ) -> c_int;
    pub(super) fn OTF2_Reader_ReadAllGlobalDefinitions(
        reader: *mut Reader,
        definitions: *mut GlobalDefReader,
        read: *mut u64,
    ) -> c_int;
    pub(super) fn OTF2_GlobalDefReaderCallbacks_New() -> *mut GlobalDefReaderCallbacks;
    pub(super) fn OTF2_GlobalDefReaderCallbacks_Delete(callbacks: *mut GlobalDefReaderCallbacks);

    pub(super) fn OTF2_Reader_OpenDefFiles(reader: *mut Reader) -> c_int;
    pub(super) fn OTF2_Reader_CloseDefFiles(reader: *mut Reader) -> c_int;
    pub(super) fn OTF2_Reader_GetDefReader(reader: *mut Reader, location: u64) -> *mut DefReader;
    pub(super) fn OTF2_Reader_CloseDefReader(
        reader: *mut Reader,
        definitions: *mut DefReader,
    ) -> c_int;
    pub(super) fn OTF2_Reader_RegisterDefCallbacks(
        reader: *mut Reader,
        definitions: *mut DefReader,
        callbacks: *const DefReaderCallbacks,
        user_data: *mut c_void,
    ) -> c_int;
    pub(super) fn OTF2_Reader_ReadAllLocalDefinitions(
        reader: *mut Reader,
        definitions: *mut DefReader,
        read: *mut u64,
    ) -> c_int;
    pub(super) fn OTF2_DefReaderCallbacks_New() -> *mut DefReaderCallbacks;
    pub(super) fn OTF2_DefReaderCallbacks_Delete(callbacks: *mut DefReaderCallbacks);

    pub(super) fn OTF2_IdMap_Traverse(
        table: *const IdMap,
        callback: extern "C" fn(u64, u64, *mut c_void),
        data: *mut c_void,
    ) -> c_int;
}
