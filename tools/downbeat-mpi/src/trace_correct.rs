//! `downbeat-mpi trace-correct`: correction of a trace whose locations are divided among ranks, with
//! the same result as in a single process.

mod blocks;
#[cfg(feature = "otf2")]
mod copies;
mod part;
mod source;

use std::path::Path;

use clap::Args;
use downbeat_clock_core::{Global, Timestamp};
use downbeat_common::trace::{
    ArchiveReport, Contents, CorrectionOptions, Document, LatencyReport, Movement, MovementWalk,
    PreSyncReport, Slices, TruthStages, Violations, files,
};
use downbeat_common::{Failure, agree, block_on_ready_failure};
use downbeat_sync::{Comm, CommError, MpiComm, block_on_ready, collective};
use downbeat_trace::formats::{Sessions, TraceFormat};
use downbeat_trace::{
    CorrectedPart, Deviation, Latencies, Location, PartBuilder, PartError, Shares, TracePart,
    TruthComparison, Verdict,
};

use self::part::{FilePart, failure};
use self::source::Source;
use crate::ranks::hash_of;

#[derive(Args, Debug)]
#[command(
    after_help = "The output is the same as that of downbeat trace correct, to the byte. The processes of the trace are divided \
                  among the ranks; each rank reads, corrects and encodes its own locations. Exceptions: every rank reads the \
                  whole of a text file, and rank 0 encodes the output if it or the input is text. NAME.otf2 is the anchor \
                  file of an OTF2 archive; each rank writes its own locations of the corrected archive.\n\n\
                  Example:\n  downbeat trace generate -o wrong.dbtb && mpirun -np 4 downbeat-mpi trace-correct wrong.dbtb \
                  -o right.dbtb"
)]
pub(crate) struct MpiTraceCorrectOptions {
    #[command(flatten)]
    correction: CorrectionOptions,
}

pub(crate) fn run(options: &MpiTraceCorrectOptions, comm: &MpiComm) -> Result<(), Failure> {
    block_on_ready_failure(options.run(comm))
}

impl MpiTraceCorrectOptions {
    async fn run<C: Comm>(&self, comm: &C) -> Result<(), Failure> {
        let CorrectionOptions { input, truth, .. } = &self.correction;
        let is_first = comm.rank() == 0;
        // Only rank 0 creates output.
        let _unfinished =
            agree(comm, is_first.then(|| self.correction.begin()).transpose()).await?;
        let loads = source::loads_of(input);
        let shares = Shares::new(comm.size(), &loads);
        let apply_offsets = self.correction.applies_offsets();
        let (mut file, applied, source) = self
            .read((input, apply_offsets), &shares, &loads, comm)
            .await?;
        let truth = match truth {
            Some(path) => Some(
                self.read((path, true), &shares, &source::loads_of(path), comm)
                    .await?
                    .0,
            ),
            None => None,
        };
        let document = self
            .correct((&mut file, applied, &source), truth.as_ref(), comm)
            .await?;
        let shown = if is_first {
            self.correction.show(&document, &file.names, false)
        } else {
            Ok(())
        };
        agree(comm, shown).await
    }

    /// Reads the locations of this rank. If any rank finds an error, all ranks fail, with the first
    /// error of the file.
    async fn read<C: Comm>(
        &self,
        (path, apply_offsets): (&Path, bool),
        shares: &Shares,
        loads: &[(u32, u64)],
        comm: &C,
    ) -> Result<(FilePart, usize, Source), Failure> {
        let matching = self.correction.matching.matching();
        let mut builder = PartBuilder::new(matching, shares.clone(), comm.rank());
        let read = source::load(path, &mut builder, matching, apply_offsets);
        let after = read.as_ref().err().map_or(u64::MAX, |(after, _)| *after);
        let first = collective::all_reduce(comm, after, u64::min)
            .await
            .map_err(Failure::run)?;
        let read = match read {
            Ok(read) => Ok(Some(read)),
            Err((after, why)) if after == first => Err(Failure::Input(why)),
            // Another rank found an earlier error.
            Err(_) => Ok(None),
        };
        let Some((file, applied, source)) = agree(comm, read).await? else {
            return Err(Failure::Input(String::new()));
        };
        let is_same = file.loads == loads;
        let is_same = agree(comm, is_same.then_some(()).ok_or_else(|| changed(path)))
            .await
            .is_ok()
            && collective::all_equal(comm, hash_of(&loads))
                .await
                .map_err(Failure::run)?;
        if !is_same {
            return Err(changed(path));
        }
        let part = builder
            .finish(comm)
            .await
            .map_err(|why| source.failure(path, why))?;
        Ok((file.with(part), applied, source))
    }

