//! Traces in files, to be corrected by what [`downbeat_sync::postmortem`] has.

#[cfg(feature = "otf2")]
pub mod otf2;
