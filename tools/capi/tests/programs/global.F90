! A global clock over MPI, by the binding that USE_F08 or USE_MPI selects, or mpif.h. Prints `rank 0 of N` once.
program global_clock
   use, intrinsic :: iso_fortran_env, only: int64
#if defined(USE_F08)
   use mpi_f08
#elif defined(USE_MPI)
   use mpi
#endif
   use downbeat_mpi
   implicit none
#if !defined(USE_F08) && !defined(USE_MPI)
   include 'mpif.h'
#endif
   type(downbeat_clock) :: clock, none
   type(downbeat_team) :: team
   logical :: kept
   integer(int64) :: start, reached, error, ticks
   integer :: rank, ranks, status, ierror
   type(downbeat_timer) :: timer
   character(20) :: label

   call downbeat_synchronize(MPI_COMM_WORLD, none, status=status)
   call check(status == DOWNBEAT_ERROR_MPI, "MPI is not initialized")
   call MPI_Init(ierror)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)

   call downbeat_synchronize(MPI_COMM_WORLD, clock)
   start = downbeat_now(clock) + 5000000
   call MPI_Bcast(start, 1, MPI_INTEGER8, 0, MPI_COMM_WORLD, ierror)
   call downbeat_wait_until(clock, start, reached)
   call check(reached >= start .and. downbeat_wtime() >= reached*1d-9, "the clock waits")
   ticks = downbeat_ticks(clock)
   call downbeat_timesync(MPI_COMM_WORLD)
   call downbeat_timesync(MPI_COMM_WORLD, status)
   call check(status == DOWNBEAT_OK, "a second session")
   call check(abs(downbeat_past(clock, ticks) - reached) < 1000000000, "the past is known")
   call downbeat_resynchronize(clock, MPI_COMM_WORLD)
   call downbeat_now_with_error(clock, start, error)
   call check(error >= 0 .and. error < 1000000000, "the error is bounded")
   call downbeat_now_with_bounds(clock, start, reached)
   call check(start <= reached .and. reached - start < 2000000000, "the bounds contain the time of rank 0")

   call downbeat_team_open(clock, MPI_COMM_WORLD, team)
   call downbeat_keep(team, 0_int64, kept)
   call check(kept, "a session now")
   call downbeat_keep(team, 100000000000_int64, kept, status)
   call check(status == DOWNBEAT_OK .and. .not. kept, "a session that is not due")
   call downbeat_harmonize(team, 1000000000_int64)
   call downbeat_harmonize(team, 1000000000_int64, reached, status)
   call check(status == DOWNBEAT_OK .and. reached >= 0, "the ranks return together")
   call downbeat_team_close(team)
   call downbeat_keep(team, 0_int64, status=status)
   call check(status == DOWNBEAT_ERROR_HANDLE, "a team that is closed")

   call downbeat_get_timer(timer, "solve")
   call downbeat_start_timer(timer)
   call downbeat_stop_timer(timer)
   call downbeat_report_timers_over(MPI_COMM_WORLD)
   label = "hca3"
   if (rank == ranks - 1) label = "hca4"
   call downbeat_synchronize(MPI_COMM_WORLD, none, label, status)
   call check(status == DOWNBEAT_ERROR_RANKS, "ranks disagree")
   call check(index(downbeat_message(), 'there is no algorithm "hca4"') > 0, downbeat_message())
   call downbeat_resynchronize(none, MPI_COMM_WORLD, status)
   call check(status == DOWNBEAT_ERROR_RANKS, "a clock that was not opened")
   call downbeat_synchronize(MPI_COMM_NULL, none, status=status)
   call check(status == DOWNBEAT_ERROR_MPI, "no communicator")
   if (rank == 0) print '(a,i0,a)', "rank 0 of ", ranks, ": all checks passed"
   call MPI_Finalize(ierror)
   call downbeat_clock_close(clock)

contains

   subroutine check(is_right, what)
      logical, intent(in) :: is_right
      character(*), intent(in) :: what
      if (.not. is_right) error stop what
   end subroutine check
end program global_clock
