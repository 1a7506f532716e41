//! Properties of clock models, checked against exact rational arithmetic.

extern crate std;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive};
use proptest::prelude::*;

use crate::model::Instant;
use crate::{
    ClockModel, Counter, Domain, Global, Local, ModelError, ModelSource, Node, TickRate, Ticks,
    Timestamp,
};

const YEAR: u64 = 366 * 86_400 * 1_000_000_000;

fn integer(value: impl Into<BigInt>) -> BigRational {
    BigRational::from_integer(value.into())
}

fn float(value: f64) -> BigRational {
    BigRational::from_float(value).unwrap()
}

/// An exact affine map: `image + (x - anchor) * rate`.
#[derive(Clone, Debug)]
struct ExactMap {
    anchor: BigRational,
    image: BigRational,
    rate: BigRational,
}

impl ExactMap {
    fn apply(&self, at: &BigRational) -> BigRational {
        &self.image + (at - &self.anchor) * &self.rate
    }

    /// Nanoseconds between the exact image and a computed one.
    fn error<D: Domain>(&self, at: &BigRational, found: Timestamp<D>) -> f64 {
        (self.apply(at) - integer(found.as_nanos()))
            .abs()
            .to_f64()
            .unwrap()
    }
}

/// A counter of 1 to 10 GHz that started within the last year, its exact map, and a reading up to a year later.
fn counter() -> impl Strategy<Value = (ClockModel<Counter, Local>, ExactMap, u64)> {
    (
        1_000_000_000_u64..10_000_000_000,
        0..YEAR,
        -(YEAR as i64)..YEAR as i64,
        0..YEAR,
    )
        .prop_map(|(hz, uptime, image, elapsed)| {
            let ticks = |nanos: u64| (u128::from(nanos) * u128::from(hz) / 1_000_000_000) as u64;
            let rate = TickRate::from_hz(hz).unwrap();
            let model =
                ClockModel::through(Ticks(ticks(uptime)), Timestamp::from_nanos(image), rate)
                    .unwrap();
            let exact = ExactMap {
                anchor: integer(ticks(uptime)),
                image: integer(image),
                rate: BigRational::new(1_000_000_000.into(), hz.into()),
            };
            (model, exact, ticks(elapsed))
        })
}

/// A clock with a drift of up to 500 ppm and an offset of up to a year.
fn learned<A: Domain, B: Domain>() -> impl Strategy<Value = (ClockModel<A, B>, ExactMap)> {
    let year = YEAR as i64;
    (-year..year, -year..year, -500e-6..500e-6).prop_map(|(anchor, image, drift)| {
        let rate = TickRate::NANOSECOND.with_drift(drift).unwrap();
        let model = ClockModel::through(
            Timestamp::from_nanos(anchor),
            Timestamp::from_nanos(image),
            rate,
        )
        .unwrap();
        let exact = ExactMap {
            anchor: integer(anchor),
            image: integer(image),
            rate: integer(1) + float(drift),
        };
        (model, exact)
    })
}

/// An arbitrary model, including extreme ones.
fn any_model<A: ModelSource, B: Domain>(
    anchor: impl Strategy<Value = A::ModelInput>,
) -> impl Strategy<Value = ClockModel<A, B>>
where
    A::ModelInput: core::fmt::Debug,
{
    (anchor, any::<i64>(), 1_u64.., 1_u64..).prop_filter_map(
        "no such clock",
        |(anchor, image, nanos, ticks)| {
            let rate = TickRate::from_ratio(nanos, ticks).ok()?;
            ClockModel::through(anchor, Timestamp::from_nanos(image), rate).ok()
        },
    )
}

fn is_smallest<A: ModelSource, B: Domain>(
    model: &ClockModel<A, B>,
    wanted: Timestamp<B>,
    before: impl Fn(A::ModelInput) -> Option<A::ModelInput>,
    last: A::ModelInput,
) -> bool
where
    A::ModelInput: Instant,
{
    let found = model.invert(wanted);
    let reached = model.apply(found) >= wanted || found == last;
    reached && before(found).is_none_or(|earlier| model.apply(earlier) < wanted)
}

fn tick_before(at: Ticks) -> Option<Ticks> {
    at.0.checked_sub(1).map(Ticks)
}

