//! Archives of OTF2's own library, and copies of them as OTF2's own program shows them.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failure of the environment is a failure of the test"
)]

#[path = "../examples/copy/archive.rs"]
mod copy;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use copy::copy;
use downbeat_otf2::raw::{Order, RecordWriter, put_record};
use downbeat_otf2::{Archive, LocationRef, files};

/// Runs a program; returns what it printed, with its warnings.
fn words(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .unwrap_or_else(|why| panic!("{program}: {why}"));
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {out}{err}"
    );
    out + &err
}

/// Program that writes archives with all kinds of records, compiled once.
fn every_record() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let name = format!("every-record-{}", std::process::id());
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let flags = words("otf2-config", &["--cflags", "--ldflags", "--libs"]);
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/every_record.c");
        let mut arguments = vec!["-o", program.to_str().unwrap(), source];
        arguments.extend(flags.split_whitespace());
        words("cc", &arguments);
        program
    })
}

/// Temporary folder, which is deleted when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("records-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes an archive with OTF2. Returns its anchor file.
    fn archive(&self, kind: &str) -> PathBuf {
        let folder = self.0.join(kind);
        words(
            every_record().to_str().unwrap(),
            &[folder.to_str().unwrap(), kind],
        );
        folder.join("traces.otf2")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Returns all that OTF2's program shows of an archive.
fn shown(anchor: &Path) -> String {
    words("otf2-print", &["-A", anchor.to_str().unwrap()])
}

fn with_extension(anchor: &Path, extension: &str) -> Vec<u8> {
    fs::read(anchor.with_extension(extension)).unwrap()
}

/// Returns all events as they are, with their times.
fn events(anchor: &Path) -> Vec<(u64, Vec<u8>)> {
    let archive = Archive::open(anchor).unwrap();
    let (mut reader, mut all) = (archive.events(LocationRef(7)).unwrap(), vec![]);
    while let Some(record) = reader.next().unwrap() {
        all.push((record.time, record.bytes.to_vec()));
    }
    all
}

#[test]
fn all_records_are_written_as_otf2_writes_them() {
    let folder = Folder::new();
    let of_otf2 = folder.archive("random");
    let [little, big, back] = ["little", "big", "back"].map(|name| folder.0.join(name));
    let copied = copy(&of_otf2, &little, Order::Little).unwrap();
    assert_eq!(copied, 300 * 79);
    copy(&of_otf2, &big, Order::Big).unwrap();
    copy(&big.join("traces.otf2"), &back, Order::Little).unwrap();
    for folder in [little, back] {
        let copy = folder.join("traces.otf2");
        for extension in ["otf2", "def"] {
            assert!(with_extension(&of_otf2, extension) == with_extension(&copy, extension));
        }
        let local = |anchor| fs::read(files::local(anchor, LocationRef(7), "def")).unwrap();
        assert_eq!(local(&of_otf2), local(&copy));
        // OTF2 writes the time after a flush again.
        assert!(events(&of_otf2) == events(&copy));
    }
}

#[test]
fn otf2_shows_copies_in_both_byte_orders_as_the_original() {
    let folder = Folder::new();
    let of_otf2 = folder.archive("shown");
    let original = shown(&of_otf2);
    assert!(
        original.contains("NON_BLOCKING_COLLECTIVE_COMPLETE"),
        "{original}"
    );
    for order in [Order::Little, Order::Big] {
        let to = folder.0.join(format!("{order:?}"));
        copy(&of_otf2, &to, order).unwrap();
        assert_eq!(original, shown(&to.join("traces.otf2")), "{order:?}");
    }
}

#[test]
fn times_are_corrected_as_otf2_corrects_them() {
    let folder = Folder::new();
    let of_otf2 = folder.archive("shown");
    let archive = Archive::open(&of_otf2).unwrap();
    let (mut reader, mut ours, mut moved) = (archive.events(LocationRef(7)).unwrap(), vec![], 0);
    while let Some(record) = reader.next().unwrap() {
        moved += u64::from(record.corrected_time() != record.time);
        ours.push(record.corrected_time());
    }
    assert!(moved > 0);
    let text = shown(&of_otf2);
    let (_, of_events) = text.split_once("=== Events").unwrap();
    let time = |line: &str| {
        let mut columns = line.split_whitespace().skip(1);
        (columns.next()? == "7").then(|| columns.next()?.parse().ok())?
    };
    let theirs: Vec<u64> = of_events.lines().filter_map(time).collect();
    assert_eq!(ours, theirs);
}

/// Definitions as the first versions of OTF2 wrote them: kinds, and data of numbers or bytes.
fn older() -> Vec<(u8, Vec<u8>)> {
    let numbers = |numbers: &[u64]| {
        let mut data = vec![];
        numbers
            .iter()
            .for_each(|number| Order::Little.write_number(*number, &mut data));
        data
    };
    const UNDEFINED: u64 = u64::MAX;
    let mut all = vec![(5, numbers(&[1_000_000, 5, 600]))];
    for (reference, text) in ["", "name", "MPI_Init", "node"].into_iter().enumerate() {
        all.push((
            10,
            [
                numbers(&[reference as u64]),
                text.as_bytes().to_vec(),
                vec![0],
            ]
            .concat(),
        ));
    }
    all.push((11, [numbers(&[0, 1]), vec![4]].concat()));
    all.push((12, numbers(&[0, 3, 3, UNDEFINED])));
    all.push((13, [numbers(&[0, 1]), vec![1], numbers(&[0])].concat()));
    all.push((
        14,
        [numbers(&[7, 1]), vec![1], numbers(&[3 * 79, 0])].concat(),
    ));
    // Regions and groups of all kinds.
    for kind in 0..=36 {
        let data = [
            numbers(&[kind, 2, 1]),
            vec![kind as u8],
            numbers(&[0, 3, 4]),
        ];
        all.push((15, data.concat()));
    }
    for kind in 0..=7 {
        let members: &[u64] = if kind == 5 { &[0] } else { &[1, 0] };
        all.push((
            18,
            [numbers(&[kind, 1]), vec![kind as u8], numbers(members)].concat(),
        ));
    }
    let metric = [numbers(&[0, 1, 0]), vec![1, 0, 4, 1], numbers(&[0, 1])];
    all.push((19, metric.concat()));
    all.push((
        20,
        [numbers(&[0]), vec![1], numbers(&[0]), vec![0]].concat(),
    ));
    all.push((22, numbers(&[0, 1, 4, UNDEFINED])));
    all.push((24, numbers(&[0, 1, 0])));
    all.push((26, numbers(&[0, 1, 3])));
    all.push((28, numbers(&[0, 1, 3])));
    all.push((29, numbers(&[7, 1, 3])));
    all.push((43, numbers(&[1, 1, 4, 4, 0])));
    all
}

#[test]
fn records_of_older_versions_mean_what_otf2_takes_them_for() {
    let folder = Folder::new();
    let of_otf2 = folder.archive("shown");
    let chunk = Archive::open(&of_otf2).unwrap().anchor().definition_chunk;
    let to = File::create(of_otf2.with_extension("def")).unwrap();
    let mut to = RecordWriter::new(to, chunk, Order::Little);
    let older = older();
    for (kind, data) in &older {
        let mut record = vec![];
        put_record(*kind, data, Order::Little, &mut record);
        to.add(&record).unwrap();
    }
    to.finish().unwrap();
    let mut anchor = Archive::open(&of_otf2).unwrap().anchor().clone();
    anchor.definitions = older.len() as u64;
    fs::write(&of_otf2, anchor.encode()).unwrap();
    let to = folder.0.join("copy");
    copy(&of_otf2, &to, Order::Little).unwrap();
    let [ours, theirs] = [to.join("traces.otf2"), of_otf2].map(|anchor| shown(&anchor));
    for (ours, theirs) in ours.lines().zip(theirs.lines()) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.len(), theirs.len());
}