    async fn correct<C: Comm>(
        &self,
        (file, applied, source): (&mut FilePart, usize, &Source),
        truth: Option<&FilePart>,
        comm: &C,
    ) -> Result<Document, Failure> {
        let fail = |why: PartError| failure(&self.correction.input, why);
        let (measured, sessions, pre_synchronization) =
            self.pre_synchronize(file, applied, comm).await?;
        let measure = || block_on_ready(Latencies::measured_in_part(&file.trace, comm));
        let latencies = self
            .correction
            .latencies
            .find_by(measure)
            .map_err(Failure::run)?;
        let before: Vec<_> = times(&file.trace).collect();
        let judge = async |times: &[&[Timestamp<Global>]]| {
            let verdict = Verdict::of_part(&file.trace, times, &latencies.latencies, comm).await;
            verdict
                .map(|verdict| Violations::new(&verdict, &file.names))
                .map_err(fail)
        };
        let as_measured = match measured {
            Some(measured) => Some(judge(&slices(&measured)).await?),
            None => None,
        };
        let pre_synchronized = judge(&before).await?;

        let clock = self.correction.clock(latencies.latencies);
        let mut corrected = clock.forward_part(&file.trace, comm).await.map_err(fail)?;
        let jumps = corrected.jumps().count() as u64;
        let jumps = collective::all_reduce(comm, jumps, |a, b| a + b)
            .await
            .map_err(Failure::run)?;
        if !self.correction.no_backward {
            corrected
                .amortize(self.correction.gradient, comm)
                .await
                .map_err(Failure::run)?;
        }
        let found = judge(&slices(corrected.times())).await?;
        found.check_none_left(&self.correction.input)?;
        let deviation = Deviation::of_part(&file.trace, corrected.times(), comm)
            .await
            .map_err(fail)?;
        let slices = slices_of(&file.trace, comm).await.map_err(Failure::run)?;
        let movement = movement(file, slices, corrected.times(), comm)
            .await
            .map_err(Failure::run)?;
        let truth = match truth {
            Some(truth) => Some(compare(file, &corrected, (truth, slices), comm).await?),
            None => None,
        };
        let archive = self
            .write((file, source), corrected.times(), &sessions, comm)
            .await?;
        let totals = file.trace.totals(comm).await.map_err(Failure::run)?;
        Ok(Document {
            schema: "downbeat.trace_correction",
            version: 1,
            contents: Contents::from_totals(file.trace.locations().len(), &totals),
            pre_synchronization,
            latencies: LatencyReport::new(latencies),
            passes: corrected.passes().iter().map(Into::into).collect(),
            explicitly_corrected: jumps as usize,
            as_measured: as_measured.unwrap_or_else(|| pre_synchronized.clone()),
            pre_synchronized,
            corrected: found,
            deviation: (&deviation).into(),
            movement,
            truth,
            archive,
        })
    }

    async fn write<C: Comm>(
        &self,
        (file, source): (&FilePart, &Source),
        times: &[Vec<Timestamp<Global>>],
        sessions: &Sessions,
        comm: &C,
    ) -> Result<Option<ArchiveReport>, Failure> {
        let CorrectionOptions {
            input,
            output,
            rewrite,
            ..
        } = &self.correction;
        match source {
            Source::File if *rewrite => Err(files::is_no_archive("--rewrite", input)),
            Source::File => {
                let format = files::format(output, file.format);
                if format == TraceFormat::Binary {
                    let written = file.write_chunks(output, times, sessions, comm).await;
                    if let Some(written) = written.map_err(Failure::run)? {
                        return agree(comm, written.map_err(Failure::run))
                            .await
                            .map(|()| None);
                    }
                }
                let written = match comm.rank() {
                    0 => blocks::write(file, output, format, times, sessions, comm),
                    _ => blocks::serve(times, comm),
                };
                agree(comm, written).await.map(|()| None)
            }
            #[cfg(feature = "otf2")]
            Source::Archive(source) => {
                copies::write(source, &file.trace, times, (output, *rewrite), comm)
                    .await
                    .map(Some)
            }
        }
    }

