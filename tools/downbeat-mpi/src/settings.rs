//! What the messages of measured operations are like.

use clap::Args;
use downbeat_common::Failure;
use downbeat_common::records::Factors;
use downbeat_measure::{Alignment, CacheState, Datatype, OperationSettings, Reduction, Root};
use downbeat_timers::{current_core, last_private_cache};

#[derive(Args, Clone, Debug)]
pub(crate) struct SettingsOptions {
    /// What messages are made of: byte, int, long, float, double, ...
    #[arg(long, value_name = "TYPE", default_value_t = OperationSettings::default().datatype)]
    datatype: Datatype,
    /// How they are combined: sum, prod, min, max, band, bor, ... [default: bor, or sum for float and double]
    #[arg(long, value_name = "NAME")]
    reduction: Option<Reduction>,
    /// A rank, or "rotating": another with every call [default: as the suite has it, or 0]
    #[arg(long, value_name = "ROOT", allow_hyphen_values = true)]
    root: Option<Root>,
    /// Messages are where their results will be
    #[arg(long)]
    in_place: bool,
    /// Messages begin at multiples of so many bytes
    #[arg(long, value_name = "BYTES", default_value_t = Alignment::default(), allow_hyphen_values = true)]
    alignment: Alignment,
    /// What the caches hold before a call: warm, cold-overwrite (something else is written over them) or cold-walk (each
    /// message is elsewhere)
    #[arg(long, value_name = "STATE", default_value_t = CacheState::Warm)]
    cache: CacheState,
    /// The size of the cache that is to be cold [default: of the last one that a core has for itself]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..=1 << 40), allow_hyphen_values = true)]
    cache_size: Option<u64>,
}

impl SettingsOptions {
    /// The settings; with a root that changes if the method has one.
    pub(crate) fn settings(&self, rotates_root: bool) -> Result<OperationSettings, Failure> {
        let usual = OperationSettings::default();
        let root = self.root.unwrap_or(if rotates_root {
            Root::Rotating
        } else {
            usual.root
        });
        Ok(OperationSettings {
            datatype: self.datatype,
            reduction: self.reduction.unwrap_or(self.datatype.usual_reduction()),
            root,
            in_place: self.in_place,
            alignment: self.alignment,
            cache: self.cache,
            cache_bytes: self.cache_bytes()?,
            ..usual
        })
    }

    fn cache_bytes(&self) -> Result<usize, Failure> {
        match (self.cache, self.cache_size) {
            (CacheState::Warm, None) => Ok(0),
            (CacheState::Warm, Some(_)) => Err(Failure::option(
                "--cache-size",
                "has no meaning for warm caches",
            )),
            (_, Some(bytes)) => Ok(bytes as usize),
            (_, None) => {
                let core =
                    current_core().ok_or_else(|| of_cache(&"the system does not tell the core"))?;
                Ok(last_private_cache(core)
                    .map_err(|why| of_cache(&why))?
                    .bytes as usize)
            }
        }
    }
}

fn of_cache(why: &dyn std::fmt::Display) -> Failure {
    Failure::option(
        "--cache",
        format!("{why}; --cache-size says how large it is"),
    )
}

/// What the results depend on.
pub(crate) fn factors(settings: &OperationSettings, factors: Factors) -> Factors {
    let factors = factors
        .with("datatype", &settings.datatype)
        .with("reduction", &settings.reduction)
        .with("root", &settings.root)
        .with("in place", &settings.in_place)
        .with("alignment", &settings.alignment)
        .with("cache", &settings.cache);
    if settings.cache == CacheState::Warm {
        factors
    } else {
        factors.with("cache size", &settings.cache_bytes)
    }
}
