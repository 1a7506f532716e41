"""Messages of Python objects, collective operations and children that are no ranks, by mpi4py; prints what came out."""

import subprocess

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
total = 0
for turn in range(100):
    if rank == 0:
        world.send({"turn": turn}, dest=1 % size, tag=5)
    if rank == 1 % size:
        total += world.recv(source=0, tag=5)["turn"]
    total += world.allreduce(rank)
subprocess.run(["sh", "-c", "true"], check=True)
half = world.Split(rank % 2, rank)
half.Barrier()
totals = world.gather(total)
if rank == 0:
    print("totals", totals)
