//! Spans of `tracing` as regions.

use std::collections::HashMap;
use std::sync::{OnceLock, PoisonError, RwLock};

use tracing_core::callsite::Identifier;
use tracing_core::span::{Attributes, Id};
use tracing_core::{Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::region::Region;

/// Times the spans of a program that uses `tracing` as regions with their names.
///
/// A span is timed while it is entered, in each thread of its own. Filters of `tracing_subscriber` select spans.
///
/// ```
/// use tracing_subscriber::prelude::*;
///
/// let subscriber = tracing_subscriber::registry().with(downbeat_regions::RegionLayer::default());
/// tracing::subscriber::with_default(subscriber, || {
///     let _step = tracing::info_span!("step").entered();
///     for _ in 0..3 {
///         tracing::info_span!("solve").in_scope(|| ());
///     }
/// });
/// let profile = downbeat_regions::profile();
/// let solve = profile.region("solve").ok_or("no span")?;
/// assert_eq!((solve.events, &solve.paths[0].callers[..]), (3, &["step".to_owned()][..]));
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct RegionLayer {}

/// Region of a span, among its extensions.
struct SpanRegion(&'static Region);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for RegionLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let region = region_of(attributes.metadata());
            span.extensions_mut().replace(SpanRegion(region));
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if let Some(region) = region_of_span(id, &context) {
            region.open();
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        if let Some(region) = region_of_span(id, &context) {
            region.leave();
        }
    }
}

fn region_of_span<S: Subscriber + for<'a> LookupSpan<'a>>(
    id: &Id,
    context: &Context<'_, S>,
) -> Option<&'static Region> {
    let span = context.span(id)?;
    let extensions = span.extensions();
    Some(extensions.get::<SpanRegion>()?.0)
}

/// Returns the region of a call site.
fn region_of(site: &Metadata<'static>) -> &'static Region {
    static REGIONS: OnceLock<RwLock<HashMap<Identifier, &'static Region>>> = OnceLock::new();
    let regions = REGIONS.get_or_init(RwLock::default);
    let known = regions.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(region) = known.get(&site.callsite()) {
        return region;
    }
    drop(known);
    let mut regions = regions.write().unwrap_or_else(PoisonError::into_inner);
    regions
        .entry(site.callsite())
        .or_insert_with(|| Box::leak(Box::new(Region::named(site.name()))))
}
