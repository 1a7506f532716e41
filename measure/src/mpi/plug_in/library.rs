//! Libraries with plug-ins, and the tables that their functions return.
#![expect(unsafe_code, reason = "shared libraries are loaded by C")]

use core::ffi::{CStr, c_void};
use core::fmt;
use core::mem::{size_of, transmute_copy};
use core::str::FromStr;
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::abi::{ABI, Table, TableHead};
use super::crash::{CrashHandlers, CrashPlace};
use super::error::PlugInError;

/// Name of a plug-in: `FILE:NAME`, for the function `downbeat_operation_NAME` or `downbeat_buffers_NAME` of a shared library.
///
/// Written without the folder and the ending of the file, as in records: `mine:name` for `./mine.so:name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlugInName {
    file: PathBuf,
    stem: String,
    name: String,
}

impl PlugInName {
    /// Returns the path of the library, as it was given.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns the name of the library without folder and ending.
    pub fn library(&self) -> &str {
        &self.stem
    }

    /// Returns the name of the function in messages, before what it does.
    pub(super) fn described(&self, prefix: &str) -> String {
        format!("{prefix}{}:{}", self.file.display(), self.name)
    }
}

impl fmt::Display for PlugInName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.stem, self.name)
    }
}

impl FromStr for PlugInName {
    type Err = PlugInError;

    fn from_str(text: &str) -> Result<Self, PlugInError> {
        let refuse = |why: &str| Err(PlugInError::Name(format!("\"{text}\" {why}")));
        let Some((file, name)) = text.rsplit_once(':') else {
            return refuse("is not FILE:NAME");
        };
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_word) {
            return refuse("must end with :NAME, made of letters, digits and _");
        }
        let file = PathBuf::from(file);
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        // It is a part of records, whose columns end with commas.
        if stem.is_empty() || !stem.chars().all(|c| is_word(c) || "-.+".contains(c)) {
            return refuse("must begin with a file whose name is made of letters, digits and _-.+");
        }
        Ok(Self {
            stem: stem.into_owned(),
            name: name.to_owned(),
            file,
        })
    }
}

/// Table of a plug-in.
pub(super) struct LoadedTable<T> {
    pub(super) table: T,
    /// Its address in the library, which is never unloaded.
    pub(super) place: *const T,
    /// Function that returned it.
    pub(super) symbol: String,
}

/// Loads the library of a plug-in and gets its table. Begins the report of a crash with `prefix`.
pub(super) fn load<T: Table>(
    name: &PlugInName,
    prefix: &str,
) -> Result<LoadedTable<T>, PlugInError> {
    let _handlers = CrashHandlers::install();
    let file = &name.file;
    let refuse = |why: &dyn fmt::Display| PlugInError::Library(why.to_string());
    // Without a slash, the file would be looked for in the folders of libraries.
    let path = fs::canonicalize(file).map_err(|why| refuse(&why))?;
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|why| refuse(&why))?;
    let before = mpi_libraries();
    let place = CrashPlace::new(
        &format!("{prefix}{}", file.display()),
        "a function that runs when it is loaded",
    );
    // SAFETY: the path ends with a NUL. Code of the library may run: the user asks for that.
    let library =
        place.inside(|| unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) });
    if library.is_null() {
        let why = last_error();
        let path = path.to_string_lossy();
        let why = why.strip_prefix(&*path).unwrap_or(&why);
        return Err(refuse(&why.trim_start_matches(": ")));
    }
    let other = mpi_libraries()
        .into_iter()
        .find(|library| !before.contains(library));
    if let (Some(other), [ours, ..]) = (other, before.as_slice()) {
        let why = format!("it needs {other}, and {ours} runs");
        return Err(PlugInError::OtherMpi { why });
    }
    table(library, name, prefix)
}

/// Gets a table from a library.
fn table<T: Table>(
    library: *mut c_void,
    name: &PlugInName,
    prefix: &str,
) -> Result<LoadedTable<T>, PlugInError> {
    let symbol = format!("{}{}", T::PREFIX, name.name);
    let c_symbol = CString::new(symbol.as_str()).map_err(|why| {
        // Names have only letters, digits and underscores.
        PlugInError::Name(why.to_string())
    })?;
    // SAFETY: the library is loaded, and the name ends with a NUL.
    let address = unsafe { libc::dlsym(library, c_symbol.as_ptr()) };
    if address.is_null() {
        return Err(PlugInError::NoSymbol(symbol));
    }
    // SAFETY: the interface says that symbols with this beginning are functions of this type; both have the size of a pointer.
    let get: unsafe extern "C" fn() -> *const T = unsafe { transmute_copy(&address) };
    let place = CrashPlace::new(&format!("{prefix}{}", name.file.display()), &symbol);
    // SAFETY: as before.
    let place = place.inside(|| unsafe { get() });
    if place.is_null() || !place.is_aligned() {
        return Err(PlugInError::NoTable(symbol));
    }
    // SAFETY: every table begins with this.
    let TableHead { abi, size } = unsafe { *place.cast::<TableHead>() };
    if abi != ABI {
        return Err(PlugInError::Version { symbol, found: abi });
    }
    let least = size_of::<T>();
    if (size as usize) < least {
        return Err(PlugInError::Size {
            symbol,
            found: size,
            least,
        });
    }
    // SAFETY: the table is at least as long as this version of it.
    let table = unsafe { *place };
    let missing = table.mandatory().into_iter().find(|(_, there)| !there);
    if let Some((function, _)) = missing {
        return Err(PlugInError::NoFunction { symbol, function });
    }
    Ok(LoadedTable {
        table,
        place,
        symbol,
    })
}

/// Returns the reason why the last library could not be loaded.
fn last_error() -> String {
    // SAFETY: this is only called after a failure on this thread, and the text is copied before the next call.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "it cannot be loaded".to_owned();
    }
    // SAFETY: the text ends with a NUL.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    text.replace('\n', " ")
}

/// Returns the names of the MPI libraries in this process, without those for Fortran, which a plug-in may add.
fn mpi_libraries() -> Vec<String> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let names = maps.lines().filter_map(|line| line.rsplit('/').next());
    let is_library = |name: &&str| name.starts_with("libmpi.so") || name.starts_with("libmpich.so");
    let mut names: Vec<String> = names.filter(is_library).map(str::to_owned).collect();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_file_and_a_function() {
        let name: PlugInName = "../a:b/my-ring.v2.so:ring_1".parse().unwrap();
        assert_eq!(name.to_string(), "my-ring.v2:ring_1");
        assert_eq!(name.library(), "my-ring.v2");
        assert_eq!(name.file(), Path::new("../a:b/my-ring.v2.so"));
        assert_eq!(
            name.described("rank 1: "),
            "rank 1: ../a:b/my-ring.v2.so:ring_1"
        );
        let cases = [
            ("mine.so", "is not FILE:NAME"),
            ("mine.so:", "must end with :NAME"),
            ("mine.so:a-b", "must end with :NAME"),
            (":ring", "must begin with a file"),
            ("./:ring", "must begin with a file"),
            ("a b.so:ring", "must begin with a file"),
        ];
        for (text, why) in cases {
            let found = text.parse::<PlugInName>().unwrap_err().to_string();
            assert!(
                found.starts_with(&format!("\"{text}\" {why}")),
                "{text}: {found}"
            );
        }
    }
}
