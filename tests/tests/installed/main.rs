//! Tests of an installation: programs against libdownbeat, the programs and the tracer
//! that are installed with it, and packages.
//!
//! `cargo xtask test` installs everything, runs each test as a step of its own, and
//! passes the folder of the installation in an environment variable of
//! [`downbeat_launch::environment`].

#![expect(
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed test panics, and says why"
)]

mod containers;
mod files;
mod memory;
mod otf2_python;
mod packages;
mod pages;
mod programs;
mod tracer;
mod tree;
mod wtime;

use downbeat_launch::mpi::{MPICH, OPEN_MPI};

use tree::{check, check_installed};

#[test]
fn install() {
    check_installed("install", files::are_complete);
}

#[test]
fn programs_without_mpi() {
    check_installed("programs without MPI", programs::local);
}

#[test]
fn cmake() {
    check_installed("CMake", programs::with_cmake);
}

#[test]
fn programs_over_open_mpi() {
    check_installed("programs over Open MPI", |tree| {
        programs::parallel(tree, OPEN_MPI)
    });
}

#[test]
fn programs_over_mpich() {
    check_installed("programs over MPICH", |tree| {
        programs::parallel(tree, MPICH)
    });
}

#[test]
fn mpi_wtime_of_several_hosts() {
    check_installed("MPI_Wtime of several hosts", wtime::over_hosts);
}

#[test]
fn programs_traced_over_open_mpi() {
    check_installed("programs traced over Open MPI", |tree| {
        tracer::programs(tree, OPEN_MPI)
    });
}

#[test]
fn programs_traced_over_mpich() {
    check_installed("programs traced over MPICH", |tree| {
        tracer::programs(tree, MPICH)
    });
}

#[test]
fn real_programs_traced() {
    check_installed("real programs traced", tracer::real_programs);
}

#[test]
fn regions_of_a_traced_program() {
    check_installed("regions of a traced program", tracer::regions);
}

#[test]
fn traced_with_artificial_errors() {
    check_installed("traced with artificial errors", tracer::artificial_errors);
}

#[test]
fn traced_with_little_memory() {
    check_installed("traced with little memory", tracer::little_memory);
}

#[test]
fn the_mini_application_recorded() {
    check_installed("the mini application recorded", tracer::mini_application);
}

#[test]
fn traces_of_programs_that_are_killed() {
    check_installed("traces of programs that are killed", tracer::killed);
}

#[test]
fn traced_without_memory_or_a_disk() {
    check_installed("traced without memory or a disk", tracer::shortage);
}

#[test]
fn calls_that_fail_under_the_tracer() {
    check_installed("calls that fail under the tracer", tracer::failures);
}

#[test]
fn traced_over_several_hosts() {
    check_installed("traced over several hosts", tracer::over_hosts);
}

#[test]
fn traced_under_slurm() {
    check_installed("traced under Slurm", tracer::under_slurm);
}

#[test]
fn pictures_of_a_traced_program() {
    check_installed("pictures of a traced program", tracer::pictures);
}

#[test]
fn lines_of_the_documents() {
    check_installed("lines of the documents", pages::lines_of_documents);
}

#[test]
#[ignore = "builds a clone, which takes minutes"]
fn starts_of_the_readme() {
    check(pages::starts_of_readme);
}

#[test]
fn memory_of_programs_without_mpi() {
    check_installed("memory of programs without MPI", memory::local);
}

#[test]
fn memory_of_programs_over_open_mpi() {
    check_installed("memory of programs over Open MPI", |tree| {
        memory::parallel(tree, OPEN_MPI)
    });
}

#[test]
fn memory_of_programs_over_mpich() {
    check_installed("memory of programs over MPICH", |tree| {
        memory::parallel(tree, MPICH)
    });
}

#[test]
fn traced_over_open_mpi_under_valgrind() {
    check_installed("traced over Open MPI under valgrind", |tree| {
        tracer::under_valgrind(tree, OPEN_MPI)
    });
}

#[test]
fn traced_over_mpich_under_valgrind() {
    check_installed("traced over MPICH under valgrind", |tree| {
        tracer::under_valgrind(tree, MPICH)
    });
}

#[test]
fn traced_over_open_mpi_with_sanitizers() {
    check_installed("traced over Open MPI with sanitizers", |tree| {
        tracer::with_sanitizers(tree, OPEN_MPI)
    });
}

#[test]
fn traced_over_mpich_with_sanitizers() {
    check_installed("traced over MPICH with sanitizers", |tree| {
        tracer::with_sanitizers(tree, MPICH)
    });
}

#[test]
#[ignore = "builds a package, which takes minutes"]
fn package_static() {
    check(packages::in_an_empty_root);
}

#[test]
#[ignore = "needs root, and downloads a system"]
fn package_debian() {
    check(packages::in_a_new_system);
}

#[test]
#[ignore = "needs root, and builds a container"]
fn package_container() {
    check(containers::in_containers);
}

#[test]
#[ignore = "downloads packages of Python"]
fn otf2_s_python_module() {
    check(otf2_python::reads_archives);
}
