/*
 * lineweave under an OpenMP program: declarations that the parts of the library share.
 *
 * The library is preloaded and defines the functions by which compiled OpenMP code begins parallel regions and waits at barriers.
 * A barrier is carried out here where that keeps its meaning, and is the runtime's otherwise. All threads of a team decide alike: by what
 * one of them published for the region, and by counts that are the same for all of them.
 */
#ifndef LWO_H
#define LWO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Flags this far apart share no line, and no pair of lines that are fetched together. */
#define LWO_APART 128

/* ---- the runtime (host.c) ---- */

typedef void lwo_body(void *data);
typedef void lwo_micro(int32_t *gtid, int32_t *btid, ...);
typedef void lwo_combine(void *left, void *right);
struct ident;

struct lwo_host {
#define H(result, name, parameters) result(*name) parameters;
#include "host.def"
#undef H
};
/* Null where the runtime that the program was started with has no such function. */
extern struct lwo_host lwo_host;

/* True if barriers may be taken over in this process; false for all time where nothing is taken over. */
extern bool lwo_active;
/* The runtime's name. */
extern const char *lwo_host_title;

/* Returns a function of the runtime whose caller is at `from`, for runtimes that a program loaded later. */
void *lwo_late(const char *name, const void *from);
#define LWO_REAL(name) (lwo_host.name ? lwo_host.name : (__typeof__(lwo_host.name))lwo_late(#name, __builtin_return_address(0)))

/* CPUs that this process may count on. */
extern int lwo_cpus;
/* The value of OMP_WAIT_POLICY, and whether to compare with the runtime. */
enum lwo_policy { LWO_UNSAID, LWO_ACTIVE, LWO_PASSIVE };
extern enum lwo_policy lwo_policy;
extern bool lwo_race;

uint64_t lwo_now_ns(void);

/* ---- memory (memory.c) ---- */

/* Returns zeroed pages; null without memory. */
void *lwo_memory(size_t bytes);
void lwo_memory_free(void *memory, size_t bytes);

/* ---- counts for the report (report.c): barriers of teams, whatever their threads ---- */

enum lwo_reason {
#define R(name, text) LWO_##name,
#include "reasons.def"
#undef R
    LWO_REASONS
};

struct lwo_count {
    uint64_t taken, passed[LWO_REASONS];
};
/* Adds the counts of a team. */
void lwo_add(const struct lwo_count *count);
void lwo_add_passed(enum lwo_reason reason);
void lwo_report_open(void);
void lwo_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- the barrier (barrier.c) ---- */

struct lwo_barrier;

/* Makes a barrier for up to `size` threads that begin after run `run`. Null without memory. */
struct lwo_barrier *lwo_barrier_new(int size, uint64_t run);
/* Return and keep the last run of a place, from one region to the next. */
uint64_t lwo_barrier_run(const struct lwo_barrier *barrier, int place);
void lwo_barrier_keep(struct lwo_barrier *barrier, int place, uint64_t run);
void lwo_barrier_free(struct lwo_barrier *barrier);
/* Returns the largest number of threads that it is for. */
int lwo_barrier_room(const struct lwo_barrier *barrier);
/* Waits for the others in run `run`, one more than the last, for any threads; `crowded` when threads share CPUs. Returns false when that run and
 * all later ones are not to be carried out here. */
bool lwo_barrier_wait(struct lwo_barrier *barrier, bool crowded, int place, int size, uint64_t run);
/* Stops all waits here from run `run` on, also those under way. Called by a thread that has not arrived at that run. */
void lwo_barrier_leave_from(struct lwo_barrier *barrier, uint64_t run);
void lwo_barrier_open(void);

/* ---- comparing with the runtime (contest.c) ---- */

struct lwo_contest;

/* Returns the verdict on barriers of one size: 1 to take them over, 0 to leave them, -1 when a contest is to be held, with `contest` claimed for
 * this team, or null where another team holds it. */
int lwo_verdict(int size, bool crowded, struct lwo_contest **contest);
/* Return whether barrier `index` of the contest is carried out here; and the verdict when it is over: -1 while it is not. */
bool lwo_contest_ours(uint32_t index);
int lwo_contest_over(const struct lwo_contest *contest, uint32_t index);
/* Return the number of its barriers before this region, and take the number when the claim is given back. */
uint32_t lwo_contest_begin(const struct lwo_contest *contest);
void lwo_contest_end(struct lwo_contest *contest, uint32_t index);
void lwo_contest_arrive(struct lwo_contest *contest, int place, uint32_t index);
void lwo_contest_leave(struct lwo_contest *contest, int place, uint32_t index);
/* Returns, for the report, the next size that was settled after `size`, or 0. */
int lwo_contest_next(int size, bool *ours, double *ours_us, double *theirs_us);

