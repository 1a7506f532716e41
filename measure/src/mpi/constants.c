/* Constants that are casts in some libraries' mpi.h and addresses in others', so that only a C compiler knows them. */
#include <mpi.h>

void *downbeat_mpi_in_place(void) { return MPI_IN_PLACE; }

MPI_Datatype downbeat_mpi_byte(void) { return MPI_BYTE; }

MPI_Datatype downbeat_mpi_char(void) { return MPI_CHAR; }

MPI_Datatype downbeat_mpi_signed_char(void) { return MPI_SIGNED_CHAR; }

MPI_Datatype downbeat_mpi_int(void) { return MPI_INT; }

MPI_Fint downbeat_mpi_fortran_handle(MPI_Comm comm) { return MPI_Comm_c2f(comm); }
