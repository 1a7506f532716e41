//! Prepared operations of an MPI library.
#![expect(unsafe_code, reason = "MPI is a C library")]

use core::ffi::{c_int, c_void};
use core::mem::ManuallyDrop;
use core::ptr;

use downbeat_clock_core::Duration;
use downbeat_sync::{CommError, MpiComm, StableHasher, block_on_ready};
use mpi::ffi;

use super::calls::{CallArguments, MpiCall, no_request};
use super::computation::Computation;
use super::constants::in_place;
use super::datatype::Reduction;
use super::derived::MessageType;
use super::entries::{Exposed, InPlace, InPlaceRanks};
use super::epoch::WindowMemory;
use super::error::OperationError;
use super::group::{GroupAgreement, MpiGroup};
use super::kind::OperationKind;
use super::layout::BufferLayout;
use super::memory::{MessageBuffer, OperationBuffers};
use super::neighbours::Neighbours;
use super::plug_in::BufferHook;
use super::reference::encode;
use super::settings::OperationSettings;
use super::team::ThreadTeam;
use super::window::Window;
use crate::cache::CacheState;
use crate::operation::{Coordinator, Operation};

/// Operation of MPI with allocated buffers.
///
/// ```no_run
/// use downbeat_measure::Operation;
/// use downbeat_measure::mpi::{MpiGroup, MpiOperation, OperationSettings};
/// use downbeat_sync::{MpiComm, block_on_ready};
///
/// let universe = mpi::initialize().expect("MPI was not initialized before");
/// let group = MpiGroup::all(&MpiComm::duplicate(&universe.world())?)?;
/// let mut allreduce = MpiOperation::prepare("allreduce".parse()?, &group, 1024, &OperationSettings::default())?;
/// allreduce.verify()?;
/// block_on_ready(allreduce.call(0))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MpiOperation {
    kind: OperationKind,
    call: MpiCall,
    /// Root of call 0, and number of ranks that are roots in turn from there.
    root: u32,
    turns: u32,
    arguments: CallArguments,
    /// Buffers that this rank passes if it is not the root, and if it is.
    usual: BufferPointers,
    as_root: BufferPointers,
    datatype: MessageType,
    pub(super) memory: ManuallyDrop<OperationBuffers>,
    /// True if its requests were made in advance.
    is_persistent: bool,
    /// True after a call that failed: its request may still use the memory, which is never freed then.
    has_failed: bool,
    pub(super) layout: BufferLayout,
    pub(super) settings: OperationSettings,
    pub(super) group: MpiGroup,
    /// Threads besides this one, and the operation that each of them calls.
    team: Option<ThreadTeam>,
    pub(super) others: Vec<MpiOperation>,
    /// Window of a one-sided operation.
    window: Option<Window>,
    /// Communicator in which ranks are neighbours, for the operations among these; others use that of the group.
    neighbours: Option<MpiComm>,
}

/// Buffers of a call.
#[derive(Clone, Copy, Debug)]
struct BufferPointers {
    send: *const c_void,
    recv: *mut c_void,
    buffer: *mut c_void,
}

impl BufferPointers {
    const NOWHERE: Self = Self {
        send: ptr::null(),
        recv: ptr::null_mut(),
        buffer: ptr::null_mut(),
    };
}

impl MpiOperation {
    /// Allocates the buffers for messages of `bytes`, whose meaning is described at [`OperationKind`]. All ranks of the group
    /// must call this with the same arguments.
    ///
    /// # Errors
    /// If MPI does not define the operation, the buffers are too large, or the arguments of the ranks differ: on all ranks, so
    /// that none waits for another one afterwards.
    pub fn prepare(
        kind: OperationKind,
        group: &MpiGroup,
        bytes: u64,
        settings: &OperationSettings,
    ) -> Result<Self, OperationError> {
        Self::prepare_in(kind, group, bytes, settings, None)
    }

    /// Does the same with messages in the memory of a plug-in, if there is one.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare); also if the plug-in has no memory, or cannot copy.
    pub fn prepare_in(
        kind: OperationKind,
        group: &MpiGroup,
        bytes: u64,
        settings: &OperationSettings,
        hook: Option<&BufferHook>,
    ) -> Result<Self, OperationError> {
        // Cache sizes of machines may differ.
        let arguments = StableHasher::hash_of(&(
            kind.name(),
            bytes,
            OperationSettings {
                cache_bytes: 0,
                ..*settings
            },
        ));
        let prepared = Self::prepare_alone(kind, group, bytes, settings, hook);
        match group.agree(arguments, prepared.is_err())? {
            GroupAgreement { same: false, .. } => Err(OperationError::RanksDiffer),
            GroupAgreement {
                failed: Some(rank), ..
            } => prepared.and(Err(OperationError::Elsewhere { rank })),
            GroupAgreement { failed: None, .. } => {
                let prepared = prepared?.with_neighbours()?.with_window()?;
                prepared.with_requests()?.with_threads(bytes, hook)
            }
        }
    }

