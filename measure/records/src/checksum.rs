//! A checksum within the file that it is of.
//!
//! A library that reads columns in binary takes it that nothing happened to them: damage can make it panic, or find
//! other numbers. So the file says its own CRC-32 in its metadata, taken with zeros in its place.

/// The text of a file that has none yet. It may not come again behind the place where it is to be.
pub(super) const UNKNOWN: &str = "downbeat crc32 00000000";
const ZEROS: &[u8] = b"00000000";
const BEGIN: &[u8] = b"downbeat crc32 ";

/// Puts the checksum into a file; false if it has no place for it.
pub(super) fn seal(file: &mut [u8]) -> bool {
    let Some((place, checksum)) = compute(file) else {
        return false;
    };
    file[place..place + ZEROS.len()].copy_from_slice(format!("{checksum:08x}").as_bytes());
    true
}

/// Whether the file is as it was when it was sealed.
pub(super) fn is_sound(file: &[u8]) -> bool {
    compute(file).is_some_and(|(place, checksum)| {
        file[place..].starts_with(format!("{checksum:08x}").as_bytes())
    })
}

/// Where the checksum stands, and what it should be.
fn compute(file: &[u8]) -> Option<(usize, u32)> {
    let place = file.windows(BEGIN.len()).rposition(|part| part == BEGIN)? + BEGIN.len();
    let mut crc = crc32fast::Hasher::new();
    [&file[..place], ZEROS, file.get(place + ZEROS.len()..)?]
        .iter()
        .for_each(|part| crc.update(part));
    Some((place, crc.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_seen() {
        let mut file = format!("downbeat crc32 before, {UNKNOWN}, after").into_bytes();
        assert!(!is_sound(&file));
        assert!(seal(&mut file) && is_sound(&file));
        for place in 0..file.len() {
            for bit in 0..8 {
                file[place] ^= 1 << bit;
                assert!(!is_sound(&file), "bit {bit} of byte {place}");
                file[place] ^= 1 << bit;
            }
        }
        for length in 0..file.len() {
            assert!(!is_sound(&file[..length]));
        }
        assert!(!seal(&mut b"downbeat crc32 000".to_vec()) && !seal(&mut []));
    }
}
