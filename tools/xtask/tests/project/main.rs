//! Rules of the project that no compiler knows: about documents, sources, crates without
//! std, and packages as registries get them.
//!
//! `cargo xtask test` runs each test as a step of its own.

#![expect(
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed test panics, and says why"
)]

mod architecture;
mod core_only;
mod doc_comments;
mod import_cycles;
mod links;
mod no_std;
mod published;
mod workspace;

use std::sync::{Mutex, PoisonError};

use downbeat_launch::Outcome;

use workspace::Workspace;

/// Runs a check in the root of the workspace, while no other runs: some share a target
/// directory.
fn check(check: impl FnOnce(&Workspace) -> Outcome) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(why) = Workspace::read().and_then(|workspace| check(&workspace)) {
        panic!("{why}");
    }
}

#[test]
fn paths_in_the_documents_exist() {
    check(|_| architecture::check_documents());
}

#[test]
fn links_of_the_documents() {
    check(|_| links::check_links());
}

#[test]
#[ignore = "needs mdBook"]
fn book() {
    check(|_| links::build_book());
}

#[test]
fn doc_comments() {
    check(doc_comments::check);
}

#[test]
fn import_cycles() {
    check(import_cycles::check_packages);
}

#[test]
fn no_std_the_probe_names_every_crate_that_promises_it() {
    check(no_std::names_all);
}

#[test]
fn no_std_the_probe_links_without_std() {
    check(no_std::links);
}

#[test]
fn no_std_the_probe_fails_with_a_dependency_on_std() {
    check(no_std::fails_with_std);
}

#[test]
fn no_std_checked_where_there_is_only_core() {
    check(core_only::check_crates);
}

#[test]
fn no_std_that_check_fails_for_a_crate_with_std() {
    check(core_only::fails_with_std);
}

#[test]
fn published_packages_contents() {
    check(published::check_contents);
}

#[test]
fn published_packages_lock_file_of_a_user() {
    check(published::lock_file::check);
}

#[test]
#[ignore = "takes minutes"]
fn published_packages_front_pages() {
    check(published::front_page::build);
}

#[test]
#[ignore = "takes minutes"]
fn published_packages_dry_run_verified() {
    check(published::verify);
}

#[test]
#[ignore = "takes minutes, and needs an MPI library"]
fn published_packages_dry_run_with_mpi_verified() {
    check(published::verify_with_mpi);
}
