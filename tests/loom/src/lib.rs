//! Runs of loom, for the models in `tests/`.

use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::model::Builder;

/// Variable with the largest number of preemptions, for every model.
const MOST_PREEMPTIONS: &str = "DOWNBEAT_MOST_PREEMPTIONS";

/// Variable with a number of preemptions to allow in addition to those of each model that limits them.
const MORE_PREEMPTIONS: &str = "DOWNBEAT_MORE_PREEMPTIONS";

/// Runs `model` in every possible order, with at most this number of preemptions, and prints the number of orders.
pub fn explore(name: &str, preemptions: Option<usize>, model: impl Fn() + Sync + Send + 'static) {
    let executions = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&executions);
    let bound = preemptions.map(|bound| bound + number(MORE_PREEMPTIONS).unwrap_or(0));

    let mut builder = Builder::new();
    // With any of these limits loom would stop early without a message; without them it explores everything.
    builder.max_duration = None;
    builder.max_permutations = None;
    builder.checkpoint_file = None;
    builder.preemption_bound = bound.into_iter().chain(number(MOST_PREEMPTIONS)).min();
    builder.check(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        model();
    });
    println!("{name}: {} executions", executions.load(Ordering::Relaxed));
}

fn number(variable: &str) -> Option<usize> {
    env::var(variable).ok()?.parse().ok()
}
