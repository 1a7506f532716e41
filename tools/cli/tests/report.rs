//! Command-line tests of `downbeat report`: the page in a browser, on a phone, in print.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "report/experiments.rs"]
mod experiments;
mod shown;

use std::fs;
use std::os::unix::fs::symlink;

use downbeat_files::testing::seal_record;
use experiments::MadeExperiment;
use serde_json::Value;
use shown::{
    Browser, device_widths, downbeat, looks_well, needs_no_script, refuses, scratch, shows,
    succeeds,
};

const OPEN_MPI: MadeExperiment = MadeExperiment {
    launches: 10,
    observations: 300,
    slower: 1.0,
    library: "Open MPI 4.1.4",
};
const MPICH: MadeExperiment = MadeExperiment {
    launches: 10,
    observations: 300,
    slower: 1.08,
    library: "MPICH 4.0",
};

#[test]
fn two_experiments_are_a_page_on_every_device() {
    let folder = scratch("report-two");
    OPEN_MPI.write(&folder.join("openmpi"));
    MPICH.write(&folder.join("mpich"));
    succeeds(
        &folder,
        &[
            "report",
            "openmpi",
            "mpich",
            "-o",
            "page.html",
            "--svg",
            "pictures",
        ],
    );
    let page = folder.join("page.html");
    let html = fs::read_to_string(&page).expect("it was written");
    assert!(html.len() < 3_000_000, "{}", html.len());
    // Three kinds: medians and shifts of each; at 3 + 1 + 3 sizes violins, histograms, two orders, averages of launches, and two Q-Q plots.
    // Once for all: late calls over time.
    let figures = 3 + 3 + 7 * 4 + 7 * 3 + 1;
    let pictures = fs::read_dir(folder.join("pictures"))
        .expect("it was written")
        .count();
    assert_eq!(
        (html.matches("<figure>").count(), pictures),
        (figures, figures)
    );

    let Some(browser) = Browser::find(&folder) else {
        return;
    };
    for &width in device_widths() {
        let said = [
            "mpich is slower than openmpi in 13",
            "\u{2260} mpi",
            "Open MPI 4.1.4",
            "launch-010",
        ];
        shows(&browser, &page, width, figures, &said);
    }
    for size in [(390, 3_000), (1_200, 3_000)] {
        let seen = browser.screenshot(&page, size);
        // Both experiments are drawn in their colours, on a white background.
        assert!(
            seen.count([0x00, 0x72, 0xb2]) > 200 && seen.count([0xd5, 0x5e, 0x00]) > 200,
            "{size:?}"
        );
        assert!(
            (0.02..0.6).contains(&seen.inked()),
            "{size:?}: {}",
            seen.inked()
        );
    }
    assert!(browser.print(&page).starts_with(b"%PDF-"));
    let alone = browser.screenshot(
        &folder.join("pictures/run-time-allreduce-4.svg"),
        (480, 400),
    );
    assert!(
        alone.count([0x00, 0x72, 0xb2]) > 100 && alone.inked() < 0.5,
        "{}",
        alone.inked()
    );
}

/// Counts the sheets of a PDF.
fn sheets(pdf: &[u8]) -> usize {
    let text = String::from_utf8_lossy(pdf);
    text.matches("/Type /Page\n").count() + text.matches("/Type /Page ").count()
}

