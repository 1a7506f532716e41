//! A checksum inside the file that it protects.
//!
//! The Parquet reader trusts its input: damage can make it panic or read wrong numbers. Therefore
//! the metadata contains the CRC-32 of the file, computed with zeros in the place of the checksum.

/// Placeholder for the checksum. It must not occur again after its place.
pub(super) const UNKNOWN: &str = "downbeat crc32 00000000";
const ZEROS: &[u8] = b"00000000";
const BEGIN: &[u8] = b"downbeat crc32 ";

/// Replaces the placeholder by the checksum; returns false if there is none.
pub(super) fn seal(file: &mut [u8]) -> bool {
    let Some((place, checksum)) = compute(file) else {
        return false;
    };
    file[place..place + ZEROS.len()].copy_from_slice(format!("{checksum:08x}").as_bytes());
    true
}

/// True if the checksum is correct.
pub(super) fn is_sound(file: &[u8]) -> bool {
    compute(file).is_some_and(|(place, checksum)| {
        file[place..].starts_with(format!("{checksum:08x}").as_bytes())
    })
}

/// Finds the offset of the checksum and computes its correct value.
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
    fn every_change_is_detected() {
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
