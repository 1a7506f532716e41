//! Pass over the calls of a trace.

use std::path::Path;

use downbeat_common::Failure;
use downbeat_common::cli::VerifyOptions;
use downbeat_common::output::count;
use downbeat_common::trace::{ItemSource, ReadItems, files};
use downbeat_trace::calls::{CallObserver, CallWalk, LeftOpen, ProgramNames};

/// Tells the observer of all calls of a trace. Temporary files are next to `beside`.
pub(super) fn walk(
    path: &Path,
    verify: VerifyOptions,
    beside: &Path,
    observer: &mut impl CallObserver,
) -> Result<(ProgramNames, LeftOpen), Failure> {
    let reading = ReadItems {
        apply_offsets: true,
        // What is not complete is counted.
        lenient: files::is_archive(path),
        checksums: verify.checksums(),
    };
    let source = ItemSource::open(path, reading, beside)?;
    let mut walk = CallWalk::default();
    source.each(|item| {
        walk.take(item, observer);
        Ok(())
    })?;
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
