! A program that knows nothing of Downbeat: checks that its MPI_Wtime is global.
program wtime
#if defined(USE_F08)
   use mpi_f08
#elif defined(USE_MPI)
   use mpi
#endif
   implicit none
#if !defined(USE_F08) && !defined(USE_MPI)
   include 'mpif.h'
#endif
   integer(MPI_ADDRESS_KIND) :: is_global
   double precision :: start, last
   integer :: rank, ranks, ierror
   logical :: flag

   call MPI_Init(ierror)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
   call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, is_global, flag, ierror)
   if (.not. flag .or. is_global /= 1) error stop "MPI_Wtime is not global"
   start = MPI_Wtime()
   ! All ranks show the time of rank 0, which passes this on.
   call MPI_Bcast(start, 1, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierror)
   last = MPI_Wtime()
   if (last < start .or. last > 60) error stop "MPI_Wtime has another origin"
   if (MPI_Wtick() > 1d-6) error stop "MPI_Wtime is coarse"
   if (rank == 0) print '(a,i0,a)', "rank 0 of ", ranks, ": all checks passed"
   call MPI_Finalize(ierror)
end program wtime
