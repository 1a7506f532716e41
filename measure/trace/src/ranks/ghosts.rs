//! Ghosts of events of other ranks: what ranks tell each other of channels and operations
//! before each matches its events as if it had the whole trace.

use downbeat_sync::Comm;

use super::TracePart;
use super::exchange::{Boxes, agree_on_error, empty_boxes, event_of, exchange_words, word_of};
use crate::builder::SortedEvents;
use crate::channels::MarkId;
use crate::correction_error::CorrectionError;
use crate::definitions::ChannelEnd;
use crate::events::Columns;
use crate::teams::{Column, MemberOperation, Track};
use crate::trace::{Mark, NONE, Role};
use crate::{ArrayStore, CollectiveKind, EventId, LocationId, NoRoom, TraceBuilder};

impl TraceBuilder {
    /// Returns this rank's part, after every rank has added the events that it
    /// [owns](Self::owns), with their [positions](Self::set_position) in the whole trace.
    ///
    /// ```
    /// use downbeat_clock_core::Timestamp;
    /// use downbeat_sync::{Comm, ThreadCluster, block_on_ready};
    /// use downbeat_trace::ranks::{Load, Shares};
    /// use downbeat_trace::{ClockOwner, ControlledLogicalClock, CorrectionError, Event};
    /// use downbeat_trace::{Latencies, Matching, Place, TraceBuilder};
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// // Two processes with one thread and one event each, for two ranks.
    /// let places = [0, 1].map(|number| Place { node: number, process: number });
    /// let loads = places.map(|place| Load { process: place.process, place, events: 1 });
    /// let shares = Shares::new(2, ClockOwner::Process, &loads);
    /// let times = ThreadCluster::new(2).run(|comm| {
    ///     let builder = TraceBuilder::new(Matching::default());
    ///     let mut builder = builder.for_rank(comm.rank(), shares.clone());
    ///     let sender = builder.add_location(places[0])?;
    ///     let receiver = builder.add_location(places[1])?;
    ///     let communicator = builder.add_communicator(&[sender, receiver])?.into();
    ///     let message = [
    ///         (sender, 500, Event::Send { to: 1, communicator, tag: 7, request: None, bytes: None }),
    ///         (receiver, 300, Event::Receive { from: 0, communicator, tag: 7, request: None, bytes: None }),
    ///     ];
    ///     for (position, (location, nanos, event)) in (0..).zip(message) {
    ///         if builder.owns(location) {
    ///             builder.set_position(position);
    ///             builder.push(location, Timestamp::from_nanos(nanos), event)?;
    ///         }
    ///     }
    ///     block_on_ready(async {
    ///         let part = builder.finish_on_ranks(comm).await?;
    ///         let clock = ControlledLogicalClock::new(Latencies::ZERO);
    ///         let corrected = clock.forward_part(&part, comm).await?;
    ///         Ok::<_, CorrectionError>(corrected.times()[comm.rank() as usize].to_vec())
    ///     })
    /// })?;
    /// // Each rank has the times of its own location.
    /// assert_eq!(times, [Ok(vec![Timestamp::from_nanos(500)]), Ok(vec![Timestamp::from_nanos(500)])]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cost
    /// A rank needs the memory of a trace for its own events. Each message from another
    /// rank takes 40 bytes more, and 8 on the rank of its sender. Operations are not
    /// divided: for each member of an operation of several ranks, all of them need 90
    /// bytes.
    ///
    /// # Errors
    /// As [`finish`](Self::finish), on all ranks; and if a rank is gone.
    pub async fn finish_on_ranks<C: Comm>(self, comm: &C) -> Result<TracePart, CorrectionError> {
        let rank = comm.rank();
        let locations = (0..self.definitions.places.len() as u32).map(LocationId);
        let owners: Vec<u32> = locations.map(|location| self.owner(location)).collect();
        let teams = self.definitions.teams().iter().map(|members| {
            let ranks = members.iter().map(|member| owners[*member as usize]);
            let mut others: Vec<u32> = ranks.filter(|owner| *owner != rank).collect();
            others.sort_unstable();
            others.dedup();
            others
        });
        let teams: Vec<Vec<u32>> = teams.collect();
        let mut sorted = self.sort_events(1)?;
        let mut sources = vec![vec![]; comm.size() as usize];
        let channels = sorted.channels_for(&owners, &mut sources, comm);
        let columns = sorted.columns_for(&teams, &mut sources, comm);
        for sources in &mut sources {
            sources.sort_unstable();
            sources.dedup();
        }
        let channels = exchange_words(comm, channels).await?;
        let columns = exchange_words(comm, columns).await?;
        sorted.add_ghosts(&channels, &columns)?;
        let matched = sorted.match_messages()?;
        agree_on_error(comm, matched.tracks.first_disagreement()).await?;
        let trace = matched.into_trace(|location| owners[location as usize] == rank)?;
        Ok(TracePart {
            trace,
            rank,
            owners,
            teams,
            ghost_sources: sources,
        })
    }
}

