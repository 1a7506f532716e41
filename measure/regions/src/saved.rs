//! Reports as JSON files.

use std::path::Path;

use downbeat_clock_core::Duration;
use downbeat_clock_core::histogram::DecimalBin;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::name;
use super::ranks::{RankRun, RankSet};
use super::report::{EventReport, ProfileReport, RegionReport};
use super::setup::Overhead;
use downbeat_files::checksum::{MISSING_CHECKSUM, PLACEHOLDER, WRONG_CHECKSUM, is_sound, seal};
use downbeat_files::{Checksums, FileError, NewFile};

const SCHEMA: &str = "downbeat.regions";
/// Version of files, whose last member is their checksum.
const VERSION: u32 = 1;

/// Content of a file; regions are borrowed when it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedReport<R> {
    schema: String,
    version: u32,
    ranks: u32,
    clock: String,
    tick_nanos: i64,
    overhead: Overhead,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
    regions: Vec<R>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
}

/// Fields that identify the format, read first.
#[derive(Deserialize)]
struct ReportSchema {
    schema: String,
    version: u32,
    checksum: Option<String>,
}

/// As written by [`ProfileReport::save`], but without a checksum; regions are in the order of listings.
impl Serialize for ProfileReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.with_checksum(None).serialize(serializer)
    }
}

impl ProfileReport {
    fn with_checksum(&self, checksum: Option<String>) -> SavedReport<&RegionReport> {
        SavedReport {
            schema: SCHEMA.to_owned(),
            version: VERSION,
            ranks: self.ranks,
            clock: self.clock.clone(),
            tick_nanos: self.tick.as_nanos(),
            overhead: self.overhead,
            warning: self.warning.clone(),
            regions: self.regions(),
            checksum,
        }
    }

    /// Writes the report to a file, which is replaced only when all is written. To be called on one
    /// rank.
    ///
    /// # Errors
    /// If the file cannot be written; the old file is still there then.
    pub fn save(&self, path: &Path) -> Result<(), FileError> {
        let text = serde_json::to_vec(&self.with_checksum(Some(PLACEHOLDER.to_owned())));
        let mut text = text.map_err(|why| FileError::io(path)(why.into()))?;
        text.push(b'\n');
        seal(&mut text);
        NewFile::replace(path, text)
    }

    /// Reads a saved report. A file that was edited by hand needs [`Checksums::Ignore`].
    ///
    /// # Errors
    /// If the file cannot be read, or is not a valid report.
    pub fn load(path: &Path, checksums: Checksums) -> Result<Self, FileError> {
        Self::from_json(&downbeat_files::read(path)?, checksums)
            .map_err(|why| FileError::content(path, why))
    }

    fn from_json(bytes: &[u8], checksums: Checksums) -> Result<Self, String> {
        let no_report = |_| {
            format!("this is not a report of regions, which begins with {{\"schema\":\"{SCHEMA}\"")
        };
        match serde_json::from_slice(bytes) {
            Ok(ReportSchema { schema, .. }) if schema != SCHEMA => return Err(no_report(())),
            Ok(ReportSchema { version, .. }) if version != VERSION => {
                return Err(format!("version {version} is not supported"));
            }
            Ok(_) if checksums == Checksums::Ignore || is_sound(bytes) => {}
            Ok(ReportSchema { checksum: None, .. }) => return Err(MISSING_CHECKSUM.to_owned()),
            Ok(_) => return Err(WRONG_CHECKSUM.to_owned()),
            // Reports an incomplete file as such.
            Err(why) if why.is_eof() && !bytes.is_empty() => return Err(why.to_string()),
            Err(_) => return Err(no_report(())),
        }
        let read: SavedReport<RegionReport> =
            serde_json::from_slice(bytes).map_err(|why| why.to_string())?;
        let mut regions = read.regions;
        regions.sort_by(|a, b| a.name.cmp(&b.name));
        let report = Self {
            ranks: read.ranks,
            clock: read.clock,
            tick: Duration::from_nanos(read.tick_nanos),
            overhead: read.overhead,
            warning: read.warning,
            regions,
        };
        report.check()?;
        Ok(report)
    }