fn nano_before<D: Domain>(at: Timestamp<D>) -> Option<Timestamp<D>> {
    at.as_nanos().checked_sub(1).map(Timestamp::from_nanos)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_conversion_is_within_half_a_nanosecond_after_a_year((model, exact, ticks) in counter()) {
        let error = exact.error(&integer(ticks), model.apply(Ticks(ticks)));
        prop_assert!(error <= 0.52, "{error} ns");
    }

    #[test]
    fn a_drifting_conversion_is_within_half_a_nanosecond_after_a_year(
        (model, exact) in learned::<Local, Global>(), at in -(YEAR as i64)..YEAR as i64,
    ) {
        let error = exact.error(&integer(at), model.apply(Timestamp::from_nanos(at)));
        prop_assert!(error <= 0.56, "{error} ns");
    }

    #[test]
    fn a_composition_is_within_a_nanosecond_of_the_exact_one(
        (local, exact_local, ticks) in counter(),
        (node, exact_node) in learned::<Local, Node>(),
        (global, exact_global) in learned::<Node, Global>(),
    ) {
        let fused = local.then(&node).unwrap().then(&global).unwrap();
        let between = exact_node.apply(&exact_local.apply(&integer(ticks)));
        let error = exact_global.error(&between, fused.apply(Ticks(ticks)));
        prop_assert!(error <= 1.0, "{error} ns");
    }

    #[test]
    fn composition_is_associative_to_a_nanosecond(
        (local, _, ticks) in counter(), (node, _) in learned::<Local, Node>(), (global, _) in learned::<Node, Global>(),
    ) {
        let left = local.then(&node).unwrap().then(&global).unwrap();
        let right = local.then(&node.then(&global).unwrap()).unwrap();
        prop_assert!((left.apply(Ticks(ticks)) - right.apply(Ticks(ticks))).abs().as_nanos() <= 1);
    }

    #[test]
    fn the_identity_changes_nothing((model, _) in learned::<Local, Global>(), at: i64) {
        let at = Timestamp::from_nanos(at);
        let before = ClockModel::<Local, Local>::IDENTITY.then(&model).unwrap();
        let after = model.then(&ClockModel::<Global, Global>::IDENTITY).unwrap();
        prop_assert_eq!(before.apply(at), model.apply(at));
        prop_assert_eq!(after.apply(at), model.apply(at));
        prop_assert_eq!(ClockModel::<Local, Local>::IDENTITY.apply(at), at);
    }

    #[test]
    fn the_inverse_is_the_smallest_tick_that_reaches(
        model in any_model::<Counter, Local>(any::<u64>().prop_map(Ticks)), wanted: i64,
    ) {
        prop_assert!(is_smallest(&model, Timestamp::from_nanos(wanted), tick_before, Ticks(u64::MAX)));
    }

    #[test]
    fn the_inverse_is_the_smallest_timestamp_that_reaches(
        model in any_model::<Local, Global>(any::<i64>().prop_map(Timestamp::from_nanos)), wanted: i64,
    ) {
        let last = Timestamp::from_nanos(i64::MAX);
        prop_assert!(is_smallest(&model, Timestamp::from_nanos(wanted), nano_before, last));
    }

    #[test]
    fn models_are_monotone(
        model in any_model::<Counter, Local>(any::<u64>().prop_map(Ticks)), a: u64, b: u64, step in 0_u64..100,
    ) {
        prop_assert!(model.apply(Ticks(a.min(b))) <= model.apply(Ticks(a.max(b))));
        prop_assert!(model.apply(Ticks(a)) <= model.apply(Ticks(a.saturating_add(step))));
    }

    /// At and beyond the limit of the fast path: the exact image, limited to the range of a timestamp.
    #[test]
    fn extreme_inputs_saturate(model in any_model::<Counter, Local>(any::<u64>().prop_map(Ticks)), ticks: u64, near: i8) {
        let (map, _) = model.parts();
        let (limit, rate, constant) = (map.limit, BigInt::from(map.rate.fixed()), BigInt::from(map.constant));
        for ticks in [ticks, limit.saturating_add_signed(near.into()), u64::MAX, 0] {
            let exact: BigInt = (&rate * ticks + &constant) >> 64;
            let cut = exact.clamp(i64::MIN.into(), i64::MAX.into());
            prop_assert_eq!(BigInt::from(model.apply(Ticks(ticks)).as_nanos()), cut);
        }
    }

    /// Composing any two models gives a correct model or an error.
    #[test]
    fn extreme_compositions_are_correct_or_rejected(
        first in any_model::<Counter, Local>(any::<u64>().prop_map(Ticks)),
        second in any_model::<Local, Global>(any::<i64>().prop_map(Timestamp::from_nanos)),
    ) {
        let Ok(fused) = first.then(&second) else { return Ok(()) };
        let at = fused.anchor();
        let stepwise = second.apply(first.apply(at));
        // Applying both models in turn scales the intermediate rounding by the second rate; saturated values are skipped.
        let slack = second.rate().nanos_per_tick() / 2.0 + 1.5;
        let between = first.apply(at).as_nanos();
        prop_assume!(between != i64::MAX && between != i64::MIN);
        let difference = (i128::from(fused.apply(at).as_nanos()) - i128::from(stepwise.as_nanos())).abs();
        prop_assert!(difference as f64 <= slack, "{difference}");
    }
}

#[test]
fn the_identity_goes_through_the_origin_at_one_to_one() {
    let through = ClockModel::<Local, Global>::through(
        Timestamp::ORIGIN,
        Timestamp::ORIGIN,
        TickRate::NANOSECOND,
    );
    assert_eq!(through.unwrap(), ClockModel::IDENTITY);
}

#[test]
fn composition_keeps_the_later_anchor() {
    let local =
        ClockModel::<Counter, Local>::through(Ticks(100), Timestamp::ORIGIN, TickRate::NANOSECOND)
            .unwrap();
    let rate = TickRate::NANOSECOND;
    let learned = ClockModel::<Local, Global>::through(
        Timestamp::from_nanos(50),
        Timestamp::from_nanos(7),
        rate,
    )
    .unwrap();
    assert_eq!(local.then(&learned).unwrap().anchor(), Ticks(150));
    assert_eq!(
        local
            .then(&ClockModel::<Local, Global>::IDENTITY)
            .unwrap()
            .anchor(),
        Ticks(100)
    );
}

#[test]
fn clocks_that_are_too_far_apart_have_no_model() {
    let late = Timestamp::<Local>::from_nanos(i64::MAX);
    let far = ClockModel::<Counter, Local>::through(Ticks(0), late, TickRate::NANOSECOND);
    assert_eq!(far.unwrap_err(), ModelError::TooFarApart);
    let far = ClockModel::<Counter, Local>::through(Ticks(u64::MAX), late, TickRate::NANOSECOND);
    assert_eq!(far.unwrap_err(), ModelError::TooFarApart);
}
