//! Command-line tests of the page of `downbeat trace`.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod shown;

#[path = "trace_page/show.rs"]
mod show;

use std::fs;
use std::path::Path;

use serde_json::Value;
use shown::{Browser, device_widths, downbeat, needs_no_script, refuses, scratch, shows, succeeds};

const BLUE: [u8; 3] = [0x00, 0x72, 0xb2];
const ORANGE: [u8; 3] = [0xd5, 0x5e, 0x00];

/// Runs `downbeat trace` with these arguments.
fn trace(folder: &Path, arguments: &str) -> String {
    succeeds(folder, &words(arguments))
}

fn words(arguments: &str) -> Vec<&str> {
    ["trace"].into_iter().chain(arguments.split(' ')).collect()
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).expect("it was written")
}

/// Returns a page without the values by which its columns are sorted.
fn without_values(html: &str) -> String {
    let mut parts = html.split(" data-value=\"");
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.filter_map(|part| Some(part.split_once('"')?.1));
    first + &rest.collect::<String>()
}

/// Writes a number below 1,000,000 as pages do.
fn grouped(number: &Value) -> String {
    match number.as_u64().expect("a count") {
        small @ ..1_000 => small.to_string(),
        large => format!("{},{:03}", large / 1_000, large % 1_000),
    }
}

#[test]
fn a_correction_is_a_page_on_every_device() {
    let folder = scratch("trace-page");
    trace(
        &folder,
        "generate -o wrong.dbt --truth truth.dbt --nodes 4 --processes 2 --sessions 4",
    );
    let options =
        "--truth truth.dbt --threshold 1us --max-passes 3 --page page.html --svg pictures --json";
    let document = trace(
        &folder,
        &format!("correct wrong.dbt -o right.dbt {options}"),
    );
    let document: Value = serde_json::from_str(&document).expect("it is JSON");
    let (html, figures) = (without_values(&read(&folder, "page.html")), 2);
    assert_eq!(
        fs::read_dir(folder.join("pictures"))
            .expect("it was written")
            .count(),
        figures
    );

    // The page and the document contain the same numbers.
    let deviation = &document["deviation"];
    for stage in ["as_measured", "pre_synchronized"] {
        let faults = document[stage]["faults"].as_array().expect("a list");
        assert_eq!(faults.len(), 10);
        for fault in faults {
            let fault = fault.as_str().expect("a text");
            assert!(
                fault.contains(" of location ") && fault.contains(" (rank "),
                "{fault}"
            );
            assert!(
                html.contains(&format!("<td>{fault}\n")),
                "no {fault} in {html}"
            );
        }
        let messages = &document[stage]["messages"];
        let [total, reversed] = ["total", "reversed"].map(|what| grouped(&messages[what]));
        let row = format!("<td>{total}<td>{reversed} (");
        assert!(html.contains(&row), "no {row} in {html}");
    }
    let moved = [
        grouped(&deviation["displacement"]["moved"]),
        grouped(&deviation["displacement"]["events"]),
    ];
    let said = [
        &format!("{} of {} events (", moved[0], moved[1]),
        "No message and no collective operation violates its latency.",
        "Pre-synchronization: spline, of 4 sessions",
        "Against the truth, the error without bias went from ",
        "Intervals that are changed by more than a share of themselves",
        "Share of intervals and of their time",
        "1 - 1.4e-7",
    ];
    assert_eq!(document["passes"].as_array().map(Vec::len), Some(3));

    let Some(browser) = Browser::find(&folder) else {
        return;
    };
    let page = folder.join("page.html");
    for &width in device_widths() {
        shows(&browser, &page, width, figures, &said[..6]);
    }
    shows(&browser, &page, 1_200, figures, &said[6..]);
    for size in [(390, 5_000), (1_200, 3_500)] {
        let seen = browser.screenshot(&page, size);
        assert!(
            seen.count(BLUE) > 2_000 && seen.count(ORANGE) > 500,
            "{size:?}"
        );
        assert!(
            (0.02..0.6).contains(&seen.inked()),
            "{size:?}: {}",
            seen.inked()
        );
    }
    assert!(browser.print(&page).starts_with(b"%PDF-"));
    needs_no_script(&browser, &page);
    let used = browser.try_out(&page);
    let titles = used["titles"].as_array().expect("a list");
    for begin in ["as measured: ", "positions: "] {
        let has_one = |title: &&Value| title.as_str().is_some_and(|title| title.starts_with(begin));
        assert!(
            titles.iter().any(|title| has_one(&title)),
            "{begin}: {titles:?}"
        );
    }
}

