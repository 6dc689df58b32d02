"""Ranks as launchers announce them."""

import os
import subprocess
import sys

import lineweave
import pytest
from lineweave._launch import place

TORCHRUN = {"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_LOCAL_SIZE": "3", "PMIX_NAMESPACE": "prterun-host-1@1"}
HYDRA = {"PMI_RANK": "0", "PMI_SIZE": "2", "MPI_LOCALNRANKS": "2", "MPI_LOCALRANKID": "0"}
SLURM = {"SLURM_PROCID": "5", "SLURM_NTASKS": "6", "SLURM_JOB_ID": "17", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_NODES": "1"}


@pytest.mark.parametrize(
    "environment, rank, size", [(TORCHRUN, 1, 4), (OPEN_MPI, 2, 3), (HYDRA, 0, 2), (SLURM, 5, 6)]
)
def test_rank_and_size_are_found(environment, rank, size):
    found = place(environment)
    assert (found.rank, found.size) == (rank, size)
    assert len(found.job) <= 80 and all(c.isalnum() or c in "-_." for c in found.job)


def test_jobs_have_names_of_their_own():
    assert place(TORCHRUN).job != place({**TORCHRUN, "MASTER_PORT": "29501"}).job
    assert place(SLURM).job != place({**SLURM, "SLURM_STEP_ID": "1"}).job
    assert place(TORCHRUN).job == place({**TORCHRUN, "RANK": "3"}).job


@pytest.mark.parametrize(
    "environment",
    [
        {**TORCHRUN, "LOCAL_WORLD_SIZE": "2"},
        {**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "1"},
        {**HYDRA, "MPI_LOCALNRANKS": "1"},
        {**SLURM, "SLURM_STEP_NUM_NODES": "2", "SLURM_STEP_TASKS_PER_NODE": "3(x2)", "SLURM_NODEID": "1"},
    ],
)
def test_ranks_on_other_nodes_are_refused(environment):
    with pytest.raises(lineweave.NoTeam, match="of them on this node"):
        place(environment)


def test_a_number_of_local_ranks_alone_says_nothing():
    with pytest.raises(lineweave.NoTeam, match="nobody says"):
        place({"LOCAL_WORLD_SIZE": "4", "LOCAL_RANK": "1"})
    # A batch script has a job's variables and is no rank.
    with pytest.raises(lineweave.NoTeam, match="nobody says"):
        place({"SLURM_PROCID": "0", "SLURM_NTASKS": "6", "SLURM_JOB_ID": "17"})


@pytest.mark.parametrize("text", ["", "-1", "two", "1.0"])
def test_malformed_numbers_are_refused(text):
    with pytest.raises(lineweave.BadArgument, match="RANK"):
        place({**TORCHRUN, "RANK": text})
    with pytest.raises(lineweave.BadArgument, match="below"):
        place({**TORCHRUN, "RANK": "4"})


def test_a_misspelt_setting_is_named_once():
    code = (
        "import lineweave\n"
        "for _ in range(2):\n"
        "    lineweave.spawn(lambda team: team.barrier(), 2, method='thread')\n"
    )
    environment = {**os.environ, "LINEWEAVE_WIAT": "spin"}
    said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stderr
    assert said.count("LINEWEAVE_WIAT has no effect: no such setting; the nearest is LINEWEAVE_WAIT") == 1
