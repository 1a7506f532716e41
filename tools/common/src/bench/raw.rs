//! Times of all ranks in files, one for each node: no rank needs memory for the times of others, except for a few thousand calls of the
//! ranks of its node.

use std::path::Path;

use downbeat_clock_core::{Clock, Domain, Timestamp};
use downbeat_measure::{Coordinator, MeasureContext, MeasureError, Measurement, Method, Operation};
use downbeat_records::{
    Basis, CallTimes, GroupKey, Journal, Observation, ObservationState, Observations, RawJournal,
    RawPlan, RecordError,
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
        self.own = Some((context.comm.rank(), own));
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
        let measured = block_on_ready(collective::broadcast(all, u64::from(measured)));
        if measured.map_err(Failure::run)? == 0 {
            return Ok(());
        }
        let (mut journal, mut file) = (journal, self.file.as_mut());
        // The others' times must be received even if they cannot be written.
        let mut written = Ok(());
        let add = |ranks: &[u32], first, times: &Observations| {
            if written.is_ok() {
                written = match (&mut journal, &mut file) {
                    (Some(journal), _) => journal.add_times(key, ranks, first, times),
                    (None, Some(file)) => file.add(key, ranks, first, times),
                    (None, None) => Ok(()),
                };
            }
        };
        let gathered = block_on_ready(gather(self.node, times.own.as_ref(), add));
        gathered.map_err(Failure::run)?;
        let ended = written.and_then(|()| file.map_or(Ok(()), |file| file.end(key)));
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

/// State, and what is known of a call: begin and end, or the bits of a mean.
type Word = [[u8; 8]; 3];

/// Gathers the times of the ranks of a node on the first, which gets those of some calls after the other with the numbers of the ranks
/// in the group and the number of the first of the calls.
async fn gather<M: Comm>(
    node: &M,
    own: Option<&(u32, Observations)>,
    mut add: impl FnMut(&[u32], usize, &Observations),
) -> Result<(), CommError> {
    let head = own.map_or([0; 4], |(rank, times)| {
        let basis = times.call_times().basis() as u64;
        [1, u64::from(*rank), times.len() as u64, basis]
    });
    let heads = collective::gather(node, head).await?;
    if node.rank() != 0 {
        let calls = own.map_or(0, |(_, times)| times.len());
        for first in (0..calls).step_by(TOGETHER) {
            let words = encode(own, first);
            node.send_bytes(0, words.as_flattened().as_flattened())
                .await?;
        }
        return Ok(());
    }
    let members: Vec<(u32, u32)> = (0..)
        .zip(&heads)
        .filter(|(_, head)| head[0] == 1)
        .map(|(place, head)| (place, head[1] as u32))
        .collect();
    let ranks: Vec<u32> = members.iter().map(|(_, rank)| *rank).collect();
    // All members have the times of the same calls.
    let of_first = members
        .first()
        .and_then(|(place, _)| heads.get(*place as usize));
    let [_, _, calls, basis] = of_first.copied().unwrap_or_default();
    for first in (0..calls as usize).step_by(TOGETHER) {
        let mut all = Vec::with_capacity(members.len());
        for (place, _) in &members {
            let words = if *place == 0 {
                encode(own, first)
            } else {
                let mut words: Vec<Word> = vec![[[0; 8]; 3]; TOGETHER.min(calls as usize - first)];
                let bytes = words.as_flattened_mut().as_flattened_mut();
                node.recv_bytes(*place, bytes).await?;
                words
            };
            all.extend(decode(&words, basis));
        }
        if let Some(times) = Observations::of_ranks(&all) {
            add(&ranks, first, &times);
        }
    }
    Ok(())
}

/// Encodes some calls from the first on.
fn encode(own: Option<&(u32, Observations)>, first: usize) -> Vec<Word> {
    let Some((_, times)) = own else {
        return Vec::new();
    };
    let calls = first..times.len().min(first + TOGETHER);
    let state = |call: usize| times.states()[call] as i64;
    let word = |call: usize| {
        let [begin, end] = match times.call_times() {
            CallTimes::Global(all) => stamps(&all[call]),
            CallTimes::Local(all) => stamps(&all[call]),
            CallTimes::Means(all) => [all[call].to_bits() as i64, 0],
        };
        [state(call), begin, end].map(i64::to_le_bytes)
    };
    calls.map(word).collect()
}

fn stamps<D: Domain>(call: &Observation<D>) -> [i64; 2] {
    [call.start, call.end].map(Timestamp::as_nanos)
}

/// Decodes calls of one rank, of which this is the number of the basis.
fn decode(words: &[Word], basis: u64) -> Option<Observations> {
    let words = || words.iter().map(|word| word.map(i64::from_le_bytes));
    let states = words().map(|[state, ..]| {
        let found = ObservationState::ALL.get(state as usize);
        found.copied()
    });
    fn stamped<D: Domain>([_, start, end]: [i64; 3]) -> Observation<D> {
        let [start, end] = [start, end].map(Timestamp::from_nanos);
        Observation { start, end }
    }
    let times = match basis {
        basis if basis == Basis::Global as u64 => CallTimes::Global(words().map(stamped).collect()),
        basis if basis == Basis::Local as u64 => CallTimes::Local(words().map(stamped).collect()),
        _ => {
            let mean = |[_, bits, _]: [i64; 3]| f64::from_bits(bits as u64);
            CallTimes::Means(words().map(mean).collect())
        }
    };
    Observations::new(1, states.collect::<Option<_>>()?, times)
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

    /// Times of one rank in the calls of a group.
    fn times(rank: u32, calls: usize, basis: Basis) -> Observations {
        let call = |call: usize| (i64::from(rank) * 1_000_000 + call as i64, call);
        let states = (0..calls)
            .map(|call| ObservationState::ALL[call % 4])
            .collect();
        fn stamped<D: Domain>((start, call): (i64, usize)) -> Observation<D> {
            let [start, end] = [start, start + call as i64].map(Timestamp::from_nanos);
            Observation { start, end }
        }
        let calls = (0..calls).map(call);
        let times = match basis {
            Basis::Global => CallTimes::Global(calls.map(stamped).collect()),
            Basis::Local => CallTimes::Local(calls.map(stamped).collect()),
            Basis::Means => CallTimes::Means(calls.map(|(start, _)| start as f64 / 8.0).collect()),
        };
        Observations::new(1, states, times).unwrap()
    }

    #[test]
    fn times_of_the_members_of_a_node_arrive_call_by_call() {
        for basis in [Basis::Global, Basis::Local, Basis::Means] {
            for (calls, members) in [(3, vec![0, 1, 2]), (10_000, vec![2, 0]), (5, vec![])] {
                let found = Mutex::new((vec![], vec![]));
                let program = |node: &downbeat_sync::ThreadComm| {
                    let place = node.rank() as usize;
                    let own = members.iter().position(|member| *member == place);
                    // Ranks have other numbers in the group.
                    let own = own.map(|rank| (rank as u32, times(rank as u32, calls, basis)));
                    let add = |ranks: &[u32], first: usize, times: &Observations| {
                        assert_eq!(node.rank(), 0);
                        let mut found = found.lock().unwrap();
                        found.0.push((ranks.to_vec(), first));
                        found.1.push(times.clone());
                    };
                    block_on_ready(gather(node, own.as_ref(), add)).unwrap();
                };
                ThreadCluster::new(3).run(program).unwrap();
                let (places, mut parts) = found.into_inner().unwrap();
                let mut ranks: Vec<usize> = (0..members.len()).collect();
                ranks.sort_by_key(|rank| members[*rank]);
                let ranks: Vec<u32> = ranks.into_iter().map(|rank| rank as u32).collect();
                let firsts = (0..calls).step_by(TOGETHER).filter(|_| !members.is_empty());
                let expected: Vec<_> = firsts.map(|first| (ranks.clone(), first)).collect();
                assert_eq!(places, expected);
                let all = parts.drain(..).reduce(|mut all, more| {
                    all.append(more);
                    all
                });
                let own: Vec<_> = ranks
                    .iter()
                    .map(|rank| times(*rank, calls, basis))
                    .collect();
                assert_eq!(all, Observations::of_ranks(&own));
            }
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
