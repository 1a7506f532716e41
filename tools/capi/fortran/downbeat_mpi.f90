! libdownbeat for MPI programs in Fortran 2008. Communicators are integers, as with mpif.h and the module mpi, or of the type MPI_Comm
! of the module mpi_f08.
module downbeat_mpi
   use, intrinsic :: iso_c_binding, only: c_char, c_int, c_int32_t, c_ptr
   use mpi_f08, only: MPI_Comm
   use downbeat
   implicit none
   private :: c_char, c_int, c_int32_t, c_ptr, MPI_Comm
   private :: c_synchronize, c_resynchronize, c_timesync
   private :: c_report_timers_over, timesync_integer, timesync_f08, report_timers_integer, report_timers_f08
   private :: synchronize_integer, synchronize_f08, resynchronize_integer, resynchronize_f08

   ! Synchronizes the clocks of all ranks of a communicator, which all call this with the same label: call
   ! downbeat_synchronize(comm, clock [, label] [, status]).
   interface downbeat_synchronize
      module procedure synchronize_integer, synchronize_f08
   end interface downbeat_synchronize

   ! Synchronizes a clock again: call downbeat_resynchronize(clock, comm [, status]).
   interface downbeat_resynchronize
      module procedure resynchronize_integer, resynchronize_f08
   end interface downbeat_resynchronize

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
