! libdownbeat for MPI programs in Fortran 2008. Communicators are integers, as with mpif.h and the module mpi, or of the type MPI_Comm
! of the module mpi_f08.
module downbeat_mpi
   use, intrinsic :: iso_c_binding, only: c_char, c_int, c_int32_t, c_int64_t, c_null_ptr, c_ptr
   use, intrinsic :: iso_fortran_env, only: int64
   use mpi_f08, only: MPI_Comm
   use downbeat
   implicit none
   private :: c_char, c_int, c_int32_t, c_int64_t, c_null_ptr, c_ptr, int64, MPI_Comm
   private :: c_synchronize, c_resynchronize, c_timesync
   private :: c_report_timers_over, timesync_integer, timesync_f08, report_timers_integer, report_timers_f08
   private :: synchronize_integer, synchronize_f08, resynchronize_integer, resynchronize_f08
   private :: c_team_open, c_keep, c_harmonize, c_team_close, team_open_integer, team_open_f08

   ! The ranks of a communicator that share a clock.
   type :: downbeat_team
      type(c_ptr) :: handle = c_null_ptr
   end type downbeat_team

   ! Synchronizes the clocks of all ranks of a communicator, which all call this with the same label: call
   ! downbeat_synchronize(comm, clock [, label] [, status]).
   interface downbeat_synchronize
      module procedure synchronize_integer, synchronize_f08
   end interface downbeat_synchronize

   ! Synchronizes a clock again: call downbeat_resynchronize(clock, comm [, status]).
   interface downbeat_resynchronize
      module procedure resynchronize_integer, resynchronize_f08
   end interface downbeat_resynchronize

   ! Opens a team of the ranks of a communicator, which all call this: call downbeat_team_open(clock, comm, team [, status]).
   interface downbeat_team_open
      module procedure team_open_integer, team_open_f08
   end interface downbeat_team_open

   ! Compares the clocks of all ranks, any number of times, so that downbeat_past knows better what the clock showed: call
   ! downbeat_timesync(comm [, status]).
   interface downbeat_timesync
      module procedure timesync_integer, timesync_f08
   end interface downbeat_timesync

   ! Merges the timers of all ranks, and writes a report of them to a unit of rank 0, the standard output by default: call
   ! downbeat_report_timers_over(comm [, unit] [, status]).
   interface downbeat_report_timers_over
      module procedure report_timers_integer, report_timers_f08
   end interface downbeat_report_timers_over

   interface
      function c_report_timers_over(comm, report) result(status) bind(c, name="downbeat_report_timers_over_f")
         import :: c_int, c_ptr
         integer(c_int), value :: comm
         type(c_ptr), intent(out) :: report
         integer(c_int) :: status
      end function c_report_timers_over

      function c_timesync(comm) result(status) bind(c, name="downbeat_timesync_f")
         import :: c_int
         integer(c_int), value :: comm
         integer(c_int) :: status
      end function c_timesync

      function c_synchronize(comm, label, clock, header) result(status) bind(c, name="downbeat_synchronize_f")
         import :: c_char, c_int, c_int32_t, c_ptr
         integer(c_int), value :: comm
         character(kind=c_char), intent(in) :: label(*)
         type(c_ptr), intent(out) :: clock
         integer(c_int32_t), value :: header
         integer(c_int) :: status
      end function c_synchronize

      function c_team_open(clock, comm, team) result(status) bind(c, name="downbeat_team_open_f")
         import :: c_int, c_ptr
         type(c_ptr), value :: clock
         integer(c_int), value :: comm
         type(c_ptr), intent(out) :: team
         integer(c_int) :: status
      end function c_team_open

      function c_keep(team, period, kept) result(status) bind(c, name="downbeat_keep")
         import :: c_int, c_int64_t, c_ptr
         type(c_ptr), value :: team
         integer(c_int64_t), value :: period
         integer(c_int), intent(inout) :: kept
         integer(c_int) :: status
      end function c_keep

      function c_harmonize(team, max_error, missed_by) result(status) bind(c, name="downbeat_harmonize")
         import :: c_int, c_int64_t, c_ptr
         type(c_ptr), value :: team
         integer(c_int64_t), value :: max_error
         integer(c_int64_t), intent(inout) :: missed_by
         integer(c_int) :: status
      end function c_harmonize

      function c_team_close(team) result(status) bind(c, name="downbeat_team_close")
         import :: c_int, c_ptr
         type(c_ptr), value :: team
         integer(c_int) :: status
      end function c_team_close

      function c_resynchronize(clock, comm) result(status) bind(c, name="downbeat_resynchronize_f")
         import :: c_int, c_ptr
         type(c_ptr), value :: clock
         integer(c_int), value :: comm
         integer(c_int) :: status
      end function c_resynchronize
   end interface

