//! Times of all ranks in files, one for each node: no rank needs memory for the times of others, except for a few thousand calls of the
//! ranks of its node.

use std::path::Path;

use downbeat_clock_core::Clock;
use downbeat_measure::{Coordinator, MeasureContext, MeasureError, Measurement, Method, Operation};
use downbeat_records::{
    GroupKey, Journal, Observation, ObservationState, Observations, RawJournal, RawPlan,
    RecordError,
};
use downbeat_sync::{Comm, CommError, block_on_ready, collective};

use crate::{Failure, agree_blocking};

/// Times of this rank in the group that is measured, if they are wanted.
#[derive(Debug)]
pub struct RankTimes {
    wanted: bool,
    /// Number of this rank in the group, and its times.
    own: Option<(u32, Observations)>,
}

impl RankTimes {
    /// Keeps the observations of this rank, of which this is the number in the group, if they are wanted.
    pub fn keep(&mut self, rank: u32, own: Observations) {
        self.own = self.wanted.then_some((rank, own));
    }

    /// Measures an operation as [`Method::measure_blocking`] does, and keeps the times of this rank if they are wanted.
    ///
    /// # Errors
    /// As for that function.
    pub fn measure<M: Comm, T: Coordinator, K: Clock>(
        &mut self,
        method: &Method,
        context: &MeasureContext<'_, M, T, K>,
        operation: &mut impl Operation,
    ) -> Result<Option<Measurement>, MeasureError> {
        self.own = None;
        if !self.wanted {
            return method.measure_blocking(context, operation);
        }
        let (measured, own) = block_on_ready(method.measure_on_each(context, operation))?;
        self.keep(context.comm.rank(), own);
        Ok(measured)
    }
}

/// Files of a launch, one for each node.
pub(super) struct RawFiles<'a, M> {
    all: &'a M,
    /// Ranks of this node, the first of which writes the file.
    node: &'a M,
    wanted: bool,
    /// File of a node other than that of rank 0, whose file the journal has.
    file: Option<RawJournal>,
}

impl<'a, M: Comm> RawFiles<'a, M> {
    /// Opens the files, if the journal on rank 0 has raw observations. All ranks call this.
    pub(super) fn open(
        all: &'a M,
        node: &'a M,
        dir: Option<&Path>,
        journal: Option<&Journal>,
    ) -> Result<Self, Failure> {
        let plan = journal.and_then(Journal::raw_plan);
        let plan = plan.map(RawPlan::to_text).unwrap_or_default();
        let (plan, number) = block_on_ready(async {
            let plan = collective::broadcast_text(all, 0, &plan).await?;
            Ok::<_, CommError>((plan, number_of_node(all, node).await?))
        })
        .map_err(Failure::run)?;
        let plan = RawPlan::from_text(&plan);
        let file = match (&plan, dir) {
            (Some(plan), Some(dir)) if node.rank() == 0 && all.rank() != 0 => {
                let opened = RawJournal::open(dir, plan, number);
                opened.map(Some).map_err(unopened)
            }
            _ => Ok(None),
        };
        Ok(Self {
            all,
            node,
            wanted: plan.is_some(),
            file: agree_blocking(all, file)?,
        })
    }

    /// Returns a place for the times of this rank in one group.
    pub(super) fn times(&self) -> RankTimes {
        RankTimes {
            wanted: self.wanted,
            own: None,
        }
    }

    /// Writes the times of a group, if it was `measured` as rank 0 knows; those of the first node by the journal, which must have the
    /// group next. All ranks call this.
    pub(super) fn write(
        &mut self,
        key: &GroupKey,
        times: &RankTimes,
        measured: bool,
        journal: Option<&mut Journal>,
    ) -> Result<(), Failure> {
        if !self.wanted {
            return Ok(());
        }
        let all = self.all;
        let measured = block_on_ready(collective::broadcast(all, measured));
        if !measured.map_err(Failure::run)? {
            return Ok(());
        }
        let mut file = journal.and_then(Journal::raw).or(self.file.as_mut());
        // The others' times must be received even if they cannot be written.
        let mut written = Ok(());
        let add = |first, ranks: &[(u32, Observations)]| {
            if let (Ok(()), Some(file)) = (&written, &mut file) {
                written = file.add(key, first, ranks);
            }
        };
        let gathered = block_on_ready(gather(self.node, times.own.as_ref(), add));
        gathered.map_err(Failure::run)?;
        // The journal ends the group in its own file.
        let file = self.file.as_mut();
        let ended = written.and_then(|()| file.map_or(Ok(()), |file| file.finish_group(key)));
        self.agree(ended)
    }

    /// Ends the files. All ranks call this.
    pub(super) fn complete(&mut self) -> Result<(), Failure> {
        let file = self.file.as_mut();
        let completed = file.map_or(Ok(()), RawJournal::complete);
        self.agree(completed)
    }

    fn agree(&self, done: Result<(), RecordError>) -> Result<(), Failure> {
        agree_blocking(self.all, done.map_err(Failure::run))
    }
}

/// Returns the number of this node, in the order of the first ranks of all nodes.
async fn number_of_node<M: Comm>(all: &M, node: &M) -> Result<u32, CommError> {
    let is_leader = u64::from(node.rank() == 0);
    let leaders = collective::gather(all, is_leader).await?;
    let leaders = leaders.into_iter().map(|one| one as u8).collect();
    let leaders = collective::broadcast_bytes(all, leaders).await?;
    let before = leaders.iter().take(all.rank() as usize);
    Ok(before.map(|one| u32::from(*one)).sum())
}

