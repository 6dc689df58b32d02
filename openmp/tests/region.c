/*
 * What a parallel region costs: without a barrier, with one, or with two loops.
 *
 *   region THREADS none|barrier|loops REGIONS
 *
 * Prints the median time of a region, over 101 batches of REGIONS each, as {"median_ns": ...}.
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCHES = 101, MOST = 64 };

static volatile struct {
    _Alignas(128) int count;
} work[MOST];

static void step(void) { work[omp_get_thread_num()].count++; }

static void region(int threads, char kind)
{
    if (kind == 'n') {
#pragma omp parallel num_threads(threads)
        step();
    } else if (kind == 'b') {
#pragma omp parallel num_threads(threads)
        {
            step();
#pragma omp barrier
            step();
        }
    } else {
#pragma omp parallel num_threads(threads)
        {
#pragma omp for schedule(dynamic, 8)
            for (int i = 0; i < 64; i++) step();
#pragma omp for
            for (int i = 0; i < 64; i++) step();
        }
    }
}

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int threads = argc == 4 ? atoi(argv[1]) : 0, regions = argc == 4 ? atoi(argv[3]) : 0;
    if (threads < 1 || threads > MOST || regions < 1 || !strchr("nbl", argv[2][0])) {
        fprintf(stderr, "usage: %s THREADS none|barrier|loops REGIONS\n", argv[0]);
        return 2;
    }
    double batches[BATCHES];
    for (int b = 0; b < BATCHES; b++) {
        double began = now_ns();
        for (int i = 0; i < regions; i++) region(threads, argv[2][0]);
        batches[b] = (now_ns() - began) / regions;
    }
    qsort(batches, BATCHES, sizeof *batches, by_value);
    printf("{\"median_ns\": %.1f}\n", batches[BATCHES / 2]);
    return 0;
}
