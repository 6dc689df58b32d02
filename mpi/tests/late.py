"""A program that opens its MPI late: calls of mpi4py with counts for all ranks, which look for MPI's functions with large counts."""
import sys

import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
own, blocks = numpy.full(3 + comm.rank, comm.rank, "i"), [3 + rank for rank in range(comm.size)]
places = [sum(blocks[:rank]) for rank in range(comm.size)]
all_blocks, part = numpy.empty(sum(blocks), "i"), numpy.zeros(1)
comm.Allgatherv(own, [all_blocks, blocks, places, MPI.INT])
assert all_blocks.tolist() == [rank for rank in range(comm.size) for _ in range(3 + rank)]
comm.Reduce_scatter(numpy.ones(comm.size), part, [1] * comm.size)
assert part[0] == comm.size and comm.bcast({"x": 1}) == {"x": 1}
out = numpy.empty(comm.size, "i")
ones, steps = [1] * comm.size, list(range(comm.size))
comm.Ialltoallv([numpy.arange(comm.size, dtype="i"), ones, steps, MPI.INT], [out, ones, steps, MPI.INT]).Wait()
assert out.tolist() == [comm.rank] * comm.size
# In one piece, as ranks print at once.
sys.stdout.write(f"late: computed {comm.allreduce(1)}\n")
