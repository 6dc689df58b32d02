/*
 * The calls that Clang makes of an OpenMP program, written by hand, so that they are tested where there is no Clang: regions with few and
 * with many variables, regions in regions, regions of one thread, tasks.
 *
 *   kmpc THREADS
 *
 * Prints one line with what was computed; the status is 1 when something is wrong.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct ident {
    int32_t reserved_1, flags, reserved_2, reserved_3;
    const char *source;
} ident;
typedef void micro(int32_t *gtid, int32_t *btid, ...);
typedef int32_t entry(int32_t gtid, void *task);

void __kmpc_fork_call(ident *, int32_t, micro *, ...);
void __kmpc_barrier(ident *, int32_t);
int32_t __kmpc_cancel_barrier(ident *, int32_t);
int32_t __kmpc_global_thread_num(ident *);
void __kmpc_push_num_threads(ident *, int32_t, int32_t);
void __kmpc_serialized_parallel(ident *, int32_t);
void __kmpc_end_serialized_parallel(ident *, int32_t);
void *__kmpc_omp_task_alloc(ident *, int32_t, int32_t, size_t, size_t, entry *);
int32_t __kmpc_omp_task(ident *, int32_t, void *);
int32_t __kmpc_reduce(ident *, int32_t, int32_t, size_t, void *, void (*)(void *, void *), void *);
void __kmpc_end_reduce(ident *, int32_t, void *);
int omp_get_thread_num(void);
int omp_get_num_threads(void);
int omp_get_ancestor_thread_num(int);
int omp_get_level(void);
void omp_set_dynamic(int);
void omp_set_max_active_levels(int);

/* KMP_IDENT_KMPC; a barrier's has its kind besides: one that the program says, or that ends a loop. */
static ident here = {0, 2, 0, 0, ";kmpc.c;main;1;1;;"}, barrier = {0, 0x22, 0, 0, ";kmpc.c;main;1;1;;"}, loop_end = {0, 0x42, 0, 0, ";kmpc.c;main;1;1;;"};

enum { MOST = 64, ROUNDS = 400 };
static int threads, wrong;
static long sum;

#define CHECK(condition)                                                                                                                  \
    do {                                                                                                                                  \
        if (!(condition) && !__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED)) fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
    } while (0)

static void add(long value) { __atomic_fetch_add(&sum, value, __ATOMIC_RELAXED); }

static void rounds(int gtid, int many)
{
    static int seen[MOST][MOST];
    int size = omp_get_num_threads(), mine = omp_get_thread_num();
    int *written = seen[omp_get_level() > 1 ? omp_get_ancestor_thread_num(1) : 0];
    for (int i = 1; i <= many; i++) {
        written[mine] = i;
        __kmpc_barrier(&barrier, gtid);
        for (int t = 0; t < size; t++) CHECK(written[t] == i);
        CHECK(__kmpc_cancel_barrier(&loop_end, gtid) == 0);
    }
    add(many);
}

static void no_variables(int32_t *gtid, int32_t *btid)
{
    (void)btid;
    rounds(*gtid, ROUNDS);
}

static void two_variables(int32_t *gtid, int32_t *btid, long *a, long *b)
{
    (void)btid;
    rounds(*gtid, 10);
    add(*a + *b);
    /* In the middle, a region of one thread with a barrier of its own. */
    if (omp_get_thread_num() == 0) {
        __kmpc_serialized_parallel(&here, *gtid);
        __kmpc_barrier(&here, *gtid);
        __kmpc_end_serialized_parallel(&here, *gtid);
    }
    rounds(*gtid, 10);
}

static void many_variables(int32_t *gtid, int32_t *btid, long *a, long *b, long *c, long *d, long *e, long *f, long *g, long *h, long *i,
                           long *j, long *k, long *l, long *m, long *n, long *o, long *p, long *q, long *r, long *s, long *t)
{
    (void)btid;
    rounds(*gtid, 10);
    add(*a + *b + *c + *d + *e + *f + *g + *h + *i + *j + *k + *l + *m + *n + *o + *p + *q + *r + *s + *t);
}

static void inner(int32_t *gtid, int32_t *btid)
{
    (void)btid;
    rounds(*gtid, 20);
}

