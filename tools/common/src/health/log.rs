//! Log of measurements that are repeated: lines of CSV, or the text format of OpenMetrics for monitoring systems.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::output::print;
use crate::{Failure, Outputs, write_text};

/// Quantity that is measured again and again.
#[derive(Clone, Copy, Debug)]
pub struct Gauge {
    /// Name as a column, with the unit at its end; a metric has `downbeat_` before it.
    pub name: &'static str,
    /// Explanation in one sentence.
    pub help: &'static str,
}

/// Values of all gauges for one host at one time; `None` for those that could not be measured.
#[derive(Clone, Debug)]
pub struct GaugeValues {
    /// Host name.
    pub host: String,
    /// One value for each gauge.
    pub values: Vec<Option<f64>>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum LogForm {
    /// One line for each measurement of a host; a file is continued
    #[default]
    Csv,
    /// The newest measurement of each host as OpenMetrics text; a file is replaced each time
    Openmetrics,
}

/// Options that choose where measurements are logged.
#[derive(Args, Clone, Debug, Default)]
pub struct LogOptions {
    /// File of the log; needs --watch [default: standard output]
    #[arg(long, value_name = "FILE", requires = "watch")]
    log: Option<PathBuf>,
    /// Form of the log; needs --watch
    #[arg(
        long,
        value_name = "FORM",
        value_enum,
        default_value_t,
        requires = "watch"
    )]
    log_form: LogForm,
}

/// Log of measurements. Each is written at once.
#[derive(Debug)]
pub struct SampleLog<'a> {
    gauges: &'a [Gauge],
    target: LogTarget,
}

#[derive(Debug)]
enum LogTarget {
    CsvOutput,
    CsvFile(File, PathBuf),
    MetricsOutput,
    MetricsFile(PathBuf),
}

const OPTION: &str = "--log";

impl LogOptions {
    /// Opens the log. Lines of CSV are added to those of a file that has the same columns.
    ///
    /// # Errors
    /// If the file cannot be written, or is another one.
    pub fn open<'a>(&self, gauges: &'a [Gauge]) -> Result<SampleLog<'a>, Failure> {
        let target = match (self.log_form, &self.log) {
            (LogForm::Csv, None) => {
                print(&header(gauges))?;
                LogTarget::CsvOutput
            }
            (LogForm::Csv, Some(path)) => {
                LogTarget::CsvFile(continued(path, &header(gauges))?, path.clone())
            }
            (LogForm::Openmetrics, None) => LogTarget::MetricsOutput,
            (LogForm::Openmetrics, Some(path)) => {
                refuse_other_file(path, "# TYPE downbeat_")?;
                Outputs::default().text(OPTION, path)?;
                LogTarget::MetricsFile(path.clone())
            }
        };
        Ok(SampleLog { gauges, target })
    }
}

impl SampleLog<'_> {
    /// Writes the measurements of all hosts at this time.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write(&mut self, at: &str, hosts: &[GaugeValues]) -> Result<(), Failure> {
        match &mut self.target {
            LogTarget::CsvOutput => print(&lines(at, hosts)),
            LogTarget::CsvFile(file, path) => {
                let written = file.write_all(lines(at, hosts).as_bytes());
                written.map_err(|why| Failure::Run(format!("{OPTION}: {}: {why}", path.display())))
            }
            LogTarget::MetricsOutput => print(&metrics(self.gauges, hosts)),
            LogTarget::MetricsFile(path) => write_text(OPTION, path, &metrics(self.gauges, hosts)),
        }
    }
}

fn header(gauges: &[Gauge]) -> String {
    let names = gauges.iter().map(|gauge| gauge.name);
    ["time", "host"]
        .into_iter()
        .chain(names)
        .collect::<Vec<_>>()
        .join(",")
        + "\n"
}

fn lines(at: &str, hosts: &[GaugeValues]) -> String {
    let mut text = String::new();
    for one in hosts {
        text += at;
        text.push(',');
        text += &one.host;
        for value in &one.values {
            text.push(',');
            if let Some(value) = value {
                // Writing to a string cannot fail.
                let _ = write!(text, "{value}");
            }
        }
        text.push('\n');
    }
    text
}

fn metrics(gauges: &[Gauge], hosts: &[GaugeValues]) -> String {
    let mut text = String::new();
    for (place, Gauge { name, help }) in gauges.iter().enumerate() {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(
            text,
            "# TYPE downbeat_{name} gauge\n# HELP downbeat_{name} {help}"
        );
        for one in hosts {
            if let Some(Some(value)) = one.values.get(place) {
                // Quotes and backslashes cannot occur in the name of a host.
                let _ = writeln!(text, "downbeat_{name}{{host=\"{}\"}} {value}", one.host);
            }
        }
    }
    text + "# EOF\n"
}

