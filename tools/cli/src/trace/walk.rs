//! Pass over the calls of a trace, with progress.

use std::path::Path;

use downbeat_common::cli::VerifyOptions;
use downbeat_common::output::count;
use downbeat_common::trace::{ItemSource, ReadItems};
use downbeat_common::{Failure, ProgressBar};
use downbeat_trace::{CallObserver, CallWalk, LeftOpen, ProgramNames};

/// Number of items between messages about the progress.
const INTERVAL: u64 = 1 << 20;

/// Tells the observer of all calls of a trace. Temporary files are next to `beside`.
pub(super) fn walk(
    path: &Path,
    verify: VerifyOptions,
    beside: &Path,
    observer: &mut impl CallObserver,
) -> Result<(ProgramNames, LeftOpen), Failure> {
    let progress = ProgressBar::new(0.0);
    let say = |done: &str| progress.say(&format!("{}: {done}", path.display()));
    say("opened");
    let reading = ReadItems {
        apply_offsets: true,
        lenient: false,
        checksums: verify.checksums(),
    };
    let source = ItemSource::open(path, reading, beside)?;
    let (mut walk, mut items) = (CallWalk::default(), 0_u64);
    source.each(|item| {
        items += 1;
        if items.is_multiple_of(INTERVAL) {
            say(&format!("{} million events read", items / 1_000_000));
        }
        walk.take(item, observer);
        Ok(())
    })?;
    progress.clear();
    Ok(walk.finish(observer))
}

/// Tells what a pass over a trace left out, in lines.
pub(super) fn left_out(left: &LeftOpen) -> String {
    let mut text = String::new();
    for (number, one, several, lack) in [
        (
            left.messages,
            "send or receive",
            "sends or receives",
            "counterpart",
        ),
        (
            left.operations,
            "collective operation",
            "collective operations",
            "leave of each member",
        ),
    ] {
        if number > 0 && !left.gave_up {
            let what = if number == 1 { one } else { several };
            text += &format!("Left out: {number} {what} without a {lack}\n");
        }
    }
    if left.gave_up {
        text +=
            "Messages or operations are not complete: the file is too far from the order of time\n";
    }
    text
}

/// Returns the number of locations and events as text.
pub(super) fn contents(names: &ProgramNames, left: &LeftOpen) -> String {
    format!(
        "{}, {}",
        count(names.locations().len(), "location"),
        count(left.events as usize, "event")
    )
}
