"""Teams: how they begin, end and fail."""

import concurrent.futures
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import lineweave
import numpy as np
import pytest


def rank_and_size(team):
    team.barrier()
    return team.rank, team.size


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_every_rank_returns_its_own(n):
    assert lineweave.spawn(rank_and_size, n, method="fork") == [(r, n) for r in range(n)]


def test_every_way_of_starting(method):
    assert lineweave.spawn(rank_and_size, 3, method=method) == [(r, 3) for r in range(3)]


def test_forkserver():
    assert lineweave.spawn(rank_and_size, 2, method="forkserver") == [(0, 2), (1, 2)]


def in_a_pool(name):
    with lineweave.connect(name, size=3) as team:
        x = np.array([team.rank + 1.0])
        return float(team.allreduce(x)[0])


def test_workers_of_an_executor_meet_by_name():
    name = f"pool-{os.getpid()}"
    with concurrent.futures.ProcessPoolExecutor(3) as pool:
        assert list(pool.map(in_a_pool, [name] * 3)) == [6.0] * 3


def test_threads_of_an_executor_meet_by_name():
    name = f"threads-{os.getpid()}"
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        assert list(pool.map(in_a_pool, [name] * 3)) == [6.0] * 3


def test_a_path_is_a_socket_that_does_not_stay(tmp_path):
    path = str(tmp_path / "team")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda rank: lineweave.connect(path, 2, rank).close(), range(2)))
    assert list(tmp_path.iterdir()) == []


def raises_at_one(team):
    if team.rank == 1:
        raise ValueError("rank one has had enough")
    team.barrier()


def test_a_rank_that_raises_is_named(method):
    with pytest.raises(lineweave.RankFailed, match="rank one has had enough") as caught:
        lineweave.spawn(raises_at_one, 3, method=method)
    assert caught.value.peer == 1
    assert isinstance(caught.value.__cause__, ValueError)
    # The others got an exception that names it.
    for rank in (0, 2):
        assert "RankLost" in caught.value.reports[rank] and "rank 1" in caught.value.reports[rank]


def dies_at_one(team):
    if team.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    team.barrier()


def test_a_killed_rank_is_named(fork):
    start = time.monotonic()
    with pytest.raises(lineweave.RankFailed, match="rank 1 of 3 was killed by SIGKILL") as caught:
        lineweave.spawn(dies_at_one, 3, method=fork)
    assert "rank 1" in caught.value.reports[0] and "died" in caught.value.reports[0]
    assert time.monotonic() - start < 30


def leaves_early(team):
    if team.rank == 0:
        return None
    try:
        team.barrier()
    except lineweave.RankLost as error:
        return error.peer, error.rank, error.operation
    return None


def test_who_waits_for_one_that_left_is_told(method):
    assert lineweave.spawn(leaves_early, 2, method=method)[1] == (0, 1, "barrier")


def never_ends(team):
    if team.rank == 0:
        time.sleep(1000)
    team.barrier()


def test_spawn_has_a_time_limit(fork):
    start = time.monotonic()
    with pytest.raises(lineweave.RankFailed, match="time was over"):
        lineweave.spawn(never_ends, 2, method=fork, timeout=1.0)
    assert time.monotonic() - start < 30


def waits_too_long(team):
    team.set_timeout(0.3)
    if team.rank == 0:
        try:
            team.barrier()
        except lineweave.Timeout as error:
            return "rank 1" in str(error)
    time.sleep(1.0)
    return None


def test_a_call_has_a_time_limit(fork):
    assert lineweave.spawn(waits_too_long, 2, method=fork)[0] is True


def uses_a_fork(team):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            team.barrier()
            os.write(write, b"no error")
        except lineweave.Error as error:
            os.write(write, str(error).encode())
        finally:
            del team
            os._exit(0)
    os.waitpid(child, 0)
    said = os.read(read, 1000).decode()
    team.barrier()
    return said


def test_a_child_forked_from_a_rank_is_refused_and_does_no_harm(fork):
    for said in lineweave.spawn(uses_a_fork, 2, method=fork):
        assert "before the process was forked" in said


def closes(team):
    team.close()
    team.close()
    assert team.closed
    try:
        team.barrier()
    except lineweave.Error as error:
        return str(error)


def test_a_closed_team_says_so(method):
    assert lineweave.spawn(closes, 2, method=method) == ["this team was closed"] * 2


def test_nobody_comes():
    with pytest.raises(lineweave.MeetingFailed, match="1 of 2 ranks came within"):
        lineweave.connect(f"alone-{os.getpid()}", size=2, timeout=0.2)


