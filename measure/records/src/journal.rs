//! What a launch writes while it measures.

use std::fs;
use std::path::{Path, PathBuf};

use super::append_file::AppendFile;
use super::content::{Keep, check_names, to_write};
use super::error::RecordFlaw;
use super::experiment::{check_factors, launch_files, read, read_header, read_open};
use super::format::ENDS;
use super::{RecordError, RecordFormat, csv, raw};
use crate::{Factors, GroupKey, Launch, MeasuredGroup, Observations};

/// The record of a launch while it measures: a new one, or one that an earlier launch did not complete.
///
/// One process of a launch has it; for as long as it does, no other can open it.
#[derive(Debug)]
pub struct Journal {
    format: RecordFormat,
    /// `None` when there is nothing left to do.
    main: Option<AppendFile>,
    raw: Option<AppendFile>,
    groups: Vec<GroupKey>,
    /// The facts of a continuation. They are written with its first group, since without one they mean nothing.
    later_facts: Factors,
    /// Whether the last line is written.
    ended: bool,
}

impl Journal {
    /// Begins the record `NAME` in a folder, which is made if it is not there; or goes on with one that is not complete.
    /// With `raw`, also observations that do not count are kept, and what each rank saw of all of them is written to
    /// `NAME.raw.csv`.
    ///
    /// # Errors
    /// When the record was begun with other factors, in another format, or otherwise as to `raw`; when the folder has
    /// launches with other factors; when another process writes it; when a file cannot be written, or is damaged; or
    /// when a name could not be read again.
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
        let main = AppendFile::open(&files.written())?;
        main.lock()?;
        // Another process may have finished it while this one opened what that one removed.
        if let Some(done) = files.finished(factors)? {
            return Ok(done);
        }
        match read_open(&main.file, files.text(), Keep::Valid) {
            Err(RecordFlaw::NoHeader(_)) => Self::begin(&files, main, raw, factors, facts),
            Err(flaw) => Err(flaw.in_file(&main.path)),
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
                let raw = if raw {
                    Some(continued_raw(&files, &groups)?)
                } else {
                    None
                };
                let later_facts = numbered(&found.launch.facts, facts);
                Ok(Self {
                    format,
                    main: Some(main),
                    raw,
                    groups,
                    later_facts,
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
        let facts = files.marked(facts);
        // Before the head of the record, so that a record that has one tells whether this is there, too.
        let raw = if raw {
            let mut raw = AppendFile::open(&files.raw())?;
            raw.append(csv::head(factors, &facts, raw::COLUMNS).as_bytes())?;
            Some(raw)
        } else {
            // One without a record says nothing.
            let _ = fs::remove_file(files.raw());
            None
        };
        let head = match files.text() {
            #[cfg(feature = "json")]
            RecordFormat::JsonLines => super::json::head(factors, &facts),
            _ => csv::head(factors, &facts, csv::COLUMNS),
        };
        main.append(head.as_bytes())?;
        let format = files.format;
        Ok(Self {
            format,
            main: Some(main),
            raw,
            groups: vec![],
            later_facts: Factors::default(),
            ended: false,
        })
    }

    /// Whether all that was to be measured is there, so that nothing is left to do.
    pub fn is_complete(&self) -> bool {
        self.main.is_none()
    }

    /// What is there already.
    pub fn groups(&self) -> &[GroupKey] {
        &self.groups
    }

    /// Writes a group: the run-times of the observations, and what was made of them. The group's own run-times are not
    /// looked at; counts of it that are missing are those of the observations.
    ///
    /// # Errors
    /// When it is there already or could not be read again, or when it cannot be written; what was written before
    /// stays readable.
    pub fn append(
        &mut self,
        group: &MeasuredGroup,
        seen: &Observations,
    ) -> Result<(), RecordError> {
        let of_group = |why: String| RecordError::unwritable(format!("{}: {why}", group.key));
        let main = self.main.as_ref().filter(|_| !self.ended);
        let main = main.ok_or_else(|| of_group("the record is complete".to_owned()))?;
        if self.groups.contains(&group.key) {
            return Err(of_group("it is in the record already".to_owned()));
        }
        let (summary, rows) = to_write(group, seen, self.raw.is_some()).map_err(of_group)?;
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
                let facts = self
                    .later_facts
                    .iter()
                    .map(|(name, value)| csv::named("fact", name, value));
                piece.extend(facts.collect::<String>().bytes());
                csv::write_group(&mut piece, &summary, &rows)
            }
        };
        written.map_err(RecordError::io(&main.path))?;
        let mut of_raw = vec![];
        if let Some(raw) = &self.raw {
            raw::write_group(&mut of_raw, &summary, seen).map_err(RecordError::io(&raw.path))?;
        }
        self.write(&piece, &of_raw)?;
        self.groups.push(group.key.clone());
        self.later_facts = Factors::default();
        Ok(())
    }

