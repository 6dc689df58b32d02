# The distribution's own MPIs and programs: part of scripts/test-mpi, which has `check`, `judge`, `scratch` and `lineweave`; `other` is in bad.sh.
# Missing programs are skipped, with the names of their packages: Debian's are gfortran, openmpi-bin, libopenmpi-dev, mpich,
# libmpich-dev, examl, mumps-test.

# under MPI RANKS COMMAND...: as `on`, by the distribution's launcher.
under() {
    local mpi=$1 ranks=$2 options=()
    shift 2
    if [ "$mpi" = openmpi ]; then options=(--oversubscribe); fi
    timeout -k 5 120 "mpirun.$mpi" "${options[@]}" -n "$ranks" "$@"
}

for mpi in openmpi mpich; do
    if ! command -v "mpicc.$mpi" >/dev/null || ! command -v "mpirun.$mpi" >/dev/null; then
        echo "skipped the distribution's $mpi: there is no mpicc.$mpi"
        continue
    fi
    options=(-O1 -g)
    # Persistent collectives are of MPI-4.
    if [ "$mpi" = openmpi ] && ! "mpicc.$mpi" -E -include mpi.h -x c /dev/null 2>/dev/null | grep -q MPI_Bcast_init; then options+=(-DNO_PERSISTENT); fi
    for program in rules requests; do
        "mpicc.$mpi" -w "${options[@]}" "mpi/tests/$program.c" -o "$scratch/$program-$mpi"
        check "the distribution's $mpi: $program, 3 ranks" under "$mpi" 3 env LINEWEAVE_MPI_RACE=0 "$lineweave" run -- "$scratch/$program-$mpi"
    done
    for binding in mpi mpi_f08; do
        define=()
        if [ "$binding" = mpi_f08 ]; then define=(-DF08); fi
        if ! "mpif90.$mpi" -w -fallow-argument-mismatch "${options[@]}" "${define[@]}" -J "$scratch" mpi/tests/fortran.F90 -o "$scratch/fortran-$mpi" 2>"$scratch/log"; then
            echo "skipped Fortran ($binding) under the distribution's $mpi: $(tail -n 1 "$scratch/log")"
            continue
        fi
        # MPICH 4.0 counts waitany's index from 0 in mpi_f08.
        if ! under "$mpi" 2 "$scratch/fortran-$mpi" >"$scratch/log" 2>&1; then
            echo "skipped Fortran ($binding) under the distribution's $mpi, which fails by itself: $(grep -m 1 wrong "$scratch/log")"
            continue
        fi
        for ranks in 1 2 3 4; do
            check "the distribution's $mpi: Fortran by $binding, $ranks ranks" under "$mpi" "$ranks" env LINEWEAVE_MPI_RACE=0 "$lineweave" run -- "$scratch/fortran-$mpi"
        done
        for kind in openmpi mpich standard; do
            if [ "$kind" = "$mpi" ]; then continue; fi
            for ranks in 1 2 4; do
                LAUNCH=under check "the distribution's $mpi: Fortran by $binding, a library for $kind, $ranks ranks" other "$mpi" "$ranks" "$kind" "$scratch/fortran-$mpi"
            done
        done
    done
done

# same_files A B FILE...: they are there, and the same.
same_files() {
    local a=$1 b=$2 file
    shift 2
    for file; do
        if ! [ -s "$a/$file" ] || ! cmp "$a/$file" "$b/$file"; then return 1; fi
    done
}

# A program in C: the likelihood of a phylogenetic tree, some 190,000 collectives.
examl=$(ls /usr/lib/examl/bin/examl-sse3 2>/dev/null || true)
if [ -n "$examl" ] && command -v parse-examl >/dev/null; then
    data=/usr/share/doc/examl/testData
    mkdir "$scratch/plain-examl" "$scratch/ours-examl"
    gunzip -c "$data/49.gz" >"$scratch/49"
    (cd "$scratch" && parse-examl -s 49 -q "$data/49.model" -m DNA -n 49) >/dev/null
    job=(-t "$data/49.tree" -m GAMMA -s "$scratch/49.binary" -n T -f e)
    (cd "$scratch/plain-examl" && under openmpi 2 "$examl" "${job[@]}") >"$scratch/log" 2>&1
    status=0
    (cd "$scratch/ours-examl" && under openmpi 2 "$lineweave" run --report report -- "$examl" "${job[@]}") >"$scratch/log" 2>&1 || status=$?
    judge "ExaML ends as without" "$status"
    check "ExaML: the same trees and models" same_files "$scratch/plain-examl" "$scratch/ours-examl" ExaML_TreeFile.T ExaML_modelFile.T.0
    check "ExaML: collectives were taken over" grep -q '"taken":[1-9][0-9]' "$scratch/ours-examl/report"
else
    echo "skipped ExaML: its package, examl, is not installed"
fi

# A program in Fortran: a sparse linear system, solved by MUMPS.
mumps=/usr/lib/mumps/dsimpletest
if [ -x "$mumps" ]; then
    # The output without times, and without digits that the order of sums changes.
    without_times() { grep -vE 'Time|time' "$1" | sed -E 's/([0-9]\.[0-9]{9})[0-9]*/\1/g'; }
    for ranks in 2 3; do
        status=0
        under openmpi "$ranks" "$mumps" <"${mumps%/*}/input_simpletest_real" >"$scratch/mumps-plain" 2>"$scratch/log" || status=$?
        LINEWEAVE_MPI_AFTER=0 LINEWEAVE_QUIET=1 under openmpi "$ranks" "$lineweave" run --report "$scratch/report" -- "$mumps" \
            <"${mumps%/*}/input_simpletest_real" >"$scratch/mumps-ours" 2>"$scratch/log" || status=$?
        diff <(without_times "$scratch/mumps-plain") <(without_times "$scratch/mumps-ours") >>"$scratch/log" || status=$?
        judge "MUMPS, $ranks ranks: the same output" "$status"
        check "MUMPS, $ranks ranks: collectives were taken over" grep -q '"taken":[1-9][0-9]' "$scratch/report"
    done
else
    echo "skipped MUMPS: its package, mumps-test, is not installed"
fi
