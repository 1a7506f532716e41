//! Tests of all formats.

use crate::analysis::{Analysis, AnalysisSettings};
use std::fs;
use std::path::{Path, PathBuf};

use downbeat_files::Checksums;
use downbeat_files::testing::{TemporaryFolder, is_noticed};
use proptest::prelude::*;

use super::*;
use crate::{
    Factors, GroupKey, Launch, MeasuredGroup, Observation, ObservationState, Observations,
};

fn factors() -> Factors {
    Factors::default()
        .with("program", &"downbeat-mpi 0.1.0")
        .with("ranks", &2)
        .with("flags", &"-O3 = \"é\", fast")
        .with("none", &"")
}

fn facts() -> Factors {
    Factors::default().with("seed", &123)
}

fn key(i: usize) -> GroupKey {
    GroupKey {
        operation: ["allreduce", "bcast/own", "i-barrier"][i % 3].to_owned(),
        bytes: 8 << (i / 3),
        ranks: 2,
    }
}

pub(super) type MeasuredGroups = Vec<(MeasuredGroup, Observations)>;

fn group(i: usize, observations: Observations, figures: &[f64]) -> (MeasuredGroup, Observations) {
    let counts = ObservationState::ALL
        .map(|state| (state, observations.count(state) as u64))
        .to_vec();
    let figures = (0..)
        .zip(figures)
        .map(|(i, value)| (format!("figure{i}"), *value))
        .collect();
    (
        MeasuredGroup {
            key: key(i),
            nanos: observations.run_times(),
            counts,
            figures,
        },
        observations,
    )
}

fn finite() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>().prop_filter("finite", |x| x.is_finite()),
        (-1_000_000_000..1_000_000_000_i64).prop_map(|x| x as f64 / 8.0)
    ]
}

fn observations() -> impl Strategy<Value = Observations> {
    let state = prop_oneof![4 => Just(ObservationState::Valid), 1 => Just(ObservationState::Late), 1 => Just(ObservationState::Long), 1 => Just(ObservationState::Drifted)];
    let call = (state, finite(), any::<i32>(), any::<u16>());
    (proptest::collection::vec(call, 0..12), any::<bool>()).prop_map(|(calls, global)| {
        let observe = |(state, mean, start, length): (_, f64, i32, u16)| Observation {
            state,
            begin: if global { start.into() } else { 0 },
            nanos: if global { length.into() } else { mean },
        };
        Observations(calls.into_iter().map(observe).collect())
    })
}

fn measured() -> impl Strategy<Value = MeasuredGroups> {
    let groups = proptest::collection::vec(
        (observations(), proptest::collection::vec(finite(), 0..3)),
        0..5,
    );
    groups.prop_map(|groups| {
        groups
            .into_iter()
            .enumerate()
            .map(|(i, (observations, figures))| group(i, observations, &figures))
            .collect()
    })
}

fn open(dir: &Path, format: RecordFormat, raw: bool) -> Result<Journal, RecordError> {
    Journal::open(dir, "one", format, raw, &factors(), &facts())
}

/// Appends the groups that the record does not have yet.
fn continue_journal(journal: &mut Journal, measured: &[(MeasuredGroup, Observations)]) {
    for (group, observations) in measured {
        if !journal.groups().contains(&group.key) {
            journal.append(group, observations).unwrap();
        }
    }
}

fn write_all(dir: &Path, format: RecordFormat, raw: bool, measured: &MeasuredGroups) {
    let mut journal = open(dir, format, raw).unwrap();
    continue_journal(&mut journal, measured);
    journal.complete().unwrap();
}

