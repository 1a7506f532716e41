//! Hashes that look random (SplitMix64).

/// Increment of SplitMix64: the golden ratio, in units of 2^-64.
pub const SPLITMIX_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Finalizer of SplitMix64 (Steele, Lea and Flood 2014): every bit of the result depends on every
/// bit.
pub fn scramble(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
