//! The inline reader of the header gives what Rust gives.

#![cfg(target_arch = "x86_64")]
#![expect(clippy::expect_used, reason = "a failed test panics")]

mod inline;

use std::env;
use std::mem::transmute;
use std::sync::atomic::{AtomicBool, Ordering};

use downbeat::{ClockModel, Counter, ErrorBound, Global, TickRate, Ticks, Timestamp};
use downbeat_clock_core::{CounterInstruction, PublishedModel};
use inline::InlineFunctions;

type Model = ClockModel<Counter, Global>;
type Cell = PublishedModel<Global>;

/// `downbeat_inline_apply`.
type Apply = unsafe extern "C" fn(*const Cell, u64, *mut i64) -> i32;

fn apply(inline: &InlineFunctions) -> impl Fn(&Cell, Ticks) -> Option<i64> + use<> {
    // SAFETY: the type of the function.
    let function: Apply = unsafe { transmute(inline.address(c"compiled_inline_apply")) };
    move |cell, ticks| {
        let mut nanos = 0;
        // SAFETY: both live.
        let done = unsafe { function(cell, ticks.0, &raw mut nanos) };
        (done != 0).then_some(nanos)
    }
}

/// A model of any clock: some of these are out of range.
fn random_model(random: &mut fastrand::Rng) -> Option<Model> {
    let anchor = Ticks(random.u64(..) >> random.u32(0..64));
    let image = Timestamp::from_nanos(random.i64(..) >> random.u32(1..64));
    let [nanos, ticks] = [(); 2].map(|()| random.u64(1..) >> random.u32(0..63));
    Model::through(anchor, image, TickRate::from_ratio(nanos, ticks).ok()?).ok()
}

fn cell(model: Model) -> Cell {
    Cell::with_bound(model, ErrorBound::UNKNOWN, CounterInstruction::Rdtscp)
}

#[test]
fn random_models_are_applied_alike() {
    let apply = apply(&InlineFunctions::compile("models"));
    let mut random = fastrand::Rng::with_seed(18);
    let (mut inside, mut outside) = (0_u32, 0_u32);
    let is_long = env::var_os("DOWNBEAT_LONG").is_some();
    while inside < if is_long { 1_000_000 } else { 100_000 } {
        let Some(model) = random_model(&mut random) else {
            continue;
        };
        let ticks = Ticks(random.u64(..) >> random.u32(0..64));
        match apply(&cell(model), ticks) {
            Some(nanos) => {
                assert_eq!(
                    nanos,
                    model.apply(ticks).as_nanos(),
                    "{model:?} at {ticks:?}"
                );
                inside += 1;
            }
            // The library must apply the model, since it could overflow.
            None => outside += 1,
        }
    }
    assert!(outside > 1_000, "{outside}");
}

#[test]
fn a_model_is_read_whole_while_it_is_replaced() {
    let apply = apply(&InlineFunctions::compile("replaced"));
    let rate = |ticks| TickRate::from_ratio(1, ticks).expect("a rate");
    let model = |by: i64| {
        Model::through(Ticks(0), Timestamp::from_nanos(by), rate(by as u64)).expect("a model")
    };
    // Words of two models would give other times.
    let times = [3, 7].map(|by| model(by).apply(Ticks(21)).as_nanos());
    let cell = cell(model(3));
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut writer = cell.writer().expect("the only writer");
            for i in 0..2_000_000 {
                writer.publish(model(if i % 2 == 0 { 7 } else { 3 }));
            }
            ended.store(true, Ordering::Relaxed);
        });
        while !ended.load(Ordering::Relaxed) {
            let found = apply(&cell, Ticks(21)).expect("a small time");
            assert!(times.contains(&found), "{found}");
        }
    });
}

#[test]
fn unknown_layouts_and_counters_are_left_to_the_library() {
    let inline = InlineFunctions::compile("unknown");
    // SAFETY: the type of the function.
    let now: unsafe extern "C" fn(*const u64) -> i64 =
        unsafe { transmute(inline.address(c"compiled_model_now")) };
    let mut words = [0_u64; 56];
    let mut read = |tag: u64| {
        words[0] = tag;
        // SAFETY: as many words as a model has.
        unsafe { now(words.as_ptr()) }
    };
    // The library of this test returns one number for every model, and another for none.
    for tag in [0, 2, 1 | 1 << 32, 3 | 1 << 32, 2 | 2 << 32, 2 | 3 << 32] {
        assert_eq!(read(tag), i64::MIN + 1, "{tag:#x}");
    }
    // A rate of zero shows the constant.
    assert_eq!(
        read(2 | 1 << 32),
        i64::MIN + 1,
        "ticks beyond a limit of zero"
    );
    // SAFETY: as above.
    assert_eq!(unsafe { now(core::ptr::null()) }, i64::MIN);
}
