//! Copies an archive record by record in the other byte order, or in a given one.
//!
//! `cargo run --example copy traces.otf2 FOLDER [little|big]`

use std::path::Path;
use std::process::ExitCode;

use downbeat_otf2::raw::Order;
use downbeat_otf2::{Archive, ArchiveWriter, Definition, Error};

/// Copies the archive to a new folder. Returns the number of events.
pub(crate) fn copy(from: &Path, folder: &Path, order: Option<Order>) -> Result<u64, Error> {
    let archive = Archive::open(from)?;
    let order = order.unwrap_or(match archive.anchor().order {
        Order::Little => Order::Big,
        Order::Big => Order::Little,
    });
    let mut anchor = archive.anchor().clone();
    anchor.order = order;
    let name = from.file_stem().unwrap_or_default().to_string_lossy();
    let mut to = ArchiveWriter::create(folder, &name, anchor)?;
    let definitions = archive.definitions()?;
    let mut all = 0;
    for definition in definitions.iter() {
        let definition = definition?;
        to.define(&definition)?;
        let Definition::Location {
            reference, events, ..
        } = definition
        else {
            continue;
        };
        // A location without events may have no files.
        if events == 0 {
            continue;
        }
        // The events of the copy have the references of the archive, and need no mappings.
        let mut writer = to.events_of(reference, &archive.local_definitions(reference)?.offsets)?;
        let mut reader = archive.events(reference)?;
        while let Some(record) = reader.next()? {
            let (Some(event), Some(attributes)) = (record.event(), record.attributes()) else {
                let why = format!("an event of location {} cannot be decoded", reference.0);
                return Err(Error::content(from, why));
            };
            writer.write_with(record.time, &event, &attributes)?;
        }
        all += writer.finish()?;
    }
    to.finish()?;
    Ok(all)
}

#[cfg_attr(test, expect(dead_code, reason = "tests call `copy`"))]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (from, folder, order) = match &arguments[..] {
        [from, folder] => (from, folder, None),
        [from, folder, order] if order == "little" => (from, folder, Some(Order::Little)),
        [from, folder, order] if order == "big" => (from, folder, Some(Order::Big)),
        _ => {
            eprintln!("usage: copy ARCHIVE.otf2 FOLDER [little|big]");
            return ExitCode::from(2);
        }
    };
    match copy(Path::new(from), Path::new(folder), order) {
        Ok(events) => {
            println!("{events} events copied to {folder}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}
