//! Cluster files of `downbeat simulate`.
#![no_main]
#![expect(dead_code, reason = "the program uses the rest")]

#[path = "../../../tools/cli/src/cluster.rs"]
mod cluster;

use std::cell::RefCell;

use downbeat_fuzz::MemoryFile;
use libfuzzer_sys::fuzz_target;

thread_local! {
    static FILE: RefCell<MemoryFile> = RefCell::default();
}

fuzz_target!(|data: &[u8]| {
    FILE.with_borrow_mut(|file| {
        let path = file.with(data);
        if let Ok(found) = cluster::ClusterFile::find(&path.to_string_lossy()) {
            let _ = (found.network, found.clocks());
        }
    });
});
