/*
 * What OpenMP promises of barriers, for programs that GCC compiled: the same program with lineweave and without, under libgomp and libomp.
 *
 *   rules PART THREADS
 *
 * Prints one line with what was computed, and says what is wrong; the status is 1 then.
 */
#define _GNU_SOURCE
#include <omp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 64, ROUNDS = 400 };

static int threads;
static long sum;
static int wrong;

#define CHECK(condition)                                                                                                                  \
    do {                                                                                                                                  \
        if (!(condition) && !__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED)) fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
    } while (0)

static void add(long value) { __atomic_fetch_add(&sum, value, __ATOMIC_RELAXED); }

/* Nobody leaves a barrier before all have come: each thread writes its round, and after the barrier all have written it. */
static void rounds(int many)
{
    int size = omp_get_num_threads(), mine = omp_get_thread_num();
    static int seen[MOST][MOST];
    int(*written) = seen[omp_get_level() > 1 ? omp_get_ancestor_thread_num(1) : 0];
    for (int i = 1; i <= many; i++) {
        written[mine] = i;
#pragma omp barrier
        for (int t = 0; t < size; t++) CHECK(written[t] == i);
#pragma omp barrier
    }
    add(many);
}

static void part_barriers(void)
{
#pragma omp parallel num_threads(threads)
    rounds(ROUNDS);
}

/* Many regions, of all sizes by turns, and with one barrier each. */
static void part_sizes(void)
{
    for (int i = 0; i < 120; i++) {
#pragma omp parallel num_threads(1 + i % threads)
        rounds(5);
    }
    for (int i = 0; i < 300; i++) {
        int one = 0;
#pragma omp parallel num_threads(threads)
        {
#pragma omp atomic
            one++;
#pragma omp barrier
            CHECK(one == threads);
            add(1);
        }
    }
}

static void part_loops(void)
{
    static long values[1000];
    long total = 0;
#pragma omp parallel num_threads(threads) reduction(+ : total)
    for (int round = 0; round < 60; round++) {
#pragma omp for schedule(dynamic, 7)
        for (int i = 0; i < 1000; i++) values[i] = i + round;
#pragma omp for schedule(guided)
        for (int i = 0; i < 1000; i++) total += values[999 - i];
#pragma omp for schedule(static)
        for (int i = 0; i < 1000; i++) values[i] = -1;
#pragma omp for schedule(runtime)
        for (int i = 0; i < 1000; i++) CHECK(values[i] == -1);
#pragma omp for ordered schedule(dynamic)
        for (int i = 0; i < 50; i++) {
#pragma omp ordered
            values[i] = i ? values[i - 1] + 1 : 1;
        }
#pragma omp sections
        {
#pragma omp section
            values[100] = values[49];
#pragma omp section
            values[101] = values[48];
        }
        CHECK(values[100] == 50 && values[101] == 49);
        long copied;
#pragma omp single copyprivate(copied)
        copied = round * 3;
        CHECK(copied == round * 3);
#pragma omp single
        values[0] = copied;
        CHECK(values[0] == copied);
#pragma omp for schedule(dynamic) nowait
        for (int i = 200; i < 300; i++) values[i] = i;
#pragma omp barrier
        CHECK(values[299] == 299);
        /* The next round writes what is read here. */
#pragma omp barrier
    }
    add(total);
    long number = 0;
#pragma omp parallel for num_threads(threads) schedule(dynamic) reduction(+ : number)
    for (int i = 0; i < 500; i++) number += i;
    add(number);
}

/* Teams in teams, each with its own barriers, and regions of one thread within them. */
static void part_nested(void)
{
    omp_set_max_active_levels(2);
    for (int i = 0; i < 10; i++) {
#pragma omp parallel num_threads(2)
        {
#pragma omp barrier
#pragma omp parallel num_threads(threads)
            {
                rounds(20);
#pragma omp parallel num_threads(2)
                {
#pragma omp barrier
                    add(omp_get_num_threads());
                }
#pragma omp barrier
            }
#pragma omp parallel if (0)
            {
#pragma omp barrier
                add(1);
            }
#pragma omp barrier
        }
    }
}

/* Several threads of the program, each with teams of its own, which come and go. */
static void *one_of_several(void *number)
{
    omp_set_dynamic(0);
    for (int i = 0; i < 20; i++) {
        int in = 0;
#pragma omp parallel num_threads(threads)
        for (int round = 1; round <= 10; round++) {
#pragma omp atomic
            in++;
#pragma omp barrier
            CHECK(in == round * threads);
#pragma omp barrier
        }
        add(in + (number == NULL));
    }
    return NULL;
}

static void part_several(void)
{
    for (int wave = 0; wave < 3; wave++) {
        pthread_t others[3];
        for (int i = 0; i < 3; i++) pthread_create(&others[i], NULL, one_of_several, others);
        one_of_several(NULL);
        for (int i = 0; i < 3; i++) pthread_join(others[i], NULL);
    }
}

