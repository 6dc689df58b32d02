/*
 * The functions that compiled OpenMP code calls, as far as they begin regions, wait at barriers or make tasks.
 *
 * The runtime of LLVM has GNU's functions too, for programs that GCC compiled, and calls its own functions from them by name: a thread that is
 * inside of the runtime's barrier comes by here again, and passes.
 */
#include "lwo.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- barriers ----
 * WHOLE is the runtime's function, BEFORE what it does before its barrier, and BARE its barrier alone. PLACE is what the compiler says of the place
 * in the program, or null. Where no tool watches, a barrier pays one look for that. */
#define MEET(PLACE, BEFORE, WHOLE, BARE)                                                                                                  \
    if (__builtin_expect(lwo_watched, 0)) {                                                                                               \
        LWO_CALLED;                                                                                                                       \
        CARRY_OUT(wait_watched(PLACE, &lwo_before), BEFORE, WHOLE, BARE);                                                                 \
    } else {                                                                                                                              \
        CARRY_OUT(lwo_wait(), BEFORE, WHOLE, BARE);                                                                                       \
    }

#define CARRY_OUT(WAIT, BEFORE, WHOLE, BARE)                                                                                              \
    enum lwo_way way = lwo_decide();                                                                                                     \
    bool outer = lwo_me.inside;                                                                                                           \
    if (__builtin_expect(way == LWO_TAKE || way == LWO_TAKE_TIMED, 1)) {                                                                  \
        BEFORE;                                                                                                                           \
        if (__builtin_expect(!WAIT, 0)) {                                                                                                 \
            lwo_me.inside = true;                                                                                                         \
            BARE;                                                                                                                         \
            lwo_me.inside = outer;                                                                                                        \
        }                                                                                                                                 \
    } else {                                                                                                                              \
        lwo_me.inside = true;                                                                                                             \
        WHOLE;                                                                                                                            \
        lwo_me.inside = outer;                                                                                                            \
    }                                                                                                                                     \
    if (__builtin_expect(way >= LWO_PASS_TIMED, 0)) lwo_timed()

/* Carries a barrier out before the eyes of a tool; false when the runtime has to. `frame` is an address in the frame of the function that was called. */
static __attribute__((noinline)) bool wait_watched(const struct ident *place, const void *frame)
{
    if (lwo_me.muted) return lwo_wait();
    lwo_tell_begin(place, frame);
    bool done = lwo_wait();
    if (done) lwo_tell_end(place);
    return done;
}

void GOMP_barrier(void) { MEET(NULL, (void)0, LWO_REAL(GOMP_barrier)(), LWO_REAL(GOMP_barrier)()); }

void GOMP_loop_end(void) { MEET(NULL, LWO_REAL(GOMP_loop_end_nowait)(), LWO_REAL(GOMP_loop_end)(), LWO_REAL(GOMP_barrier)()); }

void GOMP_sections_end(void) { MEET(NULL, LWO_REAL(GOMP_sections_end_nowait)(), LWO_REAL(GOMP_sections_end)(), LWO_REAL(GOMP_barrier)()); }

/* These barriers may be cancelled. Where cancellation is off, nothing is ever cancelled. Where it is on, barriers pass. */
bool GOMP_barrier_cancel(void)
{
    bool cancelled = false;
    MEET(NULL, (void)0, cancelled = LWO_REAL(GOMP_barrier_cancel)(), cancelled = LWO_REAL(GOMP_barrier_cancel)());
    return cancelled;
}

bool GOMP_loop_end_cancel(void)
{
    bool cancelled = false;
    MEET(NULL, LWO_REAL(GOMP_loop_end_nowait)(), cancelled = LWO_REAL(GOMP_loop_end_cancel)(), LWO_REAL(GOMP_barrier)());
    return cancelled;
}

bool GOMP_sections_end_cancel(void)
{
    bool cancelled = false;
    MEET(NULL, LWO_REAL(GOMP_sections_end_nowait)(), cancelled = LWO_REAL(GOMP_sections_end_cancel)(), LWO_REAL(GOMP_barrier)());
    return cancelled;
}

void __kmpc_barrier(struct ident *loc, int32_t gtid)
{
    MEET(loc, (void)0, LWO_REAL(__kmpc_barrier)(loc, gtid), LWO_REAL(__kmpc_barrier)(loc, gtid));
}

int32_t __kmpc_cancel_barrier(struct ident *loc, int32_t gtid)
{
    int32_t cancelled = 0;
    MEET(loc, (void)0, cancelled = LWO_REAL(__kmpc_cancel_barrier)(loc, gtid), cancelled = LWO_REAL(__kmpc_cancel_barrier)(loc, gtid));
    return cancelled;
}

/* Ends a reduction. The runtime combines it; then all threads wait: those that combined wait in its end, and those whose values others took wait
 * before they leave its beginning. The runtime combines in the same way where a reduction has no barrier, so a reduction whose barrier is taken
 * over begins and ends as one of these. */
