//! Values of the options of `downbeat trace show`.

use std::path::PathBuf;
use std::str::FromStr;

use downbeat_clock_core::{Duration, Timestamp};
use downbeat_common::trace::files;
use downbeat_trace::view::{ViewSelection, ViewTime};

/// Parses a timestamp, or a time since the first event.
pub(super) fn time(text: &str) -> Result<ViewTime, String> {
    let parse = |text: &str| text.parse::<Duration>().map_err(|why| why.to_string());
    match text.strip_prefix('+') {
        Some(elapsed) => parse(elapsed).map(ViewTime::SinceFirst),
        None => parse(text).map(|time| ViewTime::At(Timestamp::from_nanos(time.as_nanos()))),
    }
}

/// Parses the name of a region, and the number of its call on each location.
pub(super) fn call(text: &str) -> Result<ViewSelection, String> {
    let expected = || "expected a name and a number from 1, as MPI_Allreduce:1234".to_owned();
    let (name, number) = text.rsplit_once(':').ok_or_else(expected)?;
    let number = number.parse().ok().filter(|number| *number > 0);
    Ok(ViewSelection::Call {
        name: name.to_owned(),
        number: number.ok_or_else(expected)?,
    })
}

/// Another trace of the same program, and its label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BesideTrace {
    pub(super) label: String,
    pub(super) path: PathBuf,
}

impl FromStr for BesideTrace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = PathBuf::from(text);
        let (label, path) = match text.split_once('=') {
            Some((label, path)) if !PathBuf::from(text).exists() => (label, PathBuf::from(path)),
            _ => (text, path),
        };
        match path.as_os_str().is_empty() {
            true => Err("expected a label and a trace, as 'raw clock=raw'".to_owned()),
            false => Ok(Self {
                label: label.to_owned(),
                path: files::anchor_or_file(path),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_timestamps_or_since_the_first_event() {
        let at = |nanos| Ok(ViewTime::At(Timestamp::from_nanos(nanos)));
        assert_eq!(time("1.5us"), at(1_500));
        assert_eq!(time("-3ns"), at(-3));
        let since = Duration::from_millis(2);
        assert_eq!(time("+2ms"), Ok(ViewTime::SinceFirst(since)));
        for wrong in ["", "+", "5", "+x", "1s2"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_call_is_a_name_and_a_number() {
        let Ok(ViewSelection::Call { name, number }) = call("a::b:3") else {
            panic!("it is a call");
        };
        assert_eq!((name.as_str(), number), ("a::b", 3));
        for wrong in ["", "MPI_Send", "MPI_Send:", "MPI_Send:0", "MPI_Send:-1"] {
            assert!(call(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_label_is_before_the_trace() {
        let parse = |text: &str| {
            text.parse::<BesideTrace>()
                .map(|beside| (beside.label, beside.path))
        };
        assert_eq!(
            parse("raw clock=a.dbt"),
            Ok(("raw clock".into(), "a.dbt".into()))
        );
        assert_eq!(parse("a.dbt"), Ok(("a.dbt".into(), "a.dbt".into())));
        assert!(parse("").is_err() && parse("a=").is_err());
    }
}
