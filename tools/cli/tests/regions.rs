//! Command-line tests of `downbeat regions`: the page in a browser, and differences of reports.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "regions/made.rs"]
mod made;
mod shown;

use std::fs;

use downbeat_timers::Duration;
use made::MadeRegions;
use shown::{Browser, device_widths, downbeat, needs_no_script, refuses, scratch, shows, succeeds};

const BLUE: [u8; 3] = [0x00, 0x72, 0xb2];
const ORANGE: [u8; 3] = [0xd5, 0x5e, 0x00];
const GREEN: [u8; 3] = [0x00, 0x7a, 0x5a];
const GREY: [u8; 3] = [0x76, 0x76, 0x76];

#[test]
fn a_report_is_a_page_on_every_device() {
    let folder = scratch("regions-page");
    MadeRegions::on(64, 8).write(&folder.join("run.json"));
    succeeds(
        &folder,
        &[
            "regions",
            "show",
            "run.json",
            "-o",
            "page.html",
            "--svg",
            "pictures",
        ],
    );
    let page = folder.join("page.html");
    // A histogram of each group, of which the regions have 1, 3, 1 and 1; and a picture of the ranks of two regions.
    let figures = 1 + 3 + 1 + 1 + 2;
    let pictures = fs::read_dir(folder.join("pictures")).expect("it was written");
    let pictures: Vec<_> = pictures
        .map(|entry| entry.expect("it is there").path())
        .collect();
    assert_eq!(pictures.len(), figures);
    for picture in &pictures {
        let text = fs::read_to_string(picture).expect("it was written");
        assert!(!text.contains('…'), "{}: text is cut", picture.display());
    }

    let Some(browser) = Browser::find(&folder) else {
        return;
    };
    for &width in device_widths() {
        let said = [
            "step takes the longest: 768.0 ms on rank 0",
            "The largest imbalance is in barotropic",
            "never left",
            "still running 1 time; first on rank 3.",
            "No rank completed this region.",
            "all but 0-48:16",
            "max 2nd longest",
            "128 events",
        ];
        shows(&browser, &page, width, figures, &said);
    }
    for size in [(390, 6_000), (1_200, 4_000)] {
        let seen = browser.screenshot(&page, size);
        for colour in [BLUE, ORANGE, GREEN, GREY] {
            assert!(seen.count(colour) > 200, "{size:?}: {colour:?}");
        }
        assert!(
            (0.02..0.6).contains(&seen.inked()),
            "{size:?}: {}",
            seen.inked()
        );
    }
    assert!(browser.print(&page).starts_with(b"%PDF-"));
    needs_no_script(&browser, &page);
    let used = browser.try_out(&page);
    assert_eq!(used["errors"], serde_json::json!([]));
    // The first rank of the first group in the picture of each region.
    assert_eq!(
        used["cells"],
        serde_json::json!([
            ["rank 0: group 1, most events of 5 to 6 ms", true],
            ["rank 0: group 1, most events of 400 to 500 us", true],
        ])
    );
    let titles = used["titles"].as_array().expect("a list");
    assert!(
        titles.iter().any(|title| title
            == "6 to 7 ms: 128.0 events of a rank on average, at least 128, at most 128")
    );
    let alone = browser.screenshot(&folder.join("pictures/region-1-2-ranks.svg"), (480, 200));
    assert!(
        alone.count(BLUE) > 1_000 && alone.count(GREEN) > 1_000,
        "{}",
        alone.inked()
    );
}

#[test]
fn many_ranks_are_a_page_that_is_not_larger() {
    let folder = scratch("regions-large");
    MadeRegions {
        steps: 8,
        ..MadeRegions::on(16_384, 128)
    }
    .write(&folder.join("run.json"));
    succeeds(&folder, &["regions", "show", "run.json", "-o", "page.html"]);
    let page = folder.join("page.html");
    assert!(fs::metadata(&page).is_ok_and(|page| page.len() < 350_000));
    let Some(browser) = Browser::find_in_long_run(&folder) else {
        return;
    };
    let figures = fs::read_to_string(&page)
        .expect("it was written")
        .matches("<figure>")
        .count();
    shows(
        &browser,
        &page,
        390,
        figures,
        &["128 ranks in each row", "Longer lists of ranks"],
    );
    let seen = browser.screenshot(&page, (1_200, 3_000));
    assert!(
        [BLUE, ORANGE, GREEN]
            .into_iter()
            .all(|colour| seen.count(colour) > 5_000)
    );
}

