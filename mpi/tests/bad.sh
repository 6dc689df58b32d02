# Bad input: part of scripts/test-mpi, which has `check`, `judge`, `on`, `scratch`, `mpis`, `built` and `lineweave`.

# ---- what needs no MPI ----

# An MPI of an interface that lineweave does not know, and one with a known name that is something else.
printf 'int MPI_Init(int *c, char ***v) { return 0; }\nint MPI_Finalize(void) { return 0; }\n' >"$scratch/mpi.c"
printf 'int MPI_Init(int *, char ***); int MPI_Finalize(void);\nint main(void) { MPI_Init(0, 0); MPI_Finalize(); return 7; }\n' >"$scratch/uses.c"
for name in libmpi.so.20 libmpi.so.40; do
    mkdir -p "$scratch/$name.d"
    "${CC:-cc}" -shared -fPIC "$scratch/mpi.c" -Wl,-soname,"$name" -o "$scratch/$name.d/$name"
    "${CC:-cc}" "$scratch/uses.c" "$scratch/$name.d/$name" -Wl,-rpath,"$scratch/$name.d" -o "$scratch/$name.d/uses"
done
status=0
"$lineweave" run -- "$scratch/libmpi.so.20.d/uses" >"$scratch/log" 2>&1 || status=$?
judge "an MPI of unknown interface: one line, and the program runs" "$([ "$status" -eq 7 ] && [ "$(wc -l <"$scratch/log")" -eq 1 ] && grep -q libmpi.so.20 "$scratch/log"; echo $?)"
status=0
"$lineweave" run -- "$scratch/libmpi.so.40.d/uses" >"$scratch/log" 2>&1 || status=$?
judge "an MPI without what lineweave needs: one line, and the program runs" "$([ "$status" -eq 7 ] && [ "$(wc -l <"$scratch/log")" -eq 1 ] && grep -q PMPI_ "$scratch/log"; echo $?)"

# ---- under an MPI ----

"${CC:-cc}" -O1 -w mpi/tests/deny.c -o "$scratch/deny"

# loses_one MPI SEED: the job ends by itself, fails, lineweave names nobody but the rank that was lost, and nothing stays behind.
loses_one() {
    # Intel MPI takes what MPICH's compiler makes.
    local status=0 program=$mpis/built/bad-${1/impi-rt/mpich} lost
    on "$1" 3 env LINEWEAVE_STOP_TIMEOUT=0.5 "$lineweave" run -- "$program" lost "$2" >"$scratch/said" 2>&1 || status=$?
    cat "$scratch/said"
    lost=$(sed -n 's/.*bad: rank \([0-9]*\) is lost.*/\1/p' "$scratch/said")
    if [ "$status" -eq 0 ] || [ "$status" -eq 124 ] || [ -z "$lost" ]; then return 1; fi
    if grep -aoE 'lineweave: .* failed at rank [0-9]+: rank [0-9]+ \(pid' "$scratch/said" | grep -v ": rank $lost (pid"; then return 1; fi
    ! pgrep -f "^$program lost $2\$" && ! compgen -G '/dev/shm/*lineweave*'
}

# lose_many MPI: as many jobs as LINEWEAVE_TEST_FAULTS says.
lose_many() {
    local seed
    for seed in $(seq "$faults"); do
        loses_one "$1" "$seed" || { echo "seed $seed"; return 1; }
    done
}