static long fibonacci(int n)
{
    if (n < 2) return n;
    long a, b;
#pragma omp task shared(a)
    a = fibonacci(n - 1);
#pragma omp task shared(b)
    b = fibonacci(n - 2);
#pragma omp taskwait
    return a + b;
}

/* The runtime finds the sums of tasks by the region's data, before the region begins. */
static void part_reductions(void)
{
    long summed = 0;
#pragma omp parallel num_threads(threads) reduction(task, + : summed)
    {
        rounds(3);
#pragma omp task in_reduction(+ : summed)
        summed += 5;
    }
    CHECK(summed == 5 * threads);
    add(summed);
}

/* Tasks that a thread made are over after the barrier. */
static void part_tasks(void)
{
    part_barriers();
    int done = 0;
#pragma omp parallel num_threads(threads)
    {
        rounds(3);
        for (int round = 1; round <= 30; round++) {
#pragma omp barrier
            if (omp_get_thread_num() == round % threads) {
                for (int i = 0; i < 20; i++) {
#pragma omp task
                    __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
                }
            }
#pragma omp barrier
            CHECK(__atomic_load_n(&done, __ATOMIC_RELAXED) == 20 * round);
        }
    }
    add(done);
#pragma omp parallel num_threads(threads)
    {
#pragma omp single
        add(fibonacci(12));
#pragma omp for schedule(dynamic)
        for (int i = 0; i < 100; i++) {
#pragma omp task
            add(1);
        }
        rounds(2);
    }
    part_barriers();
}

/* The first task of the program, while the others wait at the end of `single`: they must carry tasks out, as the maker waits for one. */
static void part_helped(void)
{
    part_barriers();
    int ran = 0;
#pragma omp parallel num_threads(threads)
    {
#pragma omp single
        {
            for (int i = 0; i < 4; i++) {
#pragma omp task
                __atomic_store_n(&ran, 1, __ATOMIC_RELEASE);
            }
            /* Long enough for sleepers to be called. */
            for (int i = 0; threads > 1 && i < 20000 && !__atomic_load_n(&ran, __ATOMIC_ACQUIRE); i++) usleep(500);
            CHECK(threads == 1 || ran);
        }
    }
    add(ran);
}

static void part_cancel(void)
{
    int found = 0;
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(dynamic)
        for (int i = 0; i < 1000; i++) {
            if (i == 17) {
                __atomic_store_n(&found, 1, __ATOMIC_RELAXED);
#pragma omp cancel for
            }
#pragma omp cancellation point for
        }
#pragma omp barrier
        CHECK(found == 1);
    }
    for (int i = 0; i < 20; i++) {
#pragma omp parallel num_threads(threads)
        {
#pragma omp cancel parallel if (omp_get_thread_num() == threads - 1 && i % 2)
#pragma omp barrier
#pragma omp cancellation point parallel
            if (!omp_get_cancellation()) add(1);
        }
    }
    part_barriers();
}

/* A child before the first region, and one after it that ends at once. */
static void part_fork(void)
{
    for (int after = 0; after < 2; after++) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            if (!after) part_barriers();
            fflush(NULL);
            exit(wrong ? 1 : 7);
        }
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
        part_barriers();
    }
}

/* Ends within a region, by the thread that began it. */
static void part_exit(void)
{
#pragma omp parallel num_threads(threads)
    {
        rounds(ROUNDS);
#pragma omp master
        exit(5);
#pragma omp barrier
    }
}

/* Long waits: threads sleep and are woken. */
static void part_late(void)
{
#pragma omp parallel num_threads(threads)
    for (int round = 0; round < 8; round++) {
        if (round % omp_get_num_threads() == omp_get_thread_num()) usleep(20000);
        rounds(4);
    }
}

/* Where the program's memory comes to lie in its heap, before a region and after it. */
static void part_heap(void)
{
    add((long)((uintptr_t)malloc(24) % 4096));
#pragma omp parallel num_threads(threads)
    {
#pragma omp barrier
    }
    add((long)((uintptr_t)malloc(24) % 4096 * 4096));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {{"barriers", part_barriers}, {"sizes", part_sizes}, {"loops", part_loops},   {"nested", part_nested},
                 {"several", part_several},   {"tasks", part_tasks}, {"helped", part_helped}, {"cancel", part_cancel},
                 {"fork", part_fork},         {"exit", part_exit},   {"late", part_late},
                 {"reductions", part_reductions}, {"heap", part_heap}};
    threads = argc == 3 ? atoi(argv[2]) : 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && threads > 0 && threads <= MOST; i++) {
        if (strcmp(argv[1], parts[i].name) != 0) continue;
        omp_set_dynamic(0);
        parts[i].run();
        printf("%s %d: %ld\n", argv[1], threads, sum);
        return wrong != 0;
    }
    fprintf(stderr, "usage: %s PART THREADS\n", argv[0]);
    return 2;
}
