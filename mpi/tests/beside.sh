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

# says_beside TEXT MPI RANKS COMMAND...: as beside, and the table says this.
says_beside() {
    local text=$1
    shift
    says "$text" beside "$@"
}

# fault MPI NUMBER: a job of two or three ranks, every other one with planning, of which one is harmed at a step of a thread that forms its team or chooses
# plans, or ends, frees or is refused threads; all drawn by the number. It must end as it should, with right results.
fault() {
    local mpi=$1 number=$2 kinds=(kill stop fork ends freed denied) kind job status=0 began=$SECONDS
    local ranks=$((2 + number / 12 % 2)) race=$((number / 6 % 2))
    kind=${kinds[number % 6]}
    RANDOM=$((seed + number))
    local at=$(((1 << RANDOM % 12) + RANDOM % 64))
    case $kind in
    ends) job=(ends $((3 + at))) ;;
    freed) job=(freed $((1 + at % 16))) ;;
    denied) job=(denied "$at") ;;
    *) job=(step "$kind" "$at") ;;
    esac
    on "$mpi" "$ranks" env LINEWEAVE_MPI_FORM=beside LINEWEAVE_MPI_AFTER=4 LINEWEAVE_MPI_RACE=$race "$lineweave" run -- \
        "$mpis/built/forming-${mpi/impi-rt/mpich}" "${job[@]}" >"$scratch/said" 2>&1 || status=$?
    if [ "$kind" = kill ] && [ "$status" -ne 124 ]; then status=$((!status)); fi
    if [ "$status" -ne 0 ] || [ $((SECONDS - began)) -ge 290 ] || grep -q ': expected ' "$scratch/said"; then
        cat "$scratch/said"
        echo "fault $number of seed $seed: ${job[*]}, $ranks ranks, LINEWEAVE_MPI_RACE=$race: status $status after $((SECONDS - began)) s"
        return 1
    fi
}

# faults MPI MANY: so many of them.
faults() {
    local number wrong=0
    for ((number = 0; number < $2; number++)); do fault "$1" "$number" || wrong=$((wrong + 1)); done
    echo "$2 faults, $wrong wrong"
    [ "$wrong" -eq 0 ]
}

# one_cpu MPI RANKS COMMAND...: as beside, with all ranks and their threads on one CPU.
one_cpu() {
    local mpi=$1 ranks=$2 cpu
    shift 2
    cpu=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
    on "$mpi" "$ranks" env LINEWEAVE_MPI_FORM=beside LINEWEAVE_MPI_AFTER=4 LINEWEAVE_MPI_RACE=0 MPIR_CVAR_CH4_PROGRESS_THROTTLE=1 \
        MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT=8 PRTE_MCA_hwloc_default_binding_policy=none \
        taskset -c "$cpu" "$lineweave" run --report "$scratch/report" -- "$@"
}

# starves MPI: a team changes over although its threads get hardly any CPU for a second, and no call waits for them.
starves() {
    rm -f "$scratch/report"
    beside "$1" 2 "$mpis/built/forming-$1" starved && grep -q '"taken":[1-9]' "$scratch/report"
}

# rules_beside MPI RANKS: what other tests run with teams that form within calls.
rules_beside() {
    local mpi=$1 ranks=$2 built=$mpis/built of=${1/impi-rt/mpich} kind
    check "$mpi: teams beside, rules, $ranks ranks" beside "$mpi" "$ranks" "$built/rules-$of"
    check "$mpi: teams and plans beside, rules, $ranks ranks" on "$mpi" "$ranks" env LINEWEAVE_MPI_FORM=beside "$lineweave" run -- "$built/rules-$of"
    check "$mpi: teams beside, requests, $ranks ranks" beside "$mpi" "$ranks" "$built/requests-$of"
    check "$mpi: teams and plans beside, requests, $ranks ranks, threads" on "$mpi" "$ranks" env LINEWEAVE_MPI_FORM=beside "$lineweave" run -- \
        "$built/requests-$of" threads
    for kind in rooted started late refused; do
        check "$mpi: teams beside, $kind, $ranks ranks" beside "$mpi" "$ranks" "$built/rooted-$of" "$kind"
    done
}

# plans_beside MPI RANKS SEED: some calls pass while plans are chosen, and later ones are lineweave's.
plans_beside() {
    rm -f "$scratch/report"
    on "$1" "$2" env LINEWEAVE_MPI_FORM=beside LINEWEAVE_MPI_AFTER=4 "$lineweave" run --report "$scratch/report" -- "$mpis/built/present-$1" "$3" 3000 &&
        grep -q '"its plans were being chosen":[1-9]' "$scratch/report" && grep -q '"taken":[1-9]' "$scratch/report"
}

