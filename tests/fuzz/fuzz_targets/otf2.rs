//! Archives of OTF2: read, corrected, and read as items. The first byte selects the file
//! that the rest replaces: the anchor, the global definitions, or the definitions or
//! events of a location.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::process;

use downbeat_fuzz::correct;
use downbeat_trace::formats::otf2::{Archive, Otf2Error, ReadOptions};
use libfuzzer_sys::fuzz_target;

/// Files of a small archive, relative to its folder.
const FILES: [(&str, &[u8]); 10] = [
    ("traces.otf2", include_bytes!("../archive/traces.otf2")),
    ("traces.def", include_bytes!("../archive/traces.def")),
    ("traces/3.def", include_bytes!("../archive/traces/3.def")),
    ("traces/3.evt", include_bytes!("../archive/traces/3.evt")),
    ("traces/7.def", include_bytes!("../archive/traces/7.def")),
    ("traces/7.evt", include_bytes!("../archive/traces/7.evt")),
    ("traces/11.def", include_bytes!("../archive/traces/11.def")),
    ("traces/11.evt", include_bytes!("../archive/traces/11.evt")),
    ("traces/20.def", include_bytes!("../archive/traces/20.def")),
    ("traces/20.evt", include_bytes!("../archive/traces/20.evt")),
];

fuzz_target!(|data: &[u8]| {
    let Some((which, data)) = data.split_first() else {
        return;
    };
    let folder = PathBuf::from(format!("/dev/shm/downbeat-{}", process::id()));
    let _ = fs::create_dir_all(folder.join("traces"));
    for (index, (name, content)) in FILES.into_iter().enumerate() {
        let is_replaced = index == usize::from(*which) % FILES.len();
        let content = if is_replaced { data } else { content };
        if fs::write(folder.join(name), content).is_err() {
            return;
        }
    }
    if let Ok(archive) = Archive::open(&folder.join("traces.otf2")) {
        let _ = archive.loads();
        let _ = archive.changed_files();
        let reading = ReadOptions::default();
        let _ = archive.for_each_item::<Otf2Error>(&reading, |_| Ok(()));
        if let Ok(read) = archive.read(&reading) {
            let sessions = archive.sessions(&read.origin);
            correct(read.trace, sessions);
        }
    }
    let _ = fs::remove_dir_all(&folder);
});
