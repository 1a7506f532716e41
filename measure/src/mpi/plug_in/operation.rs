//! Operations of users.
#![expect(unsafe_code, reason = "plug-ins are written in C")]

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::fmt;
use core::mem::size_of;
use core::ptr::{null, null_mut};

use downbeat_sync::{CommError, MpiError};
use mpi::ffi::MPI_Comm;

use super::abi::{ABI, NO_MESSAGE, OperationContext, OperationTable, TableHead};
use super::buffers::BufferHook;
use super::crash::{CrashHandlers, CrashPlace};
use super::error::PlugInError;
use super::library::{self, LoadedTable, PlugInName};
use super::outcome::all_have_returned;
use crate::cache::{Cache, CacheState};
use crate::mpi::constants::fortran_handle;
use crate::mpi::group::MpiGroup;
use crate::mpi::settings::{OperationSettings, Root};
use crate::operation::Operation;

/// Memory for the reason of a failure.
const MESSAGE: usize = 512;

/// Loaded operation of a user.
#[derive(Clone)]
pub struct PlugIn {
    name: PlugInName,
    table: OperationTable,
    /// Beginning of the reports of crashes.
    crash_prefix: String,
}

impl fmt::Debug for PlugIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PlugIn").field(&self.name).finish()
    }
}

impl PlugIn {
    /// Loads an operation. The library stays loaded.
    ///
    /// If the plug-in crashes, now or later, a line on standard error names its function, behind this prefix; then the process ends as it
    /// would otherwise.
    ///
    /// # Errors
    /// If there is no such library or operation, or if it is for another version of this interface or another MPI library.
    pub fn load(name: &PlugInName, crash_prefix: &str) -> Result<Self, PlugInError> {
        let LoadedTable { table, symbol, .. } =
            library::load::<OperationTable>(name, crash_prefix)?;
        let ours = size_of::<MPI_Comm>();
        if ![0, ours].contains(&(table.mpi_comm_size as usize)) {
            let found = table.mpi_comm_size;
            let why = format!("its MPI_Comm has {found} bytes, and not {ours}");
            return Err(PlugInError::OtherMpi { why });
        }
        let (least, most) = (table.least_ranks, table.most_ranks);
        if most != 0 && least > most {
            return Err(PlugInError::RankLimits {
                symbol,
                least,
                most,
            });
        }
        Ok(Self {
            name: name.clone(),
            table,
            crash_prefix: crash_prefix.to_owned(),
        })
    }

    /// Returns the name.
    pub fn name(&self) -> &PlugInName {
        &self.name
    }

    /// Returns true if the operation has a message; for others, only the size 0 is allowed.
    pub fn has_message(&self) -> bool {
        self.table.flags & NO_MESSAGE == 0
    }

    /// Returns the least number of ranks.
    pub fn min_ranks(&self) -> u32 {
        self.table.least_ranks.max(1)
    }

    /// Returns the greatest number of ranks.
    pub fn max_ranks(&self) -> u32 {
        match self.table.most_ranks {
            0 => u32::MAX,
            most => most,
        }
    }

    /// Returns true if the operation can check its results.
    pub fn has_check(&self) -> bool {
        self.table.check.is_some()
    }

    /// Returns true if the operation can prepare its calls, without which it cannot take another message for each.
    pub fn has_prepare(&self) -> bool {
        self.table.prepare.is_some()
    }
}

/// Functions of an operation, named in reports of crashes.
#[derive(Debug)]
struct CrashPlaces {
    setup: Box<CrashPlace>,
    call: Box<CrashPlace>,
    check: Box<CrashPlace>,
    prepare: Box<CrashPlace>,
    teardown: Box<CrashPlace>,
}

impl CrashPlaces {
    fn new(plug_in: &PlugIn) -> Self {
        let name = plug_in.name.described(&plug_in.crash_prefix);
        let place = |function| CrashPlace::new(&name, function);
        Self {
            setup: place("setup"),
            call: place("call"),
            check: place("check"),
            prepare: place("prepare"),
            teardown: place("teardown"),
        }
    }
}

