//! Records of one thread.

mod life;

use core::cell::Cell;
use core::ffi::CStr;
use core::ptr::null;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use downbeat_clock_core::Clock as _;
use downbeat_recording::block::MOST_BYTES;
use downbeat_recording::record::{MOST_WORDS, text_words};
use downbeat_recording::{Definition, Record};
use downbeat_timers::MachineClock;

use crate::blocks::Block;
use crate::call::Call;
use crate::process::Process;
use crate::requests::Watched;
use crate::spare::{self, LeftBlock, Supply};

/// A thread that calls MPI; freed when the thread of the program ends.
pub(crate) struct Thread {
    /// Place of the next record.
    next: Cell<*mut u64>,
    /// Last place where a call can be entered.
    limit: Cell<*mut u64>,
    clock: MachineClock,
    /// Record of calls that found nothing, if that was the last one.
    folded: Cell<*mut u64>,
    /// True while the tracer itself or libdownbeat calls MPI.
    is_quiet: Cell<bool>,
    /// Function of Fortran that is called, which may call that of C.
    fortran: Cell<u16>,
    /// Number of calls that were entered and not left.
    depth: Cell<u32>,
    /// Outermost call that is under way, by an address in its stack frame, which is 0 without one; and its number.
    outermost: Cell<usize>,
    outermost_call: Cell<u16>,
    /// Calls that are not recorded.
    dropped: Cell<Dropped>,
    requests: Cell<u64>,
    /// Memory for the requests of one call.
    pub(crate) watched: Cell<Vec<Watched>>,
    block: Cell<Block>,
    order: Cell<u64>,
    supply: Arc<Supply>,
    process: &'static Process,
}

/// Calls that are not recorded, for there is no memory.
#[derive(Clone, Copy, Debug)]
struct Dropped {
    /// Number of calls; 0 if calls are recorded.
    count: u64,
    first: u64,
    last: u64,
    /// Depth of the first.
    depth: u32,
}

impl Dropped {
    const NONE: Self = Self {
        count: 0,
        first: 0,
        last: 0,
        depth: 0,
    };

    /// Adds a call at this reading of the counter.
    const fn add(&mut self, ticks: u64) {
        if self.count == 0 {
            self.first = ticks;
        }
        self.count += 1;
        self.last = ticks;
    }

    /// Adds other calls, at least one.
    const fn merge(&mut self, other: Self) {
        if self.count == 0 || other.first < self.first {
            self.first = other.first;
        }
        if other.last > self.last {
            self.last = other.last;
        }
        self.count += other.count;
    }

    fn record(self) -> Record {
        Record::calls_dropped(self.first, self.last.max(self.first), self.count)
    }
}

/// Words that remain for the leaves of calls when no call is entered any more.
const SLACK: usize = 256;

/// No function of Fortran.
pub(crate) const NO_CALL: u16 = u16::MAX;

thread_local! {
    static THREAD: Cell<*const Thread> = const { Cell::new(null()) };
}

