//! `Latch` under the C11 memory model: loom runs every interleaving, and every value that a load may return.
//!
//! Among them are those in which a writer stops half-way until all readers are done: a reader that waits for it would
//! spin until loom gave up on it. (So the latch's spin hint is not loom's, which would let the writer go on.)
//!
//! `RUSTFLAGS="--cfg downbeat_loom" cargo test --release --manifest-path tests/loom/Cargo.toml --test latch -- --nocapture`

use std::sync::atomic::{AtomicUsize, Ordering};

use downbeat_clock_core::latch::Latch;
use downbeat_loom::explore;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// Returns the words of the `count`-th value; a mixture of two values is invalid.
fn words(count: u64) -> [u64; 2] {
    [count, !count]
}

/// Reads `times` times and returns the values; checks that they are whole, and never older than the one before.
fn read(latch: &Latch<2>, times: usize) -> Vec<u64> {
    let counts = (0..times).map(|_| {
        let seen = latch.read();
        assert_eq!(seen, words(seen[0]), "words of two values");
        seen[0]
    });
    let counts: Vec<u64> = counts.collect();
    assert!(
        counts.is_sorted(),
        "an older value after a newer one: {counts:?}"
    );
    counts
}

/// Publishes the values 1 to `last`.
fn publish(latch: &Latch<2>, last: u64) {
    let mut writer = latch.writer().expect("nobody else publishes");
    (1..=last).for_each(|count| writer.publish(words(count)));
}

/// Explores one writer against readers with their numbers of reads. Every value must be read in some execution: a model in
/// which they never meet would prove nothing.
fn writer_against(
    name: &str,
    preemptions: Option<usize>,
    reads: &'static [usize],
    publications: u64,
) {
    let met = std::sync::Arc::new([const { AtomicUsize::new(0) }; 3]);
    let meetings = std::sync::Arc::clone(&met);

    explore(name, preemptions, move || {
        let latch = Arc::new(Latch::new(0, words(0)));
        let readers: Vec<_> = reads
            .iter()
            .map(|&times| {
                let (latch, meetings) = (Arc::clone(&latch), std::sync::Arc::clone(&meetings));
                thread::spawn(move || {
                    for count in read(&latch, times) {
                        meetings[count as usize].fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        publish(&latch, publications);
        readers
            .into_iter()
            .for_each(|reader| reader.join().expect("a reader panicked"));
        assert_eq!(
            latch.read(),
            words(publications),
            "what was published last stays"
        );
    });

    let seen = &met[..=publications as usize];
    assert!(
        seen.iter().all(|times| times.load(Ordering::Relaxed) > 0),
        "a value that no reader saw: {seen:?}"
    );
}

#[test]
fn one_reader() {
    writer_against("one reader, twice", None, &[2], 1);
}

#[test]
fn one_reader_of_two_publications() {
    writer_against("one reader, two publications", Some(3), &[1], 2);
}

#[test]
fn one_reader_twice_of_two_publications() {
    writer_against("one reader, twice, two publications", Some(2), &[2], 2);
}

/// Readers write nothing, so that they cannot disturb each other: few executions show that this is still true.
#[test]
fn two_readers() {
    writer_against("two readers", Some(2), &[1, 1], 1);
}

/// A value that was withdrawn right before readers would see it, as a slew that comes too late.
#[test]
fn a_refused_value() {
    explore("a refused value", Some(3), || {
        let latch = Arc::new(Latch::new(0, words(0)));
        let reader = thread::spawn({
            let latch = Arc::clone(&latch);
            move || read(&latch, 2)
        });
        let mut writer = latch.writer().expect("nobody else publishes");
        assert!(!writer.publish_if(words(9), || false));
        let seen = reader.join().expect("a reader panicked");
        assert_eq!(seen, [0, 0], "a value that was not published");
        writer.publish(words(1));
        assert_eq!(latch.read(), words(1));
    });
}

/// Two threads publish: one at a time, and the second continues from the value of the first.
#[test]
fn one_writer_at_a_time() {
    explore("two writers", None, || {
        let latch = Arc::new(Latch::new(0, words(0)));
        // Loom objects to accesses of a cell that do not happen one after the other.
        let guarded = Arc::new(UnsafeCell::new(()));
        let publish_next = |latch: &Latch<2>, guarded: &UnsafeCell<()>| {
            let Some(mut writer) = latch.writer() else {
                return 0;
            };
            // First and last, so that only acquiring and releasing the writer order these accesses, not `publish`.
            guarded.with_mut(|_| ());
            writer.publish(words(latch.read()[0] + 1));
            guarded.with_mut(|_| ());
            1
        };

        let other = thread::spawn({
            let (latch, guarded) = (Arc::clone(&latch), Arc::clone(&guarded));
            // Twice: a refused claim must not free the claim of the other thread.
            move || publish_next(&latch, &guarded) + publish_next(&latch, &guarded)
        });
        let published =
            publish_next(&latch, &guarded) + other.join().expect("the other writer panicked");
        assert!(published > 0, "neither could publish");
        assert_eq!(latch.read(), words(published), "a publication was lost");
    });
}
