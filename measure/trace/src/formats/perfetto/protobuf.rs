//! Encoding of Protocol Buffers: numbered fields, one after the other.

use downbeat_files::varint::write_varint;

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH: u32 = 2;

fn tag(to: &mut Vec<u8>, field: u32, wire_type: u32) {
    write_varint(to, (field << 3 | wire_type).into());
}

/// Adds a number.
#[inline]
pub(super) fn number(to: &mut Vec<u8>, field: u32, number: u64) {
    tag(to, field, VARINT);
    write_varint(to, number);
}

/// Adds a number of eight bytes.
pub(super) fn fixed64(to: &mut Vec<u8>, field: u32, number: u64) {
    tag(to, field, FIXED64);
    to.extend_from_slice(&number.to_le_bytes());
}

/// Adds a string.
pub(super) fn text(to: &mut Vec<u8>, field: u32, text: &str) {
    message(to, field, |to| to.extend_from_slice(text.as_bytes()));
}

/// Adds a nested message, whose fields `fill` adds.
#[inline]
pub(super) fn message(to: &mut Vec<u8>, field: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    tag(to, field, LENGTH);
    let at = to.len();
    // The length fits in one byte, except for long texts.
    to.push(0);
    fill(to);
    let length = to.len() - at - 1;
    if length < 0x80 {
        to[at] = length as u8;
    } else {
        let mut number = vec![];
        write_varint(&mut number, length as u64);
        to.splice(at..=at, number);
    }
}
