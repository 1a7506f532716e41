//! Ghosts of events of other ranks: what ranks tell each other of channels and operations
//! before each matches its events as if it had the whole trace.

use downbeat_sync::Comm;

use super::TracePart;
use super::exchange::{Boxes, agree_on_error, empty_boxes, exchange_bytes};
use super::part::RankShare;
use crate::builder::SortedEvents;
use crate::channels::MarkId;
use crate::correction_error::CorrectionError;
use crate::definitions::ChannelEnd;
use crate::encoding::{Encoded, decode_values, encoded};
use crate::events::Columns;
use crate::teams::{Column, MemberOperation, Track};
use crate::trace::{Location, Mark, NONE, Role};
use crate::{ArrayStore, EventId, LocationId, NoRoom, TraceBuilder};

impl TraceBuilder {
    /// Returns this rank's part, after every rank has added the events that it
    /// [owns](Self::owns), with their [positions](Self::set_position) in the whole trace.
    ///
    /// ```
    /// use downbeat_clock_core::Timestamp;
    /// use downbeat_sync::{Comm, ThreadCluster, block_on_ready};
    /// use downbeat_trace::ranks::{LocationLoad, LocationShares};
    /// use downbeat_trace::{ClockOwner, ControlledLogicalClock, CorrectionError, Event};
    /// use downbeat_trace::{Latencies, Matching, Place, TraceBuilder};
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// // Two processes with one thread and one event each, for two ranks.
    /// let places = [0, 1].map(|number| Place { node: number, process: number });
    /// let loads = places.map(|place| LocationLoad { process: place.process, place, events: 1 });
    /// let shares = LocationShares::new(2, ClockOwner::Process, &loads);
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
        let teams = self.definitions.teams.iter().map(|members| {
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
        let channels = exchange_bytes(comm, channels).await?;
        let columns = exchange_bytes(comm, columns).await?;
        sorted.add_ghosts(&channels, &columns)?;
        let tracks = sorted.take_tracks()?;
        agree_on_error(comm, tracks.first_error()).await?;
        let trace = sorted.into_trace(tracks, |location| owners[location as usize] == rank)?;
        let share = RankShare {
            rank,
            owners,
            teams,
            ghost_sources: sources,
        };
        Ok(TracePart { trace, share })
    }
}

/// Channel end of another rank, with the events of its sends; of receives, only the
/// number.
struct RemoteChannel {
    /// Location that represents the process.
    process: u32,
    end: ChannelEnd,
    receives: u64,
    sends: Vec<EventId>,
}

/// Operations of a member of another rank.
struct RemoteColumn {
    team: u32,
    track: Track,
    rank: u32,
    operations: Vec<RemoteOperation>,
}

/// Operation of a member of another rank, with the events of its marks.
struct RemoteOperation {
    operation: MemberOperation,
    enter: Option<EventId>,
    exit: Option<EventId>,
}

encoded! {
    RemoteChannel { process, end, receives, sends }
    ChannelEnd { peer, communicator, tag, sends }
    RemoteColumn { team, track, rank, operations }
    RemoteOperation { operation, enter, exit }
    MemberOperation { location, enter, exit, entered, left, time, first, stated }
}

impl SortedEvents {
    /// Returns the event of a mark; `None` without a mark.
    fn event_of(&self, id: MarkId) -> Option<EventId> {
        let [process, index] = self.builder.indices[id.location as usize];
        let (location, of) = &self.events[process as usize][index as usize];
        let mark = of.marks.get(id.mark as usize)?;
        Some(EventId {
            location: *location,
            event: mark.event,
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
            for (end, messages) in channels.all() {
                let to = owners[end.peer as usize];
                if to == comm.rank() {
                    continue;
                }
                let sends: &[MarkId] = if end.sends { messages } else { &[] };
                sources[to as usize].extend_from_slice(sends);
                let channel = RemoteChannel {
                    // The first location of a process represents it.
                    process: locations[0].0.0,
                    end,
                    receives: (messages.len() - sends.len()) as u64,
                    sends: sends.iter().filter_map(|id| self.event_of(*id)).collect(),
                };
                channel.encode(&mut out[to as usize]);
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
            let mut marks = vec![];
            let operations = column.operations.iter().map(|operation| {
                let ends = [operation.enter, operation.exit].map(|mark| MarkId {
                    location: operation.location,
                    mark,
                });
                marks.extend(ends.into_iter().filter(|end| end.mark != NONE));
                let [enter, exit] = ends.map(|end| self.event_of(end));
                RemoteOperation {
                    operation: *operation,
                    enter,
                    exit,
                }
            });
            let column = RemoteColumn {
                team: *team,
                track: *track,
                rank: *rank,
                operations: operations.collect(),
            };
            for other in others {
                column.encode(&mut out[*other as usize]);
                sources[*other as usize].extend_from_slice(&marks);
            }
        }
        out
    }

    /// Adds the channels and operations of other ranks, with ghosts of their events.
    fn add_ghosts(&mut self, channels: &Boxes, columns: &Boxes) -> Result<(), NoRoom> {
        let channels: Vec<RemoteChannel> = decode_boxes(channels);
        let columns: Vec<RemoteColumn> = decode_boxes(columns);
        let sends = channels.iter().flat_map(|channel| &channel.sends).copied();
        let operations = columns.iter().flat_map(|column| &column.operations);
        let ends = operations.flat_map(|of| of.enter.into_iter().chain(of.exit));
        let mut ghosts: Vec<EventId> = sends.chain(ends).collect();
        ghosts.sort_unstable();
        ghosts.dedup();
        for EventId { location, event } in ghosts {
            let of = self.location_mut(location);
            let number = of.ghost_events.len() as u32;
            of.marks.push(Mark::new(number, Role::Nothing, 0, NONE))?;
            of.ghost_events.push(event);
        }
        for channel in channels {
            let process = self.builder.indices[channel.process as usize][0] as usize;
            let sends = channel.sends.into_iter();
            let sends: Vec<_> = sends
                .map(|send| self.set_ghost(send, Role::Send, channel.end.peer))
                .collect();
            let unknown = MarkId {
                location: channel.process,
                mark: NONE,
            };
            let receives = std::iter::repeat_n(unknown, channel.receives as usize);
            self.channels[process].push(channel.end, sends.into_iter().chain(receives))?;
        }
        let mut remote = Columns::default();
        for RemoteColumn {
            team,
            track,
            rank,
            operations,
        } in columns
        {
            let mut column = Column::new(&ArrayStore::MEMORY);
            for of in operations {
                let mut mark = |event: Option<EventId>, role: Role| {
                    event.map_or(NONE, |event| self.set_ghost(event, role, rank).mark)
                };
                column.operations.push(MemberOperation {
                    enter: mark(of.enter, Role::Enter),
                    exit: mark(of.exit, Role::Exit),
                    ..of.operation
                })?;
            }
            remote.insert((team, track, rank), column);
        }
        self.columns.push(remote);
        Ok(())
    }

    fn location_mut(&mut self, location: LocationId) -> &mut Location {
        let [process, index] = self.builder.indices[location.index()];
        &mut self.events[process as usize][index as usize].1
    }

    /// Returns the mark of a ghost, given by its event, after it has got this role.
    fn set_ghost(&mut self, ghost: EventId, role: Role, peer: u32) -> MarkId {
        let of = self.location_mut(ghost.location);
        let at = of.ghost_events.binary_search(&ghost.event).unwrap_or(0);
        let number = at as u32;
        if let Some(mark) = of.marks.get_mut(at) {
            *mark = Mark::new(number, role, peer, NONE);
        }
        MarkId {
            location: ghost.location.0,
            mark: number,
        }
    }
}

/// Returns the values that all ranks have sent.
fn decode_boxes<T: for<'a> Encoded<'a>>(boxes: &Boxes) -> Vec<T> {
    boxes
        .iter()
        .flat_map(|bytes| decode_values(bytes))
        .collect()
}
