//! Command-line tests of `downbeat trace show`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::shown::{Browser, has_no_defects, refuses, scratch, succeeds, without_scripts};
use super::{read, trace, words};

/// Most bytes of a page.
const MOST: u64 = 5_000_000;

/// Writes the trace of a program whose ranks send to the next one and reduce in each round; the clock of each rank is ahead
/// by its number times `skew` nanoseconds.
fn program(path: &Path, ranks: i64, rounds: i64, skew: i64) {
    let mut text = "# downbeat trace 1 without checksum\n".to_owned();
    // Writing to a string cannot fail.
    for rank in 0..ranks {
        let _ = writeln!(text, "location {rank} {rank} {rank} rank {rank}");
    }
    let all: Vec<String> = (0..ranks).map(|rank| rank.to_string()).collect();
    let _ = writeln!(text, "communicator 0 {}", all.join(" "));
    text += "region 0 main\nregion 1 MPI_Send\nregion 2 MPI_Recv\nregion 3 MPI_Allreduce\n";
    for round in 0..rounds {
        for rank in 0..ranks {
            let at = |late: i64| 1_000_000 + 50_000 * round + late + skew * rank;
            let (next, last) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
            let begin = 500 * (rank * 7 % 11);
            let mut add = |late: i64, what: &str| {
                let _ = writeln!(text, "{rank} {} {what}", at(late));
            };
            if round == 0 {
                add(0, "enter 0");
            }
            add(begin + 1_000, "enter 1");
            add(begin + 1_500, &format!("send {next} 0 1"));
            add(begin + 2_000, "leave 1");
            add(begin + 3_000, "enter 2");
            add(15_000, &format!("receive {last} 0 1"));
            add(16_000, "leave 2");
            add(20_000 + begin, "enter 3");
            add(20_000 + begin, "collective 0");
            add(40_000, "collective-end 0 allreduce 0 both");
            add(40_000 + 100 * (rank % 5), "leave 3");
        }
    }
    for rank in 0..ranks {
        let at = 1_000_000 + 50_000 * rounds + skew * rank;
        let _ = writeln!(text, "{rank} {at} leave 0");
    }
    let _ = writeln!(text, "end {}", ranks * (rounds * 10 + 2));
    fs::write(path, text).expect("a test may write here");
}

#[test]
fn a_timeline_needs_no_script() {
    let folder = scratch("trace-show");
    program(&folder.join("a.dbt"), 8, 6, 0);
    let said = trace(&folder, "show a.dbt");
    assert!(
        said.starts_with("a.html: 8 locations, 496 events; "),
        "{said}"
    );
    let html = read(&folder, "a.html");
    for text in [
        "<svg ",
        ">rank 7<",
        ">all-to-all<",
        ">late sender",
        "wait at N x N",
        "class=\"m c2\"",
    ] {
        assert!(html.contains(text), "no {text}");
    }
    let plain = without_scripts(&folder.join("a.html"));
    let Some(browser) = Browser::find(&folder) else {
        return;
    };
    for width in [400, 1_280] {
        let found = has_no_defects(&browser, &plain, width);
        assert_eq!((&found["svgs"], &found["buttons"]), (&1.into(), &0.into()));
        // The scripts are allowed by their digests, and run.
        let found = has_no_defects(&browser, &folder.join("a.html"), width);
        assert_eq!(
            (&found["scripts"], &found["buttons"]),
            (&3.into(), &5.into())
        );
    }
    let green = browser
        .screenshot(&plain, (1_280, 900))
        .count([0x00, 0x7a, 0x5a]);
    let drawn = browser.screenshot(&folder.join("a.html"), (1_280, 900));
    let drawn = drawn.count([0x00, 0x7a, 0x5a]);
    assert!(
        green > 10_000 && drawn.abs_diff(green) < green / 10,
        "{green} {drawn}"
    );
}

/// A note may say any number.
#[test]
fn a_call_after_any_number_of_calls_is_none_of_them() {
    let folder = scratch("trace-show-counted");
    let text = "# downbeat trace 1 without checksum\nlocation 0 0 0 rank 0\nregion 0 MPI_Test\n0 10 enter 0\n\
                0 10 note 18446744073709551615 calls\n0 20 leave 0\n0 30 enter 0\n0 40 leave 0\n\
                0 50 enter 0\n0 60 leave 0\nend 7\n";
    fs::write(folder.join("a.dbt"), text).expect("a test may write here");
    trace(&folder, "show a.dbt --call MPI_Test:1");
    let html = read(&folder, "a.html");
    assert!(
        html.contains("From 0.000000010 s to 0.000000023 s"),
        "{html}"
    );
}

