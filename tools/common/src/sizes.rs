//! Sizes of messages, as given on the command line.

use core::fmt;
use core::str::FromStr;
use std::collections::HashSet;

/// Distinct sizes of messages, in their order on the command line.
///
/// A size is a number (`8`), one with a unit (`1Ki`, `2Mi`, `1Gi`; `1K`, `2M` and `1G` are multiples of 1,000) or a power
/// (`2^10`). `8..1Ki*2` is 8, 16, 32 and so on, `0..100+25` is 0, 25, 50 and so on, each up to its end. Sizes are
/// separated by commas; spaces are ignored.
///
/// ```
/// use downbeat_common::sizes::Sizes;
///
/// let sizes: Sizes = "8, 1Ki, 2^10..2^12*2".parse()?;
/// assert_eq!(sizes.as_slice(), [8, 1024, 2048, 4096]);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes(Vec<u64>);

/// Maximum number of sizes; more are a mistake.
const MAX: usize = 100_000;

impl Sizes {
    /// Returns the sizes, at least one.
    pub fn as_slice(&self) -> &[u64] {
        &self.0
    }
}

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut sizes, mut known) = (Vec::new(), HashSet::new());
        // Duplicates count as well, since they take time.
        let mut remaining = MAX;
        for item in text.split(',').map(str::trim) {
            let range = SizeRange::parse(item)?;
            let mut next = Some(range.first);
            while let Some(size) = next.filter(|size| *size <= range.last) {
                remaining = remaining.checked_sub(1).ok_or_else(too_many)?;
                if known.insert(size) {
                    sizes.push(size);
                }
                next = range.step.after(size);
            }
        }
        Ok(Self(sizes))
    }
}

#[derive(Clone, Copy)]
enum SizeStep {
    Times(u64),
    Plus(u64),
}

impl SizeStep {
    fn after(self, size: u64) -> Option<u64> {
        match self {
            Self::Times(factor) => size.checked_mul(factor),
            Self::Plus(step) => size.checked_add(step),
        }
    }
}

struct SizeRange {
    first: u64,
    last: u64,
    step: SizeStep,
}

impl SizeRange {
    fn parse(text: &str) -> Result<Self, String> {
        let Some((first, rest)) = text.split_once("..") else {
            let first = number(text)?;
            // The next size is beyond the last.
            return Ok(Self {
                first,
                last: first,
                step: SizeStep::Plus(1),
            });
        };
        let place = rest.find(['*', '+']).ok_or_else(|| no_step(text))?;
        let (first, last, by) = (
            number(first)?,
            number(&rest[..place])?,
            number(&rest[place + 1..])?,
        );
        let step = if rest[place..].starts_with('*') {
            SizeStep::Times(by)
        } else {
            SizeStep::Plus(by)
        };
        let is_endless = matches!(
            (step, first),
            (SizeStep::Times(0 | 1), _) | (SizeStep::Times(_), 0) | (SizeStep::Plus(0), _)
        );
        if is_endless {
            return Err(endless(text));
        }
        if last < first {
            return Err(reversed(text));
        }
        Ok(Self { first, last, step })
    }
}

/// Parses `8`, `1Ki` or `2^10`.
fn number(text: &str) -> Result<u64, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err(missing());
    }
    if let Some((base, power)) = text.split_once('^') {
        let (base, power) = (digits(base, text)?, digits(power, text)?);
        // All powers of 0 and 1 with an exponent above 0 are equal.
        let power = if base < 2 { power.min(1) } else { power };
        return u32::try_from(power)
            .ok()
            .and_then(|power| base.checked_pow(power))
            .ok_or_else(|| too_large(text));
    }
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (amount, unit) = text.split_at(end);
    let unit = match unit.trim_start() {
        "" => 1,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "K" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        _ => return Err(not_a_size(text)),
    };
    digits(amount, text)?
        .checked_mul(unit)
        .ok_or_else(|| too_large(text))
}

/// Parses digits, which are a part of `whole`.
fn digits(text: &str, whole: &str) -> Result<u64, String> {
    let text = text.trim();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(not_a_size(whole));
    }
    // There are only digits, but there can be too many.
    text.parse().map_err(|_| too_large(whole))
}

/// Written in a canonical form: three or more sizes in a row as a range.
impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_slice();
        let mut comma = "";
        while let [first, ..] = *rest {
            f.write_str(comma)?;
            let (step, count) = longest_range(rest);
            match (step, rest[count - 1]) {
                (SizeStep::Times(factor), last) if count >= 3 => {
                    write!(f, "{first}..{last}*{factor}")?;
                }
                (SizeStep::Plus(step), last) if count >= 3 => write!(f, "{first}..{last}+{step}")?,
                _ => write!(f, "{first}")?,
            }
            rest = &rest[if count >= 3 { count } else { 1 }..];
            comma = ",";
        }
        Ok(())
    }
}

/// Returns the step of the longest range that starts with the first size, and its number of sizes.
fn longest_range(sizes: &[u64]) -> (SizeStep, usize) {
    let [first, second, ..] = *sizes else {
        return (SizeStep::Plus(1), sizes.len());
    };
    if second <= first {
        return (SizeStep::Plus(1), 1);
    }
    let count = |step: SizeStep| {
        1 + sizes
            .windows(2)
            .take_while(|pair| step.after(pair[0]) == Some(pair[1]))
            .count()
    };
    let plus = SizeStep::Plus(second - first);
    // If the sizes fit a factor and a sum, the factor is used.
    let factor = if first > 0 && second % first == 0 {
        Some(SizeStep::Times(second / first))
    } else {
        None
    };
    let steps = factor
        .into_iter()
        .chain([plus])
        .map(|step| (step, count(step)));
    steps.fold(
        (plus, 1),
        |best, found| if found.1 > best.1 { found } else { best },
    )
}

