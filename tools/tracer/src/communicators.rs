//! Communicators of the process, by handle.

use core::cell::Cell;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::ffi::CStr;
use std::sync::{Arc, LazyLock, OnceLock, PoisonError, RwLock};
use std::time::SystemTime;

use downbeat_recording::{CommunicatorDefinition, Definition, OWN, WORLD};
use rustc_hash::FxHashMap;

use crate::constants::{CART, DIST_GRAPH, GRAPH, Handle, byte, comm_null, comm_self, comm_world};
use crate::pmpi::{self, list_out, out};
use crate::thread::Thread;

/// A communicator.
#[derive(Debug)]
pub(crate) struct Communicator {
    pub(crate) definition: CommunicatorDefinition,
    /// Number of communicators that were made from it by all of its members.
    children: AtomicU32,
    neighbors: OnceLock<Neighbors>,
    /// Number of the communicator of its partitioned messages, which match only each other.
    #[cfg(mpi_4)]
    partitioned: OnceLock<u32>,
}

/// Ranks with which a communicator with a topology exchanges data in operations on neighbors.
#[derive(Debug, Default)]
pub(crate) struct Neighbors {
    /// Number of a communicator in records which has only these messages.
    pub(crate) number: u32,
    pub(crate) sources: Vec<i32>,
    pub(crate) destinations: Vec<i32>,
}

static TABLE: LazyLock<RwLock<FxHashMap<Handle, Arc<Communicator>>>> =
    LazyLock::new(RwLock::default);

/// Changes whenever a handle gets another meaning.
static EPOCH: AtomicUsize = AtomicUsize::new(0);

/// Number of the next communicator.
static NEXT: AtomicU32 = AtomicU32::new(OWN + 1);

/// Group of all ranks; none in a program that does not initialize MPI, but opens sessions.
static ALL: OnceLock<Handle> = OnceLock::new();

/// Counts of communicators that some ranks made without the others, by key.
static BY_GROUP: LazyLock<RwLock<FxHashMap<String, u32>>> = LazyLock::new(RwLock::default);

/// Number of a communicator whose making was not seen.
const UNKNOWN: u32 = u32::MAX - 1;

thread_local! {
    /// Epoch and handle of the last communicator that was looked up, and what was found.
    static LAST: Cell<(usize, Handle, (u32, bool))> = const { Cell::new((usize::MAX, 0, (0, false))) };
}

/// Returns the number of a communicator in records.
#[inline(always)]
pub(crate) fn number(handle: Handle) -> u32 {
    look_up(handle).0
}

/// Returns the number of a communicator in records, and true if it has a remote group.
#[inline(always)]
pub(crate) fn look_up(handle: Handle) -> (u32, bool) {
    let epoch = EPOCH.load(Ordering::Acquire);
    let (of, last, known) = LAST.get();
    if of == epoch && last == handle {
        return known;
    }
    let found = find(handle);
    let known = found.map_or((UNKNOWN, false), |of| {
        (of.definition.number, !of.definition.remote.is_empty())
    });
    LAST.set((epoch, handle, known));
    known
}

/// Finds a communicator.
pub(crate) fn find(handle: Handle) -> Option<Arc<Communicator>> {
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    table.get(&handle).cloned()
}

fn add(handle: Handle, communicator: Communicator) {
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    table.insert(handle, Arc::new(communicator));
    drop(table);
    EPOCH.fetch_add(1, Ordering::Release);
}

/// Forgets a communicator that was freed.
pub(crate) fn remove(handle: Handle) {
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    table.remove(&handle);
    drop(table);
    EPOCH.fetch_add(1, Ordering::Release);
}

/// Returns true if all ranks are members of one group.
pub(crate) fn is_of_all(handle: Handle) -> bool {
    let members = find(handle).map(|found| found.definition.members.len() as u32);
    members.is_some() && members == size()
}

/// Number of all ranks; `None` before MPI is initialized.
pub(crate) fn size() -> Option<u32> {
    let world = find(comm_world())?;
    Some(world.definition.members.len() as u32)
}

