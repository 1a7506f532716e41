//! Golden tests: the figures of White 2007.

use downbeat_clock_core::Duration;
use downbeat_clock_core::histogram::DecimalBin;
use downbeat_clock_core::region::RegionEvent;

use super::TextOptions;
use crate::groups::RankCount;
use crate::profile::{Profile, RegionProfile, ReportRemarks, ThreadEvent};
use crate::report::{EventReport, ProfileReport, RankEvent, RankTotal, RegionReport};
use crate::setup::Overhead;

const MILLISECOND: Duration = Duration::from_millis(1);

/// A region with these numbers of events in bins.
fn region(name: &str, bins: &[(u64, u64)]) -> RegionProfile {
    let mut bins: Vec<_> = bins
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(at, n)| (DecimalBin::containing(*at), *n))
        .collect();
    bins.sort_unstable();
    let event = |length, number| {
        Some(ThreadEvent {
            event: RegionEvent { length, number },
            thread: 0,
        })
    };
    RegionProfile {
        threads: 1,
        events: bins.iter().map(|(_, count)| count).sum(),
        longest: event(9, 1),
        shortest: event(1, 2),
        bins,
        ..RegionProfile::new(name)
    }
}

/// Report of a number of ranks, each with one region.
fn report(ranks: u32, region_of: impl Fn(u32) -> RegionProfile) -> ProfileReport {
    let rank_report = |rank| {
        ProfileReport::new(&Profile::new(
            "clock",
            MILLISECOND,
            Overhead::default(),
            vec![region_of(rank)],
        ))
    };
    (1..ranks).fold(rank_report(0), |all, rank| {
        all.merge(rank_report(rank)).unwrap()
    })
}

/// The text without statistics, which the figures of histograms omit.
fn histograms(report: &ProfileReport) -> String {
    let text = report.text(&TextOptions::default());
    text.split_once("event histogram")
        .map(|(_, rest)| format!("event histogram{rest}"))
        .unwrap_or_default()
}

/// Parses a list of ranks as written in the paper.
fn listed(list: &str) -> Vec<u32> {
    let runs = list.split(',').map(|run| {
        run.trim()
            .split_once('-')
            .unwrap_or((run.trim(), run.trim()))
    });
    runs.flat_map(|(first, last)| first.parse::<u32>().unwrap()..=last.parse().unwrap())
        .collect()
}

