/* The floor of three and more ranks: a barrier, a broadcast of 8 bytes from rank 0 and an allreduce (sum) of 8 bytes, by loops written
 * for them and for nothing else, in every way that is known to be fast somewhere. A library cannot beat the fastest of them but by being
 * one of them.
 *
 *   barrier    push     dissemination: in each round a rank sets one flag at each of `degree` peers
 *              line     likewise, all that a rank polls in a round on one line of its own
 *              pull     likewise, but a rank sets one flag of its own, and `degree` peers poll it
 *              counter  one counter, fetch-and-add, and one flag that all poll
 *              tree     up a tree of this degree, and one flag that all poll
 *              updown   up and down it
 *              groups   of `degree` ranks: gathered by the first, who exchange all to all, and released by one flag
 *   bcast      one      all poll the root's line
 *              each     the root sets a line of each
 *              relay    down a tree of this degree, from line to line
 *   allreduce  all      a rank puts its number on a line, and all poll all of them
 *              double   recursive doubling; what is beyond a power of two folds in before and is told after
 *              tree     up a tree of this degree, and one line that all poll
 *              updown   up and down it
 *
 *   stride     bytes from one flag to the next: 8 packs them, 256 keeps prefetchers from their neighbours
 *   wait       pause or none while polling; yield where ranks outnumber CPUs: there a loop that only spins waits for the kernel's clock
 *
 * A variant's name is collective.way.degree.stride.wait. Asked for a collective, the program tries all briefly and measures the
 * BEST of them. */
#include "peer.h"

#define GROUND ((size_t)1 << 21)
#define BEST 6
#define TRY_SECONDS 0.001
#define MAX_ROUNDS 9 /* of 256 ranks, by ones */
#define LINE 64
/* Broadcasts that the root may be ahead, and how often it looks. */
#define AHEAD 64

enum wait { PAUSE, NONE, YIELD };
static const char *const waits[] = {"pause", "none", "yield"};

enum way { PUSH, ON_LINE, PULL, COUNTER, TREE, UPDOWN, GROUPS, ONE, EACH, RELAY, ALL, DOUBLE, SUM_TREE, SUM_UPDOWN, WAYS };

static const struct {
    const char *collective, *name;
    int degrees, strides; /* whether they make a difference */
} ways[WAYS] = {
    [PUSH] = {"barrier", "push", 1, 1},      [ON_LINE] = {"barrier", "line", 1, 0},   [PULL] = {"barrier", "pull", 1, 1},
    [COUNTER] = {"barrier", "counter", 0, 0}, [TREE] = {"barrier", "tree", 1, 1},      [UPDOWN] = {"barrier", "updown", 1, 1},
    [GROUPS] = {"barrier", "groups", 1, 1},  [ONE] = {"bcast", "one", 0, 0},          [EACH] = {"bcast", "each", 0, 0},
    [RELAY] = {"bcast", "relay", 1, 0},      [ALL] = {"allreduce", "all", 0, 1},      [DOUBLE] = {"allreduce", "double", 0, 1},
    [SUM_TREE] = {"allreduce", "tree", 1, 1}, [SUM_UPDOWN] = {"allreduce", "updown", 1, 1},
};

struct variant {
    enum way way;
    enum wait wait;
    int degree, stride;
};

struct ground {
    _Alignas(4096) unsigned char bytes[GROUND];
};

struct work {
    struct ground *ground;
    struct variant variant;
    int ranks;
};

/* A number behind the flag that tells of it, on one line. */
struct told {
    uint64_t flag;
    double number;
};

static __thread uint64_t epoch, met;
static __thread double kept;

/* Asks for the shortest time slice, as lineweave's ranks do: beside other programs a yield then costs microseconds instead of milliseconds
 * (Linux 6.12; without it nothing changes). */
static void shorten_slice(void) {
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } now = {0};
    if (syscall(SYS_sched_getattr, 0, &now, sizeof now, 0) != 0 || now.policy != SCHED_OTHER || now.runtime == 0) return;
    now.runtime = 100000;
    syscall(SYS_sched_setattr, 0, &now, 0);
}

static inline void relax(enum wait wait) {
    static __thread int asked;
    if (wait == NONE) return;
    if (wait == YIELD) {
        if (!asked) {
            asked = 1;
            shorten_slice();
        }
        sched_yield();
        return;
    }
    peer_relax();
}

static inline uint64_t *at(const struct work *w, size_t base, size_t index, size_t stride) {
    return (uint64_t *)(w->ground->bytes + base + index * stride);
}