#[test]
fn tables_are_sorted_and_filtered_and_marks_have_values() {
    let folder = scratch("report-used");
    OPEN_MPI.write(&folder.join("openmpi"));
    MPICH.write(&folder.join("mpich"));
    succeeds(&folder, &["report", "openmpi", "mpich", "-o", "page.html"]);
    let page = folder.join("page.html");
    let Some(browser) = Browser::find_in_long_run(&folder) else {
        return;
    };
    let found = browser.try_out(&page);
    assert_eq!(found["errors"], serde_json::json!([]));
    // The longest table has 10 launches at 6 sizes.
    assert_eq!(found["rows"], 60);
    let texts = |value: &Value| -> Vec<String> {
        let all = value.as_array().expect("a list").iter();
        all.map(|one| one.as_str().expect("a text").to_owned())
            .collect()
    };
    let headings = texts(&found["headings"]);
    for (heading, orders) in headings
        .iter()
        .zip(found["columns"].as_array().expect("a list"))
    {
        let orders = orders.as_array().expect("a list");
        let names: Vec<&Value> = orders.iter().map(|order| &order["order"]).collect();
        assert_eq!(names, ["ascending", "descending", "none"], "{heading}");
        assert!(orders.iter().all(|order| order["isFocused"] == true));
        let [up, down, own] = [0, 1, 2].map(|order| texts(&orders[order]["cells"]));
        // What is missing comes last in either order.
        let (missing, mut sorted): (Vec<_>, Vec<_>) = own.into_iter().partition(|text| text == "–");
        match heading.as_str() {
            "launch" => sorted.sort(),
            _ => sorted.sort_by(|one, two| {
                let number = |text: &str| {
                    text.replace(',', "")
                        .parse::<f64>()
                        .unwrap_or_else(|_| panic!("{heading}: {text} is no number"))
                };
                number(one).total_cmp(&number(two))
            }),
        }
        assert_eq!(up, [&sorted[..], &missing[..]].concat(), "{heading}");
        sorted.reverse();
        assert_eq!(down, [sorted, missing].concat(), "{heading}");
    }
    // Each launch measured each size once.
    assert_eq!(
        found["filtered"],
        serde_json::json!([[6, "6 of 60"], [0, "0 of 60"], [60, ""]])
    );
    // Everything is unfolded while it is printed.
    let folded: Vec<u64> = serde_json::from_value(found["folded"].clone()).expect("numbers");
    assert!(
        folded[0] > 3 && folded[1] == 0 && folded[2] == folded[0],
        "{folded:?}"
    );

    let titles = texts(&found["titles"]);
    for begin in [
        "openmpi, 8 B: ",
        "mpich, 64 B: +",
        "openmpi, launch 3: median ",
        "mpich, 4",
        "launch 10, observations 1 to ",
    ] {
        let title = titles.iter().find(|title| title.starts_with(begin));
        let has_unit = title.is_some_and(|title| title.contains(" ns") || title.contains(" %"));
        assert!(has_unit, "{begin}: {title:?}");
    }
    let plain = needs_no_script(&browser, &page);
    // What is folded on the screen is printed, also by the style alone.
    let html = fs::read_to_string(&plain).expect("it was written");
    let open = folder.join("open.html");
    fs::write(&open, html.replace("<details>", "<details open>")).expect("a test may write here");
    let [open, plain, page] = [&open, &plain, &page].map(|page| sheets(&browser.print(page)));
    assert!(
        open > 5 && open == plain && open == page,
        "{open} {plain} {page}"
    );
}

#[test]
fn the_page_shows_what_was_launched() {
    let folder = scratch("report-launched");
    for name in ["two/a", "two/b", "one", "none"] {
        MadeExperiment {
            launches: 1,
            observations: 20,
            ..OPEN_MPI
        }
        .write(&folder.join(name));
    }
    let plan = |variants: &str, order: &str| {
        format!(
            "{{\"schema\": \"downbeat.run\", \"version\": 1, \"n\": 1, \"seed\": 5, \"same_hosts\": false, \
             \"variants\": [{variants}], \"order\": [{order}]}}"
        )
    };
    let two = plan(
        "{\"name\": \"a\", \"command\": [\"mpirun\", \"-np\", \"2\", \"x y\"]}, \
         {\"name\": \"b\", \"command\": [\"srun\", \"<b>\"]}",
        "\"a/launch-001\", \"b/launch-001\"",
    );
    let one = plan("{\"command\": [\"bench\", \"--quick\"]}", "\"launch-001\"");
    for (name, text) in [
        ("two", &*two),
        ("one", &*one),
        // This is not a plan of launches.
        ("none", "{\"plan\": 1}"),
    ] {
        fs::write(folder.join(name).join("plan.json"), text).expect("a test may write here");
    }
    let html = succeeds(&folder, &["report", "two", "one", "none", "-o", "-"]);
    for row in [
        "<tr><td>a<td>mpirun -np 2 &#39;x y&#39;\n",
        "<tr><td>b<td>srun &#39;&lt;b&gt;&#39;\n",
        "<tr><td>one<td>bench --quick\n",
    ] {
        assert!(html.contains(row), "no {row} in {html}");
    }
    let html = succeeds(&folder, &["report", "none", "-o", "-"]);
    assert!(!html.contains("Launched commands"), "{html}");
    // A page replaces no file of the experiment, except another page.
    symlink("one/plan.json", folder.join("link")).expect("a test may write here");
    fs::write(folder.join("one/launch-001.log"), "said").expect("a test may write here");
    for output in ["one/plan.json", "link", "one/launch-001.log"] {
        refuses(
            &folder,
            &["report", "one", "-o", output],
            "which is only read",
        );
    }
    let kept = fs::read_to_string(folder.join("one/plan.json"));
    assert_eq!(kept.expect("a plan"), one);
    for _ in 0..2 {
        succeeds(&folder, &["report", "one", "-o", "one/report.html"]);
    }
}

#[test]
fn many_experiments_with_long_names_stay_readable() {
    let folder = scratch("report-many");
    for i in 0..7 {
        let made = MadeExperiment {
            launches: 33,
            observations: 12,
            slower: 1.0 + 0.3 * f64::from(i),
            ..OPEN_MPI
        };
        made.write(&folder.join(format!(
            "all/{i}-a-very-long-name-of-an-experiment-with-every-option-in-it"
        )));
    }
    // A folder without launches stands for the experiments in it.
    succeeds(
        &folder,
        &[
            "report",
            "all",
            "-o",
            "page.html",
            "--confidence",
            "99%",
            "--of",
            "mean",
        ],
    );
    let Some(browser) = Browser::find_in_long_run(&folder) else {
        return;
    };
    looks_well(&browser, &folder.join("page.html"), 390);
}

