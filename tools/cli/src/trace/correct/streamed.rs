//! Correction of a trace that is read several times instead of being held in memory.

use downbeat_common::Failure;
use downbeat_common::trace::{
    Contents, Document, LatencyReport, MovementWalk, Slices, Violations, files,
};
use downbeat_files::FileError;
use downbeat_trace::LocationId;
use downbeat_trace::formats::{StreamedError, StreamedTrace};

use super::{StreamingOption, TraceCorrectOptions};

impl TraceCorrectOptions {
    /// Corrects the trace by streaming; returns the report and the names of the locations. `None` if
    /// the order of events does not allow streaming, and the user did not demand it.
    pub(super) fn correct_streamed(&self) -> Result<Option<(Document, Vec<String>)>, Failure> {
        match self.stream() {
            Ok(done) => Ok(Some(done)),
            Err(Stop::Failure(why)) => Err(why),
            Err(Stop::Streamed(why)) => match *why {
                StreamedError::Disorder(_) if self.streaming == StreamingOption::Auto => Ok(None),
                // An output or temporary file cannot be written.
                StreamedError::Record(why @ FileError::Io { .. }) => Err(Failure::run(why)),
                why => Err(Failure::Input(why.to_string())),
            },
        }
    }

    fn stream(&self) -> Result<(Document, Vec<String>), Stop> {
        let trace =
            StreamedTrace::read(&self.correction.input, self.correction.matching.matching());
        let trace = trace.map_err(|why| match why {
            StreamedError::Record(why) => Stop::Failure(Failure::Input(why.to_string())),
            disorder => disorder.into(),
        })?;
        let (ids, places): (Vec<_>, _) = (trace.census.ids().collect(), trace.census.places());
        let (maps, sessions, pre_synchronization) =
            self.correction
                .clock_maps((&ids, &places), (&trace.sessions, 0), trace.master)?;
        let maps = maps.as_ref();
        let latencies = self
            .correction
            .latencies
            .find_by(|| trace.latencies(maps).map_err(Stop::from))?;
        let clock = self.correction.clock(latencies.latencies);
        let corrected = trace.correct(
            maps,
            &clock,
            !self.correction.no_backward,
            &self.correction.output,
        )?;
        let passes = corrected.passes.iter().map(Into::into).collect();
        let explicitly_corrected = corrected.jumps as usize;
        let [as_measured, pre_synchronized] = [&corrected.as_measured, &corrected.pre_synchronized]
            .map(|found| Violations::new(found, &trace.names));
        let contents = Contents::from_census(&trace.census, corrected.arrivals);
        let [begin, end] = corrected.span;
        let mut movement = MovementWalk::new(Slices::between(begin, end), &trace.names);
        let format = files::format(&self.correction.output, trace.format);
        let see =
            |location: LocationId, before, after| movement.take(location.index(), before, after);
        let written = trace.write_corrected(
            (&self.correction.output, format),
            maps,
            corrected,
            &sessions,
            see,
        )?;
        let (found, deviation) = (Violations::new(&written.0, &trace.names), written.1);
        found.check_none_left(&self.correction.input)?;
        let document = Document {
            schema: "downbeat.trace_correction",
            version: 1,
            contents,
            pre_synchronization,
            latencies: LatencyReport::new(latencies),
            passes,
            explicitly_corrected,
            as_measured,
            pre_synchronized,
            corrected: found,
            deviation: (&deviation).into(),
            movement: movement.finish(),
            truth: None,
            archive: None,
        };
        Ok((document, trace.names))
    }
}

/// Reason to stop early.
enum Stop {
    Streamed(Box<StreamedError>),
    Failure(Failure),
}

impl From<StreamedError> for Stop {
    fn from(why: StreamedError) -> Self {
        Self::Streamed(Box::new(why))
    }
}

impl From<Failure> for Stop {
    fn from(why: Failure) -> Self {
        Self::Failure(why)
    }
}
