//! Comparison of two trace files apart from times.

use std::path::Path;

use downbeat_clock_core::Timestamp;

use super::{Item, TraceReader};
use downbeat_files::{Checksums, FileError};

/// Returns the first difference of `other` from `one` as one line; `None` if they differ in nothing
/// but times of events and local times of samples. Does not verify checksums.
///
/// # Errors
/// When one of them cannot be read, or is not a trace.
pub fn first_difference(one: &Path, other: &Path) -> Result<Option<String>, FileError> {
    let open = |path| Ok(TraceReader::open(path)?.with_checksums(Checksums::Ignore));
    let (mut ours, mut theirs) = (open(one)?, open(other)?);
    let ended = loop {
        match (
            ours.next_item()?.map(timeless),
            theirs.next_item()?.map(timeless),
        ) {
            (None, None) => return Ok(None),
            (our, their) if our == their => {}
            (_, their) => break their.is_none(),
        }
    };
    Ok(Some(if ended {
        format!("{}: it ends before {} does", other.display(), one.display())
    } else {
        theirs
            .error(format!("differs from {} here", one.display()))
            .to_string()
    }))
}

fn timeless(item: Item<'_>) -> Item<'_> {
    match item {
        Item::Event {
            location, event, ..
        } => Item::Event {
            location,
            time: Timestamp::ORIGIN,
            event,
        },
        Item::Sample {
            location,
            session,
            master,
            ..
        } => Item::Sample {
            location,
            session,
            local: Timestamp::ORIGIN,
            master,
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::tests::UNSEALED as TEXT;
    use downbeat_files::testing::TemporaryFolder;
    use std::fs;

    #[test]
    fn the_first_difference_is_named() {
        let (folder, one) = TemporaryFolder::with_file("one.dbt", TEXT.as_bytes());
        let other = folder.file("other");
        let difference = |bytes: &[u8]| {
            fs::write(&other, bytes).unwrap();
            let found = first_difference(&one, &other).unwrap();
            found.map(|why| {
                why.strip_prefix(&format!("{}: ", other.display()))
                    .unwrap()
                    .to_owned()
            })
        };
        assert_eq!(difference(TEXT.as_bytes()), None);
        assert_eq!(
            difference(
                TEXT.replace("\n0 1010 ", "\n0 1013 ")
                    .replace(" -480 ", " -470 ")
                    .as_bytes()
            ),
            None
        );
        let here = |at: &str| Some(format!("{at}: differs from {} here", one.display()));
        assert_eq!(
            difference(TEXT.replace("rank 0", "rank O").as_bytes()),
            here("line 2")
        );
        assert_eq!(
            difference(TEXT.replace("counter 3", "counter 4").as_bytes()),
            here("line 18")
        );
        assert_eq!(
            difference(
                TEXT.replace("1 690 join 1\n", "")
                    .replace("end 21", "end 20")
                    .as_bytes()
            ),
            here("line 23")
        );
        let longer = TEXT.replace("end 21", "1 3002 leave 0\nend 22");
        assert_eq!(difference(longer.as_bytes()), here("line 34"));
        let shorter = TEXT.replace("1 3001 leave 0\nend 21", "end 20");
        assert_eq!(
            difference(shorter.as_bytes()),
            Some(format!("it ends before {} does", one.display()))
        );
    }
}
