//! Runs of loom, for the models in `tests/`.

use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::model::Builder;

/// Variable with a number of preemptions to allow in addition to those of each model.
const MORE_PREEMPTIONS: &str = "DOWNBEAT_MORE_PREEMPTIONS";

/// Runs `model` in every possible order, with at most this number of preemptions, and prints the number of orders.
pub fn explore(name: &str, preemptions: Option<usize>, model: impl Fn() + Sync + Send + 'static) {
    let executions = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&executions);
    let more = env::var(MORE_PREEMPTIONS).ok();
    let more = more
        .and_then(|more| more.parse::<usize>().ok())
        .unwrap_or(0);

    let mut builder = Builder::new();
    // With any of these limits loom would stop early without a message; without them it explores everything.
    builder.max_duration = None;
    builder.max_permutations = None;
    builder.checkpoint_file = None;
    builder.preemption_bound = preemptions.map(|bound| bound + more);
    builder.check(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        model();
    });
    println!("{name}: {} executions", executions.load(Ordering::Relaxed));
}
