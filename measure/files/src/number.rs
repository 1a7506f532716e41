//! Exact and fast parsing of numbers, and the grouping of their digits.

/// Parses a finite number, rounded to the nearest `f64`.
///
/// Integers up to 2^53 and powers of ten up to 10^22 are exact, so that their quotient is rounded
/// only once. Almost all run-times are that short; other numbers are parsed by the standard
/// library.
#[inline]
pub fn finite(text: &[u8]) -> Option<f64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    short(digits).map_or_else(
        || general(text),
        |number| Some(if negative { -number } else { number }),
    )
}

#[inline]
fn short(text: &[u8]) -> Option<f64> {
    // 16 digits do not overflow.
    if text.is_empty() || text.len() > 16 || text[0] == b'.' {
        return None;
    }
    let (mut number, mut divisor, mut after_point) = (0_u64, 1_u64, false);
    for byte in text {
        match byte {
            b'0'..=b'9' => {
                number = number * 10 + u64::from(byte - b'0');
                divisor *= if after_point { 10 } else { 1 };
            }
            b'.' if !after_point => after_point = true,
            _ => return None,
        }
    }
    if number > 1 << 53 {
        return None;
    }
    Some(if divisor == 1 {
        number as f64
    } else {
        number as f64 / divisor as f64
    })
}

#[cold]
fn general(text: &[u8]) -> Option<f64> {
    core::str::from_utf8(text)
        .ok()?
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite())
}

/// Parses the decimal digits at the beginning of a text; returns the number and the rest of the
/// text.
#[inline]
pub fn whole(text: &[u8]) -> Option<(u64, &[u8])> {
    let (mut number, mut length) = (0_u64, 0);
    while let Some(digit) = text
        .get(length)
        .map(|byte| byte.wrapping_sub(b'0'))
        .filter(|digit| *digit < 10)
    {
        number = number.checked_mul(10)?.checked_add(digit.into())?;
        length += 1;
    }
    (length > 0).then(|| (number, &text[length..]))
}

/// Groups the digits before the point by three: `1,234.5`.
pub fn grouped(number: &str) -> String {
    let end = number.find('.').unwrap_or(number.len());
    let start = usize::from(number.starts_with('-'));
    let mut text = number[..start].to_owned();
    for (i, digit) in number[start..end].chars().enumerate() {
        if i > 0 && (end - start - i) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text + &number[end..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Option<u64> {
        finite(text.as_bytes()).map(f64::to_bits)
    }

    /// The result of the standard library.
    fn expected(text: &str) -> Option<u64> {
        text.parse()
            .ok()
            .filter(|number: &f64| number.is_finite())
            .map(f64::to_bits)
    }

    proptest! {
        #[test]
        fn every_number_is_read_as_it_was_written(number in any::<f64>(), whole in any::<i64>(), thousandths in any::<i32>()) {
            for number in [number, whole as f64, f64::from(thousandths) / 1e3] {
                prop_assert_eq!(read(&number.to_string()), number.is_finite().then(|| number.to_bits()));
            }
        }

        #[test]
        fn every_text_is_taken_as_the_standard_library_takes_it(text in "-?[0-9.eE+-]{0,18}", digits in "-?[0-9]{0,17}\\.[0-9]{0,17}") {
            prop_assert_eq!(read(&text), expected(&text));
            prop_assert_eq!(read(&digits), expected(&digits));
        }

        #[test]
        fn integers_end_at_the_first_other_character(number in any::<u64>(), rest in "[^0-9]{0,3}") {
            let text = format!("{number}{rest}");
            prop_assert_eq!(whole(text.as_bytes()), Some((number, rest.as_bytes())));
        }
    }

    #[test]
    fn odd_numbers() {
        for text in [
            "0",
            "-0",
            "5.",
            ".5",
            "-",
            "",
            ".",
            "1e3",
            "9007199254740993",
            "9007199254740992",
            "1e400",
            "1_0",
        ] {
            assert_eq!(read(text), expected(text), "{text}");
        }
        for text in ["NaN", "inf", "-infinity", "1 ", " 1", "0x1", "--1", "1.2.3"] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(finite(b"\xff"), None);
        assert_eq!(
            (
                whole(b""),
                whole(b"x"),
                whole(b"-1"),
                whole(b"18446744073709551616")
            ),
            (None, None, None, None)
        );
    }
}
