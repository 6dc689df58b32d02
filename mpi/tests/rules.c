/*
 * MPI's rules where an interposer could break them. Results are computed here, by arithmetic, not taken
 * from the host, but for what MPI leaves to it.
 */
#include "kinds.h"
#include <stdbool.h>

/* A large send that waits for its receiver, then a barrier: who waits in the barrier must keep the host going. */
static void a_pending_send_goes_on_in_a_barrier(void)
{
    enum { MANY = 1 << 20 };
    int *data = malloc(sizeof *data * MANY);
    if (ranks < 2) { free(data); return; }
    for (int turn = 0; turn < 4; turn++) {
        MPI_Request request = MPI_REQUEST_NULL;
        if (rank == 0) {
            for (int i = 0; i < MANY; i++) data[i] = i + turn;
            MPI_Isend(data, MANY, MPI_INT, 1, 7, MPI_COMM_WORLD, &request);
        } else if (rank == 1) {
            memset(data, 0, sizeof *data * MANY);
            if (turn % 2) usleep(20000);
            MPI_Recv(data, MANY, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int i = 0; i < MANY; i++) EXPECT(data[i] == i + turn);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    free(data);
}

/* MPI has no reductions of MPI_CHAR, and hosts carry them out all the same. What the program gets is what its host gives. */
static void letters_are_combined_as_by_the_host(void)
{
    static const int least = -3;
    MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_BAND, MPI_BXOR, MPI_LAND, MPI_LOR};
    MPI_Comm own;
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
    get_team(own);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        signed char give[5], ours[5] = {0}, theirs[5] = {0};
        for (int j = 0; j < 5; j++) give[j] = (signed char)(least + j + rank);
        int result = MPI_Allreduce(give, ours, 5, MPI_CHAR, ops[i], own), expected = PMPI_Allreduce(give, theirs, 5, MPI_CHAR, ops[i], own);
        EXPECT((result == 0) == (expected == 0));
        EXPECT(memcmp(ours, theirs, sizeof ours) == 0);
    }
    MPI_Comm_free(&own);
}

/* The same bytes, described by each rank in its own way. */
static void ranks_may_describe_one_signature_differently(void)
{
    MPI_Datatype pairs, strided;
    MPI_Type_contiguous(2, MPI_INT, &pairs);
    MPI_Type_commit(&pairs);
    MPI_Type_vector(6, 1, 2, MPI_INT, &strided);
    MPI_Type_commit(&strided);
    for (int turn = 0; turn < 12; turn++) {
        int root = turn % ranks, own[12], all[6 * 64];
        memset(own, 0x55, sizeof own);
        MPI_Datatype type = rank % 3 == 0 ? MPI_INT : rank % 3 == 1 ? pairs : strided;
        int count = rank % 3 == 0 ? 6 : rank % 3 == 1 ? 3 : 1, step = rank % 3 == 2 ? 2 : 1;
        if (rank == root) for (int i = 0; i < 6; i++) own[i * step] = 100 * turn + i;
        MPI_Bcast(own, count, type, root, MPI_COMM_WORLD);
        for (int i = 0; i < 6; i++) EXPECT(own[i * step] == 100 * turn + i);
        if (step == 2) for (int i = 1; i < 12; i += 2) EXPECT(own[i] == 0x55555555);
        for (int i = 0; i < 6; i++) own[i * step] = 1000 * rank + i;
        MPI_Allgather(own, count, type, all, rank % 2 ? 6 : 3, rank % 2 ? MPI_INT : pairs, MPI_COMM_WORLD);
        for (int r = 0; r < ranks; r++) for (int i = 0; i < 6; i++) EXPECT(all[6 * r + i] == 1000 * r + i);
        memset(all, 0, sizeof all);
        MPI_Gather(own, count, type, all, 6, MPI_INT, root, MPI_COMM_WORLD);
        if (rank == root) for (int r = 0; r < ranks; r++) for (int i = 0; i < 6; i++) EXPECT(all[6 * r + i] == 1000 * r + i);
    }
    MPI_Type_free(&pairs);
    MPI_Type_free(&strided);
}

/* x -> a x + b in one word each: the composition of two affine maps, as two halves of an unsigned long. */
static void compose(void *in, void *inout, int *len, MPI_Datatype *type)
{
    (void)type;
    unsigned long long *first = in, *then = inout;
    for (int i = 0; i < *len; i++) {
        unsigned a = (unsigned)(first[i] >> 32), b = (unsigned)first[i], c = (unsigned)(then[i] >> 32), d = (unsigned)then[i];
        then[i] = (unsigned long long)(a * c) << 32 | (unsigned)(b * c + d);
    }
}

static unsigned long long map_of(int r, int i) { return (unsigned long long)(2 * r + 3 + i) << 32 | (unsigned)(7 * r + i + 1); }

