program hello
   use mpi_f08
   use downbeat_mpi
   implicit none
   type(downbeat_clock) :: clock
   call MPI_Init()
   call downbeat_synchronize(MPI_COMM_WORLD, clock)
   print '(f0.9,a)', downbeat_wtime(), ' s'
   call MPI_Finalize()
end program hello