    /// Checks conditions that the types do not ensure.
    fn check(&self) -> Result<(), String> {
        let unless = |sound: bool, why: &str| if sound { Ok(()) } else { Err(why.to_owned()) };
        unless(self.ranks > 0, "there are no ranks")?;
        unless(self.tick > Duration::ZERO, "the tick is not positive")?;
        unless(
            name::recorded(&self.clock) == self.clock,
            "the name of the clock is invalid",
        )?;
        let warning = self.warning.as_deref().unwrap_or_default();
        unless(
            !warning.contains(char::is_control),
            "the warning has control characters",
        )?;
        for region in &self.regions {
            let called = name::recorded(&region.name);
            unless(
                called == region.name,
                &format!("invalid name of a region: \"{}\"", called.escape_debug()),
            )?;
            region
                .check(self.ranks)
                .map_err(|why| format!("region \"{called}\": {why}"))?;
        }
        let twice = self
            .regions
            .windows(2)
            .find(|pair| pair[0].name == pair[1].name);
        twice.map_or(Ok(()), |pair| {
            Err(format!("there is a second region \"{}\"", pair[0].name))
        })
    }
}

impl RegionReport {
    fn check(&self, ranks: u32) -> Result<(), &'static str> {
        if self.remarked.is_some_and(|rank| rank >= ranks) {
            return Err("it names a rank that does not exist");
        }
        if self.paths.iter().any(|path| path.own_rank >= ranks) {
            return Err("one of its paths names a rank that does not exist");
        }
        if !self.paths.is_sorted_by(|a, b| a.callers < b.callers) {
            return Err("its paths are not in order");
        }
        let mut callers = self.paths.iter().flat_map(|path| &path.callers);
        if callers.any(|caller| name::recorded(caller) != *caller) {
            return Err("one of its paths has an invalid name");
        }
        self.events
            .as_ref()
            .map_or(Ok(()), |events| events.check(ranks))
    }
}

impl EventReport {
    fn check(&self, ranks: u32) -> Result<(), &'static str> {
        let is_set = |set: &RankSet| {
            RankSet::from_parts(set.runs().to_vec(), set.len(), ranks).is_some() && !set.is_empty()
        };
        let bins = self.groups.iter().flat_map(|group| &group.bins);
        let named = bins.flat_map(|counts| [counts.most.rank, counts.least.rank]);
        // A copy, as the ranks are returned as mutable references.
        let mut copy = self.clone();
        if copy
            .named_ranks()
            .map(|rank| *rank)
            .chain(named)
            .any(|rank| rank >= ranks)
        {
            return Err("it names a rank that does not exist");
        }
        if !is_set(&self.ranks) || self.groups.iter().any(|group| !is_set(&group.ranks)) {
            return Err("its set of ranks is invalid");
        }
        if !self.groups.is_sorted_by(|a, b| a.fullest > b.fullest) {
            return Err("its groups are not in order");
        }
        if self
            .groups
            .iter()
            .any(|group| group.bins.is_empty() || !group.bins.is_sorted_by(|a, b| a.bin < b.bin))
        {
            return Err("the bins of a group are not in order");
        }
        if self.count == 0 {
            Err("it has events, but their number is 0")
        } else {
            Ok(())
        }
    }
}

/// Serializes a bin as its smallest number.
pub(super) mod bin {
    use super::{DecimalBin, Deserialize, Deserializer, Serializer};
    use serde::de::Error as _;

