//! Functions with a meaning besides that of a region, by the name of C. Positions of parameters count from 0; they are the same in
//! Fortran.

/// Returns the handler of a function, and further arguments for it.
pub(crate) fn handler(name: &str) -> (String, &'static str) {
    let found = CALLS.iter().find(|(known, ..)| *known == name);
    let found = found.map(|(_, handler, extra)| ((*handler).to_owned(), *extra));
    let found = found.or_else(|| collective(name));
    found.unwrap_or(("region".to_owned(), ""))
}

/// Returns the same for a collective operation.
fn collective(name: &str) -> Option<(String, &'static str)> {
    let name = name.strip_prefix("MPI_")?;
    COLLECTIVES.iter().find_map(|(operation, shape)| {
        let kind = if operation.starts_with("Neighbor") {
            "neighbors"
        } else {
            "collective"
        };
        let ending = if name == *operation {
            ""
        } else if name.strip_suffix("_init") == Some(operation) {
            "_init"
        } else if name.strip_prefix('I') == Some(&operation.to_ascii_lowercase()) {
            "_start"
        } else {
            return None;
        };
        Some((format!("{kind}{ending}"), *shape))
    })
}

/// Names, handlers, and their further arguments.
macro_rules! calls {
    ($($name:ident => $handler:ident($($extra:tt)*);)*) => {
        &[$((stringify!($name), stringify!($handler), stringify!($($extra)*))),*]
    };
}

const CALLS: &[(&str, &str, &str)] = calls! {
    // Life of the program.
    MPI_Init => initialize();
    MPI_Init_thread => initialize();
    MPI_Session_init => session(2);
    MPI_Finalize => finalize();
    MPI_Comm_spawn => spawn(5);
    MPI_Comm_spawn_multiple => spawn(6);
    // Sends: count, datatype, destination, tag and communicator from 1.
    MPI_Send => send();
    MPI_Ssend => send();
    MPI_Bsend => send();
    MPI_Rsend => send();
    MPI_Isend => send();
    MPI_Issend => send();
    MPI_Ibsend => send();
    MPI_Irsend => send();
    MPI_Send_init => send_init();
    MPI_Ssend_init => send_init();
    MPI_Bsend_init => send_init();
    MPI_Rsend_init => send_init();
    MPI_Psend_init => partitioned_send_init();
    // Receives.
    MPI_Recv => receive();
    MPI_Irecv => post();
    MPI_Recv_init => receive_init();
    MPI_Precv_init => partitioned_receive_init();
    MPI_Sendrecv => send_receive(8, 10, 11);
    MPI_Sendrecv_replace => send_receive(5, 7, 8);
    MPI_Isendrecv => send_post([8, 9, 10], 11);
    MPI_Isendrecv_replace => send_post([5, 6, 7], 8);
    // Probes.
    MPI_Iprobe => probe(3);
    MPI_Parrived => probe(2);
    MPI_Improbe => matched_probe(4, Some(3));
    MPI_Mprobe => matched_probe(3, None);
    MPI_Mrecv => matched_receive();
    MPI_Imrecv => matched_post();
    // Completions.
    MPI_Wait => complete(&Completion::new(One, 1, None));
    MPI_Test => complete(&Completion::new(One, 2, Some(1)));
    MPI_Waitall => complete(&Completion::new(All, 2, None));
    MPI_Testall => complete(&Completion::new(All, 3, Some(2)));
    MPI_Waitany => complete(&Completion::new(Any(2), 3, None));
    MPI_Testany => complete(&Completion::new(Any(2), 4, Some(3)));
    MPI_Waitsome => complete(&Completion::new(Several, 4, None));
    MPI_Testsome => complete(&Completion::new(Several, 4, Some(2)));
    MPI_Start => start();
    MPI_Startall => start_all();
    MPI_Cancel => cancel();
    MPI_Request_free => request_free();
    // Communicators: the parent, the call among those on it, and the new one.
    MPI_Comm_dup => make(Origin::Parent, 1);
    MPI_Comm_dup_with_info => make(Origin::Parent, 2);
    MPI_Comm_idup => make(Origin::Copy, 1);
    MPI_Comm_idup_with_info => make(Origin::Copy, 2);
    MPI_Comm_split => make(Origin::Parent, 3);
    MPI_Comm_split_type => make(Origin::Parent, 4);
    MPI_Comm_create => make(Origin::Parent, 2);
    MPI_Comm_create_group => make(Origin::Group(2), 3);
    MPI_Comm_create_from_group => make_from_group(1, 4);
    MPI_Intercomm_create_from_groups => make_from_group(4, 7);
    MPI_Cart_create => make(Origin::Parent, 5);
    MPI_Cart_sub => make(Origin::Parent, 2);
    MPI_Graph_create => make(Origin::Parent, 5);
    MPI_Dist_graph_create => make(Origin::Parent, 8);
    MPI_Dist_graph_create_adjacent => make(Origin::Parent, 9);
    MPI_Intercomm_create => make(Origin::Groups(4), 5);
    MPI_Intercomm_merge => make(Origin::Parent, 2);
    MPI_Comm_free => forget();
    MPI_Comm_disconnect => forget();
    // One-sided accesses, by the position of the target.
    MPI_Put => access(&Reach::transfer(Put, 3));
    MPI_Get => access(&Reach::transfer(Get, 3));
    MPI_Rput => access(&Reach::transfer(Put, 3).started());
    MPI_Rget => access(&Reach::transfer(Get, 3).started());
    MPI_Accumulate => access(&Reach::reduction(3));
    MPI_Raccumulate => access(&Reach::reduction(3).started());
    MPI_Get_accumulate => access(&Reach::reduction(6));
    MPI_Rget_accumulate => access(&Reach::reduction(6).started());
    MPI_Fetch_and_op => access(&Reach::element(3));
    MPI_Compare_and_swap => access(&Reach::element(4));
    // Their completion: target, if it is only one, and window.
    MPI_Win_flush => complete_accesses(Some(0), 1);
    MPI_Win_flush_local => complete_accesses(Some(0), 1);
    MPI_Win_unlock => complete_accesses(Some(0), 1);
    MPI_Win_flush_all => complete_accesses(None, 0);
    MPI_Win_flush_local_all => complete_accesses(None, 0);
    MPI_Win_unlock_all => complete_accesses(None, 0);
    // Windows: communicator, and the new one.
    MPI_Win_create => make_window(4, 5);
    MPI_Win_allocate => make_window(3, 5);
    MPI_Win_allocate_shared => make_window(3, 5);
    MPI_Win_create_dynamic => make_window(1, 2);
    MPI_Win_free => free_window();
    MPI_Win_fence => fence();
    MPI_Win_post => open_epoch(Epoch::Exposure);
    MPI_Win_start => open_epoch(Epoch::Access);
    MPI_Win_complete => end_access();
    MPI_Win_wait => end_exposure(None);
    MPI_Win_test => end_exposure(Some(1));
};

