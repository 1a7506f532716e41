//! Gives the shared library the name by which the loaders of Linux look for it.

use std::env;

/// Number in the name: the major version of the interface, `DOWNBEAT_ABI`, less one while
/// the version is below 1.
const SO_VERSION: &str = "0";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        let name = match env::var_os("CARGO_FEATURE_MPI") {
            Some(_) => "downbeat_mpi",
            None => "downbeat",
        };
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,lib{name}.so.{SO_VERSION}");
    }
}
