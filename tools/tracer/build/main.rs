//! Generates a wrapper for each function of an MPI library.
#![expect(
    clippy::print_stdout,
    reason = "cargo reads what a build script prints"
)]

mod calls;
mod library;
mod wrappers;

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-env-changed=MPICC");
    println!("cargo::rustc-check-cfg=cfg(open_mpi, mpi_4)");
    if env::var_os("CARGO_FEATURE_MPI").is_none() {
        return Ok(());
    }
    let out = env::var("OUT_DIR")?;
    let library = library::Library::find(Path::new(&out))?;
    if library.is_open_mpi {
        println!("cargo::rustc-cfg=open_mpi");
    }
    if library
        .functions
        .iter()
        .any(|function| function.name == "MPI_Session_init")
    {
        println!("cargo::rustc-cfg=mpi_4");
    }
    let write = |name, code| fs::write(Path::new(&out).join(name), code);
    write("constants.rs", wrappers::constants(&library))?;
    write("wrappers.rs", wrappers::generate(&library))?;
    Ok(())
}