/// Names, and descriptions for the handlers.
macro_rules! collectives {
    ($($name:ident => $shape:expr;)*) => {
        &[$((stringify!($name), stringify!($shape))),*]
    };
}

/// Blocking collective operations: name after `MPI_`, and description with the position of the communicator, the last
/// parameter. `MPI_I...` has a request after it, and `MPI_..._init` an info object and a request.
const COLLECTIVES: &[(&str, &str)] = collectives! {
    // Kind and communicator; root, count of the data, and what a member gives to the others.
    Barrier => &Shape::new(Barrier, 0);
    Bcast => &Shape { count: Some(1), given: Some(Given::One(Data::even(1, 2))), ..Shape::new(Broadcast, 4) };
    Gather => &Shape { count: Some(1), given: Some(Given::One(Data::even(1, 2))), in_place: Some(Given::One(Data::even(4, 5))), ..Shape::new(Gather, 7) };
    Gatherv => &Shape { count: Some(1), given: Some(Given::One(Data::even(1, 2))), in_place: Some(Given::Own(Data::uneven(4, 6))), ..Shape::new(Gather, 8) };
    Scatter => &Shape { count: Some(4), given: Some(Given::All(Data::even(1, 2))), ..Shape::new(Scatter, 7) };
    Scatterv => &Shape { count: Some(5), given: Some(Given::All(Data::uneven(1, 3))), ..Shape::new(Scatter, 8) };
    Allgather => &Shape { given: Some(Given::One(Data::even(1, 2))), in_place: Some(Given::One(Data::even(4, 5))), ..Shape::new(Allgather, 6) };
    Allgatherv => &Shape { given: Some(Given::One(Data::even(1, 2))), in_place: Some(Given::Own(Data::uneven(4, 6))), ..Shape::new(Allgather, 7) };
    Alltoall => &Shape { given: Some(Given::All(Data::even(1, 2))), in_place: Some(Given::All(Data::even(4, 5))), ..Shape::new(Alltoall, 6) };
    Alltoallv => &Shape { given: Some(Given::All(Data::uneven(1, 3))), in_place: Some(Given::All(Data::uneven(5, 7))), ..Shape::new(Alltoallv, 8) };
    Alltoallw => &Shape { given: Some(Given::All(Data::mixed(1, 3))), in_place: Some(Given::All(Data::mixed(5, 7))), ..Shape::new(Alltoallv, 8) };
    Reduce => &Shape { count: Some(2), given: Some(Given::One(Data::even(2, 3))), ..Shape::new(Reduce, 6) };
    Allreduce => &Shape { count: Some(2), given: Some(Given::One(Data::even(2, 3))), ..Shape::new(Allreduce, 5) };
    Reduce_scatter => &Shape { given: Some(Given::All(Data::uneven(2, 3))), ..Shape::new(ReduceScatter, 5) };
    Reduce_scatter_block => &Shape { count: Some(2), given: Some(Given::All(Data::even(2, 3))), ..Shape::new(ReduceScatter, 5) };
    Scan => &Shape { count: Some(2), given: Some(Given::One(Data::even(2, 3))), ..Shape::new(Scan, 5) };
    Exscan => &Shape { count: Some(2), given: Some(Given::One(Data::even(2, 3))), ..Shape::new(Exscan, 5) };
    // What is sent to neighbors, what is received, and the communicator.
    Neighbor_allgather => &Layout::new(Data::even(1, 2), Data::even(4, 5), 6);
    Neighbor_allgatherv => &Layout::new(Data::even(1, 2), Data::uneven(4, 6), 7);
    Neighbor_alltoall => &Layout::new(Data::even(1, 2), Data::even(4, 5), 6);
    Neighbor_alltoallv => &Layout::new(Data::uneven(1, 3), Data::uneven(5, 7), 8);
    Neighbor_alltoallw => &Layout::new(Data::mixed(1, 3), Data::mixed(5, 7), 8);
};