fn file_of(folder: &TemporaryFolder, format: RecordFormat) -> PathBuf {
    folder.file(&format!("one.{format}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn written_records_are_read(measured in measured(), raw in any::<bool>()) {
        for format in RecordFormat::ALL {
            let folder = TemporaryFolder::new();
            write_all(&folder.0, *format, raw, &measured);
            let path = file_of(&folder, *format);
            let found = read_launch(&path, Checksums::Verify).unwrap();
            prop_assert_eq!(&found.factors, &factors());
            prop_assert_eq!(found.facts.get("seed"), Some("123"));
            prop_assert!(found.complete && is_complete(&path).unwrap());
            prop_assert_eq!(&found.groups, &measured.iter().map(|(group, _)| group.clone()).collect::<Vec<_>>());
            prop_assert_eq!(&read_header(&path, Checksums::Verify).unwrap(), &(found.factors.clone(), found.facts.clone()));
            prop_assert_eq!(read_experiment(&folder.0, Checksums::Verify).unwrap().launches, [("one".to_owned(), found)]);
            let again = open(&folder.0, *format, raw).unwrap();
            prop_assert!(again.is_complete() && again.groups().len() == measured.len());
        }
    }

    /// A reader finds an error, or the groups before the cut; a writer continues from there, with
    /// the same result.
    #[test]
    fn a_truncated_file_continues_after_its_last_group(measured in measured(), raw in any::<bool>(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 5)) {
        let format = RecordFormat::Csv;
        let folder = TemporaryFolder::new();
        write_all(&folder.0, format, raw, &measured);
        let (path, raw_path) = (file_of(&folder, format), folder.file("one.raw.csv"));
        let whole = fs::read(&path).unwrap();
        let whole_raw = fs::read(&raw_path).unwrap_or_default();
        let uninterrupted = read_launch(&path, Checksums::Verify).unwrap();
        for cut in &cuts {
            let cut = cut.index(whole.len());
            fs::write(&path, &whole[..cut]).unwrap();
            let mut journal = Journal::open(&folder.0, "one", format, raw, &factors(), &Factors::default()).unwrap();
            if let Ok(found) = read_launch(&path, Checksums::Verify) {
                prop_assert_eq!(found.groups.len(), journal.groups().len());
            }
            // A file without a complete header was begun again, with its own facts.
            let begun_again = read_header(&path, Checksums::Verify).unwrap().1.get("seed").is_none();
            continue_journal(&mut journal, &measured);
            journal.complete().unwrap();
            prop_assert_eq!(fs::read(&raw_path).unwrap_or_default() == whole_raw, !(begun_again && raw));
            prop_assert!(begun_again || fs::read(&path).unwrap() == whole);
            prop_assert_eq!(read_launch(&path, Checksums::Verify).unwrap().groups, uninterrupted.groups.clone());
            fs::write(&raw_path, &whole_raw).unwrap();
            if !raw { fs::remove_file(&raw_path).unwrap(); }
        }
    }
}

fn three_groups() -> MeasuredGroups {
    let observations = |means: &[f64]| {
        let mut all = Observations::of_durations(means);
        for late in all.0.iter_mut().skip(1).take(1) {
            late.state = ObservationState::Late;
        }
        all
    };
    vec![
        group(0, observations(&[375.0, 1e9, 381.25]), &[378.125, 375.0]),
        group(1, observations(&[]), &[]),
        group(5, observations(&[-1.5]), &[-1.5]),
    ]
}

#[test]
fn facts_are_added_with_groups_and_with_the_end() {
    for format in RecordFormat::ALL {
        let folder = TemporaryFolder::new();
        let mut journal = open(&folder.0, *format, false).unwrap();
        journal.add_fact("calls", "12");
        continue_journal(&mut journal, &three_groups());
        journal.add_fact("of the next group", "which does not come");
        journal.add_final_fact("failure of a", "no card, \"here\"");
        journal.add_final_fact("failure of b", "1");
        journal.complete().unwrap();
        let path = file_of(&folder, *format);
        let found = read_launch(&path, Checksums::Verify).unwrap();
        let names = ["calls", "of the next group", "failure of a", "failure of b"];
        let expected = [Some("12"), None, Some("no card, \"here\""), Some("1")];
        assert_eq!(
            names.map(|name| found.facts.get(name)),
            expected,
            "{format}"
        );
        assert!(found.complete && found.groups.len() == 3);
        assert!(open(&folder.0, *format, false).unwrap().is_complete());
    }
}

#[test]
fn a_file_cut_anywhere_is_an_error_or_the_groups_before_the_cut() {
    let format = RecordFormat::Csv;
    for raw in [false, true] {
        let folder = TemporaryFolder::new();
        let measured = three_groups();
        let mut journal = open(&folder.0, format, raw).unwrap();
        let path = file_of(&folder, format);
        let length = || fs::metadata(&path).unwrap().len() as usize;
        let mut ends = vec![length()];
        for (group, observations) in &measured {
            journal.append(group, observations).unwrap();
            ends.push(length());
        }
        journal.complete().unwrap();
        let whole = fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let before = ends.iter().filter(|end| **end <= cut).count();
            match read_launch(&path, Checksums::Verify) {
                Ok(found) => {
                    assert!(!found.complete && before > 0);
                    let expected: Vec<MeasuredGroup> = measured[..before - 1]
                        .iter()
                        .map(|(group, _)| group.clone())
                        .collect();
                    assert_eq!(found.groups, expected, "{format}, {cut} bytes");
                }
                Err(why) => {
                    assert_eq!(before, 0, "{format}, {cut} bytes: {why}");
                    assert!(
                        why.to_string()
                            .starts_with(&format!("{}: line ", path.display())),
                        "{why}"
                    );
                }
            }
            assert!(!is_complete(&path).unwrap());
        }
    }
}

