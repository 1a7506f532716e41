//! Writing the record of a launch.

use std::fs;
use std::path::{Path, PathBuf};

use downbeat_files::{ChecksumLine, Checksums};

use super::append_file::AppendFile;
use super::content::{Keep, check_names, to_write};
use super::error::RecordFlaw;
use super::experiment::{
    check_factors, check_launch_name, launch_files, read, read_binding, read_open,
};
use super::format::ENDS;
use super::raw::{self, RawJournal, RawPlan};
use super::{RecordError, RecordFormat, csv};
use crate::{Factors, GroupKey, Launch, MeasuredGroup, Observations};

/// Writer of the record of a launch: a new record, or the continuation of an incomplete one.
///
/// One process of the launch has it. Until it is dropped, no other process can open the same
/// record.
#[derive(Debug)]
pub struct Journal {
    format: RecordFormat,
    /// `None` if the record is complete.
    main: Option<AppendFile>,
    raw: Option<RawJournal>,
    groups: Vec<GroupKey>,
    /// Facts of a continuation. They are written with its first group, as they say nothing without
    /// one.
    later_facts: Factors,
    /// Facts that are written with the end.
    final_facts: Factors,
    /// True if the last line is written.
    ended: bool,
}

impl Journal {
    /// Begins the record `NAME` in a folder, which is created if necessary, or continues an
    /// incomplete one, unless it has no group yet: then it is begun again. With `raw`, invalid observations are kept, too, and the
    /// timestamps of the ranks are written to `NAME.raw.csv`; those of ranks on other nodes by a [`RawJournal`] there, to which this one
    /// gives its [plan](Self::raw_plan).
    ///
    /// # Errors
    /// If the record was begun with other factors, in another format or with another value of
    /// `raw`; if the folder has launches with other factors; if another process writes the record;
    /// if a file cannot be written or is damaged; or if a name cannot be stored.
    pub fn open(
        dir: &Path,
        name: &str,
        format: RecordFormat,
        raw: bool,
        factors: &Factors,
        facts: &Factors,
    ) -> Result<Self, RecordError> {
        let names = check_launch_name(name)
            .and_then(|()| check_names(factors))
            .and_then(|()| check_names(facts));
        names.map_err(RecordError::unwritable)?;
        fs::create_dir_all(dir).map_err(RecordError::io(dir))?;
        let files = LaunchFiles { dir, name, format };
        check_folder(&files, factors)?;
        if let Some(done) = files.finished(factors)? {
            return Ok(done);
        }
        let main = AppendFile::open(&files.running_path(), files.checksum())?;
        main.lock()?;
        // Another process may have completed and removed the file while this one opened it.
        if let Some(done) = files.finished(factors)? {
            return Ok(done);
        }
        let found = read_open(
            &main.file,
            files.running_format(),
            Keep::Valid,
            Checksums::Verify,
        );
        match found {
            Err(RecordFlaw::NoHeader(_)) => Self::begin(&files, main, raw, factors, facts),
            Err(flaw) => Err(flaw.in_file(&main.path)),
            // Nothing is lost, and it may have been begun elsewhere or with other settings.
            Ok(found) if !found.launch.binds() => Self::begin(&files, main, raw, factors, facts),
            Ok(found) => {
                check_factors(&main.path, &found.launch.factors, None, factors)?;
                files.check_settings(&found.launch.facts, raw)?;
                let groups = found
                    .launch
                    .groups
                    .into_iter()
                    .map(|group| group.key)
                    .collect();
                let main = AppendFile {
                    end: found.end,
                    ..main
                };
                if found.launch.complete {
                    files.finish()?;
                    return Ok(Self::done(format, groups));
                }
                let raw = match raw {
                    true => {
                        let plan = RawPlan::new(name, &groups, String::new());
                        Some(RawJournal::open(dir, &plan, 0)?)
                    }
                    false => None,
                };
                let later_facts = numbered(&found.launch.facts, facts);
                Ok(Self {
                    format,
                    main: Some(main),
                    raw,
                    groups,
                    later_facts,
                    final_facts: Factors::default(),
                    ended: false,
                })
            }
        }
    }

    fn begin(
        files: &LaunchFiles<'_>,
        mut main: AppendFile,
        raw: bool,
        factors: &Factors,
        facts: &Factors,
    ) -> Result<Self, RecordError> {
        let facts = files.initial_facts(facts);
        // Before the header of the record, so that a record with a header always has its raw file.
        let raw = if raw {
            let header = csv::header(factors, &facts, raw::COLUMNS);
            let plan = RawPlan::new(files.name, &[], header);
            Some(RawJournal::open(files.dir, &plan, 0)?)
        } else {
            // Remove a raw file without a record.
            let _ = fs::remove_file(files.raw());
            None
        };
        let header = match files.running_format() {
            #[cfg(feature = "json")]
            RecordFormat::JsonLines => super::json::header(factors, &facts),
            _ => csv::header(factors, &facts, csv::COLUMNS),
        };
        main.append(header.into_bytes())?;
        let format = files.format;
        Ok(Self {
            format,
            main: Some(main),
            raw,
            groups: vec![],
            later_facts: Factors::default(),
            final_facts: Factors::default(),
            ended: false,
        })
    }

