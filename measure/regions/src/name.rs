//! Names of regions.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Maximum length of a name in bytes; longer names are shortened.
pub const LONGEST_NAME: usize = 200;

/// Name that a region is recorded by.
///
/// Any name is allowed. An empty name becomes `(unnamed)`, control characters are escaped, and a
/// name longer than [`LONGEST_NAME`] is cut and gets a hash of the whole, so that different names
/// stay different.
pub(super) fn recorded(name: &str) -> Cow<'_, str> {
    if name.is_empty() {
        return "(unnamed)".into();
    }
    let name: Cow<'_, str> = if name.contains(breaks_lines) {
        escaped(name).into()
    } else {
        name.into()
    };
    if name.len() <= LONGEST_NAME {
        return name;
    }
    let end = (0..=LONGEST_NAME - 20)
        .rev()
        .find(|end| name.is_char_boundary(*end))
        .unwrap_or(0);
    format!("{}...#{:016x}", &name[..end], fnv(name.as_bytes())).into()
}

/// Control characters, and the line and paragraph separators of Unicode.
fn breaks_lines(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

fn escaped(name: &str) -> String {
    let mut text = String::with_capacity(2 * name.len());
    for c in name.chars() {
        // Writing to a string cannot fail.
        let _ = if breaks_lines(c) {
            write!(text, "{}", c.escape_default())
        } else {
            write!(text, "{c}")
        };
    }
    text
}

/// Hash function of Fowler, Noll and Vo: the same on every rank.
fn fnv(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_names_are_kept() {
        for name in [
            "physics",
            "pcg_chrongear iteration",
            "a | b",
            "größer",
            &"x".repeat(LONGEST_NAME),
        ] {
            assert_eq!(recorded(name), name);
        }
    }

    #[test]
    fn names_that_would_spoil_a_report_are_replaced() {
        assert_eq!(recorded(""), "(unnamed)");
        assert_eq!(recorded("a\nb\u{7}\u{2028}"), "a\\nb\\u{7}\\u{2028}");
        let long = "ä".repeat(5_000);
        let (one, other) = (recorded(&long).into_owned(), format!("{long}x"));
        assert!(one.len() <= LONGEST_NAME && one.starts_with("ää"), "{one}");
        assert_ne!(one, recorded(&other), "two long names remain two");
        let controls = "\n".repeat(10_000);
        assert!(recorded(&controls).len() <= LONGEST_NAME);
    }

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