/// Letters of names are of different widths in every font.
#[test]
fn labels_of_rows_keep_their_first_letters() {
    let folder = scratch("trace-show-labels");
    program(&folder.join("plain.dbt"), 3, 2, 0);
    let mut text = read(&folder, "plain.dbt");
    let names = ["WWMMWWMM WWMMWWMM", "WORKER THREAD 2", "トレース記録"];
    for (rank, name) in names.into_iter().enumerate() {
        text = text.replace(&format!(" rank {rank}\n"), &format!(" {name}\n"));
    }
    fs::write(folder.join("a.dbt"), text).expect("a test may write here");
    trace(&folder, "show a.dbt");
    assert!(read(&folder, "a.html").contains(">WORKER THRE"));
    if let Some(browser) = Browser::find_in_long_run(&folder) {
        has_no_defects(&browser, &folder.join("a.html"), 1_280);
    }
}

/// Figure 10 of the paper: one call on all ranks, by each clock.
#[test]
fn a_call_is_shown_by_each_clock() {
    let folder = scratch("trace-show-clocks");
    program(&folder.join("global.dbt"), 16, 20, 0);
    program(&folder.join("raw.dbt"), 16, 20, 30_000);
    let options = [
        "--label",
        "global clock",
        "--beside",
        "raw clock=raw.dbt",
        "--svg",
        "figure.svg",
    ];
    let mut arguments = words("show global.dbt -o page.html --call MPI_Allreduce:7");
    arguments.extend(options);
    succeeds(&folder, &arguments);
    let (html, figure) = (read(&folder, "page.html"), read(&folder, "figure.svg"));
    for text in [
        "global clock",
        "raw clock",
        "MPI_Allreduce, call 7 of every location",
    ] {
        assert!(html.contains(text) && figure.contains(text), "no {text}");
    }
    assert!(figure.starts_with("<svg xmlns=") && !figure.contains("<script"));
    // 16 ranks enter within 5 us by the global clock, and within 453 us by the other one.
    let row = |clock: &str| {
        let rows = html
            .split("<tr>")
            .find(|row| row.starts_with(&format!("<td>{clock}<td>16")));
        let cell = rows.expect("there is a row").split("<td").nth(3);
        cell.and_then(|cell| cell.split('>').nth(1).map(str::to_owned))
    };
    assert_eq!(row("global clock").as_deref(), Some("5.000 us"));
    assert_eq!(row("raw clock").as_deref(), Some("453.0 us"));

    // An interval has the same events by each clock.
    let interval =
        "show global.dbt -o page.html --from +100us --to +150us --beside raw.dbt --own-axes";
    let said = trace(&folder, interval);
    assert!(said.contains(" in 50.00 us"), "{said}");
    let Some(browser) = Browser::find_in_long_run(&folder) else {
        return;
    };
    has_no_defects(&browser, &without_scripts(&folder.join("page.html")), 1_280);
}

#[test]
fn the_page_of_a_large_trace_is_small() {
    let folder = scratch("trace-show-large");
    trace(
        &folder,
        "generate -o large.dbt --nodes 8 --processes 8 --events 300000",
    );
    trace(&folder, "show large.dbt -o large.html");
    program(&folder.join("wide.dbt"), 1_200, 12, 0);
    trace(&folder, "show wide.dbt -o wide.html");
    trace(&folder, "show wide.dbt -o call.html --call MPI_Allreduce:5");
    program(&folder.join("long.dbt"), 2, 5_000, 0);
    trace(&folder, "show long.dbt -o long.html");
    for (name, texts) in [
        ("large.html", ["messages are not drawn", "rank 0<"]),
        (
            "wide.html",
            ["Each row shows 10 locations", "messages are not drawn"],
        ),
        (
            "call.html",
            ["600 of 1200 locations are drawn", "rank 120<"],
        ),
        ("long.html", ["too many calls to draw each", "rank 1<"]),
    ] {
        let (html, length) = (read(&folder, name), fs::metadata(folder.join(name)));
        assert!(length.is_ok_and(|found| found.len() < MOST), "{name}");
        let plain = html.split("<script").next().unwrap_or_default();
        let is_drawn = plain.contains("<g class=\"bars\"><path class=\"");
        assert!(is_drawn, "{name}: the timeline is there");
        for text in texts {
            assert!(html.contains(text), "{name}: no {text}");
        }
    }
    let Some(browser) = Browser::find_in_long_run(&folder) else {
        return;
    };
    has_no_defects(&browser, &without_scripts(&folder.join("call.html")), 1_280);
}

