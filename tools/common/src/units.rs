//! Texts of numbers, spelled the same on pages and in printed text: times and sizes with a unit, shares in percent, and
//! thousands as `1,234,567`.

use std::borrow::Cow;

pub use downbeat_files::number::grouped;
use downbeat_records::GroupKey;

/// Units of time, and their lengths in nanoseconds. Microseconds are spelled as options take them, and as every terminal and
/// file shows them.
const TIMES: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

/// Units of sizes, and their lengths in bytes.
const SIZES: [(&str, f64); 4] = [
    ("B", 1.0),
    ("KiB", 1_024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeUnit {
    /// Name that follows a number.
    pub name: &'static str,
    /// Length in nanoseconds.
    pub nanos: f64,
}

impl TimeUnit {
    /// Returns the unit in which a time has one to three digits before the point.
    pub fn for_nanos(nanos: f64) -> Self {
        let fits = TIMES.iter().rev().find(|(_, unit)| nanos.abs() >= *unit);
        let (name, nanos) = fits.copied().unwrap_or(TIMES[0]);
        Self { name, nanos }
    }
}

/// Writes a time with four digits: `375.2 ns`, `1.024 us`.
pub fn time(nanos: f64) -> String {
    // 999.96 ns are 1.000 us.
    let unit = TimeUnit::for_nanos(nanos * 1.000_05);
    format!("{} {}", digits(nanos / unit.nanos, 4), unit.name)
}

/// Writes a number with this number of digits in total, or all digits before the point if these are more.
pub fn digits(value: f64, total: usize) -> String {
    let before = if value.abs() < 1.0 {
        1
    } else {
        value.abs().log10().floor() as usize + 1
    };
    grouped(&format!("{:.*}", total.saturating_sub(before), value))
}

/// Returns a number, or zero without a sign if it has only zeros with this many digits
/// after the point.
pub fn without_negative_zero(value: f64, digits: usize) -> f64 {
    let written = format!("{:.digits$}", value.abs());
    match written.chars().all(|digit| "0.".contains(digit)) {
        true => 0.0,
        false => value,
    }
}

/// Writes a share in percent with its sign: `+1.3 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let decimals = if percent.abs() < 9.995 {
        2
    } else {
        usize::from(percent.abs() < 99.95)
    };
    let text = format!("{percent:+.decimals$} %");
    if text.chars().any(|c| c.is_ascii_digit() && c != '0') {
        text.replace('-', "\u{2212}")
    } else {
        "0 %".to_owned()
    }
}

/// Writes a share in percent: `0.013 %`.
pub fn share(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        0.0 => "none".to_owned(),
        small if small < 0.001 => "less than 0.001 %".to_owned(),
        percent => format!("{} %", digits(percent, 3)),
    }
}

/// Writes a size: `64 B`, `1 KiB`, `1.5 MiB`.
pub fn bytes(size: u64) -> String {
    let fits = SIZES.iter().rev().find(|(_, unit)| size as f64 >= *unit);
    let (name, unit) = fits.copied().unwrap_or(SIZES[0]);
    let number = format!("{:.2}", size as f64 / unit);
    let number = number.trim_end_matches('0').trim_end_matches('.');
    format!("{} {name}", grouped(number))
}

/// Writes a measured group: `allreduce of 8 B among 4 ranks`.
pub fn group(key: &GroupKey) -> String {
    format!(
        "{} of {} among {}",
        key.operation,
        bytes(key.bytes),
        counted(key.ranks as usize, "rank", "ranks")
    )
}

/// Writes a count: `1,234,567`.
pub fn count(number: u64) -> String {
    grouped(&number.to_string())
}

/// Writes a number without trailing zeros, with at most three digits after the point.
pub fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    grouped(text.trim_end_matches('0').trim_end_matches('.'))
}

/// Returns a number as it was before its digits were grouped; other texts as they are.
pub fn ungrouped(text: &str) -> Cow<'_, str> {
    let digits = text.replace(',', "");
    match text.contains(',') && digits.parse::<f64>().is_ok() && grouped(&digits) == text {
        true => Cow::Owned(digits),
        false => Cow::Borrowed(text),
    }
}