static void operators_of_the_program_keep_the_order_of_ranks(void)
{
    MPI_Op op;
    MPI_Op_create(compose, 0, &op);
    for (int n = 1; n <= 3000; n = n * 7 + 3) {
        unsigned long long *own = malloc(sizeof *own * n), *result = malloc(sizeof *own * n), *expected = malloc(sizeof *own * n);
        for (int turn = 0; turn < 8; turn++) {
            for (int i = 0; i < n; i++) own[i] = map_of(rank, i), expected[i] = map_of(0, i);
            for (int r = 1; r < ranks; r++) {
                unsigned long long next;
                for (int i = 0; i < n; i++) { int one = 1; next = map_of(r, i); compose(&expected[i], &next, &one, NULL); expected[i] = next; }
            }
            MPI_Allreduce(own, result, n, MPI_UNSIGNED_LONG_LONG, op, MPI_COMM_WORLD);
            EXPECT(memcmp(result, expected, sizeof *own * n) == 0);
            memset(result, 0, sizeof *own * n);
            MPI_Reduce(own, result, n, MPI_UNSIGNED_LONG_LONG, op, turn % ranks, MPI_COMM_WORLD);
            if (rank == turn % ranks) EXPECT(memcmp(result, expected, sizeof *own * n) == 0);
        }
        free(own), free(result), free(expected);
    }
    MPI_Op_free(&op);
}

static void pairs_find_the_least_and_where(void)
{
    struct { double value; int where; } own, least;
    for (int turn = 0; turn < 20; turn++) {
        own.value = (rank * 5 + turn * 3) % 7, own.where = rank;
        MPI_Allreduce(&own, &least, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD);
        double best = 99;
        int where = -1;
        for (int r = 0; r < ranks; r++) if ((r * 5 + turn * 3) % 7 < best) best = (r * 5 + turn * 3) % 7, where = r;
        EXPECT(least.value == best && least.where == where);
    }
}

static void every_collective_is_right_in_each_form(void)
{
    enum { LONGEST = 9000 };
    int lengths[] = {0, 1, 3, 1000, LONGEST}, *in = malloc(sizeof *in * LONGEST * ranks), *out = malloc(sizeof *out * LONGEST * ranks);
    for (int turn = 0; turn < 20; turn++) {
        for (int kind = 0; kind < KINDS; kind++) {
            struct job job = job_of(kind, lengths[turn % 5], turn / 2, turn, turn % 4 < 2, in, out, MPI_COMM_WORLD);
            for (int form = 0; form < 2 * FORMS; form++) {
                job.in_place = form % 2;
                EXPECT(try_call(job, form / 2) == 0);
            }
        }
    }
    free(in), free(out);
}

/* Empty calls, often enough to be repeated without the whole way, and others between them. */
static void empty_calls_touch_nothing(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    for (int turn = 0; turn < 6; turn++) {
        int in[64], out[64];
        for (int r = 0; r < ranks; r++) in[r] = 10 * rank + r, out[r] = -1;
        for (int i = 0; i < 70 + 13 * turn; i++) {
            EXPECT(MPI_Bcast(out, 0, MPI_INT, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
            EXPECT(MPI_Reduce(in, out, 0, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
            EXPECT(MPI_Allreduce(in, out, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
            EXPECT(MPI_Allgather(in, 0, MPI_INT, out, 0, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS);
            EXPECT(MPI_Alltoall(in, 0, MPI_INT, out, 0, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS);
        }
        for (int r = 0; r < ranks; r++) EXPECT(out[r] == -1);
        sum_up(MPI_COMM_WORLD, turn);
        MPI_Alltoall(in, 1, MPI_INT, out, 1, MPI_INT, MPI_COMM_WORLD);
        for (int r = 0; r < ranks; r++) EXPECT(out[r] == 10 * r + rank);
    }
}

static void communicators_come_and_go(int many)
{
    for (int i = 0; i < many; i++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        /* Every hundredth lives long enough to get a team. */
        for (int call = 0; call < (i % 100 == 0 ? 12 : 1); call++) sum_up(comm, i + call);
        MPI_Comm_free(&comm);
    }
    MPI_Comm parts;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &parts);
    int size, place;
    MPI_Comm_size(parts, &size);
    MPI_Comm_rank(parts, &place);
    for (int i = 0; i < 20; i++) {
        int mine = place;
        MPI_Bcast(&mine, 1, MPI_INT, size - 1, parts);
        EXPECT(mine == size - 1);
        MPI_Barrier(parts);
    }
    MPI_Comm_free(&parts);
}

static void large_messages_are_right(void)
{
    int n = 300001;
    double *own = malloc(sizeof *own * n), *all = malloc(sizeof *own * n);
    for (int turn = 0; turn < 6; turn++) {
        for (int i = 0; i < n; i++) own[i] = rank + i % 13 + turn;
        MPI_Allreduce(own, all, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < n; i++) EXPECT(all[i] == ranks * (i % 13 + turn) + ranks * (ranks - 1) / 2);
        MPI_Bcast(own, n, MPI_DOUBLE, turn % ranks, MPI_COMM_WORLD);
        for (int i = 0; i < n; i++) EXPECT(own[i] == turn % ranks + i % 13 + turn);
    }
    free(own), free(all);
}

int main(int argc, char **argv)
{
    start_mpi(&argc, &argv, MPI_THREAD_SINGLE);
    get_team(MPI_COMM_WORLD);
    a_pending_send_goes_on_in_a_barrier();
    ranks_may_describe_one_signature_differently();
    operators_of_the_program_keep_the_order_of_ranks();
    pairs_find_the_least_and_where();
    letters_are_combined_as_by_the_host();
    every_collective_is_right_in_each_form();
    empty_calls_touch_nothing();
    large_messages_are_right();
    communicators_come_and_go(argc > 1 ? atoi(argv[1]) : 300);
    return end_mpi("rules: kept");
}
