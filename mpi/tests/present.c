/*
 * A random program: present SEED STEPS [CHILDREN]. Ranks make communicators in each way and call every collective on them, as drawn by the seed, and
 * each compares all that it gets. With CHILDREN rank 0 or all ranks spawn so many, and steps use a communicator merged of both, too; with
 * PRESENT_BARE=1 these are without lineweave. It may run with lineweave at any of its ranks.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMS = 12, MOST = 700 };
static MPI_Comm comms[COMMS];
static int rank, ranks, wrong, in[MOST * 16], out[MOST * 16], counts[16], places[16];

static uint64_t draw(uint64_t seed, uint64_t step, uint64_t what)
{
    uint64_t z = seed * 0x9e3779b97f4a7c15u + step * 0xd1342543de82ef95u + what * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void expect(int value, int wanted, int step, const char *what)
{
    if (value == wanted) return;
    if (wrong++ == 0) fprintf(stderr, "present: rank %d of %d, step %d, %s: %d and not %d\n", rank, ranks, step, what, value, wanted);
}

/* What rank r gives at place i. */
static int given(int r, int i, int step) { return r * 1000 + i % 97 + step; }

static void check(const int *got, int r, int n, int from, int step, const char *what)
{
    for (int i = 0; i < n; i++) expect(got[i], given(r, from + i, step), step, what);
}

static void one(MPI_Comm comm, int kind, int n, int root_drawn, int step)
{
    int me, size, root = 0, inter;
    MPI_Request request;
    MPI_Comm_test_inter(comm, &inter);
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &size);
    if (inter) {
        MPI_Barrier(comm);
        int mine = step, sum = 0, remote;
        MPI_Comm_remote_size(comm, &remote);
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
        expect(sum, step * remote, step, "allreduce between two groups");
        return;
    }
    root = root_drawn % size;
    int sum0 = 0;
    for (int r = 0; r < size; r++) sum0 += r * 1000;
    for (int i = 0; i < n * size; i++) in[i] = given(me, i, step);
    memset(out, 0xff, sizeof *out * (size_t)(n * size));
    for (int r = 0; r < size; r++) counts[r] = n, places[r] = r * n;
    switch (kind) {
    case 0: MPI_Barrier(comm); break;
    case 1:
        if (me == root) memcpy(out, in, sizeof *in * (size_t)n);
        MPI_Bcast(out, n, MPI_INT, root, comm);
        check(out, root, n, 0, step, "bcast");
        break;
    case 2:
        MPI_Reduce(in, out, n, MPI_INT, MPI_SUM, root, comm);
        for (int i = 0; me == root && i < n; i++) expect(out[i], sum0 + size * (i % 97 + step), step, "reduce");
        break;
    case 3:
    case 10:
    case 12:
        if (kind == 3) MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, comm);
        else {
#ifndef NO_PERSISTENT
            if (kind == 12) {
                MPI_Allreduce_init(in, out, n, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request);
                MPI_Start(&request);
                MPI_Wait(&request, MPI_STATUS_IGNORE);
                MPI_Request_free(&request);
            } else
#endif
            {
                MPI_Iallreduce(in, out, n, MPI_INT, MPI_SUM, comm, &request);
                MPI_Wait(&request, MPI_STATUS_IGNORE);
            }
        }
        for (int i = 0; i < n; i++) expect(out[i], sum0 + size * (i % 97 + step), step, "allreduce");
        break;
    case 4:
        MPI_Gather(in, n, MPI_INT, out, n, MPI_INT, root, comm);
        for (int r = 0; me == root && r < size; r++) check(out + r * n, r, n, 0, step, "gather");
        break;
    case 5:
        MPI_Scatter(in, n, MPI_INT, out, n, MPI_INT, root, comm);
        check(out, root, n, me * n, step, "scatter");
        break;
    case 6:
        MPI_Allgather(in, n, MPI_INT, out, n, MPI_INT, comm);
        for (int r = 0; r < size; r++) check(out + r * n, r, n, 0, step, "allgather");
        break;
    case 7:
        MPI_Alltoall(in, n, MPI_INT, out, n, MPI_INT, comm);
        for (int r = 0; r < size; r++) check(out + r * n, r, n, me * n, step, "alltoall");
        break;
    case 8:
        MPI_Reduce_scatter_block(in, out, n, MPI_INT, MPI_SUM, comm);
        for (int i = 0; i < n; i++) expect(out[i], sum0 + size * ((me * n + i) % 97 + step), step, "reduce_scatter_block");
        break;
    case 9:
        MPI_Scan(in, out, n, MPI_INT, MPI_SUM, comm);
        for (int i = 0; i < n; i++) expect(out[i], me * (me + 1) / 2 * 1000 + (me + 1) * (i % 97 + step), step, "scan");
        break;
    case 11:
        if (me == root) memcpy(out, in, sizeof *in * (size_t)n);
        MPI_Ibcast(out, n, MPI_INT, root, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check(out, root, n, 0, step, "ibcast");
        break;
    case 13:
        MPI_Allgatherv(in, n, MPI_INT, out, counts, places, MPI_INT, comm);
        for (int r = 0; r < size; r++) check(out + r * n, r, n, 0, step, "allgatherv");
        break;
    case 14:
        MPI_Alltoallv(in, counts, places, MPI_INT, out, counts, places, MPI_INT, comm);
        for (int r = 0; r < size; r++) check(out + r * n, r, n, me * n, step, "alltoallv");
        break;
    default:
        MPI_Exscan(in, out, n, MPI_INT, MPI_SUM, comm);
        for (int i = 0; me > 0 && i < n; i++) expect(out[i], me * (me - 1) / 2 * 1000 + me * (i % 97 + step), step, "exscan");
    }
}
enum { KINDS = 16 };