static void end_of_reduction(struct ident *loc, int32_t gtid)
{
    /* A tool has been told of a barrier where the runtime combined in a tree, and then there is no other. */
    lwo_me.muted = lwo_me.runtime_told;
    MEET(loc, (void)0, LWO_REAL(__kmpc_barrier)(loc, gtid), LWO_REAL(__kmpc_barrier)(loc, gtid));
    lwo_me.muted = false;
}

int32_t __kmpc_reduce(struct ident *loc, int32_t gtid, int32_t many, size_t size, void *data, lwo_combine *combine, void *lock)
{
    LWO_CALLED;
    bool outer = lwo_me.inside;
    bool takes = lwo_host.__kmpc_reduce_nowait && lwo_host.__kmpc_end_reduce_nowait && lwo_takes();
    __typeof__(&__kmpc_reduce) begin = takes ? lwo_host.__kmpc_reduce_nowait : LWO_REAL(__kmpc_reduce);
    lwo_me.inside = true;
    lwo_me.runtime_told = false;
    int32_t combines = begin(loc, gtid, many, size, data, combine, lock);
    lwo_me.inside = outer;
    lwo_me.reduces = takes && combines != 0;
    if (takes && combines == 0) end_of_reduction(loc, gtid);
    return combines;
}

void __kmpc_end_reduce(struct ident *loc, int32_t gtid, void *lock)
{
    LWO_CALLED;
    bool outer = lwo_me.inside, takes = lwo_me.reduces;
    lwo_me.reduces = false;
    lwo_me.inside = true;
    if (takes) lwo_host.__kmpc_end_reduce_nowait(loc, gtid, lock);
    else LWO_REAL(__kmpc_end_reduce)(loc, gtid, lock);
    lwo_me.inside = outer;
    if (takes) end_of_reduction(loc, gtid);
}

/* ---- regions ---- */

static void enter_body(void *data)
{
    const struct lwo_work *work = data;
    struct lwo_me saved;
    lwo_enter(work, &saved);
    work->body(work->data);
    lwo_exit(work, &saved);
}

/* A region that GCC compiled: its code and data, or ours, which enters the team, as the first two arguments. */
#define REGION(body, data, CALL)                                                                                                          \
    LWO_CALLED;                                                                                                                           \
    struct lwo_region region;                                                                                                             \
    bool looks = lwo_active;                                                                                                              \
    region.work = NULL;                                                                                                                   \
    if (looks) lwo_region_begin((const void *)body, &region);                                                                             \
    if (region.work) {                                                                                                                    \
        LWO_SET(region.work->body, body);                                                                                                 \
        LWO_SET(region.work->data, data);                                                                                                 \
        body = enter_body;                                                                                                                \
        data = region.work;                                                                                                               \
    }                                                                                                                                     \
    CALL;                                                                                                                                 \
    if (looks) lwo_region_end(&region)

void GOMP_parallel(lwo_body *body, void *data, unsigned threads, unsigned flags)
{
    REGION(body, data, LWO_REAL(GOMP_parallel)(body, data, threads, flags));
}

unsigned GOMP_parallel_reductions(lwo_body *body, void *data, unsigned threads, unsigned flags)
{
    unsigned result;
    REGION(body, data, {
        if (region.work) LWO_SET(region.work->reductions, *(void **)region.work->data);
        result = LWO_REAL(GOMP_parallel_reductions)(body, data, threads, flags);
    });
    return result;
}

void GOMP_parallel_sections(lwo_body *body, void *data, unsigned threads, unsigned count, unsigned flags)
{
    REGION(body, data, LWO_REAL(GOMP_parallel_sections)(body, data, threads, count, flags));
}

#define LOOP(name)                                                                                                                        \
    void name(lwo_body *body, void *data, unsigned threads, long start, long end, long step, long chunk, unsigned flags)                 \
    {                                                                                                                                     \
        REGION(body, data, LWO_REAL(name)(body, data, threads, start, end, step, chunk, flags));                                          \
    }
LOOP(GOMP_parallel_loop_static)
LOOP(GOMP_parallel_loop_dynamic)
LOOP(GOMP_parallel_loop_guided)
LOOP(GOMP_parallel_loop_nonmonotonic_dynamic)
LOOP(GOMP_parallel_loop_nonmonotonic_guided)

#define LOOP_RUNTIME(name)                                                                                                                \
    void name(lwo_body *body, void *data, unsigned threads, long start, long end, long step, unsigned flags)                             \
    {                                                                                                                                     \
        REGION(body, data, LWO_REAL(name)(body, data, threads, start, end, step, flags));                                                 \
    }
LOOP_RUNTIME(GOMP_parallel_loop_runtime)
LOOP_RUNTIME(GOMP_parallel_loop_nonmonotonic_runtime)
LOOP_RUNTIME(GOMP_parallel_loop_maybe_nonmonotonic_runtime)

/* Calls the code of a region that Clang compiled, which has its variables as arguments, of any number. A function that is given more arguments
 * than it has ignores the others, in the calling conventions of Linux, so there is a call with few and a call with many. */
