//! The inline functions of the header, compiled by a C compiler.

use std::env;
use std::ffi::{CStr, CString, c_char, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

/// Functions of the header in C.
pub(crate) struct InlineFunctions(*mut c_void);

const SOURCE: &str = r#"
#include "downbeat.h"
int64_t downbeat_model_read(const downbeat_model *model) { return model == NULL ? INT64_MIN : INT64_MIN + 1; }
int compiled_inline_apply(const downbeat_model *model, uint64_t ticks, int64_t *nanos) {
    return downbeat_inline_apply(model, ticks, nanos);
}
int64_t compiled_model_now(const downbeat_model *model) { return downbeat_model_now(model); }
int64_t compiled_reads(const downbeat_model *model, uint64_t times) {
    int64_t sum = 0;
    while (times-- > 0) sum += downbeat_model_now(model);
    return sum;
}
int64_t compiled_value_calls(int64_t (*read)(const downbeat_model *), const downbeat_model *model, uint64_t times) {
    int64_t sum = 0;
    while (times-- > 0) sum += read(model);
    return sum;
}
int64_t compiled_calls(int (*now)(const void *, int64_t *), const void *clock, uint64_t times) {
    int64_t sum = 0, nanos = 0;
    while (times-- > 0) { now(clock, &nanos); sum += nanos; }
    return sum;
}
int64_t compiled_calls_for_two(int (*now)(const void *, int64_t *, int64_t *), const void *clock, uint64_t times) {
    int64_t sum = 0, nanos = 0, other = 0;
    while (times-- > 0) { now(clock, &nanos, &other); sum += nanos + other; }
    return sum;
}
"#;

impl InlineFunctions {
    /// Compiles the header of this package.
    pub(crate) fn compile(name: &str) -> Self {
        let folder = folder(name);
        let (source, library) = (folder.join("inline.c"), folder.join("inline.so"));
        fs::write(&source, SOURCE).expect("the folder for temporary files can be written to");
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
        let mut compiler = Command::new("gcc");
        compiler.args([
            "-std=c99",
            "-pedantic",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-O2",
            "-fPIC",
            "-shared",
            "-I",
        ]);
        let compiled = compiler
            .arg(include)
            .arg(&source)
            .arg("-o")
            .arg(&library)
            .status();
        assert!(
            compiled.is_ok_and(|status| status.success()),
            "{compiler:?} failed"
        );
        let path = CString::new(library.as_os_str().as_encoded_bytes()).expect("a path");
        // SAFETY: the library runs nothing when it is loaded.
        let loaded = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!loaded.is_null(), "{} cannot be loaded", library.display());
        fs::remove_dir_all(folder).expect("a folder of our own");
        Self(loaded)
    }

    /// Returns the address of a function; the caller knows its type.
    pub(crate) fn address(&self, name: &CStr) -> *const c_void {
        let name: *const c_char = name.as_ptr();
        // SAFETY: an open library, and a text.
        let found = unsafe { libc::dlsym(self.0, name) };
        assert!(!found.is_null(), "the library has no such function");
        found
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = env::temp_dir().join(format!("downbeat-{name}-{}", process::id()));
    fs::create_dir_all(&folder).expect("the folder for temporary files can be written to");
    folder
}
