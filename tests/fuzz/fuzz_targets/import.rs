//! Outputs of other suites: what is imported must be launches that can be written as records.
#![no_main]

use downbeat_records::import::{ImportSettings, import};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let settings = ImportSettings {
        ranks: Some(2),
        ..ImportSettings::default()
    };
    let Ok(imported) = import(data, &settings) else {
        return;
    };
    assert!(!imported.launches.is_empty());
    for imported in imported.launches {
        assert!(imported.launch.binds());
        for group in imported.launch.groups {
            assert!(!group.key.operation.is_empty());
            let valid = group.nanos.len() as u64;
            assert_eq!(group.counts[0].1, valid);
            assert!(group.nanos.iter().all(|nanos| (0.0..1e19).contains(nanos)));
        }
    }
});