#[test]
fn figures_1_and_2() {
    let total = |total, rank| RankTotal {
        total,
        events: 128,
        rank,
    };
    let event = |length, number, rank| RankEvent {
        length,
        rank,
        thread: 0,
        number,
    };
    let barotropic = EventReport {
        ranks: (0..360).collect(),
        most: RankCount {
            count: 128,
            rank: 0,
        },
        fewest: RankCount {
            count: 128,
            rank: 0,
        },
        count: 46_080,
        longest: event(6_262, 1, 359),
        second_longest: Some(event(6_210, 2, 359)),
        shortest: event(465, 103, 286),
        longest_average: total(5_942 * 128, 359),
        shortest_average: total(549 * 128, 286),
        greatest_total: total(760_647, 270),
        least_total: total(70_280, 285),
        total: 65_493_795,
        threads: 1,
        all_threads: 360,
        greatest_thread: None,
        least_thread: None,
        by_thread: vec![],
        groups: vec![],
    };
    let with = |name: &str, max, min, average: u128| RegionReport {
        name: name.to_owned(),
        remarks: ReportRemarks::default(),
        remarked: None,
        events: Some(EventReport {
            greatest_total: total(max, 270),
            least_total: total(min, 285),
            total: average,
            ..barotropic.clone()
        }),
        paths: vec![],
    };
    let report = ProfileReport {
        ranks: 360,
        clock: "clock".to_owned(),
        tick: MILLISECOND,
        overhead: Overhead {
            within_picos: 9_212,
            whole_picos: 18_628,
            subtracted: false,
        },
        warning: None,
        regions: vec![
            with("baroclinic_driver", 697_030, 6_820, 570_620 * 360),
            with("barotropic_driver", 760_647, 70_280, 65_493_795),
            with("pcg_chrongear iteration", 760_490, 68_890, 179_520 * 360),
            with("pcg_chrongear preconditioning", 4_690, 0, 3_560 * 360),
            with("step", 841_110, 841_080, 841_090 * 360),
        ],
    };
    let text = report.text(&TextOptions {
        most_details: 2,
        ..TextOptions::default()
    });
    let expected = "\
*** profile for 360 tasks ***
 max total, s |  min total, s |  avg total, s | events | timer
--------------|---------------|---------------|--------|----
       841.11 |        841.08 |        841.09 |    128 | step
       760.64 |         70.28 |        181.92 |    128 | barotropic_driver
       760.49 |         68.89 |        179.52 |    128 | pcg_chrongear iteration
       697.03 |          6.82 |        570.62 |    128 | baroclinic_driver
         4.69 |          0.00 |          3.56 |    128 | pcg_chrongear preconditioning

events: most of a task; a tick is 1.000 ms; clock: clock
own overhead: 9.2 ns in each event, not subtracted; 18.6 ns for who encloses it
";
    assert!(text.starts_with(expected), "{text}");
    let expected = "
*** barotropic_driver
tasks: 0-359
events per task: 128 max, 128 min, 128 avg (360 tasks)
  longest event:       6.262 sec (6262 ticks), task 359, event 1
  max 2nd longest:     6.210 sec (6210 ticks), task 359, event 2
  shortest event:      0.465 sec (465 ticks), task 286, event 103
  longest avg event:   5.942 sec (5942 ticks), task 359, 128 event(s)
  shortest avg event:  0.549 sec (549 ticks), task 286, 128 event(s)
  avg event:           1.421 sec (1421 ticks), 46080 event(s)
  max total:           760.647 sec (760647 ticks), task 270, 128 event(s)
  min total:           70.280 sec (70280 ticks), task 285, 128 event(s)
  avg total:           181.927 sec (181927 ticks), 360 tasks
  aggregate total:     65493.795 sec (65493795 ticks)

(3 more in the profile only)
";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn figure_3() {
    let longest = "0,2-4,13-22,25,27,31-44,47-53,55-62,65-71,74-80,84-89,91-96,\
        102-107,109-114,121-124,127-132,138-141,145-151,155-159,163-169,172-178,180,182-184,\
        193-202,205,207,211-224,227-233,235-242,245-251,254-260,264-269,271-276,282-287,289-294,\
        301-304,307-312,318-321,325-331,335-339,343-349,352-358";
    let long = "23-24,45-46,54,63-64,72-73,81-83,90,97-101,108,115-120,\
        125-126,133-137,142-144,152-154,160-162,170-171,179,181,185-192,206,208-210";
    let (in_longest, in_long) = (listed(longest), listed(long));
    let found = histograms(&report(360, |rank| {
        let bins: &[(u64, u64)] = match rank {
            rank if in_longest.contains(&rank) => &[(6_000, 1), (5_000, 127)],
            45 => &[(6_000, 1), (5_000, 1), (4_000, 126)],
            rank if in_long.contains(&rank) => &[(6_000, 1), (4_000, 127)],
            1 => &[(6_000, 1), (7, 75), (6, 52)],
            6 => &[(6_000, 1), (7, 69), (6, 58)],
            11 => &[(6_000, 1), (7, 75), (6, 52)],
            5 => &[(6_000, 1), (7, 57), (6, 70)],
            204 => &[(6_000, 1), (6, 122), (5, 5)],
            262 => &[(6_000, 1), (6, 127)],
            _ => &[(6_000, 1), (7, 6), (6, 121)],
        };
        region("baroclinic_driver", bins)
    }));
    let expected = "\
event histogram for tasks: 0,2-4,13-22,25,27,31-44,47-53,55-62,65-71,74-80,84-89,91-96,
102-107,109-114,121-124,127-132,138-141,145-151,155-159,163-169,172-178,180,182-184,
193-202,205,207,211-224,227-233,235-242,245-251,254-260,264-269,271-276,282-287,289-294,
301-304,307-312,318-321,325-331,335-339,343-349,352-358
6000-6999 ticks:   1 max (task   0),   1 min (task   0),   1 avg
5000-5999 ticks: 127 max (task   0), 127 min (task   0), 127 avg

event histogram for tasks: 23-24,45-46,54,63-64,72-73,81-83,90,97-101,108,115-120,
125-126,133-137,142-144,152-154,160-162,170-171,179,181,185-192,206,208-210
6000-6999 ticks:   1 max (task  23),   1 min (task  23),   1 avg
5000-5999 ticks:   1 max (task  45),   0 min (task  23),   0 avg
4000-4999 ticks: 127 max (task  23), 126 min (task  45), 126 avg

event histogram for tasks: 1,6,11
6000-6999 ticks:  1 max (task   1),  1 min (task   1),  1 avg
7 tick(s): 75 max (task   1), 69 min (task   6), 73 avg
6 tick(s): 58 max (task   6), 52 min (task   1), 54 avg

event histogram for tasks: 5,7-10,12,26,28-30,203-204,225-226,234,243-244,252-253,";
    assert!(found.starts_with(expected), "{found}");
    let last = found.rsplit_once("\n\n").map_or("", |(_, last)| last);
    for line in [
        "6000-6999 ticks:   1 max (task   5),   1 min (task   5),   1 avg",
        "7 tick(s):  57 max (task   5),   0 min (task 204),   6 avg",
        "6 tick(s): 127 max (task 262),  70 min (task   5), 120 avg",
        "5 tick(s):   5 max (task 204),   0 min (task   5),   0 avg",
    ] {
        assert!(last.contains(line), "{line}\n{last}");
    }
}