#[test]
fn several_reports_with_hostile_names_and_many_groups_stay_readable() {
    let folder = scratch("regions-hostile");
    let hostile = "<script>document.title='owned'</script><img/src=x/onerror=alert(1)> \u{202e}'\"&</h2></svg> a name ";
    MadeRegions {
        name: hostile,
        ..MadeRegions::on(9, 3)
    }
    .write(&folder.join("a<b>&.json"));
    made::many_groups(40)
        .save(&folder.join("many.json"))
        .expect("a test may write here");
    succeeds(
        &folder,
        &[
            "regions",
            "show",
            "a<b>&.json",
            "many.json",
            "-o",
            "page.html",
            "--runs",
            "3",
        ],
    );
    let Some(browser) = Browser::find_in_long_run(&folder) else {
        return;
    };
    let html = fs::read_to_string(folder.join("page.html")).expect("it was written");
    let figures = html.matches("<figure>").count();
    let said = ["34 more groups", "<script>document.title='owned'</script>"];
    shows(&browser, &folder.join("page.html"), 390, figures, &said);
    assert!(
        html.contains("<title>Regions of 2 reports</title>"),
        "{html}"
    );

    let merged = succeeds(
        &folder,
        &[
            "regions",
            "show",
            "--merge",
            "a<b>&.json",
            "many.json",
            "-o",
            "-",
            "--details",
            "0",
        ],
    );
    assert!(
        merged.starts_with("<!DOCTYPE html>") && merged.contains("49 ranks; a tick is 1 ns"),
        "{merged}"
    );
    assert!(
        merged.contains("<title>Regions of a&lt;b&gt;&amp;.json and many.json</title>"),
        "{merged}"
    );
    assert!(
        !merged.contains("<h2") && !merged.contains("<a href"),
        "{merged}"
    );
}

#[test]
fn a_difference_names_regions_and_ranks() {
    let folder = scratch("regions-diff");
    MadeRegions::on(64, 8).write(&folder.join("before.json"));
    MadeRegions {
        balanced: true,
        ..MadeRegions::on(64, 8)
    }
    .write(&folder.join("after.json"));
    let text = succeeds(&folder, &["regions", "diff", "before.json", "after.json"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..3],
        ["A: before.json, 64 ranks", "B: after.json, 64 ranks", ""],
        "{text}"
    );
    // The total of a step went from 128 * 6 ms to 128 * 4.9 ms, and all of its events from one bin to another.
    assert!(
        lines[4].ends_with(" barotropic")
            && lines[5].ends_with(" step")
            && lines[5].contains(" 100 % "),
        "{text}"
    );
    assert!(
        lines[5]
            .trim_start()
            .starts_with("768.000 ms  627.200 ms  -140.800 ms  -18.3 %"),
        "{text}"
    );
    for said in [
        "(3 regions without a difference)\n",
        "\n*** step\n  max total: rank 0 in both\n",
        "\n  6-7 ms -> 4-5 ms: 64 ranks (0-63)\n",
        "\n  700-800 ns -> 3-4 ms: 1",
    ] {
        assert!(text.contains(said), "no {said} in:\n{text}");
    }
    assert!(text.is_ascii());
    let table = succeeds(
        &folder,
        &[
            "regions",
            "diff",
            "before.json",
            "after.json",
            "--details",
            "0",
        ],
    );
    assert!(
        text.starts_with(&table) && !table.contains("***"),
        "{table}"
    );
    let same = succeeds(&folder, &["regions", "diff", "after.json", "after.json"]);
    assert!(same.ends_with("\n\nNo region differs.\n"), "{same}");

    let document = succeeds(
        &folder,
        &["regions", "diff", "before.json", "after.json", "--json"],
    );
    let document: serde_json::Value = serde_json::from_str(&document).expect("it is JSON");
    assert_eq!(
        (&document["schema"], &document["version"]),
        (&"downbeat.regions_diff".into(), &1.into())
    );
    let step = &document["regions"][1];
    assert_eq!(step["greatest_total_change_ticks"], -140_800_000);
    assert_eq!(step["histogram"]["moved_share"], 1.0);
    assert_eq!(
        step["moves"][0]["ranks"]["runs"],
        serde_json::json!([[0, 64, 1]])
    );
    assert_eq!(document["regions"].as_array().map(Vec::len), Some(5));

    // Another number of ranks, and a region that is in one of them only.
    MadeRegions {
        name: "ocean",
        ..MadeRegions::on(48, 8)
    }
    .write(&folder.join("fewer.json"));
    let text = succeeds(&folder, &["regions", "diff", "before.json", "fewer.json"]);
    for said in [
        "Note: the numbers of ranks differ: moves are only listed for the common ranks 0-47\n",
        "\n*** barotropic\n  is only in A, on 64 ranks (0-63)\n",
        "\n*** ocean\n  is only in B, on 48 ranks (0-47)\n",
        "\n  executed by 64 ranks in A, by 48 in B\n",
    ] {
        assert!(text.contains(said), "no {said} in:\n{text}");
    }
}

