//! Identity of this copy of the library: its version, and the mark of what it makes.

/// Version of the interface: the high 16 bits change when programs must be compiled again, the low ones when it grows.
pub const DOWNBEAT_ABI: u32 = 1 << 16;

/// Its address differs between the copies in a process.
pub(crate) static IDENTITY: u8 = 0;

/// Makes the mark of objects of one kind that this copy made: it alone works on them.
#[inline(always)]
pub(crate) fn mark(kind: u64) -> u64 {
    kind ^ (&raw const IDENTITY).addr() as u64
}

/// Tells if a library of this version works for a program that was compiled with a header of that version.
pub(crate) const fn serves(library: u32, header: u32) -> bool {
    header >> 16 == library >> 16 && header <= library
}

#[cfg(test)]
mod tests {
    use super::serves;

    #[test]
    fn a_library_serves_programs_of_its_age_and_older() {
        let version = |major: u32, minor: u32| major << 16 | minor;
        for older in 0..=3 {
            assert!(serves(version(1, 3), version(1, older)));
        }
        for other in [version(1, 4), version(0, 3), version(2, 0), 0] {
            assert!(!serves(version(1, 3), other));
        }
    }
}
