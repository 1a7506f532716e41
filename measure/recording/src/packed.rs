//! Words of records as bytes: numbers of variable length, readings of the counter as
//! differences.

use downbeat_files::Flaw;
use downbeat_files::varint::{self, put_signed, write_varint};

use crate::record::{Record, Records, kind, layout, rank};

/// Contents of a block, packed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PackedBlock {
    /// Definitions, each with a line end.
    pub(crate) texts: String,
    /// Records of the thread that created the block, then those of each thread that went
    /// on in it.
    pub(crate) threads: Vec<PackedThread>,
    /// Number of calls: entered, folded, and not recorded.
    pub(crate) calls: u64,
    /// Reading of the counter in the first record that has one.
    pub(crate) first: Option<u64>,
    /// Reading of the counter since which calls are missing, if any are.
    pub(crate) gap: Option<u64>,
}

/// Records of a thread in a block, packed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PackedThread {
    /// Number of the thread.
    pub(crate) thread: u32,
    /// Bytes of the records.
    pub(crate) bytes: Vec<u8>,
    /// Number of records.
    pub(crate) records: u64,
    /// Last reading of the counter.
    ticks: u64,
}

impl PackedBlock {
    /// Packs the words of a block that this thread created.
    pub(crate) fn pack(thread: u32, words: &[u64]) -> Self {
        let (mut block, mut packed) = (Self::default(), PackedThread::new(thread));
        for (record, text) in Records(words) {
            match record.kind() {
                kind::TEXT => block.texts.extend([&text, "\n"]),
                kind::THREAD => {
                    let next = PackedThread::new(record.communicator());
                    block.threads.push(std::mem::replace(&mut packed, next));
                }
                _ => {
                    packed.push(&record);
                    block.calls = block.calls.saturating_add(record.calls());
                    block.first = [block.first, record.ticks()].into_iter().flatten().min();
                    block.gap = [block.gap, record.gap()].into_iter().flatten().min();
                }
            }
        }
        block.threads.push(packed);
        block
    }

    /// Number of records.
    pub(crate) fn records(&self) -> u64 {
        self.threads.iter().map(|thread| thread.records).sum()
    }
}

/// Returns the definitions in the words of a block, each with a line end.
pub(crate) fn definitions_in(words: &[u64]) -> String {
    let texts = Records(words).filter(|(record, _)| record.kind() == kind::TEXT);
    texts.map(|(_, text)| text + "\n").collect()
}

impl PackedThread {
    fn new(thread: u32) -> Self {
        let empty = Self::default();
        Self { thread, ..empty }
    }

    fn push(&mut self, record: &Record) {
        self.records += 1;
        // Kind and flags take four bits each.
        let head = record.head;
        self.bytes.push((head & 0xf | (head >> 8 & 0xf) << 4) as u8);
        write_varint(&mut self.bytes, head >> 16 & 0xffff);
        write_varint(&mut self.bytes, head >> 32);
        let fields = layout(head).unwrap_or_default();
        for (word, field) in record.rest.into_iter().zip(fields) {
            match field {
                b't' => {
                    let by = word.wrapping_sub(std::mem::replace(&mut self.ticks, word));
                    put_signed(&mut self.bytes, by as i64);
                }
                b'e' => {
                    put_signed(&mut self.bytes, (word as u32 as i32).into());
                    put_signed(&mut self.bytes, ((word >> 32) as u32 as i32).into());
                }
                _ => write_varint(&mut self.bytes, word),
            }
        }
    }
}

/// Packed records, which are unpacked one by one.
#[derive(Debug, Default)]
pub(crate) struct PackedRecords {
    pub(crate) bytes: Vec<u8>,
    at: usize,
    /// Offset of the bytes in their file.
    offset: u64,
    ticks: u64,
}

impl PackedRecords {
    /// Takes the bytes of packed records, with their offset in their file.
    pub(crate) fn new(bytes: Vec<u8>, offset: u64) -> Self {
        Self {
            bytes,
            offset,
            ..Self::default()
        }
    }

