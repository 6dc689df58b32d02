/* The fewest bytes that an allreduce of two ranks can move, by loops written for it and for nothing else: sums of doubles.
 *
 *   direct   buffers are within reach (threads): each rank adds its half of both inputs, once, and stores it in both outputs
 *   boxes    they are not (processes): each puts the half that the other adds into its box, adds its own half out of its input and
 *            the other's box, stores that in its output and its box, and copies the other half out of the other's box; in chunks, of
 *            which one is put while another is added and a third is fetched
 *   back     likewise, but each rank stores its sum in the other's box, where the operand was: lines go over and back, and are the
 *            writer's own when it puts the next chunk
 *
 *   store    plain, or nt: results are stored past the caches (into private memory only)
 *   buffers  reuse: the same each time; fresh: a walk over many, together far larger than the last cache
 *
 * A variant's name is buffers.way.store, where there are boxes with the bytes of a chunk behind it. */
#include "peer.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* As much as the other subjects' fresh buffers take together. */
#define FRESH_BYTES ((size_t)256 << 20)
/* Boxes hold so many chunks of each kind. */
#define DEPTH 2
#define SHORTEST_CHUNK ((size_t)8192)
#define LARGEST_CHUNK ((size_t)1 << 20)

struct shared {
    _Alignas(4096) uint64_t flags[2][512]; /* one page a rank, the flag on its first line */
    _Alignas(4096) unsigned char boxes[2][2][DEPTH][LARGEST_CHUNK / 2]; /* by rank and kind: given, added */
};

struct buffers {
    double *in, *out;
};

enum way { DIRECT, BOXES, BACK };
static const char *const ways[] = {"direct", "boxes", "back"};

struct work {
    struct shared *shared;
    struct buffers of[2]; /* with processes a rank may use its own alone */
    size_t bytes, stride, slots, chunk;
    enum way way;
    int nt;
};

static __thread uint64_t epoch;
static __thread size_t at;
static __thread int touched;

/* Whoever has to wait for long has lost its CPU to somebody else, or the other has. */
#define PATIENCE 100000

static inline void relax(long turn) {
    if (turn > PATIENCE) sched_yield();
    peer_relax();
}

static void raise_flag(struct shared *shared, int rank, uint64_t value) {
    __atomic_store_n(&shared->flags[rank][0], value, __ATOMIC_RELEASE);
}

static void await_flag(struct shared *shared, int rank, uint64_t value) {
    for (long turn = 0; __atomic_load_n(&shared->flags[rank][0], __ATOMIC_ACQUIRE) < value; turn++) relax(turn);
}

static void meet(struct shared *shared, int rank) {
    uint64_t now = ++epoch;
    raise_flag(shared, rank, now);
    await_flag(shared, 1 - rank, now);
}

/* sum[i] = also[i] = a[i] + b[i] */
static void add_plain(const double *a, const double *b, double *sum, double *also, size_t count) {
    for (size_t i = 0; i < count; i++) sum[i] = also[i] = a[i] + b[i];
}

static void copy_plain(const void *from, void *to, size_t bytes) { memcpy(to, from, bytes); }

#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2")))

/* Stores past the caches begin on lines. */
AVX2 static inline __attribute__((always_inline)) void put(double *to, __m256d x, int nt) {
    if (nt)
        _mm256_stream_pd(to, x);
    else
        _mm256_storeu_pd(to, x);
}

AVX2 static inline __attribute__((always_inline)) void add_wide(const double *a, const double *b, double *sum, double *also,
                                                                size_t count, int sum_nt, int also_nt) {
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        __m256d x = _mm256_add_pd(_mm256_loadu_pd(a + i), _mm256_loadu_pd(b + i));
        __m256d y = _mm256_add_pd(_mm256_loadu_pd(a + i + 4), _mm256_loadu_pd(b + i + 4));
        put(sum + i, x, sum_nt);
        put(sum + i + 4, y, sum_nt);
        put(also + i, x, also_nt);
        put(also + i + 4, y, also_nt);
    }
    if (sum_nt) _mm_sfence();
    add_plain(a + i, b + i, sum + i, also + i, count - i);
}

/* One function a kind of store, so that the compiler sees constants: both through the caches, both past them, and the sum past them,
 * its second copy, which the other rank reads next, through them. */
#define ADD(name, sum_nt, also_nt)                                                                            \
    AVX2 static void name(const double *a, const double *b, double *sum, double *also, size_t count) {        \
        add_wide(a, b, sum, also, count, sum_nt, also_nt);                                                    \
    }
ADD(add_avx2, 0, 0)
ADD(add_nt, 1, 1)
ADD(add_half_nt, 1, 0)

