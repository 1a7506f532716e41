! Poisson's equation in three dimensions by conjugate gradients: -(u_xx + u_yy + u_zz) = 1 + x + 2 y z in the unit cube,
! u = 0 on its surface.
!
! It shows what a trace of a usual solver looks like. Each iteration exchanges the faces of a block with up to six
! neighbours (MPI_Irecv, MPI_Isend, MPI_Waitall) and sums two dot products (MPI_Allreduce of 8 bytes). With few points the
! sums take most of the time: the less even the ranks arrive, the longer all wait.
!
!   mpif90 -O2 poisson.F90 -o poisson
!   mpirun -np 4 ./poisson 48 500 10     # points per side, most iterations, times that all is solved (1 if absent)
!
! Prints the same on every run with the same number of ranks; poisson.c prints the same numbers up to rounding.
module blocks
   use, intrinsic :: iso_fortran_env, only: real64, error_unit
   use mpi_f08
   implicit none
   integer, parameter :: dimensions = 3, sides = 2

   ! One rank's block of the grid. Fields have a layer of points of the neighbours (or of the surface) around it.
   ! The first dimension of a field is z, because Fortran stores it without gaps; those of a block are x, y, z.
   type block_t
      type(MPI_Comm) :: comm
      integer :: rank
      integer :: ranks(dimensions)  ! of the whole grid of ranks
      integer :: first(dimensions)  ! global number of the first point, from 1
      integer :: points(dimensions) ! without the layer around
      integer :: neighbor(sides, dimensions)
      type(MPI_Datatype) :: inside(sides, dimensions)  ! outermost points of our own
      type(MPI_Datatype) :: outside(sides, dimensions) ! points of the neighbour's
      real(real64) :: spacing
   end type block_t