static void outer(int32_t *gtid, int32_t *btid)
{
    (void)btid;
    __kmpc_barrier(&here, *gtid);
    __kmpc_push_num_threads(&here, *gtid, threads);
    __kmpc_fork_call(&here, 0, (micro *)inner);
    __kmpc_barrier(&here, *gtid);
}

static void add_up(void *left, void *right) { **(long **)left += **(long **)right; }

/* As of `for reduction(+: total)`: the runtime says whether a thread adds for all, by itself, or not at all; then all know the total. It takes a lock among
 * few threads, or lets each add where the flag says that the compiler can (`atomic`), and a tree among more than four. */
static void reductions(int32_t *gtid, int32_t *btid, long *atomic, long *total)
{
    (void)btid;
    static int32_t lock[8];
    ident place = here;
    if (*atomic) place.flags |= 0x10;
    rounds(*gtid, 2);
    for (int i = 1; i <= ROUNDS; i++) {
        long mine = i + omp_get_thread_num(), size = omp_get_num_threads();
        void *data[1] = {&mine};
        switch (__kmpc_reduce(&place, *gtid, 1, sizeof data, data, add_up, lock)) {
        case 1:
            *total += mine;
            __kmpc_end_reduce(&place, *gtid, lock);
            break;
        case 2:
            __atomic_fetch_add(total, mine, __ATOMIC_RELAXED);
            __kmpc_end_reduce(&place, *gtid, lock);
            break;
        }
        CHECK(__atomic_load_n(total, __ATOMIC_RELAXED) == size * (i * (i + 1) / 2) + i * size * (size - 1) / 2);
        __kmpc_barrier(&here, *gtid);
    }
}

static int done;

static int32_t one_task(int32_t gtid, void *task)
{
    (void)gtid;
    (void)task;
    __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
    return 0;
}

static void with_tasks(int32_t *gtid, int32_t *btid)
{
    (void)btid;
    for (int round = 1; round <= 20; round++) {
        if (omp_get_thread_num() == round % threads) {
            /* Tied tasks; 40 bytes are enough for kmp_task_t. */
            for (int i = 0; i < 10; i++) __kmpc_omp_task(&here, *gtid, __kmpc_omp_task_alloc(&here, *gtid, 1, 40, 0, one_task));
        }
        __kmpc_barrier(&here, *gtid);
        CHECK(__atomic_load_n(&done, __ATOMIC_RELAXED) == 10 * round);
        __kmpc_barrier(&here, *gtid);
    }
}

int main(int argc, char **argv)
{
    threads = argc == 2 ? atoi(argv[1]) : 0;
    if (threads < 1 || threads > MOST) return 2;
    omp_set_dynamic(0);
    omp_set_max_active_levels(2);
    int32_t gtid = __kmpc_global_thread_num(&here);
    long v[20];
    for (int i = 0; i < 20; i++) v[i] = 1L << i;
    __kmpc_push_num_threads(&here, gtid, threads);
    __kmpc_fork_call(&here, 0, (micro *)no_variables);
    for (int i = 0; i < 30; i++) {
        __kmpc_push_num_threads(&here, gtid, 1 + i % threads);
        __kmpc_fork_call(&here, 2, (micro *)two_variables, &v[1], &v[2]);
        __kmpc_push_num_threads(&here, gtid, threads);
        __kmpc_fork_call(&here, 20, (micro *)many_variables, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7], &v[8], &v[9], &v[10],
                         &v[11], &v[12], &v[13], &v[14], &v[15], &v[16], &v[17], &v[18], &v[19]);
    }
    __kmpc_push_num_threads(&here, gtid, 2);
    __kmpc_fork_call(&here, 0, (micro *)outer);
    for (long atomic = 0; atomic < 2; atomic++) {
        long total = 0;
        __kmpc_push_num_threads(&here, gtid, threads);
        __kmpc_fork_call(&here, 2, (micro *)reductions, &atomic, &total);
        add(total);
    }
    __kmpc_push_num_threads(&here, gtid, threads);
    __kmpc_fork_call(&here, 0, (micro *)with_tasks);
    add(done);
    __kmpc_push_num_threads(&here, gtid, threads);
    __kmpc_fork_call(&here, 0, (micro *)no_variables);
    printf("kmpc %d: %ld\n", threads, sum);
    return wrong != 0;
}