def test_a_rank_that_is_taken():
    name = f"taken-{os.getpid()}"
    found = []

    def join(delay):
        time.sleep(delay)
        try:
            lineweave.connect(name, size=2, rank=0, timeout=3).close()
        except lineweave.Error as error:
            found.append(str(error))

    threads = [threading.Thread(target=join, args=(delay,)) for delay in (0, 0.5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert any("rank 0 is taken" in text for text in found)


@pytest.mark.parametrize("given", [dict(size=0), dict(size=5000), dict(size=2, rank=2)])
def test_impossible_places_are_refused(given):
    with pytest.raises(lineweave.BadArgument):
        lineweave.connect("impossible", **given)


def test_impossible_spawns_are_refused():
    with pytest.raises(lineweave.BadArgument, match="1 to"):
        lineweave.spawn(rank_and_size, 0)
    with pytest.raises(lineweave.BadArgument, match="expected one of"):
        lineweave.spawn(rank_and_size, 2, method="telepathy")


def run(code, *arguments, launcher=(), env=None, timeout=60):
    environment = {**os.environ, **(env or {})}
    command = [*launcher, sys.executable, "-c", textwrap.dedent(code), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment)


def test_ctrl_c_ends_a_wait():
    code = """
        import lineweave, threading, os, signal, time
        name = f"ctrl-c-{os.getpid()}"
        def other():
            team = lineweave.connect(name, 2, 1)
            time.sleep(1000)
        threading.Thread(target=other, daemon=True).start()
        team = lineweave.connect(name, 2, 0)
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            team.barrier()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        try:
            team.barrier()
        except lineweave.Error as error:
            print(error, flush=True)
        os._exit(0)
    """
    done = run(code)
    assert done.stdout.startswith("interrupted\nthis communicator failed earlier"), done


def test_an_interpreter_shuts_down_in_the_middle_of_a_call():
    code = """
        import lineweave, threading, os, time
        name = f"shutdown-{os.getpid()}"
        def other():
            team = lineweave.connect(name, 2, 1)
            try:
                team.barrier()
            except lineweave.Error as error:
                print(error, flush=True)
                raise SystemExit
        thread = threading.Thread(target=other, daemon=True)
        thread.start()
        team = lineweave.connect(name, 2, 0)
        time.sleep(0.3)
    """
    done = run(code)
    assert done.returncode == 0 and "shutting down" in done.stdout, done


def test_python_threads_go_on_while_a_rank_waits():
    code = """
        import lineweave, threading, os, time
        name = f"gil-{os.getpid()}"
        child = os.fork()
        team = lineweave.connect(name, 2, 0 if child else 1)
        if child == 0:
            time.sleep(0.5)
            team.barrier()
            os._exit(0)
        count = 0
        def work():
            global count
            while not done:
                count += 1
        done = False
        thread = threading.Thread(target=work)
        thread.start()
        team.barrier()
        done = True
        thread.join()
        os.waitpid(child, 0)
        print(count)
    """
    done = run(code)
    assert int(done.stdout) > 10_000, done


TEAM = r"""
    import lineweave, numpy as np
    team = lineweave.team()
    assert team is lineweave.team()
    total = team.allreduce(np.array([team.rank]))
    # Several writes a line, which the launcher keeps together.
    print(team.rank, team.size, int(total[0]))
"""


@pytest.mark.parametrize("how", ["module", "command"])
def test_run_starts_ranks(tmp_path, how):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(TEAM))
    beside = Path(sys.executable).parent / "lineweave"
    if how == "command" and not beside.exists():
        pytest.skip("the command is not installed beside Python")
    start = [sys.executable, "-m", "lineweave.run"] if how == "module" else [str(beside), "run"]
    command = [*start, "-n", "3", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert sorted(done.stdout.split("\n")) == ["", "0 3 3", "1 3 3", "2 3 3"], done


def test_run_says_which_rank_failed(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import lineweave\nt = lineweave.team()\nif t.rank == 1: raise SystemExit(7)\nt.barrier()\n")
    command = [sys.executable, "-m", "lineweave.run", "-n", "2", str(script)]
    for _ in range(5):
        # Rank 0 fails by it, and may end sooner.
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 7 and "lineweave.run: rank 1 ended with" in done.stderr, done


def gone(pid):
    """Returns whether the process has ended, awaited or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.parametrize("how", ["TERM", "KILL"])
@pytest.mark.parametrize("start", ["run", "fork", "spawn", "forkserver"])
def test_no_rank_outlives_who_started_it(tmp_path, start, how):
    if start == "run":
        script = tmp_path / "script.py"
        script.write_text("import lineweave, os, time\nlineweave.team()\nprint(os.getpid())\ntime.sleep(600)\n")
        command = [sys.executable, "-m", "lineweave.run", "-n", "2", str(script)]
    else:
        script = tmp_path / "script.py"
        script.write_text(
            "import lineweave, os, time\n"
            "def work(team):\n    os.write(1, f'{os.getpid()}\\n'.encode())\n    time.sleep(600)\n"
            f"if __name__ == '__main__': lineweave.spawn(work, 2, method={start!r})\n"
        )
        command = [sys.executable, str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as starter:
        ranks = [int(starter.stdout.readline()) for _ in range(2)]
        starter.send_signal(getattr(signal, f"SIG{how}"))
        status = starter.wait(60)
    if (start, how) == ("run", "TERM"):
        assert status == 128 + signal.SIGTERM
    end = time.monotonic() + 30
    while not all(map(gone, ranks)) and time.monotonic() < end:
        time.sleep(0.01)
    left = [pid for pid in ranks if not gone(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left


def test_without_a_launcher_it_says_what_to_do():
    done = run("import lineweave; lineweave.team()")
    assert "NoTeam" in done.stderr and "lineweave.spawn" in done.stderr
