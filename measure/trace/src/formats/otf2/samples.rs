//! Clock samples of a location: as texts of its properties, and as clock offsets for
//! other readers.
//!
//! OTF2's reader draws lines between neighbouring clock offsets, so that those of single
//! samples would take their noise for drift. A session becomes one clock offset, the mean
//! of its samples.

use downbeat_clock_core::Timestamp;
use downbeat_otf2::ClockOffset;

use crate::presync::ClockSample;

/// Begin of the names of the properties, which ends with their numbers.
pub(super) const SAMPLES: &str = "DOWNBEAT::SAMPLES_";

/// Number of samples in a property: a definition must not be larger than a chunk.
const SAMPLES_PER_PROPERTY: usize = 1 << 14;

/// Returns the samples of a location as texts, one for each property. A sample is the
/// number of its session, the local time since the sample before, and how much the offset
/// of the master's clock has changed since then, both in nanoseconds.
pub(super) fn texts_of(sessions: &[Vec<ClockSample>]) -> Vec<String> {
    let (mut written, mut last) = (vec![], [0; 2]);
    for (session, samples) in sessions.iter().enumerate() {
        for ClockSample { at, image } in samples {
            let local = at.as_nanos();
            let next = [local, image.as_nanos().wrapping_sub(local)];
            let [elapsed, change] = [0, 1].map(|of: usize| next[of].wrapping_sub(last[of]));
            written.push(format!("{session} {elapsed} {change}"));
            last = next;
        }
    }
    let properties = written.chunks(SAMPLES_PER_PROPERTY);
    properties.map(|samples| samples.join(";")).collect()
}

/// Reads the sessions of a location from the texts of its properties.
///
/// # Errors
/// Returns the index of the text that is not valid, and the reason.
pub(super) fn sessions_of(texts: &[&str]) -> Result<Vec<Vec<ClockSample>>, (usize, String)> {
    let mut sessions: Vec<Vec<ClockSample>> = vec![];
    // Local time and offset.
    let mut last = [0_i64; 2];
    for (index, text) in texts.iter().enumerate() {
        for sample in text.split(';') {
            let damaged = || (index, format!("{sample:?} is not a clock sample"));
            let (session, differences) = parse_sample(sample).ok_or_else(damaged)?;
            // A session follows the one before, so that no number takes memory.
            if session == sessions.len() {
                sessions.push(vec![]);
            }
            let current = sessions.len() - usize::from(!sessions.is_empty());
            let samples = sessions.last_mut().filter(|_| session == current);
            last = [0, 1].map(|of: usize| last[of].wrapping_add(differences[of]));
            samples.ok_or_else(damaged)?.push(ClockSample {
                at: Timestamp::from_nanos(last[0]),
                image: Timestamp::from_nanos(last[0].wrapping_add(last[1])),
            });
        }
    }
    Ok(sessions)
}

/// Returns the number of the session, and the differences from the last sample.
fn parse_sample(text: &str) -> Option<(usize, [i64; 2])> {
    let (session, differences) = text.split_once(' ')?;
    let (elapsed, change) = differences.split_once(' ')?;
    let differences = [elapsed.parse().ok()?, change.parse().ok()?];
    Some((session.parse().ok()?, differences))
}

/// Returns the mean local time of a session, rounded down.
pub(super) fn mean_time(samples: &[ClockSample]) -> i64 {
    mean(samples.iter().map(|sample| sample.at.as_nanos().into()))
        .and_then(|mean| i64::try_from(mean).ok())
        .unwrap_or(0)
}

/// Returns the clock offsets of a location, in nanoseconds from an origin that is `shift`
/// earlier: one for each session, and two of a single one, which readers would ignore
/// alone. A session whose time does not follow that of the session before has none.
/// `None` if OTF2 cannot represent a time or an offset.
pub(super) fn offsets_of(sessions: &[Vec<ClockSample>], shift: i64) -> Option<Vec<ClockOffset>> {
    let mut offsets: Vec<ClockOffset> = vec![];
    for samples in sessions.iter().filter(|samples| !samples.is_empty()) {
        let time = mean_time(samples).checked_add(shift)?;
        let time = u64::try_from(time).ok()?;
        if offsets.last().is_some_and(|last| last.time >= time) {
            continue;
        }
        let each = samples
            .iter()
            .map(|sample| i128::from(sample.image.as_nanos()) - i128::from(sample.at.as_nanos()));
        let offset = mean(each.clone())?;
        let squares = each.map(|found| ((found - offset) as f64).powi(2));
        offsets.push(ClockOffset {
            time,
            offset: i64::try_from(offset).ok()?,
            deviation: (squares.sum::<f64>() / samples.len() as f64).sqrt(),
        });
    }
    if let [only] = offsets[..] {
        let time = only.time.checked_add(1)?;
        offsets.push(ClockOffset { time, ..only });
    }
    Some(offsets)
}