    pub(crate) fn serialize<S: Serializer>(
        bin: &DecimalBin,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(bin.low())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<DecimalBin, D::Error> {
        let low = u64::deserialize(deserializer)?;
        let bin = DecimalBin::containing(low);
        if bin.low() == low {
            Ok(bin)
        } else {
            Err(D::Error::custom(format!("no bin begins with {low}")))
        }
    }
}

/// Runs as `[first, count, stride]`, and the number of ranks.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonRanks {
    count: u32,
    runs: Vec<[u32; 3]>,
}

impl Serialize for RankSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let runs = self
            .runs()
            .iter()
            .map(|run| [run.first, run.count, run.stride])
            .collect();
        JsonRanks {
            count: self.len(),
            runs,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RankSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let JsonRanks { count, runs } = JsonRanks::deserialize(deserializer)?;
        let runs = runs
            .into_iter()
            .map(|[first, count, stride]| RankRun {
                first,
                count,
                stride,
            })
            .collect();
        Self::from_parts(runs, count, u32::MAX)
            .ok_or_else(|| D::Error::custom("this is not a valid list of ranks"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Profile, RegionProfile, ReportRemarks, ThreadEvent};
    use downbeat_clock_core::region::RegionEvent;
    use downbeat_files::testing::{TemporaryFolder, is_noticed};
    use std::fs;

    fn report() -> ProfileReport {
        let event = |length, number| {
            Some(ThreadEvent {
                event: RegionEvent { length, number },
                thread: 0,
            })
        };
        let solve = RegionProfile {
            threads: 1,
            events: 3,
            total: u64::MAX,
            longest: event(6_000, 1),
            shortest: event(7, 2),
            bins: vec![
                (DecimalBin::containing(7), 2),
                (DecimalBin::containing(6_000), 1),
            ],
            remarks: ReportRemarks {
                recursions: 1,
                ..ReportRemarks::default()
            },
            ..RegionProfile::new("solve \"it\"")
        };
        let idle = RegionProfile {
            remarks: solve.remarks,
            ..RegionProfile::new("idle")
        };
        let report_of = |regions| {
            ProfileReport::new(&Profile::new(
                "clock",
                Duration::from_nanos(1),
                Overhead::default(),
                regions,
            ))
        };
        report_of(vec![solve.clone(), idle])
            .merge(report_of(vec![solve]))
            .unwrap()
    }

    fn json(report: &ProfileReport) -> String {
        serde_json::to_string(report).unwrap()
    }

    #[test]
    fn saved_reports_are_loaded() {
        let path =
            std::env::temp_dir().join(format!("downbeat-regions-{}.json", std::process::id()));
        let report = report();
        report.save(&path).unwrap();
        report.save(&path).unwrap();
        assert_eq!(
            ProfileReport::load(&path, Checksums::Verify).unwrap(),
            report
        );
        fs::remove_file(&path).unwrap();
        let why = ProfileReport::load(&path, Checksums::Verify)
            .unwrap_err()
            .to_string();
        assert!(why.starts_with(&path.display().to_string()), "{why}");
        assert!(
            report
                .save(Path::new("/no/such/folder/report.json"))
                .is_err()
        );
        assert_eq!(
            json(&report)
                .matches(r#""total":36893488147419103230"#)
                .count(),
            1,
            "totals may need 128 bits"
        );
    }

    #[test]
    fn every_change_of_a_saved_report_is_noticed() {
        let (_folder, path) = TemporaryFolder::with_file("a.json", b"");
        report().save(&path).unwrap();
        let saved = fs::read(&path).unwrap();
        is_noticed(&saved, |damaged| {
            ProfileReport::from_json(damaged, Checksums::Verify).is_err()
        });
        let edited = String::from_utf8(saved).unwrap();
        let edited = edited.replace("\"tick_nanos\":1", "\"tick_nanos\":2");
        assert_eq!(
            ProfileReport::from_json(edited.as_bytes(), Checksums::Verify).unwrap_err(),
            WRONG_CHECKSUM
        );
        let found = ProfileReport::from_json(edited.as_bytes(), Checksums::Ignore).unwrap();
        assert_eq!(found.tick, Duration::from_nanos(2));
    }

    /// What an earlier program wrote called itself version 1, too; so do reports that are serialized
    /// by other means.
    #[test]
    fn a_report_without_a_checksum_is_refused() {
        let text = json(&report());
        let why = ProfileReport::from_json(text.as_bytes(), Checksums::Verify).unwrap_err();
        assert_eq!(why, MISSING_CHECKSUM);
        let read = ProfileReport::from_json(text.as_bytes(), Checksums::Ignore).unwrap();
        assert_eq!(read, report());
    }

    /// A report of a stencil code on three ranks.
    #[test]
    fn a_written_file_is_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        let report =
            ProfileReport::load(&folder.join("version-1.json"), Checksums::Verify).unwrap();
        assert_eq!(report.ranks, 3);
        let relax = report.region("relax").unwrap();
        assert_eq!(relax.paths.len(), 1);
        let events = relax.events.as_ref().unwrap();
        assert_eq!(events.count, 300);
        assert!(events.greatest_thread.is_some());
    }

    #[test]
    fn the_json_format_is_stable() {
        let text = json(&report());
        assert!(
            text.starts_with(
                r#"{"schema":"downbeat.regions","version":1,"ranks":2,"clock":"clock","tick_nanos":1,"overhead":{"#
            ),
            "{text}"
        );
        assert!(
            text.contains(r#""ranks":{"count":2,"runs":[[0,2,1]]}"#),
            "{text}"
        );
        let bin =
            r#"{"bin":6000,"most":{"count":1,"rank":0},"least":{"count":1,"rank":0},"sum":2}"#;
        assert!(text.contains(bin), "{text}");
    }

    #[test]
    fn errors_name_the_position_and_the_reason() {
        let text = json(&report());
        let error = |from: &str, to: &str| {
            assert!(text.contains(from), "{from} in {text}");
            ProfileReport::from_json(text.replacen(from, to, 1).as_bytes(), Checksums::Ignore)
                .unwrap_err()
        };
        assert_eq!(
            error("\"version\":1", "\"version\":4"),
            "version 4 is not supported"
        );
        let none =
            "this is not a report of regions, which begins with {\"schema\":\"downbeat.regions\"";
        assert_eq!(error("downbeat.regions", "downbeat.launch"), none);
        for text in ["", "x", "[]", "{}", "null"] {
            assert_eq!(
                ProfileReport::from_json(text.as_bytes(), Checksums::Ignore).unwrap_err(),
                none,
                "{text}"
            );
        }
        assert!(
            ProfileReport::from_json(&text.as_bytes()[..text.len() / 2], Checksums::Ignore)
                .unwrap_err()
                .starts_with("EOF")
        );
        assert_eq!(error("\"ranks\":2", "\"ranks\":0"), "there are no ranks");
        assert_eq!(
            error("\"tick_nanos\":1", "\"tick_nanos\":-1"),
            "the tick is not positive"
        );
        assert_eq!(
            error("\"name\":\"idle\"", "\"name\":\"\\u001b[2J\""),
            "invalid name of a region: \"\\\\u{1b}[2J\""
        );
        assert_eq!(
            error("\"name\":\"idle\"", "\"name\":\"solve \\\"it\\\"\""),
            "there is a second region \"solve \"it\"\""
        );
        assert!(error("\"rank\":0", "\"rank\":2").ends_with("it names a rank that does not exist"));
        assert!(error("[[0,2,1]]", "[[0,3,1]]").contains("this is not a valid list of ranks"));
        assert!(error("\"bin\":6000", "\"bin\":6001").contains("no bin begins with 6001"));
        assert!(error("\"sum\":2", "\"sum\":-2").contains("invalid value"));
        assert!(error("\"clock\"", "\"clocks\"").contains("unknown field"));
        assert!(
            ProfileReport::from_json("[".repeat(100_000).as_bytes(), Checksums::Ignore).is_err()
        );
    }
}
