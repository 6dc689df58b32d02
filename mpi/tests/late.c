/* A program that opens its MPI late and asks the loader for what it calls, as plugins do: late LIBRARY local|global|blind. Blind, it asks
 * the C library's own dlsym, past all that is preloaded. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

/* Open MPI's constants are objects of its library. */
#ifdef OPEN_MPI
#define OBJECT(name, open_mpi) ask(mpi, open_mpi)
#else
#define OBJECT(name, open_mpi) name
#endif

int main(int argc, char **argv)
{
    const char *how = argc > 2 ? argv[2] : "";
    void *mpi = argc > 2 ? dlopen(argv[1], RTLD_NOW | (strcmp(how, "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL)) : NULL;
    void *(*ask)(void *, const char *) = dlsym;
    if (strcmp(how, "blind") == 0) ask = dlvsym(dlopen("libc.so.6", RTLD_NOW), "dlsym", "GLIBC_2.34");
    if (!mpi || !ask) {
        fprintf(stderr, "late: %s\n", argc > 2 ? dlerror() : "expected LIBRARY local|global|blind");
        return 1;
    }
    int (*init)(int *, char ***) = ask(mpi, "MPI_Init");
    int (*allreduce)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm) = ask(mpi, "MPI_Allreduce");
    int (*size)(MPI_Comm, int *) = ask(mpi, "MPI_Comm_size"), (*finalize)(void) = ask(mpi, "MPI_Finalize");
    MPI_Comm world = OBJECT(MPI_COMM_WORLD, "ompi_mpi_comm_world");
    MPI_Datatype real = OBJECT(MPI_DOUBLE, "ompi_mpi_double");
    MPI_Op add = OBJECT(MPI_SUM, "ompi_mpi_op_sum");
    /* Not MPI's: the loader's own answers. */
    int wrong = ask(mpi, "MPI_No_such_function") != NULL || dlsym(RTLD_DEFAULT, "printf") == NULL;
    int ranks;
    init(&argc, &argv);
    size(world, &ranks);
    for (int i = 0; i < 5000; i++) {
        double one = 1, sum = 0;
        allreduce(&one, &sum, 1, real, add, world);
        wrong += sum != ranks;
    }
    printf("late: %d wrong\n", wrong);
    return finalize() != 0 || wrong != 0;
}