for mpi in openmpi mpich; do
    if [ ! -e "$mpis/$mpi/ready" ]; then continue; fi
    "$mpis/$mpi/bin/mpicc" -O1 -g mpi/tests/bad.c -o "$mpis/built/bad-$mpi" -lpthread
    bad=("$lineweave" run -- "$mpis/built/bad-$mpi")
    export LINEWEAVE_MPI_RACE=0
    check "$mpi: ranks of a program without calls learn nothing of each other" says "0 of 0 collective calls of rank 0 taken over" \
        on "$mpi" 2 "${bad[@]}" nothing
    # The bcast of MPICH waits at times.
    if on "$mpi" 2 timeout 20 "$mpis/built/bad-$mpi" ahead >"$scratch/log" 2>&1; then
        check "$mpi: nor where a rank may come out of each call before another went in" says "0 of 40 collective calls of rank 0 taken over" \
            on "$mpi" 2 "${bad[@]}" ahead
    fi
    for kind in nofinalize abort die fork; do
        plain=0
        on "$mpi" 2 "$mpis/built/bad-$mpi" "$kind" >"$scratch/log" 2>&1 || plain=$?
        check "$mpi: $kind ends as without lineweave" ends_like "$plain" on "$mpi" 3 "${bad[@]}" "$kind"
    done
    check "$mpi: none may trace" says "bad: computed" on "$mpi" 3 "$scratch/deny" "${bad[@]}" right
    # LINEWEAVE_QUIET off: the table says that calls were taken over nevertheless.
    check "$mpi: none may trace, and calls are taken over" says "taken over from" on "$mpi" 3 "$scratch/deny" "${bad[@]}" right
    # Without /dev/shm: where that MPI bears it.
    hidden=(unshare --mount bash -c 'mount -t tmpfs -o ro,size=4k none /dev/shm && exec "$@"' -)
    if "${hidden[@]}" true 2>/dev/null; then
        with_shm_hidden() {
            local options=()
            if [ "$mpi" = openmpi ]; then options=(--oversubscribe); fi
            (
                export PATH=$mpis/$mpi/bin:$PATH LD_LIBRARY_PATH=$mpis/$mpi/lib
                timeout -k 5 60 "${hidden[@]}" mpirun "${options[@]}" -n 2 "$@"
            )
        }
        if with_shm_hidden "$mpis/built/bad-$mpi" right >"$scratch/log" 2>&1; then
            check "$mpi: /dev/shm cannot be written" says "bad: computed" with_shm_hidden "${bad[@]}" right
        else
            check "$mpi: /dev/shm cannot be written: that MPI fails by itself, and with lineweave" ends_like 1 with_shm_hidden "${bad[@]}" right
        fi
    else
        echo "skipped $mpi without /dev/shm: a mount needs root"
    fi
    unset LINEWEAVE_MPI_RACE
done

# ---- a library for another MPI than the program has ----

# other MPI RANKS KIND COMMAND...: the program ends as without lineweave, and one line says that nothing is taken over. LAUNCH: `on`, or as it.
other() {
    local mpi=$1 ranks=$2 kind=$3 without=0 with=0
    shift 3
    "${LAUNCH:-on}" "$mpi" "$ranks" "$@" >"$scratch/without" 2>/dev/null || without=$?
    "${LAUNCH:-on}" "$mpi" "$ranks" "$lineweave" run --mpi "$kind" -- "$@" >"$scratch/with" 2>"$scratch/said" || with=$?
    cat "$scratch/said"
    [ "$with" -eq "$without" ] && diff <(sort "$scratch/without") <(sort "$scratch/with") && [ "$(grep -c '^lineweave: ' "$scratch/said")" -eq 1 ] &&
        grep -q "the library for .* was preloaded; nothing is taken over" "$scratch/said"
}

for mpi in openmpi mpich impi-rt; do
    if [ ! -e "$mpis/$mpi/ready" ]; then continue; fi
    for kind in openmpi mpich standard; do
        if [ "$kind" = "${mpi/impi-rt/mpich}" ]; then continue; fi
        for ranks in 1 2 4; do check "$mpi: a library for $kind, $ranks ranks" other "$mpi" "$ranks" "$kind" "$mpis/built/bad-${mpi/impi-rt/mpich}" right; done
        # It opens its MPI late, and looks for functions with large counts.
        check "$mpi: a library for $kind, mpi4py" other "$mpi" 2 "$kind" "$mpis/$mpi/bin/python" mpi/tests/late.py
        check "$mpi: a library for $kind, through a shell" other "$mpi" 2 "$kind" sh -c "'$mpis/$mpi/bin/python' mpi/tests/late.py"
    done
done

# ---- one rank that cannot take part ----

