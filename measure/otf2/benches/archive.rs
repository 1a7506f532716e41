//! Time to read all events of an archive, and to read and write them, relative to the time that OTF2's own
//! reader takes: `cargo bench -p downbeat-otf2 --features otf2-tools --bench archive`. With `-- --gate`, the exit
//! code is 1 when the median of five turns exceeds what the project promises. Without cargo's `--bench`, small
//! archives take one turn. It needs OTF2 3 and a C compiler.

#![expect(
    clippy::print_stdout,
    reason = "this is a program, and this is its output"
)]
#![expect(clippy::expect_used, reason = "a benchmark that fails has no caller")]

#[path = "../examples/copy/archive.rs"]
mod copy;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use copy::copy;
use downbeat_otf2::raw::Order;
use downbeat_otf2::{
    Anchor, Archive, ArchiveWriter, CollectiveOp, CommRef, Definition, Error, Event,
    LocationGroupRef, LocationRef, LocationType, RegionRef, StringRef, definition, event,
};

/// Promised limits: reading and writing relative to OTF2's reading, and many locations relative to few.
const COPIED: f64 = 3.0;
const MANY: f64 = 1.5;
const TURNS: usize = 5;
const EVENTS: u64 = 16_000_000;
const LOCATIONS: [u64; 2] = [4, 1_024];

fn main() -> ExitCode {
    let is = |argument: &str| std::env::args().any(|given| given == argument);
    let (turns, events) = if is("--bench") {
        (TURNS, EVENTS)
    } else {
        (1, 20_480)
    };
    let name = format!("bench-read-{}", std::process::id());
    // In memory, where there is such a folder: the disk is not measured.
    let in_memory = Some(Path::new("/dev/shm")).filter(|folder| folder.is_dir());
    let folder = in_memory.unwrap_or(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let folder = folder.join(name);
    fs::create_dir_all(&folder).expect("there can be a folder");
    let reader = compile(&folder);
    let anchors = LOCATIONS.map(|locations| {
        let to = folder.join(locations.to_string());
        write(&to, locations, events).expect("there is room")
    });

    println!("| locations | OTF2 reads, s | reads, s | reads and writes, s |\n|---|---|---|---|");
    // By archive: OTF2 reads, we read, we copy.
    let mut all = LOCATIONS.map(|_| [vec![], vec![], vec![]]);
    for _ in 0..turns {
        for (which, anchor) in anchors.iter().enumerate() {
            let to = folder.join("copy");
            let found = [
                seconds(|| run(Command::new(&reader).arg(anchor))),
                seconds(|| assert_eq!(read(anchor).expect("it is sound"), events)),
                seconds(|| {
                    copy(anchor, &to, Order::Little).expect("there is room");
                }),
            ];
            fs::remove_dir_all(&to).expect("it was written");
            let [theirs, read, copied] = found;
            println!(
                "| {} | {theirs:.3} | {read:.3} | {copied:.3} |",
                LOCATIONS[which]
            );
            for (all, found) in all[which].iter_mut().zip(found) {
                all.push(found);
            }
        }
    }
    fs::remove_dir_all(&folder).expect("it was made");
    let all = all.map(|archive| archive.map(median));
    let [few, many] = all;
    let figures = [
        ("reading, in OTF2's time", few[1] / few[0], None),
        (
            "reading and writing, in OTF2's time to read",
            few[2] / few[0],
            Some(COPIED),
        ),
        ("the same, 1,024 locations", many[2] / many[0], Some(COPIED)),
        (
            "reading, 1,024 locations relative to 4",
            many[1] / few[1],
            Some(MANY),
        ),
        (
            "reading and writing, 1,024 locations relative to 4",
            many[2] / few[2],
            Some(MANY),
        ),
    ];
    println!("\n| | found | must not exceed |\n|---|---|---|");
    let mut exceeds = false;
    for (name, found, limit) in figures {
        exceeds |= limit.is_some_and(|limit| found > limit);
        let limit = limit.map_or(String::new(), |limit| limit.to_string());
        println!("| {name} | {found:.2} | {limit} |");
    }
    u8::from(exceeds && is("--gate")).into()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Reads and decodes all events, and returns their number.
fn read(anchor: &Path) -> Result<u64, Error> {
    let (archive, mut count, mut sum) = (Archive::open(anchor)?, 0, 0_u64);
    for definition in archive.definitions()?.iter() {
        if let Definition::Location(definition::Location { reference, .. }) = definition? {
            let mut events = archive.events(reference)?;
            while let Some(record) = events.next()? {
                count += 1;
                let of_event = match record.event() {
                    Some(Event::MpiIsend(event::MpiIsend { length, .. })) => length,
                    Some(Event::Enter(event::Enter { region })) => region.0.into(),
                    _ => 0,
                };
                sum = sum.wrapping_add(record.time).wrapping_add(of_event);
            }
        }
    }
    core::hint::black_box(sum);
    Ok(count)
}

/// Writes an archive with messages and collective operations in regions. Returns its anchor file.
fn write(folder: &Path, locations: u64, events: u64) -> Result<PathBuf, Error> {
    let mut archive = ArchiveWriter::create(folder, "traces", Anchor::default())?;
    for location in 0..locations {
        let mut to = archive.events(LocationRef(location))?;
        let (mut time, communicator) = (1_u64 << 40, CommRef(0));
        for number in 0..events / locations {
            let (request, region) = (number / 10, RegionRef(number as u32 / 10 % 300));
            let (peer, tag, length) = (number as u32 % 777, request as u32, 8 << (number % 20));
            let event = match number % 10 {
                0 | 4 => Event::Enter(event::Enter { region }),
                3 | 9 => Event::Leave(event::Leave { region }),
                1 => Event::MpiIsend(event::MpiIsend {
                    receiver: peer,
                    communicator,
                    tag,
                    length,
                    request,
                }),
                2 => Event::MpiIsendComplete(event::MpiIsendComplete { request }),
                5 => Event::MpiIrecvRequest(event::MpiIrecvRequest { request }),
                6 => Event::MpiIrecv(event::MpiIrecv {
                    sender: peer,
                    communicator,
                    tag,
                    length,
                    request,
                }),
                7 => Event::MpiCollectiveBegin(event::MpiCollectiveBegin {}),
                _ => Event::MpiCollectiveEnd(event::MpiCollectiveEnd {
                    operation: CollectiveOp::ALLREDUCE,
                    communicator,
                    root: u32::MAX,
                    size_sent: length,
                    size_received: length,
                }),
            };
            time += number * 7919 % 1_000;
            to.write(time, &event)?;
        }
        let events = to.finish()?;
        archive.define(&Definition::Location(definition::Location {
            reference: LocationRef(location),
            name: StringRef::UNDEFINED,
            location_type: LocationType::CPU_THREAD,
            events,
            group: LocationGroupRef::UNDEFINED,
        }))?;
    }
    archive.finish()
}

/// Compiles the reader that uses OTF2's library.
fn compile(folder: &Path) -> PathBuf {
    let flags = Command::new("otf2-config")
        .args(["--cflags", "--ldflags", "--libs"])
        .output();
    let flags = String::from_utf8(flags.expect("OTF2 is installed").stdout).expect("they are text");
    let program = folder.join("read");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/archive.c");
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-o"]).arg(&program).arg(source);
    run(cc.args(flags.split_whitespace()));
    program
}

/// Runs a command to its successful end.
fn run(command: &mut Command) {
    let status = command.stdout(Stdio::null()).status();
    assert!(status.expect("it starts").success(), "{command:?} failed");
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}
