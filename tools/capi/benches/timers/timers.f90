! Times of an event of a timer, in nanoseconds: with a kept timer, and with one that each event gets by its name.
program timers
   use, intrinsic :: iso_fortran_env, only: int64
   use downbeat
   implicit none
   integer, parameter :: events = 200000
   type(downbeat_timer), save :: timer
   integer(int64) :: began, between, ended, rate
   integer :: round, i
   call system_clock(count_rate=rate)
   call downbeat_get_timer(timer, "solve")
   do round = 1, 30
      call system_clock(began)
      do i = 1, events
         call downbeat_start_timer(timer)
         call downbeat_stop_timer(timer)
      end do
      call system_clock(between)
      do i = 1, events
         call downbeat_get_timer(timer, "solve")
         call downbeat_start_timer(timer)
         call downbeat_stop_timer(timer)
      end do
      call system_clock(ended)
      print '(2f12.3)', 1d9*real(between - began)/rate/events, 1d9*real(ended - between)/rate/events
   end do
end program timers