    /// Starts other threads, and prepares the operations that they call. All ranks call this.
    fn with_threads(
        mut self,
        bytes: u64,
        hook: Option<&BufferHook>,
    ) -> Result<Self, OperationError> {
        let alone = OperationSettings {
            threads: 1,
            ..self.settings
        };
        for _ in 1..self.settings.threads {
            let group = MpiGroup::all(self.group.comm())?;
            let other = Self::prepare_in(self.kind, &group, bytes, &alone, hook)?;
            self.others.push(other);
        }
        if !self.others.is_empty() {
            let team = ThreadTeam::new(self.others.len(), self.call)
                .map_err(|why| OperationError::Threads(why.to_string()));
            let failed = self.group.agree(0, team.is_err())?.failed;
            self.team = Some(team?);
            if let Some(rank) = failed {
                return Err(OperationError::Elsewhere { rank });
            }
        }
        Ok(self)
    }

    /// Creates the communicator of neighbours, if the operation needs one. All ranks call this.
    fn with_neighbours(mut self) -> Result<Self, OperationError> {
        if self.kind.is_among_neighbours() {
            let Neighbours {
                sources,
                destinations,
            } = Neighbours::of(self.group.rank(), self.group.size(), self.settings.radius);
            let comm = self.group.comm();
            self.neighbours = Some(comm.with_neighbours(&sources, &destinations)?);
        }
        Ok(self)
    }

    /// Makes the window of a one-sided operation. All ranks call this.
    fn with_window(mut self) -> Result<Self, OperationError> {
        let Some(exposed) = self.kind.entry().exposed else {
            return Ok(self);
        };
        let message = match exposed {
            Exposed::Send => &mut self.memory.send,
            Exposed::Recv => &mut self.memory.recv,
        };
        let window = Window::new(&self.group, message, &self.settings)?;
        self.arguments.window = window.raw;
        self.arguments.target = window.target;
        self.arguments.partner = window.partner;
        self.arguments.place = window.place;
        self.window = Some(window);
        self.with_own_memory(Self::reset_buffers)?;
        Ok(self)
    }

    /// Uses the buffers between calls, when no other rank accesses them. All ranks call this.
    pub(super) fn with_own_memory(
        &mut self,
        mut work: impl FnMut(&mut Self) -> Result<(), OperationError>,
    ) -> Result<(), OperationError> {
        let Some(window) = self.window.take() else {
            return work(self);
        };
        // Where targets are passive, they do not know when an access has ended.
        let outcome = block_on_ready(self.group.barrier())
            .and_then(|()| window.begin_own_access(&self.group))
            .map_err(OperationError::from)
            .and_then(|()| {
                let done = work(self);
                window.end_own_access(&self.group)?;
                done
            });
        self.window = Some(window);
        block_on_ready(self.group.barrier())?;
        outcome
    }

    /// Frees the operation, and the window of a one-sided one. All ranks of the group call this, after calls that succeeded; without it,
    /// windows and their memory stay until MPI ends, which MPICH may not survive.
    ///
    /// # Errors
    /// If MPI fails.
    pub fn finish(mut self) -> Result<(), OperationError> {
        for other in self.others.drain(..) {
            other.finish()?;
        }
        match self.window.take() {
            Some(window) => Ok(window.free(&self.group)?),
            None => Ok(()),
        }
    }

    /// Checks that the operation can be prepared, without communication.
    ///
    /// # Errors
    /// If MPI does not define the operation, or the buffers are too large.
    pub fn check(
        kind: OperationKind,
        ranks: u32,
        bytes: u64,
        settings: &OperationSettings,
    ) -> Result<(), OperationError> {
        // Rank 0 may need more memory than the others.
        (0..ranks)
            .take(2)
            .try_for_each(|rank| BufferLayout::new(kind, rank, ranks, bytes, settings).map(drop))
    }