contains

   ! False if there are more ranks in a direction than points.
   logical function divide(grid, points_per_side)
      type(block_t), intent(out) :: grid
      integer, intent(in) :: points_per_side
      integer :: place(dimensions), ranks, even, more, d
      call MPI_Comm_size(MPI_COMM_WORLD, ranks)
      grid%ranks = 0
      call MPI_Dims_create(ranks, dimensions, grid%ranks)
      divide = all(grid%ranks <= points_per_side)
      if (.not. divide) return
      call MPI_Cart_create(MPI_COMM_WORLD, dimensions, grid%ranks, spread(.false., 1, dimensions), .false., grid%comm)
      call MPI_Comm_rank(grid%comm, grid%rank)
      call MPI_Cart_coords(grid%comm, grid%rank, dimensions, place)
      grid%spacing = 1/real(points_per_side + 1, real64)
      do d = 1, dimensions
         even = points_per_side/grid%ranks(d)
         more = mod(points_per_side, grid%ranks(d))
         grid%points(d) = even + merge(1, 0, place(d) < more)
         grid%first(d) = 1 + place(d)*even + min(place(d), more)
      end do
      do d = 1, dimensions
         call MPI_Cart_shift(grid%comm, d - 1, 1, grid%neighbor(1, d), grid%neighbor(2, d))
         grid%inside(1, d) = face(grid%points, d, 1)
         grid%inside(2, d) = face(grid%points, d, grid%points(d))
         grid%outside(1, d) = face(grid%points, d, 0)
         grid%outside(2, d) = face(grid%points, d, grid%points(d) + 1)
      end do
   end function divide

   ! Layer number `layer` in one direction, without its edges.
   type(MPI_Datatype) function face(points, direction, layer)
      integer, intent(in) :: points(dimensions), direction, layer
      integer :: part(dimensions), start(dimensions)
      part = points
      part(direction) = 1
      start = 1
      start(direction) = layer
      call MPI_Type_create_subarray(dimensions, reversed(points + 2), reversed(part), reversed(start), &
         MPI_ORDER_FORTRAN, MPI_DOUBLE_PRECISION, face)
      call MPI_Type_commit(face)
   end function face

   pure function reversed(values)
      integer, intent(in) :: values(dimensions)
      integer :: reversed(dimensions)
      reversed = values(dimensions:1:-1)
   end function reversed

   subroutine leave(grid)
      type(block_t), intent(inout) :: grid
      integer :: d, side
      do d = 1, dimensions
         do side = 1, sides
            call MPI_Type_free(grid%inside(side, d))
            call MPI_Type_free(grid%outside(side, d))
         end do
      end do
      call MPI_Comm_free(grid%comm)
   end subroutine leave

   ! All zeros.
   subroutine new_field(grid, field)
      type(block_t), intent(in) :: grid
      real(real64), allocatable, intent(out) :: field(:, :, :)
      allocate (field(0:grid%points(3) + 1, 0:grid%points(2) + 1, 0:grid%points(1) + 1), source=0.0_real64)
   end subroutine new_field

   ! Fills the layer around the block from the neighbours. There is none at the surface: nothing is sent, and the layer
   ! keeps its zeros. The tag tells in which direction a face travels.
   subroutine exchange_faces(grid, field)
      type(block_t), intent(in) :: grid
      real(real64), asynchronous, contiguous, intent(inout) :: field(:, :, :)
      type(MPI_Request) :: requests(2*sides*dimensions)
      integer :: number, d, side
      number = 0
      do d = 1, dimensions
         do side = 1, sides
            number = number + 1
            call MPI_Irecv(field, 1, grid%outside(side, d), grid%neighbor(side, d), sides*d - side, grid%comm, &
               requests(number))
         end do
      end do
      do d = 1, dimensions
         do side = 1, sides
            number = number + 1
            call MPI_Isend(field, 1, grid%inside(side, d), grid%neighbor(side, d), sides*d - (sides + 1 - side), grid%comm, &
               requests(number))
         end do
      end do
      call MPI_Waitall(number, requests, MPI_STATUSES_IGNORE)
   end subroutine exchange_faces

   real(real64) function sum_of_ranks(grid, mine)
      type(block_t), intent(in) :: grid
      real(real64), intent(in) :: mine
      call MPI_Allreduce(mine, sum_of_ranks, 1, MPI_DOUBLE_PRECISION, MPI_SUM, grid%comm)
   end function sum_of_ranks

   real(real64) function dot(grid, left, right)
      type(block_t), intent(in) :: grid
      real(real64), dimension(0:, 0:, 0:), intent(in) :: left, right
      real(real64) :: mine
      integer :: x, y, z
      mine = 0
      do x = 1, grid%points(1)
         do y = 1, grid%points(2)
            do z = 1, grid%points(3)
               mine = mine + left(z, y, x)*right(z, y, x)
            end do
         end do
      end do
      dot = sum_of_ranks(grid, mine)
   end function dot

   ! out = A in, with the usual seven points.
   subroutine apply(grid, in, out)
      type(block_t), intent(in) :: grid
      real(real64), contiguous, intent(inout) :: in(0:, 0:, 0:)
      real(real64), intent(inout) :: out(0:, 0:, 0:)
      real(real64) :: scale
      integer :: x, y, z
      scale = 1/(grid%spacing*grid%spacing)
      call exchange_faces(grid, in)
      do concurrent(x=1:grid%points(1), y=1:grid%points(2), z=1:grid%points(3))
         out(z, y, x) = scale*(6*in(z, y, x) - in(z, y, x - 1) - in(z, y, x + 1) - in(z, y - 1, x) &
                               - in(z, y + 1, x) - in(z - 1, y, x) - in(z + 1, y, x))
      end do
   end subroutine apply

   subroutine fill_right_side(grid, field)
      type(block_t), intent(in) :: grid
      real(real64), intent(inout) :: field(0:, 0:, 0:)
      integer :: x, y, z
      do concurrent(x=1:grid%points(1), y=1:grid%points(2), z=1:grid%points(3))
         field(z, y, x) = 1 + (grid%first(1) + x - 1)*grid%spacing &
                          + 2*((grid%first(2) + y - 1)*grid%spacing)*((grid%first(3) + z - 1)*grid%spacing)
      end do
   end subroutine fill_right_side

   ! Prints the result, if this is the last time.
   subroutine solve(grid, iterations, is_last)
      type(block_t), intent(in) :: grid
      integer, intent(in) :: iterations
      logical, intent(in) :: is_last
      real(real64), parameter :: small_enough = 1e-13_real64 ! of the first residual
      real(real64), allocatable, dimension(:, :, :) :: solution, residual, direction, image
      real(real64) :: square, first_square, before, step, checksum
      integer :: done
      call new_field(grid, solution)
      call new_field(grid, residual)
      call new_field(grid, direction)
      call new_field(grid, image)
      call fill_right_side(grid, residual) ! the first guess is 0
      direction = residual
      first_square = dot(grid, residual, residual)
      square = first_square
      done = 0
      do while (done < iterations .and. square > small_enough*small_enough*first_square)
         before = square
         call apply(grid, direction, image)
         step = square/dot(grid, direction, image)
         solution = solution + step*direction
         residual = residual - step*image ! the layer around stays 0
         square = dot(grid, residual, residual)
         direction = residual + square/before*direction
         done = done + 1
      end do
      image = 1
      checksum = dot(grid, solution, image)*grid%spacing**3
      if (grid%rank == 0 .and. is_last) then
         print '(a, i0, a, i0, a, i0)', 'ranks ', grid%ranks(1), ' x ', grid%ranks(2), ' x ', grid%ranks(3)
         print '(a, i0)', 'iterations ', done
         print '(a, es15.9e2)', 'residual ', sqrt(square/first_square)
         print '(a, es15.9e2)', 'checksum ', checksum ! integral of u
      end if
   end subroutine solve

   ! Argument `place`; 0 if it is no whole number from 1 to `most`.
   integer function argument(place, most)
      integer, intent(in) :: place, most
      character(16) :: text
      integer :: length, failed
      argument = 0
      call get_command_argument(place, text, length, failed)
      if (failed /= 0 .or. length == 0 .or. length > 9) return
      if (verify(text(:length), '0123456789') /= 0) return
      read (text, *) argument
      if (argument > most) argument = 0
   end function argument

   ! The exit code. Every rank comes to the same one, so none waits for another.
   integer function run() result(code)
      type(block_t) :: grid
      integer :: points, iterations, times, rank, i
      call MPI_Comm_rank(MPI_COMM_WORLD, rank)
      points = argument(1, 2000)
      iterations = argument(2, 1000000)
      times = 1
      if (command_argument_count() > 2) times = argument(3, 1000000)
      code = 2
      if (command_argument_count() > 3 .or. points == 0 .or. iterations == 0 .or. times == 0) then
         if (rank == 0) write (error_unit, '(a)') &
            'usage: poisson POINTS ITERATIONS [TIMES] (at most 2000, 1000000, 1000000)'
      else if (.not. divide(grid, points)) then
         if (rank == 0) write (error_unit, '(a, i0, a)') 'poisson: ', points, &
            ' points per side are too few for this many ranks'
      else
         do i = 1, times
            call solve(grid, iterations, i == times)
         end do
         call leave(grid)
         code = 0
      end if
   end function run
end module blocks

program poisson
   use blocks
   implicit none
   integer :: code
   call MPI_Init()
   code = run()
   call MPI_Finalize()
   if (code /= 0) call exit(code) ! of gfortran, ifort and others: `stop` would print its code
end program poisson
