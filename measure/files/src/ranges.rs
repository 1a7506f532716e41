//! Lists of whole numbers as ranges: `0-3,7`.

use std::ops::RangeInclusive;

/// Formats numbers as ranges: consecutive ones become their first and last.
pub fn format_ranges(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a.checked_add(1) == Some(*b));
    let runs = runs.map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        _ => run[0].to_string(),
    });
    runs.collect::<Vec<_>>().join(",")
}

/// Parses ranges, of which the last number may be below the first; `None` for another
/// text.
pub fn parse_ranges(text: &str) -> impl Iterator<Item = Option<RangeInclusive<u32>>> {
    text.split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_they_were_written() {
        for (text, numbers) in [
            ("0-3,7,9-10,2", vec![0, 1, 2, 3, 7, 9, 10, 2]),
            ("4", vec![4]),
        ] {
            assert_eq!(format_ranges(&numbers), text);
            let parsed: Option<Vec<_>> = parse_ranges(text).collect();
            assert_eq!(
                parsed.unwrap().into_iter().flatten().collect::<Vec<_>>(),
                numbers
            );
        }
        assert_eq!(
            format_ranges(&[u32::MAX - 1, u32::MAX]),
            "4294967294-4294967295"
        );
        assert!(
            parse_ranges("1,a-2,3-")
                .skip(1)
                .all(|range| range.is_none())
        );
    }
}