/// Defines the process and its first communicators, once MPI is initialized.
pub(crate) fn begin(thread: &Thread) {
    let world = comm_world();
    // SAFETY: MPI is initialized.
    let rank = unsafe { pmpi::comm_rank(world) };
    // SAFETY: as above.
    let size = unsafe { pmpi::comm_size(world) };
    // SAFETY: as above.
    let group = unsafe { pmpi::comm_group(world) };
    define_process(thread, rank, size, group);
    define_run(thread);
    for (handle, number, key, members) in [
        (world, WORLD, "world", (0..size as u32).collect()),
        (comm_self(), OWN, "self", vec![rank as u32]),
    ] {
        let definition = CommunicatorDefinition {
            number,
            parent: None,
            key: key.to_owned(),
            members,
            remote: vec![],
        };
        define(thread, handle, definition);
    }
}

/// Defines the process of a program that opens sessions, and returns true, if it is not defined yet.
#[cfg(mpi_4)]
pub(crate) fn begin_session(thread: &Thread, session: Handle) -> bool {
    if ALL.get().is_some() {
        return false;
    }
    let mut group = 0_usize;
    let name = c"mpi://WORLD".as_ptr().expose_provenance();
    // SAFETY: the session was just opened.
    let code = unsafe { pmpi::group_from_session_pset(session, name, out(&mut group)) };
    if code != 0 {
        return false;
    }
    // SAFETY: the group was just made.
    let rank = unsafe { pmpi::group_rank(group) };
    // SAFETY: as above.
    let size = unsafe { pmpi::group_size(group) };
    define_process(thread, rank, size, group);
    true
}

fn define_process(thread: &Thread, rank: i32, size: i32, group: Handle) {
    if ALL.set(group).is_err() {
        return;
    }
    thread.define(&Definition::Process {
        rank: rank.max(0) as u32,
        size: size.max(1) as u32,
        node: node_name(),
    });
}

/// Defines the number of this run, the time of the first rank.
fn define_run(thread: &Thread) {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let mut id = since.map_or(0, |since| since.as_nanos() as u64);
    let length = size_of_val(&id);
    // SAFETY: MPI is initialized, and all ranks do the same.
    let code = unsafe { pmpi::bcast(out(&mut id), length, byte(), 0, comm_world()) };
    if code == 0 {
        thread.define(&Definition::Run(id));
    }
}

fn node_name() -> String {
    let mut name = [0_u8; 256];
    // SAFETY: the buffer has this length; the last byte stays zero.
    let code = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
    if code == 0 {
        name.to_string_lossy().into_owned()
    } else {
        "?".to_owned()
    }
}

/// Records the definition of a communicator, and keeps it by its handle.
fn define(thread: &Thread, handle: Handle, definition: CommunicatorDefinition) {
    thread.define(&Definition::Communicator(definition.clone()));
    let communicator = Communicator {
        definition,
        children: AtomicU32::new(0),
        neighbors: OnceLock::new(),
        #[cfg(mpi_4)]
        partitioned: OnceLock::new(),
    };
    add(handle, communicator);
}

/// Ranks that make a new communicator, with its tag or the position of that.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Origin<T> {
    /// All members of the parent took part.
    Parent,
    /// The same, and the new one is complete later: it has the members of the parent.
    Copy,
    /// Only its own members took part, with this tag.
    Group(T),
    /// Two groups were joined, with this tag.
    Groups(T),
}

impl<T> Origin<T> {
    /// Replaces the tag.
    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U) -> Origin<U> {
        match self {
            Self::Parent => Origin::Parent,
            Self::Copy => Origin::Copy,
            Self::Group(tag) => Origin::Group(f(tag)),
            Self::Groups(tag) => Origin::Groups(f(tag)),
        }
    }
}

/// Counts a call that makes a communicator, before it does so; all members of the parent count alike.
pub(crate) fn count(parent: &Communicator) -> u32 {
    parent.children.fetch_add(1, Ordering::Relaxed)
}

