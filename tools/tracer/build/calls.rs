//! Functions with a meaning besides that of a region, by the name of C. Positions of parameters count from 0; they are the same in
//! Fortran.

/// Returns the handler of a function, and further arguments for it.
pub(crate) fn handler(name: &str) -> (&'static str, &'static str) {
    let found = CALLS.iter().find(|(known, ..)| *known == name);
    found.map_or(("region", ""), |(_, handler, extra)| (handler, extra))
}

/// Name, handler, and further arguments, each after a comma.
const CALLS: &[(&str, &str, &str)] = &[
    // Life of the program.
    ("MPI_Init", "initialize", ""),
    ("MPI_Init_thread", "initialize", ""),
    ("MPI_Session_init", "session", ", 2"),
    ("MPI_Finalize", "finalize", ""),
    ("MPI_Comm_spawn", "spawn", ", 5"),
    ("MPI_Comm_spawn_multiple", "spawn", ", 6"),
    // Sends: count, datatype, destination, tag and communicator from 1.
    ("MPI_Send", "send", ""),
    ("MPI_Ssend", "send", ""),
    ("MPI_Bsend", "send", ""),
    ("MPI_Rsend", "send", ""),
    ("MPI_Isend", "send", ""),
    ("MPI_Issend", "send", ""),
    ("MPI_Ibsend", "send", ""),
    ("MPI_Irsend", "send", ""),
    ("MPI_Send_init", "send_init", ""),
    ("MPI_Ssend_init", "send_init", ""),
    ("MPI_Bsend_init", "send_init", ""),
    ("MPI_Rsend_init", "send_init", ""),
    ("MPI_Psend_init", "partitioned_send_init", ""),
    // Receives.
    ("MPI_Recv", "receive", ""),
    ("MPI_Irecv", "post", ""),
    ("MPI_Recv_init", "receive_init", ", [3, 4, 5], 6"),
    ("MPI_Precv_init", "receive_init", ", [4, 5, 6], 8"),
    ("MPI_Sendrecv", "send_receive", ", 8, 10, 11"),
    ("MPI_Sendrecv_replace", "send_receive", ", 5, 7, 8"),
    ("MPI_Isendrecv", "send_post", ", [8, 9, 10], 11"),
    ("MPI_Isendrecv_replace", "send_post", ", [5, 6, 7], 8"),
    // Probes.
    ("MPI_Iprobe", "probe", ", 3"),
    ("MPI_Parrived", "probe", ", 2"),
    ("MPI_Improbe", "matched_probe", ", 4, Some(3)"),
    ("MPI_Mprobe", "matched_probe", ", 3, None"),
    ("MPI_Mrecv", "matched_receive", ""),
    ("MPI_Imrecv", "matched_post", ""),
    // Completions.
    ("MPI_Wait", "complete", ", &Completion::one(Some(1), None)"),
    (
        "MPI_Test",
        "complete",
        ", &Completion::one(Some(2), Some(1))",
    ),
    ("MPI_Waitall", "complete", ", &Completion::all(2, None)"),
    ("MPI_Testall", "complete", ", &Completion::all(3, Some(2))"),
    ("MPI_Waitany", "complete", ", &Completion::any(2, 3, None)"),
    (
        "MPI_Testany",
        "complete",
        ", &Completion::any(2, 4, Some(3))",
    ),
    ("MPI_Waitsome", "complete", ", &Completion::some(false)"),
    ("MPI_Testsome", "complete", ", &Completion::some(true)"),
    ("MPI_Start", "start", ""),
    ("MPI_Startall", "start_all", ""),
    ("MPI_Cancel", "cancel", ""),
    ("MPI_Request_free", "request_free", ""),
    // Communicators: the parent, the call among those on it, and the new one.
    ("MPI_Comm_dup", "make", ", &Making::of(1)"),
    ("MPI_Comm_dup_with_info", "make", ", &Making::of(2)"),
    ("MPI_Comm_idup", "make", ", &Making::copy(1)"),
    ("MPI_Comm_idup_with_info", "make", ", &Making::copy(2)"),
    ("MPI_Comm_split", "make", ", &Making::of(3)"),
    ("MPI_Comm_split_type", "make", ", &Making::of(4)"),
    ("MPI_Comm_create", "make", ", &Making::of(2)"),
    ("MPI_Comm_create_group", "make", ", &Making::by_group(2, 3)"),
    ("MPI_Comm_create_from_group", "make_from_group", ""),
    ("MPI_Cart_create", "make", ", &Making::of(5)"),
    ("MPI_Cart_sub", "make", ", &Making::of(2)"),
    ("MPI_Graph_create", "make", ", &Making::of(5)"),
    ("MPI_Dist_graph_create", "make", ", &Making::of(8)"),
    ("MPI_Dist_graph_create_adjacent", "make", ", &Making::of(9)"),
    ("MPI_Intercomm_create", "make", ", &Making::between(4, 5)"),
    ("MPI_Intercomm_merge", "make", ", &Making::of(2)"),
    ("MPI_Comm_free", "forget", ""),
    ("MPI_Comm_disconnect", "forget", ""),
    // One-sided accesses, by the position of the target.
    ("MPI_Put", "access", ", &Reach::transfer(Put, 3)"),
    ("MPI_Get", "access", ", &Reach::transfer(Get, 3)"),
    ("MPI_Rput", "access", ", &Reach::transfer(Put, 3).started()"),
    ("MPI_Rget", "access", ", &Reach::transfer(Get, 3).started()"),
    ("MPI_Accumulate", "access", ", &Reach::reduction(3)"),
    (
        "MPI_Raccumulate",
        "access",
        ", &Reach::reduction(3).started()",
    ),
    ("MPI_Get_accumulate", "access", ", &Reach::reduction(6)"),
    (
        "MPI_Rget_accumulate",
        "access",
        ", &Reach::reduction(6).started()",
    ),
    ("MPI_Fetch_and_op", "access", ", &Reach::element(3)"),
    ("MPI_Compare_and_swap", "access", ", &Reach::element(4)"),
    // Their completion: target, if it is only one, and window.
    ("MPI_Win_flush", "complete_accesses", ", Some(0), 1"),
    ("MPI_Win_flush_local", "complete_accesses", ", Some(0), 1"),
    ("MPI_Win_unlock", "complete_accesses", ", Some(0), 1"),
    ("MPI_Win_flush_all", "complete_accesses", ", None, 0"),
    ("MPI_Win_flush_local_all", "complete_accesses", ", None, 0"),
    ("MPI_Win_unlock_all", "complete_accesses", ", None, 0"),
    // Windows: communicator, and the new one.
    ("MPI_Win_create", "make_window", ", 4, 5"),
    ("MPI_Win_allocate", "make_window", ", 3, 5"),
    ("MPI_Win_allocate_shared", "make_window", ", 3, 5"),
    ("MPI_Win_create_dynamic", "make_window", ", 1, 2"),
    ("MPI_Win_free", "free_window", ""),
    ("MPI_Win_fence", "fence", ""),
    ("MPI_Win_post", "open_epoch", ", Epoch::Exposure"),
    ("MPI_Win_start", "open_epoch", ", Epoch::Access"),
    ("MPI_Win_complete", "end_access", ""),
    ("MPI_Win_wait", "end_exposure", ", None"),
    ("MPI_Win_test", "end_exposure", ", Some(1)"),
    // Collective operations: kind, communicator; root, and count of the data.
    ("MPI_Barrier", "collective", ", &Shape::new(Barrier, 0)"),
    (
        "MPI_Bcast",
        "collective",
        ", &Shape::new(Broadcast, 4).root(3).count(1)",
    ),
    (
        "MPI_Gather",
        "collective",
        ", &Shape::new(Gather, 7).root(6).count(1)",
    ),
    (
        "MPI_Gatherv",
        "collective",
        ", &Shape::new(Gather, 8).root(7).count(1)",
    ),
    (
        "MPI_Scatter",
        "collective",
        ", &Shape::new(Scatter, 7).root(6).count(4)",
    ),
    (
        "MPI_Scatterv",
        "collective",
        ", &Shape::new(Scatter, 8).root(7).count(5)",
    ),
    ("MPI_Allgather", "collective", ", &Shape::new(Allgather, 6)"),
    (
        "MPI_Allgatherv",
        "collective",
        ", &Shape::new(Allgather, 7)",
    ),
    ("MPI_Alltoall", "collective", ", &Shape::new(Alltoall, 6)"),
    ("MPI_Alltoallv", "collective", ", &Shape::new(Alltoallv, 8)"),
    ("MPI_Alltoallw", "collective", ", &Shape::new(Alltoallv, 8)"),
    (
        "MPI_Reduce",
        "collective",
        ", &Shape::new(Reduce, 6).root(5).count(2)",
    ),
    (
        "MPI_Allreduce",
        "collective",
        ", &Shape::new(Allreduce, 5).count(2)",
    ),
    (
        "MPI_Reduce_scatter",
        "collective",
        ", &Shape::new(ReduceScatter, 5)",
    ),
    (
        "MPI_Reduce_scatter_block",
        "collective",
        ", &Shape::new(ReduceScatter, 5).count(2)",
    ),
    ("MPI_Scan", "collective", ", &Shape::new(Scan, 5).count(2)"),
    (
        "MPI_Exscan",
        "collective",
        ", &Shape::new(Exscan, 5).count(2)",
    ),
    (
        "MPI_Ibarrier",
        "collective_start",
        ", &Shape::new(Barrier, 0), 1",
    ),
    (
        "MPI_Ibcast",
        "collective_start",
        ", &Shape::new(Broadcast, 4).root(3).count(1), 5",
    ),
    (
        "MPI_Igather",
        "collective_start",
        ", &Shape::new(Gather, 7).root(6).count(1), 8",
    ),
    (
        "MPI_Igatherv",
        "collective_start",
        ", &Shape::new(Gather, 8).root(7).count(1), 9",
    ),
    (
        "MPI_Iscatter",
        "collective_start",
        ", &Shape::new(Scatter, 7).root(6).count(4), 8",
    ),
    (
        "MPI_Iscatterv",
        "collective_start",
        ", &Shape::new(Scatter, 8).root(7).count(5), 9",
    ),
    (
        "MPI_Iallgather",
        "collective_start",
        ", &Shape::new(Allgather, 6), 7",
    ),
    (
        "MPI_Iallgatherv",
        "collective_start",
        ", &Shape::new(Allgather, 7), 8",
    ),
    (
        "MPI_Ialltoall",
        "collective_start",
        ", &Shape::new(Alltoall, 6), 7",
    ),
    (
        "MPI_Ialltoallv",
        "collective_start",
        ", &Shape::new(Alltoallv, 8), 9",
    ),
    (
        "MPI_Ialltoallw",
        "collective_start",
        ", &Shape::new(Alltoallv, 8), 9",
    ),
    (
        "MPI_Ireduce",
        "collective_start",
        ", &Shape::new(Reduce, 6).root(5).count(2), 7",
    ),
    (
        "MPI_Iallreduce",
        "collective_start",
        ", &Shape::new(Allreduce, 5).count(2), 6",
    ),
    (
        "MPI_Ireduce_scatter",
        "collective_start",
        ", &Shape::new(ReduceScatter, 5), 6",
    ),
    (
        "MPI_Ireduce_scatter_block",
        "collective_start",
        ", &Shape::new(ReduceScatter, 5).count(2), 6",
    ),
    (
        "MPI_Iscan",
        "collective_start",
        ", &Shape::new(Scan, 5).count(2), 6",
    ),
    (
        "MPI_Iexscan",
        "collective_start",
        ", &Shape::new(Exscan, 5).count(2), 6",
    ),
    (
        "MPI_Barrier_init",
        "collective_init",
        ", &Shape::new(Barrier, 0), 2",
    ),
    (
        "MPI_Bcast_init",
        "collective_init",
        ", &Shape::new(Broadcast, 4).root(3).count(1), 6",
    ),
    (
        "MPI_Gather_init",
        "collective_init",
        ", &Shape::new(Gather, 7).root(6).count(1), 9",
    ),
    (
        "MPI_Gatherv_init",
        "collective_init",
        ", &Shape::new(Gather, 8).root(7).count(1), 10",
    ),
    (
        "MPI_Scatter_init",
        "collective_init",
        ", &Shape::new(Scatter, 7).root(6).count(4), 9",
    ),
    (
        "MPI_Scatterv_init",
        "collective_init",
        ", &Shape::new(Scatter, 8).root(7).count(5), 10",
    ),
    (
        "MPI_Allgather_init",
        "collective_init",
        ", &Shape::new(Allgather, 6), 8",
    ),
    (
        "MPI_Allgatherv_init",
        "collective_init",
        ", &Shape::new(Allgather, 7), 9",
    ),
    (
        "MPI_Alltoall_init",
        "collective_init",
        ", &Shape::new(Alltoall, 6), 8",
    ),
    (
        "MPI_Alltoallv_init",
        "collective_init",
        ", &Shape::new(Alltoallv, 8), 10",
    ),
    (
        "MPI_Alltoallw_init",
        "collective_init",
        ", &Shape::new(Alltoallv, 8), 10",
    ),
    (
        "MPI_Reduce_init",
        "collective_init",
        ", &Shape::new(Reduce, 6).root(5).count(2), 8",
    ),
    (
        "MPI_Allreduce_init",
        "collective_init",
        ", &Shape::new(Allreduce, 5).count(2), 7",
    ),
    (
        "MPI_Reduce_scatter_init",
        "collective_init",
        ", &Shape::new(ReduceScatter, 5), 7",
    ),
    (
        "MPI_Reduce_scatter_block_init",
        "collective_init",
        ", &Shape::new(ReduceScatter, 5).count(2), 7",
    ),
    (
        "MPI_Scan_init",
        "collective_init",
        ", &Shape::new(Scan, 5).count(2), 7",
    ),
    (
        "MPI_Exscan_init",
        "collective_init",
        ", &Shape::new(Exscan, 5).count(2), 7",
    ),
];
