//! Archives that OTF2 itself writes, and the output of its own program for them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use downbeat_clock_core::{Global, Timestamp};

pub(crate) const NANOS: u64 = 1_000_000_000;

pub(crate) fn words(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .unwrap_or_else(|why| panic!("{program}: {why}"));
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success() && err.is_empty(),
        "{program} {arguments:?}: {out}{err}"
    );
    out.into_owned()
}

/// Program that writes archives, compiled once.
pub(crate) fn writer() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("otf2-archive-{}", std::process::id()));
        let flags = words("otf2-config", &["--cflags", "--ldflags", "--libs"]);
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/otf2/archive.c");
        let arguments = [
            &["-o", program.to_str().unwrap(), source],
            &*flags.split_whitespace().collect::<Vec<_>>(),
        ];
        words("cc", &arguments.concat());
        program
    })
}

/// Temporary folder, which is deleted when it is dropped.
pub(crate) struct ArchiveFolder(pub(crate) PathBuf);

impl ArchiveFolder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("otf2-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes an archive in the folder. Returns its anchor file.
    pub(crate) fn archive(&self, ticks: u64, rounds: u32, variant: &str) -> PathBuf {
        let folder = self.0.join(variant);
        let (ticks, rounds) = (ticks.to_string(), rounds.to_string());
        words(
            writer().to_str().unwrap(),
            &[folder.to_str().unwrap(), &ticks, &rounds, variant],
        );
        folder.join("traces.otf2")
    }
}

impl Drop for ArchiveFolder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Event in the output of `otf2-print`: time in ticks, kind, and the rest.
pub(crate) type PrintedEvent = (i64, String, String);

/// Output of `otf2-print` for each location.
pub(crate) fn shown(anchor: &Path) -> BTreeMap<u64, Vec<PrintedEvent>> {
    let mut events: BTreeMap<u64, Vec<PrintedEvent>> = BTreeMap::new();
    for line in words("otf2-print", &[anchor.to_str().unwrap()]).lines() {
        let mut columns = line.split_whitespace();
        let (Some(what), Some(location), Some(time)) =
            (columns.next(), columns.next(), columns.next())
        else {
            continue;
        };
        let (Ok(location), Ok(time)) = (location.parse(), time.parse()) else {
            continue;
        };
        events
            .entry(location)
            .or_default()
            .push((time, what.to_owned(), columns.collect()));
    }
    events
}

/// Returns true for events that belong to a trace.
pub(crate) fn in_trace(event: &&PrintedEvent) -> bool {
    event.1 != "ATTRIBUTES"
}

pub(crate) fn nanos(times: &[Timestamp<Global>]) -> Vec<i64> {
    times.iter().map(|time| time.as_nanos()).collect()
}

pub(crate) fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    found
}
