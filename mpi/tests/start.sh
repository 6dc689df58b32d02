# Part of scripts/test-mpi: the small file that users start (mpi/start), and the chooser. They do for a plain program what the command does, and leave
# all else to it.

start=$scratch/start
built_path=$(realpath "$built")
mkdir -p "$start/bin" "$start/libexec" "$start/lib/lineweave" "$start/folder"
cp "$built/bin/lineweave" "$start/bin/lineweave"
ln -s "$built_path"/liblineweave_mpi_*.so "$start/lib/lineweave"
# In the command's place: it says what it was called with.
printf '#!/bin/sh\necho "the command, $*"\n' >"$start/libexec/lineweave"
printf '#!/bin/sh\n' >"$start/script"
chmod +x "$start/libexec/lineweave" "$start/script"
cat >"$start/program.c" <<'END'
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
int MPI_Init(int *, char ***);
int main(int n, char **words)
{
    char file[PATH_MAX] = "";
    const char *preloaded = getenv("LD_PRELOAD");
    if (n > 99) MPI_Init(&n, &words);
    printf("the program, with %s:", preloaded && realpath(preloaded, file) ? file : preloaded ? preloaded : "nothing");
    for (int i = 0; i < n; i++) printf(" %s", words[i]);
    printf(" QUIET=%s\n", getenv("LINEWEAVE_QUIET"));
    return 7;
}
END
for library in libmpi.so.12 libmpi.so.40 libmpi.so.20 libmpi_abi.so.1 libother.so; do
    echo 'int MPI_Init(int *n, char ***words) { return !n && !words; }' | "${CC:-cc}" -x c - -shared -fPIC -Wl,-soname,"$library" -o "$start/$library"
    "${CC:-cc}" "$start/program.c" "$start/$library" -lm -Wl,-rpath,"$start" -o "$start/with-$library"
done
"${CC:-cc}" "$start/program.c" "$start/libmpi.so.12" -Wl,--no-as-needed "$start/libother.so" -Wl,-rpath,"$start" -o "$start/with-two"
"${CC:-cc}" "$start/program.c" "$start/libmpi.so.12" -Wl,--no-as-needed -lgomp -Wl,-rpath,"$start" -o "$start/with-openmp"
cp "$start/with-libmpi.so.12" "$start/setuid"
chmod u+s "$start/setuid"

# alike WORD...: it becomes the program, and the program sees what it would see after the command.
alike() {
    local ours theirs ended=0 others=0
    ours=$(env -u LINEWEAVE_MPI_AFTER "$start/bin/$1" "${@:2}" 2>&1) || ended=$?
    theirs=$(env -u LINEWEAVE_MPI_AFTER "$built/$1" "${@:2}" 2>&1) || others=$?
    printf '%s\n%s\n' "$ours" "$theirs"
    [[ $ours == "the program, with $built_path/liblineweave_mpi_"* ]] && [ "$ours" = "$theirs" ] && [ "$ended" -eq "$others" ]
}
# left WORD...: it leaves this to the command, with all words.
left() { [ "$(env -u LINEWEAVE_MPI_AFTER PATH="$start/bin:$PATH" "$@")" = "the command, ${*:$((words + 1))}" ]; }

for library in libmpi.so.12 libmpi.so.40 libmpi_abi.so.1; do
    check "a program with $library is started without the command" alike lineweave run "$start/with-$library" a -- -b ''
done
program=$start/with-libmpi.so.12
check "so it is behind --" alike lineweave run -- "$program" --mpi
LINEWEAVE_QUIET=1 LINEWEAVE_ROOT=/opt check "so it is quietly" alike lineweave run "$program"
words=1
for given in "" run "run --" "run -n 2 $program" "run --json $program" "-q run $program" "runs $program" "run with-libmpi.so.12" "run $start/none" "run $start/folder" \
    "run $start/script" "run $scratch/static" "run $start/setuid" "run $start/with-libmpi.so.20" "run $start/with-libother.so" "run $start/with-two"; do
    # shellcheck disable=SC2086  # They are words.
    check "the command is called: lineweave ${given//$start\//}" left lineweave $given
done
words=3
for setting in LD_PRELOAD= LINEWEAVE_QUITE=1 LINEWEAVE_QUIET=yes LINEWEAVE_QUIET=10 LINEWEAVE_PROFILE=/none; do
    check "the command is called: $setting" left env "$setting" lineweave run "$program"
done

# chosen TEXT SETTING... PROGRAM: a program that another one started, so that the chooser is in it, comes to this, and its status is seen.
chosen() {
    local chooser=$built_path/liblineweave_chooser.so
    local said ended=0 expected=7
    [[ $1 != "the command"* ]] || expected=0
    said=$(env -u LINEWEAVE_MPI_AFTER LD_PRELOAD="$chooser" LINEWEAVE_RUN_COMMAND="$start/libexec/lineweave" "${@:2}" a 2>&1) || ended=$?
    printf "%s\n" "$said"
    [[ $said == *"$1"* ]] && [ "$ended" -eq "$expected" ]
}
check "behind another program: without an MPI, as it is" chosen "the program, with $built_path/liblineweave_chooser.so: " "$start/with-libother.so"
check "behind another program: with the library that it needs" chosen "with $built_path/liblineweave_mpi_openmpi.so:$built_path/liblineweave_chooser.so: $start/with-libmpi.so.40 a" \
    LINEWEAVE_MPI_REPORT=r "$start/with-libmpi.so.40"
check "behind another program the command is called: a setting" chosen "the command, run --chosen" LINEWEAVE_PROFILE=/none "$program"
check "behind another program the command is called: an unknown MPI" chosen "the command, run --chosen" "$start/with-libmpi.so.20"
check "behind another program the command is called: OpenMP" chosen "the command, run --chosen" "$start/with-openmp"
check "behind another program the command is called: a tool" chosen "the command, run --chosen" LD_PRELOAD="$built_path/liblineweave_chooser.so:$start/libother.so" "$program"
rm "$start/lib/lineweave/liblineweave_mpi_mpich.so"
words=1
check "the command says that a library is not there" left lineweave run "$program"
rm "$start/libexec/lineweave"
check "without the command, it says so" refuses "../libexec" "$start/bin/lineweave" --version
