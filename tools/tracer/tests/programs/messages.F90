! The program messages.c in Fortran, by one of three bindings; the same file of counts (see counts.h), C names of the calls.
!
!   mpicc -c counts.c
!   mpif90 -fallow-argument-mismatch -ffree-line-length-none -DBINDING_MPIF messages.F90 counts.o -o messages_mpif
!
! and likewise -DBINDING_MPI (use mpi) and -DBINDING_F08 (use mpi_f08). -DMPI_4 adds calls of MPI 4 (MPICH 4), -DOPEN_MPI_4
! the persistent collectives that Open MPI 4.1 has under names of its own. Indices that the library returns are noted but
! not used: MPICH 4.0 counts them from zero in mpi_f08.

! Handles and statuses are integers in the old bindings. The new one allows calls without ierror, which is tested here.
#if defined(BINDING_F08)
#define COMM_T type(MPI_Comm)
#define REQUEST_T type(MPI_Request)
#define TYPE_T type(MPI_Datatype)
#define GROUP_T type(MPI_Group)
#define MESSAGE_T type(MPI_Message)
#define WIN_T type(MPI_Win)
#define STATUS_T type(MPI_Status)
#define STATUSES_T(n) type(MPI_Status), dimension(n)
#define NUMBER(handle) handle%MPI_VAL
#define SOURCE_OF(status) status%MPI_SOURCE
#define TAG_OF(status) status%MPI_TAG
#define ONE_OF(statuses, i) statuses(i)
#define IERROR
#else
#define COMM_T integer
#define REQUEST_T integer
#define TYPE_T integer
#define GROUP_T integer
#define MESSAGE_T integer
#define WIN_T integer
#define STATUS_T integer, dimension(MPI_STATUS_SIZE)
#define STATUSES_T(n) integer, dimension(MPI_STATUS_SIZE, n)
#define NUMBER(handle) handle
#define SOURCE_OF(status) status(MPI_SOURCE)
#define TAG_OF(status) status(MPI_TAG)
#define ONE_OF(statuses, i) statuses(:, i)
#define IERROR , ierror
#endif

! Every call goes through one of these, which count it. gfortran's preprocessor fills arguments into strings, too.
! TRY is for calls that may find nothing: `call found(flag)` must follow, and counts.
#define CALL(name) call count('name'); call name
#define TRY(name) tried = 'name'; call name
#define COLLECTIVE(name) call count('name'); call count_collective('name'); call name
! `call finish` must follow, which waits for `request`.
#define BEGIN(name) begun = 'name'; call count('name'); call name

! The counts of counts.c, which calls only what a tracer does not see.
module counts
   use, intrinsic :: iso_c_binding, only: c_char, c_int
   implicit none
   interface
      subroutine count_call_f(name, length) bind(c)
         import :: c_char, c_int
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int), value :: length
      end subroutine
      subroutine count_outcome_f(name, length, found) bind(c)
         import :: c_char, c_int
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int), value :: length, found
      end subroutine
      subroutine count_collective_f(name, length) bind(c)
         import :: c_char, c_int
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int), value :: length
      end subroutine
      subroutine count_sent_f(comm, dest, tag, count, type) bind(c)
         import :: c_int
         integer(c_int), value :: comm, dest, tag, count, type
      end subroutine
      subroutine count_received_f(comm, source, tag, bytes) bind(c)
         import :: c_int
         integer(c_int), value :: comm, source, tag, bytes
      end subroutine
      subroutine count_received_combined_f(comm, source, tag, bytes) bind(c)
         import :: c_int
         integer(c_int), value :: comm, source, tag, bytes
      end subroutine
      subroutine count_rma_f(name, length, comm, target, count, type) bind(c)
         import :: c_char, c_int
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int), value :: length, comm, target, count, type
      end subroutine
      subroutine note_indices_f(name, length, count, values) bind(c)
         import :: c_char, c_int
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int), value :: length, count
         integer(c_int), intent(in) :: values(*)
      end subroutine
      subroutine note_status_f(name, length, source, tag) bind(c)
         import :: c_char, c_int
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int), value :: length, source, tag
      end subroutine
      function counts_world_rank_f(comm, rank) bind(c) result(world_rank)
         import :: c_int
         integer(c_int), value :: comm, rank
         integer(c_int) :: world_rank
      end function
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
end module counts

module parts
   use counts
#if defined(BINDING_F08)
   use mpi_f08
#if defined(OPEN_MPI_4)
   use mpi_f08_ext
#endif
#elif defined(BINDING_MPI)
   use mpi
#endif
   implicit none
#if defined(BINDING_MPIF)
   include 'mpif.h'
#endif
   integer, parameter :: length = 16, integer_bytes = 4, wide = 64
   integer :: rank, ranks, left, right, ierror
   character(40) :: tried, begun
   REQUEST_T :: request

