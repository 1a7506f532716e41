//! Traces in Chrome's JSON: what is read must be valid items, with the events of each location in order.
#![no_main]

use std::io;

use downbeat_trace::formats::Item;
use downbeat_trace::formats::chrome::ChromeTrace;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(trace) = ChromeTrace::read(data) else {
        return;
    };
    let (mut last, mut regions, mut metrics) = (vec![], 0, 0);
    let taken = trace.for_each_item(|item| {
        match item {
            Item::Location { name, .. } | Item::Thread { name, .. } => {
                assert!(!name.is_empty());
                last.push(i64::MIN);
            }
            Item::Region { .. } => regions += 1,
            Item::Metric { .. } => metrics += 1,
            Item::Communicator { members } => {
                assert!(members.iter().all(|member| (*member as usize) < last.len()));
            }
            Item::Event { location, time, .. } => {
                let last = &mut last[*location as usize];
                assert!(*last <= time.as_nanos(), "{item:?}");
                *last = time.as_nanos();
            }
            _ => {}
        }
        Ok::<_, io::Error>(())
    });
    taken.expect("all items are taken");
    assert!(regions <= data.len() && metrics <= data.len());
});
