//! Prints the numbers of events of an archive by location and kind, and the bytes that were sent.
//!
//! `cargo run -p downbeat-otf2 --example summary traces.otf2`. Without an argument, it writes a small
//! archive and reads that.

#![expect(clippy::print_stdout, reason = "the program prints its result")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use downbeat_otf2::{
    Anchor, Archive, ArchiveWriter, CommFlag, CommRef, Definition, Error, Event, GroupFlag,
    GroupRef, GroupType, List, LocationGroupRef, LocationGroupType, LocationRef, LocationType,
    Paradigm, StringRef, SystemTreeNodeRef, definition, event,
};

fn main() -> Result<(), Error> {
    match std::env::args_os().nth(1) {
        Some(anchor) => summarize(Path::new(&anchor)),
        None => {
            let name = format!("otf2-summary-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            let result = write(&folder).and_then(|anchor| summarize(&anchor));
            std::fs::remove_dir_all(&folder).map_err(Error::io(&folder))?;
            result
        }
    }
}

/// Prints the summary of an archive.
fn summarize(anchor: &Path) -> Result<(), Error> {
    let archive = Archive::open(anchor)?;
    let definitions = archive.definitions()?;
    let (mut strings, mut locations) = (BTreeMap::new(), vec![]);
    for definition in definitions.iter() {
        match definition? {
            Definition::String(definition::String { reference, text }) => {
                strings.insert(reference, text);
            }
            Definition::Location(definition::Location {
                reference,
                name,
                events,
                ..
            }) if events > 0 => locations.push((reference, name)),
            _ => {}
        }
    }
    for (location, name) in locations {
        let (mut kinds, mut sent) = (BTreeMap::<_, u64>::new(), 0);
        let mut events = archive.events(location)?;
        while let Some(record) = events.next()? {
            let event = record.event().ok_or_else(|| {
                let why = format!("event {} of {location:?} is damaged", events_before(&kinds));
                Error::content(anchor, why)
            })?;
            *kinds.entry(event.name()).or_default() += 1;
            if let Event::MpiSend(event::MpiSend { length, .. })
            | Event::MpiIsend(event::MpiIsend { length, .. }) = event
            {
                sent = u64::saturating_add(sent, length);
            }
        }
        let name = strings.get(&name).map_or("", |name| name);
        println!("location {} ({name}): {sent} bytes sent", location.0);
        for (kind, count) in kinds {
            println!("  {kind:<30} {count:>9}");
        }
    }
    Ok(())
}

fn events_before(kinds: &BTreeMap<&str, u64>) -> u64 {
    kinds.values().sum()
}

/// Writes an archive of two ranks that exchange messages. Returns its anchor file.
fn write(folder: &Path) -> Result<PathBuf, Error> {
    const ROUNDS: u64 = 1_000;
    let mut archive = ArchiveWriter::create(folder, "traces", Anchor::default())?;
    let mut counts = vec![];
    for rank in 0..2 {
        let mut events = archive.events(LocationRef(rank))?;
        let (communicator, peer) = (CommRef(0), 1 - rank as u32);
        for round in 0..ROUNDS {
            let (tag, length) = (round as u32, 8 * round);
            let send = Event::MpiSend(event::MpiSend {
                receiver: peer,
                communicator,
                tag,
                length,
            });
            let receive = Event::MpiRecv(event::MpiRecv {
                sender: peer,
                communicator,
                tag,
                length,
            });
            // Rank 0 begins the round, and rank 1 answers.
            let of_rank = if rank == 0 {
                [send, receive]
            } else {
                [receive, send]
            };
            for (time, event) in (1_000 * round + 100 * rank..).step_by(300).zip(of_rank) {
                events.write(time, &event)?;
            }
        }
        counts.push(events.finish()?);
    }
    archive.define(&Definition::ClockProperties(definition::ClockProperties {
        resolution: 1_000_000_000,
        offset: 0,
        length: 1_000 * ROUNDS,
        real_time: u64::MAX,
    }))?;
    for (reference, text) in (0..).map(StringRef).zip(["", "node", "thread"]) {
        archive.define(&Definition::String(definition::String {
            reference,
            text: text.into(),
        }))?;
    }
    archive.define(&Definition::SystemTreeNode(definition::SystemTreeNode {
        reference: SystemTreeNodeRef(0),
        name: StringRef(1),
        class: StringRef(1),
        parent: SystemTreeNodeRef::UNDEFINED,
    }))?;
    for (rank, events) in (0..).zip(counts) {
        archive.define(&Definition::LocationGroup(definition::LocationGroup {
            reference: LocationGroupRef(rank),
            name: StringRef(0),
            group_type: LocationGroupType::PROCESS,
            parent: SystemTreeNodeRef(0),
            creator: LocationGroupRef::UNDEFINED,
        }))?;
        archive.define(&Definition::Location(definition::Location {
            reference: LocationRef(rank.into()),
            name: StringRef(2),
            location_type: LocationType::CPU_THREAD,
            events,
            group: LocationGroupRef(rank),
        }))?;
    }
    // The locations of MPI's ranks, and the members of the world among them.
    let groups = [GroupType::COMM_LOCATIONS, GroupType::COMM_GROUP];
    for (reference, group_type) in (0..).map(GroupRef).zip(groups) {
        archive.define(&Definition::Group(definition::Group {
            reference,
            name: StringRef(0),
            group_type,
            paradigm: Paradigm::MPI,
            flags: GroupFlag::NONE,
            members: List::from(&[0, 1][..]),
        }))?;
    }
    archive.define(&Definition::Comm(definition::Comm {
        reference: CommRef(0),
        name: StringRef(0),
        group: GroupRef(1),
        parent: CommRef::UNDEFINED,
        flags: CommFlag::NONE,
    }))?;
    archive.finish()
}
