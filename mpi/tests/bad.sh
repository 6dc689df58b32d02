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

# Another interposer, which counts.
cat >"$scratch/other.c" <<'OTHER'
#include <mpi.h>
#include <stdio.h>
static int calls;
int MPI_Allreduce(const void *s, void *r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c) { calls++; return PMPI_Allreduce(s, r, n, t, op, c); }
int MPI_Finalize(void) { fprintf(stderr, "other: %d\n", calls); return PMPI_Finalize(); }
OTHER
"${CC:-cc}" -O1 -w mpi/tests/deny.c -o "$scratch/deny"

# ends_like STATUS COMMAND...: it ends by itself, and fails or not as it should (0, or anything else).
# 124 is timeout's; 137 may be a rank's that was killed.
ends_like() {
    local wanted=$1 status=0
    shift
    "$@" || status=$?
    [ "$status" -ne 124 ] && { [ "$status" -ne 137 ] || [ "$wanted" -eq 137 ]; } && [ $((!!status)) -eq $((!!wanted)) ]
}

for mpi in openmpi mpich; do
    if [ ! -e "$mpis/$mpi/ready" ]; then continue; fi
    "$mpis/$mpi/bin/mpicc" -O1 -g mpi/tests/bad.c -o "$mpis/built/bad-$mpi"
    "$mpis/$mpi/bin/mpicc" -shared -fPIC "$scratch/other.c" -o "$scratch/other-$mpi.so"
    bad=("$lineweave" run -- "$mpis/built/bad-$mpi")
    export LINEWEAVE_MPI_RACE=0
    check "$mpi: another interposer is named, with the order" says "other-$mpi.so is preloaded too and has MPI functions: lineweave comes first" \
        on "$mpi" 2 env LD_PRELOAD="$scratch/other-$mpi.so" "${bad[@]}" right
    # What passes goes through it: the four calls before there is a team.
    check "$mpi: what passes goes through another interposer" says "other: 4" on "$mpi" 2 env LD_PRELOAD="$scratch/other-$mpi.so" "${bad[@]}" right
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
    # Intel MPI takes what MPICH's compiler makes.
    program=$mpis/built/refused-${mpi/impi-rt/mpich}
    if [ "$mpi" != impi-rt ]; then "$mpis/$mpi/bin/mpicc" -O1 -g mpi/tests/refused.c -o "$program"; fi
    if [ ! -x "$program" ]; then continue; fi
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