/// Ranks without work are a group of their own.
#[test]
fn figures_4_and_5() {
    let ocean = |bin| region("baroclinic_driver", &[(6_000, 1), (bin, 127)]);
    let figure_4 = histograms(&report(360, |rank| match rank {
        123..=179 => ocean(4_000),
        0..=302 => ocean(5_000),
        303 => region("baroclinic_driver", &[(6_000, 1), (6, 126), (5, 1)]),
        309 => region("baroclinic_driver", &[(6_000, 1), (6, 127)]),
        340 => region("baroclinic_driver", &[(6_000, 1), (7, 9), (6, 118)]),
        _ => region("baroclinic_driver", &[(6_000, 1), (7, 4), (6, 123)]),
    }));
    let expected = "\
event histogram for tasks: 0-122,180-302
6000-6999 ticks:   1 max (task   0),   1 min (task   0),   1 avg
5000-5999 ticks: 127 max (task   0), 127 min (task   0), 127 avg

event histogram for tasks: 123-179
6000-6999 ticks:   1 max (task 123),   1 min (task 123),   1 avg
4000-4999 ticks: 127 max (task 123), 127 min (task 123), 127 avg

event histogram for tasks: 303-359
6000-6999 ticks:   1 max (task 303),   1 min (task 303),   1 avg
7 tick(s):   9 max (task 340),   0 min (task 303),   3 avg
6 tick(s): 127 max (task 309), 118 min (task 340), 123 avg
5 tick(s):   1 max (task 303),   0 min (task 304),   0 avg
";
    assert_eq!(figure_4, expected);

    let figure_5 = histograms(&report(304, |rank| match rank {
        151 => ocean(4_000),
        303 => region("baroclinic_driver", &[(6_000, 1), (7, 6), (6, 121)]),
        _ => ocean(5_000),
    }));
    let expected = "\
event histogram for tasks: 0-150,152-302
6000-6999 ticks:   1 max (task   0),   1 min (task   0),   1 avg
5000-5999 ticks: 127 max (task   0), 127 min (task   0), 127 avg

event histogram for task: 151
6000-6999 ticks:   1 max (task 151),   1 min (task 151),   1 avg
4000-4999 ticks: 127 max (task 151), 127 min (task 151), 127 avg

event histogram for task: 303
6000-6999 ticks:   1 max (task 303),   1 min (task 303),   1 avg
7 tick(s):   6 max (task 303),   6 min (task 303),   6 avg
6 tick(s): 121 max (task 303), 121 min (task 303), 121 avg
";
    assert_eq!(figure_5, expected);
}