AVX2 static void copy_nt(const void *from, void *to, size_t bytes) {
    const double *a = from;
    double *b = to;
    size_t i = 0, count = bytes / sizeof(double);
    for (; i + 8 <= count; i += 8) {
        _mm256_stream_pd(b + i, _mm256_loadu_pd(a + i));
        _mm256_stream_pd(b + i + 4, _mm256_loadu_pd(a + i + 4));
    }
    _mm_sfence();
    for (; i < count; i++) b[i] = a[i];
}
#endif

typedef void (*add_fn)(const double *, const double *, double *, double *, size_t);
typedef void (*copy_fn)(const void *, void *, size_t);

static int wide(void) {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") != 0;
#else
    return 0;
#endif
}

static add_fn adder(int nt, int boxes) {
#if defined(__x86_64__)
    if (wide()) return !nt ? add_avx2 : boxes ? add_half_nt : add_nt;
#endif
    (void)nt, (void)boxes;
    return add_plain;
}

static copy_fn copier(int nt) {
#if defined(__x86_64__)
    if (nt && wide()) return copy_nt;
#endif
    (void)nt;
    return copy_plain;
}

static double given(int rank, size_t i) { return (double)(rank * 31 + 1) + (double)(i % 1021); }

/* A rank's own pages, touched by itself first. */
static void touch(const struct work *work, int rank) {
    if (touched) return;
    touched = 1;
    size_t count = work->slots * work->stride / sizeof(double);
    for (size_t i = 0; i < count; i++) {
        work->of[rank].in[i] = given(rank, i % (work->stride / sizeof(double)));
        work->of[rank].out[i] = -1;
    }
}

static void once_direct(const struct work *work, int rank, size_t offset) {
    size_t count = work->bytes / sizeof(double), half = count / 2;
    size_t from = offset + (rank ? half : 0), mine = rank ? count - half : half;
    add_fn add = adder(work->nt, 0);
    meet(work->shared, rank);
    add(work->of[0].in + from, work->of[1].in + from, work->of[rank].out + from, work->of[1 - rank].out + from, mine);
    meet(work->shared, rank);
}

/* Three stages a chunk. A rank's flag is at 2 t + 1 when chunk t is put, and at 2 t + 4, which is after it has put the next one, when
 * its sum of chunk t is there. */
static void once_boxes(const struct work *work, int rank, size_t offset) {
    struct shared *shared = work->shared;
    const double *in = work->of[rank].in + offset;
    double *out = work->of[rank].out + offset;
    size_t chunks = (work->bytes + work->chunk - 1) / work->chunk;
    add_fn add = adder(work->nt, 1);
    copy_fn fetch = copier(work->nt);
    uint64_t base = epoch;
    int peer = 1 - rank;
    for (size_t t = 0; t < chunks + 2; t++) {
        if (t >= 2) {
            size_t u = t - 2, start = u * work->chunk;
            size_t len = work->bytes - start < work->chunk ? work->bytes - start : work->chunk;
            size_t half = len / 16 * 8, theirs = peer ? len - half : half;
            await_flag(shared, peer, base + 2 * u + 4);
            fetch(shared->boxes[peer][1][u % DEPTH], (char *)out + start + (peer ? half : 0), theirs);
        }
        if (t < chunks) {
            size_t start = t * work->chunk;
            size_t len = work->bytes - start < work->chunk ? work->bytes - start : work->chunk;
            size_t half = len / 16 * 8, theirs = peer ? len - half : half;
            memcpy(shared->boxes[rank][0][t % DEPTH], (const char *)in + start + (peer ? half : 0), theirs);
            raise_flag(shared, rank, base + 2 * t + 1);
        }
        if (t >= 1 && t - 1 < chunks) {
            size_t u = t - 1, start = u * work->chunk;
            size_t len = work->bytes - start < work->chunk ? work->bytes - start : work->chunk;
            size_t half = len / 16 * 8, mine = rank ? len - half : half;
            size_t from = (start + (rank ? half : 0)) / sizeof(double);
            await_flag(shared, peer, base + 2 * u + 1);
            add(in + from, (const double *)shared->boxes[peer][0][u % DEPTH], out + from,
                (double *)shared->boxes[rank][1][u % DEPTH], mine / sizeof(double));
            raise_flag(shared, rank, base + 2 * u + 4);
        }
    }
    /* Nobody puts the next message's chunks before this one's sums were fetched. */
    epoch = base + 2 * chunks + 2;
    meet(shared, rank);
}

/* A rank's flag is at 2 t + 1 when chunk t is put, and at 2 t + 2 when its sum is there. Only the two of them touch a box, each when the
 * other has done so. */
