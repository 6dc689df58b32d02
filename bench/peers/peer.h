/* What all peers share: arguments, pinning, the measuring loop, statistics and the JSON line.
 *
 * The loop, run by every rank of a team (threads or processes):
 *   1. agree on the iterations of a batch (rank 0 decides; the subject itself is the barrier);
 *   2. read the clock, run that many collectives back to back, read the clock;
 *   3. a batch's time is the last exit minus the first entry over all ranks, divided by the iterations;
 *   4. a batch in which a rank was switched out is run again, unless ranks exceed CPUs, where that is the
 *      normal case;
 *   5. stop when the 95 % confidence interval of the median is narrow enough, or at the bounds given.
 *
 * Header only, valid C11 and C++20, so that a peer is one source file. */
#ifndef PEER_H
#define PEER_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PEER_MAX_RANKS 256
#define PEER_MAX_BATCHES 4096
/* Batches are made long enough for the clock's cost (about 25 ns a read) to vanish, short enough for many. */
#define PEER_BATCH_NS 100000.0
#define PEER_MAX_ITERATIONS 100000000L

struct peer_options {
    int ranks;        /* team size */
    long iterations;  /* collectives a batch; 0: chosen so that a batch lasts PEER_BATCH_NS */
    int min_batches;  /* do not stop before this many */
    int batches;      /* stop at this many */
    double seconds;   /* stop after this long */
    double precision; /* stop when the interval's width is below this share of the median */
    size_t bytes;     /* message size, for the peers that move data */
    int cpus[PEER_MAX_RANKS];
    int cpu_count;
    int processes;       /* a team of processes instead of threads */
    int raw;             /* print every batch */
    const char *variant; /* one variant of a peer that has several; "all" for each in turn */
};

/* What the ranks of a team share. Fields are read and written by one rank between two collectives of the
 * subject, which orders them; relaxed atomics only keep the compiler honest. */
struct peer_team {
    int64_t entered[PEER_MAX_RANKS][8]; /* one line a rank */
    int64_t left[PEER_MAX_RANKS][8];
    int64_t switched[PEER_MAX_RANKS][8];
    long iterations;
    int stop;
    int samples;
    int discarded;
    int converged_iterations; /* set once a batch is long enough */
    double batch_ns[PEER_MAX_BATCHES];
};

/* Runs `count` collectives as `rank`. */
typedef void (*peer_batch)(void *state, int rank, long count);

static inline void peer_fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, errno ? strerror(errno) : "failed");
    exit(2);
}

static inline int64_t peer_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Tells the CPU that this rank only looks again and again. */
static inline void peer_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#elif defined(__powerpc64__)
    __asm__ volatile("or 27,27,27" ::: "memory");
#endif
}

static inline void peer_pin(const struct peer_options *options, int rank) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(options->cpus[rank % options->cpu_count], &set);
    /* Refused in some containers: the peer still runs, and says so. */
    if (sched_setaffinity(0, sizeof set, &set) != 0 && rank == 0)
        fprintf(stderr, "pinning refused: %s\n", strerror(errno));
}

static inline int64_t peer_switches(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
}

