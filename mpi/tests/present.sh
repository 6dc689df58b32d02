# Ranks that have lineweave and ranks that do not: part of scripts/test-mpi, which has `check`, `on`, `scratch`, `mpis`, `built`, `lineweave`, `programs`
# and `seed`.

# launcher MPI: what starts a job, as words.
launcher() {
    if [ "$1" = openmpi ]; then echo mpirun --oversubscribe; else echo mpirun; fi
}

# within MPI COMMAND...: in the environment of that MPI, for ranks that outnumber CPUs.
within() {
    local mpi=$1
    shift
    (
        export PATH=$mpis/$mpi/bin:$PATH LD_LIBRARY_PATH=$mpis/$mpi/lib
        export MPIR_CVAR_CH4_PROGRESS_THROTTLE=1 MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT=8
        if [ "$mpi" = impi-rt ]; then export I_MPI_ROOT=$mpis/impi-rt I_MPI_FABRICS=shm; fi
        "$@"
    )
}

# mixed MPI PROGRAM RANKS...: a job with a rank for each further argument, with lineweave where that is 1; it must end well.
mixed() {
    local mpi=$1 program=$2 line=() has
    shift 2
    for has; do
        if [ ${#line[@]} -gt 0 ]; then line+=(:); fi
        if [ "$mpi" = openmpi ]; then line+=(--oversubscribe); fi
        line+=(-n 1)
        if [ "$has" = 1 ]; then line+=("$lineweave" run --); fi
        line+=("$program" 5 200)
    done
    within "$mpi" timeout -k 5 60 mpirun "${line[@]}"
}

for mpi in openmpi mpich impi-rt; do
    if [ ! -e "$mpis/$mpi/ready" ]; then continue; fi
    program=$mpis/built/present-${mpi/impi-rt/mpich} watch=$mpis/built/watch-${mpi/impi-rt/mpich}.so
    if [ "$mpi" != impi-rt ]; then
        "$mpis/$mpi/bin/mpicc" -O1 -g mpi/tests/present.c -o "$program"
        "$mpis/$mpi/bin/mpicc" -O1 -shared -fPIC mpi/tests/watch.c -o "$watch" -ldl
    fi
    if [ ! -x "$program" ]; then continue; fi
    # Calls are compared with the MPI and counted by what they cost, as for users.
    for after in '' 0; do
        if [ -n "$after" ]; then export LINEWEAVE_MPI_AFTER=$after; else unset LINEWEAVE_MPI_AFTER; fi
        for ranks in "0 1" "1 0" "1 0 1" "0 1 1" "1 1 0 1"; do
            # shellcheck disable=SC2086 # a word for each rank
            check "$mpi: ranks with lineweave: $ranks, after ${after:-a while}" says " of $(wc -w <<<"$ranks") on this node" mixed "$mpi" "$program" $ranks
        done
    done
    export LINEWEAVE_MPI_AFTER=4
    # Intel MPI over shared memory cannot spawn by itself.
    if [ "$mpi" != impi-rt ]; then
        check "$mpi: spawned ranks have lineweave, and communicators with them a team" says "calls, 6 foreign, spawned 1" \
            on "$mpi" 2 env "LD_PRELOAD=$watch" LINEWEAVE_MPI_RACE=0 LINEWEAVE_MPI_AFTER=3 "$lineweave" run -- "$program" 5 300 2
        check "$mpi: one rank spawns others" says "2.0 communicators a rank got a team" \
            on "$mpi" 1 env LINEWEAVE_MPI_RACE=0 LINEWEAVE_MPI_AFTER=3 "$lineweave" run -- "$program" 5 300 1
        # Nobody waits for them: once it is known that they lack it, calls are counted as such.
        check "$mpi: spawned ranks lack lineweave" says "passed on: not all of its ranks have lineweave" \
            on "$mpi" 3 env PRESENT_BARE=1 LINEWEAVE_MPI_AFTER=3 "$lineweave" run -- "$program" 5 300 1
    fi
    # shellcheck disable=SC2046 # words
    check "$mpi: $programs random programs" within "$mpi" mpi/tests/present.py "$lineweave" "$program" "$watch" "$programs" "$seed" $(launcher "$mpi")
done
