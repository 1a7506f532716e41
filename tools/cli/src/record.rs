//! `downbeat record`: runs an MPI program under the tracer, and makes one corrected trace of it. `downbeat record-rank` does the part
//! of one rank.

mod libraries;
mod messages;
mod rank;
mod signals;
mod spool;
mod whole;

pub(crate) use rank::{RankOptions, run as run_rank};
pub(crate) use whole::{RecordOptions, run};