    /// Returns true if the record is complete, so that nothing is left to measure.
    pub fn is_complete(&self) -> bool {
        self.main.is_none()
    }

    /// Keys of the groups in the record.
    pub fn groups(&self) -> &[GroupKey] {
        &self.groups
    }

    /// Returns the plan by which the times of ranks on other nodes are written, if they are wanted and the record is not complete.
    pub fn raw_plan(&self) -> Option<&RawPlan> {
        self.raw.as_ref().map(RawJournal::plan)
    }

    /// Adds timestamps of the next calls of a group, the first of which is call `first`, on these ranks, before the group is
    /// [appended](Self::append). Without raw observations, does nothing.
    ///
    /// # Errors
    /// If the times are not those of as many ranks, or the file cannot be written.
    pub fn add_times(
        &mut self,
        key: &GroupKey,
        ranks: &[u32],
        first: usize,
        observations: &Observations,
    ) -> Result<(), RecordError> {
        let raw = self.raw.as_mut();
        raw.map_or(Ok(()), |raw| raw.add(key, ranks, first, observations))
    }

    /// Writes a group: the run-times of the observations, and the figures and counts of `group`.
    /// Its own run-times are ignored; missing counts are those of the observations. Timestamps are those of the observations, unless
    /// others were [added](Self::add_times).
    ///
    /// # Errors
    /// If the record has the group already, or the group cannot be stored or written; the groups
    /// before it stay readable.
    pub fn append(
        &mut self,
        group: &MeasuredGroup,
        observations: &Observations,
    ) -> Result<(), RecordError> {
        let group_error = |why: String| RecordError::unwritable(format!("{}: {why}", group.key));
        let main = self.main.as_ref().filter(|_| !self.ended);
        let main = main.ok_or_else(|| group_error("the record is complete".to_owned()))?;
        if self.groups.contains(&group.key) {
            return Err(group_error("it is in the record already".to_owned()));
        }
        let (summary, rows) =
            to_write(group, observations, self.raw.is_some()).map_err(group_error)?;
        let mut piece = vec![];
        let written = match self.format {
            #[cfg(feature = "json")]
            RecordFormat::JsonLines => super::json::write_group(
                &mut piece,
                &self.later_facts,
                &summary,
                &rows,
                self.raw.is_some(),
            ),
            _ => {
                piece.extend(csv::facts_lines(&self.later_facts).bytes());
                csv::write_group(&mut piece, &summary, &rows)
            }
        };
        written.map_err(RecordError::io(&main.path))?;
        if let Some(raw) = &mut self.raw {
            if !raw.has_begun(&group.key) {
                let ranks: Vec<u32> = (0..observations.ranks() as u32).collect();
                raw.add(&group.key, &ranks, 0, observations)?;
            }
            raw.end(&group.key)?;
        }
        self.write(piece)?;
        self.groups.push(group.key.clone());
        self.later_facts = Factors::default();
        Ok(())
    }

    /// Adds a fact of this launch, which is written with the next group.
    pub fn add_fact(&mut self, name: &str, value: &str) {
        self.later_facts = core::mem::take(&mut self.later_facts).with(name, &value);
    }

    /// Adds a fact of this launch, which is written with the end of the record: of an interrupted launch, another process may find out
    /// something else.
    pub fn add_final_fact(&mut self, name: &str, value: &str) {
        self.final_facts = core::mem::take(&mut self.final_facts).with(name, &value);
    }

    /// Marks the record as complete. Does nothing if it is complete already.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn complete(&mut self) -> Result<(), RecordError> {
        if self.is_complete() {
            return Ok(());
        }
        if !self.ended {
            let line = |text: &str| format!("{text}\n").into_bytes();
            let facts = &self.final_facts;
            let (facts, complete) = match self.format {
                #[cfg(feature = "json")]
                RecordFormat::JsonLines => (super::json::facts_line(facts), super::json::COMPLETE),
                _ => (csv::facts_lines(facts), csv::COMPLETE),
            };
            let end = [facts.into_bytes(), line(complete)].concat();
            if let Some(raw) = &mut self.raw {
                raw.complete()?;
            }
            self.write(end)?;
            self.ended = true;
        }
        #[cfg(feature = "parquet")]
        if let (RecordFormat::Parquet, Some(main)) = (self.format, &self.main) {
            super::parquet::replace(&main.path)?;
        }
        self.main = None;
        self.raw = None;
        Ok(())
    }

    /// Appends to the record what the raw file, if there is one, has by now.
    fn write(&mut self, piece: Vec<u8>) -> Result<(), RecordError> {
        let main = self.main.as_mut();
        let written = main.map_or(Ok(()), |main| main.append(piece));
        if let (Err(_), Some(raw)) = (&written, &mut self.raw) {
            // It must not have more than the record.
            raw.cut();
        }
        written
    }

    /// Journal of a complete record.
    fn done(format: RecordFormat, groups: Vec<GroupKey>) -> Self {
        Self {
            format,
            main: None,
            raw: None,
            groups,
            later_facts: Factors::default(),
            final_facts: Factors::default(),
            ended: true,
        }
    }
}

