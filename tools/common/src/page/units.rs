//! Texts of numbers: times and sizes with a unit, shares in percent.

use downbeat_records::GroupKey;

/// Units of time, and their lengths in nanoseconds.
const TIMES: [(&str, f64); 4] = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];

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

/// Writes a time with four digits: `375.2 ns`, `1.024 µs`.
pub fn time(nanos: f64) -> String {
    // 999.96 ns are 1.000 µs.
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
    let (unit, name) = match size {
        0..1_024 => return format!("{size} B"),
        1_024..1_048_576 => (1_024.0, "KiB"),
        1_048_576..1_073_741_824 => (1_048_576.0, "MiB"),
        _ => (1_073_741_824.0, "GiB"),
    };
    let number = format!("{:.2}", size as f64 / unit);
    format!(
        "{} {name}",
        number.trim_end_matches('0').trim_end_matches('.')
    )
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

/// Writes a count with narrow spaces: `1 234 567`.
pub fn count(number: u64) -> String {
    grouped(&number.to_string())
}

/// Writes a number without trailing zeros, with at most three digits after the point.
pub fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Groups the digits before the point by three, if there are more than four.
fn grouped(number: &str) -> String {
    let end = number.find('.').unwrap_or(number.len());
    let start = usize::from(number.starts_with('-'));
    if end - start < 5 {
        return number.to_owned();
    }
    let mut text = number[..start].to_owned();
    for (i, digit) in number[start..end].chars().enumerate() {
        if i > 0 && (end - start - i).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text + &number[end..]
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
            "1.000 µs",
            "1.024 µs",
            "123.5 µs",
            "1.000 ms",
            "59.00 s",
            "86\u{202f}400 s",
            "-5.500 µs",
        ];
        assert_eq!(shown, expected);
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
                "0 B", "8 B", "1023 B", "1 KiB", "1.5 KiB", "32 KiB", "1 MiB", "1 MiB", "2 GiB"
            ]
        );
    }

    #[test]
    fn counts_are_grouped_and_shares_have_a_sign() {
        assert_eq!(
            [7, 1_234, 12_345, 10_000_000].map(count),
            ["7", "1234", "12\u{202f}345", "10\u{202f}000\u{202f}000"]
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
}