/// Five histograms of 4,500 ranks, of which two have long lists.
#[test]
fn figures_6_and_7() {
    let oceans = "12-16,56-66,85-92,131-143,150-151,160-168,206-232,235-245,283-307,310-323,327-328,356-383,385-406,\
        412-414,429-458,460-490,495,497-499,502-1282,1284-1357,1359-1432";
    let bays = listed("2182,2184-2186,2200-2205");
    let coasts = listed("0-1,3,5-6,8-11,17-20,23,33-55,67-81,93-94,108-130,144-149,152-157,169");
    let in_oceans = listed(oceans);
    let region = |bins: &[(u64, u64)]| region("baroclinic_driver", bins);
    let found = histograms(&report(4_500, |rank| match rank {
        rank if in_oceans.contains(&rank) => region(&[(500, 1), (300, 127)]),
        rank if bays.contains(&rank) => region(&[(500, 1), (10, 126), (9, 1)]),
        2 => region(&[(500, 1), (8, 110), (7, 17)]),
        4 => region(&[(500, 1), (8, 76), (7, 51)]),
        3 => region(&[(500, 1), (8, 61), (7, 66)]),
        9 => region(&[(500, 1), (7, 65), (6, 62)]),
        33 => region(&[(500, 1), (7, 106), (6, 21)]),
        rank if coasts.contains(&rank) => region(&[(500, 1), (7, 81), (6, 46)]),
        338 => region(&[(500, 1), (7, 63), (6, 64)]),
        251 => region(&[(500, 1), (6, 126), (5, 1)]),
        3_173 => region(&[(500, 1), (6, 113), (5, 14)]),
        _ => region(&[(500, 1), (7, 3), (6, 117), (5, 7)]),
    }));
    let groups: Vec<&str> = found.split("\n\n").collect();
    assert_eq!(groups.len(), 5, "{found}");
    let expected = "\
event histogram for tasks: 12-16,56-66,85-92,131-143,150-151,160-168,206-232,235-245,
283-307,310-323,327-328,356-383,385-406,412-414,429-458,460-490,495,497-499,502-1282,
1284-1357,1359-1432
500-599 ticks:   1 max (task   12),   1 min (task   12),   1 avg
300-399 ticks: 127 max (task   12), 127 min (task   12), 127 avg";
    assert_eq!(groups[0], expected);
    let expected = "\
event histogram for tasks: 2182,2184-2186,2200-2205
500-599 ticks:   1 max (task 2182),   1 min (task 2182),   1 avg
10-19 ticks: 126 max (task 2182), 126 min (task 2182), 126 avg
9 tick(s):   1 max (task 2182),   1 min (task 2182),   1 avg";
    assert_eq!(groups[1], expected);
    let expected = "\
event histogram for tasks: 2,4
500-599 ticks:   1 max (task    2),   1 min (task    2),   1 avg
8 tick(s): 110 max (task    2),  76 min (task    4),  93 avg
7 tick(s):  51 max (task    4),  17 min (task    2),  34 avg";
    assert_eq!(groups[2], expected);
    for (group, line) in [
        (3, "7 tick(s): 106 max (task   33),  65 min (task    9), "),
        (3, "6 tick(s):  62 max (task    9), "),
        (4, "7 tick(s):  63 max (task  338),   0 min (task  251), "),
        (
            4,
            "6 tick(s): 126 max (task  251),  64 min (task  338), 116 avg",
        ),
        (4, "5 tick(s):  14 max (task 3173),   0 min (task  338), "),
    ] {
        assert!(groups[group].contains(line), "{line}: {}", groups[group]);
    }
}