#[test]
fn bad_input_is_one_line() {
    let folder = scratch("regions-bad");
    MadeRegions::on(4, 2).write(&folder.join("good.json"));
    MadeRegions {
        tick: Duration::from_nanos(1_000),
        ..MadeRegions::on(4, 2)
    }
    .write(&folder.join("coarse.json"));
    let text = fs::read_to_string(folder.join("good.json")).expect("it was written");
    for (name, content) in [
        ("empty", ""),
        ("text", "no JSON\n"),
        ("cut", &text[..text.len() / 2]),
        (
            "other",
            &text.replacen("downbeat.regions", "downbeat.clocks", 1),
        ),
        ("newer", &text.replacen("\"version\":1", "\"version\":9", 1)),
        ("edited", &text.replacen("\"ranks\":4", "\"ranks\":5", 1)),
    ] {
        fs::write(folder.join(format!("{name}.json")), content).expect("a test may write here");
    }
    let wrong = [
        ("missing", "missing.json: No such file"),
        ("empty", "empty.json: this is not a report of regions"),
        ("text", "text.json: this is not a report of regions"),
        ("cut", "cut.json: EOF"),
        ("other", "other.json: this is not a report of regions"),
        ("newer", "newer.json: version 9 is not supported"),
        (
            "edited",
            "edited.json: its checksum is wrong: the file was damaged or edited after it was written \
             (--no-verify accepts it)",
        ),
    ];
    for (name, culprit) in wrong {
        let name = format!("{name}.json");
        refuses(
            &folder,
            &["regions", "show", &name, "-o", "x.html"],
            culprit,
        );
        refuses(
            &folder,
            &["regions", "show", "good.json", &name, "-o", "x.html"],
            culprit,
        );
        refuses(&folder, &["regions", "diff", &name, "good.json"], culprit);
        refuses(&folder, &["regions", "diff", "good.json", &name], culprit);
    }
    refuses(
        &folder,
        &["regions", "diff", "good.json", "coarse.json"],
        "a tick is 1 ns in one report, and 1.000 us in the other",
    );
    refuses(
        &folder,
        &[
            "regions",
            "show",
            "--merge",
            "good.json",
            "coarse.json",
            "-o",
            "x.html",
        ],
        "a tick is 1 ns",
    );
    refuses(&folder, &["regions", "diff", "good.json"], "<B>");
    refuses(
        &folder,
        &["regions", "show", "good.json", "-o", "x.html", "--json"],
        "--json",
    );
    refuses(
        &folder,
        &["regions", "show", "good.json", "--svg", "pictures"],
        "--output",
    );
    refuses(
        &folder,
        &[
            "regions",
            "show",
            "good.json",
            "-o",
            "no/such/folder/x.html",
        ],
        "-o: no/such/folder/x.html",
    );
    refuses(
        &folder,
        &[
            "regions",
            "show",
            "good.json",
            "-o",
            "x.html",
            "--svg",
            "good.json",
        ],
        "--svg: good.json",
    );
    assert!(!folder.join("x.html").exists());

    // A full disk is not bad input: exit code 1.
    let full = downbeat(
        &folder,
        &["regions", "show", "good.json", "-o", "/dev/full"],
    );
    let said = String::from_utf8_lossy(&full.stderr);
    assert_eq!(
        (full.status.code(), said.lines().count()),
        (Some(1), 1),
        "{said}"
    );
    assert!(said.contains("/dev/full: No space"), "{said}");
}