fn missing() -> String {
    "a size is missing, such as 8, 1Ki or 2^10..2^20*2".to_owned()
}

fn not_a_size(text: &str) -> String {
    format!("\"{text}\" is not a size, such as 8, 1Ki or 2^10..2^20*2")
}

fn too_large(text: &str) -> String {
    format!("\"{text}\" does not fit into 64 bits")
}

fn no_step(text: &str) -> String {
    format!("\"{text}\" needs a step, as in 8..64*2 or 8..64+8")
}

fn endless(text: &str) -> String {
    format!("\"{text}\" never reaches its end")
}

fn reversed(text: &str) -> String {
    format!("\"{text}\" ends before it begins")
}

fn too_many() -> String {
    format!("there are more than {MAX} sizes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sizes(text: &str) -> Vec<u64> {
        text.parse::<Sizes>().unwrap().0
    }

    #[test]
    fn sizes_are_numbers_powers_and_ranges() {
        assert_eq!(sizes("0"), [0]);
        assert_eq!(
            sizes("1Ki,2 Mi,1Gi,1K,2M,3G"),
            [1 << 10, 2 << 20, 1 << 30, 1_000, 2_000_000, 3_000_000_000]
        );
        assert_eq!(sizes("2^10,3^0,0^0,0^5,1^99999999999"), [1_024, 1, 0]);
        assert_eq!(sizes("8..64*2"), [8, 16, 32, 64]);
        assert_eq!(sizes("8..63*2"), [8, 16, 32]);
        assert_eq!(sizes("0..10+4, 10 .. 11 + 1"), [0, 4, 8, 10, 11]);
        assert_eq!(sizes("5..5*2,7..7+9"), [5, 7]);
        assert_eq!(sizes("1..2^4*2^2,0..1Ki+512"), [1, 4, 16, 0, 512, 1_024]);
        // The first of several equal sizes is kept.
        assert_eq!(sizes("8,4,8,1..8*2"), [8, 4, 1, 2]);
        assert_eq!(sizes("18446744073709551615,2^63"), [u64::MAX, 1 << 63]);
        // Ranges up to the largest number.
        assert_eq!(sizes("2^62..18446744073709551615*2"), [1 << 62, 1 << 63]);
        assert_eq!(
            sizes("18446744073709551614..18446744073709551615+5"),
            [u64::MAX - 1]
        );
        assert_eq!(sizes("1..100000+1").len(), 100_000);
    }

    #[test]
    fn messages_name_the_invalid_part() {
        let error = |text: &str| text.parse::<Sizes>().unwrap_err();
        for text in [
            "", " ", ",", "8,", ",8", "8,,9", "..", "..8*2", "8..*2", "8..9*", "8..9+",
        ] {
            let found = error(text);
            assert!(
                found == missing() || found == no_step(text),
                "{text}: {found:?}"
            );
        }
        for text in [
            "8abc", "-8", "+8", "8.5", "1e3", "NaN", "1KiB", "1ki", "Ki", "2^", "^2", "2^-1",
            "2^2^2", "2^1Ki", "0x8",
        ] {
            assert_eq!(error(text), not_a_size(text), "{text}");
        }
        assert_eq!(error("8 9"), not_a_size("8 9"));
        assert_eq!(error("8..64*2*2"), not_a_size("2*2"));
        assert_eq!(error("8..16..32*2"), not_a_size("16..32"));
        for text in [
            "18446744073709551616",
            "2^64",
            "17179869184Gi",
            "2^99999999999",
            "99999999999999999999K",
        ] {
            assert_eq!(error(text), too_large(text));
        }
        assert_eq!(error("1..8"), no_step("1..8"));
        for text in ["1..8*1", "1..8*0", "0..8*2", "1..8+0", "8..8*1"] {
            assert_eq!(error(text), endless(text));
        }
        assert_eq!(error("4, 9..8*2"), reversed("9..8*2"));
        assert_eq!(error("1..100001+1"), too_many());
        assert_eq!(error("0..18446744073709551615+1"), too_many());
        assert_eq!(error("1..60000+1,1..60000+1"), too_many());
        assert_eq!(
            error("8abc"),
            "\"8abc\" is not a size, such as 8, 1Ki or 2^10..2^20*2"
        );
    }

    #[test]
    fn lists_are_printed_in_short_form() {
        for (given, printed) in [
            ("8,1Ki,2^10..2^20*2", "8,1024..1048576*2"),
            ("1,2,4,8,16", "1..16*2"),
            ("0,1,2,4,8", "0..2+1,4,8"),
            ("7,5,3", "7,5,3"),
            ("10,20", "10,20"),
            ("10,20,30,50", "10..30+10,50"),
            ("1,2,3,4", "1..4+1"),
            ("0", "0"),
        ] {
            assert_eq!(given.parse::<Sizes>().unwrap().to_string(), printed);
        }
    }

    proptest! {
        #[test]
        fn printed_lists_can_be_parsed(
            list in prop::collection::vec(prop_oneof![0_u64..10, any::<u64>()], 1..40),
            first in 1_u64..100, by in 2_u64..5,
        ) {
            let list = list.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
            for text in [format!("{first}..100000*{by},{list}"), format!("{list},{first}..300+{by}")] {
                let sizes: Sizes = text.parse().unwrap();
                prop_assert_eq!(sizes.to_string().parse(), Ok(sizes));
            }
        }

        #[test]
        fn no_text_panics(text: String, sizes in "[0-9KMi^.*+, ]{0,12}") {
            let _ = text.parse::<Sizes>();
            let _ = sizes.parse::<Sizes>();
        }
    }
}