enum { FEW = 16, MANY = 1024 };
#define A4(a, i) a[i], a[i + 1], a[i + 2], a[i + 3]
#define A16(a, i) A4(a, i), A4(a, i + 4), A4(a, i + 8), A4(a, i + 12)
#define A64(a, i) A16(a, i), A16(a, i + 16), A16(a, i + 32), A16(a, i + 48)
#define A256(a, i) A64(a, i), A64(a, i + 64), A64(a, i + 128), A64(a, i + 192)
#define A1024(a) A256(a, 0), A256(a, 256), A256(a, 512), A256(a, 768)

static void enter_micro(int32_t *gtid, int32_t *btid, struct lwo_work *work)
{
    struct lwo_me saved;
    void **a = work->data;
    lwo_enter(work, &saved);
    if (work->count <= FEW) work->micro(gtid, btid, A16(a, 0));
    else work->micro(gtid, btid, A1024(a));
    lwo_exit(work, &saved);
}

typedef void fork_function(struct ident *loc, int32_t count, lwo_micro *micro, ...);

static void fork_plainly(fork_function *fork, struct ident *loc, int32_t count, lwo_micro *micro, void **a)
{
    if (count <= FEW) fork(loc, count, micro, A16(a, 0));
    else fork(loc, count, micro, A1024(a));
}

static void fork_call(fork_function *fork, struct ident *loc, int32_t count, lwo_micro *micro, void **a)
{
    struct lwo_region region;
    bool looks = lwo_active;
    region.work = NULL;
    if (looks) lwo_region_begin((const void *)micro, &region);
    if (region.work) {
        LWO_SET(region.work->count, count);
        LWO_SET(region.work->micro, micro);
        LWO_SET(region.work->data, (void *)a);
        fork(loc, 1, (lwo_micro *)enter_micro, region.work);
    } else {
        fork_plainly(fork, loc, count, micro, a);
    }
    if (looks) lwo_region_end(&region);
}

static __attribute__((noinline)) void fork_many(struct ident *loc, int32_t count, lwo_micro *micro, va_list list,
                                                fork_function *fork)
{
    void *a[MANY] = {0};
    if (count > MANY) {
        fprintf(stderr, "lineweave: a parallel region with %d variables, and %d are the most that can be passed on\n", count, MANY);
        abort();
    }
    for (int i = 0; i < count; i++) a[i] = va_arg(list, void *);
    fork_call(fork, loc, count, micro, a);
}

void __kmpc_fork_call(struct ident *loc, int32_t count, lwo_micro *micro, ...)
{
    LWO_CALLED;
    fork_function *fork = LWO_REAL(__kmpc_fork_call);
    va_list list;
    va_start(list, micro);
    if (count <= FEW) {
        void *a[FEW] = {0};
        for (int i = 0; i < count; i++) a[i] = va_arg(list, void *);
        fork_call(fork, loc, count, micro, a);
    } else {
        fork_many(loc, count, micro, list, fork);
    }
    va_end(list);
}

/* ---- tasks ---- */

#define TASK(result, name, parameters, arguments)                                                                                         \
    result name parameters                                                                                                                \
    {                                                                                                                                     \
        LWO_CALLED;                                                                                                                       \
        lwo_task();                                                                                                                       \
        return LWO_REAL(name) arguments;                                                                                                  \
    }
#define COPY void (*copy)(void *, void *), long size, long align

TASK(void, GOMP_task, (lwo_body *body, void *data, COPY, bool now, unsigned flags, void **depend, int priority, void *detach),
     (body, data, copy, size, align, now, flags, depend, priority, detach))
TASK(void, GOMP_taskloop,
     (lwo_body *body, void *data, COPY, unsigned flags, unsigned long tasks, int priority, long start, long end, long step),
     (body, data, copy, size, align, flags, tasks, priority, start, end, step))
TASK(void, GOMP_taskloop_ull,
     (lwo_body *body, void *data, COPY, unsigned flags, unsigned long tasks, int priority, unsigned long long start,
      unsigned long long end, unsigned long long step),
     (body, data, copy, size, align, flags, tasks, priority, start, end, step))
TASK(void *, __kmpc_omp_task_alloc, (struct ident *loc, int32_t gtid, int32_t flags, size_t size, size_t shared, void *entry),
     (loc, gtid, flags, size, shared, entry))
TASK(void *, __kmpc_omp_target_task_alloc,
     (struct ident *loc, int32_t gtid, int32_t flags, size_t size, size_t shared, void *entry, int64_t device),
     (loc, gtid, flags, size, shared, entry, device))
/* Asynchronous work for a device is a task of libgomp. */
TASK(void, GOMP_target_ext,
     (int device, void (*code)(void *), size_t count, void **hosts, size_t *sizes, unsigned short *kinds, unsigned flags, void **depend,
      void **arguments),
     (device, code, count, hosts, sizes, kinds, flags, depend, arguments))
TASK(void, GOMP_target_update_ext,
     (int device, size_t count, void **hosts, size_t *sizes, unsigned short *kinds, unsigned flags, void **depend),
     (device, count, hosts, sizes, kinds, flags, depend))
TASK(void, GOMP_target_enter_exit_data,
     (int device, size_t count, void **hosts, size_t *sizes, unsigned short *kinds, unsigned flags, void **depend),
     (device, count, hosts, sizes, kinds, flags, depend))