    /// Unpacks the next record; `None` at the end.
    ///
    /// # Errors
    /// If these are not bytes of packed records.
    pub(crate) fn next_record(&mut self) -> Result<Option<Record>, Flaw> {
        if self.at >= self.bytes.len() {
            return Ok(None);
        }
        let first = u64::from(self.byte()?);
        let (call, value): (u16, u32) = (self.number()?, self.number()?);
        let head = first & 0xf | first >> 4 << 8 | u64::from(call) << 16 | u64::from(value) << 32;
        let Some(fields) = layout(head).filter(|fields| !fields.is_empty()) else {
            return Err(self.flaw("no record begins like this"));
        };
        let mut record = Record::new(head, []);
        record.count = fields.len();
        for (word, field) in record.rest.iter_mut().zip(fields) {
            *word = match field {
                b't' => {
                    self.ticks = self.ticks.wrapping_add(self.signed::<i64>()? as u64);
                    self.ticks
                }
                b'e' => rank(self.signed()?) | rank(self.signed()?) << 32,
                _ => self.number()?,
            };
        }
        Ok(Some(record))
    }

    fn byte(&mut self) -> Result<u8, Flaw> {
        let byte = self.bytes.get(self.at).copied();
        self.at += 1;
        byte.ok_or_else(|| self.flaw("a record is cut off here"))
    }

    fn number<T: TryFrom<u64>>(&mut self) -> Result<T, Flaw> {
        let number = varint::read(|| self.byte())?;
        let number = number.and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| self.flaw("a number is too large"))
    }

    fn signed<T: TryFrom<i64>>(&mut self) -> Result<T, Flaw> {
        let number = T::try_from(varint::to_signed(self.number()?));
        number.map_err(|_| self.flaw("a number is too large"))
    }

    fn flaw(&self, why: &str) -> Flaw {
        Flaw::Byte(self.offset + self.at as u64, why.to_owned())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::record::tests::{example_words, examples, written};

    /// Packs the records of one thread.
    pub(crate) fn pack_one(words: &[u64]) -> PackedBlock {
        PackedBlock::pack(0, words)
    }

    #[test]
    fn records_are_unpacked_as_they_were_packed() {
        let packed = pack_one(&example_words());
        assert_eq!(packed.texts, "process 1 2 häuschen\n\n");
        let others = examples();
        assert_eq!(packed.records(), others.len() as u64);
        let mut records = PackedRecords::new(packed.threads[0].bytes.clone(), 0);
        let mut found = vec![];
        while let Some(record) = records.next_record().unwrap() {
            found.push(record);
        }
        assert_eq!(found, others);
    }

    #[test]
    fn what_a_killed_rank_began_is_left_out() {
        let enter = |ticks| Record::call_entered(1, None, ticks);
        let mut words = written(&[enter(5), enter(9)]);
        words[3] = 0;
        words.extend([0; 100]);
        assert_eq!(pack_one(&words).records(), 1);
        assert_eq!(pack_one(&words[..2]).records(), 1);
        assert_eq!(pack_one(&words[..1]).records(), 0);
    }

    #[test]
    fn a_send_takes_few_bytes() {
        let mut records = vec![];
        for call in 0..1_000 {
            let ticks = (1 << 50) + call * 5_000;
            records.push(Record::call_entered(3, None, ticks));
            records.push(Record::message_sent(crate::Envelope {
                communicator: 0,
                peer: 700,
                tag: 1_000,
                bytes: Some(100_000),
            }));
            records.push(Record::call_left(3, false, ticks + 2_000));
        }
        assert!(pack_one(&written(&records)).threads[0].bytes.len() <= 24 * 1_000);
    }

    #[test]
    fn hostile_bytes_are_refused_without_a_panic() {
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..20_000 {
            let length = random.usize(..40);
            let bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
            let mut records = PackedRecords::new(bytes, 0);
            while let Ok(Some(record)) = records.next_record() {
                let _ = (record.message(), record.operation());
                let _ = (record.ticks(), record.calls(), record.gap());
            }
        }
    }
}
