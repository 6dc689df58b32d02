# Teams that form beside the program: what ranks compute meanwhile is right, and communicators, jobs and ranks may end at any moment of it.
# Sourced by scripts/test-mpi.

# beside MPI RANKS COMMAND...: with teams that form beside the program as soon as they may. Without contests, which need started calls in MPI's order.
beside() {
    local mpi=$1 ranks=$2
    shift 2
    on "$mpi" "$ranks" env LINEWEAVE_MPI_FORM=beside LINEWEAVE_MPI_AFTER=4 LINEWEAVE_MPI_RACE=0 "$lineweave" run --report "$scratch/report" -- "$@"
}

# changes_over MPI RANKS COMMAND...: some calls were the MPI's at first, and later ones lineweave's.
changes_over() {
    rm -f "$scratch/report"
    beside "$@" && grep -q '"beside_total_ms":[0-9.]*[1-9]' "$scratch/report" && grep -q '"taken":[1-9]' "$scratch/report" &&
        grep -q '"the communicator had no team yet":[1-9]' "$scratch/report"
}

# killed MPI RANKS MS: a rank ends that many milliseconds after its team began to form, and the job with it.
killed() {
    local status=0
    beside "$1" "$2" "$mpis/built/forming-$1" kill "$3" || status=$?
    [ "$status" -ne 0 ] && [ "$status" -ne 124 ]
}

# plans_beside MPI RANKS SEED: some calls pass while plans are chosen, and later ones are lineweave's.
plans_beside() {
    rm -f "$scratch/report"
    on "$1" "$2" env LINEWEAVE_MPI_FORM=beside LINEWEAVE_MPI_AFTER=4 "$lineweave" run --report "$scratch/report" -- "$mpis/built/present-$1" "$3" 3000 &&
        grep -q '"its plans were being chosen":[1-9]' "$scratch/report" && grep -q '"taken":[1-9]' "$scratch/report"
}

# recalls MPI PATTERN [VARIABLE=VALUE]...: a run with the cache of earlier ones is right, and its report says how many contests ended as they began.
recalls() {
    local mpi=$1 pattern=$2
    shift 2
    rm -f "$scratch/report"
    on "$mpi" 2 env XDG_CACHE_HOME="$scratch/kept-$mpi" LINEWEAVE_MPI_FORM=beside LINEWEAVE_MPI_AFTER=4 "$@" "$lineweave" run --report "$scratch/report" -- \
        "$mpis/built/verdicts-$mpi" "${arguments[@]}" && grep -q "\"recalled\":$pattern[,}]" "$scratch/report" && grep -q '"taken":[1-9]' "$scratch/report"
}

for mpi in openmpi mpich; do
    if [ ! -e "$mpis/$mpi/ready" ]; then continue; fi
    "$mpis/$mpi/bin/mpicc" -O1 -g mpi/tests/forming.c -o "$mpis/built/forming-$mpi" -lpthread
    forming=$mpis/built/forming-$mpi
    ends="4 5 8 20 100 1000" some=$numbers many=$faults
    if $short; then ends="5 100" some=3 many=2; fi
    for ranks in $some; do
        if [ "$ranks" -lt 2 ]; then continue; fi
        check "$mpi: change-over, $ranks ranks: calls of all kinds" changes_over "$mpi" "$ranks" "$forming" calls
        check "$mpi: change-over, $ranks ranks: only started calls" changes_over "$mpi" "$ranks" "$forming" started
        check "$mpi: change-over, $ranks ranks: refused calls between" changes_over "$mpi" "$ranks" "$forming" refused
        check "$mpi: change-over, $ranks ranks: a slow rank" changes_over "$mpi" "$ranks" "$forming" slow
        check "$mpi: change-over, $ranks ranks: no thread may start" changes_over "$mpi" "$ranks" "$forming" no-thread
        check "$mpi: change-over, $ranks ranks: communicators that are freed meanwhile" beside "$mpi" "$ranks" "$forming" freed 40
        check "$mpi: change-over, $ranks ranks: a fork meanwhile" beside "$mpi" "$ranks" "$forming" fork
        for calls in $ends; do
            check "$mpi: change-over, $ranks ranks: MPI_Finalize after $calls calls" beside "$mpi" "$ranks" "$forming" ends "$calls"
        done
    done
    for ((fault = 0; fault < many; fault++)); do
        check "$mpi: a rank is killed $((fault * 2)) ms after its team began to form" killed "$mpi" 3 $((fault * 2))
        check "$mpi: a rank is stopped for a while $((fault * 2)) ms after its team began to form" beside "$mpi" 3 "$forming" stop $((fault * 2))
    done
    for ((program = 0; program < many; program++)); do
        # Each kind and length changes over by itself, and is compared with the MPI then.
        check "$mpi: a random program whose plans are chosen beside it (seed $((seed + program)))" plans_beside "$mpi" 3 $((seed + program))
    done
    "$mpis/$mpi/bin/mpicc" -O1 -g mpi/tests/verdicts.c -o "$mpis/built/verdicts-$mpi"
    rm -rf "$scratch/kept-$mpi"
    mkdir "$scratch/kept-$mpi"
    arguments=(100000)
    # In the first run the duplicate knows what MPI_COMM_WORLD found out; of a later run's four classes one in 16 is compared again.
    check "$mpi: contests of a first run: only its second communicator knows their winner" recalls "$mpi" 2
    check "$mpi: a second run knows it as well" recalls "$mpi" '[4-8]'
    check "$mpi: not where plans are not kept" recalls "$mpi" 2 LINEWEAVE_KEEP_PLANS=0
    arguments=(100001)
    check "$mpi: nor in a run with another first argument" recalls "$mpi" 2
    arguments=(100000)
    for file in "$scratch/kept-$mpi"/lineweave/*/plans-*.bin; do truncate -s -20 "$file"; done
    check "$mpi: a file that is cut short does no harm" recalls "$mpi" '[2-8]'
    check "$mpi: 160 communicators of 8 threads, teams beside" beside "$mpi" 4 "$mpis/built/crowd-$mpi" 8 160 2
done
