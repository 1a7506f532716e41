//! Words of records as bytes: numbers of variable length, readings of the counter as differences.

use downbeat_files::Flaw;
use downbeat_files::varint::{self, put, put_signed};

use crate::block::Block;
use crate::record::{self, Field, fields, is_text};

/// Records of a block, packed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    /// Records other than texts.
    pub bytes: Vec<u8>,
    /// Number of these records.
    pub records: u64,
    /// Number of calls: entered, folded, and not recorded.
    pub calls: u64,
    /// Reading of the counter in the first record that has one.
    pub first: Option<u64>,
    /// Reading of the counter since which calls are missing, if any are.
    pub gap: Option<u64>,
    /// Texts, each with a line end.
    pub texts: String,
}

/// Packs the records in a block, by threads: the one that created it, and those that went on
/// in it.
pub fn pack_block(block: &Block) -> Vec<(u32, Packed)> {
    let (packed, mut rest) = pack_first(block.words());
    let mut all = vec![(block.id.thread, packed)];
    while let Some((&head, words)) = rest.split_first()
        && let Some(thread) = record::thread_after(head)
    {
        let (packed, after) = pack_first(words);
        all.push((thread, packed));
        rest = after;
    }
    all
}

/// Packs the records at the start of these words, up to the first incomplete one or another
/// thread.
pub fn pack(words: &[u64]) -> Packed {
    pack_first(words).0
}

/// Packs the records at the start of these words, and returns the words after them.
fn pack_first(mut words: &[u64]) -> (Packed, &[u64]) {
    let mut packed = Packed::default();
    let (mut ticks, mut text) = (0, String::new());
    while let Some((&head, rest)) = words.split_first() {
        if is_text(head) {
            let Some((_, after)) = record::read(words, &mut text) else {
                break;
            };
            packed.texts.extend([text.trim_end(), "\n"]);
            words = after;
            continue;
        }
        let Some((of, fields, after)) = fields(head).and_then(|fields| {
            Some((rest.get(..fields.len())?, fields, rest.get(fields.len()..)?))
        }) else {
            break;
        };
        // A rank that was killed may have written the first word only.
        if of.first() == Some(&0) && fields.first() == Some(&Field::Ticks) {
            break;
        }
        put_head(&mut packed.bytes, head);
        packed.calls = packed
            .calls
            .saturating_add(record::number_of_calls(head, of));
        if fields.first() == Some(&Field::Ticks) {
            packed.first = packed.first.or(of.first().copied());
        }
        if let Some(since) = record::first_missing(head, of) {
            packed.gap = Some(packed.gap.map_or(since, |gap| gap.min(since)));
        }
        for (word, field) in of.iter().zip(fields) {
            match field {
                Field::Ticks => {
                    let by = word.wrapping_sub(core::mem::replace(&mut ticks, *word));
                    put_signed(&mut packed.bytes, by as i64);
                }
                Field::Ends => {
                    put_signed(&mut packed.bytes, (*word as u32 as i32).into());
                    put_signed(&mut packed.bytes, ((word >> 32) as u32 as i32).into());
                }
                Field::Number => put(&mut packed.bytes, *word),
            }
        }
        packed.records += 1;
        words = after;
    }
    (packed, words)
}

/// Kind and flags take four bits each.
fn put_head(bytes: &mut Vec<u8>, head: u64) {
    bytes.push((head & 0xf | (head >> 8 & 0xf) << 4) as u8);
    put(bytes, head >> 16 & 0xffff);
    put(bytes, head >> 32);
}

