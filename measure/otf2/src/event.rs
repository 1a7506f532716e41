//! Events of all kinds.

use crate::codes::{
    CollectiveOp, IoAccessMode, IoCreationFlag, IoOperationFlag, IoOperationMode, IoSeekOption,
    IoStatusFlag, LockType, MeasurementMode, Paradigm, RmaAtomicType, RmaSyncLevel, RmaSyncType,
};
use crate::field::{Field, FixedTime, List, ShortList};
use crate::raw::{Decoder, Order};
use crate::records::records;
use crate::references::{
    CallingContextRef, CommRef, GroupRef, InterruptGeneratorRef, IoFileRef, IoHandleRef,
    IoParadigmRef, MetricRef, ParameterRef, RegionRef, RmaWinRef, StringRef,
};
use crate::value::MetricValue;

records! {
    /// Event of a location, without its time and attributes. References are those of the archive.
    Event {
        /// Flush of the buffer of events, from the time of the event to this one.
        10 BufferFlush { stop_time: FixedTime }
        /// Begin or end of a time without measurement.
        11 MeasurementOnOff { mode: MeasurementMode }
        /// Enter of a region.
        12 Enter { region: RegionRef }
        /// Leave of a region.
        13 Leave { region: RegionRef }
        /// Blocking send of a message.
        14 MpiSend { receiver: u32, communicator: CommRef, tag: u32, length: u64 }
        /// Start of a non-blocking send.
        15 MpiIsend { receiver: u32, communicator: CommRef, tag: u32, length: u64, request: u64 }
        /// Completion of a non-blocking send.
        16 MpiIsendComplete { request: u64 }
        /// Start of a non-blocking receive.
        17 MpiIrecvRequest { request: u64 }
        /// Blocking receive of a message.
        18 MpiRecv { sender: u32, communicator: CommRef, tag: u32, length: u64 }
        /// Completion of a non-blocking receive.
        19 MpiIrecv { sender: u32, communicator: CommRef, tag: u32, length: u64, request: u64 }
        /// Test of a request that was not complete.
        20 MpiRequestTest { request: u64 }
        /// Cancellation of a request.
        21 MpiRequestCancelled { request: u64 }
        /// Begin of a collective operation.
        22 MpiCollectiveBegin {}
        /// End of a collective operation.
        23 MpiCollectiveEnd {
            operation: CollectiveOp, communicator: CommRef, root: u32, size_sent: u64, size_received: u64,
        }
        /// Fork of a team of OpenMP threads, before version 1.2.
        24 OmpFork { requested_threads: u32 }
        /// Join of a team of OpenMP threads, before version 1.2.
        25 OmpJoin {}
        /// Acquisition of an OpenMP lock, before version 1.2.
        26 OmpAcquireLock { lock: u32, acquisition_order: u32 }
        /// Release of an OpenMP lock, before version 1.2.
        27 OmpReleaseLock { lock: u32, acquisition_order: u32 }
        /// Creation of an OpenMP task, before version 1.2.
        28 OmpTaskCreate { task: u64 }
        /// Switch to an OpenMP task, before version 1.2.
        29 OmpTaskSwitch { task: u64 }
        /// Completion of an OpenMP task, before version 1.2.
        30 OmpTaskComplete { task: u64 }
        /// Values of the metrics of a class, or of an instance of one.
        31 Metric<'a> { metric: MetricRef, values: ShortList<'a, MetricValue> }
        /// String that is the value of a parameter.
        32 ParameterString { parameter: ParameterRef, string: StringRef }
        /// Value of a parameter.
        33 ParameterInt { parameter: ParameterRef, value: i64 }
        /// Value of a parameter.
        34 ParameterUnsignedInt { parameter: ParameterRef, value: u64 }
        /// Creation of a window of one-sided communication.
        35 RmaWinCreate { win: RmaWinRef }
        /// End of a window of one-sided communication.
        36 RmaWinDestroy { win: RmaWinRef }
        /// Begin of a collective operation on a window.
        37 RmaCollectiveBegin {}
        /// End of a collective operation on a window.
        38 RmaCollectiveEnd {
            operation: CollectiveOp, sync_level: RmaSyncLevel, win: RmaWinRef, root: u32, bytes_sent: u64,
            bytes_received: u64,
        }
        /// Synchronization of a group of the members of a window.
        39 RmaGroupSync { sync_level: RmaSyncLevel, win: RmaWinRef, group: GroupRef }
        /// Request of a lock at a member of a window.
        40 RmaRequestLock { win: RmaWinRef, remote: u32, lock: u64, lock_type: LockType }
        /// Acquisition of a lock at a member of a window.
        41 RmaAcquireLock { win: RmaWinRef, remote: u32, lock: u64, lock_type: LockType }
        /// Attempt to acquire a lock, which failed.
        42 RmaTryLock { win: RmaWinRef, remote: u32, lock: u64, lock_type: LockType }
        /// Release of a lock at a member of a window.
        43 RmaReleaseLock { win: RmaWinRef, remote: u32, lock: u64 }
        /// Synchronization with a member of a window.
        44 RmaSync { win: RmaWinRef, remote: u32, sync_type: RmaSyncType }
        /// End of a wait for a change of memory by others.
        45 RmaWaitChange { win: RmaWinRef }
        /// Put of data to a member of a window.
        46 RmaPut { win: RmaWinRef, remote: u32, bytes: u64, matching_id: u64 }
        /// Get of data from a member of a window.
        47 RmaGet { win: RmaWinRef, remote: u32, bytes: u64, matching_id: u64 }
        /// Atomic operation on data of a member of a window.
        48 RmaAtomic {
            win: RmaWinRef, remote: u32, atomic_type: RmaAtomicType, bytes_sent: u64, bytes_received: u64,
            matching_id: u64,
        }
        /// Local completion of a blocking operation on a window.
        49 RmaOpCompleteBlocking { win: RmaWinRef, matching_id: u64 }
        /// Local completion of a non-blocking operation on a window.
        50 RmaOpCompleteNonBlocking { win: RmaWinRef, matching_id: u64 }
        /// Test of an operation on a window that was not complete.
        51 RmaOpTest { win: RmaWinRef, matching_id: u64 }
        /// Completion of an operation on a window at the other member.
        52 RmaOpCompleteRemote { win: RmaWinRef, matching_id: u64 }
        /// Fork of a team of threads.
        53 ThreadFork { model: Paradigm, requested_threads: u32 }
        /// Join of a team of threads.
        54 ThreadJoin { model: Paradigm }
        /// Begin of the work of a thread in a team.
        55 ThreadTeamBegin { team: CommRef }
        /// End of the work of a thread in a team.
        56 ThreadTeamEnd { team: CommRef }
        /// Acquisition of a lock.
        57 ThreadAcquireLock { model: Paradigm, lock: u32, acquisition_order: u32 }
        /// Release of a lock.
        58 ThreadReleaseLock { model: Paradigm, lock: u32, acquisition_order: u32 }
        /// Creation of a task.
        59 ThreadTaskCreate { team: CommRef, creating_thread: u32, generation: u32 }
        /// Switch to a task.
        60 ThreadTaskSwitch { team: CommRef, creating_thread: u32, generation: u32 }
        /// Completion of a task.
        61 ThreadTaskComplete { team: CommRef, creating_thread: u32, generation: u32 }
        /// Creation of a thread, at the location that creates it.
        62 ThreadCreate { contingent: CommRef, sequence: u64 }
        /// Begin of a created thread.
        63 ThreadBegin { contingent: CommRef, sequence: u64 }
        /// End of the wait for a created thread, at the location that waits.
        64 ThreadWait { contingent: CommRef, sequence: u64 }
        /// End of a created thread.
        65 ThreadEnd { contingent: CommRef, sequence: u64 }
        /// Enter of a region in a calling context.
        66 CallingContextEnter { calling_context: CallingContextRef, unwind_distance: u32 }
        /// Leave of a region in a calling context.
        67 CallingContextLeave { calling_context: CallingContextRef }
        /// Sample of a calling context.
        68 CallingContextSample {
            calling_context: CallingContextRef, unwind_distance: u32, generator: InterruptGeneratorRef,
        }
        /// Creation of a handle of a file.
        69 IoCreateHandle {
            handle: IoHandleRef, mode: IoAccessMode, creation_flags: IoCreationFlag, status_flags: IoStatusFlag,
        }
        /// End of a handle of a file.
        70 IoDestroyHandle { handle: IoHandleRef }
        /// Duplication of a handle of a file.
        71 IoDuplicateHandle { old: IoHandleRef, new: IoHandleRef, status_flags: IoStatusFlag }
        /// Change of the position in a file.
        72 IoSeek { handle: IoHandleRef, offset_request: i64, whence: IoSeekOption, offset_result: u64 }
        /// Change of the status of a handle.
        73 IoChangeStatusFlags { handle: IoHandleRef, status_flags: IoStatusFlag }
        /// Deletion of a file.
        74 IoDeleteFile { paradigm: IoParadigmRef, file: IoFileRef }
        /// Begin of an operation on a file.
        75 IoOperationBegin {
            handle: IoHandleRef, mode: IoOperationMode, flags: IoOperationFlag, bytes_request: u64, matching_id: u64,
        }
        /// Test of an operation on a file that was not complete.
        76 IoOperationTest { handle: IoHandleRef, matching_id: u64 }
        /// Successful start of a non-blocking operation on a file.
        77 IoOperationIssued { handle: IoHandleRef, matching_id: u64 }
        /// Completion of an operation on a file.
        78 IoOperationComplete { handle: IoHandleRef, bytes_result: u64, matching_id: u64 }
        /// Cancellation of an operation on a file.
        79 IoOperationCancelled { handle: IoHandleRef, matching_id: u64 }
        /// Acquisition of a lock of a file.
        80 IoAcquireLock { handle: IoHandleRef, lock_type: LockType }
        /// Release of a lock of a file.
        81 IoReleaseLock { handle: IoHandleRef, lock_type: LockType }
        /// Attempt to acquire a lock of a file, which failed.
        82 IoTryLock { handle: IoHandleRef, lock_type: LockType }
        /// Begin of the program.
        83 ProgramBegin<'a> { name: StringRef, arguments: List<'a, StringRef> }
        /// End of the program.
        84 ProgramEnd { exit_status: i64 }
        /// Start of a non-blocking collective operation.
        85 NonBlockingCollectiveRequest { request: u64 }
        /// Completion of a non-blocking collective operation.
        86 NonBlockingCollectiveComplete {
            operation: CollectiveOp, communicator: CommRef, root: u32, size_sent: u64, size_received: u64, request: u64,
        }
        /// Creation of a communicator.
        87 CommCreate { communicator: CommRef }
        /// End of a communicator.
        88 CommDestroy { communicator: CommRef }
        /// Message that a probe found; matched probes give it an id. Since version 3.2, as the
        /// following kinds.
        89 MpiProbe { sender: u32, communicator: CommRef, tag: u32, message: u64 }
        /// Receive of a message that a matched probe found.
        90 MpiMrecv { message: u64, length: u64 }
        /// Start of the non-blocking receive of a message that a matched probe found.
        91 MpiImrecvRequest { message: u64, request: u64 }
        /// Completion of such a receive.
        92 MpiImrecv { request: u64, length: u64 }
    }
}
