//! Traces in files, to be corrected by what [`downbeat_sync::postmortem`] has.

pub mod otf2;
