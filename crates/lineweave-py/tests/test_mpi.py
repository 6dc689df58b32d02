"""mpi4py's names: one script, with one import changed."""

import subprocess
import sys
import textwrap

import pytest

SCRIPT = """
    import numpy as np
    began = MPI.Wtime()
    comm = MPI.COMM_WORLD
    me, n = comm.Get_rank(), comm.Get_size()
    x = np.arange(4, dtype="d") + me
    y = np.empty(4)
    comm.Allreduce(x, y)
    total = sum(np.arange(4.0) + r for r in range(n))
    assert (y == total).all()
    comm.Allreduce([x, MPI.DOUBLE], [y, MPI.DOUBLE], op=MPI.MAX)
    assert (y == np.arange(4.0) + n - 1).all()
    z = x.copy()
    comm.Allreduce(MPI.IN_PLACE, z, MPI.SUM)
    assert (z == total).all()
    comm.Reduce(x, y if me == 1 else None, op=MPI.SUM, root=1)
    assert me != 1 or (y == total).all()
    z = x.copy()
    comm.Bcast([z, MPI.DOUBLE], root=2)
    assert (z == np.arange(4.0) + 2).all()
    everything = np.empty((n, 4))
    comm.Allgather(x, everything)
    assert (everything == [np.arange(4.0) + r for r in range(n)]).all()
    gathered = np.empty((n, 4)) if me == 0 else None
    comm.Gather(x, gathered, root=0)
    assert me != 0 or (gathered == everything).all()
    mine = np.empty(4)
    comm.Scatter(gathered, mine, root=0)
    assert (mine == x).all()
    back = np.empty((n, 4))
    comm.Alltoall(everything, back)
    assert (back == np.arange(4.0) + me).all()
    counts = [r + 1 for r in range(n)]
    uneven = np.empty(sum(counts), "i")
    comm.Allgatherv(np.full(me + 1, me, "i"), [uneven, counts])
    expected = np.concatenate([np.full(r + 1, r, "i") for r in range(n)])
    assert (uneven == expected).all()
    part = np.empty(me + 1, "i")
    comm.Scatterv([expected, counts] if me == 0 else None, part, root=0)
    assert (part == me).all()
    got = np.empty(sum(counts), "i") if me == 0 else None
    comm.Gatherv(part, [got, counts] if me == 0 else None, root=0)
    assert me != 0 or (got == expected).all()
    block = np.empty(2)
    comm.Reduce_scatter_block(np.arange(2.0 * n), block)
    assert (block == n * np.arange(2.0 * me, 2 * me + 2)).all()
    before = sum(counts[:me])
    reduced = n * np.arange(before, before + me + 1)
    for call in (comm.Reduce_scatter, lambda *given: comm.Ireduce_scatter(*given).Wait()):
        part = np.zeros(me + 1, int)
        call(np.arange(sum(counts)), part, counts)
        assert (part == reduced).all()
    comm.Scan(x, y)
    assert (y == sum(np.arange(4.0) + r for r in range(me + 1))).all()
    comm.Exscan(x, y)
    assert me == 0 or (y == sum(np.arange(4.0) + r for r in range(me))).all()
    def append(a, b, kind):
        a, b = np.frombuffer(a, "d"), np.frombuffer(b, "d")
        b[:] = a * 10 + b
    own = MPI.Op.Create(append, commute=False)
    digits = np.array([me + 1.0])
    comm.Allreduce(MPI.IN_PLACE, digits, op=own)
    assert digits[0] == float("".join(str(r + 1) for r in range(n)))
    assert comm.allreduce(me) == sum(range(n)) and comm.allreduce(me, op=MPI.MAX) == n - 1
    assert comm.bcast({"a": 1} if me == 0 else None) == {"a": 1}
    assert comm.allgather(me) == list(range(n)) and comm.alltoall([me] * n) == list(range(n))
    assert comm.scatter(list(range(n)) if me == 0 else None) == me
    half = comm.Split(me % 2, me)
    assert half.Get_size() == len(range(me % 2, n, 2)) and half.allreduce(1) == half.size
    assert not comm.Split(MPI.UNDEFINED if me == 0 else 0) or me > 0
    request = comm.Iallreduce(x, y)
    request.Wait()
    assert (y == total).all()
    # Messages begun, and from whomever.
    right, left = (me + 1) % n, (me - 1) % n
    got = np.empty(50_000)
    both = [comm.Irecv(got, source=left, tag=3), comm.Isend(np.full(50_000, float(me)), dest=right, tag=3)]
    MPI.Request.Waitall(both)
    assert (got == left).all()
    status = MPI.Status()
    request = comm.Irecv([got, MPI.DOUBLE], source=left, tag=4)
    comm.Send(np.arange(7.0), dest=right, tag=4)
    request.Wait(status)
    assert status.Get_source() == left and status.Get_tag() == 4 and status.Get_count(MPI.DOUBLE) == 7
    begun = comm.isend({"from": me}, dest=right, tag=5)
    assert comm.irecv(source=left, tag=5).wait() == {"from": left}
    begun.wait()
    begun = comm.isend([me] * 1000, dest=0, tag=6)
    if me == 0:
        found = sorted(comm.recv(source=MPI.ANY_SOURCE, tag=6)[0] for _ in range(n))
        assert found == list(range(n))
    begun.wait()
    if me == 1:
        comm.Send(np.arange(3.0), dest=0, tag=7)
    elif me == 0:
        comm.Probe(MPI.ANY_SOURCE, 7, status)
        assert status.Get_source() == 1 and status.Get_count(MPI.DOUBLE) == 3
        comm.Recv(got, source=MPI.ANY_SOURCE, tag=7, status=status)
        assert status.Get_source() == 1 and got[2] == 2
    assert comm.sendrecv(me, dest=right, source=left) == left
    comm.Barrier()
    uneven[:] = -1
    comm.Iallgatherv(np.full(me + 1, me, "i"), [uneven, counts]).Wait()
    assert (uneven == expected).all()
    comm.Ialltoallv([np.full((me + 1) * n, me, "i"), [me + 1] * n], [uneven, counts]).Wait()
    assert (uneven == expected).all()
    digits[0] = me + 1
    comm.Iallreduce(MPI.IN_PLACE, digits, op=own).Wait()
    assert digits[0] == float("".join(str(r + 1) for r in range(n)))
    comm.Iscan(x, y).Wait()
    assert (y == sum(np.arange(4.0) + r for r in range(me + 1))).all()
    twin = comm.Dup()
    twin.Barrier()
    twin.Free()
    comm.Barrier()
    assert MPI.COMM_SELF.size == 1 and MPI.Wtime() > began
    print("well", flush=True)
"""