contains

   subroutine count(name)
      character(*), intent(in) :: name
      call count_call_f(name, len(name))
   end subroutine count

   subroutine count_collective(name)
      character(*), intent(in) :: name
      call count_collective_f(name, len(name))
   end subroutine count_collective

   subroutine found(flag)
      logical, intent(in) :: flag
      call count_outcome_f(tried, len_trim(tried), merge(1, 0, flag))
   end subroutine found

   subroutine finish()
      CALL(MPI_Wait)(request, MPI_STATUS_IGNORE IERROR)
      call count_collective_f(begun, len_trim(begun))
   end subroutine finish

   subroutine sent(comm, dest, tag, number, type)
      COMM_T, intent(in) :: comm
      TYPE_T, intent(in) :: type
      integer, intent(in) :: dest, tag, number
      call count_sent_f(NUMBER(comm), dest, tag, number, NUMBER(type))
   end subroutine sent

   ! Integers to the right neighbour: nearly all messages are.
   subroutine sent_right(tag)
      integer, intent(in) :: tag
      call sent(MPI_COMM_WORLD, right, tag, length, MPI_INTEGER)
   end subroutine sent_right

   subroutine expect(what, got, wanted)
      character(*), intent(in) :: what
      integer, intent(in) :: got, wanted
      if (got /= wanted) call counts_wrong_f(what, len(what), got, wanted)
   end subroutine expect

   subroutine note(name, values)
      character(*), intent(in) :: name
      integer, intent(in) :: values(:)
      call note_indices_f(name, len(name), size(values), values)
   end subroutine note

   subroutine note_some(name, number, indices)
      character(*), intent(in) :: name
      integer, intent(in) :: number, indices(:)
      call note(name, [number, indices(1:max(number, 0))])
   end subroutine note_some

   subroutine note_status(name, status)
      character(*), intent(in) :: name
      STATUS_T, intent(in) :: status
      call note_status_f(name, len(name), SOURCE_OF(status), TAG_OF(status))
   end subroutine note_status

   ! Every subject begins with a barrier: receives with wildcards must not meet messages of other subjects.
   subroutine begin_subject()
      COLLECTIVE(MPI_Barrier)(MPI_COMM_WORLD IERROR)
   end subroutine begin_subject

   ! Content of a message is a function of its sender (a rank of the world), tag and length.
   subroutine fill(body, tag)
      integer, intent(out) :: body(:)
      integer, intent(in) :: tag
      integer :: i
      body = [(rank*1000000 + tag*1000 + i, i=0, size(body) - 1)]
   end subroutine fill

   ! A message counts as received when its content was looked at.
   subroutine check_content(comm, source, tag, body)
      COMM_T, intent(in) :: comm
      integer, intent(in) :: source, tag, body(:)
      integer :: i, sender
      sender = counts_world_rank_f(NUMBER(comm), source)
      do i = 1, size(body)
         call expect('element of a message', body(i), sender*1000000 + tag*1000 + i - 1)
      end do
   end subroutine check_content

   subroutine accept_message(comm, source, tag, body)
      COMM_T, intent(in) :: comm
      integer, intent(in) :: source, tag, body(:)
      if (source == MPI_PROC_NULL) return
      call check_content(comm, source, tag, body)
      call count_received_f(NUMBER(comm), source, tag, size(body)*integer_bytes)
   end subroutine accept_message

   subroutine accept_left(tag, body)
      integer, intent(in) :: tag, body(:)
      call accept_message(MPI_COMM_WORLD, left, tag, body)
   end subroutine accept_left

   subroutine check_status(status, source, tag, number)
      STATUS_T, intent(in) :: status
      integer, intent(in) :: source, tag, number
      integer :: got
      CALL(MPI_Get_count)(status, MPI_INTEGER, got IERROR)
      call expect('source of a status', SOURCE_OF(status), source)
      call expect('tag of a status', TAG_OF(status), tag)
      call expect('count of a status', got, number)
   end subroutine check_status

   subroutine take(tag)
      integer, intent(in) :: tag
      integer :: body(length)
      CALL(MPI_Recv)(body, length, MPI_INTEGER, left, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE IERROR)
      call accept_left(tag, body)
   end subroutine take

   ! Odd ranks receive first, so a ring of synchronous sends ends for every number of ranks above 1.
   subroutine blocking_modes()
      integer :: body(length)
      integer, asynchronous :: arriving(length)
      logical :: is_odd
      is_odd = mod(rank, 2) == 1
      call begin_subject()
      call fill(body, 1)
      if (is_odd) call take(1)
      CALL(MPI_Send)(body, length, MPI_INTEGER, right, 1, MPI_COMM_WORLD IERROR)
      call sent_right(1)
      if (.not. is_odd) call take(1)
      call fill(body, 2)
      if (is_odd) call take(2)
      CALL(MPI_Ssend)(body, length, MPI_INTEGER, right, 2, MPI_COMM_WORLD IERROR)
      call sent_right(2)
      if (.not. is_odd) call take(2)
      call buffered(3)
      call take(3)
      call fill(body, 4)
      CALL(MPI_Irecv)(arriving, length, MPI_INTEGER, left, 4, MPI_COMM_WORLD, request IERROR)
      call begin_subject() ! all receives are posted now
      CALL(MPI_Rsend)(body, length, MPI_INTEGER, right, 4, MPI_COMM_WORLD IERROR)
      call sent_right(4)
      CALL(MPI_Wait)(request, MPI_STATUS_IGNORE IERROR)
      call accept_left(4, arriving)
   end subroutine blocking_modes

   ! Sends integers to the right without waiting for the receiver.
   subroutine buffered(tag)
      integer, intent(in) :: tag
      integer :: body(length)
      call fill(body, tag)
      CALL(MPI_Bsend)(body, length, MPI_INTEGER, right, tag, MPI_COMM_WORLD IERROR)
      call sent_right(tag)
   end subroutine buffered

   subroutine receives()
      integer :: body(length), room(2*length), i
      STATUS_T :: status
      call begin_subject()
      call buffered(10)
      ! room for more than is sent: the true number of bytes is in the status only
      CALL(MPI_Recv)(room, 2*length, MPI_INTEGER, left, 10, MPI_COMM_WORLD, status, ierror)
      call accept_left(10, room(:length))
      call check_status(status, left, 10, length)
      call begin_subject()
      call buffered(11)
      CALL(MPI_Recv)(room, 2*length, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status IERROR)
      call accept_message(MPI_COMM_WORLD, SOURCE_OF(status), TAG_OF(status), room(:length))
      call check_status(status, left, 11, length)
      call begin_subject()
      call buffered(12)
      CALL(MPI_Recv)(room, 2*length, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE IERROR)
      call accept_left(12, room(:length))
      ! Rank 0 receives from all others in the order of arrival; the message itself tells who sent it.
      call begin_subject()
      call fill(body, 13)
      if (rank /= 0) then
         CALL(MPI_Send)(body, length, MPI_INTEGER, 0, 13, MPI_COMM_WORLD IERROR)
         call sent(MPI_COMM_WORLD, 0, 13, length, MPI_INTEGER)
      else
         do i = 1, ranks - 1
            CALL(MPI_Recv)(body, length, MPI_INTEGER, MPI_ANY_SOURCE, 13, MPI_COMM_WORLD, MPI_STATUS_IGNORE IERROR)
            call accept_message(MPI_COMM_WORLD, body(1)/1000000, 13, body)
         end do
      end if
   end subroutine receives

   subroutine non_blocking_modes()
      integer, parameter :: many = 60000
      integer, asynchronous :: body(length, 4), arriving(length, 4)
      integer, asynchronous, allocatable :: leaving(:), coming(:)
      REQUEST_T :: incoming(4), outgoing(4)
      STATUSES_T(4) :: statuses
      STATUS_T :: status
      integer :: i
      call begin_subject()
      do i = 1, 4
         call fill(body(:, i), 19 + i)
         CALL(MPI_Irecv)(arriving(1, i), length, MPI_INTEGER, merge(MPI_ANY_SOURCE, left, i == 2), 19 + i, &
            MPI_COMM_WORLD, incoming(i) IERROR)
      end do
      call begin_subject()
      CALL(MPI_Isend)(body(1, 1), length, MPI_INTEGER, right, 20, MPI_COMM_WORLD, outgoing(1) IERROR)
      CALL(MPI_Issend)(body(1, 2), length, MPI_INTEGER, right, 21, MPI_COMM_WORLD, outgoing(2) IERROR)
      CALL(MPI_Ibsend)(body(1, 3), length, MPI_INTEGER, right, 22, MPI_COMM_WORLD, outgoing(3) IERROR)
      CALL(MPI_Irsend)(body(1, 4), length, MPI_INTEGER, right, 23, MPI_COMM_WORLD, outgoing(4) IERROR)
      do i = 1, 4
         call sent_right(19 + i)
      end do
      CALL(MPI_Waitall)(4, incoming, statuses IERROR)
      do i = 1, 4
         call accept_left(19 + i, arriving(:, i))
         status = ONE_OF(statuses, i)
         call check_status(status, left, 19 + i, length)
      end do
      CALL(MPI_Waitall)(4, outgoing, MPI_STATUSES_IGNORE IERROR)

      allocate (leaving(many), coming(many))
      call fill(leaving, 24)
      CALL(MPI_Irecv)(coming, many, MPI_INTEGER, MPI_ANY_SOURCE, 24, MPI_COMM_WORLD, incoming(1) IERROR)
      CALL(MPI_Isend)(leaving, many, MPI_INTEGER, right, 24, MPI_COMM_WORLD, incoming(2) IERROR)
      call sent(MPI_COMM_WORLD, right, 24, many, MPI_INTEGER)
      CALL(MPI_Waitall)(2, incoming, MPI_STATUSES_IGNORE, ierror) ! a wildcard, and no status that tells the source
      call accept_left(24, coming)
      CALL(MPI_Irecv)(coming, many, MPI_INTEGER, left, 25, MPI_COMM_WORLD, incoming(1) IERROR)
      call fill(leaving, 25)
      CALL(MPI_Isend)(leaving, many, MPI_INTEGER, right, 25, MPI_COMM_WORLD, incoming(2) IERROR)
      call sent(MPI_COMM_WORLD, right, 25, many, MPI_INTEGER)
      CALL(MPI_Wait)(incoming(2), status IERROR) ! of a send: nothing in it is defined
      CALL(MPI_Wait)(incoming(1), status IERROR)
      call accept_left(25, coming)
      call check_status(status, left, 25, many)
      CALL(MPI_Wait)(incoming(1), status IERROR) ! of MPI_REQUEST_NULL
   end subroutine non_blocking_modes

   subroutine send_and_receive()
      integer :: body(length), arriving(length), up, down
      STATUS_T :: status
      up = merge(rank + 1, MPI_PROC_NULL, rank + 1 < ranks)
      down = merge(rank - 1, MPI_PROC_NULL, rank > 0)
      call begin_subject()
      call fill(body, 30)
      CALL(MPI_Sendrecv)(body, length, MPI_INTEGER, right, 30, arriving, length, MPI_INTEGER, left, 30, MPI_COMM_WORLD, &
         status IERROR)
      call sent_right(30)
      call accept_left(30, arriving)
      call check_status(status, left, 30, length)
      call begin_subject()
      call fill(body, 31)
      CALL(MPI_Sendrecv)(body, length, MPI_INTEGER, right, 31, arriving, length, MPI_INTEGER, MPI_ANY_SOURCE, &
         MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE IERROR)
      call sent_right(31)
      call accept_left(31, arriving)
      call begin_subject()
      call fill(body, 32) ! along a line: its ends have no neighbour
      CALL(MPI_Sendrecv)(body, length, MPI_INTEGER, up, 32, arriving, length, MPI_INTEGER, down, 32, MPI_COMM_WORLD, &
         MPI_STATUS_IGNORE IERROR)
      call sent(MPI_COMM_WORLD, up, 32, length, MPI_INTEGER)
      call accept_message(MPI_COMM_WORLD, down, 32, arriving)
      call fill(body, 33)
      CALL(MPI_Sendrecv_replace)(body, length, MPI_INTEGER, left, 33, right, 33, MPI_COMM_WORLD, status IERROR)
      call sent(MPI_COMM_WORLD, left, 33, length, MPI_INTEGER)
      call accept_message(MPI_COMM_WORLD, right, 33, body)
      call check_status(status, right, 33, length)
   end subroutine send_and_receive

   ! Each start of a persistent send is a message.
   subroutine persistent()
      integer, asynchronous :: body(length, 4), arriving(length, 4)
      REQUEST_T :: incoming(4), outgoing(4)
      STATUSES_T(4) :: statuses
      STATUS_T :: status
      integer :: i, round, place
      call begin_subject()
      do i = 1, 4
         call fill(body(:, i), 39 + i)
         CALL(MPI_Recv_init)(arriving(1, i), length, MPI_INTEGER, merge(MPI_ANY_SOURCE, left, i == 2), 39 + i, &
            MPI_COMM_WORLD, incoming(i) IERROR)
      end do
      CALL(MPI_Send_init)(body(1, 1), length, MPI_INTEGER, right, 40, MPI_COMM_WORLD, outgoing(1) IERROR)
      CALL(MPI_Ssend_init)(body(1, 2), length, MPI_INTEGER, right, 41, MPI_COMM_WORLD, outgoing(2) IERROR)
      CALL(MPI_Bsend_init)(body(1, 3), length, MPI_INTEGER, right, 42, MPI_COMM_WORLD, outgoing(3) IERROR)
      CALL(MPI_Rsend_init)(body(1, 4), length, MPI_INTEGER, right, 43, MPI_COMM_WORLD, outgoing(4) IERROR)
      do round = 0, 3
         arriving = 0
         if (mod(round, 2) == 1) then
            CALL(MPI_Startall)(4, incoming IERROR)
         else
            do i = 1, 4
               CALL(MPI_Start)(incoming(i) IERROR)
            end do
         end if
         call begin_subject() ! the ready send needs its receive
         if (mod(round, 2) == 1) then
            CALL(MPI_Startall)(4, outgoing IERROR)
         else
            do i = 1, 4
               CALL(MPI_Start)(outgoing(i) IERROR)
            end do
         end if
         do i = 1, 4
            call sent_right(39 + i)
         end do
         select case (round)
         case (0)
            CALL(MPI_Waitall)(4, incoming, statuses IERROR)
            do i = 1, 4
               status = ONE_OF(statuses, i)
               call check_status(status, left, 39 + i, length)
            end do
         case (1)
            CALL(MPI_Waitall)(4, incoming, MPI_STATUSES_IGNORE IERROR)
         case (2)
            do i = 1, 4
               CALL(MPI_Wait)(incoming(i), MPI_STATUS_IGNORE IERROR)
            end do
         case default
            do i = 1, 4 ! in the order of arrival, so the indices are not noted
               CALL(MPI_Waitany)(4, incoming, place, status IERROR)
               call expect('source of MPI_Waitany', SOURCE_OF(status), left)
            end do
         end select
         do i = 1, 4
            call accept_left(39 + i, arriving(:, i))
         end do
         CALL(MPI_Waitall)(4, outgoing, MPI_STATUSES_IGNORE IERROR)
      end do
      CALL(MPI_Wait)(incoming(1), status IERROR) ! all are inactive
      CALL(MPI_Waitany)(4, incoming, place, MPI_STATUS_IGNORE IERROR)
      call note('MPI_Waitany', [place])
      do i = 1, 4
         CALL(MPI_Request_free)(incoming(i) IERROR)
         CALL(MPI_Request_free)(outgoing(i) IERROR)
      end do
   end subroutine persistent

   subroutine post_receives(base, room, requests)
      integer, intent(in) :: base
      integer, asynchronous, intent(inout) :: room(length, 4)
      REQUEST_T, intent(out) :: requests(4)
      integer :: i
      call begin_subject()
      do i = 1, 4
         CALL(MPI_Irecv)(room(1, i), length, MPI_INTEGER, merge(MPI_ANY_SOURCE, left, mod(i, 2) == 0), base + i - 1, &
            MPI_COMM_WORLD, requests(i) IERROR)
      end do
   end subroutine post_receives

   ! Four receives of which one at a time can complete, because the left neighbour sends only when it is asked to.
   ! Returns the place of that one.
   function ask(base, step, leaving, sending) result(which)
      integer, intent(in) :: base, step
      integer, asynchronous, intent(inout) :: leaving(length)
      REQUEST_T, intent(out) :: sending
      integer, parameter :: order(4) = [3, 1, 4, 2]
      integer :: which, nothing(1)
      which = order(step)
      call fill(leaving, base + which - 1)
      nothing = 0
      CALL(MPI_Sendrecv)(nothing, 0, MPI_BYTE, left, 59, nothing, 0, MPI_BYTE, right, 59, MPI_COMM_WORLD, &
         MPI_STATUS_IGNORE IERROR)
      call sent(MPI_COMM_WORLD, left, 59, 0, MPI_BYTE)
      call accept_message(MPI_COMM_WORLD, right, 59, nothing(:0))
      CALL(MPI_Isend)(leaving, length, MPI_INTEGER, right, base + which - 1, MPI_COMM_WORLD, sending IERROR)
      call sent_right(base + which - 1)
   end function ask

   subroutine answered(base, which, room, completed, sending)
      integer, intent(in) :: base, which
      integer, intent(in) :: room(length, 4)
      REQUEST_T, intent(in) :: completed
      REQUEST_T, intent(inout) :: sending
      call accept_left(base + which - 1, room(:, which))
      call expect('a completed request', NUMBER(completed), NUMBER(MPI_REQUEST_NULL))
      CALL(MPI_Wait)(sending, MPI_STATUS_IGNORE IERROR)
   end subroutine answered

   subroutine one_of_several()
      integer, asynchronous :: room(length, 4), leaving(length)
      REQUEST_T :: requests(4), sending
      STATUS_T :: status
      STATUSES_T(4) :: statuses
      integer :: step, which, place, number, indices(4)
      logical :: is_done
      call post_receives(50, room, requests)
      do step = 1, 4
         which = ask(50, step, leaving, sending)
         if (mod(step, 2) == 1) then
            CALL(MPI_Waitany)(4, requests, place, status IERROR)
            call check_status(status, left, 49 + which, length)
         else
            CALL(MPI_Waitany)(4, requests, place, MPI_STATUS_IGNORE IERROR)
         end if
         call note('MPI_Waitany', [place])
         call answered(50, which, room, requests(which), sending)
      end do
      CALL(MPI_Waitany)(4, requests, place, status IERROR)
      call note('MPI_Waitany', [place])

      call post_receives(50, room, requests)
      do step = 1, 4
         which = ask(50, step, leaving, sending)
         if (mod(step, 2) == 1) then
            CALL(MPI_Waitsome)(4, requests, number, indices, statuses IERROR)
            status = ONE_OF(statuses, 1)
            call check_status(status, left, 49 + which, length)
         else
            CALL(MPI_Waitsome)(4, requests, number, indices, MPI_STATUSES_IGNORE IERROR)
         end if
         call note_some('MPI_Waitsome', number, indices)
         call answered(50, which, room, requests(which), sending)
      end do
      CALL(MPI_Waitsome)(4, requests, number, indices, statuses IERROR)
      call note_some('MPI_Waitsome', number, indices)

      call post_receives(50, room, requests)
      TRY(MPI_Testany)(4, requests, place, is_done, status IERROR) ! nobody has asked yet
      call found(is_done)
      do step = 1, 4
         which = ask(50, step, leaving, sending)
         is_done = .false.
         do while (.not. is_done)
            TRY(MPI_Testany)(4, requests, place, is_done, status IERROR)
            call found(is_done)
         end do
         call note('MPI_Testany', [place])
         call check_status(status, left, 49 + which, length)
         call answered(50, which, room, requests(which), sending)
      end do
      TRY(MPI_Testany)(4, requests, place, is_done, MPI_STATUS_IGNORE IERROR)
      call found(is_done)
      call note('MPI_Testany', [place])

      call post_receives(50, room, requests)
      TRY(MPI_Testsome)(4, requests, number, indices, statuses IERROR)
      call found(number /= 0)
      do step = 1, 4
         which = ask(50, step, leaving, sending)
         number = 0
         do while (number == 0)
            TRY(MPI_Testsome)(4, requests, number, indices, statuses IERROR)
            call found(number /= 0)
         end do
         call note_some('MPI_Testsome', number, indices)
         status = ONE_OF(statuses, 1)
         call check_status(status, left, 49 + which, length)
         call answered(50, which, room, requests(which), sending)
      end do
      TRY(MPI_Testsome)(4, requests, number, indices, MPI_STATUSES_IGNORE IERROR)
      call found(number /= 0) ! MPI_UNDEFINED: not a failure
      call note_some('MPI_Testsome', number, indices)
   end subroutine one_of_several

   ! Two of four requests are complete from the start: receives from nobody.
   subroutine some_of_several()
      integer, asynchronous :: nothing(4)
      integer :: number, indices(4), i, pass, body(1)
      REQUEST_T :: requests(4)
      STATUSES_T(4) :: statuses
      do pass = 1, 2
         call begin_subject()
         do i = 1, 4
            CALL(MPI_Irecv)(nothing(i), 1, MPI_INTEGER, merge(MPI_PROC_NULL, left, mod(i, 2) == 0), 54, MPI_COMM_WORLD, &
               requests(i) IERROR)
         end do
         if (pass == 1) then
            CALL(MPI_Waitsome)(4, requests, number, indices, statuses IERROR)
            call note_some('MPI_Waitsome', number, indices)
         else
            number = 0
            do while (number == 0)
               TRY(MPI_Testsome)(4, requests, number, indices, statuses IERROR)
               call found(number /= 0)
            end do
            call note_some('MPI_Testsome', number, indices)
         end if
         call begin_subject() ! nobody sends before all have looked
         do i = 1, 2
            call fill(body, 54)
            CALL(MPI_Send)(body, 1, MPI_INTEGER, right, 54, MPI_COMM_WORLD IERROR)
            call sent(MPI_COMM_WORLD, right, 54, 1, MPI_INTEGER)
         end do
         CALL(MPI_Waitall)(4, requests, MPI_STATUSES_IGNORE IERROR)
         call accept_left(54, nothing(1:1))
         call accept_left(54, nothing(3:3))
      end do
   end subroutine some_of_several

   subroutine tests()
      integer, asynchronous :: room(length, 4), leaving(length)
      REQUEST_T :: requests(4), sending, none
      STATUS_T :: status
      STATUSES_T(4) :: statuses
      integer :: step, which
      logical :: is_done
      call post_receives(60, room, requests)
      TRY(MPI_Test)(requests(1), is_done, status IERROR)
      call found(is_done)
      do step = 1, 4
         which = ask(60, step, leaving, sending)
         is_done = .false.
         do while (.not. is_done)
            if (mod(step, 2) == 1) then
               TRY(MPI_Test)(requests(which), is_done, status IERROR)
            else
               TRY(MPI_Test)(requests(which), is_done, MPI_STATUS_IGNORE IERROR)
            end if
            call found(is_done)
         end do
         if (mod(step, 2) == 1) call check_status(status, left, 59 + which, length)
         call answered(60, which, room, requests(which), sending)
      end do
      none = MPI_REQUEST_NULL
      TRY(MPI_Test)(none, is_done, status IERROR)
      call found(is_done)

      do step = 1, 2
         call post_receives(60, room, requests)
         TRY(MPI_Testall)(4, requests, is_done, MPI_STATUSES_IGNORE IERROR)
         call found(is_done)
         call begin_subject() ! nobody sends before all have looked
         do which = 1, 4
            call buffered(59 + which)
         end do
         is_done = .false.
         do while (.not. is_done)
            if (step == 1) then
               TRY(MPI_Testall)(4, requests, is_done, statuses IERROR)
            else
               TRY(MPI_Testall)(4, requests, is_done, MPI_STATUSES_IGNORE IERROR)
            end if
            call found(is_done)
         end do
         do which = 1, 4
            call accept_left(59 + which, room(:, which))
            status = ONE_OF(statuses, which)
            if (step == 1) call check_status(status, left, 59 + which, length)
         end do
      end do
   end subroutine tests

   subroutine probes()
      integer, asynchronous :: arriving(length)
      STATUS_T :: status
      MESSAGE_T :: message
      logical :: is_there
      call begin_subject()
      TRY(MPI_Iprobe)(MPI_ANY_SOURCE, 79, MPI_COMM_WORLD, is_there, status IERROR) ! never sent
      call found(is_there)
      TRY(MPI_Improbe)(left, 79, MPI_COMM_WORLD, is_there, message, MPI_STATUS_IGNORE IERROR)
      call found(is_there)
      call buffered(70)
      CALL(MPI_Probe)(left, 70, MPI_COMM_WORLD, MPI_STATUS_IGNORE IERROR)
      call take(70)
      call begin_subject()
      call buffered(71)
      CALL(MPI_Probe)(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status IERROR)
      call check_status(status, left, 71, length)
      call take(71)
      call begin_subject()
      call buffered(72)
      is_there = .false.
      do while (.not. is_there)
         TRY(MPI_Iprobe)(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, is_there, status IERROR)
         call found(is_there)
      end do
      call check_status(status, left, 72, length)
      call take(72)
      call begin_subject()
      call buffered(73)
      CALL(MPI_Mprobe)(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, message, status IERROR)
      call check_status(status, left, 73, length)
      CALL(MPI_Mrecv)(arriving, length, MPI_INTEGER, message, status IERROR)
      call check_status(status, left, 73, length)
      call accept_left(73, arriving)
      call begin_subject()
      call buffered(74)
      CALL(MPI_Mprobe)(MPI_ANY_SOURCE, 74, MPI_COMM_WORLD, message, MPI_STATUS_IGNORE IERROR)
      CALL(MPI_Imrecv)(arriving, length, MPI_INTEGER, message, request IERROR)
      CALL(MPI_Wait)(request, MPI_STATUS_IGNORE IERROR)
      call accept_left(74, arriving)
      call begin_subject()
      call buffered(75)
      is_there = .false.
      do while (.not. is_there)
         TRY(MPI_Improbe)(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, is_there, message, status IERROR)
         call found(is_there)
      end do
      call check_status(status, left, 75, length)
      CALL(MPI_Mrecv)(arriving, length, MPI_INTEGER, message, MPI_STATUS_IGNORE IERROR)
      call accept_left(75, arriving)
      call begin_subject()
      call buffered(76)
      is_there = .false.
      do while (.not. is_there)
         TRY(MPI_Improbe)(left, 76, MPI_COMM_WORLD, is_there, message, MPI_STATUS_IGNORE IERROR)
         call found(is_there)
      end do
      CALL(MPI_Imrecv)(arriving, length, MPI_INTEGER, message, request IERROR)
      CALL(MPI_Wait)(request, status IERROR)
      call check_status(status, left, 76, length)
      call accept_left(76, arriving)
      CALL(MPI_Mprobe)(MPI_PROC_NULL, 77, MPI_COMM_WORLD, message, status IERROR) ! MPI_MESSAGE_NO_PROC
      CALL(MPI_Mrecv)(arriving, length, MPI_INTEGER, message, status IERROR)
      call note_status('MPI_Mrecv', status)
   end subroutine probes

   ! Receives that no message will ever match.
   subroutine cancelled_receives()
      integer, asynchronous :: never(3)
      REQUEST_T :: requests(3)
      STATUS_T :: status
      logical :: is_cancelled
      call begin_subject()
      CALL(MPI_Irecv)(never(1), 1, MPI_INTEGER, left, 80, MPI_COMM_WORLD, requests(1) IERROR)
      CALL(MPI_Irecv)(never(2), 1, MPI_INTEGER, MPI_ANY_SOURCE, 81, MPI_COMM_WORLD, requests(2) IERROR)
      CALL(MPI_Recv_init)(never(3), 1, MPI_INTEGER, MPI_ANY_SOURCE, 82, MPI_COMM_WORLD, requests(3) IERROR)
      CALL(MPI_Start)(requests(3) IERROR)
      CALL(MPI_Cancel)(requests(1) IERROR)
      CALL(MPI_Wait)(requests(1), status IERROR)
      CALL(MPI_Test_cancelled)(status, is_cancelled IERROR)
      call expect('a cancelled receive', merge(1, 0, is_cancelled), 1)
      CALL(MPI_Cancel)(requests(2) IERROR)
      CALL(MPI_Wait)(requests(2), MPI_STATUS_IGNORE IERROR) ! only a status of one's own tells that it was cancelled
      CALL(MPI_Cancel)(requests(3) IERROR)
      CALL(MPI_Wait)(requests(3), status IERROR)
      CALL(MPI_Test_cancelled)(status, is_cancelled IERROR)
      call expect('a cancelled persistent receive', merge(1, 0, is_cancelled), 1)
      CALL(MPI_Request_free)(requests(3) IERROR)
   end subroutine cancelled_receives

   ! The message arrives all the same; the buffer is free again when the receiver has answered.
   subroutine freed_active_send()
      integer, asynchronous, save :: body(length)
      call begin_subject()
      call fill(body, 83)
      CALL(MPI_Isend)(body, length, MPI_INTEGER, right, 83, MPI_COMM_WORLD, request IERROR)
      call sent_right(83)
      CALL(MPI_Request_free)(request IERROR)
      call take(83)
      call begin_subject()
   end subroutine freed_active_send

   ! Requests outlive their communicator's handle.
   subroutine freed_communicator()
      integer, asynchronous :: body(length), arriving(length)
      COMM_T :: comm
      REQUEST_T :: requests(2)
      call begin_subject()
      CALL(MPI_Comm_dup)(MPI_COMM_WORLD, comm IERROR)
      call fill(body, 84)
      CALL(MPI_Irecv)(arriving, length, MPI_INTEGER, MPI_ANY_SOURCE, 84, comm, requests(1) IERROR)
      CALL(MPI_Isend)(body, length, MPI_INTEGER, right, 84, comm, requests(2) IERROR)
      call sent_right(84)
      CALL(MPI_Comm_free)(comm IERROR)
      CALL(MPI_Waitall)(2, requests, MPI_STATUSES_IGNORE IERROR)
      call accept_left(84, arriving)
   end subroutine freed_communicator

   ! To and from nobody: calls, but no messages.
   subroutine null_peers()
      integer, asynchronous :: body(length)
      REQUEST_T :: requests(6)
      STATUS_T :: status
      STATUSES_T(6) :: statuses
      call begin_subject()
      body = 0
      CALL(MPI_Send)(body, length, MPI_INTEGER, MPI_PROC_NULL, 90, MPI_COMM_WORLD IERROR)
      CALL(MPI_Ssend)(body, length, MPI_INTEGER, MPI_PROC_NULL, 90, MPI_COMM_WORLD IERROR)
      CALL(MPI_Bsend)(body, length, MPI_INTEGER, MPI_PROC_NULL, 90, MPI_COMM_WORLD IERROR)
      CALL(MPI_Rsend)(body, length, MPI_INTEGER, MPI_PROC_NULL, 90, MPI_COMM_WORLD IERROR)
      CALL(MPI_Recv)(body, length, MPI_INTEGER, MPI_PROC_NULL, 90, MPI_COMM_WORLD, status IERROR)
      call note_status('MPI_Recv', status)
      CALL(MPI_Recv)(body, length, MPI_INTEGER, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE IERROR)
      CALL(MPI_Sendrecv_replace)(body, length, MPI_INTEGER, MPI_PROC_NULL, 90, MPI_PROC_NULL, 90, MPI_COMM_WORLD, &
         status IERROR)
      call note_status('MPI_Sendrecv_replace', status)
      CALL(MPI_Isend)(body, length, MPI_INTEGER, MPI_PROC_NULL, 90, MPI_COMM_WORLD, requests(1) IERROR)
      CALL(MPI_Issend)(body, length, MPI_INTEGER, MPI_PROC_NULL, 90, MPI_COMM_WORLD, requests(2) IERROR)
      CALL(MPI_Ibsend)(body, length, MPI_INTEGER, MPI_PROC_NULL, 90, MPI_COMM_WORLD, requests(3) IERROR)
      CALL(MPI_Irsend)(body, length, MPI_INTEGER, MPI_PROC_NULL, 90, MPI_COMM_WORLD, requests(4) IERROR)
      CALL(MPI_Irecv)(body, length, MPI_INTEGER, MPI_PROC_NULL, 90, MPI_COMM_WORLD, requests(5) IERROR)
      CALL(MPI_Irecv)(body, length, MPI_INTEGER, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, requests(6) IERROR)
      CALL(MPI_Waitall)(6, requests, statuses IERROR)
      status = ONE_OF(statuses, 5)
      call note_status('MPI_Waitall', status)
   end subroutine null_peers

   subroutine to_oneself()
      integer, asynchronous :: body(length), arriving(length)
      call begin_subject()
      call fill(body, 91)
      CALL(MPI_Isend)(body, length, MPI_INTEGER, rank, 91, MPI_COMM_WORLD, request IERROR)
      call sent(MPI_COMM_WORLD, rank, 91, length, MPI_INTEGER)
      CALL(MPI_Recv)(arriving, length, MPI_INTEGER, rank, 91, MPI_COMM_WORLD, MPI_STATUS_IGNORE IERROR)
      call accept_message(MPI_COMM_WORLD, rank, 91, arriving)
      CALL(MPI_Wait)(request, MPI_STATUS_IGNORE IERROR)
      call fill(body, 92)
      CALL(MPI_Irecv)(arriving, length, MPI_INTEGER, MPI_ANY_SOURCE, 92, MPI_COMM_SELF, request IERROR)
      CALL(MPI_Send)(body, length, MPI_INTEGER, 0, 92, MPI_COMM_SELF IERROR)
      call sent(MPI_COMM_SELF, 0, 92, length, MPI_INTEGER)
      CALL(MPI_Wait)(request, MPI_STATUS_IGNORE IERROR)
      call accept_message(MPI_COMM_SELF, 0, 92, arriving)
   end subroutine to_oneself

   subroutine empty_messages()
      integer :: body(length)
      STATUS_T :: status
      call begin_subject()
      CALL(MPI_Bsend)(body, 0, MPI_INTEGER, right, 94, MPI_COMM_WORLD IERROR)
      call sent(MPI_COMM_WORLD, right, 94, 0, MPI_INTEGER)
      CALL(MPI_Recv)(body, length, MPI_INTEGER, left, 94, MPI_COMM_WORLD, status IERROR)
      call check_status(status, left, 94, 0)
      call accept_left(94, body(:0))
   end subroutine empty_messages

   ! Bytes of a message are those of its elements, not of the span that they cover in memory.
   subroutine derived_datatypes()
      integer, asynchronous :: body(wide), arriving(wide)
      integer :: part(12), blocks(3), places(3), number
      integer(MPI_ADDRESS_KIND) :: address(1)
      TYPE_T :: every_third, pieces, anywhere
      STATUS_T :: status
      call begin_subject()
      CALL(MPI_Type_vector)(5, 1, 3, MPI_INTEGER, every_third IERROR)
      CALL(MPI_Type_commit)(every_third IERROR)
      body = -1
      call fill(body(1:13:3), 100)
      CALL(MPI_Bsend)(body, 1, every_third, right, 100, MPI_COMM_WORLD IERROR)
      call sent(MPI_COMM_WORLD, right, 100, 1, every_third)
      CALL(MPI_Recv)(arriving, 5, MPI_INTEGER, left, 100, MPI_COMM_WORLD, MPI_STATUS_IGNORE IERROR)
      call accept_left(100, arriving(:5))
      ! two elements of the vector, whose extent is 13 integers
      call fill(part(:10), 101)
      body(1:13:3) = part(:5)
      body(14:26:3) = part(6:10)
      CALL(MPI_Bsend)(body, 2, every_third, right, 101, MPI_COMM_WORLD IERROR)
      call sent(MPI_COMM_WORLD, right, 101, 2, every_third)
      CALL(MPI_Recv)(arriving, 10, MPI_INTEGER, left, 101, MPI_COMM_WORLD, MPI_STATUS_IGNORE IERROR)
      call accept_left(101, arriving(:10))

      blocks = [1, 3, 2]
      places = [0, 4, 9]
      CALL(MPI_Type_indexed)(3, blocks, places, MPI_INTEGER, pieces IERROR)
      CALL(MPI_Type_commit)(pieces IERROR)
      call fill(part, 102)
      CALL(MPI_Bsend)(part, 12, MPI_INTEGER, right, 102, MPI_COMM_WORLD IERROR)
      call sent(MPI_COMM_WORLD, right, 102, 12, MPI_INTEGER)
      CALL(MPI_Recv)(arriving, 4, pieces, left, 102, MPI_COMM_WORLD, status IERROR) ! room for four, two arrive
      CALL(MPI_Get_count)(status, pieces, number IERROR)
      call expect('count of an indexed type', number, 2)
      part = arriving([1, 5, 6, 7, 10, 11, 12, 16, 17, 18, 21, 22])
      call accept_left(102, part)

      ! Absolute addresses from MPI_BOTTOM, which is an address in this program.
      call fill(body(:5), 103)
      CALL(MPI_Get_address)(body, address(1) IERROR)
      blocks(1) = 5
      CALL(MPI_Type_create_hindexed)(1, blocks, address, MPI_INTEGER, anywhere IERROR)
      CALL(MPI_Type_commit)(anywhere IERROR)
      CALL(MPI_Bsend)(MPI_BOTTOM, 1, anywhere, right, 103, MPI_COMM_WORLD IERROR)
      call sent(MPI_COMM_WORLD, right, 103, 1, anywhere)
      CALL(MPI_Recv)(arriving, 5, MPI_INTEGER, left, 103, MPI_COMM_WORLD, MPI_STATUS_IGNORE IERROR)
      call accept_left(103, arriving(:5))
      ! and a section of an array: the binding may copy it, or describe it to the library
      body = -1
      call fill(body(1:9:2), 104)
      CALL(MPI_Bsend)(body(1:9:2), 5, MPI_INTEGER, right, 104, MPI_COMM_WORLD IERROR)
      call sent(MPI_COMM_WORLD, right, 104, 5, MPI_INTEGER)
      CALL(MPI_Recv)(arriving, 5, MPI_INTEGER, left, 104, MPI_COMM_WORLD, MPI_STATUS_IGNORE IERROR)
      call accept_left(104, arriving(:5))
      CALL(MPI_Type_free)(every_third IERROR)
      CALL(MPI_Type_free)(pieces IERROR)
      CALL(MPI_Type_free)(anywhere IERROR)
   end subroutine derived_datatypes

   ! Even and odd ranks of the world. Ranks in such a communicator are those of the other group.
   subroutine intercommunicator()
      integer :: body(length), local_rank, remote_ranks, total, one
      integer, asynchronous :: arriving(length)
      COMM_T :: half, inter, merged
      call begin_subject()
      CALL(MPI_Comm_split)(MPI_COMM_WORLD, mod(rank, 2), rank, half IERROR)
      CALL(MPI_Intercomm_create)(half, 0, MPI_COMM_WORLD, 1 - mod(rank, 2), 120, inter IERROR)
      CALL(MPI_Comm_rank)(inter, local_rank IERROR)
      CALL(MPI_Comm_remote_size)(inter, remote_ranks IERROR)
      if (local_rank < remote_ranks) then
         call fill(body, 121)
         CALL(MPI_Bsend)(body, length, MPI_INTEGER, local_rank, 121, inter IERROR)
         call sent(inter, local_rank, 121, length, MPI_INTEGER)
         CALL(MPI_Recv)(arriving, length, MPI_INTEGER, local_rank, 121, inter, MPI_STATUS_IGNORE IERROR)
         call accept_message(inter, local_rank, 121, arriving)
         CALL(MPI_Irecv)(arriving, length, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, inter, request IERROR)
         call fill(body, 122)
         CALL(MPI_Send)(body, length, MPI_INTEGER, local_rank, 122, inter IERROR)
         call sent(inter, local_rank, 122, length, MPI_INTEGER)
         CALL(MPI_Wait)(request, MPI_STATUS_IGNORE IERROR)
         call accept_message(inter, local_rank, 122, arriving)
      end if
      one = 1
      ! Between two groups it counts as two.
      COLLECTIVE(MPI_Allreduce)(one, total, 1, MPI_INTEGER, MPI_SUM, inter IERROR)
      call count_collective('MPI_Allreduce')
      call expect('MPI_Allreduce over an inter-communicator', total, remote_ranks)
      CALL(MPI_Intercomm_merge)(inter, mod(rank, 2) == 1, merged IERROR)
      call ring_and_free(merged, 123)
      CALL(MPI_Comm_free)(inter IERROR)
      CALL(MPI_Comm_free)(half IERROR)
   end subroutine intercommunicator

   ! A message around the ranks of `comm`, whose order need not be that of the world; then `comm` is freed.
   subroutine ring_and_free(comm, tag)
      COMM_T, intent(inout) :: comm
      integer, intent(in) :: tag
      integer :: body(length), arriving(length), mine, all, total, one
      STATUS_T :: status
      if (NUMBER(comm) == NUMBER(MPI_COMM_NULL)) return
      CALL(MPI_Comm_rank)(comm, mine IERROR)
      CALL(MPI_Comm_size)(comm, all IERROR)
      call fill(body, tag)
      CALL(MPI_Sendrecv)(body, length, MPI_INTEGER, mod(mine + 1, all), tag, &
         arriving, length, MPI_INTEGER, MPI_ANY_SOURCE, tag, comm, status IERROR)
      call sent(comm, mod(mine + 1, all), tag, length, MPI_INTEGER)
      call check_status(status, mod(mine + all - 1, all), tag, length)
      call accept_message(comm, mod(mine + all - 1, all), tag, arriving)
      one = 1
      COLLECTIVE(MPI_Allreduce)(one, total, 1, MPI_INTEGER, MPI_SUM, comm IERROR)
      call expect('size of a communicator', total, all)
      CALL(MPI_Comm_free)(comm IERROR)
   end subroutine ring_and_free

   subroutine communicators()
      COMM_T :: comm
      GROUP_T :: world, some
      integer :: i, last(ranks - 1), places(ranks), edges(2*ranks), from(1), two(1), both(2), dims(1)
      logical :: periods(1)
      call begin_subject()
      CALL(MPI_Comm_dup)(MPI_COMM_WORLD, comm IERROR)
      CALL(MPI_Comm_set_name)(comm, 'duplicate of the world' IERROR)
      call ring_and_free(comm, 130)
      CALL(MPI_Comm_dup_with_info)(MPI_COMM_WORLD, MPI_INFO_NULL, comm IERROR)
      call ring_and_free(comm, 131)
      CALL(MPI_Comm_idup)(MPI_COMM_WORLD, comm, request IERROR)
      CALL(MPI_Wait)(request, MPI_STATUS_IGNORE IERROR)
      call ring_and_free(comm, 132)
      CALL(MPI_Comm_split)(MPI_COMM_WORLD, 0, -rank, comm IERROR) ! in reverse order
      call ring_and_free(comm, 133)
      CALL(MPI_Comm_split)(MPI_COMM_WORLD, merge(MPI_UNDEFINED, 1, rank == 0), rank, comm IERROR)
      call ring_and_free(comm, 134)
      CALL(MPI_Comm_split_type)(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, comm IERROR)
      call ring_and_free(comm, 135)
      last = [(ranks - i, i=1, ranks - 1)] ! all but rank 0, the last one first
      CALL(MPI_Comm_group)(MPI_COMM_WORLD, world IERROR)
      CALL(MPI_Group_incl)(world, ranks - 1, last, some IERROR)
      CALL(MPI_Comm_create)(MPI_COMM_WORLD, some, comm IERROR)
      call ring_and_free(comm, 136)
      if (rank /= 0) then
         CALL(MPI_Comm_create_group)(MPI_COMM_WORLD, some, 5, comm IERROR)
         call ring_and_free(comm, 137)
      end if
      CALL(MPI_Group_free)(some IERROR)
      CALL(MPI_Group_free)(world IERROR)
      dims = ranks
      periods = .true.
      CALL(MPI_Cart_create)(MPI_COMM_WORLD, 1, dims, periods, .true., comm IERROR)
      call ring_and_free(comm, 138)
      do i = 1, ranks
         places(i) = 2*i
         edges(2*i - 1) = mod(i, ranks)
         edges(2*i) = mod(i + ranks - 2, ranks)
      end do
      CALL(MPI_Graph_create)(MPI_COMM_WORLD, ranks, places, edges, .false., comm IERROR)
      call ring_and_free(comm, 139)
      from = rank
      two = 2
      both = [right, left]
      CALL(MPI_Dist_graph_create)(MPI_COMM_WORLD, 1, from, two, both, MPI_UNWEIGHTED, MPI_INFO_NULL, .false., comm IERROR)
      call ring_and_free(comm, 140)
      CALL(MPI_Dist_graph_create_adjacent)(MPI_COMM_WORLD, 2, both, MPI_UNWEIGHTED, 2, both, MPI_UNWEIGHTED, &
         MPI_INFO_NULL, .false., comm IERROR)
      call ring_and_free(comm, 141)
   end subroutine communicators

   ! Each rank gives one integer (or one for each rank): 100 * giver + receiver + 1, or + 0 if it is for all.
   subroutine collectives()
      integer, asynchronous :: give(ranks), got(ranks), own(1), one(1)
      integer :: for_all(ranks), for_me(ranks), ones(ranks), steps(ranks), bytes(ranks), i, total, below
      TYPE_T :: types(ranks)
      call begin_subject()
      ones = 1
      steps = [(i - 1, i=1, ranks)]
      bytes = steps*integer_bytes
      types = MPI_INTEGER
      own = 100*rank
      for_all = [(100*(i - 1), i=1, ranks)]
      for_me = for_all + rank + 1
      give = [(100*rank + i, i=1, ranks)]
      total = 100*ranks*(ranks - 1)/2
      below = 100*rank*(rank - 1)/2

      BEGIN(MPI_Ibarrier)(MPI_COMM_WORLD, request IERROR)
      call finish()
      one = rank
      COLLECTIVE(MPI_Bcast)(one, 1, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD IERROR)
      call expect('MPI_Bcast', one(1), ranks - 1)
      one = rank
      BEGIN(MPI_Ibcast)(one, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, request IERROR)
      call finish()
      call expect('MPI_Ibcast', one(1), 0)

      got = -1
      COLLECTIVE(MPI_Gather)(own, 1, MPI_INTEGER, got, 1, MPI_INTEGER, 0, MPI_COMM_WORLD IERROR)
      if (rank == 0) call expect_all('MPI_Gather', got, for_all)
      got = -1
      BEGIN(MPI_Igather)(own, 1, MPI_INTEGER, got, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, request IERROR)
      call finish()
      if (rank == 0) call expect_all('MPI_Igather', got, for_all)
      got = own(1)
      if (rank == 0) then
         COLLECTIVE(MPI_Gatherv)(MPI_IN_PLACE, 1, MPI_INTEGER, got, ones, steps, MPI_INTEGER, 0, MPI_COMM_WORLD IERROR)
         call expect_all('MPI_Gatherv', got, for_all)
      else
         COLLECTIVE(MPI_Gatherv)(own, 1, MPI_INTEGER, got, ones, steps, MPI_INTEGER, 0, MPI_COMM_WORLD IERROR)
      end if
      BEGIN(MPI_Igatherv)(own, 1, MPI_INTEGER, got, ones, steps, MPI_INTEGER, 0, MPI_COMM_WORLD, request IERROR)
      call finish()

      COLLECTIVE(MPI_Scatter)(give, 1, MPI_INTEGER, one, 1, MPI_INTEGER, 0, MPI_COMM_WORLD IERROR)
      call expect('MPI_Scatter', one(1), rank + 1)
      BEGIN(MPI_Iscatter)(give, 1, MPI_INTEGER, one, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, request IERROR)
      call finish()
      one = rank + 1
      if (rank == 0) then
         COLLECTIVE(MPI_Scatterv)(give, ones, steps, MPI_INTEGER, MPI_IN_PLACE, 1, MPI_INTEGER, 0, MPI_COMM_WORLD IERROR)
      else
         COLLECTIVE(MPI_Scatterv)(give, ones, steps, MPI_INTEGER, one, 1, MPI_INTEGER, 0, MPI_COMM_WORLD IERROR)
      end if
      call expect('MPI_Scatterv', one(1), rank + 1)
      BEGIN(MPI_Iscatterv)(give, ones, steps, MPI_INTEGER, one, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, request IERROR)
      call finish()
      call expect('MPI_Iscatterv', one(1), rank + 1)

      COLLECTIVE(MPI_Allgather)(own, 1, MPI_INTEGER, got, 1, MPI_INTEGER, MPI_COMM_WORLD IERROR)
      call expect_all('MPI_Allgather', got, for_all)
      got = own(1)
      COLLECTIVE(MPI_Allgather)(MPI_IN_PLACE, 1, MPI_INTEGER, got, 1, MPI_INTEGER, MPI_COMM_WORLD IERROR)
      call expect_all('MPI_Allgather in place', got, for_all)
      got = -1
      BEGIN(MPI_Iallgather)(own, 1, MPI_INTEGER, got, 1, MPI_INTEGER, MPI_COMM_WORLD, request IERROR)
      call finish()
      call expect_all('MPI_Iallgather', got, for_all)
      got = -1
      COLLECTIVE(MPI_Allgatherv)(own, 1, MPI_INTEGER, got, ones, steps, MPI_INTEGER, MPI_COMM_WORLD IERROR)
      call expect_all('MPI_Allgatherv', got, for_all)
      got = -1
      BEGIN(MPI_Iallgatherv)(own, 1, MPI_INTEGER, got, ones, steps, MPI_INTEGER, MPI_COMM_WORLD, request IERROR)
      call finish()
      call expect_all('MPI_Iallgatherv', got, for_all)

      COLLECTIVE(MPI_Alltoall)(give, 1, MPI_INTEGER, got, 1, MPI_INTEGER, MPI_COMM_WORLD IERROR)
      call expect_all('MPI_Alltoall', got, for_me)
      got = give
      COLLECTIVE(MPI_Alltoall)(MPI_IN_PLACE, 1, MPI_INTEGER, got, 1, MPI_INTEGER, MPI_COMM_WORLD IERROR)
      call expect_all('MPI_Alltoall in place', got, for_me)
      BEGIN(MPI_Ialltoall)(give, 1, MPI_INTEGER, got, 1, MPI_INTEGER, MPI_COMM_WORLD, request IERROR)
      call finish()
      got = -1
      COLLECTIVE(MPI_Alltoallv)(give, ones, steps, MPI_INTEGER, got, ones, steps, MPI_INTEGER, MPI_COMM_WORLD IERROR)
      call expect_all('MPI_Alltoallv', got, for_me)
      got = -1
      BEGIN(MPI_Ialltoallv)(give, ones, steps, MPI_INTEGER, got, ones, steps, MPI_INTEGER, MPI_COMM_WORLD, request IERROR)
      call finish()
      call expect_all('MPI_Ialltoallv', got, for_me)
      got = -1
      COLLECTIVE(MPI_Alltoallw)(give, ones, bytes, types, got, ones, bytes, types, MPI_COMM_WORLD IERROR)
      call expect_all('MPI_Alltoallw', got, for_me)
      got = -1
      BEGIN(MPI_Ialltoallw)(give, ones, bytes, types, got, ones, bytes, types, MPI_COMM_WORLD, request IERROR)
      call finish()
      call expect_all('MPI_Ialltoallw', got, for_me)

      COLLECTIVE(MPI_Reduce)(own, one, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD IERROR)
      if (rank == 0) call expect('MPI_Reduce', one(1), total)
      one = own
      if (rank == 0) then
         COLLECTIVE(MPI_Reduce)(MPI_IN_PLACE, one, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD IERROR)
         call expect('MPI_Reduce in place', one(1), total)
      else
         COLLECTIVE(MPI_Reduce)(own, one, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD IERROR)
      end if
      BEGIN(MPI_Ireduce)(own, one, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, request IERROR)
      call finish()
      if (rank == 0) call expect('MPI_Ireduce', one(1), total)
      COLLECTIVE(MPI_Allreduce)(own, one, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD IERROR)
      call expect('MPI_Allreduce', one(1), total)
      one = own
      COLLECTIVE(MPI_Allreduce)(MPI_IN_PLACE, one, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD IERROR)
      call expect('MPI_Allreduce in place', one(1), total)
      BEGIN(MPI_Iallreduce)(own, one, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, request IERROR)
      call finish()
      call expect('MPI_Iallreduce', one(1), 100*(ranks - 1))
      COLLECTIVE(MPI_Scan)(own, one, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD IERROR)
      call expect('MPI_Scan', one(1), below + own(1))
      BEGIN(MPI_Iscan)(own, one, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request IERROR)
      call finish()
      call expect('MPI_Iscan', one(1), below + own(1))
      one = 0 ! rank 0's result is undefined
      COLLECTIVE(MPI_Exscan)(own, one, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD IERROR)
      if (rank > 0) call expect('MPI_Exscan', one(1), below)
      BEGIN(MPI_Iexscan)(own, one, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request IERROR)
      call finish()
      if (rank > 0) call expect('MPI_Iexscan', one(1), below)
      COLLECTIVE(MPI_Reduce_scatter)(give, one, ones, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD IERROR)
      call expect('MPI_Reduce_scatter', one(1), total + ranks*(rank + 1))
      BEGIN(MPI_Ireduce_scatter)(give, one, ones, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request IERROR)
      call finish()
      COLLECTIVE(MPI_Reduce_scatter_block)(give, one, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD IERROR)
      call expect('MPI_Reduce_scatter_block', one(1), total + ranks*(rank + 1))
      BEGIN(MPI_Ireduce_scatter_block)(give, one, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request IERROR)
      call finish()
      call expect('MPI_Ireduce_scatter_block', one(1), total + ranks*(rank + 1))
