//! Options for the messages of measured operations.

use std::fmt::Display;

use clap::Args;
use downbeat_common::Failure;
use downbeat_common::records::Factors;
use downbeat_measure::{Alignment, CacheState, Datatype, OperationSettings, Reduction, Root};
use downbeat_timers::{current_core, last_private_cache};

#[derive(Args, Clone, Debug)]
pub(crate) struct SettingsOptions {
    /// Datatype of the messages: byte, int, long, float, double, ...
    #[arg(long, value_name = "TYPE", default_value_t = OperationSettings::default().datatype)]
    datatype: Datatype,
    /// Reduction operator: sum, prod, min, max, band, bor, ... [default: bor, or sum for float and double]
    #[arg(long, value_name = "NAME")]
    reduction: Option<Reduction>,
    /// Root: a rank, or "rotating" for another one with every call [default: that of the suite, or 0]
    #[arg(long, value_name = "ROOT", allow_hyphen_values = true)]
    root: Option<Root>,
    /// Use MPI_IN_PLACE: results replace the messages
    #[arg(long)]
    in_place: bool,
    /// Align messages to multiples of this number of bytes
    #[arg(long, value_name = "BYTES", default_value_t = Alignment::default(), allow_hyphen_values = true)]
    alignment: Alignment,
    /// State of the caches before a call: warm, cold-overwrite (overwritten with other data) or cold-walk (each message is
    /// in another buffer)
    #[arg(long, value_name = "STATE", default_value_t = CacheState::Warm)]
    cache: CacheState,
    /// Size of the cache to make cold [default: that of the last private cache of a core]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..=1 << 40), allow_hyphen_values = true)]
    cache_size: Option<u64>,
}

impl SettingsOptions {
    /// Returns the settings; with a rotating root if the method has one and no other is given.
    pub(crate) fn settings(&self, rotates_root: bool) -> Result<OperationSettings, Failure> {
        let default = OperationSettings::default();
        let root = self.root.unwrap_or(if rotates_root {
            Root::Rotating
        } else {
            default.root
        });
        Ok(OperationSettings {
            datatype: self.datatype,
            reduction: self.reduction.unwrap_or(self.datatype.usual_reduction()),
            root,
            in_place: self.in_place,
            alignment: self.alignment,
            cache: self.cache,
            cache_bytes: self.cache_bytes()?,
            ..default
        })
    }

    fn cache_bytes(&self) -> Result<usize, Failure> {
        match (self.cache, self.cache_size) {
            (CacheState::Warm, None) => Ok(0),
            (CacheState::Warm, Some(_)) => Err(Failure::option(
                "--cache-size",
                "does not apply to warm caches",
            )),
            (_, Some(bytes)) => Ok(bytes as usize),
            (_, None) => {
                let core = current_core()
                    .ok_or_else(|| unknown_size(&"the system does not report the current core"))?;
                Ok(last_private_cache(core)
                    .map_err(|why| unknown_size(&why))?
                    .bytes as usize)
            }
        }
    }
}

fn unknown_size(why: &dyn Display) -> Failure {
    Failure::option("--cache", format!("{why}; set the size with --cache-size"))
}

/// Adds the settings to the factors.
pub(crate) fn add_factors(settings: &OperationSettings, factors: Factors) -> Factors {
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
