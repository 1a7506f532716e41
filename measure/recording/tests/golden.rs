//! Recordings of earlier versions stay readable.

use std::path::Path;

use downbeat_recording::Recording;
use downbeat_trace::formats::{Item, What};

/// Two ranks of the tracer's test program `odd.c`, which each send a message to themselves while MPI is finalized.
#[test]
fn version_1_is_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/version-1");
    let recording = Recording::read(&folder).unwrap();
    assert_eq!((recording.size(), recording.missing()), (2, &[][..]));
    assert_eq!(recording.ended_early().count(), 0);
    let (mut regions, mut samples, mut sends) = (vec![], 0, vec![]);
    let sink = |item: &Item<'_>| {
        match item {
            Item::Region { name } => regions.push((*name).to_owned()),
            Item::Sample { .. } => samples += 1,
            Item::Event {
                location,
                what: What::Send { to, tag, bytes, .. },
                ..
            } => sends.push((*location, *to, *tag, *bytes)),
            _ => {}
        }
        Ok(())
    };
    let merged = recording.merge(sink, |_| ()).unwrap();
    assert_eq!((merged.calls, merged.sent, merged.received), (38, 2, 2));
    assert!(regions.iter().any(|name| name == "MPI_Finalize"));
    // When MPI was initialized, and before it was finalized.
    assert_eq!(samples, 2);
    sends.sort_unstable();
    assert_eq!(sends.len(), 2);
    assert!(
        sends
            .iter()
            .all(|(from, to, _, bytes)| from == to && *bytes == Some(4))
    );
}
