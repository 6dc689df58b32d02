/*
 * What OpenMP's constructs take with OMP_NUM_THREADS threads, by the settings in the environment.
 *
 *   constructs WINDOW_MS
 *
 * Prints "openmp THREADS RUNTIME", RUNTIME being the library's file, then a line for each construct: its name, the number of threads, and the
 * time of one in ns for each batch. Batches of a construct are as long as a twentieth of the window, and run for the window, at least three.
 *
 * The same object file is linked with GNU's libgomp or with LLVM's libomp, which exports libgomp's entry points.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Serial work between two regions after which a program's next region has threads to wake. */
static const double serial_ns = 1e6;
enum { LEAST = 3, MOST = 512 };

static volatile struct {
    _Alignas(128) long count;
} work[1024];

static void touch(void) { work[omp_get_thread_num() % 1024].count++; }

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* ---- one of each, called by all threads of a region ---- */

static void barrier(void)
{
#pragma omp barrier
}

static void loop(void)
{
    int threads = omp_get_num_threads();
#pragma omp for schedule(dynamic)
    for (int i = 0; i < 4 * threads; i++) touch();
}

static long sum;

static void reduction(void)
{
    int threads = omp_get_num_threads();
#pragma omp for reduction(+ : sum)
    for (int i = 0; i < threads; i++) sum += i;
}

static void tasks(void)
{
#pragma omp single
    {
        int threads = omp_get_num_threads();
        for (int i = 0; i < 2 * threads; i++) {
#pragma omp task
            touch();
        }
#pragma omp taskwait
    }
}

/* So many within one region: ns of the first thread, from when all are there. */
static double in_region(void (*step)(void), long count)
{
    double began = 0, ended = 0;
#pragma omp parallel
    {
        int first = omp_get_thread_num() == 0;
#pragma omp barrier
        if (first) began = now_ns();
        for (long i = 0; i < count; i++) step();
        if (first) ended = now_ns();
    }
    return ended - began;
}

/* ---- regions, called by the first thread alone ---- */

static double regions(void (*step)(void), long count)
{
    (void)step;
    double began = now_ns();
    for (long i = 0; i < count; i++) {
#pragma omp parallel
        touch();
    }
    return now_ns() - began;
}

static double regions_after_work(void (*step)(void), long count)
{
    double spent = 0;
    for (long i = 0; i < count; i++) {
        double until = now_ns() + serial_ns;
        while (now_ns() < until) {
        }
        spent += regions(step, 1);
    }
    return spent;
}

static const struct {
    const char *name;
    double (*run)(void (*step)(void), long count);
    void (*step)(void);
} constructs[] = {
    {"barrier", in_region, barrier},   {"for", in_region, loop},         {"reduction", in_region, reduction},
    {"taskwait", in_region, tasks},    {"region", regions, barrier},     {"region-after-work", regions_after_work, barrier},
};

int main(int argc, char **argv)
{
    double window_ns = argc == 2 ? atof(argv[1]) * 1e6 : 0;
    if (!(window_ns > 0)) {
        fprintf(stderr, "usage: %s WINDOW_MS\n", argv[0]);
        return 2;
    }
    int threads = 0;
#pragma omp parallel
#pragma omp single
    threads = omp_get_num_threads();
    Dl_info info;
    const char *runtime = "unknown";
    if (dladdr((void *)(uintptr_t)omp_get_num_threads, &info) && info.dli_fname) runtime = info.dli_fname;
    printf("openmp %d %s\n", threads, runtime);
    for (size_t c = 0; c < sizeof constructs / sizeof *constructs; c++) {
        long count = 1;
        double (*run)(void (*)(void), long) = constructs[c].run;
        /* The first ones start threads and fill caches. A region behind serial work has a batch of its own. */
        run(constructs[c].step, 2);
        while (run != regions_after_work && run(constructs[c].step, count) < window_ns / 20 && count < 1 << 20) count *= 2;
        printf("%s %d", constructs[c].name, threads);
        double until = now_ns() + window_ns;
        for (int batch = 0; batch < MOST && (batch < LEAST || now_ns() < until); batch++)
            printf(" %.1f", run(constructs[c].step, count) / (double)count);
        printf("\n");
        fflush(stdout);
    }
    return 0;
}
