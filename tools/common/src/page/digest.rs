//! SHA-256, by which a page tells a browser the only script that it may run.

/// First 32 bits of the fractional parts of the square roots of the first 8 primes.
const START: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// Returns the SHA-256 of a text in base 64.
pub(super) fn sha256(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let bits = 8 * bytes.len() as u64;
    bytes.push(0x80);
    while bytes.len() % 64 != 56 {
        bytes.push(0);
    }
    bytes.extend(bits.to_be_bytes());
    let (constants, mut state) = (constants(), START);
    for block in bytes.chunks_exact(64) {
        let mixed = mix(&state, block, &constants);
        for (sum, word) in state.iter_mut().zip(mixed) {
            *sum = sum.wrapping_add(word);
        }
    }
    let digest: Vec<u8> = state.iter().flat_map(|word| word.to_be_bytes()).collect();
    base64(&digest)
}

/// Returns the first 32 bits of the fractional parts of the cube roots of the first 64 primes.
fn constants() -> [u32; 64] {
    let is_prime = |number: &u128| (2..*number).all(|divisor| !number.is_multiple_of(divisor));
    let mut primes = (2..).filter(is_prime);
    std::array::from_fn(|_| cube_root_fraction(primes.next().unwrap_or(2)))
}

/// Returns the first 32 bits of the fractional part of a cube root.
fn cube_root_fraction(number: u128) -> u32 {
    let scaled = number << 96;
    let (mut low, mut high) = (0_u128, 1 << 36);
    while high - low > 1 {
        let middle = u128::midpoint(low, high);
        match middle * middle * middle <= scaled {
            true => low = middle,
            false => high = middle,
        }
    }
    low as u32
}

/// Returns the state after the rounds of a block.
fn mix(state: &[u32; 8], block: &[u8], constants: &[u32; 64]) -> [u32; 8] {
    let mut words = [0_u32; 64];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes
            .iter()
            .fold(0, |word, byte| word << 8 | u32::from(*byte));
    }
    for i in 16..64 {
        let (early, late) = (words[i - 15], words[i - 2]);
        let early = early.rotate_right(7) ^ early.rotate_right(18) ^ early >> 3;
        let late = late.rotate_right(17) ^ late.rotate_right(19) ^ late >> 10;
        words[i] = words[i - 16]
            .wrapping_add(early)
            .wrapping_add(words[i - 7])
            .wrapping_add(late);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (word, constant) in words.iter().zip(constants) {
        let turned = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let chosen = e & f ^ !e & g;
        let first = [turned, chosen, *constant, *word]
            .into_iter()
            .fold(h, u32::wrapping_add);
        let turned = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let second = turned.wrapping_add(a & b ^ a & c ^ b & c);
        (h, g, f, e) = (g, f, e, d.wrapping_add(first));
        (d, c, b, a) = (c, b, a, first.wrapping_add(second));
    }
    [a, b, c, d, e, f, g, h]
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0_u32, |bits, i| {
            bits << 8 | u32::from(group.get(i).copied().unwrap_or(0))
        });
        for i in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * i) & 63) as usize];
            text.push(if i <= group.len() {
                char::from(digit)
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of `openssl dgst -sha256 -binary | base64`.
    #[test]
    fn digests_are_those_of_the_standard() {
        let empty = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
        assert_eq!(sha256(""), empty);
        let abc = "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=";
        assert_eq!(sha256("abc"), abc);
        let long = "MeulHDE6XAgiat8Y1KNZz9/Y0ugWsT9K+VL36mWE3Ps=";
        assert_eq!(sha256(&"a".repeat(119)), long);
    }
}