#[test]
fn a_check_with_violations_has_a_page() {
    let folder = scratch("trace-page-check");
    trace(&folder, "generate -o wrong.dbt --events 2000");
    trace(&folder, "correct wrong.dbt -o right.dbt");
    let found = downbeat(&folder, &words("check wrong.dbt --page wrong.html"));
    assert_eq!(found.status.code(), Some(1));
    let wrong = read(&folder, "wrong.html");
    assert!(
        wrong.contains(" violations.</p>") && wrong.contains(" too early for event "),
        "{wrong}"
    );
    assert!(!wrong.contains("changed intervals"), "no original is given");
    trace(
        &folder,
        "check right.dbt --against wrong.dbt --page right.html --svg pictures",
    );
    let right = read(&folder, "right.html");
    assert!(
        right.contains("Since wrong.dbt: changed intervals")
            && !right.contains(" too early for event "),
        "{right}"
    );
    assert!(folder.join("pictures/shares-changed.svg").exists());
    let Some(browser) = Browser::find_in_long_run(&folder) else {
        return;
    };
    shows(
        &browser,
        &folder.join("wrong.html"),
        390,
        1,
        &["Violations"],
    );
    shows(
        &browser,
        &folder.join("right.html"),
        390,
        2,
        &["Changed intervals"],
    );
}

#[test]
fn hostile_names_stay_text_and_empty_traces_have_a_page() {
    let folder = scratch("trace-page-hostile");
    let hostile = "<script>document.title='owned'</script><img/src=x/onerror=alert(1)> \u{202e}'\"&</h2></svg>";
    trace(&folder, "generate -o plain.dbt --events 2000");
    let text = read(&folder, "plain.dbt").replacen("trace 1", "trace 1 without checksum", 1);
    let text = text[..text.rfind("crc32 ").expect("a checksum")]
        .replace(" rank ", &format!(" {} {hostile} ", "long ".repeat(99)));
    let early = text.replace(" rank ", &format!(" {hostile} "));
    assert_ne!(text, read(&folder, "plain.dbt"));
    fs::write(folder.join("a<b>&.dbt"), text).expect("a test may write here");
    fs::write(
        folder.join("early.dbt"),
        early.replace(&"long ".repeat(99), ""),
    )
    .expect("a test may write here");
    fs::write(
        folder.join("empty.dbt"),
        "# downbeat trace 1 without checksum\nend 0\n",
    )
    .expect("a test may write here");
    trace(&folder, "correct a<b>&.dbt -o long.dbt --page long.html");
    trace(
        &folder,
        "correct early.dbt -o right.dbt --page early.html --svg pictures",
    );
    trace(&folder, "correct empty.dbt -o none.dbt --page empty.html");
    let early = read(&folder, "early.html");
    assert!(
        early.contains("&lt;script&gt;")
            && early.matches("<script").count() == 1
            && !early.contains("<img"),
        "{early}"
    );
    assert!(read(&folder, "long.html").len() < 100_000);
    let empty = read(&folder, "empty.html");
    assert!(
        empty.contains("0 of 0 events") && !empty.contains("NaN") && !empty.contains("<figure>"),
        "{empty}"
    );
    assert!(!read(&folder, "pictures/violations.svg").contains("<script"));
    let Some(browser) = Browser::find_in_long_run(&folder) else {
        return;
    };
    for page in ["long", "early"] {
        shows(
            &browser,
            &folder.join(format!("{page}.html")),
            390,
            2,
            &["No message and no collective"],
        );
    }
}

#[test]
fn many_locations_are_a_page_that_is_not_larger() {
    let folder = scratch("trace-page-large");
    trace(
        &folder,
        "generate -o wrong.dbt --nodes 256 --processes 4 --events 200000 --traffic stencil",
    );
    trace(&folder, "correct wrong.dbt -o right.dbt --page page.html");
    assert!(fs::metadata(folder.join("page.html")).is_ok_and(|page| page.len() < 300_000));
    let Some(browser) = Browser::find_in_long_run(&folder) else {
        return;
    };
    let said = ["1,024 locations", "Changed intervals"];
    shows(&browser, &folder.join("page.html"), 390, 2, &said);
}

#[test]
fn a_page_that_cannot_be_written_is_refused_first() {
    let folder = scratch("trace-page-bad");
    trace(&folder, "generate -o a.dbt --events 100");
    // The trace is missing, so reading it first would give another error.
    for command in ["correct missing.dbt -o out.dbt", "check missing.dbt"] {
        let refuses = |options: &str, culprit| {
            refuses(&folder, &words(&format!("{command} {options}")), culprit);
        };
        refuses(
            "--page no/such/x.html",
            "--page: no/such/x.html: No such file",
        );
        refuses("--page /dev/full", "--page: /dev/full: it is not a file");
        refuses("--page -", "--page: standard output is for the text");
        refuses(
            "--page ./missing.dbt",
            "--page: ./missing.dbt is the same file as missing.dbt, which is only read",
        );
        refuses("--page x.html --svg a.dbt", "--svg: a.dbt: ");
        refuses("--page x.html --svg /proc/self", "--svg: /proc/self");
        refuses("--svg pictures", "--page <FILE>");
    }
    refuses(
        &folder,
        &words("correct missing.dbt -o out.dbt --page ./out.dbt"),
        "--page: ./out.dbt is also the file of -o",
    );
    fs::hard_link(folder.join("a.dbt"), folder.join("link.html")).expect("links can be made");
    refuses(
        &folder,
        &words("check a.dbt --page link.html"),
        "which is only read",
    );
    assert!(!folder.join("x.html").exists() && !folder.join("out.dbt").exists());
}
