//! Recordings of ranks, and the definitions in them.
#![no_main]

use std::fs;

use downbeat_files::testing::TemporaryFolder;
use downbeat_recording::{Definition, Recording};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(line) = str::from_utf8(data)
        && let Some(definition) = Definition::parse(line)
    {
        let again = Definition::parse(&definition.to_string());
        assert_eq!(again.as_ref(), Some(&definition));
    }
    let folder = TemporaryFolder::new();
    if fs::create_dir_all(&folder.0).is_ok()
        && fs::write(folder.file("rank-0.dbrank"), data).is_ok()
        && let Ok(recording) = Recording::read(&folder.0)
    {
        let _ = recording.definitions();
        let mut events = recording.events();
        while let Ok(events) = &mut events
            && let Ok(Some(_)) = events.next_event()
        {}
    }
});