    /// Makes the requests of a persistent operation, one for each root. All ranks call this.
    fn with_requests(mut self) -> Result<Self, OperationError> {
        let persistent = self.kind.persistent();
        let Some((call, function)) = persistent.and_then(|call| Some((call, call.find()?))) else {
            return Ok(self);
        };
        for (number, _) in self.roots() {
            self.take_arguments(number)?;
            // SAFETY: MPI is running, and this thread may call it, as the communicator is valid and stays on its thread. The buffers are
            // as large as the operation's entry requires, and stay where they are until the request is freed.
            let made = unsafe { (call.make)(&self.arguments, function) };
            self.has_failed |= made.is_err();
            made.map_err(CommError::from)?;
        }
        Ok(self)
    }

    fn prepare_alone(
        kind: OperationKind,
        group: &MpiGroup,
        bytes: u64,
        settings: &OperationSettings,
        hook: Option<&BufferHook>,
    ) -> Result<Self, OperationError> {
        let comm = group.raw().map_err(CommError::from)?;
        let layout = BufferLayout::new(kind, group.rank(), group.size(), bytes, settings)?;
        if kind.is_one_sided() && hook.is_some() && settings.window_memory == WindowMemory::Allocate
        {
            return Err(OperationError::HookedWindow);
        }
        let datatype =
            MessageType::new(settings.datatype, &layout.placement).map_err(CommError::from)?;
        let mut memory = OperationBuffers::new(&layout, settings, datatype.raw, hook)?;
        let (root, turns) = settings.roots(kind, group.size());
        let mut operation = Self {
            kind,
            call: kind.call(),
            root,
            turns,
            arguments: memory.call_arguments(comm, group, &layout, datatype.raw, settings),
            usual: BufferPointers::NOWHERE,
            as_root: BufferPointers::NOWHERE,
            datatype,
            memory: ManuallyDrop::new(memory),
            is_persistent: kind.persistent().is_some(),
            has_failed: false,
            layout,
            settings: *settings,
            group: group.clone(),
            team: None,
            others: Vec::new(),
            window: None,
            neighbours: None,
        };
        operation.reset_buffers()?;
        Ok(operation)
    }

    /// Returns the kind of the operation.
    pub fn kind(&self) -> OperationKind {
        self.kind
    }

    /// Sets the computation in calls of an [overlapped](OperationKind::is_overlapped) operation: from now on, each rank computes for this long, and calls
    /// `MPI_Test` this number of times meanwhile. At first it does not compute.
    pub fn compute_for(&mut self, duration: Duration, tests: u32) {
        if self.kind.is_overlapped() {
            self.arguments.computation = Computation {
                duration: duration.try_into().unwrap_or_default(),
                tests,
            };
        }
        for other in &mut self.others {
            other.compute_for(duration, tests);
        }
    }

    /// Returns the memory of this rank's messages, also those of other threads, except memory of a plug-in. Other ranks must not access
    /// it meanwhile.
    pub fn message_memory(&self) -> impl Iterator<Item = &[u8]> {
        let all = core::iter::once(self).chain(&self.others);
        all.flat_map(|one| [&one.memory.send, &one.memory.recv])
            .filter_map(MessageBuffer::host_memory)
    }

    /// Returns the numbers of calls and their roots, until the roots repeat.
    pub(super) fn roots(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let first = self.root;
        (0..self.turns).map(move |call| (call, first + call))
    }

    /// Fills the buffers with values that stay finite in repeated reductions, and updates the pointers.
    pub(super) fn reset_buffers(&mut self) -> Result<(), OperationError> {
        let sums_in_place = self.settings.in_place && self.settings.reduction == Reduction::Sum;
        let (bytes, width) = encode(self.settings.datatype, if sums_in_place { 0 } else { 1 });
        self.memory.send.fill(&bytes[..width]);
        self.memory.recv.fill(&bytes[..width]);
        self.publish_buffers()
    }

    /// Passes buffers that were filled on to MPI.
    pub(super) fn publish_buffers(&mut self) -> Result<(), OperationError> {
        self.memory.send.publish()?;
        self.memory.recv.publish()?;
        self.update_pointers();
        Ok(())
    }