static inline int peer_by_value(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Median and the rank-based 95 % interval around it: order statistics n/2 -+ 1.96 sqrt(n)/2. Under six samples
 * no such interval exists, and the extremes are given. */
struct peer_summary {
    double median, low, high, p5, p95, least;
};

static inline struct peer_summary peer_summarise(const double *samples, int count) {
    static double sorted[PEER_MAX_BATCHES];
    memcpy(sorted, samples, sizeof(double) * (size_t)count);
    qsort(sorted, (size_t)count, sizeof(double), peer_by_value);
    int low = 0, high = count - 1;
    if (count >= 6) {
        low = (int)floor((count - 1.96 * sqrt(count)) / 2.0) - 1;
        high = (int)ceil(1.0 + (count + 1.96 * sqrt(count)) / 2.0) - 1;
        if (low < 0) low = 0;
        if (high > count - 1) high = count - 1;
    }
    struct peer_summary summary;
    summary.median = count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2.0;
    summary.low = sorted[low];
    summary.high = sorted[high];
    summary.p5 = sorted[(int)(0.05 * (count - 1))];
    summary.p95 = sorted[(int)(0.95 * (count - 1))];
    summary.least = sorted[0];
    return summary;
}

/* Rank 0's decision after a batch: keep it, lengthen batches, or stop. */
static inline void peer_decide(const struct peer_options *options, struct peer_team *team, int64_t began) {
    int64_t first = INT64_MAX, last = INT64_MIN, switched = 0;
    for (int rank = 0; rank < options->ranks; rank++) {
        if (team->entered[rank][0] < first) first = team->entered[rank][0];
        if (team->left[rank][0] > last) last = team->left[rank][0];
        switched += team->switched[rank][0];
    }
    double elapsed = (double)(last - first), spent = (double)(last - began) * 1e-9;
    if (!team->converged_iterations) {
        if (options->iterations > 0 || elapsed >= PEER_BATCH_NS / 2 || team->iterations >= PEER_MAX_ITERATIONS ||
            spent > options->seconds / 4) {
            team->converged_iterations = 1;
        } else {
            /* At most tenfold, as the first batches also warm up. */
            double wanted = elapsed > 0 ? PEER_BATCH_NS / elapsed : 10.0;
            team->iterations = (long)((double)team->iterations * (wanted < 2 ? 2 : wanted > 10 ? 10 : wanted));
            return;
        }
    }
    if (switched > 0 && options->ranks <= options->cpu_count && spent < options->seconds) {
        team->discarded++;
        return;
    }
    team->batch_ns[team->samples++] = elapsed / (double)team->iterations;
    if (options->iterations == 0 && team->samples == 8 && spent < options->seconds / 2 &&
        peer_summarise(team->batch_ns, 8).median * (double)team->iterations < PEER_BATCH_NS / 4) {
        /* A late start made the first batches look long enough. */
        team->samples = 0;
        team->converged_iterations = 0;
    } else if (team->samples >= options->batches || spent >= options->seconds) {
        team->stop = 1;
    } else if (team->samples >= options->min_batches && team->samples % 16 == 0) {
        struct peer_summary now = peer_summarise(team->batch_ns, team->samples);
        team->stop = now.high - now.low <= options->precision * now.median;
    }
}

/* The measuring loop of one rank. */
static inline void peer_measure(const struct peer_options *options, struct peer_team *team, peer_batch batch,
                                void *state, int rank) {
    peer_pin(options, rank);
    batch(state, rank, 16);
    int64_t began = peer_now();
    for (;;) {
        long count = __atomic_load_n(&team->iterations, __ATOMIC_RELAXED);
        int64_t before = peer_switches();
        batch(state, rank, 1); /* nobody enters the batch far ahead of the others */
        int64_t entered = peer_now();
        batch(state, rank, count);
        int64_t left = peer_now();
        __atomic_store_n(&team->entered[rank][0], entered, __ATOMIC_RELAXED);
        __atomic_store_n(&team->left[rank][0], left, __ATOMIC_RELAXED);
        __atomic_store_n(&team->switched[rank][0], peer_switches() - before, __ATOMIC_RELAXED);
        batch(state, rank, 1); /* every rank's times are written */
        if (rank == 0) peer_decide(options, team, began);
        batch(state, rank, 1); /* the decision is made */
        if (__atomic_load_n(&team->stop, __ATOMIC_RELAXED)) return;
    }
}

static inline void *peer_shared(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) peer_fail("shared memory");
    return memory;
}

static inline struct peer_team *peer_team_new(const struct peer_options *options) {
    struct peer_team *team = (struct peer_team *)peer_shared(sizeof(struct peer_team));
    team->iterations = options->iterations > 0 ? options->iterations : 16;
    return team;
}

struct peer_member {
    const struct peer_options *options;
    struct peer_team *team;
    peer_batch batch;
    void *state;
    int rank;
};

static inline void *peer_thread(void *argument) {
    struct peer_member *member = (struct peer_member *)argument;
    peer_measure(member->options, member->team, member->batch, member->state, member->rank);
    return NULL;
}

/* Runs a team of threads, or of processes where `state` lies in shared memory. */
static inline void peer_run(const struct peer_options *options, struct peer_team *team, peer_batch batch,
                            void *state) {
    struct peer_member members[PEER_MAX_RANKS];
    pthread_t threads[PEER_MAX_RANKS];
    pid_t children[PEER_MAX_RANKS];
    pid_t parent = getpid();
    for (int rank = 1; rank < options->ranks; rank++) {
        struct peer_member member = {options, team, batch, state, rank};
        members[rank] = member;
        if (options->processes) {
            children[rank] = fork();
            if (children[rank] < 0) peer_fail("fork");
            if (children[rank] == 0) {
                /* A child must not spin on after its parent was killed. */
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (getppid() != parent) _exit(2);
                peer_measure(options, team, batch, state, rank);
                _exit(0);
            }
        } else if ((errno = pthread_create(&threads[rank], NULL, peer_thread, &members[rank])) != 0) {
            peer_fail("thread");
        }
    }
    peer_measure(options, team, batch, state, 0);
    for (int rank = 1; rank < options->ranks; rank++) {
        int status = 0;
        if (!options->processes) {
            pthread_join(threads[rank], NULL);
        } else if (waitpid(children[rank], &status, 0) < 0 || status != 0) {
            peer_fail("a rank's process");
        }
    }
}

/* One measurement, one line. `runtime` names what really ran (a library, or the compiler). */
static inline void peer_print(const struct peer_options *options, const struct peer_team *team,
                              const char *subject, const char *variant, const char *runtime) {
    struct peer_summary s = peer_summarise(team->batch_ns, team->samples);
    printf("{\"schema\":1,\"kind\":\"peer\",\"subject\":\"%s\",\"variant\":\"%s\",\"runtime\":\"%s\","
           "\"team\":\"%s\",\"ranks\":%d,\"bytes\":%zu,\"median_ns\":%.3f,\"ci_low_ns\":%.3f,"
           "\"ci_high_ns\":%.3f,\"p5_ns\":%.3f,\"p95_ns\":%.3f,\"min_ns\":%.3f,\"samples\":%d,"
           "\"iterations\":%ld,\"discarded\":%d",
           subject, variant, runtime, options->processes ? "processes" : "threads", options->ranks,
           options->bytes, s.median, s.low, s.high, s.p5, s.p95, s.least, team->samples, team->iterations,
           team->discarded);
    if (options->raw) {
        printf(",\"batches_ns\":[");
        for (int i = 0; i < team->samples; i++) printf("%s%.3f", i ? "," : "", team->batch_ns[i]);
        printf("]");
    }
    printf("}\n");
    fflush(stdout);
}

