//! Reads events on one thread and matches them on another, which takes about as long.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use crate::{Action, CommunicatorId, LocationId, Place, TraceBuilder, TraceError};
use downbeat_clock_core::{Global, Timestamp};

use super::events::Otf2Event;
use super::sink::{ReadError, Sink};

/// Number of events that are passed at once: few enough to stay in a cache until they are taken.
const BATCH: usize = 1 << 10;
/// Maximum number of batches that wait.
const WAITING: usize = 16;

type Batch = Vec<(Timestamp<Global>, Action)>;

enum HandoverMessage {
    Events(LocationId, Batch),
    Call(BuilderCall),
}

/// Call of a method of the builder, whose result is sent back.
type BuilderCall = Box<dyn FnOnce(&mut TraceBuilder) -> Result<(), TraceError> + Send>;

/// Error of the reading thread when the builder has stopped taking events.
#[derive(Debug)]
pub(super) struct Stopped;

/// Sink that passes everything to the builder on another thread.
pub(super) struct Handover {
    to: SyncSender<HandoverMessage>,
    batch: Batch,
    /// Location of the events in the batch.
    location: Option<LocationId>,
}

/// Reads on another thread while the builder runs on this one. The result is the same as on one
/// thread.
pub(super) fn hand_over<T: Send>(
    builder: &mut TraceBuilder,
    read: impl FnOnce(&mut Handover) -> Result<T, ReadError<Stopped>> + Send,
) -> Result<T, ReadError<TraceError>> {
    let (to, messages) = sync_channel(WAITING);
    thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut handover = Handover {
                to,
                batch: Batch::with_capacity(BATCH),
                location: None,
            };
            let read = read(&mut handover);
            // An error of reading only counts if everything read before it was taken.
            let sent = handover.send_events();
            read.and_then(|read| sent.map(|()| read).map_err(ReadError::Sink))
        });
        let taken = take_all(messages, builder);
        let read = reader
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        taken.map_err(ReadError::Sink)?;
        read.map_err(|why| match why {
            ReadError::Archive(why) => why.into(),
            ReadError::Sink(Stopped) => unreachable!("everything was taken"),
        })
    })
}

fn take_all(
    messages: Receiver<HandoverMessage>,
    builder: &mut TraceBuilder,
) -> Result<(), TraceError> {
    messages.into_iter().try_for_each(|message| match message {
        HandoverMessage::Events(location, events) => events
            .into_iter()
            .try_for_each(|(time, action)| builder.push(location, time, action)),
        HandoverMessage::Call(call) => call(builder),
    })
}

impl Handover {
    fn send(&self, message: HandoverMessage) -> Result<(), Stopped> {
        self.to.send(message).map_err(|_| Stopped)
    }

    fn send_events(&mut self) -> Result<(), Stopped> {
        match self.location {
            Some(location) if !self.batch.is_empty() => {
                let batch = std::mem::replace(&mut self.batch, Batch::with_capacity(BATCH));
                self.send(HandoverMessage::Events(location, batch))
            }
            _ => Ok(()),
        }
    }

    fn call<T: Send + 'static>(
        &mut self,
        call: impl FnOnce(&mut TraceBuilder) -> Result<T, TraceError> + Send + 'static,
    ) -> Result<T, Stopped> {
        self.send_events()?;
        let (to, answer) = sync_channel(1);
        self.send(HandoverMessage::Call(Box::new(move |builder| {
            // The receiver waits for it.
            let _ = to.send(call(builder)?);
            Ok(())
        })))?;
        answer.recv().map_err(|_| Stopped)
    }
}

impl Sink for Handover {
    type Error = Stopped;

    fn add_location(&mut self, _index: usize, place: Place) -> Result<LocationId, Stopped> {
        self.call(move |builder| builder.add_location(place))
    }

    fn add_thread(&mut self, _index: usize, rank: LocationId) -> Result<LocationId, Stopped> {
        self.call(move |builder| builder.add_thread(rank))
    }

    fn add_communicator(&mut self, members: &[LocationId]) -> Result<CommunicatorId, Stopped> {
        let members = members.to_vec();
        self.call(move |builder| builder.add_communicator(&members))
    }

    fn reserve(&mut self, location: LocationId, events: usize) -> Result<(), Stopped> {
        self.call(move |builder| Sink::reserve(builder, location, events))
    }

    #[inline]
    fn push(
        &mut self,
        location: LocationId,
        time: Timestamp<Global>,
        action: Action,
        _event: Otf2Event,
    ) -> Result<(), Stopped> {
        if self.location != Some(location) || self.batch.len() == BATCH {
            self.send_events()?;
            self.location = Some(location);
        }
        self.batch.push((time, action));
        Ok(())
    }
}
