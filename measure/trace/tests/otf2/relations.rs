//! Relations that an archive tells by requests, windows, contingents and locks, as read from the
//! output of OTF2's own program.

use std::collections::BTreeMap;

use super::support::PrintedEvent;

/// Events of a location: times in nanoseconds, with the fields of each event by their names.
type Parsed<'a> = Vec<(i64, &'a str, BTreeMap<&'a str, &'a str>)>;

fn parsed(events: &[PrintedEvent]) -> Parsed<'_> {
    let events = events.iter();
    events
        .map(|(time, kind, rest)| {
            let fields = rest.split(',').filter_map(|field| field.split_once(':'));
            (*time, &kind[..], fields.collect())
        })
        .collect()
}

/// Relation: its kind, and the times of the event that comes first and of the one that depends on
/// it.
pub(crate) type Related = (&'static str, i64, i64);

/// Returns the relations between the locations of an archive.
pub(crate) fn relations(shown: &BTreeMap<u64, Vec<PrintedEvent>>) -> Vec<Related> {
    let all: BTreeMap<u64, Parsed<'_>> = shown
        .iter()
        .map(|(id, events)| (*id, parsed(events)))
        .collect();
    let mut found = posted_receives(&all[&3], &all[&7]);
    found.extend(collectives(&all));
    found.extend(signals(&all));
    found
}

/// Messages with tag 3, whose receives complete in another order.
fn posted_receives(sender: &Parsed<'_>, receiver: &Parsed<'_>) -> Vec<Related> {
    let tagged = |event: &&(i64, &str, BTreeMap<&str, &str>)| event.2.get("Tag") == Some(&"3");
    let sends = sender.iter().filter(tagged);
    let mut posted: Vec<&str> = vec![];
    let mut completed = BTreeMap::new();
    for (time, kind, fields) in receiver {
        match *kind {
            "MPI_IRECV_REQUEST" => posted.push(fields["Request"]),
            "MPI_REQUEST_CANCELLED" => posted.retain(|request| *request != fields["Request"]),
            "MPI_IRECV" => drop(completed.insert(fields["Request"], (*time, fields["Length"]))),
            _ => {}
        }
    }
    let received = posted.iter().map(|request| completed[request]);
    let pairs = sends
        .zip(received)
        .map(|((sent, _, fields), (time, length))| {
            assert_eq!(fields["Length"], length);
            ("message", *sent, time)
        });
    pairs.collect()
}

fn collectives(all: &BTreeMap<u64, Parsed<'_>>) -> Vec<Related> {
    let mut found = vec![];
    // Enters and exits by kind, number and location; exits with their operation.
    let mut enters: BTreeMap<(&str, usize, u64), i64> = BTreeMap::new();
    let mut exits = vec![];
    for location in [7, 20, 3] {
        let (mut started, mut requests) = (0, BTreeMap::new());
        let mut counts = [0; 2];
        for (time, kind, fields) in &all[&location] {
            match *kind {
                "NON_BLOCKING_COLLECTIVE_REQUEST" => {
                    requests.insert(fields["Request"], started);
                    enters.insert(("non-blocking", started, location), *time);
                    started += 1;
                }
                "NON_BLOCKING_COLLECTIVE_COMPLETE" => {
                    let number = requests.remove(fields["Request"]).unwrap();
                    let is_from_root = fields["Operation"] == "BCAST";
                    exits.push(("non-blocking", number, location, *time, is_from_root));
                }
                "RMA_COLLECTIVE_BEGIN" => {
                    enters.insert(("RMA", counts[0], location), *time);
                    counts[0] += 1;
                }
                "RMA_COLLECTIVE_END" => {
                    if fields["LevelofSynchronicity"].contains("PROCESS") {
                        exits.push(("RMA", counts[1], location, *time, false));
                    }
                    counts[1] += 1;
                }
                _ => {}
            }
        }
    }
    for (kind, number, location, left, is_from_root) in exits {
        for member in [7, 20, 3] {
            let counts = member != location && (!is_from_root || member == 20);
            if counts {
                found.push((kind, enters[&(kind, number, member)], left));
            }
        }
    }
    found
}

fn signals(all: &BTreeMap<u64, Parsed<'_>>) -> Vec<Related> {
    let mut signals: BTreeMap<(&str, u64), i64> = BTreeMap::new();
    let mut waits = vec![];
    for events in [20, 11].map(|location| &all[&location]) {
        for (time, kind, fields) in events {
            let number = |name: &str| fields[name].parse::<u64>().unwrap();
            match *kind {
                "THREAD_CREATE" => {
                    signals.insert(("creation", number("SequenceCount")), *time);
                }
                "THREAD_BEGIN" => waits.push(("creation", number("SequenceCount"), *time)),
                "THREAD_END" => {
                    signals.insert(("end", number("SequenceCount")), *time);
                }
                "THREAD_WAIT" => waits.push(("end", number("SequenceCount"), *time)),
                "THREAD_RELEASE_LOCK" => {
                    signals.insert(("lock", number("AcquisitionOrder") + 1), *time);
                }
                "THREAD_ACQUIRE_LOCK" => waits.push(("lock", number("AcquisitionOrder"), *time)),
                _ => {}
            }
        }
    }
    let related = waits.into_iter().filter_map(|(kind, number, time)| {
        let signalled = signals.get(&(kind, number))?;
        Some((kind, *signalled, time))
    });
    related.collect()
}