/// Puts the words of packed records into `words`.
///
/// # Errors
/// If these are not bytes of packed records; `offset` is that of the first one in its file.
pub fn unpack(bytes: &[u8], offset: u64, words: &mut Vec<u64>) -> Result<(), Flaw> {
    words.clear();
    let mut input = Input {
        bytes,
        at: 0,
        offset,
    };
    let mut ticks = 0_u64;
    while input.at < bytes.len() {
        let first = u64::from(input.byte()?);
        let (call, value) = (input.limited(0xffff)?, input.limited(u32::MAX.into())?);
        let head = first & 0xf | first >> 4 << 8 | call << 16 | value << 32;
        let Some(fields) = fields(head) else {
            return Err(input.flaw("no record begins like this"));
        };
        words.push(head);
        for field in fields {
            words.push(match field {
                Field::Ticks => {
                    ticks = ticks.wrapping_add(input.signed()? as u64);
                    ticks
                }
                Field::Ends => {
                    let mut end = || {
                        let number = i32::try_from(input.signed()?);
                        number.map_err(|_| input.flaw("a rank or tag has more than 32 bits"))
                    };
                    let (peer, tag) = (end()?, end()?);
                    u64::from(peer as u32) | u64::from(tag as u32) << 32
                }
                Field::Number => input.number()?,
            });
        }
    }
    Ok(())
}

/// Bytes that numbers are read from.
struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
    offset: u64,
}

impl Input<'_> {
    fn byte(&mut self) -> Result<u8, Flaw> {
        let byte = self.bytes.get(self.at).copied();
        self.at += 1;
        byte.ok_or_else(|| self.flaw("a record is cut off here"))
    }

    fn number(&mut self) -> Result<u64, Flaw> {
        let number = varint::read(|| self.byte())?;
        number.ok_or_else(|| self.flaw("a number has more than 64 bits"))
    }

    fn limited(&mut self, limit: u64) -> Result<u64, Flaw> {
        let number = self.number()?;
        if number > limit {
            return Err(self.flaw("the number of a call or communicator is too large"));
        }
        Ok(number)
    }

    fn signed(&mut self) -> Result<i64, Flaw> {
        self.number().map(varint::to_signed)
    }

    fn flaw(&self, why: &str) -> Flaw {
        Flaw::Byte(self.offset + self.at as u64, why.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;
    use crate::record::tests::{examples, written};

    #[test]
    fn records_are_unpacked_as_they_were_packed() {
        let packed = pack(&written(&examples()));
        assert_eq!(packed.texts, "process 1 2 häuschen\n\n");
        let mut others = examples();
        others.retain(|record| !matches!(record, Record::Text(_)));
        assert_eq!(packed.records, others.len() as u64);
        let mut words = vec![];
        unpack(&packed.bytes, 0, &mut words).unwrap();
        assert_eq!(words, written(&others));
    }

    #[test]
    fn what_a_killed_rank_began_is_left_out() {
        let enter = |ticks| Record::Enter {
            call: 1,
            collective: None,
            ticks,
        };
        let mut words = written(&[enter(5), enter(9)]);
        words[3] = 0;
        words.extend([0; 100]);
        assert_eq!(pack(&words).records, 1);
        assert_eq!(pack(&words[..2]).records, 1);
        assert_eq!(pack(&words[..1]).records, 0);
    }

    #[test]
    fn a_send_takes_few_bytes() {
        let mut records = vec![];
        for call in 0..1_000 {
            let ticks = (1 << 50) + call * 5_000;
            records.push(Record::Enter {
                call: 3,
                collective: None,
                ticks,
            });
            records.push(Record::Send(crate::Envelope {
                communicator: 0,
                peer: 700,
                tag: 1_000,
                bytes: Some(100_000),
            }));
            records.push(Record::Leave {
                call: 3,
                failed: false,
                ticks: ticks + 2_000,
            });
        }
        assert!(pack(&written(&records)).bytes.len() <= 24 * 1_000);
    }

    #[test]
    fn hostile_bytes_are_refused_without_a_panic() {
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..20_000 {
            let length = random.usize(..40);
            let bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
            let mut words = vec![];
            if unpack(&bytes, 0, &mut words).is_ok() {
                let mut text = String::new();
                let mut rest = &words[..];
                while let Some((_, after)) = record::read(rest, &mut text) {
                    rest = after;
                }
            }
        }
    }
}