#if defined(MPI_4) || defined(OPEN_MPI_4)
      ! as persistent operations; counted at every completion
#if defined(MPI_4)
      begun = 'MPI_Allreduce_init'
      CALL(MPI_Allreduce_init)(own, one, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, request IERROR)
#else
      begun = 'MPIX_Allreduce_init'
      CALL(MPIX_Allreduce_init)(own, one, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, request IERROR)
#endif
      do i = 1, 3
         one = -1
         CALL(MPI_Start)(request IERROR)
         call finish()
         call expect('MPI_Allreduce_init', one(1), total)
      end do
      CALL(MPI_Request_free)(request IERROR)
#if defined(MPI_4)
      begun = 'MPI_Barrier_init'
      CALL(MPI_Barrier_init)(MPI_COMM_WORLD, MPI_INFO_NULL, request IERROR)
#else
      begun = 'MPIX_Barrier_init'
      CALL(MPIX_Barrier_init)(MPI_COMM_WORLD, MPI_INFO_NULL, request IERROR)
#endif
      do i = 1, 2
         CALL(MPI_Start)(request IERROR)
         call finish()
      end do
      CALL(MPI_Request_free)(request IERROR)
#endif
   end subroutine collectives

   subroutine expect_all(what, got, wanted)
      character(*), intent(in) :: what
      integer, intent(in) :: got(:), wanted(:)
      integer :: i
      do i = 1, size(got)
         call expect(what, got(i), wanted(i))
      end do
   end subroutine expect_all

   ! An operation on neighbours is a message to each and one from each.
   subroutine met_neighbors(line, towards)
      COMM_T, intent(in) :: line
      integer, intent(in) :: towards(2)
      integer :: i
      do i = 1, 2
         if (towards(i) == MPI_PROC_NULL) cycle
         call sent(line, towards(i), 0, 1, MPI_INTEGER)
         call count_received_f(NUMBER(line), towards(i), 0, integer_bytes)
      end do
   end subroutine met_neighbors

   ! Along a line, whose ends have one neighbour only.
   subroutine neighborhoods()
      COMM_T :: line
      integer, asynchronous :: give(2), got(2)
      integer :: towards(2), gathered(2), exchanged(2), ones(2), steps(2), i, dims(1)
      integer(MPI_ADDRESS_KIND) :: bytes(2)
      TYPE_T :: types(2)
      logical :: periods(1)
      call begin_subject()
      dims = ranks
      periods = .false.
      CALL(MPI_Cart_create)(MPI_COMM_WORLD, 1, dims, periods, .false., line IERROR)
      CALL(MPI_Cart_shift)(line, 0, 1, towards(1), towards(2) IERROR)
      ones = 1
      steps = [0, 1]
      bytes = [0, integer_bytes]
      types = MPI_INTEGER
      give = [10*rank, 10*rank + 1] ! down, up
      do i = 1, 2
         gathered(i) = merge(-1, 10*towards(i), towards(i) == MPI_PROC_NULL)
         exchanged(i) = merge(-1, 10*towards(i) + 2 - i, towards(i) == MPI_PROC_NULL)
      end do
      got = -1
      COLLECTIVE(MPI_Neighbor_allgather)(give, 1, MPI_INTEGER, got, 1, MPI_INTEGER, line IERROR)
      call expect_all('MPI_Neighbor_allgather', got, gathered)
      call met_neighbors(line, towards)
      COLLECTIVE(MPI_Neighbor_allgatherv)(give, 1, MPI_INTEGER, got, ones, steps, MPI_INTEGER, line IERROR)
      call expect_all('MPI_Neighbor_allgatherv', got, gathered)
      call met_neighbors(line, towards)
      COLLECTIVE(MPI_Neighbor_alltoall)(give, 1, MPI_INTEGER, got, 1, MPI_INTEGER, line IERROR)
      call expect_all('MPI_Neighbor_alltoall', got, exchanged)
      call met_neighbors(line, towards)
      got = -1
      COLLECTIVE(MPI_Neighbor_alltoallv)(give, ones, steps, MPI_INTEGER, got, ones, steps, MPI_INTEGER, line IERROR)
      call expect_all('MPI_Neighbor_alltoallv', got, exchanged)
      call met_neighbors(line, towards)
      ! mpi_f08 of MPICH 4.0 takes every topology here for a distributed graph