#[test]
fn one_experiment_needs_no_comparison_and_may_go_to_standard_output() {
    let folder = scratch("report-one");
    MadeExperiment {
        launches: 1,
        observations: 20,
        ..OPEN_MPI
    }
    .write(&folder.join("alone"));
    let page = succeeds(&folder, &["report", "alone", "-o", "-"]);
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    assert!(
        page.contains("Too few launches") && !page.contains("id=\"comparison\""),
        "{page}"
    );
}

/// Figure 11 of Hunold 2016: a slower library is not significantly faster.
#[test]
fn stars_are_those_of_the_alternative() {
    let folder = scratch("report-alternative");
    OPEN_MPI.write(&folder.join("openmpi"));
    MPICH.write(&folder.join("mpich"));
    let page = |alternative| {
        let alternative = ["--alternative", alternative];
        let report = ["report", "openmpi", "mpich", "-o", "-"];
        succeeds(&folder, &[&report[..], &alternative].concat())
    };
    let stars = |page: &str| page.contains(">*</text>") || page.contains(">**</text>");
    let (less, greater) = (page("less"), page("greater"));
    assert!(less.contains("“the other one takes less time”") && !stars(&less));
    let verdict = "mpich does not take significantly less time than openmpi in any of";
    assert!(less.contains(verdict), "{less}");
    assert!(greater.contains("“the other one takes more time”") && stars(&greater));
}

#[test]
fn hostile_names_stay_text() {
    let folder = scratch("report-hostile");
    fs::create_dir_all(folder.join("a<b>&")).expect("a test may write here");
    let hostile = "<script>document.title='owned'</script><img/src=x/onerror=alert(1)>";
    let record = format!(
        "# downbeat launch 1\n# factor {hostile} = {hostile}\n# fact \"'>{hostile} = --></style></svg>{hostile}\n\
         operation,bytes,ranks,call,state,nanos\n{hostile},8,2,0,valid,5\n{hostile},8,2,1,valid,6\n\
         # end {hostile},8,2 valid=2 late=0 long=0 drifted=0 avg=5.5\n# complete\n"
    );
    fs::write(folder.join("a<b>&/x.csv"), seal_record(&record)).expect("a test may write here");
    succeeds(
        &folder,
        &["report", "a<b>&", "-o", "page.html", "--svg", "."],
    );
    let Some(browser) = Browser::find_in_long_run(&folder) else {
        return;
    };
    let found = looks_well(&browser, &folder.join("page.html"), 390);
    assert_eq!(found["title"], "Run-times of a<b>&");
}

#[test]
fn bad_input_is_one_line() {
    let folder = scratch("report-bad");
    MadeExperiment {
        launches: 2,
        observations: 3,
        ..OPEN_MPI
    }
    .write(&folder.join("good"));
    fs::create_dir_all(folder.join("empty")).expect("a test may write here");
    fs::create_dir_all(folder.join("damaged")).expect("a test may write here");
    fs::write(folder.join("damaged/x.csv"), "# downbeat launch 9\n")
        .expect("a test may write here");
    refuses(&folder, &["report", "missing", "-o", "x.html"], "missing");
    refuses(&folder, &["report", "empty", "-o", "x.html"], "empty");
    refuses(
        &folder,
        &["report", "damaged", "-o", "x.html"],
        "x.csv: line 1",
    );
    refuses(
        &folder,
        &["report", "good", "missing", "-o", "x.html"],
        "missing",
    );
    refuses(&folder, &["report", "-o", "x.html"], "DIR");
    refuses(&folder, &["report", "good"], "--output");
    refuses(
        &folder,
        &["report", "good", "-o", "no/such/folder/x.html"],
        "-o: no/such/folder/x.html",
    );
    refuses(
        &folder,
        &[
            "report",
            "good",
            "-o",
            "x.html",
            "--svg",
            "good/launch-001.csv",
        ],
        "--svg: good/launch-001.csv",
    );
    let record = "good/launch-001.csv";
    let same = format!("-o: ./{record} is the same file as {record}, which is only read");
    refuses(
        &folder,
        &["report", "good", "-o", &format!("./{record}")],
        &same,
    );
    assert!(!folder.join("x.html").exists());

    // A full disk is not bad input: exit code 1.
    let full = downbeat(&folder, &["report", "good", "-o", "/dev/full"]);
    let said = String::from_utf8_lossy(&full.stderr);
    assert_eq!(
        (full.status.code(), said.lines().count()),
        (Some(1), 1),
        "{said}"
    );
    assert!(said.contains("/dev/full: No space"), "{said}");
}
