//! Functions of MPI that the tracer calls itself.

use core::ffi::{c_int, c_void};

use crate::call::Call;

macro_rules! functions {
    ($($function:ident($($argument:ident),*) = $symbol:literal;)*) => {
        $(
            /// Calls the function of this name.
            ///
            /// # Safety
            /// As for the function of MPI.
            pub(crate) unsafe fn $function($($argument: usize),*) -> c_int {
                static CALL: Call = Call::new($symbol, $symbol);
                // SAFETY: the caller passes its arguments.
                unsafe { CALL.forward([$($argument),*]) as c_int }
            }
        )*
    };
}

/// Functions whose last argument is the place of their answer, which is 0 if they fail.
macro_rules! answers {
    ($($function:ident($($argument:ident),*) -> $answer:ty = $symbol:literal;)*) => {
        $(
            /// Calls the function of this name.
            ///
            /// # Safety
            /// As for the function of MPI.
            pub(crate) unsafe fn $function($($argument: usize),*) -> $answer {
                static CALL: Call = Call::new($symbol, $symbol);
                let mut answer: $answer = 0;
                // SAFETY: the caller passes its arguments.
                unsafe { CALL.forward([$($argument,)* out(&mut answer)]) };
                answer
            }
        )*
    };
}

functions! {
    bcast(buffer, count, datatype, root, comm) = c"PMPI_Bcast";
    cart_shift(comm, direction, displacement, source, destination) = c"PMPI_Cart_shift";
    graph_neighbors(comm, rank, count, neighbors) = c"PMPI_Graph_neighbors";
    dist_graph_neighbors_count(comm, sources, destinations, is_weighted) = c"PMPI_Dist_graph_neighbors_count";
    dist_graph_neighbors(comm, count, sources, weights, other, destinations, others) = c"PMPI_Dist_graph_neighbors";
    comm_call_errhandler(comm, code) = c"PMPI_Comm_call_errhandler";
    group_translate_ranks(group, count, ranks, to, translated) = c"PMPI_Group_translate_ranks";
    group_free(group) = c"PMPI_Group_free";
    info_get(info, key, length, value, flag) = c"PMPI_Info_get";
    info_free(info) = c"PMPI_Info_free";
    win_get_info(window, info) = c"PMPI_Win_get_info";
    get_count(status, datatype, count) = c"PMPI_Get_count";
    get_elements_x(status, datatype, count) = c"PMPI_Get_elements_x";
}

answers! {
    comm_rank(comm) -> i32 = c"PMPI_Comm_rank";
    comm_size(comm) -> i32 = c"PMPI_Comm_size";
    comm_remote_size(comm) -> i32 = c"PMPI_Comm_remote_size";
    comm_group(comm) -> usize = c"PMPI_Comm_group";
    comm_remote_group(comm) -> usize = c"PMPI_Comm_remote_group";
    comm_test_inter(comm) -> i32 = c"PMPI_Comm_test_inter";
    topo_test(comm) -> i32 = c"PMPI_Topo_test";
    cartdim_get(comm) -> i32 = c"PMPI_Cartdim_get";
    graph_neighbors_count(comm, rank) -> i32 = c"PMPI_Graph_neighbors_count";
    group_size(group) -> i32 = c"PMPI_Group_size";
    type_size(datatype) -> i32 = c"PMPI_Type_size";
    error_class(code) -> i32 = c"PMPI_Error_class";
    test_cancelled(status) -> i32 = c"PMPI_Test_cancelled";
}

#[cfg(mpi_4)]
answers! {
    group_rank(group) -> i32 = c"PMPI_Group_rank";
}

#[cfg(mpi_4)]
functions! {
    group_from_session_pset(session, name, group) = c"PMPI_Group_from_session_pset";
}

/// Returns the address of a variable, as an argument.
pub(crate) fn out<T>(variable: &mut T) -> usize {
    core::ptr::from_mut(variable).expose_provenance()
}

/// Returns the address of a list, as an argument.
pub(crate) fn list_out(list: &mut [i32]) -> usize {
    list.as_mut_ptr().expose_provenance()
}

/// Returns an argument as an address.
pub(crate) fn pointer(argument: usize) -> *mut c_void {
    core::ptr::with_exposed_provenance_mut(argument)
}