/// Channel end of another rank, with the events of its sends; of receives, only the
/// number.
struct RemoteChannel<'a> {
    process: u32,
    end: ChannelEnd,
    receives: usize,
    sends: &'a [u64],
}

/// Operations of a member of another rank.
struct RemoteColumn<'a> {
    key: (u32, Track, u32),
    operations: &'a [OperationWords],
}

/// Operation of a member: its location and two flags, the events of its enter and exit,
/// the position of its first event, the statement with its position, and the kind and
/// root.
type OperationWords = [u64; 7];

const ENTERED: u64 = 1 << 32;
const LEFT: u64 = 1 << 33;

/// No event, position or statement.
const NOTHING: u64 = u64::MAX;

impl SortedEvents {
    /// Returns the event of a mark as a word; [`NOTHING`] without a mark.
    fn event_word(&self, id: MarkId) -> u64 {
        let [process, index] = self.indices[id.location as usize];
        let (location, of) = &self.events[process as usize][index as usize];
        of.marks.get(id.mark as usize).map_or(NOTHING, |mark| {
            word_of(EventId {
                location: *location,
                event: mark.event,
            })
        })
    }

    /// Returns the ends of channels to other ranks, and notes the sends in `sources`.
    fn channels_for<C: Comm>(
        &self,
        owners: &[u32],
        sources: &mut [Vec<MarkId>],
        comm: &C,
    ) -> Boxes {
        let mut out = empty_boxes(comm);
        for (channels, locations) in self.channels.iter().zip(&self.events) {
            // The first location of a process represents it.
            let process = u64::from(locations[0].0.0);
            let all = channels.all();
            let remote = |(end, _): &(ChannelEnd, _)| owners[end.peer as usize] != comm.rank();
            for (end, messages) in all.filter(remote) {
                let to = owners[end.peer as usize] as usize;
                let label = u64::from(end.communicator) << 32 | u64::from(end.tag as u32);
                let [sends, receives] = match end.sends {
                    true => [messages.len(), 0],
                    false => [0, messages.len()],
                };
                let ends = process << 32 | u64::from(end.peer);
                out[to].extend([ends, label, receives as u64, sends as u64]);
                if end.sends {
                    sources[to].extend_from_slice(messages);
                    out[to].extend(messages.iter().map(|id| self.event_word(*id)));
                }
            }
        }
        out
    }

    /// Returns the operations of this rank's members for the other ranks of their teams,
    /// and notes their enters and exits in `sources`.
    fn columns_for<C: Comm>(
        &self,
        teams: &[Vec<u32>],
        sources: &mut [Vec<MarkId>],
        comm: &C,
    ) -> Boxes {
        let mut out = empty_boxes(comm);
        for ((team, track, rank), column) in self.columns.iter().flatten() {
            let others = &teams[*team as usize];
            if others.is_empty() {
                continue;
            }
            let mut words = vec![
                u64::from(*team) << 32 | *track as u64,
                u64::from(*rank) << 32 | column.operations.len() as u64,
            ];
            let mut marks = vec![];
            for part in &column.operations {
                let ends = [part.enter, part.exit].map(|mark| MarkId {
                    location: part.location,
                    mark,
                });
                marks.extend(ends.into_iter().filter(|end| end.mark != NONE));
                words.extend(words_of_operation(
                    part,
                    ends.map(|end| self.event_word(end)),
                ));
            }
            for other in others {
                out[*other as usize].extend_from_slice(&words);
                sources[*other as usize].extend_from_slice(&marks);
            }
        }
        out
    }

