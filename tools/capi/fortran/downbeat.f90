! libdownbeat for Fortran 2008: clocks of one process. MPI programs use the module downbeat_mpi, which has all of this one.
!
! A call that fails returns its code in `status`; without that argument it stops the program with the reason.
module downbeat
   use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_double, c_f_pointer, c_int, c_int32_t, c_int64_t, c_loc, &
                                           c_null_char, c_null_ptr, c_ptr, c_size_t
   use, intrinsic :: iso_fortran_env, only: error_unit, output_unit
   implicit none
   private

   public :: downbeat_clock_open, downbeat_clock_close, downbeat_now, downbeat_now_with_error
   public :: downbeat_now_with_bounds
   public :: downbeat_ticks, downbeat_past
   public :: downbeat_wait_until, downbeat_wtime, downbeat_message
   public :: downbeat_get_timer, downbeat_start_timer, downbeat_stop_timer, downbeat_report_timers
   ! For the module downbeat_mpi.
   public :: downbeat_conclude, downbeat_c_text, downbeat_write_text

   ! A clock: local, or global after a synchronization.
   type, public :: downbeat_clock
      type(c_ptr) :: handle = c_null_ptr
   end type downbeat_clock

   ! A timer of the regions with one name.
   type, public :: downbeat_timer
      type(c_ptr) :: handle = c_null_ptr
   end type downbeat_timer

   integer(c_int), parameter, public :: DOWNBEAT_OK = 0
   integer(c_int), parameter, public :: DOWNBEAT_ERROR_NULL = 1
   integer(c_int), parameter, public :: DOWNBEAT_ERROR_HANDLE = 2
   integer(c_int), parameter, public :: DOWNBEAT_ERROR_ARGUMENT = 3
   integer(c_int), parameter, public :: DOWNBEAT_ERROR_UNAVAILABLE = 4
   integer(c_int), parameter, public :: DOWNBEAT_ERROR_NOT_SYNCHRONIZED = 5
   integer(c_int), parameter, public :: DOWNBEAT_ERROR_MPI = 6
   integer(c_int), parameter, public :: DOWNBEAT_ERROR_RANKS = 7
   integer(c_int), parameter, public :: DOWNBEAT_ERROR_VERSION = 8
   integer(c_int), parameter, public :: DOWNBEAT_ERROR_STATE = 9
   integer(c_int), parameter, public :: DOWNBEAT_ERROR_INTERNAL = 10

   ! Version of the interface that this module was written for.
   integer(c_int32_t), parameter, public :: DOWNBEAT_ABI = 65536

   interface
      ! Reads the clock that was synchronized last, in seconds since the first synchronization: a replacement of MPI_Wtime.
      function downbeat_wtime() result(seconds) bind(c, name="downbeat_wtime")
         import :: c_double
         real(c_double) :: seconds
      end function downbeat_wtime

      function c_open(name, clock, header) result(status) bind(c, name="downbeat_clock_open_abi")
         import :: c_char, c_int, c_int32_t, c_ptr
         character(kind=c_char), intent(in) :: name(*)
         type(c_ptr), intent(out) :: clock
         integer(c_int32_t), value :: header
         integer(c_int) :: status
      end function c_open

      function c_close(clock) result(status) bind(c, name="downbeat_clock_close")
         import :: c_int, c_ptr
         type(c_ptr), value :: clock
         integer(c_int) :: status
      end function c_close

      function c_now(clock, nanos) result(status) bind(c, name="downbeat_clock_now")
         import :: c_int, c_int64_t, c_ptr
         type(c_ptr), value :: clock
         integer(c_int64_t), intent(inout) :: nanos
         integer(c_int) :: status
      end function c_now

      function c_now_with_error(clock, nanos, error) result(status) bind(c, name="downbeat_clock_now_with_error")
         import :: c_int, c_int64_t, c_ptr
         type(c_ptr), value :: clock
         integer(c_int64_t), intent(inout) :: nanos, error
         integer(c_int) :: status
      end function c_now_with_error

      function c_now_with_bounds(clock, earliest, latest) result(status) bind(c, name="downbeat_clock_now_with_bounds")
         import :: c_int, c_int64_t, c_ptr
         type(c_ptr), value :: clock
         integer(c_int64_t), intent(inout) :: earliest, latest
         integer(c_int) :: status
      end function c_now_with_bounds

      function c_wait_until(clock, nanos, reached) result(status) bind(c, name="downbeat_clock_wait_until")
         import :: c_int, c_int64_t, c_ptr
         type(c_ptr), value :: clock
         integer(c_int64_t), value :: nanos
         integer(c_int64_t), intent(inout) :: reached
         integer(c_int) :: status
      end function c_wait_until

      function c_ticks(clock, ticks) result(status) bind(c, name="downbeat_clock_ticks")
         import :: c_int, c_int64_t, c_ptr
         type(c_ptr), value :: clock
         integer(c_int64_t), intent(inout) :: ticks
         integer(c_int) :: status
      end function c_ticks

      function c_past(clock, ticks, nanos) result(status) bind(c, name="downbeat_clock_past")
         import :: c_int, c_int64_t, c_ptr
         type(c_ptr), value :: clock
         integer(c_int64_t), value :: ticks
         integer(c_int64_t), intent(inout) :: nanos
         integer(c_int) :: status
      end function c_past

      function c_get_timer(name, length, timer, header) result(status) bind(c, name="downbeat_get_timer_f")
         import :: c_char, c_int, c_int32_t, c_ptr, c_size_t
         character(kind=c_char), intent(in) :: name(*)
         integer(c_size_t), value :: length
         type(c_ptr), intent(inout) :: timer
         integer(c_int32_t), value :: header
         integer(c_int) :: status
      end function c_get_timer

      function c_start_timer(timer) result(status) bind(c, name="downbeat_start_timer")
         import :: c_int, c_ptr
         type(c_ptr), value :: timer
         integer(c_int) :: status
      end function c_start_timer

      function c_stop_timer(timer) result(status) bind(c, name="downbeat_stop_timer")
         import :: c_int, c_ptr
         type(c_ptr), value :: timer
         integer(c_int) :: status
      end function c_stop_timer

      function c_report_timers(report) result(status) bind(c, name="downbeat_report_timers")
         import :: c_int, c_ptr
         type(c_ptr), intent(out) :: report
         integer(c_int) :: status
      end function c_report_timers

      function c_free_text(text) result(status) bind(c, name="downbeat_free_text")
         import :: c_int, c_ptr
         type(c_ptr), value :: text
         integer(c_int) :: status
      end function c_free_text

      function c_message() result(text) bind(c, name="downbeat_error_message")
         import :: c_ptr
         type(c_ptr) :: text
      end function c_message

      function c_length(text) result(length) bind(c, name="strlen")
         import :: c_ptr, c_size_t
         type(c_ptr), value :: text
         integer(c_size_t) :: length
      end function c_length
   end interface