/* ---- regions and teams (teams.c) ---- */

struct lwo_team;

/* The side that carries out the barriers of a region. */
enum lwo_mode { UNDECIDED, OURS, THEIRS, CONTEST };

/* The knowledge of a thread about the region that it is in. */
struct lwo_me {
    struct lwo_team *team;  /* null: not one that is looked after */
    int *known;             /* in the thread that began the region: what is known of the region's code */
    uint64_t run;           /* barriers that were carried out here, over all regions of the team */
    uint32_t index;         /* barriers of the contest */
    int mode, place, size, level;
    bool is_first;          /* the thread that began the region */
    bool left;              /* barriers of this region are the runtime's from now on, as there are tasks */
    bool inside;            /* in a barrier of the runtime, which may call functions that are defined here */
    bool reduces;           /* in a reduction whose barrier is carried out here */
    bool runtime_told;      /* the runtime told a tool that a barrier begins */
    bool muted;             /* a tool is not told of the barrier that this thread is in */
    const void *caller;     /* where a tool watches: the place in the program that called a function of this library */
};
extern __thread struct lwo_me lwo_me __attribute__((tls_model("initial-exec")));

/* The way to treat a barrier. */
enum lwo_way { LWO_PASS, LWO_TAKE, LWO_PASS_TIMED, LWO_TAKE_TIMED };
enum lwo_way lwo_decide(void);
/* Returns whether the next barrier of the region is to be taken over, on which all threads of the team agree. */
bool lwo_takes(void);
/* Carries a barrier out; false when the runtime has to. */
bool lwo_wait(void);
void lwo_timed(void);
/* Called when this thread is about to make a task. */
void lwo_task(void);
/* Returns the counts of this thread's team in a region that has not ended; null in other threads than its first. */
const struct lwo_count *lwo_unfinished(void);

/* The words that a region's threads read on arrival, on one line of its team. A region that is begun again in the same place finds them
 * unchanged, and as nothing is written, the others need not fetch the line. */
struct lwo_work {
    /* The first argument of the code, where libgomp looks for the reductions of tasks. */
    _Alignas(LWO_APART) void *reductions;
    struct lwo_team *team;
    struct lwo_me *first;
    int level, count;
    /* The code, and its arguments: data, or `count` arguments. */
    lwo_body *body;
    lwo_micro *micro;
    void *data;
};
#define LWO_SET(field, value)                                                                                                             \
    do {                                                                                                                                  \
        if ((field) != (value)) (field) = (value);                                                                                        \
    } while (0)

/* A region that is under way, on the stack of the thread that began it. */
struct lwo_region {
    struct lwo_work *work; /* null: its threads need not enter */
    struct lwo_me saved;   /* what the thread was in before */
};
void lwo_region_begin(const void *code, struct lwo_region *region);
void lwo_region_end(const struct lwo_region *region);
/* Called when one of the region's threads arrives and leaves. */
void lwo_enter(const struct lwo_work *work, struct lwo_me *saved);
void lwo_exit(const struct lwo_work *work, const struct lwo_me *saved);

/* ---- tools that watch (watch.c) ---- */

/* True while a tool watches the runtime by OMPT. */
extern bool lwo_watched;
/* Returns whether the runtime asks this library for its tool, and not one that stands before it. */
bool lwo_may_watch(void);
/* Tell the tool that a barrier begins, in the frame of the function that was called, and ends. A barrier that does not end here is ended by the
 * runtime. `place` is what the compiler says of the place in the program, or null. */
void lwo_tell_begin(const struct ident *place, const void *frame);
void lwo_tell_end(const struct ident *place);

/* Notes for the tool the place in the program that called; returns what was noted before, which is to be put back. */
const void *lwo_called(const void *from);

static inline void lwo_called_before(const void *const *before)
{
    if (__builtin_expect(lwo_watched, 0)) lwo_me.caller = *before;
}

/* Stands at the beginning of each function that the program calls. */
#define LWO_CALLED                                                                                                                        \
    __attribute__((cleanup(lwo_called_before))) const void *lwo_before =                                                                 \
        __builtin_expect(lwo_watched, 0) ? lwo_called(__builtin_return_address(0)) : NULL

/* Pauses between looks at a word that another thread writes. */
static inline void lwo_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

#endif