static inline void set(uint64_t *flag, uint64_t value) { __atomic_store_n(flag, value, __ATOMIC_RELEASE); }

static inline void await(const struct work *w, const uint64_t *flag, uint64_t value) {
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) < value) relax(w->variant.wait);
}

/* A part of the ground holds a flag each of 256 ranks at the widest stride. */
#define PART ((size_t)256 * 256)
#define RELEASE (8 * PART)
#define SLOTS (10 * PART)

static inline struct told *line_of(const struct work *w, size_t base, size_t index) {
    size_t stride = w->variant.stride < (int)sizeof(struct told) ? sizeof(struct told) : (size_t)w->variant.stride;
    return (struct told *)(w->ground->bytes + base + index * stride);
}

static inline void tell(struct told *line, double number, uint64_t now) {
    line->number = number;
    set(&line->flag, now);
}

static inline double hear(const struct work *w, const struct told *line, uint64_t now) {
    await(w, &line->flag, now);
    return line->number;
}

static inline void disseminate(const struct work *w, int rank, uint64_t now) {
    const struct variant *v = &w->variant;
    int n = w->ranks, round = 0;
    for (long distance = 1; distance < n; distance *= v->degree + 1, round++) {
        /* The ground of a round: a row a peer, or a row of lines. */
        size_t row = (size_t)n * (size_t)v->stride, base = (size_t)round * (size_t)(v->way == PUSH ? v->degree : 1) * row;
        if (v->way == ON_LINE) base = (size_t)round * (size_t)n * LINE;
        if (v->way == PULL) set(at(w, base, (size_t)rank, (size_t)v->stride), now);
        for (int t = 1; t <= v->degree && distance * t < n; t++) {
            size_t peer = (size_t)((rank + distance * t) % n);
            if (v->way == PUSH) set(at(w, base + (size_t)(t - 1) * row, peer, (size_t)v->stride), now);
            if (v->way == ON_LINE) set(at(w, base + (size_t)(t - 1) * 8, peer, LINE), now);
        }
        for (int t = 1; t <= v->degree && distance * t < n; t++) {
            size_t peer = (size_t)((rank + n - distance * t % n) % n);
            if (v->way == PUSH) await(w, at(w, base + (size_t)(t - 1) * row, (size_t)rank, (size_t)v->stride), now);
            if (v->way == ON_LINE) await(w, at(w, base + (size_t)(t - 1) * 8, (size_t)rank, LINE), now);
            if (v->way == PULL) await(w, at(w, base, peer, (size_t)v->stride), now);
        }
    }
}

/* Up a tree of ranks, and down by one flag or by the tree. */
static inline void climb(const struct work *w, int rank, uint64_t now) {
    const struct variant *v = &w->variant;
    int first = v->degree * rank + 1, last = first + v->degree < w->ranks ? first + v->degree : w->ranks;
    size_t stride = (size_t)v->stride;
    for (int child = first; child < last; child++) await(w, at(w, 0, (size_t)child, stride), now);
    if (rank > 0) set(at(w, 0, (size_t)rank, stride), now);
    if (v->way == TREE) {
        if (rank > 0)
            await(w, at(w, RELEASE, 0, LINE), now);
        else
            set(at(w, RELEASE, 0, LINE), now);
        return;
    }
    if (rank > 0) await(w, at(w, RELEASE, (size_t)rank, stride), now);
    for (int child = first; child < last; child++) set(at(w, RELEASE, (size_t)child, stride), now);
}

static inline void in_groups(const struct work *w, int rank, uint64_t now) {
    const struct variant *v = &w->variant;
    int group = rank / v->degree, groups = (w->ranks + v->degree - 1) / v->degree;
    int end = (group + 1) * v->degree < w->ranks ? (group + 1) * v->degree : w->ranks;
    size_t stride = (size_t)v->stride;
    if (rank % v->degree) {
        set(at(w, 0, (size_t)rank, stride), now);
        await(w, at(w, RELEASE, (size_t)group, 256), now);
        return;
    }
    for (int member = rank + 1; member < end; member++) await(w, at(w, 0, (size_t)member, stride), now);
    set(at(w, PART, (size_t)group, stride), now);
    for (int other = 1; other < groups; other++) await(w, at(w, PART, (size_t)((group + other) % groups), stride), now);
    set(at(w, RELEASE, (size_t)group, 256), now);
}

