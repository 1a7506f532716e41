//! Labels of algorithms, schemes and settings, and encoded clock models. What is accepted is written as a label that means
//! the same.
#![no_main]

use core::fmt::{Debug, Display};
use core::str::FromStr;

use downbeat_clock_core::{ClockModel, Duration, Global, Local, parse_share};
use downbeat_common::cli::{self, Labels};
use downbeat_common::sizes::Sizes;
use downbeat_common::trace::LatencyOption;
use downbeat_measure::processing::Processing;
use downbeat_measure::stopping::Stopping;
#[cfg(feature = "mpi")]
use downbeat_measure::{
    Alignment, CacheState,
    mpi::{Datatype, OperationKind, Reduction, Root},
};
use downbeat_measure::{Barrier, BuiltinKind, Preset};
use downbeat_records::RecordFormat;
use downbeat_sync::{Algorithm, OffsetAlgorithm};
use downbeat_timers::skew::SkewSpec;
use libfuzzer_sys::fuzz_target;

/// Parses a label that can be written again.
fn label<T: FromStr + Display + Debug>(text: &str) {
    if let Ok(found) = text.parse::<T>() {
        let written = found.to_string();
        let again = written.parse::<T>().ok().map(|again| again.to_string());
        assert_eq!(again.as_deref(), Some(&*written), "{text:?}: {found:?}");
    }
}

fuzz_target!(|data: &[u8]| {
    let _ = ClockModel::<Local, Global>::decode(data);
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    label::<Algorithm>(text);
    label::<OffsetAlgorithm>(text);
    label::<Stopping>(text);
    label::<Processing>(text);
    label::<Preset>(text);
    label::<Barrier>(text);
    label::<BuiltinKind>(text);
    label::<RecordFormat>(text);
    #[cfg(feature = "mpi")]
    {
        label::<Alignment>(text);
        label::<CacheState>(text);
        label::<Datatype>(text);
        label::<OperationKind>(text);
        label::<Reduction>(text);
        label::<Root>(text);
    }
    let _ = (cli::positive(text), cli::not_negative(text));
    if let Ok(share) = parse_share(text) {
        assert!((0.0..1.0).contains(&share), "{text:?}: {share}");
    }
    let _ = text.parse::<Labels>();
    let _ = text.parse::<Duration>();
    let _ = text.parse::<Sizes>();
    let _ = text.parse::<SkewSpec>();
    let _ = text.parse::<LatencyOption>();
});
