//! Codes of definitions and events: kinds, roles, flags. Codes that are not known are kept.

use core::fmt;

use crate::field::Field;
use crate::raw::{Decoder, Order};

/// Defines types of codes, with their known values.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident($number:ident) { $($value:ident = $code:literal),* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(
            /// Code in the file.
            pub $number,
        );

        #[expect(missing_docs, reason = "named and described in OTF2's documentation")]
        impl $name {
            $(pub const $value: Self = Self($code);)*
        }

        impl $name {
            /// Returns the name of a known code.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($code => Some(stringify!($value)),)*
                    _ => None,
                }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{}({})", stringify!($name), self.0),
                }
            }
        }

        impl Field<'_> for $name {
            #[inline]
            fn decode(from: &mut Decoder<'_>) -> Option<Self> {
                $number::decode(from).map(Self)
            }

            fn encode(&self, order: Order, to: &mut Vec<u8>) {
                self.0.encode(order, to);
            }
        }
    )*};
}

codes! {
    /// Programming model, or layer of the measurement system.
    Paradigm(u8) {
        UNKNOWN = 0, USER = 1, COMPILER = 2, OPENMP = 3, MPI = 4, CUDA = 5, MEASUREMENT_SYSTEM =
        6, PTHREAD = 7, HMPP = 8, OMPSS = 9, HARDWARE = 10, GASPI = 11, UPC = 12, SHMEM = 13,
        WINTHREAD = 14, QTTHREAD = 15, ACETHREAD = 16, TBBTHREAD = 17, OPENACC = 18, OPENCL = 19,
        MTAPI = 20, SAMPLING = 21, NONE = 22, HIP = 23, KOKKOS = 24
    }
    /// Class of programming models.
    ParadigmClass(u8) {
        PROCESS = 0, THREAD_FORK_JOIN = 1, THREAD_CREATE_WAIT = 2, ACCELERATOR = 3
    }
    /// Property of a programming model.
    ParadigmProperty(u8) {
        COMM_NAME_TEMPLATE = 0, RMA_WIN_NAME_TEMPLATE = 1, RMA_ONLY = 2
    }
    /// Meaning of a node of the system tree.
    SystemTreeDomain(u8) {
        MACHINE = 0, SHARED_MEMORY = 1, NUMA = 2, SOCKET = 3, CACHE = 4, CORE = 5, PU = 6,
        ACCELERATOR_DEVICE = 7, NETWORKING_DEVICE = 8
    }
    /// Kind of a location group.
    LocationGroupType(u8) {
        UNKNOWN = 0, PROCESS = 1, ACCELERATOR = 2
    }
    /// Kind of a location.
    LocationType(u8) {
        UNKNOWN = 0, CPU_THREAD = 1, ACCELERATOR_STREAM = 2, METRIC = 3
    }
    /// Role of a region.
    RegionRole(u8) {
        UNKNOWN = 0, FUNCTION = 1, WRAPPER = 2, LOOP = 3, CODE = 4, PARALLEL = 5, SECTIONS = 6,
        SECTION = 7, WORKSHARE = 8, SINGLE = 9, SINGLE_SBLOCK = 10, MASTER = 11, CRITICAL = 12,
        CRITICAL_SBLOCK = 13, ATOMIC = 14, BARRIER = 15, IMPLICIT_BARRIER = 16, FLUSH = 17,
        ORDERED = 18, ORDERED_SBLOCK = 19, TASK = 20, TASK_CREATE = 21, TASK_WAIT = 22,
        COLL_ONE2ALL = 23, COLL_ALL2ONE = 24, COLL_ALL2ALL = 25, COLL_OTHER = 26, FILE_IO = 27,
        POINT2POINT = 28, RMA = 29, DATA_TRANSFER = 30, ARTIFICIAL = 31, THREAD_CREATE = 32,
        THREAD_WAIT = 33, TASK_UNTIED = 34, ALLOCATE = 35, DEALLOCATE = 36, REALLOCATE = 37,
        FILE_IO_METADATA = 38, CANCEL = 39, KERNEL = 40
    }
    /// Flags of a region.
    RegionFlag(u32) {
        NONE = 0, DYNAMIC = 1, PHASE = 2
    }
    /// Kind of the members of a group.
    GroupType(u8) {
        UNKNOWN = 0, LOCATIONS = 1, REGIONS = 2, METRIC = 3, COMM_LOCATIONS = 4, COMM_GROUP = 5,
        COMM_SELF = 6
    }
    /// Flags of a group.
    GroupFlag(u32) {
        NONE = 0, GLOBAL_MEMBERS = 1
    }
    /// Base of the exponent of a unit.
    Base(u8) {
        BINARY = 0, DECIMAL = 1
    }
    /// Time at which metrics are recorded.
    MetricOccurrence(u8) {
        SYNCHRONOUS_STRICT = 0, SYNCHRONOUS = 1, ASYNCHRONOUS = 2
    }
    /// Source of a metric.
    MetricType(u8) {
        OTHER = 0, PAPI = 1, RUSAGE = 2, USER = 3
    }
    /// Meaning of the values of a metric: their kind, and the time that they are about.
    MetricMode(u8) {
        ACCUMULATED_START = 0, ACCUMULATED_POINT = 16, ACCUMULATED_LAST = 32, ACCUMULATED_NEXT =
        48, ABSOLUTE_POINT = 17, ABSOLUTE_LAST = 33, ABSOLUTE_NEXT = 49, RELATIVE_POINT = 18,
        RELATIVE_LAST = 34, RELATIVE_NEXT = 50
    }
    /// Kind of what a metric instance is about.
    MetricScope(u8) {
        LOCATION = 0, LOCATION_GROUP = 1, SYSTEM_TREE_NODE = 2, GROUP = 3
    }
    /// Kind of the locations that record a class of metrics.
    RecorderKind(u8) {
        UNKNOWN = 0, ABSTRACT = 1, CPU = 2, GPU = 3
    }
    /// Type of the values of a parameter.
    ParameterType(u8) {
        STRING = 0, INT64 = 1, UINT64 = 2
    }
    /// Periodicity of a dimension.
    CartPeriodicity(u8) {
        CART_PERIODIC_FALSE = 0, CART_PERIODIC_TRUE = 1
    }
    /// Unit of the period of samples.
    InterruptGeneratorMode(u8) {
        TIME = 0, COUNT = 1
    }
    /// Class of interfaces of input and output.
    IoParadigmClass(u8) {
        SERIAL = 0, PARALLEL = 1
    }
    /// Flags of an interface of input and output.
    IoParadigmFlag(u32) {
        NONE = 0, OS = 1
    }
    /// Property of an interface of input and output.
    IoParadigmProperty(u8) {
        VERSION = 0
    }
    /// Flags of a handle.
    IoHandleFlag(u32) {
        NONE = 0, PRE_CREATED = 1, ALL_PROXY = 2
    }
    /// Kind of access to a file.
    IoAccessMode(u8) {
        READ_ONLY = 0, WRITE_ONLY = 1, READ_WRITE = 2, EXECUTE_ONLY = 3, SEARCH_ONLY = 4
    }
    /// Flags of the status of a handle.
    IoStatusFlag(u32) {
        NONE = 0, CLOSE_ON_EXEC = 1, APPEND = 2, NON_BLOCKING = 4, ASYNC = 8, SYNC = 16, DATA_SYNC
        = 32, AVOID_CACHING = 64, NO_ACCESS_TIME = 128, DELETE_ON_CLOSE = 256
    }
    /// Flags of a communicator.
    CommFlag(u32) {
        NONE = 0, CREATE_DESTROY_EVENTS = 1
    }
    /// Flags of a window of one-sided communication.
    RmaWinFlag(u32) {
        NONE = 0, CREATE_DESTROY_EVENTS = 1
    }
    /// State of the measurement.
    MeasurementMode(u8) {
        ON = 1, OFF = 2
    }
    /// Collective operation.
    CollectiveOp(u8) {
        BARRIER = 0, BCAST = 1, GATHER = 2, GATHERV = 3, SCATTER = 4, SCATTERV = 5, ALLGATHER = 6,
        ALLGATHERV = 7, ALLTOALL = 8, ALLTOALLV = 9, ALLTOALLW = 10, ALLREDUCE = 11, REDUCE = 12,
        REDUCE_SCATTER = 13, SCAN = 14, EXSCAN = 15, REDUCE_SCATTER_BLOCK = 16, CREATE_HANDLE =
        17, DESTROY_HANDLE = 18, ALLOCATE = 19, DEALLOCATE = 20, CREATE_HANDLE_AND_ALLOCATE = 21,
        DESTROY_HANDLE_AND_DEALLOCATE = 22
    }
    /// Kind of a synchronization of one-sided communication.
    RmaSyncType(u8) {
        MEMORY = 0, NOTIFY_IN = 1, NOTIFY_OUT = 2
    }
    /// Levels at which the members of a collective operation are synchronized.
    RmaSyncLevel(u32) {
        NONE = 0, PROCESS = 1, MEMORY = 2
    }
    /// Kind of a lock.
    LockType(u8) {
        EXCLUSIVE = 0, SHARED = 1
    }
    /// Atomic operation.
    RmaAtomicType(u8) {
        ACCUMULATE = 0, INCREMENT = 1, TEST_AND_SET = 2, COMPARE_AND_SWAP = 3, SWAP = 4,
        FETCH_AND_ADD = 5, FETCH_AND_INCREMENT = 6, FETCH_AND_ACCUMULATE = 7
    }
    /// Flags with which a handle was created.
    IoCreationFlag(u32) {
        NONE = 0, CREATE = 1, TRUNCATE = 2, DIRECTORY = 4, EXCLUSIVE = 8, NO_CONTROLLING_TERMINAL
        = 16, NO_FOLLOW = 32, PATH = 64, TEMPORARY_FILE = 128, LARGEFILE = 256, NO_SEEK = 512,
        UNIQUE = 1024
    }
    /// Origin of a new position.
    IoSeekOption(u8) {
        FROM_START = 0, FROM_CURRENT = 1, FROM_END = 2, DATA = 3, HOLE = 4
    }
    /// Kind of an operation on a file.
    IoOperationMode(u8) {
        READ = 0, WRITE = 1, FLUSH = 2
    }
    /// Flags of an operation on a file.
    IoOperationFlag(u32) {
        NONE = 0, NON_BLOCKING = 1, COLLECTIVE = 2
    }
}