/// Files of a launch.
struct LaunchFiles<'a> {
    dir: &'a Path,
    name: &'a str,
    format: RecordFormat,
}

/// The fact that marks a CSV record that will be replaced by Parquet.
const BECOMES: (&str, &str) = ("record becomes", "parquet");

impl LaunchFiles<'_> {
    fn file(&self, end: &str) -> PathBuf {
        self.dir.join(format!("{}.{end}", self.name))
    }

    fn raw(&self) -> PathBuf {
        raw::path(self.dir, self.name, 0)
    }

    /// Format of the file while the launch runs.
    fn running_format(&self) -> RecordFormat {
        match self.format {
            #[cfg(feature = "parquet")]
            RecordFormat::Parquet => RecordFormat::Csv,
            format => format,
        }
    }

    /// Line of checksums of the file while the launch runs.
    fn checksum(&self) -> ChecksumLine {
        match self.running_format() {
            #[cfg(feature = "json")]
            RecordFormat::JsonLines => super::json::CHECKSUM,
            _ => csv::CHECKSUM,
        }
    }

    /// Path of the file while the launch runs.
    fn running_path(&self) -> PathBuf {
        self.file(self.running_format().name())
    }

    #[cfg(feature = "parquet")]
    fn becomes_parquet(&self) -> bool {
        self.format == RecordFormat::Parquet
    }

    #[cfg(not(feature = "parquet"))]
    fn becomes_parquet(&self) -> bool {
        false
    }

    /// Facts of a new record.
    fn initial_facts(&self, facts: &Factors) -> Factors {
        if self.becomes_parquet() {
            facts.clone().with(BECOMES.0, &BECOMES.1)
        } else {
            facts.clone()
        }
    }

    /// Journal of a record that is complete and in its final format. Rejects a record in another
    /// format.
    fn finished(&self, factors: &Factors) -> Result<Option<Journal>, RecordError> {
        let other = ENDS
            .iter()
            .find(|end| **end != self.running_format().name() && self.file(end).exists());
        let Some(end) = other else { return Ok(None) };
        let path = self.file(end);
        if *end != self.format.name() {
            return Err(RecordError::content(
                &path,
                format!("this launch was begun in the format {end}"),
            ));
        }
        let Launch {
            factors: found,
            groups,
            ..
        } = read(&path, self.format, Keep::Valid, Checksums::Verify)?.launch;
        check_factors(&path, &found, None, factors)?;
        // Left by a program that ended after it wrote the Parquet file.
        let _ = fs::remove_file(self.running_path());
        let groups = groups.into_iter().map(|group| group.key).collect();
        Ok(Some(Journal::done(self.format, groups)))
    }

    /// Converts a complete record to its final format, if a previous program did not.
    fn finish(&self) -> Result<(), RecordError> {
        #[cfg(feature = "parquet")]
        if self.becomes_parquet() {
            return super::parquet::replace(&self.running_path());
        }
        Ok(())
    }

    /// Checks that format and `raw` are those that the record was begun with.
    fn check_settings(&self, facts: &Factors, raw: bool) -> Result<(), RecordError> {
        let begun = |how: &str| {
            Err(RecordError::content(
                &self.running_path(),
                format!("this launch was begun {how}"),
            ))
        };
        match (facts.get(BECOMES.0).is_some(), self.becomes_parquet()) {
            (true, false) => return begun("in the format parquet"),
            (false, true) => return begun("in the format csv"),
            _ => {}
        }
        match (self.raw().exists(), raw) {
            (true, false) => begun("with raw observations"),
            (false, true) => begun("without raw observations"),
            _ => Ok(()),
        }
    }
}

/// Checks that the folder belongs to the same experiment. Comparing with one launch is enough, as
/// each launch was checked.
fn check_folder(files: &LaunchFiles<'_>, factors: &Factors) -> Result<(), RecordError> {
    let launches = launch_files(files.dir).unwrap_or_default();
    let mut others = launches.iter().filter(|(name, _)| name != files.name);
    // A launch that is unreadable or without a group does not prevent a new one.
    let found =
        others.find_map(|(_, file)| Some((file, read_binding(file, Checksums::Verify).ok()??)));
    found.map_or(Ok(()), |(file, launch)| {
        check_factors(file, &launch.factors, None, factors)
    })
}

/// Appends a number to the names of facts: that of the second, third... run of the launch.
fn numbered(known: &Factors, facts: &Factors) -> Factors {
    let taken = |number: &u32| {
        known
            .iter()
            .any(|(name, _)| name.ends_with(&format!(" ({number})")))
    };
    let number = (2..).find(|number| !taken(number)).unwrap_or(u32::MAX);
    facts.iter().fold(Factors::default(), |all, (name, value)| {
        all.with(&format!("{name} ({number})"), &value)
    })
}
