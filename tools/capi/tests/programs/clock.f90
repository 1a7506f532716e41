! A local clock, and its wrong uses.
program clock_of_a_process
   use, intrinsic :: iso_fortran_env, only: int64
   use downbeat
   implicit none
   type(downbeat_clock) :: clock, none
   integer(int64) :: start, reached, error
   type(downbeat_timer) :: timer
   character(80) :: line
   integer :: status, unit

   call downbeat_clock_open(clock)
   start = downbeat_now(clock)
   call downbeat_wait_until(clock, start + 200000_int64, reached)
   call check(reached >= start + 200000, "the clock waits")
   call downbeat_now_with_error(clock, start, error)
   call check(start >= reached .and. error == 0, "a local clock is exact")
   call downbeat_now_with_bounds(clock, reached, error)
   call check(reached > start .and. error >= reached .and. error - reached < 10, "its bounds are narrow")
   call downbeat_clock_close(clock)
   call check(downbeat_now(clock) < 0, "a closed clock shows nothing")
   call downbeat_clock_close(clock, status)
   call check(status == DOWNBEAT_ERROR_HANDLE, "a clock is closed once")

   call downbeat_clock_open(none, "sundial  ", status)
   call check(status == DOWNBEAT_ERROR_ARGUMENT, "there is no sundial")
   call check(index(downbeat_message(), 'there is no clock "sundial"') == 1, downbeat_message())
   call downbeat_now_with_error(none, start, error, status)
   call check(status == DOWNBEAT_ERROR_NULL, "a clock that was not opened")
   call downbeat_now_with_bounds(none, start, error, status)
   call check(status == DOWNBEAT_ERROR_NULL .and. start == -huge(start), "nor has it bounds")
   start = int(downbeat_wtime())
   call check(index(downbeat_message(), "no clock was synchronized yet") == 1, downbeat_message())
   call downbeat_get_timer(timer, "other")
   call downbeat_get_timer(timer, "solve")
   call downbeat_get_timer(timer, "solve  ")
   call downbeat_start_timer(timer)
   call downbeat_stop_timer(timer)
   open (newunit=unit, status="scratch")
   call downbeat_report_timers(unit)
   rewind (unit)
   read (unit, '(a)') line
   call check(line == "*** profile for 1 task ***", line)
   call downbeat_get_timer(timer, " ", status)
   call check(status == DOWNBEAT_ERROR_ARGUMENT, "a timer needs a name")
   print '(a)', "all checks passed"

contains

   subroutine check(is_right, what)
      logical, intent(in) :: is_right
      character(*), intent(in) :: what
      if (.not. is_right) error stop what
   end subroutine check
end program clock_of_a_process
