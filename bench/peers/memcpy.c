/* What copying costs one rank alone: the floor of any collective that delivers a message.
 *
 *   reuse  the same two buffers each time, as a benchmark loop does
 *   fresh  a walk over many buffers, together far larger than the last cache, as an application does
 *
 * The copy is the C library's memcpy. The time printed is that of one copy; it moves --bytes. */
#include "peer.h"

/* Larger than the last-level cache of most machines, small enough to be there on all. */
#define FRESH_BYTES ((size_t)256 << 20)

struct copy {
    unsigned char *from, *to;
    size_t bytes, stride, slots, at;
};

static void batch(void *state, int rank, long count) {
    struct copy *copy = state;
    (void)rank;
    for (long i = 0; i < count; i++) {
        size_t offset = copy->at * copy->stride;
        memcpy(copy->to + offset, copy->from + offset, copy->bytes);
        /* The compiler may not see that nobody reads the copy. */
        __asm__ volatile("" : : "r"(copy->to + offset) : "memory");
        copy->at = copy->at + 1 == copy->slots ? 0 : copy->at + 1;
    }
}

static void run(const struct peer_options *options, const char *variant, size_t slots) {
    size_t stride = (options->bytes + 4095) / 4096 * 4096;
    struct copy copy = {NULL, NULL, options->bytes, stride, slots, 0};
    copy.from = peer_shared(slots * stride);
    copy.to = peer_shared(slots * stride);
    peer_pin(options, 0); /* before the first touch, which places the pages */
    memset(copy.from, 1, slots * stride);
    memset(copy.to, 2, slots * stride);
    struct peer_team *team = peer_team_new(options);
    peer_run(options, team, batch, &copy);
    if (memcmp(copy.from, copy.to, options->bytes) != 0) {
        fprintf(stderr, "memcpy: the copy differs from its source\n");
        exit(2);
    }
    peer_print(options, team, "memcpy", variant, "libc");
    munmap(copy.from, slots * stride);
    munmap(copy.to, slots * stride);
    munmap(team, sizeof *team);
}

int main(int argc, char **argv) {
    struct peer_options options = peer_arguments(argc, argv);
    if (options.bytes == 0) peer_usage(argv[0], "--bytes: a copy needs a size");
    int all = strcmp(options.variant, "all") == 0;
    int reuse = all || strcmp(options.variant, "reuse") == 0;
    int fresh = all || strcmp(options.variant, "fresh") == 0;
    if (!reuse && !fresh) peer_usage(argv[0], "--variant: expected reuse, fresh or all");
    options.ranks = 1;
    options.processes = 0;
    size_t stride = (options.bytes + 4095) / 4096 * 4096;
    if (reuse) run(&options, "reuse", 1);
    if (fresh) run(&options, "fresh", stride < FRESH_BYTES / 2 ? FRESH_BYTES / 2 / stride : 1);
    return 0;
}