    /// Updates the pointers to the buffers. Call this again after using the buffers or moving a message.
    pub(super) fn update_pointers(&mut self) {
        let send = self.memory.send.address();
        let recv = self.memory.recv.address();
        self.arguments.second = send.wrapping_byte_add(self.layout.width);
        let both = BufferPointers {
            send,
            recv,
            buffer: recv,
        };
        let sends_in_place = BufferPointers {
            send: in_place(),
            ..both
        };
        let (usual, as_root) = match self.kind.entry().in_place {
            _ if !self.settings.in_place => (both, both),
            InPlace::Whole(InPlaceRanks::All) | InPlace::OwnBlock(InPlaceRanks::All) => {
                (sends_in_place, sends_in_place)
            }
            InPlace::Whole(InPlaceRanks::Root) | InPlace::OwnBlock(InPlaceRanks::Root) => {
                (both, sends_in_place)
            }
            InPlace::Kept => (
                both,
                BufferPointers {
                    recv: in_place(),
                    ..both
                },
            ),
            InPlace::No(_) => (both, both),
        };
        // The root of a broadcast has its message in the send buffer, the others in the receive buffer.
        (self.usual, self.as_root) = (
            usual,
            BufferPointers {
                buffer: send,
                ..as_root
            },
        );
    }

    /// Sets the arguments of a call.
    #[inline(always)]
    fn take_arguments(&mut self, number: u32) -> Result<(), CommError> {
        // This fails if MPI was finalized.
        self.arguments.comm = match &self.neighbours {
            None => self.group.raw()?,
            Some(comm) => comm.raw()?,
        };
        // Most operations have one root: a division would cost more than the rest of this function.
        let root = if self.turns == 1 {
            self.root
        } else {
            number % self.turns
        } as c_int;
        let BufferPointers { send, recv, buffer } = if root == self.arguments.rank {
            self.as_root
        } else {
            self.usual
        };
        self.arguments = CallArguments {
            root,
            send,
            recv,
            buffer,
            ..self.arguments
        };
        if self.is_persistent {
            let request = (root as u32 - self.root) as usize;
            self.arguments.requests = &raw mut self.memory.requests[request];
        }
        Ok(())
    }

    #[inline(always)]
    pub(super) fn call_now(&mut self, number: u32) -> Result<(), CommError> {
        self.take_arguments(number)?;
        if self.team.is_some() {
            return self.call_in_threads(number);
        }
        // SAFETY: MPI is running, and this thread may call it, as the communicator is valid and stays on its thread.
        // The buffers are as large as the operation's entry requires; the pointers were updated after any other use of
        // the buffers, which this call borrows. All ranks have the same counts if they prepared the same operation.
        let called = unsafe { (self.call)(&self.arguments) };
        self.has_failed |= called.is_err();
        Ok(called?)
    }
}

impl MpiOperation {
    /// Calls the operation in all threads.
    fn call_in_threads(&mut self, number: u32) -> Result<(), CommError> {
        for other in &mut self.others {
            other.take_arguments(number)?;
        }
        let Some(team) = &self.team else {
            return Ok(());
        };
        let others = self.others.iter().map(|other| &other.arguments);
        // SAFETY: as in `call_now`, for each operation; layouts are only prepared for several threads if MPI allows it.
        let called = unsafe { team.run(&self.arguments, others) };
        if called.is_err() {
            self.has_failed = true;
            self.others
                .iter_mut()
                .for_each(|other| other.has_failed = true);
        }
        Ok(called?)
    }
}

impl Drop for MpiOperation {
    fn drop(&mut self) {
        match &mut self.team {
            Some(team) if self.has_failed => team.abandon(),
            // Threads end before the operations that they call.
            _ => self.team = None,
        }
        // Other ranks may access the memory of a window.
        if !self.has_failed && self.window.is_none() {
            let is_running = self.group.raw().is_ok();
            if self.is_persistent && is_running {
                for request in self
                    .memory
                    .requests
                    .iter_mut()
                    .filter(|one| **one != no_request())
                {
                    // SAFETY: MPI is running, and the request was made and is not active. An error could not be reported.
                    unsafe { ffi::MPI_Request_free(request) };
                }
            }
            if is_running {
                self.datatype.free();
            }
            // SAFETY: no call uses the memory any more, nor does anything after this.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}

impl Operation for MpiOperation {
    #[inline]
    async fn call(&mut self, number: u32) -> Result<(), CommError> {
        self.call_now(number)
    }

    fn prepare(&mut self) {
        self.prepare_in_series();
        self.memory.cache.prepare();
    }

    #[inline]
    fn prepare_in_series(&mut self) {
        self.others
            .iter_mut()
            .for_each(Operation::prepare_in_series);
        if self.memory.cache.state() == CacheState::ColdByWalking {
            self.memory.send.step();
            self.memory.recv.step();
            self.update_pointers();
        }
    }

    fn fits_series(&self) -> bool {
        self.memory.cache.state().fits_series()
    }
}