#if !(defined(BINDING_F08) && defined(MPI_4))
      got = -1
      COLLECTIVE(MPI_Neighbor_alltoallw)(give, ones, bytes, types, got, ones, bytes, types, line IERROR)
      call expect_all('MPI_Neighbor_alltoallw', got, exchanged)
      call met_neighbors(line, towards)
#endif
      got = -1
      BEGIN(MPI_Ineighbor_allgather)(give, 1, MPI_INTEGER, got, 1, MPI_INTEGER, line, request IERROR)
      call finish()
      call expect_all('MPI_Ineighbor_allgather', got, gathered)
      call met_neighbors(line, towards)
      BEGIN(MPI_Ineighbor_allgatherv)(give, 1, MPI_INTEGER, got, ones, steps, MPI_INTEGER, line, request IERROR)
      call finish()
      call expect_all('MPI_Ineighbor_allgatherv', got, gathered)
      call met_neighbors(line, towards)
      BEGIN(MPI_Ineighbor_alltoall)(give, 1, MPI_INTEGER, got, 1, MPI_INTEGER, line, request IERROR)
      call finish()
      call expect_all('MPI_Ineighbor_alltoall', got, exchanged)
      call met_neighbors(line, towards)
      got = -1
      BEGIN(MPI_Ineighbor_alltoallv)(give, ones, steps, MPI_INTEGER, got, ones, steps, MPI_INTEGER, line, request IERROR)
      call finish()
      call expect_all('MPI_Ineighbor_alltoallv', got, exchanged)
      call met_neighbors(line, towards)