    /// Maps all timestamps to the master's clock. Returns the measured timestamps if that changes
    /// them, the sessions on that clock, and a report.
    async fn pre_synchronize<C: Comm>(
        &self,
        file: &mut FilePart,
        applied: usize,
        comm: &C,
    ) -> Result<(Option<Vec<Vec<Timestamp<Global>>>>, Sessions, PreSyncReport), Failure> {
        // All ranks have all sessions, and compute the same maps.
        let places: Vec<_> = file.trace.locations().iter().map(Location::place).collect();
        let ids: Vec<_> = file.trace.ids().collect();
        let found =
            self.correction
                .clock_maps((&ids, &places), (&file.sessions, applied), file.master)?;
        let (maps, sessions, report) = found;
        let Some(maps) = maps else {
            return Ok((None, sessions, report));
        };
        let measured = times(&file.trace).map(<[_]>::to_vec).collect();
        file.trace
            .correct(&maps, comm)
            .await
            .map_err(|why| failure(&self.correction.input, why))?;
        Ok((Some(measured), sessions, report))
    }
}

async fn compare<C: Comm>(
    file: &FilePart,
    corrected: &CorrectedPart<'_>,
    (truth, slices): (&FilePart, Slices),
    comm: &C,
) -> Result<TruthStages, Failure> {
    let events = |file: &FilePart| times(&file.trace).map(<[_]>::len).collect::<Vec<_>>();
    let is_same = (events(file) == events(truth)).then_some(());
    agree(
        comm,
        is_same.ok_or_else(|| TruthStages::not_same_trace(&truth.path, &file.path)),
    )
    .await?;
    let fail = |why: PartError| failure(&truth.path, why);
    let (before, expected): (Vec<_>, Vec<_>) =
        (times(&file.trace).collect(), times(&truth.trace).collect());
    let groups = (slices.count, |time| slices.slice(time));
    let before = TruthComparison::of_part(&file.trace, &before, &expected, groups, comm)
        .await
        .map_err(fail)?;
    let after = TruthComparison::of_part(&file.trace, corrected.times(), &expected, groups, comm)
        .await
        .map_err(fail)?;
    Ok(TruthStages::new(slices, &[before, after]))
}

/// Divides the time span of a trace, over all ranks, into slices.
async fn slices_of<C: Comm>(part: &TracePart, comm: &C) -> Result<Slices, CommError> {
    let ends = |times: &[Timestamp<Global>]| {
        Some([times.first()?, times.last()?].map(|time| time.as_nanos()))
    };
    let ends = || times(part).filter_map(ends);
    let begin = ends().map(|[first, _]| first).min().unwrap_or(i64::MAX);
    let end = ends().map(|[_, last]| last).max().unwrap_or(i64::MIN);
    let widest = |a: [u64; 2], b: [u64; 2]| {
        [
            (a[0] as i64).min(b[0] as i64),
            (a[1] as i64).max(b[1] as i64),
        ]
    };
    let both = collective::all_reduce(comm, [begin as u64, end as u64], |a, b| {
        widest(a, b).map(|at| at as u64)
    });
    let [begin, end] = both.await?.map(|at| Timestamp::from_nanos(at as i64));
    Ok(if begin <= end {
        Slices::between(begin, end)
    } else {
        Slices::between(Timestamp::ORIGIN, Timestamp::ORIGIN)
    })
}

/// Computes the displacement of events by location and time: that of all ranks on rank 0, and of own
/// locations on the others.
async fn movement<C: Comm>(
    file: &FilePart,
    slices: Slices,
    corrected: &[Vec<Timestamp<Global>>],
    comm: &C,
) -> Result<Movement, CommError> {
    let mut walk = MovementWalk::new(slices, &file.names);
    for (location, (before, after)) in times(&file.trace).zip(corrected).enumerate() {
        before
            .iter()
            .zip(after)
            .for_each(|(before, after)| walk.take(location, *before, *after));
    }
    let mut known: Vec<u8> = walk
        .known()
        .into_iter()
        .flat_map(u64::to_le_bytes)
        .collect();
    if comm.rank() != 0 {
        comm.send_bytes(0, &known).await?;
        return Ok(walk.finish());
    }
    for other in 1..comm.size() {
        comm.recv_bytes(other, &mut known).await?;
        walk.learn(
            &known
                .as_chunks()
                .0
                .iter()
                .copied()
                .map(u64::from_le_bytes)
                .collect::<Vec<_>>(),
        );
    }
    Ok(walk.finish())
}

fn times(part: &TracePart) -> impl Iterator<Item = &[Timestamp<Global>]> {
    part.locations().iter().map(Location::times)
}

fn slices(times: &[Vec<Timestamp<Global>>]) -> Vec<&[Timestamp<Global>]> {
    times.iter().map(Vec::as_slice).collect()
}

fn changed(path: &Path) -> Failure {
    Failure::Run(format!(
        "{}: the ranks read different content, or the trace was modified while they read it",
        path.display()
    ))
}