/// Number of calls that are gathered together.
const TOGETHER: usize = 4_096;

/// State, begin, and the bits of the duration of a call.
type Word = [[u8; 8]; 3];

/// Gathers the observations of the ranks of a node on the first, which gets those of some calls after the other: the number of the
/// first of the calls, and each rank of the group with its own.
async fn gather<M: Comm>(
    node: &M,
    own: Option<&(u32, Observations)>,
    mut add: impl FnMut(usize, &[(u32, Observations)]),
) -> Result<(), CommError> {
    let (rank, own) = own.map_or((None, &[][..]), |(rank, own)| (Some(*rank), own));
    let head = (rank.is_some(), rank.unwrap_or(0), own.len() as u64);
    let heads = collective::gather(node, head).await?;
    if node.rank() != 0 {
        for calls in own.chunks(TOGETHER) {
            let words: Vec<Word> = calls.iter().map(encode).collect();
            node.send_bytes(0, words.as_flattened().as_flattened())
                .await?;
        }
        return Ok(());
    }
    let members: Vec<(u32, u32, u64)> = (0..)
        .zip(&heads)
        .filter(|(_, (is_member, ..))| *is_member)
        .map(|(place, (_, rank, calls))| (place, *rank, *calls))
        .collect();
    // All members have the same calls.
    let calls = members.first().map_or(0, |(.., calls)| *calls as usize);
    for first in (0..calls).step_by(TOGETHER) {
        let calls = first..calls.min(first + TOGETHER);
        let mut ranks = Vec::with_capacity(members.len());
        for (place, rank, _) in &members {
            if *place == 0 {
                ranks.push((*rank, Observations(own[calls.clone()].to_vec())));
                continue;
            }
            let mut words: Vec<Word> = vec![[[0; 8]; 3]; calls.len()];
            let bytes = words.as_flattened_mut().as_flattened_mut();
            node.recv_bytes(*place, bytes).await?;
            ranks.push((*rank, Observations(words.into_iter().map(decode).collect())));
        }
        add(first, &ranks);
    }
    Ok(())
}

fn encode(call: &Observation) -> Word {
    let words = [call.state as i64, call.begin, call.nanos.to_bits() as i64];
    words.map(i64::to_le_bytes)
}

fn decode(word: Word) -> Observation {
    let [state, begin, bits] = word.map(i64::from_le_bytes);
    let state = ObservationState::ALL.get(state as usize);
    Observation {
        state: state.copied().unwrap_or(ObservationState::Late),
        begin,
        nanos: f64::from_bits(bits as u64),
    }
}

/// Returns the failure for a record that cannot be opened. If ranks of an earlier launch still
/// write to it, `downbeat run` repeats the launch: the user made no mistake.
pub(super) fn unopened(why: RecordError) -> Failure {
    match why {
        RecordError::InUse(_) => Failure::Run(format!("--out: {why}")),
        why => Failure::option("--out", why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use downbeat_sync::ThreadCluster;
    use std::sync::Mutex;

    /// Observations of one rank in the calls of a group.
    fn times(rank: u32, calls: usize) -> Observations {
        let call = |call: usize| Observation {
            state: ObservationState::ALL[call % 4],
            begin: i64::from(rank) * 1_000_000 + call as i64,
            nanos: call as f64 / 8.0,
        };
        Observations((0..calls).map(call).collect())
    }

    #[test]
    fn times_of_the_members_of_a_node_arrive_call_by_call() {
        for (calls, members) in [(3, vec![0, 1, 2]), (10_000, vec![2, 0]), (5, vec![])] {
            let found = Mutex::new(vec![]);
            let program = |node: &downbeat_sync::ThreadComm| {
                let place = node.rank() as usize;
                let own = members.iter().position(|member| *member == place);
                // Ranks have other numbers in the group.
                let own = own.map(|rank| (rank as u32, times(rank as u32, calls)));
                let add = |first: usize, ranks: &[(u32, Observations)]| {
                    assert_eq!(node.rank(), 0);
                    found.lock().unwrap().push((first, ranks.to_vec()));
                };
                block_on_ready(gather(node, own.as_ref(), add)).unwrap();
            };
            ThreadCluster::new(3).run(program).unwrap();
            let found = found.into_inner().unwrap();
            let mut ranks: Vec<usize> = (0..members.len()).collect();
            ranks.sort_by_key(|rank| members[*rank]);
            let firsts = (0..calls).step_by(TOGETHER).filter(|_| !members.is_empty());
            let expected = firsts.map(|first| {
                let part = first..calls.min(first + TOGETHER);
                let of_rank = |rank: &usize| {
                    let own = times(*rank as u32, calls)[part.clone()].to_vec();
                    (*rank as u32, Observations(own))
                };
                (first, ranks.iter().map(of_rank).collect())
            });
            assert_eq!(found, expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn nodes_are_numbered_by_their_first_ranks() {
        let program = |all: &downbeat_sync::ThreadComm| {
            // Ranks 0 and 3 are on one node, 1 and 4 on the next.
            let node = block_on_ready(all.split(Some(all.rank() % 3), all.rank())).unwrap();
            block_on_ready(number_of_node(all, &node.unwrap())).unwrap()
        };
        let found = ThreadCluster::new(5).run(program).unwrap();
        assert_eq!(found[..3], [0, 1, 2]);
    }
}