# The first rank has a profile that is none, and finds that out while others wait for it to meet.
told_at_once() {
    local began=$SECONDS
    on "$1" 3 env LINEWEAVE_PROFILE="$scratch/none.toml" LINEWEAVE_MPI_AFTER=0 "$mpis/built/preloaded" "$built/liblineweave_mpi_${1/impi-rt/mpich}.so" \
        "$mpis/built/bad-${1/impi-rt/mpich}" right && [ $((SECONDS - began)) -lt 20 ]
}

# refused MPI RANK: of three ranks one is not to start, which others would wait for in MPI_Init.
refused() {
    local began=$SECONDS status=0
    on "$1" 3 "$mpis/built/one-rank" "$2" LINEWEAVE_PROFILE="$scratch/none.toml" "$lineweave" run -- "$mpis/built/bad-${1/impi-rt/mpich}" right \
        >"$scratch/said" 2>&1 || status=$?
    cat "$scratch/said"
    [ "$status" -eq 2 ] && [ $((SECONDS - began)) -lt 10 ] && [ "$(grep -c '^lineweave: .*LINEWEAVE_PROFILE_OPTIONAL' "$scratch/said")" -eq 1 ]
}

printf 'x = 1\n' >"$scratch/none.toml"
printf '#!/bin/sh\nLD_PRELOAD=$1 exec "$2" "$3"\n' >"$mpis/built/preloaded"
chmod +x "$mpis/built/preloaded"
for mpi in openmpi mpich; do
    if [ -e "$mpis/$mpi/ready" ]; then check "$mpi: who cannot form a team tells the others at once" told_at_once "$mpi"; fi
done
cat >"$mpis/built/one-rank" <<'END'
#!/bin/sh
rank=$1 setting=$2
shift 2
if [ "${PMI_RANK:-$PMIX_RANK}" = "$rank" ]; then export "$setting"; fi
exec "$@"
END
chmod +x "$mpis/built/one-rank"
for mpi in openmpi mpich impi-rt; do
    if [ ! -e "$mpis/$mpi/ready" ]; then continue; fi
    for rank in 0 2; do check "$mpi: a profile that rank $rank refuses ends the job" refused "$mpi" "$rank"; done
done

# ---- calls that the host refuses at a rank ----

# answers PROGRAM...: what the host does with identical buffers.
answers() { "$@" 2>&1 | grep '^same:'; }

# as_by_itself MPI RANKS PROGRAM: the same answers with lineweave, which printed some.
as_by_itself() {
    answers on "$1" "$2" "$3" same >"$scratch/without" && answers on "$1" "$2" "$lineweave" run -- "$3" same >"$scratch/with" &&
        diff "$scratch/without" "$scratch/with"
}

for mpi in openmpi mpich impi-rt; do
    if [ ! -e "$mpis/$mpi/ready" ]; then continue; fi
    program=$mpis/built/refused-${mpi/impi-rt/mpich}
    if [ "$mpi" != impi-rt ]; then "$mpis/$mpi/bin/mpicc" -O1 -g mpi/tests/refused.c -o "$program"; fi
    if [ ! -x "$program" ]; then continue; fi
    export LINEWEAVE_MPI_RACE=0
    check "$mpi: a rank that is killed, stops or exits ($faults times)" lose_many "$mpi"
    for race in 0 1; do
        export LINEWEAVE_MPI_RACE=$race
        for after in 0 4; do
            check "$mpi: refused calls count nowhere (race $race, after $after)" on "$mpi" 3 env LINEWEAVE_MPI_AFTER=$after "$lineweave" run -- "$program" alone
        done
        check "$mpi: identical buffers are answered as without lineweave (race $race)" as_by_itself "$mpi" 3 "$program"
        # MPICH and Intel MPI do not go on by themselves.
        if LINEWEAVE_QUIET=1 on "$mpi" 3 timeout 20 "$program" carried >"$scratch/log" 2>&1; then
            check "$mpi: a refused call that others carried out (race $race)" on "$mpi" 3 "$lineweave" run -- "$program" carried
        fi
    done
    unset LINEWEAVE_MPI_RACE
done
