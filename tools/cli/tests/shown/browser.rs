//! A headless browser, which renders pages.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Environment variable that makes a missing browser a failure (`required`), or a browser unused (`unused`). `cargo xtask test`
/// installs one and requires it; with `--quick` it uses none.
const WANTED: &str = "DOWNBEAT_BROWSER";

/// Timeout, longer than a browser takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

/// A browser, with a folder for its files.
pub(crate) struct Browser {
    program: &'static str,
    folder: PathBuf,
    /// Findings of `look`, by the page's text and the width: a start takes a second.
    seen: RefCell<HashMap<(String, u32), Value>>,
}

impl Browser {
    /// Finds the browser; without one, pages are not rendered.
    pub(crate) fn find(folder: &Path) -> Option<Self> {
        let wanted = std::env::var(WANTED).unwrap_or_default();
        if wanted == "unused" {
            return None;
        }
        let runs = |program: &&str| {
            Command::new(program)
                .arg("--version")
                .output()
                .is_ok_and(|ran| ran.status.success())
        };
        let program = ["chromium", "chromium-browser", "google-chrome"]
            .into_iter()
            .find(runs);
        assert!(
            program.is_some() || wanted != "required",
            "chromium not found"
        );
        Some(Self {
            program: program?,
            folder: folder.to_owned(),
            seen: RefCell::default(),
        })
    }

    /// Finds the browser in a long run: others render each kind of page once.
    pub(crate) fn find_in_long_run(folder: &Path) -> Option<Self> {
        super::is_long().then(|| Self::find(folder)).flatten()
    }

    /// Runs it on a page; returns its standard output.
    fn run(&self, arguments: &[String], page: &Path) -> String {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let (profile, out) = (
            self.folder.join(format!("profile-{run}")),
            self.folder.join(format!("stdout-{run}")),
        );
        let mut browser = Command::new(self.program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                "--disable-background-networking",
            ])
            .args([
                "--disable-component-update",
                "--disable-sync",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
            ])
            .args([
                "--force-device-scale-factor=1",
                "--virtual-time-budget=10000",
            ])
            .arg(format!("--user-data-dir={}", profile.display()))
            .args(arguments)
            .arg(format!("file://{}", page.display()))
            .stdin(Stdio::null())
            // A file, since a pipe might fill up.
            .stdout(fs::File::create(&out).expect("a test may write here"))
            .stderr(Stdio::null())
            .spawn()
            .expect("it ran before");
        let begin = Instant::now();
        let status = loop {
            match browser.try_wait().expect("it is this process's child") {
                Some(status) => break status,
                None if begin.elapsed() > LIMIT => {
                    let _ = browser.kill();
                    let _ = browser.wait();
                    panic!("{} did not end with {arguments:?}", self.program);
                }
                None => std::thread::sleep(Duration::from_millis(50)),
            }
        };
        let _ = fs::remove_dir_all(profile);
        assert!(status.success(), "{arguments:?}: {status}");
        fs::read_to_string(out).expect("it was written")
    }

    /// Renders the page in a window of this size.
    pub(crate) fn screenshot(&self, page: &Path, (width, height): (u32, u32)) -> Screenshot {
        let file = page.with_extension(format!("{width}.png"));
        let _ = fs::remove_file(&file);
        self.run(
            &[
                format!("--window-size={width},{height}"),
                format!("--screenshot={}", file.display()),
            ],
            page,
        );
        let file = fs::File::open(file).expect("there is a screenshot");
        let mut reader = png::Decoder::new(std::io::BufReader::new(file))
            .read_info()
            .expect("it is a PNG");
        let mut bytes = vec![0; reader.output_buffer_size().expect("it fits into memory")];
        let frame = reader.next_frame(&mut bytes).expect("it is whole");
        bytes.truncate(frame.buffer_size());
        Screenshot {
            pixels: bytes
                .chunks(frame.color_type.samples())
                .map(|p| [p[0], p[1], p[2]])
                .collect(),
        }
    }

    /// Prints the page; returns the PDF.
    pub(crate) fn print(&self, page: &Path) -> Vec<u8> {
        let file = page.with_extension("pdf");
        let _ = fs::remove_file(&file);
        self.run(
            &[
                format!("--print-to-pdf={}", file.display()),
                "--no-pdf-header-footer".to_owned(),
            ],
            page,
        );
        fs::read(file).expect("it was printed")
    }

    /// Examines a page in a window of this width, with everything unfolded: see `look.js`.
    pub(crate) fn look(&self, page: &Path, width: u32) -> Value {
        let key = (fs::read_to_string(page).expect("the page is there"), width);
        let mut seen = self.seen.borrow_mut();
        let found = seen
            .entry(key)
            .or_insert_with(|| self.in_frame(page, width, include_str!("look.js")));
        found.clone()
    }

    /// Uses what the script of a page adds to it: see `use.js`.
    pub(crate) fn try_out(&self, page: &Path) -> Value {
        self.in_frame(page, 1_200, include_str!("use.js"))
    }

    /// Shows a page in a frame, and runs a script around it; returns what it found.
    fn in_frame(&self, page: &Path, width: u32, script: &str) -> Value {
        let html = fs::read_to_string(page)
            .expect("the page is there")
            .replace('&', "&amp;")
            .replace('"', "&quot;");
        let around = format!(
            "<!DOCTYPE html><meta charset=\"utf-8\"><body><iframe width=\"{width}\" height=\"900\" style=\"border:0\" \
             srcdoc=\"{html}\"></iframe><pre id=\"found\"></pre><script>{script}</script>"
        );
        let file = page.with_extension(format!("look-{width}.html"));
        fs::write(&file, around).expect("a test may write here");
        let dom = self.run(
            &[
                "--window-size=1400,1000".to_owned(),
                "--dump-dom".to_owned(),
            ],
            &file,
        );
        let found = dom
            .split("<pre id=\"found\">")
            .nth(1)
            .and_then(|rest| rest.split("</pre>").next())
            .unwrap_or_default();
        let found = found
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&");
        serde_json::from_str(&found)
            .unwrap_or_else(|why| panic!("the page was not examined: {why}: {found}"))
    }
}

/// Pixels of a rendered page: red, green and blue.
pub(crate) struct Screenshot {
    pixels: Vec<[u8; 3]>,
}

impl Screenshot {
    /// Counts the pixels of about this colour; edges are smoothed.
    pub(crate) fn count(&self, colour: [u8; 3]) -> usize {
        let near = |pixel: &[u8; 3]| {
            pixel
                .iter()
                .zip(colour)
                .all(|(found, wanted)| found.abs_diff(wanted) < 20)
        };
        self.pixels.iter().filter(|pixel| near(pixel)).count()
    }

    /// Share of pixels that are not white.
    pub(crate) fn inked(&self) -> f64 {
        1.0 - self
            .pixels
            .iter()
            .filter(|pixel| **pixel == [255; 3])
            .count() as f64
            / self.pixels.len() as f64
    }
}
