//! Content of messages.

use downbeat_clock_core::{
    ClockModel, Domain, Duration, ErrorBound, ModelSource, Ticks, Timestamp,
};

/// Number of words of the longest payload: with two more for the sender and the receiver they fill
/// a cache line.
pub const MAX_WORDS: usize = 6;

/// Words of a message; a payload uses the first [`Payload::WORDS`] of them.
pub type Words = [u64; MAX_WORDS];

/// Small value that ranks send to each other.
///
/// ```
/// use downbeat_sync::payload::{Payload, Words};
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// enum Verdict { Go, Stop }
///
/// impl Payload for Verdict {
///     const WORDS: usize = 1;
///     fn put(self, words: &mut Words) {
///         words[0] = self as u64;
///     }
///     fn get(words: &Words) -> Option<Self> {
///         [Self::Go, Self::Stop].into_iter().find(|verdict| *verdict as u64 == words[0])
///     }
/// }
///
/// let mut words = Words::default();
/// Verdict::Stop.put(&mut words);
/// assert_eq!(Verdict::get(&words), Some(Verdict::Stop));
/// ```
pub trait Payload: Copy {
    /// Number of words; a payload of more than [`MAX_WORDS`] does not compile.
    const WORDS: usize;

    /// Writes the value to the first words.
    fn put(self, words: &mut Words);

    /// Reads a value from the first words; `None` if they hold none, because another type was sent.
    fn get(words: &Words) -> Option<Self>;
}

/// Number of bytes of the longest payload.
pub(crate) const MAX_BYTES: usize = MAX_WORDS * size_of::<u64>();

/// Packs at most [`MAX_BYTES`] bytes into words, the lowest byte first.
pub(crate) fn words_of(bytes: &[u8]) -> Words {
    let mut words = Words::default();
    for (word, part) in words.iter_mut().zip(bytes.chunks(size_of::<u64>())) {
        *word = part
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u64::from(*byte));
    }
    words
}