/// Memory to which the plug-in keeps pointers while it is set up.
struct Shared {
    comm: MPI_Comm,
    context: OperationContext,
    message: UnsafeCell<[u8; MESSAGE]>,
}

impl Shared {
    fn new(
        comm: MPI_Comm,
        bytes: u64,
        settings: &OperationSettings,
        buffers: Option<&BufferHook>,
    ) -> Box<Self> {
        let mut shared = Box::new(Self {
            comm,
            context: OperationContext {
                head: TableHead {
                    abi: ABI,
                    size: size_of::<OperationContext>() as u32,
                },
                comm: null(),
                fortran_comm: fortran_handle(comm),
                root: match settings.root {
                    Root::Rank(rank) => rank as i32,
                    Root::Rotating => -1,
                },
                bytes,
                buffers: buffers.map_or(null(), BufferHook::table),
                message: null_mut(),
                message_size: MESSAGE as u64,
                alignment: settings.alignment.bytes() as u64,
                cache_size: settings.cache_bytes as u64,
                cache: match settings.cache {
                    CacheState::Warm => 0,
                    CacheState::ColdByOverwriting => 1,
                    CacheState::ColdByWalking => 2,
                },
            },
            message: UnsafeCell::new([0; MESSAGE]),
        });
        shared.context.comm = &raw const shared.comm;
        shared.context.message = shared.message.get().cast::<c_char>();
        shared
    }
}

/// Operation of a user that is set up.
pub struct PlugInOperation {
    table: OperationTable,
    state: *mut c_void,
    shared: Box<Shared>,
    places: CrashPlaces,
    cache: Cache,
    /// Number of ranks that are roots in turn.
    turns: u32,
    /// False if `setup` failed on a rank, or a call: other ranks could wait in `teardown`.
    tears_down: bool,
    failure: Option<PlugInError>,
    /// Group whose communicator the operation uses.
    group: MpiGroup,
    _buffers: Option<BufferHook>,
    _handlers: CrashHandlers,
}

impl fmt::Debug for PlugInOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlugInOperation")
            .field("state", &self.state)
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}

impl PlugInOperation {
    /// Sets up an operation for messages of `bytes`. All ranks of the group must call this with the same arguments. Of the settings, those of
    /// the root, the caches and the alignment apply.
    ///
    /// # Errors
    /// If it cannot be set up on a rank: on all ranks, unless [others wait](PlugInError::OthersWait).
    pub fn prepare(
        plug_in: &PlugIn,
        group: &MpiGroup,
        bytes: u64,
        settings: &OperationSettings,
        buffers: Option<&BufferHook>,
    ) -> Result<Self, PlugInError> {
        // Messages of the plug-in, and of ranks that wait for the outcome of its setup, must not meet. It is kept until that is known: all
        // ranks free it.
        let own = MpiGroup::all(group.comm())?;
        let comm = own.raw().map_err(CommError::from)?;
        let set_up = Cache::new(settings.cache, settings.cache_bytes)
            .map_err(PlugInError::from)
            .and_then(|cache| {
                Self::set_up(plug_in, own.clone(), comm, bytes, settings, cache, buffers)
            });
        if !all_have_returned(group, set_up.is_err())? {
            return set_up.map_err(|why| PlugInError::OthersWait(Box::new(why)));
        }
        match group.agree(0, set_up.is_err())?.failed {
            None => set_up.map(|mut operation| {
                operation.tears_down = true;
                operation
            }),
            Some(rank) => set_up.and(Err(PlugInError::Elsewhere { rank })),
        }
    }