/// Returns the mean, rounded down; `None` of no numbers.
fn mean(numbers: impl Iterator<Item = i128> + Clone) -> Option<i128> {
    let count = numbers.clone().count() as i128;
    (count > 0).then(|| numbers.sum::<i128>().div_euclid(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(local: i64, master: i64) -> ClockSample {
        ClockSample {
            at: Timestamp::from_nanos(local),
            image: Timestamp::from_nanos(master),
        }
    }

    fn read(texts: &[String]) -> Result<Vec<Vec<ClockSample>>, (usize, String)> {
        sessions_of(&texts.iter().map(String::as_str).collect::<Vec<_>>())
    }

    #[test]
    fn samples_are_read_as_they_were_written() {
        let few = vec![
            vec![sample(-500, 400), sample(-480, 421)],
            vec![sample(9_000_000_000, 9_000_000_950)],
        ];
        assert_eq!(texts_of(&few), ["0 -500 900;0 20 1;1 9000000480 49"]);
        let far = vec![vec![
            sample(i64::MIN, i64::MAX),
            sample(i64::MAX, i64::MIN),
            sample(0, 0),
        ]];
        let many = |session: i64| {
            (0..30_000)
                .map(move |i| sample(7 * i + session, 5 * i))
                .collect()
        };
        let many: Vec<Vec<_>> = (0..3).map(many).collect();
        assert_eq!(texts_of(&many).len(), 6);
        for sessions in [few, far, many, vec![]] {
            assert_eq!(read(&texts_of(&sessions)), Ok(sessions));
        }
    }

    #[test]
    fn damaged_samples_are_errors() {
        for (damaged, expected) in [
            ("", "\"\" is not a clock sample"),
            ("0 1", "\"0 1\" is not a clock sample"),
            ("0 1 2 3", "\"0 1 2 3\" is not a clock sample"),
            ("0 1 2;", "\"\" is not a clock sample"),
            ("0 1 2;2 1 2", "\"2 1 2\" is not a clock sample"),
            ("1 1 2", "\"1 1 2\" is not a clock sample"),
            ("0 1 2;1 1 2;0 1 2", "\"0 1 2\" is not a clock sample"),
            (
                "0 1 9223372036854775808",
                "\"0 1 9223372036854775808\" is not a clock sample",
            ),
            (
                "18446744073709551615 1 2",
                "\"18446744073709551615 1 2\" is not a clock sample",
            ),
        ] {
            let texts = ["0 0 0".to_owned(), damaged.to_owned()];
            let found = read(&texts[1..]).unwrap_err();
            assert_eq!(found, (0, expected.to_owned()));
        }
        assert_eq!(
            read(&["0 0 0".to_owned(), "x".to_owned()]).unwrap_err().0,
            1
        );
    }

    #[test]
    fn a_session_becomes_one_clock_offset() {
        let sessions = [
            vec![sample(-500, 400), sample(-480, 421)],
            // It does not follow the one before.
            vec![sample(-490, 0)],
            vec![
                sample(1_000, 1_900),
                sample(1_100, 2_010),
                sample(1_200, 2_110),
            ],
        ];
        let found = offsets_of(&sessions, 500).unwrap();
        let found: Vec<_> = found.iter().map(|of| (of.time, of.offset)).collect();
        assert_eq!(found, [(10, 900), (1_600, 906)]);
        assert_eq!(offsets_of(&sessions, 400), None, "a time is negative");
        let far = [vec![sample(i64::MIN, i64::MAX)]];
        assert_eq!(offsets_of(&far, i64::MAX), None, "an offset is too large");
        // OTF2's reader ignores a single offset.
        let found = offsets_of(&sessions[..1], 500).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|of| (of.time, of.offset, of.deviation))
            .collect();
        assert_eq!(
            found,
            [(10, 900, 0.5_f64.sqrt()), (11, 900, 0.5_f64.sqrt())]
        );
        assert_eq!(offsets_of(&[], 0), Some(vec![]));
    }
}
