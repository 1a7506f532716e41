! The program session.c in Fortran: a tag is a text with a length there. Built with -DBINDING_MPI (use mpi) or -DBINDING_F08
! (use mpi_f08, where calls without ierror are tested), linked with counts.o.
#if defined(BINDING_F08)
#define HANDLE_T(kind) type(kind)
#define NUMBER(handle) handle%MPI_VAL
#define IERROR
#else
#define HANDLE_T(kind) integer
#define NUMBER(handle) handle
#define IERROR , ierror
#endif
#define CALL(name) call count_call_f('name', len('name')); call name

program session_program
   use, intrinsic :: iso_c_binding, only: c_char, c_int
#if defined(BINDING_F08)
   use mpi_f08
#else
   use mpi
#endif
   implicit none
   interface
      subroutine count_call_f(name, length) bind(c)
         import :: c_char, c_int
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int), value :: length
      end subroutine
      subroutine count_collective_f(name, length) bind(c)
         import :: c_char, c_int
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int), value :: length
      end subroutine
      subroutine counts_set_world_f(comm) bind(c)
         import :: c_int
         integer(c_int), value :: comm
      end subroutine
      subroutine count_sent_f(comm, dest, tag, count, type) bind(c)
         import :: c_int
         integer(c_int), value :: comm, dest, tag, count, type
      end subroutine
      subroutine count_received_f(comm, source, tag, bytes) bind(c)
         import :: c_int
         integer(c_int), value :: comm, source, tag, bytes
      end subroutine
      subroutine counts_wrong_f(name, length, got, wanted) bind(c)
         import :: c_char, c_int
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int), value :: length, got, wanted
      end subroutine
      function counts_write_f(name, length) bind(c) result(failed)
         import :: c_char, c_int
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int), value :: length
         integer(c_int) :: failed
      end function
   end interface
   HANDLE_T(MPI_Session) :: session
   HANDLE_T(MPI_Group) :: group
   HANDLE_T(MPI_Comm) :: comm
   character(*), parameter :: tag = 'org.downbeat.test', out = 'MESSAGES_OUT'
   integer :: rank, ranks, total, body, arriving, left, right, failed, ierror
   CALL(MPI_Session_init)(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, session IERROR)
   CALL(MPI_Group_from_session_pset)(session, 'mpi://WORLD', group IERROR)
   CALL(MPI_Comm_create_from_group)(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, comm IERROR)
   CALL(MPI_Group_free)(group IERROR)
   call counts_set_world_f(NUMBER(comm))
   CALL(MPI_Comm_rank)(comm, rank IERROR)
   CALL(MPI_Comm_size)(comm, ranks IERROR)
   CALL(MPI_Allreduce)(rank, total, 1, MPI_INTEGER, MPI_SUM, comm IERROR)
   call count_collective_f('MPI_Allreduce', 13)
   if (total /= ranks*(ranks - 1)/2) call counts_wrong_f('sum of ranks', 12, total, ranks*(ranks - 1)/2)
   left = mod(rank + ranks - 1, ranks)
   right = mod(rank + 1, ranks)
   body = 100 + rank
   CALL(MPI_Sendrecv)(body, 1, MPI_INTEGER, right, 3, arriving, 1, MPI_INTEGER, left, 3, comm, MPI_STATUS_IGNORE IERROR)
   call count_sent_f(NUMBER(comm), right, 3, 1, NUMBER(MPI_INTEGER))
   call count_received_f(NUMBER(comm), left, 3, 4)
   if (arriving /= 100 + left) call counts_wrong_f('message', 7, arriving, 100 + left)
   CALL(MPI_Comm_free)(comm IERROR)
   call count_call_f('MPI_Session_finalize', 20)
   failed = counts_write_f(out, len(out))
   call MPI_Session_finalize(session IERROR)
   if (failed /= 0) stop 1
end program session_program