/// Every change is an error, except one that makes the end of an incomplete record look cut off.
#[test]
fn every_change_of_a_record_is_noticed() {
    let format = RecordFormat::Csv;
    let folder = TemporaryFolder::new();
    write_all(&folder.0, format, true, &three_groups());
    let path = file_of(&folder, format);
    let whole = fs::read(&path).unwrap();
    is_noticed(&whole, |damaged| {
        fs::write(&path, damaged).unwrap();
        read_launch(&path, Checksums::Verify).is_err()
    });
    // A continuation reads the raw file.
    let last_line = whole[..whole.len() - 1]
        .iter()
        .rposition(|byte| *byte == b'\n');
    fs::write(&path, &whole[..=last_line.unwrap()]).unwrap();
    let raw = folder.file("one.raw.csv");
    let whole = fs::read(&raw).unwrap();
    let groups = three_groups();
    let keys: Vec<GroupKey> = groups.into_iter().map(|(group, _)| group.key).collect();
    let shared_end = |bytes: &[u8]| raw::shared_end(bytes, &keys).map(|end| end.bytes);
    let end = shared_end(&whole).unwrap_or_default() as usize;
    is_noticed(&whole[..end], |damaged| shared_end(damaged).is_err());
}

#[test]
fn facts_of_continuations_are_numbered() {
    let format = RecordFormat::Csv;
    let folder = TemporaryFolder::new();
    let measured = three_groups();
    for (group, observations) in &measured {
        let mut journal = open(&folder.0, format, false).unwrap();
        assert!(!journal.is_complete());
        // A run that measured nothing leaves nothing, or only a header that the next one replaces.
        drop(journal);
        journal = open(&folder.0, format, false).unwrap();
        journal.append(group, observations).unwrap();
    }
    let Launch {
        facts,
        groups,
        complete,
        ..
    } = read_launch(&file_of(&folder, format), Checksums::Verify).unwrap();
    let names: Vec<&str> = facts.iter().map(|(name, _)| name).collect();
    assert_eq!(
        (names, groups.len(), complete),
        (vec!["seed", "seed (2)", "seed (3)"], 3, false)
    );
}

#[test]
fn a_record_without_a_group_binds_nothing() {
    let format = RecordFormat::Csv;
    let folder = TemporaryFolder::new();
    let begin = |name: &str, ranks: u32, raw: bool| {
        let factors = Factors::default().with("ranks", &ranks);
        Journal::open(&folder.0, name, format, raw, &factors, &facts())
    };
    drop(begin("one", 4, true).unwrap());
    drop(begin("two", 5, false).unwrap());
    let read = || read_experiment(&folder.0, Checksums::Verify).unwrap();
    assert_eq!(read().launches.len(), 2);

    // It is begun again, with other factors and without raw observations.
    let (group, observations) = &three_groups()[0];
    let mut journal = begin("one", 8, false).unwrap();
    journal.append(group, observations).unwrap();
    assert!(!folder.file("one.raw.csv").exists());
    let mut journal = begin("two", 8, false).unwrap();
    let before = read();
    assert_eq!(before.factors().get("ranks"), Some("8"));
    journal.append(group, observations).unwrap();
    drop(journal);
    let launches = read().launches;
    assert!(launches.iter().all(
            |(_, launch)| launch.factors.get("ranks") == Some("8") && launch.groups.len() == 1
        ));
    let analysis = Analysis::new(&before.launches, &AnalysisSettings::default());
    assert_eq!(analysis.unwrap().factors.get("ranks"), Some("8"));

    // From now on the others must agree.
    assert!(begin("three", 4, false).is_err());
}

#[test]
fn a_launch_continues_only_with_the_same_settings() {
    for format in RecordFormat::ALL {
        let folder = TemporaryFolder::new();
        let path = folder.file("one.csv");
        let message =
            |error: Result<Journal, RecordError>| error.map(|_| ()).unwrap_err().to_string();
        let mut journal = open(&folder.0, *format, true).unwrap();
        // Only one journal at a time can be open.
        assert_eq!(
            message(open(&folder.0, *format, true)),
            format!("{}: another process is writing it", path.display())
        );
        journal
            .append(&three_groups()[0].0, &three_groups()[0].1)
            .unwrap();
        drop(journal);
        let other = factors().with("mpi", &"MPICH");
        let error = message(Journal::open(
            &folder.0,
            "one",
            *format,
            true,
            &other,
            &facts(),
        ));
        let path = path.display();
        assert_eq!(
            error,
            format!(
                "{path}: the factor \"mpi\" is none here, but \"MPICH\" in the launch to be measured now"
            )
        );
        let error = message(Journal::open(
            &folder.0,
            "two",
            *format,
            true,
            &other,
            &facts(),
        ));
        assert_eq!(
            error,
            format!(
                "{path}: the factor \"mpi\" is none here, but \"MPICH\" in the launch to be measured now"
            )
        );
        assert_eq!(
            message(open(&folder.0, *format, false)),
            format!("{path}: this launch was begun with raw observations")
        );
        for other in RecordFormat::ALL.iter().filter(|other| *other != format) {
            let begun = format!("this launch was begun in the format {format}");
            assert_eq!(
                message(open(&folder.0, *other, true)),
                format!("{path}: {begun}"),
                "{other}"
            );
        }
    }
}
