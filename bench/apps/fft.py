"""Turbulence's inner loop on mpi4py-fft: `fft.py`, once a rank under an MPI.

Fields of 64 x 64 x 64 numbers are transformed forth and back, each time with a transposition among all ranks
(`MPI_Alltoallw`), and their energy is summed up, as spectral solvers do at each step. Ends with an error if a field comes back
changed.
"""

from __future__ import annotations

import numpy as np
from mpi4py import MPI
from mpi4py_fft import PFFT, newDistArray

STEPS = 40


def main() -> None:
    transform = PFFT(MPI.COMM_WORLD, (64, 64, 64), dtype=np.float64, slab=True)
    field, modes = newDistArray(transform, False), newDistArray(transform, True)
    field[:] = np.random.default_rng(MPI.COMM_WORLD.rank).standard_normal(field.shape)
    first = np.array(field)
    energy = []
    for _ in range(STEPS):
        transform.forward(field, modes)
        transform.backward(modes, field)
        energy.append(MPI.COMM_WORLD.allreduce(float(np.vdot(field, field).real)))
    np.testing.assert_allclose(np.asarray(field), first, atol=1e-9)
    np.testing.assert_allclose(energy, energy[0], rtol=1e-9)


if __name__ == "__main__":
    main()