#if !(defined(BINDING_F08) && defined(MPI_4))
      got = -1
      BEGIN(MPI_Ineighbor_alltoallw)(give, ones, bytes, types, got, ones, bytes, types, line, request IERROR)
      call finish()
      call expect_all('MPI_Ineighbor_alltoallw', got, exchanged)
      call met_neighbors(line, towards)
#endif
      CALL(MPI_Comm_free)(line IERROR)
   end subroutine neighborhoods

   ! A collective, a barrier and a message are under way together, and are completed together.
   subroutine several_at_once()
      integer, asynchronous :: mine(1), total(1), body(length), arriving(length)
      REQUEST_T :: requests(4)
      call begin_subject()
      mine = rank
      call fill(body, 150)
      CALL(MPI_Iallreduce)(mine, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(1) IERROR)
      CALL(MPI_Irecv)(arriving, length, MPI_INTEGER, MPI_ANY_SOURCE, 150, MPI_COMM_WORLD, requests(2) IERROR)
      CALL(MPI_Ibarrier)(MPI_COMM_WORLD, requests(3) IERROR)
      CALL(MPI_Isend)(body, length, MPI_INTEGER, right, 150, MPI_COMM_WORLD, requests(4) IERROR)
      call sent_right(150)
      CALL(MPI_Waitall)(4, requests, MPI_STATUSES_IGNORE IERROR)
      call count_collective('MPI_Iallreduce')
      call count_collective('MPI_Ibarrier')
      call accept_left(150, arriving)
      call expect('sum of ranks', total(1), ranks*(ranks - 1)/2)
   end subroutine several_at_once

   subroutine one_sided()
      integer, asynchronous :: memory(8), out(2), seen(2)
      integer(MPI_ADDRESS_KIND) :: bytes, place
      WIN_T :: window
      GROUP_T :: world, origin, target
      REQUEST_T :: request
      call begin_subject()
      memory = 0
      out = [rank, -rank]
      bytes = size(memory)*integer_bytes
      COLLECTIVE(MPI_Win_create)(memory, bytes, integer_bytes, MPI_INFO_NULL, MPI_COMM_WORLD, window IERROR)
      COLLECTIVE(MPI_Win_fence)(MPI_MODE_NOPRECEDE, window IERROR)
      place = 0
      CALL(MPI_Put)(out, 2, MPI_INTEGER, right, place, 2, MPI_INTEGER, window IERROR)
      call rma('MPI_Put', right, 2)
      place = 2
      CALL(MPI_Accumulate)(out, 1, MPI_INTEGER, 0, place, 1, MPI_INTEGER, MPI_SUM, window IERROR)
      call rma('MPI_Accumulate', 0, 1)
      COLLECTIVE(MPI_Win_fence)(0, window IERROR)
      call expect('MPI_Put', memory(1), left)
      if (rank == 0) call expect('MPI_Accumulate', memory(3), ranks*(ranks - 1)/2)
      place = 0
      CALL(MPI_Get)(seen, 2, MPI_INTEGER, left, place, 2, MPI_INTEGER, window IERROR)
      call rma('MPI_Get', left, 2)
      COLLECTIVE(MPI_Win_fence)(MPI_MODE_NOSUCCEED, window IERROR)
      call expect('MPI_Get', seen(1), mod(left + ranks - 1, ranks))

      CALL(MPI_Win_lock)(MPI_LOCK_SHARED, 0, 0, window IERROR)
      place = 4
      out = 1
      CALL(MPI_Fetch_and_op)(out, seen, MPI_INTEGER, 0, place, MPI_SUM, window IERROR)
      call rma('MPI_Fetch_and_op', 0, 1)
      CALL(MPI_Win_flush)(0, window IERROR)
      call expect('MPI_Fetch_and_op', merge(1, 0, seen(1) >= 0 .and. seen(1) < ranks), 1)
      place = 5
      out = [rank + 1, 0]
      CALL(MPI_Compare_and_swap)(out(1), out(2), seen, MPI_INTEGER, 0, place, window IERROR)
      call rma('MPI_Compare_and_swap', 0, 1)
      CALL(MPI_Win_unlock)(0, window IERROR)
      out = merge(1, 0, seen(1) == 0)
      COLLECTIVE(MPI_Allreduce)(out, seen, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD IERROR)
      call expect('winners of MPI_Compare_and_swap', seen(1), 1)

      CALL(MPI_Comm_group)(MPI_COMM_WORLD, world IERROR)
      CALL(MPI_Group_incl)(world, 1, [left], origin IERROR)
      CALL(MPI_Group_incl)(world, 1, [right], target IERROR)
      CALL(MPI_Win_post)(origin, 0, window IERROR)
      CALL(MPI_Win_start)(target, 0, window IERROR)
      place = 6
      out = 1000 + rank
      CALL(MPI_Put)(out, 1, MPI_INTEGER, right, place, 1, MPI_INTEGER, window IERROR)
      call rma('MPI_Put', right, 1)
      CALL(MPI_Win_complete)(window IERROR)
      call sent(MPI_COMM_WORLD, right, 0, 0, MPI_INTEGER)
      CALL(MPI_Win_wait)(window IERROR)
      call accept_message(MPI_COMM_WORLD, left, 0, memory(1:0))
      call expect('MPI_Put after MPI_Win_start', memory(7), 1000 + left)
      CALL(MPI_Group_free)(target IERROR)
      CALL(MPI_Group_free)(origin IERROR)
      CALL(MPI_Group_free)(world IERROR)

      CALL(MPI_Win_lock_all)(0, window IERROR)
      CALL(MPI_Rget)(seen, 1, MPI_INTEGER, right, place, 1, MPI_INTEGER, window, request IERROR)
      call rma('MPI_Rget', right, 1)
      CALL(MPI_Wait)(request, MPI_STATUS_IGNORE IERROR)
      call expect('MPI_Rget', seen(1), 1000 + rank)
      place = 7
      CALL(MPI_Get_accumulate)(out, 1, MPI_INTEGER, seen, 1, MPI_INTEGER, right, place, 1, MPI_INTEGER, MPI_SUM, window IERROR)
      call rma('MPI_Get_accumulate', right, 1)
      CALL(MPI_Win_flush_all)(window IERROR)
      call expect('MPI_Get_accumulate', seen(1), 0)
      CALL(MPI_Win_unlock_all)(window IERROR)
      COLLECTIVE(MPI_Win_free)(window IERROR)
   end subroutine one_sided

   subroutine rma(name, target, number)
      character(*), intent(in) :: name
      integer, intent(in) :: target, number
      call count_rma_f(name, len(name), NUMBER(MPI_COMM_WORLD), target, number, NUMBER(MPI_INTEGER))
   end subroutine rma

   subroutine calls_of_mpi_4()