/// Unpacks words into bytes.
pub(crate) fn bytes_of(words: &Words) -> [u8; MAX_BYTES] {
    let mut bytes = [0; MAX_BYTES];
    for (part, word) in bytes.chunks_mut(size_of::<u64>()).zip(words) {
        part.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// Packs a payload into words.
#[inline]
pub(crate) fn to_words<P: Payload>(payload: P) -> Words {
    const {
        assert!(
            P::WORDS <= MAX_WORDS,
            "the payload does not fit into a message"
        );
    };
    let mut words = Words::default();
    payload.put(&mut words);
    words
}

/// Empty message.
impl Payload for () {
    const WORDS: usize = 0;
    #[inline]
    fn put(self, _: &mut Words) {}
    #[inline]
    fn get(_: &Words) -> Option<Self> {
        Some(())
    }
}

/// Value that is one word of a message.
pub trait Word: Copy {
    /// Returns the word.
    fn to_word(self) -> u64;

    /// Returns the value of a word; `None` if the type has no such value.
    fn from_word(word: u64) -> Option<Self>;
}

macro_rules! words {
    ($([$($generics:tt)*] $type:ty, |$value:ident| $to:expr, |$word:ident| $from:expr;)*) => { $(
        impl<$($generics)*> Word for $type {
            #[inline]
            fn to_word(self) -> u64 {
                let $value = self;
                $to
            }
            #[inline]
            fn from_word($word: u64) -> Option<Self> {
                $from
            }
        }
    )* };
}

words! {
    [] u64, |value| value, |word| Some(word);
    [] u32, |value| value.into(), |word| Self::try_from(word).ok();
    [] bool, |value| value.into(), |word| [false, true].get(word as usize).copied();
    [] i64, |value| value as u64, |word| Some(word as Self);
    [] f64, |value| value.to_bits(), |word| Some(Self::from_bits(word));
    [] Option<f64>, |value| word_of_option(value), |word| Some(option_of_word(word));
    [] Ticks, |value| value.0, |word| Some(Self(word));
    [] Duration, |value| value.as_nanos() as u64, |word| Some(Self::from_nanos(word as i64));
    [D: Domain] Timestamp<D>, |value| value.as_nanos() as u64, |word| Some(Self::from_nanos(word as i64));
}

/// Word of an optional number that is missing. Its bits are those of a NaN that no
/// computation returns.
const NO_VALUE: u64 = u64::MAX;

/// Packs an optional number. A NaN with the bits of [`NO_VALUE`] becomes another NaN.
#[inline]
fn word_of_option(value: Option<f64>) -> u64 {
    match value.map(f64::to_bits) {
        None => NO_VALUE,
        Some(NO_VALUE) => f64::NAN.to_bits(),
        Some(bits) => bits,
    }
}

#[inline]
fn option_of_word(word: u64) -> Option<f64> {
    (word != NO_VALUE).then(|| f64::from_bits(word))
}

impl<W: Word> Payload for W {
    const WORDS: usize = 1;
    #[inline]
    fn put(self, words: &mut Words) {
        words[0] = self.to_word();
    }
    #[inline]
    fn get(words: &Words) -> Option<Self> {
        W::from_word(words[0])
    }
}

impl<W: Word, const N: usize> Payload for [W; N] {
    const WORDS: usize = N;
    #[inline]
    fn put(self, words: &mut Words) {
        words
            .iter_mut()
            .zip(self)
            .for_each(|(word, item)| *word = item.to_word());
    }
    #[inline]
    fn get(words: &Words) -> Option<Self> {
        let mut items = [W::from_word(words[0])?; N];
        for (item, word) in items.iter_mut().zip(words) {
            *item = W::from_word(*word)?;
        }
        Some(items)
    }
}

/// Implements the payload of a tuple with one word for each of its values.
macro_rules! payload_of_tuple {
    ($($value:ident: $type:ident),*) => {
        impl<$($type: Word),*> Payload for ($($type),*) {
            const WORDS: usize = [$(stringify!($value)),*].len();

            #[inline]
            fn put(self, words: &mut Words) {
                let ($($value),*) = self;
                [$($value.to_word()),*].put(words);
            }

            #[inline]
            fn get(words: &Words) -> Option<Self> {
                let [$($value),*] = Payload::get(words)?;
                Some(($(Word::from_word($value)?),*))
            }
        }
    };
}

payload_of_tuple!(a: A, b: B);
payload_of_tuple!(a: A, b: B, c: C);
payload_of_tuple!(a: A, b: B, c: C, d: D);
payload_of_tuple!(a: A, b: B, c: C, d: D, e: E);

/// Implements the [payload](crate::payload::Payload) of a struct with one
/// [word](crate::payload::Word) for each of its fields. Parameters of its type are in brackets.
///
/// ```
/// use downbeat_sync::payload::{Payload, Words};
/// use downbeat_sync::payload_of_fields;
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// struct Progress { calls: u32, is_over: bool }
///
/// payload_of_fields!([] Progress { calls, is_over });
///
/// let mut words = Words::default();
/// let sent = Progress { calls: 7, is_over: false };
/// sent.put(&mut words);
/// assert_eq!(Progress::get(&words), Some(sent));
/// ```
#[macro_export]
macro_rules! payload_of_fields {
    ([$($generics:tt)*] $type:ty { $($field:ident),* }) => {
        impl<$($generics)*> $crate::payload::Payload for $type {
            const WORDS: usize = [$(stringify!($field)),*].len();

            fn put(self, words: &mut $crate::payload::Words) {
                let all = [$($crate::payload::Word::to_word(self.$field)),*];
                $crate::payload::Payload::put(all, words);
            }

            fn get(words: &$crate::payload::Words) -> Option<Self> {
                let [$($field),*] = $crate::payload::Payload::get(words)?;
                Some(Self { $($field: $crate::payload::Word::from_word($field)?),* })
            }
        }
    };
}
pub(crate) use payload_of_fields;

payload_of_fields!([D: Domain] ErrorBound<D> { at, ahead, behind, drift });

/// Sent in its checked encoding, so that a model between other clocks is detected.
impl<A: ModelSource, B: Domain> Payload for ClockModel<A, B> {
    const WORDS: usize = Self::ENCODED_LEN.div_ceil(size_of::<u64>());

    fn put(self, words: &mut Words) {
        *words = words_of(&self.encode());
    }

    fn get(words: &Words) -> Option<Self> {
        Self::decode(bytes_of(words).get(..Self::ENCODED_LEN)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::fmt::Debug;
    use downbeat_clock_core::{Counter, Global, Local, Node, TickRate};
    use proptest::prelude::*;

    fn assert_round_trip<P: Payload + PartialEq + Debug>(payload: P) {
        let mut words = to_words(payload);
        // A receiver gets only the payload's own words.
        words[P::WORDS..].fill(0);
        assert_eq!(P::get(&words), Some(payload));
    }

    proptest! {
        #[test]
        fn payloads_are_read_as_written(word: u64, number: i64, some: [u64; 3], full: [u64; 6], hz in 1_u64..1 << 40) {
            assert_round_trip(());
            assert_round_trip(word);
            assert_round_trip(number);
            assert_round_trip(some);
            assert_round_trip(full);
            assert_round_trip(Ticks(word));
            assert_round_trip(Duration::from_nanos(number));
            assert_round_trip(Timestamp::<Global>::from_nanos(number));
            let rate = TickRate::from_hz(hz).unwrap();
            assert_round_trip(ClockModel::<Counter, Local>::through(Ticks(0), Timestamp::from_nanos(number / 2), rate).unwrap());
        }

        #[test]
        fn other_words_are_no_model(words: Words) {
            prop_assert_eq!(ClockModel::<Local, Global>::get(&words), None);
        }
    }

    #[test]
    fn a_word_that_is_too_long_is_refused() {
        let long = 1_u64 << 32 | 7;
        assert_eq!(u32::get(&to_words(long)), None);
        assert_eq!(<[u32; 2]>::get(&to_words([7, long])), None);
        assert_eq!(<[u32; 2]>::get(&to_words([7_u64, 8])), Some([7, 8]));
    }

    #[test]
    fn what_is_no_number_is_not_missing() {
        let read = |value: Option<f64>| Option::<f64>::get(&to_words(value)).unwrap();
        assert_eq!(read(None), None);
        for value in [0.5, f64::INFINITY] {
            assert_eq!(read(Some(value)), Some(value));
        }
        for bits in [f64::NAN.to_bits(), (-f64::NAN).to_bits(), u64::MAX] {
            let found = read(Some(f64::from_bits(bits)));
            assert!(found.is_some_and(f64::is_nan), "{bits:x}: {found:?}");
        }
    }

    #[test]
    fn a_model_between_other_clocks_is_refused() {
        let words = to_words(ClockModel::<Local, Global>::IDENTITY);
        assert_eq!(ClockModel::<Local, Node>::get(&words), None);
    }
}