contains

   subroutine synchronize_integer(comm, clock, label, status)
      integer, intent(in) :: comm
      type(downbeat_clock), intent(out) :: clock
      character(*), intent(in), optional :: label
      integer, intent(out), optional :: status
      ! An empty label is none.
      if (present(label)) then
         call downbeat_conclude(c_synchronize(int(comm, c_int), downbeat_c_text(label), clock%handle, DOWNBEAT_ABI), status)
      else
         call downbeat_conclude(c_synchronize(int(comm, c_int), downbeat_c_text(""), clock%handle, DOWNBEAT_ABI), status)
      end if
   end subroutine synchronize_integer

   subroutine synchronize_f08(comm, clock, label, status)
      type(MPI_Comm), intent(in) :: comm
      type(downbeat_clock), intent(out) :: clock
      character(*), intent(in), optional :: label
      integer, intent(out), optional :: status
      call synchronize_integer(comm%mpi_val, clock, label, status)
   end subroutine synchronize_f08

   subroutine resynchronize_integer(clock, comm, status)
      type(downbeat_clock), intent(in) :: clock
      integer, intent(in) :: comm
      integer, intent(out), optional :: status
      call downbeat_conclude(c_resynchronize(clock%handle, int(comm, c_int)), status)
   end subroutine resynchronize_integer

   subroutine resynchronize_f08(clock, comm, status)
      type(downbeat_clock), intent(in) :: clock
      type(MPI_Comm), intent(in) :: comm
      integer, intent(out), optional :: status
      call resynchronize_integer(clock, comm%mpi_val, status)
   end subroutine resynchronize_f08

   subroutine team_open_integer(clock, comm, team, status)
      type(downbeat_clock), intent(in) :: clock
      integer, intent(in) :: comm
      type(downbeat_team), intent(out) :: team
      integer, intent(out), optional :: status
      call downbeat_conclude(c_team_open(clock%handle, int(comm, c_int), team%handle), status)
   end subroutine team_open_integer

   subroutine team_open_f08(clock, comm, team, status)
      type(downbeat_clock), intent(in) :: clock
      type(MPI_Comm), intent(in) :: comm
      type(downbeat_team), intent(out) :: team
      integer, intent(out), optional :: status
      call team_open_integer(clock, comm%mpi_val, team, status)
   end subroutine team_open_f08

   ! Keeps the clock of a team, whose ranks all call this: makes a session if a number of nanoseconds has passed since the last one, or now if
   ! that is 0. kept is true if there was one.
   subroutine downbeat_keep(team, period, kept, status)
      type(downbeat_team), intent(in) :: team
      integer(int64), intent(in) :: period
      logical, intent(out), optional :: kept
      integer, intent(out), optional :: status
      integer(c_int) :: code, session
      session = 0
      code = c_keep(team%handle, int(period, c_int64_t), session)
      if (present(kept)) kept = session /= 0
      call downbeat_conclude(code, status)
   end subroutine downbeat_keep

   ! Returns at one instant on all ranks of a team, which all call this; missed_by is the number of nanoseconds by which this rank missed it, 0 if
   ! it did not. The clock is synchronized again where it may be off by more than max_error nanoseconds.
   subroutine downbeat_harmonize(team, max_error, missed_by, status)
      type(downbeat_team), intent(in) :: team
      integer(int64), intent(in) :: max_error
      integer(int64), intent(out), optional :: missed_by
      integer, intent(out), optional :: status
      integer(c_int) :: code
      integer(c_int64_t) :: missed
      missed = 0
      code = c_harmonize(team%handle, int(max_error, c_int64_t), missed)
      if (present(missed_by)) missed_by = int(missed, int64)
      call downbeat_conclude(code, status)
   end subroutine downbeat_harmonize

   ! Closes a team, which all its ranks do, before its clock.
   subroutine downbeat_team_close(team, status)
      type(downbeat_team), intent(in) :: team
      integer, intent(out), optional :: status
      call downbeat_conclude(c_team_close(team%handle), status)
   end subroutine downbeat_team_close

   subroutine timesync_integer(comm, status)
      integer, intent(in) :: comm
      integer, intent(out), optional :: status
      call downbeat_conclude(c_timesync(int(comm, c_int)), status)
   end subroutine timesync_integer

   subroutine timesync_f08(comm, status)
      type(MPI_Comm), intent(in) :: comm
      integer, intent(out), optional :: status
      call timesync_integer(comm%mpi_val, status)
   end subroutine timesync_f08

   subroutine report_timers_integer(comm, unit, status)
      integer, intent(in) :: comm
      integer, intent(in), optional :: unit
      integer, intent(out), optional :: status
      type(c_ptr) :: report
      integer(c_int) :: code
      code = c_report_timers_over(int(comm, c_int), report)
      if (code == DOWNBEAT_OK) call downbeat_write_text(report, unit)
      call downbeat_conclude(code, status)
   end subroutine report_timers_integer

   subroutine report_timers_f08(comm, unit, status)
      type(MPI_Comm), intent(in) :: comm
      integer, intent(in), optional :: unit
      integer, intent(out), optional :: status
      call report_timers_integer(comm%mpi_val, unit, status)
   end subroutine report_timers_f08
end module downbeat_mpi