def write(tmp_path, module):
    script = tmp_path / "script.py"
    script.write_text(f"from {module} import MPI\n" + textwrap.dedent(SCRIPT))
    return str(script)


@pytest.mark.parametrize("n", [3, 4])
def test_a_script_of_mpi4py_needs_one_import_changed(tmp_path, n):
    command = [sys.executable, "-m", "lineweave.run", "-n", str(n), write(tmp_path, "lineweave")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0 and done.stdout.count("well") == n, done


def test_without_a_launcher_the_world_is_this_process(tmp_path):
    code = "from lineweave import MPI; c = MPI.COMM_WORLD; print(c.rank, c.size, c.allreduce(5))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "0 1 5\n", done


def test_the_same_script_runs_with_mpi4py(tmp_path):
    pytest.importorskip("mpi4py")
    import os
    import shutil

    mpirun = shutil.which("mpiexec", path=os.path.dirname(sys.executable)) or shutil.which("mpiexec")
    if mpirun is None:
        pytest.skip("no mpiexec")
    command = [mpirun, "-n", "3", sys.executable, write(tmp_path, "mpi4py")]
    # Open MPI refuses root, and more ranks than CPUs, unless told.
    told = dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_rmaps_base_oversubscribe"), "1")
    done = subprocess.run(command, env={**os.environ, **told}, capture_output=True, text=True, timeout=100)
    assert done.stdout.count("well") == 3, done
