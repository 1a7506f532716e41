//! Pass over the calls of a trace.

use std::path::Path;

use downbeat_common::Failure;
use downbeat_common::cli::VerifyOptions;
use downbeat_common::output::count;
use downbeat_common::trace::{ArchiveRead, ItemSource, left_out_line};
use downbeat_trace::calls::{CallFinding, CallWalk, LeftOpen, ProgramNames};

/// Trace whose calls were passed.
#[derive(Debug)]
pub(super) struct WalkedTrace {
    pub(super) names: ProgramNames,
    pub(super) left: LeftOpen,
    /// Counts of an archive besides its events.
    pub(super) archive: ArchiveRead,
}

/// Passes what is found in a trace to `find`. Temporary files are next to `beside`.
pub(super) fn walk(
    path: &Path,
    verify: VerifyOptions,
    beside: &Path,
    mut find: impl FnMut(&CallFinding<'_>),
) -> Result<WalkedTrace, Failure> {
    let source = ItemSource::open(path, true, verify.checksums(), beside)?;
    let mut walk = CallWalk::default();
    source.each(|item| {
        walk.add_item(item, &mut find);
        Ok(())
    })?;
    let (names, left) = walk.finish(&mut find);
    source.archive.warn_of_damage();
    Ok(WalkedTrace {
        names,
        left,
        archive: source.archive,
    })
}

impl WalkedTrace {
    /// Returns the name of a location.
    pub(super) fn name_of(&self, location: u32) -> &str {
        let name = self.names.locations().get(location as usize);
        name.map_or("", String::as_str)
    }

    /// Returns the number of locations and events as text.
    pub(super) fn contents(&self) -> String {
        format!(
            "{}, {}",
            count(self.names.locations().len(), "location"),
            count(self.left.events as usize, "event")
        )
    }

    /// Tells what the pass left out: what is not complete in one line, the mistakes of an
    /// archive in another, and one more for each kind of relations that is not examined.
    pub(super) fn left_out(&self) -> String {
        let left = &self.left;
        let incomplete = [left.sends, left.receives, left.operations];
        let mut text = match left.gave_up {
            true => "Messages or operations are not complete: the file is too far from the order of time\n".to_owned(),
            false => left_out_line(incomplete.map(|number| number as u64)),
        };
        text += &self.archive.remarks();
        text
    }
}