#[test]
fn what_cannot_be_shown_is_refused() {
    let folder = scratch("trace-show-refused");
    program(&folder.join("a.dbt"), 4, 3, 0);
    program(&folder.join("b.dbt"), 5, 3, 0);
    program(&folder.join("longer.dbt"), 4, 4, 0);
    program(&folder.join("short.dbt"), 4, 1, 0);
    let empty = "# downbeat trace 1 without checksum\nend 0\n";
    fs::write(folder.join("empty.dbt"), empty).expect("a test may write here");
    let cut = read(&folder, "a.dbt");
    fs::write(folder.join("cut.dbt"), &cut[..cut.len() / 2]).expect("a test may write here");
    for (arguments, culprit) in [
        ("show none.dbt", "none.dbt: No such file"),
        ("show empty.dbt", "empty.dbt: the trace has no events"),
        ("show cut.dbt", "the file is cut off here"),
        ("show a.dbt --from 2ms --to 1ms", "--to: "),
        (
            "show a.dbt --from 1s",
            "--from, --to: a.dbt: there are no events in the interval",
        ),
        ("show a.dbt --from 5", "--from <TIME>"),
        (
            "show a.dbt --call MPI_AllReduce:1",
            "--call: a.dbt: no region has the name \"MPI_AllReduce\"; there is MPI_Allreduce",
        ),
        (
            "show a.dbt --call MPI_Allreduce:4",
            "no location calls it more than 3 times",
        ),
        ("show a.dbt --call MPI_Allreduce", "--call <NAME:N>"),
        ("show a.dbt --call MPI_Allreduce:0", "--call <NAME:N>"),
        (
            "show a.dbt --call MPI_Send:1 --from 1ms",
            "cannot be used with",
        ),
        (
            "show a.dbt --beside b.dbt",
            "--beside: b.dbt: it has 5 locations",
        ),
        (
            "show a.dbt --call MPI_Allreduce:3 --beside short.dbt",
            "--beside: short.dbt: it has",
        ),
        (
            "show a.dbt --beside empty.dbt",
            "--beside: empty.dbt: it has 0 locations, and the first trace has 4: it is of another",
        ),
        (
            "show a.dbt --call MPI_Send:1 --beside longer.dbt",
            "--beside: longer.dbt: it has 168 events, and the first trace has 128",
        ),
        ("show a.dbt --beside x=none.dbt", "none.dbt: No such file"),
        ("show a.dbt -o a.dbt", "-o: a.dbt is the same file"),
        ("show a.dbt -o none/page.html", "-o: none/page.html: "),
        ("show a.dbt --svg none/page.svg", "--svg: none/page.svg: "),
        (
            "show a.dbt -o x.html --svg x.html",
            "--svg: x.html is also the file of -o",
        ),
        ("show a.dbt --own-axes", "--beside"),
    ] {
        refuses(&folder, &words(arguments), culprit);
    }
    assert!(!folder.join("a.html").exists());
}

#[test]
fn hostile_names_stay_text() {
    let folder = scratch("trace-show-hostile");
    let hostile = "</script><script>alert(1)</script>\"'&";
    let text = format!(
        "# downbeat trace 1 without checksum\nlocation 0 0 0 {hostile}\nregion 0 {hostile}\nregion 1 MPI_Recv\n\
         0 5 enter 0\n0 9 enter 1\n0 10 leave 1\n0 10 enter 1\n0 10 leave 1\n0 20 leave 0\nend 6\n"
    );
    fs::write(folder.join("a.dbt"), text).expect("a test may write here");
    let mut arguments = words("show a.dbt --svg a.svg --beside");
    let beside = format!("{hostile}=a.dbt");
    arguments.extend([beside.as_str(), "--label", hostile]);
    succeeds(&folder, &arguments);
    let (html, figure) = (read(&folder, "a.html"), read(&folder, "a.svg"));
    assert_eq!(html.matches("<script").count(), 3, "{html}");
    assert!(
        !html.contains("alert(1)<") && !figure.contains("<script"),
        "{figure}"
    );
    if let Some(browser) = Browser::find_in_long_run(&folder) {
        let found = has_no_defects(&browser, &folder.join("a.html"), 1_280);
        assert_eq!(found["buttons"], 5);
    }
}

/// Names of threads begin alike, and end with their numbers.
#[test]
fn threads_of_a_rank_are_told_apart() {
    let folder = scratch("trace-show-threads");
    trace(
        &folder,
        "generate -o a.dbt --nodes 12 --threads 12 --events 3000",
    );
    trace(&folder, "show a.dbt");
    assert!(read(&folder, "a.html").contains(">rank 11, thread 8<"));
}
