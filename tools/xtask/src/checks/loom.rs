//! The lock-free parts under every interleaving that the memory model allows.

use crate::shell::{self, LIMIT, command};
use crate::steps::Step;
use crate::workspace::Workspace;

/// In a target directory of its own, since the flag rebuilds everything, and optimized, since there are many
/// interleavings.
pub(crate) fn step(workspace: &Workspace) -> Step<'_> {
    Step::new("loom", || {
        let mut test = command("cargo test --release --no-fail-fast -p downbeat-tests --test loom_* --target-dir");
        test.arg(workspace.variant("loom")).args(["--", "--nocapture"]);
        // Rather than RUSTFLAGS: wins over whatever the user has set.
        test.env("CARGO_ENCODED_RUSTFLAGS", "--cfg=loom");
        let said = shell::show_and_read(LIMIT, &mut test)?;
        // Without the flag these files are empty, and pass.
        if said.contains("running 0 tests") { Err("there are no models in a file".into()) } else { Ok(()) }
    })
}
