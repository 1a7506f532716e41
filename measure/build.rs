//! Compiles the constants of the MPI library that its Rust bindings lack.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "mpi")]
    compile_constants()?;
    Ok(())
}

/// Compiles with the compiler that built the bindings.
#[cfg(feature = "mpi")]
fn compile_constants() -> Result<(), Box<dyn Error>> {
    const SOURCE: &str = "src/mpi/constants.c";
    println!("cargo:rerun-if-changed={SOURCE}");
    println!("cargo:rerun-if-env-changed=MPICC");
    let library =
        build_probe_mpi::probe().map_err(|why| format!("there is no MPI library: {why:?}"))?;
    let mut build = cc::Build::new();
    build.file(SOURCE).includes(&library.include_paths);
    if let Some(compiler) = library.mpicc {
        if let Some(command) = command_of(&compiler) {
            println!("cargo:rustc-env=DOWNBEAT_MPICC={command}");
        }
        build.compiler(compiler);
    }
    build.try_compile("downbeat_mpi_constants")?;
    Ok(())
}

/// Returns the command that MPI's compiler runs, which Open MPI, MPICH and their relatives tell, in one line; nothing from others.
#[cfg(feature = "mpi")]
fn command_of(compiler: &str) -> Option<String> {
    let shown = std::process::Command::new(compiler).arg("-show").output();
    let shown = shown.ok().filter(|output| output.status.success())?;
    let command = String::from_utf8_lossy(&shown.stdout).replace('\n', " ");
    Some(command.trim().to_owned()).filter(|command| !command.is_empty())
}
