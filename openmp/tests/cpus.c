/*
 * How many CPUs a process counts on, by the sets that this program says it and its parent have.
 *
 *   OWN=4 PARENT=16 OMPI_COMM_WORLD_LOCAL_SIZE=2 cpus
 *
 * Is linked with the library's sources, and prints the number.
 */
#define _GNU_SOURCE
#include "../src/lwo.h"

#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

/* In place of the system's. */
int sched_getaffinity(pid_t process, size_t size, cpu_set_t *set)
{
    int cpus = atoi(getenv(process ? "PARENT" : "OWN"));
    CPU_ZERO_S(size, set);
    for (int i = 0; i < cpus; i++) CPU_SET_S((size_t)i, size, set);
    return cpus ? 0 : -1;
}

int main(void)
{
    /* Of the runtime, so that it is loaded. */
    if (omp_get_max_threads() < 1) return 1;
    printf("%d\n", lwo_cpus);
    return 0;
}
