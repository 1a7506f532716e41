//! How loom is run here.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::model::Builder;

/// Runs `model` in every way there is, with at most so many preemptions, and says how many ways that were.
#[expect(
    clippy::print_stdout,
    reason = "how much was explored is a result of these tests"
)]
pub(crate) fn explore(
    name: &str,
    preemptions: Option<usize>,
    model: impl Fn() + Sync + Send + 'static,
) {
    let executions = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&executions);

    let mut builder = Builder::new();
    // With any of these limits loom would stop early and say nothing; without, it returns when nothing is left.
    builder.max_duration = None;
    builder.max_permutations = None;
    builder.checkpoint_file = None;
    builder.preemption_bound = preemptions;
    builder.check(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        model();
    });
    println!("{name}: {} executions", executions.load(Ordering::Relaxed));
}