static inline void peer_usage(const char *program, const char *why) {
    fprintf(stderr,
            "%s: %s\nusage: %s [--ranks N] [--bytes N] [--iterations N (0: automatic)] [--batches N]\n"
            "  [--min-batches N] [--seconds S] [--precision SHARE] [--cpus A,B,..] [--team threads|processes]\n"
            "  [--variant NAME] [--raw]\n",
            program, why, program);
    exit(2);
}

static inline double peer_number(const char *program, const char *text, double least, double most) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= least && value <= most)) {
        char why[200];
        snprintf(why, sizeof why, "`%.60s`: expected a number from %g to %g", text, least, most);
        peer_usage(program, why);
    }
    return value;
}

static inline struct peer_options peer_arguments(int argc, char **argv) {
    struct peer_options options;
    memset(&options, 0, sizeof options);
    options.ranks = 2;
    options.min_batches = 32;
    options.batches = 1000;
    options.seconds = 0.5;
    options.precision = 0.01;
    options.variant = "all";
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        if (strcmp(name, "--raw") == 0) {
            options.raw = 1;
            continue;
        }
        if (i + 1 == argc) peer_usage(argv[0], "an argument is unknown or lacks its value");
        char *value = argv[++i];
        if (strcmp(name, "--ranks") == 0) {
            options.ranks = (int)peer_number(argv[0], value, 1, PEER_MAX_RANKS);
        } else if (strcmp(name, "--bytes") == 0) {
            options.bytes = (size_t)peer_number(argv[0], value, 0, 1099511627776.0);
        } else if (strcmp(name, "--iterations") == 0) {
            options.iterations = (long)peer_number(argv[0], value, 0, (double)PEER_MAX_ITERATIONS);
        } else if (strcmp(name, "--batches") == 0) {
            options.batches = (int)peer_number(argv[0], value, 1, PEER_MAX_BATCHES);
        } else if (strcmp(name, "--min-batches") == 0) {
            options.min_batches = (int)peer_number(argv[0], value, 1, PEER_MAX_BATCHES);
        } else if (strcmp(name, "--seconds") == 0) {
            options.seconds = peer_number(argv[0], value, 0.001, 3600);
        } else if (strcmp(name, "--precision") == 0) {
            options.precision = peer_number(argv[0], value, 0, 1);
        } else if (strcmp(name, "--variant") == 0) {
            options.variant = value;
        } else if (strcmp(name, "--team") == 0) {
            if (strcmp(value, "threads") != 0 && strcmp(value, "processes") != 0)
                peer_usage(argv[0], "--team: expected threads or processes");
            options.processes = strcmp(value, "processes") == 0;
        } else if (strcmp(name, "--cpus") == 0) {
            /* argv stays as it is: peer_restart hands it on. */
            for (char *item = value, *end; *item; item = *end == ',' ? end + 1 : end) {
                long cpu = strtol(item, &end, 10);
                if (end == item || (*end && *end != ',') || cpu < 0 || cpu >= CPU_SETSIZE)
                    peer_usage(argv[0], "--cpus: expected numbers separated by commas");
                if (options.cpu_count == PEER_MAX_RANKS) peer_usage(argv[0], "--cpus: too many");
                options.cpus[options.cpu_count++] = (int)cpu;
            }
        } else {
            peer_usage(argv[0], "an argument is unknown or lacks its value");
        }
    }
    if (options.cpu_count == 0) {
        cpu_set_t set;
        if (sched_getaffinity(0, sizeof set, &set) != 0) peer_fail("affinity");
        for (int cpu = 0; cpu < CPU_SETSIZE && options.cpu_count < PEER_MAX_RANKS; cpu++)
            if (CPU_ISSET(cpu, &set)) options.cpus[options.cpu_count++] = cpu;
    }
    return options;
}

/* Starts the program again with all of the CPUs given allowed. A runtime library counts its CPUs before main,
 * and decides by that count how long to spin: the mask of whoever launched us must not decide for it. */
static inline void peer_restart(const struct peer_options *options, char **argv) {
    if (getenv("PEER_RESTARTED")) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < options->cpu_count; i++) CPU_SET(options->cpus[i], &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) return;
    setenv("PEER_RESTARTED", "1", 1);
    execv("/proc/self/exe", argv);
}

/* For peers that exist among threads only. */
static inline void peer_threads_only(const struct peer_options *options, const char *program) {
    if (options->processes) peer_usage(program, "this barrier exists among threads only");
}

#endif
