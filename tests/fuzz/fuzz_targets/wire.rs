//! Reports of regions from another rank: rank 0 of two gathers what the input says that the other one sends.
#![no_main]

use std::cell::Cell;

use downbeat_clock_core::Duration;
use downbeat_regions::{Overhead, Profile, RegionProfile, TextOptions, gather};
use downbeat_sync::payload::{MAX_WORDS, Payload, Words};
use downbeat_sync::{Comm, CommError, block_on_ready};
use libfuzzer_sys::fuzz_target;

/// Rank 0 of two; the other one sends these bytes.
struct Scripted<'a>(Cell<&'a [u8]>);

impl Scripted<'_> {
    fn take(&self, length: usize) -> Result<&[u8], CommError> {
        let (taken, rest) = self
            .0
            .get()
            .split_at_checked(length)
            .ok_or(CommError::Left { rank: 1 })?;
        self.0.set(rest);
        Ok(taken)
    }
}

impl Comm for Scripted<'_> {
    fn rank(&self) -> u32 {
        0
    }

    fn size(&self) -> u32 {
        2
    }

    async fn send<P: Payload>(&self, _: u32, _: P) -> Result<(), CommError> {
        Ok(())
    }

    async fn send_sync<P: Payload>(&self, _: u32, _: P) -> Result<(), CommError> {
        Ok(())
    }

    async fn recv<P: Payload>(&self, from: u32) -> Result<P, CommError> {
        let mut words: Words = [0; MAX_WORDS];
        for word in &mut words[..P::WORDS] {
            let bytes = self.take(8)?;
            *word = bytes
                .iter()
                .rev()
                .fold(0, |word, byte| word << 8 | u64::from(*byte));
        }
        let other = CommError::WrongLength {
            from,
            expected: P::WORDS,
            found: 0,
        };
        P::get(&words).ok_or(other)
    }

    async fn recv_bytes(&self, _: u32, bytes: &mut [u8]) -> Result<(), CommError> {
        bytes.copy_from_slice(self.take(bytes.len())?);
        Ok(())
    }

    async fn split(&self, _: Option<u32>, _: u32) -> Result<Option<Self>, CommError> {
        Ok(None)
    }
}

fuzz_target!(|data: &[u8]| {
    let own = Profile::new(
        "clock",
        Duration::from_nanos(1),
        Overhead::default(),
        vec![RegionProfile::new("a"), RegionProfile::new("b")],
    );
    let comm = Scripted(Cell::new(data));
    if let Ok(Some(report)) = block_on_ready(gather(&own, &comm)) {
        let _ = report.text(&TextOptions::default());
    }
});