    /// Adds the channels and operations of other ranks, with ghosts of their events.
    fn add_ghosts(&mut self, channels: &Boxes, columns: &Boxes) -> Result<(), NoRoom> {
        let channels = channels.iter().flat_map(|words| read_channels(words));
        let channels: Vec<_> = channels.collect();
        let columns = columns.iter().flat_map(|words| read_columns(words));
        let columns: Vec<_> = columns.collect();
        let sends = channels.iter().flat_map(|channel| channel.sends).copied();
        let operations = columns.iter().flat_map(|column| column.operations);
        let ends = operations.flat_map(|[_, enter, exit, ..]| [*enter, *exit]);
        let mut ghosts: Vec<u64> = sends.chain(ends.filter(|end| *end != NOTHING)).collect();
        ghosts.sort_unstable();
        ghosts.dedup();
        for word in ghosts {
            let EventId { location, event } = event_of(word);
            let [process, index] = self.indices[location.index()];
            let of = &mut self.events[process as usize][index as usize].1;
            of.marks.push(Mark::new(
                of.ghost_events.len() as u32,
                Role::Nothing,
                0,
                NONE,
            ))?;
            of.ghost_events.push(event);
        }
        for channel in &channels {
            let ids: Vec<_> = channel
                .sends
                .iter()
                .map(|word| self.set_ghost(*word, Role::Send, channel.end.peer))
                .collect();
            let unknown = MarkId {
                location: channel.process,
                mark: NONE,
            };
            let receives = std::iter::repeat_n(unknown, channel.receives);
            let process = self.indices[channel.process as usize][0] as usize;
            self.channels[process].push(channel.end, ids.into_iter().chain(receives))?;
        }
        let mut remote = Columns::default();
        for RemoteColumn { key, operations } in columns {
            let mut column = Column::new(&ArrayStore::MEMORY);
            for words in operations {
                column.operations.push(self.operation_of(words, key.2))?;
            }
            remote.insert(key, column);
        }
        self.columns.push(remote);
        Ok(())
    }

    /// Returns the mark of a ghost, given by its event, after it has got this role.
    fn set_ghost(&mut self, word: u64, role: Role, peer: u32) -> MarkId {
        let EventId { location, event } = event_of(word);
        let [process, index] = self.indices[location.index()];
        let of = &mut self.events[process as usize][index as usize].1;
        let at = of.ghost_events.binary_search(&event).unwrap_or(0);
        let number = at as u32;
        if let Some(mark) = of.marks.get_mut(at) {
            *mark = Mark::new(number, role, peer, NONE);
        }
        MarkId {
            location: location.0,
            mark: number,
        }
    }

    fn operation_of(&mut self, words: &OperationWords, rank: u32) -> MemberOperation {
        let [member, enter, exit, first, position, event, says] = *words;
        let mut mark = |word: u64, role: Role| match word {
            NOTHING => NONE,
            _ => self.set_ghost(word, role, rank).mark,
        };
        let kind = CollectiveKind::from_number(says >> 32).filter(|_| position != NOTHING);
        MemberOperation {
            location: member as u32,
            enter: mark(enter, Role::Enter),
            exit: mark(exit, Role::Exit),
            entered: member & ENTERED != 0,
            left: member & LEFT != 0,
            first,
            stated: kind.map(|kind| (position, event_of(event), kind, says as u32)),
        }
    }
}

fn words_of_operation(part: &MemberOperation, [enter, exit]: [u64; 2]) -> OperationWords {
    let mut member = u64::from(part.location);
    member |= if part.entered { ENTERED } else { 0 };
    member |= if part.left { LEFT } else { 0 };
    let stated = part.stated.map(|(position, event, kind, root)| {
        let says = (kind as u64) << 32 | u64::from(root);
        [position, word_of(event), says]
    });
    let [position, event, says] = stated.unwrap_or([NOTHING; 3]);
    [member, enter, exit, part.first, position, event, says]
}

fn read_channels(mut words: &[u64]) -> Vec<RemoteChannel<'_>> {
    let mut channels = vec![];
    while let [ends, label, receives, count, rest @ ..] = words {
        let (sends, rest) = rest.split_at(rest.len().min(*count as usize));
        channels.push(RemoteChannel {
            process: (ends >> 32) as u32,
            end: ChannelEnd {
                peer: *ends as u32,
                communicator: (label >> 32) as u32,
                tag: *label as u32 as i32,
                sends: *count > 0,
            },
            receives: *receives as usize,
            sends,
        });
        words = rest;
    }
    channels
}

fn read_columns(mut words: &[u64]) -> Vec<RemoteColumn<'_>> {
    let mut columns = vec![];
    while let [team, member, rest @ ..] = words {
        let length = *member as u32 as usize * size_of::<OperationWords>() / size_of::<u64>();
        let (operations, rest) = rest.split_at(rest.len().min(length));
        let track = Track::ALL[(*team as u32 as usize).min(Track::ALL.len() - 1)];
        columns.push(RemoteColumn {
            key: ((team >> 32) as u32, track, (member >> 32) as u32),
            operations: operations.as_chunks().0,
        });
        words = rest;
    }
    columns
}