# many_lengths MPI RANKS: of 12 lengths, two kinds and all roots, few calls wait for their plans, and most are lineweave's in the end. If plans were chosen within
# calls, at least one call at each rank would wait for each of them.
many_lengths() {
    local waited
    rm -f "$scratch/report"
    on "$1" "$2" env LINEWEAVE_MPI_FORM=beside LINEWEAVE_MPI_AFTER=4 LINEWEAVE_MPI_RACE=0 LINEWEAVE_KEEP_PLANS=0 "$lineweave" run --report "$scratch/report" -- \
        "$mpis/built/lengths-$1" 4 || return 1
    grep -E '"waited"|"collective":"(allreduce|bcast)"' "$scratch/report"
    waited=$(sed -n 's/.*"waited":\([0-9]*\).*/\1/p' "$scratch/report")
    [ "$waited" -lt $((12 * $2)) ] && grep -q '"its plans were being chosen":[1-9]' "$scratch/report" && grep -q '"taken":[1-9][0-9][0-9]' "$scratch/report"
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
    "$mpis/$mpi/bin/mpicc" -O1 -g -rdynamic mpi/tests/forming.c -o "$mpis/built/forming-$mpi" -lpthread -ldl
    forming=$mpis/built/forming-$mpi
    some=$numbers many=$faults harmed=${LINEWEAVE_TEST_FAULTS:-1000}
    if $short; then some=3 many=2 harmed=18; fi
    for ranks in $some; do
        if [ "$ranks" -lt 2 ]; then continue; fi
        check "$mpi: change-over, $ranks ranks: calls of all kinds" changes_over "$mpi" "$ranks" "$forming" calls
        check "$mpi: change-over, $ranks ranks: only started calls" changes_over "$mpi" "$ranks" "$forming" started
        check "$mpi: change-over, $ranks ranks: refused calls between" changes_over "$mpi" "$ranks" "$forming" refused
        check "$mpi: change-over, $ranks ranks: a slow rank" changes_over "$mpi" "$ranks" "$forming" slow
        check "$mpi: change-over, $ranks ranks: no thread may start" changes_over "$mpi" "$ranks" "$forming" no-thread
        check "$mpi: change-over, $ranks ranks: communicators that are freed meanwhile" beside "$mpi" "$ranks" "$forming" freed 40
        check "$mpi: change-over, $ranks ranks: a fork meanwhile" beside "$mpi" "$ranks" "$forming" fork
        check "$mpi: change-over, $ranks ranks: the kernel refuses threads to the last" says_beside "threads: 1 of $ranks ranks may start none" "$mpi" "$ranks" \
            "$forming" denied $((ranks - 1))
        check "$mpi: change-over, $ranks ranks: kinds of calls and communicators that never come again" beside "$mpi" "$ranks" "$forming" stops
    done
    if ! $short || [ "$mpi" = mpich ]; then
        check "$mpi: change-over, all ranks on one CPU" one_cpu "$mpi" 2 "$forming" calls
        check "$mpi: change-over, threads that starve" starves "$mpi"
    fi
    check "$mpi: $((harmed / 3)) ranks harmed while teams form and plans are chosen (seed $seed)" faults "$mpi" $((harmed / 3))
    if $short; then some=2; fi
    for ranks in $some; do
        if [ "$ranks" -ge 2 ]; then rules_beside "$mpi" "$ranks"; fi
    done
    for ((program = 0; program < many; program++)); do
        # Each kind and length changes over by itself, and is compared with the MPI then.
        check "$mpi: a random program whose plans are chosen beside it (seed $((seed + program)))" plans_beside "$mpi" 3 $((seed + program))
    done
    "$mpis/$mpi/bin/mpicc" -O1 -g mpi/tests/lengths.c -o "$mpis/built/lengths-$mpi"
    check "$mpi: plans of many lengths and roots, chosen beside the program" many_lengths "$mpi" 3
    "$mpis/$mpi/bin/mpicc" -O1 -g mpi/tests/memory.c -o "$mpis/built/memory-$mpi"
    check "$mpi: too little memory for long messages" says "rank 1 has no memory for long messages, which stay with" \
        on "$mpi" 2 env LINEWEAVE_MPI_FORM=beside LINEWEAVE_MPI_AFTER=4 "$lineweave" run -- "$mpis/built/memory-$mpi"
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
    if ! $short; then
        check "$mpi: 800 communicators of 8 threads, teams and plans beside" on "$mpi" 4 env LINEWEAVE_MPI_FORM=beside "$lineweave" run -- \
            "$mpis/built/crowd-$mpi" 8 800 2
    fi
done
if [ -e "$mpis/impi-rt/ready" ] && [ -e "$mpis/mpich/ready" ]; then
    if ! $short; then rules_beside impi-rt 3; fi
    check "impi-rt: $((harmed / 3)) ranks harmed while teams form and plans are chosen (seed $seed)" faults impi-rt $((harmed / 3))
fi