#if defined(MPI_4)
      integer, asynchronous :: body(length), arriving(length)
      call begin_subject()
      call fill(body, 170)
      CALL(MPI_Isendrecv)(body, length, MPI_INTEGER, right, 170, &
         arriving, length, MPI_INTEGER, left, 170, MPI_COMM_WORLD, request IERROR)
      call sent_right(170)
      CALL(MPI_Wait)(request, MPI_STATUS_IGNORE IERROR)
      call check_content(MPI_COMM_WORLD, left, 170, arriving)
      call count_received_combined_f(NUMBER(MPI_COMM_WORLD), left, 170, size(arriving)*integer_bytes)
#if defined(BINDING_F08)
      block
         ! a count of this kind selects the calls with large counts, which have names of their own in C only
         integer(MPI_COUNT_KIND), parameter :: many = length
         call fill(body, 160)
         call count('MPI_Irecv_c')
         call MPI_Irecv(arriving, many, MPI_INTEGER, left, 160, MPI_COMM_WORLD, request)
         call count('MPI_Send_c')
         call MPI_Send(body, many, MPI_INTEGER, right, 160, MPI_COMM_WORLD)
         call sent_right(160)
         CALL(MPI_Wait)(request, MPI_STATUS_IGNORE)
         call accept_left(160, arriving)
         call fill(body, 161)
         call count('MPI_Isend_c')
         call MPI_Isend(body, many, MPI_INTEGER, right, 161, MPI_COMM_WORLD, request)
         call sent_right(161)
         call count('MPI_Recv_c')
         call MPI_Recv(arriving, many, MPI_INTEGER, left, 161, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
         CALL(MPI_Wait)(request, MPI_STATUS_IGNORE)
         call accept_left(161, arriving)
         body(1) = rank
         call count('MPI_Allreduce_c')
         call count_collective('MPI_Allreduce_c')
         call MPI_Allreduce(body, arriving, 1_MPI_COUNT_KIND, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD)
         call expect('MPI_Allreduce_c', arriving(1), ranks - 1)
      end block
#endif
#endif
   end subroutine calls_of_mpi_4

   ! Last, because afterwards persistent collectives of MPICH 4.0 never end.
   subroutine persistent_null_peers()
      integer, asynchronous :: body(length)
      REQUEST_T :: requests(2)
      STATUS_T :: status
      STATUSES_T(2) :: statuses
      integer :: i
      call begin_subject()
      body = 0
      CALL(MPI_Send_init)(body, length, MPI_INTEGER, MPI_PROC_NULL, 90, MPI_COMM_WORLD, requests(1) IERROR)
      CALL(MPI_Recv_init)(body, length, MPI_INTEGER, MPI_PROC_NULL, 90, MPI_COMM_WORLD, requests(2) IERROR)
      do i = 1, 2
         CALL(MPI_Startall)(2, requests IERROR)
         CALL(MPI_Waitall)(2, requests, statuses IERROR)
         status = ONE_OF(statuses, 2)
         call note_status('MPI_Waitall', status)
      end do
      do i = 1, 2
         CALL(MPI_Request_free)(requests(i) IERROR)
      end do
   end subroutine persistent_null_peers
end module parts

program messages
   use, intrinsic :: iso_c_binding, only: c_ptr
   use parts
   implicit none
   character(65536), save :: buffer ! of buffered sends
   integer :: bytes, failed
#if defined(BINDING_F08)
   type(c_ptr) :: attached
#else
   integer(MPI_ADDRESS_KIND) :: attached
#endif
   CALL(MPI_Init)(ierror)
   CALL(MPI_Comm_rank)(MPI_COMM_WORLD, rank IERROR)
   CALL(MPI_Comm_size)(MPI_COMM_WORLD, ranks IERROR)
   if (ranks < 2) then
      call expect('number of ranks', ranks, 2)
      call MPI_Abort(MPI_COMM_WORLD, 2, ierror)
   end if
   right = mod(rank + 1, ranks)
   left = mod(rank + ranks - 1, ranks)
   CALL(MPI_Buffer_attach)(buffer, len(buffer) IERROR)
   call blocking_modes()
   call receives()
   call non_blocking_modes()
   call send_and_receive()
   call persistent()
   call one_of_several()
   call some_of_several()
   call tests()
   call probes()
   call cancelled_receives()
   call freed_active_send()
   call freed_communicator()
   call null_peers()
   call to_oneself()
   call empty_messages()
   call derived_datatypes()
   call intercommunicator()
   call communicators()
   call calls_of_mpi_4()
   call collectives()
   call several_at_once()
   call neighborhoods()
   call one_sided()
   call persistent_null_peers()
   CALL(MPI_Buffer_detach)(attached, bytes IERROR)
   call expect('bytes of the detached buffer', bytes, len(buffer))
   call count('MPI_Finalize')
   failed = counts_write_f('MESSAGES_OUT', len('MESSAGES_OUT'))
   call MPI_Finalize(ierror)
   if (failed /= 0) stop 1
end program messages