/// Returns the quantity that a text begins with, by which a column is sorted: in nanoseconds, bytes or percent if it has
/// such a unit. A range counts as its beginning.
pub fn quantity(text: &str) -> Option<f64> {
    let text = text.trim().replace('\u{2212}', "-").replace(',', "");
    match text.as_str() {
        "none" => return Some(0.0),
        // Smaller than every share that is shown as a number, and not zero.
        "less than 0.001 %" => return Some(0.000_5),
        _ => {}
    }
    let mut words = text.split(' ');
    let number: f64 = words.next()?.trim_start_matches('+').parse().ok()?;
    let unit = match words.next() {
        Some("to") => words.nth(1),
        other => other,
    };
    let unit = TIMES
        .iter()
        .chain(&SIZES)
        .find(|(name, _)| Some(*name) == unit);
    Some(number * unit.map_or(1.0, |(_, length)| *length)).filter(|value| value.is_finite())
}

/// Joins texts.
pub fn joined(texts: impl IntoIterator<Item = impl AsRef<str>>, between: &str) -> String {
    let mut all = String::new();
    for (number, text) in texts.into_iter().enumerate() {
        if number > 0 {
            all += between;
        }
        all += text.as_ref();
    }
    all
}

/// Writes a number of things: `1 rank`, `2 ranks`.
pub fn counted(number: usize, singular: &str, plural: &str) -> String {
    format!(
        "{} {}",
        count(number as u64),
        if number == 1 { singular } else { plural }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_four_digits_and_a_unit() {
        let shown = [
            0.0, 0.5, 12.0, 375.25, 999.96, 1_024.0, 123_456.0, 1e6, 59e9, 86_400e9, -5_500.0,
        ]
        .map(time);
        let expected = [
            "0.000 ns",
            "0.500 ns",
            "12.00 ns",
            "375.2 ns",
            "1.000 us",
            "1.024 us",
            "123.5 us",
            "1.000 ms",
            "59.00 s",
            "86,400 s",
            "-5.500 us",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn zero_has_no_sign() {
        let shown = [-0.4, -0.0, 0.4, -0.5, -0.6, 1.0];
        let shown = shown.map(|value| format!("{:.0}", without_negative_zero(value, 0)));
        assert_eq!(shown, ["0", "0", "0", "0", "-1", "1"]);
        assert_eq!(without_negative_zero(-0.000_6, 3), -0.000_6);
    }

    #[test]
    fn sizes_have_binary_units() {
        let shown = [
            0,
            8,
            1_023,
            1_024,
            1_536,
            32_768,
            1 << 20,
            (1 << 20) + 8,
            1 << 31,
        ]
        .map(bytes);
        assert_eq!(
            shown,
            [
                "0 B", "8 B", "1,023 B", "1 KiB", "1.5 KiB", "32 KiB", "1 MiB", "1 MiB", "2 GiB"
            ]
        );
    }

    #[test]
    fn counts_are_grouped_and_shares_have_a_sign() {
        assert_eq!(
            [7, 1_234, 12_345, 10_000_000].map(count),
            ["7", "1,234", "12,345", "10,000,000"]
        );
        let shown = [0.0, 0.001_234, -0.05, 0.123, 2.5, -0.000_01].map(percent);
        assert_eq!(
            shown,
            [
                "0 %",
                "+0.12 %",
                "\u{2212}5.00 %",
                "+12.3 %",
                "+250 %",
                "0 %"
            ]
        );
        assert_eq!(
            (
                counted(1, "launch", "launches"),
                counted(2, "launch", "launches")
            ),
            ("1 launch".into(), "2 launches".into())
        );
    }

    #[test]
    fn quantities_are_read_from_their_texts() {
        let read = [
            "375.2 ns",
            "1.024 us",
            "86,400 s",
            "1.5 KiB",
            "\u{2212}5.00 %",
            "+12.3 %",
            "12,345 (0.3 %)",
            "6 to 7 ms",
            "900 to 1,000 ns",
            "2.1e-9",
            "none",
        ]
        .map(quantity);
        let expected = [
            375.2, 1_024.0, 86.4e12, 1_536.0, -5.0, 12.3, 12_345.0, 6e6, 900.0, 2.1e-9, 0.0,
        ]
        .map(Some);
        assert_eq!(read, expected);
        let texts = ["", "–", "launch-010", "0-60:4", "us", "infinity", "NaN"];
        assert_eq!(texts.map(quantity), [None; 7]);
        let small = ["none", "less than 0.001 %", "0.001 %"].map(quantity);
        assert!(small.is_sorted() && small[0] < small[1] && small[1] < small[2]);
    }

    #[test]
    fn only_grouped_numbers_are_ungrouped() {
        assert_eq!(
            ["1,234", "-12,345.5", "12", "1,2", "a, b", "1,234 ns"].map(ungrouped),
            ["1234", "-12345.5", "12", "1,2", "a, b", "1,234 ns"]
        );
    }
}