contains

   ! Opens a clock of this process, by its name, as "tsc"; the recommended one by default.
   subroutine downbeat_clock_open(clock, name, status)
      type(downbeat_clock), intent(out) :: clock
      character(*), intent(in), optional :: name
      integer, intent(out), optional :: status
      if (present(name)) then
         call downbeat_conclude(c_open(downbeat_c_text(name), clock%handle, DOWNBEAT_ABI), status)
      else
         call downbeat_conclude(c_open(downbeat_c_text("recommended"), clock%handle, DOWNBEAT_ABI), status)
      end if
   end subroutine downbeat_clock_open

   ! Closes a clock.
   subroutine downbeat_clock_close(clock, status)
      type(downbeat_clock), intent(in) :: clock
      integer, intent(out), optional :: status
      call downbeat_conclude(c_close(clock%handle), status)
   end subroutine downbeat_clock_close

   ! Reads a clock, in nanoseconds; -huge(nanos) - 1 if it is not open.
   function downbeat_now(clock) result(nanos)
      type(downbeat_clock), intent(in) :: clock
      integer(c_int64_t) :: nanos
      if (c_now(clock%handle, nanos) /= DOWNBEAT_OK) nanos = -huge(nanos) - 1
   end function downbeat_now

   ! Reads a clock, and the largest error of its time relative to that of rank 0, in nanoseconds.
   subroutine downbeat_now_with_error(clock, nanos, error, status)
      type(downbeat_clock), intent(in) :: clock
      integer(c_int64_t), intent(out) :: nanos, error
      integer, intent(out), optional :: status
      nanos = 0
      error = huge(error)
      call downbeat_conclude(c_now_with_error(clock%handle, nanos, error), status)
   end subroutine downbeat_now_with_error

   ! Reads the earliest and the latest time that rank 0 can show now, in nanoseconds.
   subroutine downbeat_now_with_bounds(clock, earliest, latest, status)
      type(downbeat_clock), intent(in) :: clock
      integer(c_int64_t), intent(out) :: earliest, latest
      integer, intent(out), optional :: status
      earliest = -huge(earliest)
      latest = huge(latest)
      call downbeat_conclude(c_now_with_bounds(clock%handle, earliest, latest), status)
   end subroutine downbeat_now_with_bounds

   ! Reads the counter of a clock, for downbeat_past; 0 if the clock is not open.
   function downbeat_ticks(clock) result(ticks)
      type(downbeat_clock), intent(in) :: clock
      integer(c_int64_t) :: ticks
      if (c_ticks(clock%handle, ticks) /= DOWNBEAT_OK) ticks = 0
   end function downbeat_ticks

   ! Converts a reading of the counter to nanoseconds, through the sessions of downbeat_timesync; -huge(nanos) - 1 if the clock is not
   ! open.
   function downbeat_past(clock, ticks) result(nanos)
      type(downbeat_clock), intent(in) :: clock
      integer(c_int64_t), intent(in) :: ticks
      integer(c_int64_t) :: nanos
      if (c_past(clock%handle, ticks, nanos) /= DOWNBEAT_OK) nanos = -huge(nanos) - 1
   end function downbeat_past

   ! Spins until the clock shows a time, in nanoseconds, and returns the time that it shows then.
   subroutine downbeat_wait_until(clock, nanos, reached, status)
      type(downbeat_clock), intent(in) :: clock
      integer(c_int64_t), intent(in) :: nanos
      integer(c_int64_t), intent(out), optional :: reached
      integer, intent(out), optional :: status
      integer(c_int64_t) :: shown
      shown = nanos
      call downbeat_conclude(c_wait_until(clock%handle, nanos, shown), status)
      if (present(reached)) reached = shown
   end subroutine downbeat_wait_until

   ! Finds the timer with a name, or creates it. Save it: where it is that timer already, this costs little; other calls take a lock.
   subroutine downbeat_get_timer(timer, name, status)
      type(downbeat_timer), intent(inout) :: timer
      character(*), intent(in) :: name
      integer, intent(out), optional :: status
      call downbeat_conclude(c_get_timer(name, len_trim(name, c_size_t), timer%handle, DOWNBEAT_ABI), status)
   end subroutine downbeat_get_timer

   ! Begins an event of this thread.
   subroutine downbeat_start_timer(timer, status)
      type(downbeat_timer), intent(in) :: timer
      integer, intent(out), optional :: status
      call downbeat_conclude(c_start_timer(timer%handle), status)
   end subroutine downbeat_start_timer

   ! Ends the event of this thread.
   subroutine downbeat_stop_timer(timer, status)
      type(downbeat_timer), intent(in) :: timer
      integer, intent(out), optional :: status
      call downbeat_conclude(c_stop_timer(timer%handle), status)
   end subroutine downbeat_stop_timer

   ! Writes a report of all timers of this process to a unit, the standard output by default.
   subroutine downbeat_report_timers(unit, status)
      integer, intent(in), optional :: unit
      integer, intent(out), optional :: status
      type(c_ptr) :: report
      integer(c_int) :: code
      code = c_report_timers(report)
      if (code == DOWNBEAT_OK) call downbeat_write_text(report, unit)
      call downbeat_conclude(code, status)
   end subroutine downbeat_report_timers

   ! Writes a text of the library to a unit, the standard output by default, and frees it; nothing if there is none.
   subroutine downbeat_write_text(text, unit)
      type(c_ptr), intent(in) :: text
      integer, intent(in), optional :: unit
      character(kind=c_char), pointer :: letters(:)
      integer(c_size_t) :: begin, end, length
      integer(c_int) :: code
      integer :: to
      if (.not. c_associated(text)) return
      to = output_unit
      if (present(unit)) to = unit
      length = c_length(text)
      call c_f_pointer(text, letters, [length])
      begin = 1
      do end = 1, length
         if (letters(end) /= new_line('a') .and. end < length) cycle
         if (letters(end) == new_line('a')) then
            write (to, '(*(a))') letters(begin:end - 1)
         else
            write (to, '(*(a))') letters(begin:end)
         end if
         begin = end + 1
      end do
      code = c_free_text(text)
   end subroutine downbeat_write_text

   ! Returns the reason of the last failure in this thread.
   function downbeat_message() result(message)
      character(:), allocatable :: message
      character(kind=c_char), pointer :: letters(:)
      type(c_ptr) :: text
      integer(c_size_t) :: i
      text = c_message()
      call c_f_pointer(text, letters, [c_length(text)])
      allocate (character(size(letters)) :: message)
      do i = 1, size(letters, kind=c_size_t)
         message(i:i) = letters(i)
      end do
   end function downbeat_message

   ! Returns the code of a call, or stops the program if nobody asks for it.
   subroutine downbeat_conclude(code, status)
      integer(c_int), intent(in) :: code
      integer, intent(out), optional :: status
      if (present(status)) then
         status = code
      else if (code /= DOWNBEAT_OK) then
         write (error_unit, '(2a)') 'downbeat: ', downbeat_message()
         error stop 1
      end if
   end subroutine downbeat_conclude

   ! Returns a text as C has it, without blanks at its end.
   function downbeat_c_text(text) result(letters)
      character(*), intent(in) :: text
      character(kind=c_char) :: letters(len_trim(text) + 1)
      integer :: i
      do i = 1, len_trim(text)
         letters(i) = text(i:i)
      end do
      letters(size(letters)) = c_null_char
   end function downbeat_c_text
end module downbeat