static inline void barrier(const struct work *w, int rank, uint64_t now) {
    switch (w->variant.way) {
    case COUNTER:
        if (__atomic_add_fetch(at(w, 0, 0, LINE), 1, __ATOMIC_ACQ_REL) == now * (uint64_t)w->ranks)
            set(at(w, RELEASE, 0, LINE), now);
        else
            await(w, at(w, RELEASE, 0, LINE), now);
        return;
    case TREE:
    case UPDOWN:
        climb(w, rank, now);
        return;
    case GROUPS:
        in_groups(w, rank, now);
        return;
    default:
        disseminate(w, rank, now);
    }
}

/* The root looks whether all have come as far as it needs, every half of AHEAD broadcasts, as the ranks tell it on lines of their own. */
static inline void broadcast(const struct work *w, int rank, uint64_t now) {
    const struct variant *v = &w->variant;
    size_t slot = now % AHEAD, n = (size_t)w->ranks;
    if (now % (AHEAD / 2) == 0) {
        if (rank > 0) set(at(w, 0, (size_t)rank, 256), now);
        for (size_t r = 1; rank == 0 && r < n && now > AHEAD / 2; r++) await(w, at(w, 0, r, 256), now - AHEAD / 2);
    }
    /* The line of a rank in a slot; all that poll the root's have one. */
    struct told *lines = (struct told *)(w->ground->bytes + SLOTS);
    size_t width = LINE / sizeof(struct told), row = v->way == ONE ? 1 : n;
#define BOX(r) (&lines[(slot * row + (size_t)(r)) * width])
    if (v->way == ONE) {
        if (rank == 0) tell(BOX(0), (double)now, now);
        kept = rank == 0 ? (double)now : hear(w, BOX(0), now);
        return;
    }
    if (rank > 0) kept = hear(w, BOX(rank), now);
    if (rank == 0) kept = (double)now;
    if (v->way == EACH) {
        for (size_t r = 1; rank == 0 && r < n; r++) tell(BOX(r), kept, now);
        return;
    }
    for (int t = 1; t <= v->degree; t++) {
        int child = v->degree * rank + t;
        if (child < w->ranks) tell(BOX(child), kept, now);
    }
#undef BOX
}

/* Lines are used by turns: who is two calls further has heard all others in the call between. */
static inline double allreduce(const struct work *w, int rank, uint64_t now) {
    const struct variant *v = &w->variant;
    size_t half = (now & 1) * 12 * PART;
    double mine = (double)(rank + 1), sum = 0;
    int n = w->ranks;
    if (v->way == ALL) {
        tell(line_of(w, half, (size_t)rank), mine, now);
        for (int r = 0; r < n; r++) sum += r == rank ? mine : hear(w, line_of(w, half, (size_t)r), now);
        return sum;
    }
    if (v->way == DOUBLE) {
        int power = 1, round = 0;
        while (2 * power <= n) power *= 2;
        if (rank >= power) {
            tell(line_of(w, half, (size_t)rank), mine, now);
            return hear(w, line_of(w, half + PART, (size_t)rank), now);
        }
        sum = mine;
        if (rank + power < n) sum += hear(w, line_of(w, half, (size_t)(rank + power)), now);
        for (int distance = 1; distance < power; distance *= 2, round++) {
            size_t base = half + 2 * PART, row = (size_t)round * (size_t)power;
            tell(line_of(w, base, row + (size_t)(rank ^ distance)), sum, now);
            sum += hear(w, line_of(w, base, row + (size_t)rank), now);
        }
        if (rank + power < n) tell(line_of(w, half + PART, (size_t)(rank + power)), sum, now);
        return sum;
    }
    int first = v->degree * rank + 1, last = first + v->degree < n ? first + v->degree : n;
    sum = mine;
    for (int child = first; child < last; child++) sum += hear(w, line_of(w, half, (size_t)child), now);
    struct told *release = line_of(w, half + 2 * PART, v->way == SUM_TREE ? 0 : (size_t)rank);
    if (rank > 0) {
        tell(line_of(w, half, (size_t)rank), sum, now);
        sum = hear(w, release, now);
    } else if (v->way == SUM_TREE) {
        tell(release, sum, now);
    }
    for (int child = first; v->way == SUM_UPDOWN && child < last; child++)
        tell(line_of(w, half + 2 * PART, (size_t)child), sum, now);
    return sum;
}

/* Ends the program that computes something else: a floor that skips work is none. */
static void must_be(double found, double wanted) {
    if (found == wanted) return;
    fprintf(stderr, "wrong answer: %g, expected %g\n", found, wanted);
    _exit(3);
}