/* The communicators of one MPI_COMM_WORLD: the last two places are for spawned ranks. */
static void make(uint64_t seed)
{
    MPI_Group all, some;
    int sizes[1] = {ranks}, periods[1] = {0}, half = ranks / 2, low = rank < half;
    MPI_Comm halves;
    comms[0] = MPI_COMM_WORLD;
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, (int)(draw(seed, (uint64_t)rank, 90) % 2), -rank, &comms[2]);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    int first = (int)(draw(seed, 0, 91) % (uint64_t)ranks), range[1][3] = {{first, ranks - 1, 1}};
    MPI_Group_range_incl(all, 1, range, &some);
    MPI_Comm_create(MPI_COMM_WORLD, some, &comms[3]);
    if (rank >= first) MPI_Comm_create_group(MPI_COMM_WORLD, some, 7, &comms[4]);
    MPI_Cart_create(MPI_COMM_WORLD, 1, sizes, periods, 0, &comms[5]);
    if (half > 0) {
        MPI_Comm_split(MPI_COMM_WORLD, low, rank, &halves);
        MPI_Intercomm_create(halves, 0, MPI_COMM_WORLD, low ? half : 0, 3, &comms[6]);
        MPI_Intercomm_merge(comms[6], low, &comms[7]);
        MPI_Comm_free(&halves);
    }
    comms[8] = MPI_COMM_SELF;
    MPI_Comm_dup(comms[1], &comms[9]);
    MPI_Group_free(&some);
    MPI_Group_free(&all);
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int steps = argc > 2 ? atoi(argv[2]) : 200, children = argc > 3 ? atoi(argv[3]) : 0, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm parents, both = MPI_COMM_NULL;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_get_parent(&parents);
    for (int i = 0; i < COMMS; i++) comms[i] = MPI_COMM_NULL;
    if (parents == MPI_COMM_NULL) make(seed);
    /* Some programs have used MPI_COMM_WORLD before they spawn, and some have not. */
    int before = (int)(draw(seed, 1, 92) % 40), alone = (int)(draw(seed, 2, 93) % 2);
    for (int i = 0; i < before; i++) one(MPI_COMM_WORLD, 3, 1, 0, i);
    if (parents != MPI_COMM_NULL) both = parents;
    else if (children > 0 && (!alone || rank == 0)) {
        char *plain[] = {argv[1], argv[2], argv[3], NULL}, *bare[] = {"-u", "LD_PRELOAD", argv[0], argv[1], argv[2], argv[3], NULL};
        bool is_bare = getenv("PRESENT_BARE") != NULL;
        MPI_Comm_spawn(is_bare ? "/usr/bin/env" : argv[0], is_bare ? bare : plain, children, MPI_INFO_NULL, 0,
                       alone ? MPI_COMM_SELF : MPI_COMM_WORLD, &both, MPI_ERRCODES_IGNORE);
    }
    if (both != MPI_COMM_NULL) {
        MPI_Intercomm_merge(both, parents != MPI_COMM_NULL, &comms[10]);
        MPI_Comm_dup(comms[10], &comms[11]);
    }
    for (int step = 0; step < steps; step++) {
        /* Runs of calls on one communicator, as programs have them, and single ones. */
        int which = (int)(draw(seed, (uint64_t)step / 8 * 8 + (draw(seed, (uint64_t)step / 8, 94) % 3 == 0 ? (uint64_t)step % 8 : 0), 95) % COMMS);
        if (comms[which] == MPI_COMM_NULL) continue;
        int n = (int)(draw(seed, (uint64_t)step, 96) % 4 == 0 ? draw(seed, (uint64_t)step, 97) % MOST : draw(seed, (uint64_t)step, 97) % 9);
        one(comms[which], (int)(draw(seed, (uint64_t)step, 98) % KINDS), n, (int)(draw(seed, (uint64_t)step, 99) % 16), step);
    }
    for (int i = 1; i < COMMS; i++) {
        if (i != 8 && comms[i] != MPI_COMM_NULL) MPI_Comm_free(&comms[i]);
    }
    MPI_Allreduce(&wrong, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (both != MPI_COMM_NULL) MPI_Comm_disconnect(&both);
    MPI_Finalize();
    if (rank == 0) printf("present: %d wrong%s\n", sum, parents == MPI_COMM_NULL ? "" : " at the children");
    return sum != 0;
}
