//! Writing the record of a launch.

use std::fs;
use std::path::{Path, PathBuf};

use downbeat_files::{Checksums, create_folder};

use super::append_file::AppendFile;
use super::content::{Keep, LaunchContent, check_names};
use super::error::RecordFlaw;
use super::experiment::{check_factors, check_launch_name, launch_files, read, read_binding};
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
        create_folder(dir)?;
        let files = LaunchFiles { dir, name, format };
        check_folder(&files, factors)?;
        if let Some(done) = files.finished(factors)? {
            return Ok(done);
        }
        let main = AppendFile::open(&files.running_path())?;
        main.lock()?;
        // Another process may have completed and removed the file while this one opened it.
        if let Some(done) = files.finished(factors)? {
            return Ok(done);
        }
        match csv::read(&main.file, Keep::Valid, Checksums::Verify) {
            Err(RecordFlaw::NoHeader(_)) => Self::begin(&files, main, raw, factors, facts),
            Err(flaw) => Err(flaw.in_file(&main.path)),
            // Nothing is lost, and it may have been begun elsewhere or with other settings.
            Ok(found) if !found.launch.binds() => Self::begin(&files, main, raw, factors, facts),
            Ok(found) => {
                check_factors(&main.path, &found.launch.factors, None, factors)?;
                files.check_settings(&found.launch.facts, raw)?;
                Self::resume(&files, main, found, raw, facts)
            }
        }
    }

    fn resume(
        files: &LaunchFiles<'_>,
        main: AppendFile,
        LaunchContent { launch, end, .. }: LaunchContent,
        raw: bool,
        facts: &Factors,
    ) -> Result<Self, RecordError> {
        let groups: Vec<_> = launch.groups.into_iter().map(|group| group.key).collect();
        if launch.complete {
            // A previous program did not.
            finish(files.format, &main.path)?;
            return Ok(Self::new(files.format, None, None, groups));
        }
        let raw = match raw {
            true => {
                let plan = RawPlan::new(files.name, &groups, String::new());
                Some(RawJournal::open(files.dir, &plan, 0)?)
            }
            false => None,
        };
        Ok(Self {
            later_facts: numbered(&launch.facts, facts),
            ..Self::new(files.format, Some(AppendFile { end, ..main }), raw, groups)
        })
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
        let header = csv::header(factors, &facts, csv::COLUMNS);
        main.append(header.into_bytes())?;
        Ok(Self::new(files.format, Some(main), raw, vec![]))
    }

    /// Journal with these files, which are `None` if the record is complete.
    fn new(
        format: RecordFormat,
        main: Option<AppendFile>,
        raw: Option<RawJournal>,
        groups: Vec<GroupKey>,
    ) -> Self {
        Self {
            format,
            ended: main.is_none(),
            main,
            raw,
            groups,
            later_facts: Factors::default(),
            final_facts: Factors::default(),
        }
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

    /// Returns the writer of the times of the ranks of this node, if they are wanted. Add the
    /// times of a group before [appending](Self::append) it. Appending also ends the group in
    /// the file of these times.
    pub fn raw(&mut self) -> Option<&mut RawJournal> {
        self.raw.as_mut()
    }

    /// Writes a group: the run-times of the observations, and the figures and counts of `group`.
    /// Its own run-times are ignored; missing counts are those of the observations. Without times of the ranks that were [added](Self::raw), the
    /// observations are those of rank 0.
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
        if self.ended {
            return Err(group_error("the record is complete".to_owned()));
        }
        if self.groups.contains(&group.key) {
            return Err(group_error("it is in the record already".to_owned()));
        }
        let mut piece = csv::facts_lines(&self.later_facts);
        csv::write_group(&mut piece, group, observations, self.raw.is_some())
            .map_err(group_error)?;
        if let Some(raw) = &mut self.raw {
            if !raw.has_begun(&group.key) {
                raw.add(&group.key, 0, &[(0, observations.clone())])?;
            }
            raw.finish_group(&group.key)?;
        }
        self.write(piece.into_bytes())?;
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
            let end = csv::facts_lines(&self.final_facts) + csv::COMPLETE + "\n";
            if let Some(raw) = &mut self.raw {
                raw.complete()?;
            }
            self.write(end.into_bytes())?;
            self.ended = true;
        }
        if let Some(main) = &self.main {
            finish(self.format, &main.path)?;
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

    /// Path of the file while the launch runs.
    fn running_path(&self) -> PathBuf {
        self.file(RecordFormat::Csv.name())
    }

    fn becomes_parquet(&self) -> bool {
        self.format != RecordFormat::Csv
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
            .find(|end| **end != RecordFormat::Csv.name() && self.file(end).exists());
        let Some(end) = other else { return Ok(None) };
        let path = self.file(end);
        let kind = RecordFormat::from_path(&path)?;
        if kind != self.format {
            return Err(RecordError::content(
                &path,
                format!("this launch was begun in the format {end}"),
            ));
        }
        let Launch {
            factors: found,
            groups,
            ..
        } = read(&path, Keep::Valid, Checksums::Verify)?.launch;
        check_factors(&path, &found, None, factors)?;
        // Left by a program that ended after it wrote the Parquet file.
        let _ = fs::remove_file(self.running_path());
        let groups = groups.into_iter().map(|group| group.key).collect();
        Ok(Some(Journal::new(self.format, None, None, groups)))
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

/// Converts a complete record to its final format.
#[cfg_attr(
    not(feature = "parquet"),
    expect(unused_variables, reason = "only Parquet replaces a file")
)]
fn finish(format: RecordFormat, path: &Path) -> Result<(), RecordError> {
    match format {
        RecordFormat::Csv => Ok(()),
        #[cfg(feature = "parquet")]
        RecordFormat::Parquet => super::parquet::replace(path),
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