    /// Says that all that was to be measured is there. A second time changes nothing.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn complete(&mut self) -> Result<(), RecordError> {
        if self.is_complete() {
            return Ok(());
        }
        if !self.ended {
            let line = format!("{}\n", csv::COMPLETE);
            match self.format {
                #[cfg(feature = "json")]
                RecordFormat::JsonLines => self.write(
                    format!("{}\n", super::json::COMPLETE).as_bytes(),
                    line.as_bytes(),
                )?,
                _ => self.write(line.as_bytes(), line.as_bytes())?,
            }
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

    /// Adds a piece to the raw file, where there is one, and one to the record.
    fn write(&mut self, to_main: &[u8], to_raw: &[u8]) -> Result<(), RecordError> {
        let end_of_raw = self.raw.as_ref().map(|raw| raw.end);
        if let Some(raw) = &mut self.raw {
            raw.append(to_raw)?;
        }
        let written = self
            .main
            .as_mut()
            .map_or(Ok(()), |main| main.append(to_main));
        if let (Err(_), Some(raw), Some(end)) = (&written, &mut self.raw, end_of_raw) {
            // The record decides what is there.
            raw.end = end;
        }
        written
    }

    /// That of a record to which nothing can be added.
    fn done(format: RecordFormat, groups: Vec<GroupKey>) -> Self {
        Self {
            format,
            main: None,
            raw: None,
            groups,
            later_facts: Factors::default(),
            ended: true,
        }
    }
}

/// The files of a launch.
struct LaunchFiles<'a> {
    dir: &'a Path,
    name: &'a str,
    format: RecordFormat,
}

/// The fact that tells a record that is to become Parquet from one that is to stay as it is.
const BECOMES: (&str, &str) = ("record becomes", "parquet");

impl LaunchFiles<'_> {
    fn file(&self, end: &str) -> PathBuf {
        self.dir.join(format!("{}.{end}", self.name))
    }

    fn raw(&self) -> PathBuf {
        self.file("raw.csv")
    }

    /// The format while it is written.
    fn text(&self) -> RecordFormat {
        match self.format {
            #[cfg(feature = "parquet")]
            RecordFormat::Parquet => RecordFormat::Csv,
            format => format,
        }
    }

    /// The file that is written.
    fn written(&self) -> PathBuf {
        self.file(self.text().name())
    }

    #[cfg(feature = "parquet")]
    fn becomes_parquet(&self) -> bool {
        self.format == RecordFormat::Parquet
    }

    #[cfg(not(feature = "parquet"))]
    fn becomes_parquet(&self) -> bool {
        false
    }

    /// The facts of a new record.
    fn marked(&self, facts: &Factors) -> Factors {
        if self.becomes_parquet() {
            facts.clone().with(BECOMES.0, &BECOMES.1)
        } else {
            facts.clone()
        }
    }

    /// The journal of a record that is there, and that nothing can be added to. Refuses one in another format.
    fn finished(&self, factors: &Factors) -> Result<Option<Journal>, RecordError> {
        let other = ENDS
            .iter()
            .find(|end| **end != self.text().name() && self.file(end).exists());
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
        } = read(&path, self.format, Keep::Valid)?.launch;
        check_factors(&path, &found, None, factors)?;
        // Left by a program that ended between making the one and removing the other.
        let _ = fs::remove_file(self.written());
        let groups = groups.into_iter().map(|group| group.key).collect();
        Ok(Some(Journal::done(self.format, groups)))
    }

    /// Does what was left to do when all was written.
    fn finish(&self) -> Result<(), RecordError> {
        #[cfg(feature = "parquet")]
        if self.becomes_parquet() {
            return super::parquet::replace(&self.written());
        }
        Ok(())
    }

    /// Refuses to go on otherwise than it was begun.
    fn check_settings(&self, facts: &Factors, raw: bool) -> Result<(), RecordError> {
        let begun = |how: &str| {
            Err(RecordError::content(
                &self.written(),
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

/// Refuses a folder of another experiment. One launch speaks for all, since each was looked at in this way.
fn check_folder(files: &LaunchFiles<'_>, factors: &Factors) -> Result<(), RecordError> {
    let launches = launch_files(files.dir).unwrap_or_default();
    let mut others = launches.iter().filter(|(name, _)| name != files.name);
    // One that cannot be read is not this launch's problem.
    let head = others.find_map(|(_, file)| Some((file, read_header(file).ok()?.0)));
    head.map_or(Ok(()), |(file, of_file)| {
        check_factors(file, &of_file, None, factors)
    })
}

/// The raw file of a record that goes on: it may have a group more.
fn continued_raw(files: &LaunchFiles<'_>, groups: &[GroupKey]) -> Result<AppendFile, RecordError> {
    let raw = AppendFile::open(&files.raw())?;
    let end = raw::end_of(&raw.file, groups).map_err(|flaw| flaw.in_file(&raw.path))?;
    Ok(AppendFile { end, ..raw })
}

/// Facts of the second, third... launch of the same name.
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

fn check_launch_name(name: &str) -> Result<(), String> {
    let odd = |c: char| c == '/' || c == '\\' || c.is_control();
    if name.is_empty() || name.starts_with('.') || name.ends_with(".raw") || name.contains(odd) {
        return Err(format!(
            "\"{}\" is no name of a launch",
            name.escape_debug()
        ));
    }
    Ok(())
}