/// Defines a communicator that a call has made from another one, in the order `index`.
pub(crate) fn made(
    thread: &Thread,
    parent: &Communicator,
    origin: Origin<i32>,
    index: u32,
    handle: Handle,
) {
    if handle == comm_null() || handle == 0 {
        return;
    }
    let parent = &parent.definition;
    let (members, remote) = match origin {
        Origin::Copy => (parent.members.clone(), parent.remote.clone()),
        _ => groups(handle),
    };
    let (parent, key) = match origin {
        Origin::Parent | Origin::Copy => (Some(parent.number), format!("c{index}")),
        Origin::Group(tag) => {
            let before = count_alike(&format!("{} {tag}", parent.number), &[&members]);
            (Some(parent.number), format!("g{tag}.{before}"))
        }
        Origin::Groups(tag) => {
            let before = count_alike(&format!("- {tag}"), &both(&members, &remote));
            (None, format!("i{tag}.{before}"))
        }
    };
    let definition = CommunicatorDefinition {
        number: next_number(),
        parent,
        key,
        members,
        remote,
    };
    define(thread, handle, definition);
}

/// Returns a number for a communicator that is defined later.
pub(crate) fn next_number() -> u32 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Defines the communicator of a window that a call has made from another communicator, in the order `index`. No handle is that of a
/// window and of a communicator at the same time.
pub(crate) fn made_window(
    thread: &Thread,
    parent: &Communicator,
    index: u32,
    number: u32,
    window: Handle,
) {
    let definition = CommunicatorDefinition {
        remote: vec![],
        ..parent.part(number, format!("w{index}"))
    };
    define(thread, window, definition);
}

/// Defines a communicator that was made from a group or two, in a session.
#[cfg(mpi_4)]
pub(crate) fn made_from_group(thread: &Thread, tag: &str, handle: Handle) {
    if handle == comm_null() || handle == 0 {
        return;
    }
    let (members, remote) = groups(handle);
    let tag: String = tag
        .chars()
        .map(|c| if c.is_whitespace() { '_' } else { c })
        .collect();
    let before = count_alike(&tag, &both(&members, &remote));
    let definition = CommunicatorDefinition {
        number: next_number(),
        parent: None,
        key: format!("s{tag}.{before}"),
        members,
        remote,
    };
    define(thread, handle, definition);
}

/// Returns two groups in an order that does not depend on the one of this process.
fn both<'a>(members: &'a [u32], remote: &'a [u32]) -> [&'a [u32]; 2] {
    let mut both = [members, remote];
    both.sort_unstable();
    both
}

/// Counts a communicator, and returns the number of those before with the same key and groups.
fn count_alike(key: &str, groups: &[&[u32]]) -> u32 {
    let mut known = BY_GROUP.write().unwrap_or_else(PoisonError::into_inner);
    let count = known.entry(format!("{key} {groups:?}")).or_default();
    *count += 1;
    *count - 1
}

/// Returns the number of the communicator of partitioned messages.
#[cfg(mpi_4)]
pub(crate) fn partitioned(thread: &Thread, handle: Handle) -> u32 {
    find(handle).map_or(UNKNOWN, |of| {
        *of.partitioned.get_or_init(|| of.define_part(thread, "p"))
    })
}

/// Defines the neighbors of a communicator at its first operation on them, and returns it.
pub(crate) fn with_neighbors(thread: &Thread, handle: Handle) -> Option<Arc<Communicator>> {
    let found = find(handle)?;
    found.neighbors.get_or_init(|| Neighbors {
        number: found.define_part(thread, "n"),
        ..thread.quietly(|| neighbors(handle))
    });
    Some(found)
}

impl Communicator {
    /// Neighbors, if they are defined.
    pub(crate) fn neighbors(&self) -> Option<&Neighbors> {
        self.neighbors.get()
    }

    /// Returns the definition of a communicator of the same members.
    fn part(&self, number: u32, key: String) -> CommunicatorDefinition {
        CommunicatorDefinition {
            number,
            parent: Some(self.definition.number),
            key,
            ..self.definition.clone()
        }
    }

