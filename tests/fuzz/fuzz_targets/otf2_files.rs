//! Files of OTF2 archives, in memory. The first byte selects the kind of the file, and whether the rest is the
//! whole file or only its records. What is decoded must be encoded so that it is decoded to the same.
#![no_main]

use std::path::Path;
use std::sync::Arc;

use downbeat_otf2::raw::{Decoder, Order};
use downbeat_otf2::{Anchor, Definition, Definitions, Event, EventReader, Field, LocalDefinitions};
use libfuzzer_sys::fuzz_target;

/// The smallest chunk that OTF2 reads.
const CHUNK: usize = 256 << 10;

/// Returns a file of one chunk with these records.
fn framed(records: &[u8], order: Order) -> Vec<u8> {
    let header = [&[3, order as u8][..], &[0; 16]].concat();
    [&header, records, &[2, 1]].concat()
}

fn checked_definitions(file: Vec<u8>) {
    let definitions = Definitions::new(file, CHUNK, Path::new("it.def"));
    let order = definitions.order().unwrap_or_default();
    for definition in definitions.iter().flatten() {
        let (mut once, mut twice) = (vec![], vec![]);
        definition.encode(order, &mut once);
        let again = Definition::decode(definition.kind(), Decoder::new(&once, order));
        again.expect("it was encoded").encode(order, &mut twice);
        assert_eq!(once, twice, "{definition:?}");
    }
}

fn checked_events(file: &[u8], local: Arc<LocalDefinitions>) {
    let Ok(mut events) = EventReader::new(file, Path::new("it.evt"), CHUNK, local) else {
        return;
    };
    while let Ok(Some(record)) = events.next() {
        let _ = record.corrected_time();
        if let Some(attributes) = record.attributes() {
            let mut encoded = vec![];
            attributes.encode(record.order, &mut encoded);
            let count = attributes.iter().count();
            assert_eq!(count, attributes.len());
        }
        let Some(event) = record.event() else {
            continue;
        };
        let (mut once, mut twice) = (vec![], vec![]);
        event.encode(record.order, &mut once);
        let again = Event::decode(event.kind(), Decoder::new(&once, record.order));
        again
            .expect("it was encoded")
            .encode(record.order, &mut twice);
        assert_eq!(once, twice, "{event:?}");
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((kind, data)) = data.split_first() else {
        return;
    };
    let order = match kind & 8 {
        0 => Order::Little,
        _ => Order::Big,
    };
    match kind % 8 {
        0 => {
            if let Ok(anchor) = Anchor::parse(data) {
                assert_eq!(Anchor::parse(&anchor.encode()), Ok(anchor));
            }
        }
        1 => checked_definitions(data.to_vec()),
        2 => checked_definitions(framed(data, order)),
        3 => drop(LocalDefinitions::parse(data, CHUNK)),
        4 => checked_events(data, Arc::default()),
        5 => checked_events(&framed(data, order), Arc::default()),
        _ => {
            // Local definitions, and events whose references they map.
            let (local, events) = data.split_at(data.len() / 2);
            let local = LocalDefinitions::parse(&framed(local, order), CHUNK);
            checked_events(&framed(events, order), Arc::new(local.unwrap_or_default()));
        }
    }
});