/* Who broadcasts waits for nobody: a batch of broadcasts ends with a barrier, about a hundredth of its time, as the loop that measures
 * expects of every subject. */
static void batch(void *state, int rank, long count) {
    const struct work *w = state;
    for (long i = 0; i < count; i++) {
        uint64_t now = ++epoch;
        if (w->variant.way < ONE) {
            barrier(w, rank, now);
        } else if (w->variant.way < ALL) {
            broadcast(w, rank, now);
            must_be(kept, (double)now);
        } else {
            must_be(allreduce(w, rank, now), (double)w->ranks * (w->ranks + 1) / 2);
        }
    }
    if (w->variant.way < ONE || w->variant.way >= ALL) return;
    uint64_t *arrivals = at(w, 9 * PART, 0, LINE);
    uint64_t all = ++met * (uint64_t)w->ranks;
    __atomic_add_fetch(arrivals, 1, __ATOMIC_ACQ_REL);
    await(w, arrivals, all);
}

static void name_of(const struct variant *v, char *text, size_t room) {
    snprintf(text, room, "%s.%s.%d.%d.%s", ways[v->way].collective, ways[v->way].name, v->degree, v->stride, waits[v->wait]);
}

struct timed {
    struct variant variant;
    double ns;
};

static struct peer_team *measure(const struct peer_options *options, struct variant variant) {
    struct work work = {peer_shared(sizeof(struct ground)), variant, options->ranks};
    struct peer_team *team = peer_team_new(options);
    epoch = met = 0;
    peer_run(options, team, batch, &work);
    munmap(work.ground, sizeof *work.ground);
    return team;
}

static int by_time(const void *left, const void *right) {
    double a = ((const struct timed *)left)->ns, b = ((const struct timed *)right)->ns;
    return (a > b) - (a < b);
}

/* All variants of a collective that differ among so many ranks. */
static int variants_of(const struct peer_options *options, struct timed *found) {
    static const int degrees[] = {1, 2, 3, 4, 5, 7, 15}, strides[] = {8, 64, 128, 256};
    int crowded = options->ranks > options->cpu_count, count = 0;
    for (enum way way = PUSH; way < WAYS; way++)
        for (size_t d = 0; d < (ways[way].degrees ? sizeof degrees / sizeof *degrees : 1); d++)
            for (size_t s = 0; s < (ways[way].strides ? sizeof strides / sizeof *strides : 1); s++)
                for (enum wait wait = crowded ? YIELD : PAUSE; wait <= (crowded ? YIELD : NONE); wait++) {
                    struct variant v = {way, wait, degrees[d], ways[way].strides ? strides[s] : LINE};
                    /* The last of the degrees is that at which all are reached at once; a line holds 8 flags. */
                    if (d > 0 && degrees[d - 1] >= options->ranks - 1) continue;
                    if (way == ON_LINE && v.degree > LINE / 8) continue;
                    char name[64];
                    name_of(&v, name, sizeof name);
                    int whole = strcmp(options->variant, name) == 0;
                    if (whole || strcmp(options->variant, "all") == 0 || strcmp(options->variant, ways[way].collective) == 0)
                        found[count++] = (struct timed){v, 0};
                }
    return count;
}

int main(int argc, char **argv) {
    struct peer_options options = peer_arguments(argc, argv);
    if (options.ranks < 3) peer_usage(argv[0], "this floor is for three ranks and more: --ranks 3");
    static struct timed all[1024];
    int count = variants_of(&options, all);
    if (!count) peer_usage(argv[0], "--variant: expected barrier, bcast, allreduce, all, or one of their variants");
    if (count > 1) {
        struct peer_options brief = options;
        brief.seconds = TRY_SECONDS;
        brief.min_batches = 3;
        for (int i = 0; i < count; i++) {
            struct peer_team *team = measure(&brief, all[i].variant);
            all[i].ns = peer_summarise(team->batch_ns, team->samples).median;
            munmap(team, sizeof *team);
        }
        qsort(all, (size_t)count, sizeof *all, by_time);
        if (count > BEST) count = BEST;
    }
    for (int i = 0; i < count; i++) {
        char name[64];
        name_of(&all[i].variant, name, sizeof name);
        struct peer_team *team = measure(&options, all[i].variant);
        peer_print(&options, team, "hand-floor", name, "hand-written");
        munmap(team, sizeof *team);
    }
    return 0;
}