    fn set_up(
        plug_in: &PlugIn,
        group: MpiGroup,
        comm: MPI_Comm,
        bytes: u64,
        settings: &OperationSettings,
        cache: Cache,
        buffers: Option<&BufferHook>,
    ) -> Result<Self, PlugInError> {
        let mut operation = Self {
            table: plug_in.table,
            state: null_mut(),
            shared: Shared::new(comm, bytes, settings, buffers),
            places: CrashPlaces::new(plug_in),
            cache,
            turns: match settings.root {
                Root::Rank(_) => 1,
                Root::Rotating => group.size(),
            },
            tears_down: false,
            failure: None,
            group,
            _buffers: buffers.cloned(),
            _handlers: CrashHandlers::install(),
        };
        let Some(setup) = plug_in.table.setup else {
            return Err(operation.failed("setup", -1));
        };
        let (context, state) = (
            &raw const operation.shared.context,
            &raw mut operation.state,
        );
        // SAFETY: the interface: the context stays in its box until `teardown`, and both pointers are valid.
        let code = operation
            .places
            .setup
            .inside(|| unsafe { setup(context, state) });
        match code {
            0 => Ok(operation),
            code => Err(operation.failed("setup", code)),
        }
    }

    /// Returns the failure of a function, with the reason that it gave.
    #[cold]
    fn failed(&self, function: &'static str, code: c_int) -> PlugInError {
        // SAFETY: no function of the plug-in runs, which alone writes the message.
        let text = unsafe { &*self.shared.message.get() };
        let text = CStr::from_bytes_until_nul(text).map_or(text.as_slice(), CStr::to_bytes);
        let text = String::from_utf8_lossy(text);
        let words = text.split(|c: char| c.is_whitespace() || c.is_control());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        PlugInError::Failed {
            function,
            code,
            message: words.join(" "),
        }
    }

    /// Returns the failure of the last call.
    pub fn failure(&self) -> Option<&PlugInError> {
        self.failure.as_ref()
    }

    /// Calls the operation once with each of its roots, and checks the result of each call. All ranks must call this.
    ///
    /// # Errors
    /// If a result is wrong on some rank: on all ranks. If a [call fails](Self::failure), possibly only this rank knows.
    pub fn verify(&mut self) -> Result<(), PlugInError> {
        let mut found = Ok(());
        for number in 0..self.turns {
            if let Err(why) = self.call_now(number) {
                return Err(self.failure.clone().unwrap_or(why.into()));
            }
            let Some(check) = self.table.check else {
                continue;
            };
            let state = self.state;
            // SAFETY: the interface: the operation is set up.
            let code = self.places.check.inside(|| unsafe { check(state, number) });
            if found.is_ok() && code != 0 {
                found = Err(self.failed("check", code));
            }
        }
        match self.group.agree(0, found.is_err())?.failed {
            Some(rank) => found.and(Err(PlugInError::Elsewhere { rank })),
            None => Ok(()),
        }
    }

    #[inline(always)]
    fn call_now(&mut self, number: u32) -> Result<(), CommError> {
        let Some(call) = self.table.call else {
            return Ok(());
        };
        let state = self.state;
        // SAFETY: the interface: the operation is set up, and all ranks call it.
        let code = self.places.call.inside(|| unsafe { call(state, number) });
        if code == 0 {
            return Ok(());
        }
        self.tears_down = false;
        self.failure = Some(self.failed("call", code));
        Ok(MpiError::check("the call", code)?)
    }

    fn prepare_call(&mut self, in_series: bool) {
        if let Some(prepare) = self.table.prepare {
            let state = self.state;
            // SAFETY: the interface: the operation is set up.
            self.places
                .prepare
                .inside(|| unsafe { prepare(state, in_series.into()) });
        }
    }
}

impl Operation for PlugInOperation {
    #[inline]
    async fn call(&mut self, number: u32) -> Result<(), CommError> {
        self.call_now(number)
    }

    fn prepare(&mut self) {
        self.prepare_call(false);
        self.cache.prepare();
    }

    #[inline]
    fn prepare_in_series(&mut self) {
        self.prepare_call(true);
    }

    fn fits_series(&self) -> bool {
        self.cache.state().fits_series()
    }
}

impl Drop for PlugInOperation {
    fn drop(&mut self) {
        if let (Some(teardown), true) = (self.table.teardown, self.tears_down) {
            let state = self.state;
            // SAFETY: the interface: the operation was set up, and is not used after this.
            self.places.teardown.inside(|| unsafe { teardown(state) });
        }
    }
}
