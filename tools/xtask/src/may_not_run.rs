//! The steps that may be reported as "not run". Any other step that cannot run fails.

use std::process::Stdio;

use downbeat_launch::command::command;

/// A step that some machines cannot run.
pub(crate) struct MayNotRun {
    /// Name of the step.
    pub(crate) step: &'static str,
    pub(crate) reason: &'static str,
    /// Command without effect that fails on those machines.
    probe: &'static str,
}

pub(crate) const MAY_NOT_RUN: [MayNotRun; 1] = [MayNotRun {
    step: "MPI program: several_hosts",
    reason: "needs root, and a kernel with network and time namespaces",
    probe: "unshare --net --uts --time true",
}];

/// Returns the reason if this machine cannot run the step and the step is listed.
pub(crate) fn reason_not_to_run(step: &str) -> Option<&'static str> {
    let listed = MAY_NOT_RUN.iter().find(|listed| listed.step == step)?;
    let succeeds = command(listed.probe)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    (!succeeds).then_some(listed.reason)
}