/// Opens a file for more lines, and writes the header into a new one.
fn continued(path: &Path, header: &str) -> Result<File, Failure> {
    let failed =
        |why: std::io::Error| Failure::option(OPTION, format!("{}: {why}", path.display()));
    refuse_other_file(path, header)?;
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if found.is_file() && found.len() > 0 {
        // A full disk can have cut the last line off.
        if !fs::read(path).map_err(failed)?.ends_with(b"\n") {
            file.write_all(b"\n").map_err(failed)?;
        }
    } else {
        file.write_all(header.as_bytes()).map_err(failed)?;
    }
    Ok(file)
}

/// Refuses a file with other content than a log of the same form and columns.
fn refuse_other_file(path: &Path, beginning: &str) -> Result<(), Failure> {
    // To open a pipe for reading would take its content, or wait for another writer.
    if !fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0) {
        return Ok(());
    }
    let Ok(file) = File::open(path) else {
        // Its opening for writing says what is wrong.
        return Ok(());
    };
    let mut start = Vec::new();
    file.take(beginning.len() as u64)
        .read_to_end(&mut start)
        .map_err(|why| Failure::option(OPTION, format!("{}: {why}", path.display())))?;
    match start == beginning.as_bytes() {
        true => Ok(()),
        false => Err(Failure::option(
            OPTION,
            format!(
                "{} exists and is not a log of this form with the same columns",
                path.display()
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAUGES: [Gauge; 2] = [
        Gauge {
            name: "offset_ns",
            help: "Offset.",
        },
        Gauge {
            name: "synchronized",
            help: "1 if synchronized.",
        },
    ];

    fn hosts() -> Vec<GaugeValues> {
        let of = |host: &str, values: [Option<f64>; 2]| GaugeValues {
            host: host.to_owned(),
            values: values.to_vec(),
        };
        vec![of("a", [Some(-1.5), Some(1.0)]), of("b", [None, Some(0.0)])]
    }

    fn options(form: LogForm, path: &Path) -> LogOptions {
        LogOptions {
            log: Some(path.to_owned()),
            log_form: form,
        }
    }

    #[test]
    fn unknown_values_are_empty_or_absent() {
        assert_eq!(lines("t", &hosts()), "t,a,-1.5,1\nt,b,,0\n");
        assert_eq!(
            metrics(&GAUGES, &hosts()),
            "# TYPE downbeat_offset_ns gauge\n# HELP downbeat_offset_ns Offset.\ndownbeat_offset_ns{host=\"a\"} -1.5\n\
             # TYPE downbeat_synchronized gauge\n# HELP downbeat_synchronized 1 if synchronized.\n\
             downbeat_synchronized{host=\"a\"} 1\ndownbeat_synchronized{host=\"b\"} 0\n# EOF\n"
        );
    }

    #[test]
    fn a_log_is_continued_and_no_other_file_is() {
        let path = std::env::temp_dir().join(format!("downbeat-log-{}", std::process::id()));
        let csv = options(LogForm::Csv, &path);
        for _ in 0..2 {
            csv.open(&GAUGES).unwrap().write("t", &hosts()).unwrap();
        }
        let whole =
            "time,host,offset_ns,synchronized\n".to_owned() + &lines("t", &hosts()).repeat(2);
        assert_eq!(fs::read_to_string(&path).unwrap(), whole);
        // A line that was cut off stays one of its own.
        fs::write(&path, &whole[..whole.len() - 3]).unwrap();
        csv.open(&GAUGES).unwrap().write("t", &hosts()).unwrap();
        let found = fs::read_to_string(&path).unwrap();
        assert!(found.ends_with("t,b,\nt,a,-1.5,1\nt,b,,0\n"), "{found}");
        for other in [
            options(LogForm::Openmetrics, &path).open(&GAUGES),
            csv.open(&GAUGES[..1]),
        ] {
            let Err(Failure::Input(line)) = other else {
                panic!("not refused")
            };
            assert!(line.starts_with("--log: "), "{line}");
        }
        fs::write(&path, "").unwrap();
        let metrics_log = options(LogForm::Openmetrics, &path);
        for _ in 0..2 {
            metrics_log
                .open(&GAUGES)
                .unwrap()
                .write("t", &hosts())
                .unwrap();
        }
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            metrics(&GAUGES, &hosts())
        );
        fs::remove_file(&path).unwrap();
        let nowhere = path.join("log");
        for form in [LogForm::Csv, LogForm::Openmetrics] {
            assert!(matches!(
                options(form, &nowhere).open(&GAUGES),
                Err(Failure::Input(_))
            ));
        }
    }
}