impl Thread {
    /// Returns this thread, if the process is traced.
    #[inline(always)]
    pub(crate) fn current() -> Option<&'static Self> {
        let thread = THREAD.get();
        if thread.is_null() {
            return Self::start();
        }
        // SAFETY: it is freed when this thread ends.
        Some(unsafe { &*thread })
    }

    /// Returns this thread, unless the call is one of the tracer, or of a wrapper of Fortran inside the MPI library.
    #[inline(always)]
    pub(crate) fn of(call: &Call) -> Option<&'static Self> {
        let thread = Self::current()?;
        // Functions that only the tracer and libdownbeat call get no number, and so are
        // no functions of the program.
        if thread.is_quiet.get() {
            return None;
        }
        if call.is_new() {
            thread.number(call);
        }
        if thread.fortran.get() == call.number() {
            // Further calls inside are those of callbacks.
            thread.fortran.set(NO_CALL);
            return None;
        }
        Some(thread)
    }

    /// Gives a function a number, and defines it.
    #[cold]
    fn number(&self, call: &Call) {
        let number = self.number_of(call.name());
        let name = call.name().to_string_lossy();
        call.set_number(number, self.process.records(&name));
    }

    /// Returns the number of a function or region, which is defined if it is new.
    pub(crate) fn number_of(&self, name: &'static CStr) -> u16 {
        let (number, is_new) = self.process.number_of(name);
        if is_new {
            let name = name.to_string_lossy().replace(['\n', '\r'], " ");
            self.define(&Definition::Call { number, name });
        }
        number
    }

    /// Reads the counter.
    #[inline(always)]
    pub(crate) fn ticks(&self) -> u64 {
        self.clock.ticks().0
    }

    /// Returns the clock.
    pub(crate) fn clock(&self) -> &MachineClock {
        &self.clock
    }

    /// Returns an id for a request.
    pub(crate) fn next_request(&self) -> u64 {
        self.next_requests(1)
    }

    /// Returns the first of several ids, or of one.
    pub(crate) fn next_requests(&self, count: u64) -> u64 {
        let id = self.requests.get();
        self.requests.set(id + count.max(1));
        id
    }

    /// Returns true while calls of MPI are none of the program.
    pub(crate) fn is_quiet(&self) -> bool {
        self.is_quiet.get()
    }

    /// Tells whether calls of MPI are none of the program from now on.
    pub(crate) fn be_quiet(&self, is_quiet: bool) {
        self.is_quiet.set(is_quiet);
    }

    /// Calls MPI for the tracer itself. A handler of errors may end it by an exception.
    pub(crate) fn quietly<T>(&self, f: impl FnOnce() -> T) -> T {
        struct Quiet<'a> {
            of: &'a Thread,
            was_quiet: bool,
        }
        impl Drop for Quiet<'_> {
            fn drop(&mut self) {
                self.of.be_quiet(self.was_quiet);
            }
        }
        let _quiet = Quiet {
            of: self,
            was_quiet: self.is_quiet.replace(true),
        };
        f()
    }

    /// Sets the function of Fortran that is called, and returns the one before.
    pub(crate) fn set_fortran(&self, call: u16) -> u16 {
        self.fortran.replace(call)
    }

    /// Begins a call of MPI with this address in its stack frame.
    #[inline(always)]
    pub(crate) fn begin_call(&self, call: u16, frame: usize) {
        if self.outermost.get() != 0 && !self.has_left_outermost(frame) {
            return;
        }
        self.outermost.set(frame);
        self.outermost_call.set(call);
    }

    /// Ends a call of MPI.
    #[inline(always)]
    pub(crate) fn end_call(&self, frame: usize) {
        if self.outermost.get() == frame {
            self.outermost.set(0);
        }
    }

    /// Records that the program has left the outermost call by longjmp, from a handler of errors, if the frame of another call shows it:
    /// a call from a function that MPI calls has one far below. Returns true if it did.
    #[cold]
    fn has_left_outermost(&self, frame: usize) -> bool {
        /// Calls of one function have frames of different sizes.
        const NEAR: usize = 200;
        let is_inside = frame.saturating_add(NEAR) < self.outermost.get();
        if !is_inside {
            self.leave(self.outermost_call.get(), true, self.ticks());
            self.fortran.set(NO_CALL);
        }
        !is_inside
    }

    /// Records that a call is entered. The counter is read last.
    #[inline(always)]
    pub(crate) fn enter(&self, call: u16, collective: Option<u32>) {
        self.make_room();
        self.depth.set(self.depth.get() + 1);
        let ticks = self.ticks();
        self.put(&Record::call_entered(call, collective, ticks));
    }

    /// Records that a call was entered at an earlier reading of the counter, after which this thread recorded nothing.
    pub(crate) fn enter_at(&self, call: u16, ticks: u64) {
        self.make_room();
        self.depth.set(self.depth.get() + 1);
        self.put(&Record::call_entered(call, None, ticks));
    }

    /// Asks for the next block if half of this one is full, and begins it if this one has no room for another call.
    #[inline(always)]
    fn make_room(&self) {
        if self.next.get() >= self.limit.get() {
            self.turn();
        }
    }

    /// Returns the last place where any record still fits.
    #[inline(always)]
    fn last_place(&self) -> *mut u64 {
        self.limit.get().wrapping_add(SLACK - MOST_WORDS - 1)
    }

    /// Measures what it takes to record some calls, and records that alone.
    pub(crate) fn measure_cost(&self) {
        const CALLS: u64 = 64;
        let first = self.next.get();
        // Two words for an enter, and two for a leave.
        if first.wrapping_add(4 * CALLS as usize) >= self.limit.get() {
            return;
        }
        let began = self.ticks();
        for _ in 0..CALLS {
            self.enter(NO_CALL, None);
            let ticks = self.ticks();
            self.leave(NO_CALL, false, ticks);
        }
        let ticks = self.ticks() - began;
        let mut at = self.next.replace(first);
        while at > first {
            at = at.wrapping_sub(1);
            // SAFETY: these words were just written.
            unsafe { at.write(0) };
        }
        self.define(&Definition::Cost {
            ticks,
            events: 2 * CALLS,
        });
    }

    /// Records that a call was left at this reading of the counter.
    #[inline(always)]
    pub(crate) fn leave(&self, call: u16, failed: bool, ticks: u64) {
        self.put(&Record::call_left(call, failed, ticks));
        // A region of the program can be left without being entered.
        let depth = self.depth.get().saturating_sub(1);
        self.depth.set(depth);
        if self.dropped.get().count > 0 {
            self.left_dropped(depth, ticks);
        }
    }

    /// Writes a record; while calls are dropped, only those that belong to calls before.
    #[inline(always)]
    pub(crate) fn put(&self, record: &Record) {
        let is_full = self.next.get() > self.last_place();
        if is_full || self.dropped.get().count > 0 {
            self.put_slowly(record);
            return;
        }
        self.write(record);
    }

    #[inline(always)]
    fn write(&self, record: &Record) {
        let at = self.next.get();
        for (index, word) in record.rest.iter().take(record.count).enumerate() {
            // SAFETY: `limit` leaves room for the longest record.
            unsafe { at.wrapping_add(index + 1).write(*word) };
        }
        // SAFETY: as above.
        let head = unsafe { AtomicU64::from_ptr(at) };
        head.store(record.head, Ordering::Release);
        self.next.set(at.wrapping_add(record.count + 1));
    }

    #[cold]
    fn put_slowly(&self, record: &Record) {
        let dropped = self.dropped.get();
        if dropped.count > 0 && self.depth.get() > dropped.depth {
            return;
        }
        // Completions of many requests by one call.
        if self.next.get() > self.last_place() && !self.ask_early() && !self.next_block() {
            return;
        }
        self.write(record);
    }

    /// Begins a new block before a call; without memory, calls are dropped from here.
    #[cold]
    fn turn(&self) {
        if self.ask_early() || self.next_block() {
            return;
        }
        let mut dropped = self.dropped.get();
        if dropped.count == 0 {
            dropped.depth = self.depth.get();
            dropped.first = self.ticks();
        }
        if self.depth.get() == dropped.depth || dropped.count == 0 {
            dropped.count += 1;
        }
        self.dropped.set(dropped);
    }

    /// Asks for the next block if half of this one is full; returns false if that was done before.
    fn ask_early(&self) -> bool {
        let block = self.block.get();
        if self.limit.get() != early_limit(block) {
            return false;
        }
        self.limit.set(limit(block));
        self.supply.ask();
        true
    }

    #[cold]
    fn left_dropped(&self, depth: u32, ticks: u64) {
        let mut dropped = self.dropped.get();
        dropped.depth = dropped.depth.min(depth);
        dropped.last = ticks;
        self.dropped.set(dropped);
    }

    /// Continues in a new block; returns false if there is no memory, and the program need not wait for it.
    fn next_block(&self) -> bool {
        let began = self.ticks();
        let (found, waited) = self.supply.next();
        let Some(block) = found else {
            return false;
        };
        self.order.set(self.order.get() + 1);
        block.begin(self.order.get());
        spare::retire(self.block.replace(block));
        self.next.set(block.first());
        self.limit.set(early_limit(block));
        self.folded.set(std::ptr::null_mut());
        let dropped = self.dropped.replace(Dropped::NONE);
        if dropped.count > 0 {
            self.write(&dropped.record());
        } else if waited {
            self.write(&Record::calls_dropped(began, self.ticks(), 0));
        }
        true
    }

    /// Writes to a block that another thread has left from here on.
    fn continue_block(&self) {
        let at = self.next.get();
        // SAFETY: a thread leaves room for many records.
        let head = unsafe { AtomicU64::from_ptr(at) };
        head.store(
            Record::of_thread(self.supply.thread()).head,
            Ordering::Release,
        );
        self.next.set(at.wrapping_add(1));
    }

    /// Leaves the block to another thread, if there is room for its calls.
    fn leave_block(&self) {
        let (block, next) = (self.block.get(), self.next.get());
        if next < early_limit(block) {
            spare::pass_on(LeftBlock { block, next });
        } else {
            spare::retire(block);
        }
    }

    /// Records the calls that were not recorded so far, in the words that are left for leaves.
    pub(crate) fn tell_dropped(&self) {
        let dropped = self.dropped.replace(Dropped::NONE);
        self.put_dropped(dropped);
        self.tell_lost();
    }

    /// Returns the process.
    pub(crate) fn process(&self) -> &'static Process {
        self.process
    }

    /// Records a call that found nothing complete, together with those of the same function just before.
    #[inline(always)]
    pub(crate) fn fold(&self, call: u16, first: u64, last: u64) {
        let at = self.folded.get();
        let is_last = !at.is_null() && at.wrapping_add(4) == self.next.get();
        // SAFETY: a record of this kind, in the block that is mapped.
        let is_ours = is_last && unsafe { at.read() } >> 16 & 0xffff == u64::from(call);
        if is_ours {
            let word = |index| at.wrapping_add(index);
            // SAFETY: as above.
            unsafe { word(2).write(last) };
            // SAFETY: as above.
            let count = unsafe { word(3).read() };
            // SAFETY: as above.
            unsafe { word(3).write(count + 1) };
            return;
        }
        self.make_room();
        let at = self.next.get();
        self.put(&Record::calls_folded(call, first, last, 1));
        let is_written = self.next.get() == at.wrapping_add(4);
        self.folded
            .set(if is_written { at } else { std::ptr::null_mut() });
    }

    /// Records a definition.
    pub(crate) fn define(&self, definition: &Definition) {
        let text = definition.to_string();
        let room = text_words(text.len()) + 1;
        if room > MOST_BYTES / size_of::<u64>() / 2 {
            return;
        }
        // Blocks grow until it fits.
        while self.next.get().wrapping_add(room) > self.last_place() {
            if !self.ask_early() && !self.next_block() {
                return;
            }
        }
        let at = self.next.get();
        for (index, bytes) in text.as_bytes().chunks(size_of::<u64>()).enumerate() {
            let mut word = [0; size_of::<u64>()];
            word[..bytes.len()].copy_from_slice(bytes);
            // SAFETY: there is room for all words.
            unsafe { at.wrapping_add(index + 1).write(u64::from_le_bytes(word)) };
        }
        // SAFETY: as above.
        let head = unsafe { AtomicU64::from_ptr(at) };
        head.store(Record::text(text.len()).head, Ordering::Release);
        self.next.set(at.wrapping_add(room));
    }
}

/// Returns the last place in a block before the next one is asked for.
fn early_limit(block: Block) -> *mut u64 {
    block
        .first()
        .wrapping_add(block.bytes() / size_of::<u64>() / 2)
}

/// Returns the last place in a block where a call can be entered.
fn limit(block: Block) -> *mut u64 {
    block.end().wrapping_sub(SLACK)
}
