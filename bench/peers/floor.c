/* The floor of a two-rank synchronisation: each rank publishes a number and waits for the other's, written by
 * hand in every way that MEASURING names. A collective cannot beat the fastest of them but by being one of them.
 *
 *   layout   one       both flags on one line
 *            own       each flag on a line of its own, in different 4-line groups
 *            adjacent  each flag on a line of its own, next to each other (one 128-byte pair)
 *            counter   one counter, fetch-and-add
 *   wait     pause or none while polling
 *   publish  store or exchange instruction
 *   fetch    none, or a prefetch for write of the own flag's line before publishing
 *
 * A variant's name is layout.wait.publish.fetch. */
#include "peer.h"

struct flags {
    _Alignas(4096) uint64_t words[1024];
};

/* The compiler's builtin gives a prefetch for reading unless told that this CPU has the one for writing; every
 * 64-bit x86 accepts the instruction. */
static inline void prefetch_for_write(const void *line) {
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
    __builtin_prefetch(line, 1, 3);
#endif
}

/* Every rank's count so far: the ranks call batches in step, so one thread-local number serves. */
static __thread uint64_t epoch;

static inline __attribute__((always_inline)) void exchange(struct flags *flags, int rank, long count, int first,
                                                           int second, int pause, int swap, int fetch) {
    uint64_t *mine = &flags->words[rank == 0 ? first : second];
    uint64_t *theirs = &flags->words[rank == 0 ? second : first];
    for (long i = 0; i < count; i++) {
        uint64_t now = ++epoch;
        if (fetch) prefetch_for_write(mine);
        if (swap)
            (void)__atomic_exchange_n(mine, now, __ATOMIC_ACQ_REL);
        else
            __atomic_store_n(mine, now, __ATOMIC_RELEASE);
        while (__atomic_load_n(theirs, __ATOMIC_ACQUIRE) < now)
            if (pause) peer_relax();
    }
}

static inline __attribute__((always_inline)) void count_in(struct flags *flags, long count, int pause) {
    for (long i = 0; i < count; i++) {
        uint64_t full = 2 * ++epoch;
        if (__atomic_add_fetch(&flags->words[0], 1, __ATOMIC_ACQ_REL) >= full) continue;
        while (__atomic_load_n(&flags->words[0], __ATOMIC_ACQUIRE) < full)
            if (pause) peer_relax();
    }
}

/* A layout, the words of rank 0's and rank 1's flag (one word: a counter), and whether ranks pause, swap and prefetch. */
#define WAYS(V, layout, first, second)                      \
    V(layout, pause, store, none, first, second, 1, 0, 0)    \
    V(layout, none, store, none, first, second, 0, 0, 0)     \
    V(layout, pause, exchange, none, first, second, 1, 1, 0) \
    V(layout, none, exchange, none, first, second, 0, 1, 0)  \
    V(layout, pause, store, fetch, first, second, 1, 0, 1)   \
    V(layout, none, store, fetch, first, second, 0, 0, 1)
#define VARIANTS(V)          \
    WAYS(V, one, 0, 0)       \
    WAYS(V, own, 0, 64)      \
    WAYS(V, adjacent, 0, 8)  \
    V(counter, pause, add, none, 0, 0, 1, 0, 0) \
    V(counter, none, add, none, 0, 0, 0, 0, 0)

/* One function a variant, so that the compiler sees constants and the loop has no branches of ours. */
#define DEFINE(layout, wait, publish, fetch, first, second, pauses, swaps, fetches)                            \
    static void layout##_##wait##_##publish##_##fetch(void *state, int rank, long count) {                     \
        if (first == second)                                                                                   \
            count_in((struct flags *)state, count, pauses);                                                    \
        else                                                                                                   \
            exchange((struct flags *)state, rank, count, first, second, pauses, swaps, fetches);               \
    }
VARIANTS(DEFINE)

#define ENTRY(layout, wait, publish, fetch, ...) {#layout "." #wait "." #publish "." #fetch, layout##_##wait##_##publish##_##fetch},
static const struct {
    const char *name;
    peer_batch batch;
} variants[] = {VARIANTS(ENTRY)};

int main(int argc, char **argv) {
    struct peer_options options = peer_arguments(argc, argv);
    if (options.ranks != 2) peer_usage(argv[0], "the floor is a two-rank exchange: --ranks 2");
    if (options.cpu_count < 2 || options.cpus[0] == options.cpus[1])
        peer_usage(argv[0], "the floor spins without yielding and needs two CPUs");
    int found = 0;
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        if (strcmp(options.variant, "all") != 0 && strcmp(options.variant, variants[i].name) != 0) continue;
        found = 1;
        /* Fresh, page-aligned flags: the line's home is first touched by rank 0, as in the engine. */
        struct flags *flags = peer_shared(sizeof *flags);
        struct peer_team *team = peer_team_new(&options);
        epoch = 0;
        peer_run(&options, team, variants[i].batch, flags);
        peer_print(&options, team, "floor", variants[i].name, "hand-written");
        munmap(flags, sizeof *flags);
        munmap(team, sizeof *team);
    }
    if (!found) peer_usage(argv[0], "--variant: no such variant");
    return 0;
}
