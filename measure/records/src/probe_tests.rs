//! Records with probes.

use downbeat_files::Checksums;
use downbeat_files::testing::Folder;

use super::hostile::{body, read_csv};
use super::{
    CallTimes, Factors, GroupKey, Journal, Launch, MeasuredGroup, ObservationState, Observations,
    PROBES, Probe, RecordFormat, RoundTrips, read_launch,
};

/// A record of version 3, as every later one must read it.
const PROBED: &str = "# downbeat launch 3
# factor probes = round trips
operation,bytes,ranks,call,state,nanos
# crc32 65a94055
# probe 0 within=158
a,8,2,0,valid,375
a,8,2,2,valid,381.25
# probe 3 within=161.5 between=1900
a,8,2,3,valid,380
# probe 4 within=160
# end a,8,2 valid=3 late=1 long=0 drifted=0
# crc32 c2873e03
# complete
# crc32 4553adcb
";

fn probe(before: usize, nanos: f64) -> Probe {
    let round_trips = RoundTrips {
        within: Some(nanos),
        between: (before == 3).then_some(1_900.0),
    };
    Probe {
        before,
        round_trips,
    }
}

fn key() -> GroupKey {
    GroupKey {
        operation: "a".to_owned(),
        bytes: 8,
        ranks: 2,
    }
}

/// Four calls, of which the second is late, and probes before the first, before the fourth and behind all.
fn observations() -> Observations {
    use ObservationState::{Late, Valid};
    let times = CallTimes::Means(vec![375.0, 9_000.0, 381.25, 380.0]);
    let found = Observations::new(1, vec![Valid, Late, Valid, Valid], times).unwrap();
    found.with_probes(vec![probe(0, 158.0), probe(3, 161.5), probe(4, 160.0)])
}

fn factors() -> Factors {
    Factors::default().with(PROBES, &"round trips")
}

fn append(journal: &mut Journal, observations: &Observations) -> Result<(), String> {
    let group = MeasuredGroup {
        key: key(),
        nanos: vec![],
        probes: vec![],
        counts: vec![],
        figures: vec![],
    };
    let appended = journal.append(&group, observations);
    appended.map_err(|why| why.to_string())
}

fn recorded(folder: &Folder, format: RecordFormat, raw: bool) -> Launch {
    let none = Factors::default();
    let mut journal = Journal::open(&folder.0, "a", format, raw, &factors(), &none).unwrap();
    append(&mut journal, &observations()).unwrap();
    journal.complete().unwrap();
    read_launch(&folder.file(&format!("a.{format}")), Checksums::Verify).unwrap()
}

#[test]
fn probes_are_recorded_in_every_format() {
    for format in RecordFormat::ALL {
        for raw in [false, true] {
            let found = recorded(&Folder::new(), *format, raw);
            // By the indices of the valid ones.
            let expected = [0, 2, 3];
            let made = observations();
            let expected = made.probes().iter().zip(expected);
            let expected: Vec<Probe> = expected
                .map(|(probe, before)| Probe { before, ..*probe })
                .collect();
            assert_eq!(found.groups[0].probes, expected, "{format}, {raw}");
            assert_eq!(found.groups[0].nanos, [375.0, 381.25, 380.0]);
            assert_eq!(observations().probes_of_run_times(), expected);
        }
    }
}

#[test]
fn a_record_with_probes_is_read() {
    let folder = Folder::new();
    let found = recorded(&folder, RecordFormat::Csv, false);
    let text = std::fs::read_to_string(folder.file("a.csv")).unwrap();
    assert_eq!(text, PROBED);
    assert_eq!(read_csv(PROBED).unwrap(), found);
}

#[test]
fn probes_need_their_factor() {
    let folder = Folder::new();
    let none = Factors::default();
    let mut journal =
        Journal::open(&folder.0, "a", RecordFormat::Csv, false, &none, &none).unwrap();
    assert_eq!(
        append(&mut journal, &observations()).unwrap_err(),
        "a, 8 bytes, 2 ranks: it has probes, which the factor \"probes\" of the launch must state"
    );
    append(&mut journal, &observations().with_probes(vec![])).unwrap();
}

#[test]
fn invalid_probes_are_refused() {
    let of_rows = |probe: &str| {
        body(&format!(
            "a,8,4,0,valid,1\na,8,4,5,valid,1\n# probe {probe}\n"
        ))
    };
    for (probe, why) in [
        ("6 within=NaN", "\"within=NaN\" is not a valid round trip"),
        (
            "6 between=1 within=2",
            "\"within=2\" is not a valid round trip",
        ),
        ("6 1", "\"1\" is not a valid round trip"),
        ("6 ", "\"\" is not a valid round trip"),
        ("-1 within=1", "\"-1\" is not a valid number of a call"),
        ("5 within=1", "the probe before call 5 comes after call 5"),
    ] {
        assert_eq!(of_rows(probe), format!("line 7: {why}"));
    }
    let unfinished = "# probe 0 within=1\n# fact a = b\n";
    assert_eq!(
        body(unfinished),
        "line 6: a group begins with a probe, and has not ended"
    );
    for (probes, why) in [
        (
            vec![probe(3, 1.0), probe(2, 1.0)],
            "the probe before call 2 comes after one before call 3",
        ),
        (
            vec![probe(0, f64::NAN)],
            "the probe before call 0 found NaN ns",
        ),
    ] {
        let folder = Folder::new();
        let none = Factors::default();
        let mut journal =
            Journal::open(&folder.0, "a", RecordFormat::Csv, false, &factors(), &none).unwrap();
        let refused = append(&mut journal, &observations().with_probes(probes)).unwrap_err();
        assert_eq!(refused, format!("a, 8 bytes, 2 ranks: {why}"));
    }
}
