//! A recording stays readable.

use std::path::Path;

use downbeat_recording::{FileError, MergeSummary, Recording};
use downbeat_trace::Event;
use downbeat_trace::formats::Item;

/// Passes the items of the trace of a recording to `sink`.
fn merge(
    recording: &Recording,
    mut sink: impl FnMut(&Item<'_>),
) -> Result<MergeSummary, FileError> {
    recording.definitions().iter().for_each(&mut sink);
    let mut events = recording.events()?;
    while let Some(item) = events.next_event()? {
        sink(&item);
    }
    Ok(events.summary())
}

/// Two ranks that put, accumulate between fences, and get by a request.
#[test]
fn version_1_is_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/version-1");
    let recording = Recording::read(&folder).unwrap();
    let mut found = [vec![], vec![]];
    let sink = |item: &Item<'_>| {
        if let Item::Event {
            location, event, ..
        } = *item
        {
            let shown = match event {
                Event::Access {
                    kind,
                    target,
                    request,
                    bytes: Some(4),
                    ..
                } => format!("{} {request} to {target}", kind.name()),
                Event::AccessComplete { request, .. } => format!("{request} complete"),
                Event::CollectiveEnd { sent, received, .. } => {
                    format!("all wait: {sent} {received}")
                }
                _ => return,
            };
            found[location as usize].push(shown);
        }
    };
    let merged = merge(&recording, sink).unwrap();
    assert_eq!(merged.accesses, [2, 2, 2]);
    for (location, found) in found.iter().enumerate() {
        let other = 1 - location;
        // To the lowest target first.
        let [first, second] = if location == 0 { [1, 0] } else { [0, 1] };
        let expected = [
            // The window is made, and a fence ends no epoch.
            "all wait: true true",
            "all wait: false false",
            &format!("put 0 to {other}"),
            "atomic 1 to 0",
            &format!("{first} complete"),
            &format!("{second} complete"),
            "all wait: true true",
            &format!("get 2 to {other}"),
            "2 complete",
            "all wait: true true",
        ];
        assert_eq!(found[..], expected);
    }
}
