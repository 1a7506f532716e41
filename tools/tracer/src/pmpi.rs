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

functions! {
    bcast(buffer, count, datatype, root, comm) = c"PMPI_Bcast";
    comm_rank(comm, rank) = c"PMPI_Comm_rank";
    comm_size(comm, size) = c"PMPI_Comm_size";
    comm_remote_size(comm, size) = c"PMPI_Comm_remote_size";
    comm_group(comm, group) = c"PMPI_Comm_group";
    comm_remote_group(comm, group) = c"PMPI_Comm_remote_group";
    comm_test_inter(comm, flag) = c"PMPI_Comm_test_inter";
    topo_test(comm, status) = c"PMPI_Topo_test";
    cartdim_get(comm, dimensions) = c"PMPI_Cartdim_get";
    cart_shift(comm, direction, displacement, source, destination) = c"PMPI_Cart_shift";
    graph_neighbors_count(comm, rank, count) = c"PMPI_Graph_neighbors_count";
    graph_neighbors(comm, rank, count, neighbors) = c"PMPI_Graph_neighbors";
    dist_graph_neighbors_count(comm, sources, destinations, is_weighted) = c"PMPI_Dist_graph_neighbors_count";
    dist_graph_neighbors(comm, count, sources, weights, other, destinations, others) = c"PMPI_Dist_graph_neighbors";
    comm_call_errhandler(comm, code) = c"PMPI_Comm_call_errhandler";
    group_size(group, size) = c"PMPI_Group_size";
    group_translate_ranks(group, count, ranks, to, translated) = c"PMPI_Group_translate_ranks";
    group_free(group) = c"PMPI_Group_free";
    info_get(info, key, length, value, flag) = c"PMPI_Info_get";
    info_free(info) = c"PMPI_Info_free";
    win_get_info(window, info) = c"PMPI_Win_get_info";
    type_size(datatype, size) = c"PMPI_Type_size";
    get_count(status, datatype, count) = c"PMPI_Get_count";
    get_elements_x(status, datatype, count) = c"PMPI_Get_elements_x";
    error_class(code, class) = c"PMPI_Error_class";
    test_cancelled(status, flag) = c"PMPI_Test_cancelled";
}

#[cfg(mpi_4)]
functions! {
    group_rank(group, rank) = c"PMPI_Group_rank";
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
