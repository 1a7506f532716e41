//! Common parts of the stencil examples: options, configuration and output.

use std::error::Error;
use std::path::PathBuf;

use downbeat_regions::{Profile, RegionSettings, TextOptions};
use downbeat_sync::Comm;
use downbeat_timers::Duration;

use crate::heat::{COLUMNS, Deal, HeatTotals, ROWS, alone};

pub(crate) type StencilFailure = Box<dyn Error + Send + Sync>;

/// Configures ticks of a microsecond, before the timed part.
pub(crate) fn configure() -> Result<(), StencilFailure> {
    let tick = Duration::from_micros(1);
    Ok(downbeat_regions::configure(RegionSettings {
        tick,
        ..RegionSettings::default()
    })?)
}

/// Options of the command line.
pub(crate) struct StencilOptions {
    pub(crate) deal: Deal,
    save: Option<PathBuf>,
}

impl StencilOptions {
    /// Parses `--balanced` and `--save FILE`.
    pub(crate) fn from_arguments(
        arguments: impl Iterator<Item = String>,
    ) -> Result<Self, StencilFailure> {
        let mut options = Self {
            deal: Deal::Packed,
            save: None,
        };
        let mut arguments = arguments.skip(1);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--balanced" => options.deal = Deal::Balanced,
                "--save" => {
                    options.save = Some(arguments.next().ok_or("--save needs a file")?.into());
                }
                other => {
                    return Err(format!(
                        "{other}: unknown option; known are --balanced and --save FILE"
                    )
                    .into());
                }
            }
        }
        Ok(options)
    }
}

/// Checks the result and gathers the report; returns the output on rank 0.
pub(crate) async fn conclude<M: Comm>(
    outcome: HeatTotals,
    profile: &Profile,
    options: &StencilOptions,
    comm: &M,
) -> Result<Option<String>, StencilFailure> {
    let Some(report) = downbeat_regions::gather(profile, comm).await? else {
        return Ok(None);
    };
    if outcome != alone() {
        return Err(format!(
            "the ranks have {outcome:?}, and a single rank has {:?}",
            alone()
        )
        .into());
    }
    if let Some(path) = &options.save {
        report.save(path)?;
    }
    let text = report.text(&TextOptions::default());
    let HeatTotals {
        heat: [before, after],
        fingerprint,
    } = outcome;
    Ok(Some(format!(
        "rank 0 of {}: {ROWS} x {COLUMNS} cells, on {} of them; heat {before} before, {after} after; {fingerprint:x}, as for \
         one rank alone\n\n{text}",
        comm.size(),
        options.deal.workers(comm.size()),
    )))
}