#[test]
fn figures_8_and_9() {
    let figure_8 = histograms(&report(4_500, |rank| match rank {
        0 => region("baroclinic_driver", &[(500, 1), (300, 126), (200, 1)]),
        1..=3267 if rank % 5 == 1 => region("baroclinic_driver", &[(500, 1), (300, 127)]),
        1..=3267 => region("baroclinic_driver", &[(500, 1), (300, 126), (200, 1)]),
        3436 => region("baroclinic_driver", &[(500, 1), (6, 110), (5, 17)]),
        3503 => region("baroclinic_driver", &[(500, 1), (6, 126), (5, 1)]),
        _ => region("baroclinic_driver", &[(500, 1), (6, 118), (5, 8)]),
    }));
    let expected = "\
event histogram for tasks: 0-3267
500-599 ticks:   1 max (task    0),   1 min (task    0),   1 avg
300-399 ticks: 127 max (task    1), 126 min (task    0), 126 avg
200-299 ticks:   1 max (task    0),   0 min (task    1),   0 avg

event histogram for tasks: 3268-4499
500-599 ticks:   1 max (task 3268),   1 min (task 3268),   1 avg
6 tick(s): 126 max (task 3503), 110 min (task 3436), 118 avg
5 tick(s):  17 max (task 3436),   1 min (task 3503),   8 avg
";
    assert_eq!(figure_8, expected);

    let slow = listed("122-128,154,169-197,210,238-254");
    let figure_9 = histograms(&report(3_268, |rank| match rank {
        127 => region("baroclinic_driver", &[(200, 104), (100, 24)]),
        197 => region("baroclinic_driver", &[(200, 65), (100, 63)]),
        rank if slow.contains(&rank) => region("baroclinic_driver", &[(200, 88), (100, 40)]),
        // Equal numbers in both bins: the paper counts it to the shorter.
        166 => region("baroclinic_driver", &[(200, 64), (100, 64)]),
        3054 => region("baroclinic_driver", &[(200, 7), (100, 121)]),
        _ => region("baroclinic_driver", &[(200, 20), (100, 108)]),
    }));
    let expected = "\
event histogram for tasks: 122-128,154,169-197,210,238-254
200-299 ticks: 104 max (task  127),  65 min (task  197),  87 avg
100-199 ticks:  63 max (task  197),  24 min (task  127),  40 avg

event histogram for tasks: 0-121,129-153,155-168,198-209,211-237,255-3267
200-299 ticks:  64 max (task  166),   7 min (task 3054),  20 avg
100-199 ticks: 121 max (task 3054),  64 min (task  166), 107 avg
";
    assert_eq!(figure_9, expected);
}

#[test]
fn remarks_and_threads_are_shown() {
    let found = report(3, |rank| {
        let mut region = region("solve", &[(6, 2)]);
        if rank > 0 {
            region.remarks = ReportRemarks {
                started_while_running: 2,
                running: 1,
                ..ReportRemarks::default()
            };
            region.threads = 4;
        }
        region
    });
    let text = found.text(&TextOptions::default());
    assert!(
        text.contains(
            "\n  note: started while running 4 time(s), still running 2 time(s); first on task 1\n"
        ),
        "{text}"
    );
    assert!(text.contains("\nthreads per task: 4 max\n"), "{text}");
    assert!(text.contains(", task 0, thread 0, event 1\n"), "{text}");
}

#[test]
fn a_region_without_events_and_a_program_without_regions() {
    let misused = RegionProfile {
        remarks: ReportRemarks {
            stopped_while_stopped: 1,
            ..ReportRemarks::default()
        },
        ..RegionProfile::new("never run")
    };
    let text = report(1, |_| misused.clone()).text(&TextOptions::default());
    assert!(
        text.contains("            - |             - |             - |      - | never run\n"),
        "{text}"
    );
    assert!(
        text.ends_with("*** never run\nno events\n  note: stopped while not running 1 time(s); first on task 0\n"),
        "{text}"
    );
    let none = ProfileReport::new(&Profile::new(
        "clock",
        MILLISECOND,
        Overhead::default(),
        vec![],
    ));
    assert!(
        none.text(&TextOptions::default())
            .starts_with("*** profile for 1 task ***\n")
    );
}