    /// Defines a communicator for messages that only match each other, and returns its number.
    fn define_part(&self, thread: &Thread, key: &str) -> u32 {
        let part = self.part(next_number(), key.to_owned());
        let number = part.number;
        thread.define(&Definition::Communicator(part));
        number
    }
}

/// Asks MPI for the neighbors of this process; none without a topology.
fn neighbors(communicator: Handle) -> Neighbors {
    let mut found = Neighbors::default();
    // SAFETY: the communicator is valid.
    let topology = unsafe { pmpi::topo_test(communicator) };
    // SAFETY: as above.
    let rank = unsafe { pmpi::comm_rank(communicator) } as usize;
    match topology {
        CART => {
            // SAFETY: it is a grid.
            let dimensions = unsafe { pmpi::cartdim_get(communicator) };
            for direction in 0..dimensions as usize {
                let mut ends = [0_i32; 2];
                let [below, above] = ends.each_mut().map(out);
                // SAFETY: as above.
                unsafe { pmpi::cart_shift(communicator, direction, 1, below, above) };
                found.sources.extend(ends);
            }
            found.destinations.clone_from(&found.sources);
        }
        GRAPH => {
            // SAFETY: it is a graph.
            let count = unsafe { pmpi::graph_neighbors_count(communicator, rank) };
            let mut list = vec![0; count.max(0) as usize];
            // SAFETY: the list has this length.
            unsafe { pmpi::graph_neighbors(communicator, rank, list.len(), list_out(&mut list)) };
            found.sources.clone_from(&list);
            found.destinations = list;
        }
        DIST_GRAPH => {
            let mut counts = [0_i32; 3];
            let [sources, destinations, is_weighted] = counts.each_mut().map(out);
            // SAFETY: it is a distributed graph.
            unsafe {
                pmpi::dist_graph_neighbors_count(communicator, sources, destinations, is_weighted);
            }
            let [mut from, mut to] =
                [counts[0], counts[1]].map(|count| vec![0; count.max(0) as usize]);
            let [mut weights, mut others] = [&from, &to].map(Vec::clone);
            // SAFETY: the lists have these lengths.
            unsafe {
                pmpi::dist_graph_neighbors(
                    communicator,
                    from.len(),
                    list_out(&mut from),
                    list_out(&mut weights),
                    to.len(),
                    list_out(&mut to),
                    list_out(&mut others),
                );
            }
            (found.sources, found.destinations) = (from, to);
        }
        _ => {}
    }
    found
}

/// Returns the members of a communicator, and those of its remote group.
fn groups(handle: Handle) -> (Vec<u32>, Vec<u32>) {
    // SAFETY: the communicator is valid.
    let group = unsafe { pmpi::comm_group(handle) };
    // SAFETY: as above.
    let is_inter = unsafe { pmpi::comm_test_inter(handle) };
    let members = members(group);
    if is_inter == 0 {
        return (members, vec![]);
    }
    // SAFETY: as above.
    let remote = unsafe { pmpi::comm_remote_group(handle) };
    (members, self::members(remote))
}

/// Returns the ranks of a group among all ranks, and frees it.
fn members(mut group: Handle) -> Vec<u32> {
    let members = ranks(group);
    // SAFETY: the group was made for this process.
    unsafe { pmpi::group_free(out(&mut group)) };
    members
}

/// Returns the ranks of a group among all ranks.
pub(crate) fn ranks(group: Handle) -> Vec<u32> {
    let Some(all) = ALL.get() else {
        return vec![];
    };
    // SAFETY: the group is valid.
    let size = unsafe { pmpi::group_size(group) };
    let mut ranks: Vec<i32> = (0..size).collect();
    let mut translated = vec![0_i32; ranks.len()];
    let [from, to] = [&mut ranks, &mut translated].map(|list| list_out(list));
    // SAFETY: both lists have this length.
    unsafe { pmpi::group_translate_ranks(group, size as usize, from, *all, to) };
    translated
        .into_iter()
        .map(|rank| rank.max(0) as u32)
        .collect()
}
