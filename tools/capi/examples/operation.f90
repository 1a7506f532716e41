! An exchange of messages in a ring, to be measured by
!
!     mpif90 -shared -fPIC -O2 operation.f90 -o mine.so
!     mpirun -np 4 downbeat-mpi bench --operation sendrecv,./mine.so:ring --verify
!
! The types are those of downbeat_operation.h.
module ring
   use, intrinsic :: iso_c_binding
   use mpi
   implicit none
   private
   public :: downbeat_operation_ring

   type, bind(c) :: downbeat_operation_context
      integer(c_int32_t) :: abi, size
      type(c_ptr) :: comm
      integer(c_int32_t) :: fortran_comm, root
      integer(c_int64_t) :: bytes
      type(c_ptr) :: buffers, message
      integer(c_int64_t) :: message_size, alignment, cache_size
      integer(c_int32_t) :: cache
   end type

   type, bind(c) :: downbeat_operation
      integer(c_int32_t) :: abi = 1, size = 0, mpi_comm_size = 0, flags = 0, least_ranks = 2, most_ranks = 0
      type(c_funptr) :: setup = c_null_funptr, call = c_null_funptr, check = c_null_funptr
      type(c_funptr) :: prepare = c_null_funptr, teardown = c_null_funptr
   end type

   type(downbeat_operation), target, save :: operation

   ! One state is enough: the program sets up one operation after the other.
   integer, save :: comm, next, previous
   integer(c_int8_t), allocatable, save :: sent(:), received(:)
   integer(c_int8_t), save :: expected
   character(kind=c_char), pointer, save :: message(:)

contains

   function downbeat_operation_ring() result(table) bind(c)
      type(c_ptr) :: table
      operation%size = int(c_sizeof(operation), c_int32_t)
      operation%setup = c_funloc(setup)
      operation%call = c_funloc(exchange)
      operation%check = c_funloc(check)
      operation%teardown = c_funloc(teardown)
      table = c_loc(operation)
   end function

   subroutine fail(why)
      character(len=*), intent(in) :: why
      integer :: i
      do i = 1, min(len(why), size(message) - 1)
         message(i) = why(i:i)
      end do
      message(i) = c_null_char
   end subroutine

   function setup(context, state) result(code) bind(c)
      type(downbeat_operation_context), intent(in) :: context
      type(c_ptr), intent(out) :: state
      integer(c_int) :: code
      integer :: rank, ranks, ierror
      call c_f_pointer(context%message, message, [context%message_size])
      comm = context%fortran_comm
      call MPI_Comm_rank(comm, rank, ierror)
      call MPI_Comm_size(comm, ranks, ierror)
      next = modulo(rank + 1, ranks)
      previous = modulo(rank - 1, ranks)
      allocate (sent(context%bytes), received(context%bytes), stat=ierror)
      state = c_null_ptr
      code = merge(0, 1, ierror == 0)
      if (code /= 0) then
         call fail('there is no memory')
         return
      end if
      sent = int(modulo(rank, 100), c_int8_t)
      received = -1
      expected = int(modulo(previous, 100), c_int8_t)
   end function

   function exchange(state, number) result(code) bind(c)
      type(c_ptr), value :: state
      integer(c_int32_t), value :: number
      integer(c_int) :: code
      integer :: ierror
      call MPI_Sendrecv(sent, size(sent), MPI_INTEGER1, next, 0, received, size(received), MPI_INTEGER1, previous, 0, &
                        comm, MPI_STATUS_IGNORE, ierror)
      code = merge(0, 1, ierror == MPI_SUCCESS)
      if (code /= 0) call fail('MPI_Sendrecv failed')
   end function

   function check(state, number) result(code) bind(c)
      type(c_ptr), value :: state
      integer(c_int32_t), value :: number
      integer(c_int) :: code
      code = merge(0, 1, all(received == expected))
      if (code /= 0) call fail('the message is not that of the previous rank')
   end function

   subroutine teardown(state) bind(c)
      type(c_ptr), value :: state
      deallocate (sent, received)
   end subroutine

end module