static void once_back(const struct work *work, int rank, size_t offset) {
    struct shared *shared = work->shared;
    const double *in = work->of[rank].in + offset;
    double *out = work->of[rank].out + offset;
    add_fn add = adder(work->nt, 1);
    copy_fn fetch = copier(work->nt);
    int peer = 1 - rank;
    double *own = (double *)shared->boxes[rank][0][0], *other = (double *)shared->boxes[peer][0][0];
    for (size_t start = 0; start < work->bytes; start += work->chunk) {
        size_t len = work->bytes - start < work->chunk ? work->bytes - start : work->chunk;
        size_t half = len / 16 * 8, mine = rank ? len - half : half;
        size_t from = (start + (rank ? half : 0)) / sizeof(double), to = (start + (peer ? half : 0)) / sizeof(double);
        memcpy(own, in + to, len - mine);
        raise_flag(shared, rank, epoch + 1);
        await_flag(shared, peer, epoch + 1);
        add(in + from, other, out + from, other, mine / sizeof(double));
        raise_flag(shared, rank, epoch + 2);
        await_flag(shared, peer, epoch + 2);
        fetch(own, out + to, len - mine);
        epoch += 2;
    }
}

static void batch(void *state, int rank, long count) {
    const struct work *work = state;
    touch(work, rank);
    for (long i = 0; i < count; i++) {
        size_t offset = at * work->stride / sizeof(double);
        switch (work->way) {
        case DIRECT: once_direct(work, rank, offset); break;
        case BOXES: once_boxes(work, rank, offset); break;
        case BACK: once_back(work, rank, offset); break;
        }
        at = at + 1 == work->slots ? 0 : at + 1;
    }
}

static double *private_pages(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) peer_fail("memory");
    return memory;
}

static void run(const struct peer_options *options, const char *name, int fresh, enum way way, int nt, size_t chunk) {
    struct work work = {.bytes = options->bytes, .way = way, .nt = nt, .chunk = chunk};
    work.stride = (options->bytes + 4095) / 4096 * 4096;
    work.slots = 1;
    if (fresh) work.slots = work.stride < FRESH_BYTES / 8 ? FRESH_BYTES / 4 / work.stride : 2;
    work.shared = peer_shared(sizeof *work.shared);
    for (int rank = 0; rank < 2; rank++) {
        work.of[rank].in = private_pages(work.slots * work.stride);
        work.of[rank].out = private_pages(work.slots * work.stride);
    }
    epoch = 0, at = 0, touched = 0;
    struct peer_team *team = peer_team_new(options);
    team->iterations = options->iterations > 0 ? options->iterations : 1;
    peer_run(options, team, batch, &work);
    for (size_t i = 0; i < work.bytes / sizeof(double); i++) {
        double sum = given(0, i) + given(1, i);
        if (work.of[0].out[i] != sum) {
            fprintf(stderr, "byte_floor: %s: element %zu is %g, expected %g\n", name, i, work.of[0].out[i], sum);
            exit(2);
        }
    }
    peer_print(options, team, "byte-floor", name, "hand-written");
    for (int rank = 0; rank < 2; rank++) {
        munmap(work.of[rank].in, work.slots * work.stride);
        munmap(work.of[rank].out, work.slots * work.stride);
    }
    munmap(work.shared, sizeof *work.shared);
    munmap(team, sizeof *team);
}

int main(int argc, char **argv) {
    struct peer_options options = peer_arguments(argc, argv);
    if (options.ranks != 2) peer_usage(argv[0], "the loop is of two ranks: --ranks 2");
    if (options.bytes < 4096 || options.bytes % 64 != 0)
        peer_usage(argv[0], "--bytes: expected at least 4096, and a multiple of 64");
    if (options.cpu_count < 2 || options.cpus[0] == options.cpus[1])
        peer_usage(argv[0], "it spins without yielding and needs two CPUs");
    int found = 0;
    /* Threads have no boxes and no chunks. */
    enum way first = options.processes ? BOXES : DIRECT, last = options.processes ? BACK : DIRECT;
    size_t longest = options.processes ? LARGEST_CHUNK : SHORTEST_CHUNK;
    for (int fresh = 0; fresh < 2; fresh++)
        for (int nt = 0; nt <= wide(); nt++)
            for (enum way way = first; way <= last; way++)
                for (size_t chunk = SHORTEST_CHUNK; chunk <= longest; chunk *= 4) {
                    char name[64];
                    const char *buffers = fresh ? "fresh" : "reuse", *store = nt ? "nt" : "plain";
                    if (way == DIRECT)
                        snprintf(name, sizeof name, "%s.%s.%s", buffers, ways[way], store);
                    else
                        snprintf(name, sizeof name, "%s.%s.%s.%zu", buffers, ways[way], store, chunk);
                    int whole_kind = strcmp(options.variant, buffers) == 0;
                    if (strcmp(options.variant, "all") != 0 && !whole_kind && strcmp(options.variant, name) != 0) continue;
                    found = 1;
                    run(&options, name, fresh, way, nt, chunk);
                }
    if (!found) peer_usage(argv[0], "--variant: no such variant");
    return 0;
}
