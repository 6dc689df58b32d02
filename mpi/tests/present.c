/*
 * A random program: present SEED STEPS [CHILDREN]. Ranks make communicators in each way and call every collective on them, as drawn by the seed, and
 * each compares all that it gets. With CHILDREN rank 0 or all ranks spawn so many, and steps use a communicator merged of both, too; with
 * PRESENT_BARE=1 these are without lineweave. It may run with lineweave at any of its ranks.
 */
#include "kinds.h"
#include <stdint.h>

enum { COMMS = 12, MOST = 700 };
static MPI_Comm comms[COMMS];
static int wrong, in[MOST * 16], out[MOST * 16];

static uint64_t draw(uint64_t seed, uint64_t step, uint64_t what)
{
    uint64_t z = seed * 0x9e3779b97f4a7c15u + step * 0xd1342543de82ef95u + what * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void one(MPI_Comm comm, int kind, int form, int n, int root, int step)
{
    int inter;
    MPI_Comm_test_inter(comm, &inter);
    if (inter) {
        MPI_Barrier(comm);
        int mine = step, sum = 0, remote;
        MPI_Comm_remote_size(comm, &remote);
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
        wrong += sum != step * remote;
        return;
    }
    struct job job = job_of(kind, n, root, step, true, in, out, comm);
    job.in_place = root % 4 == 3;
    wrong += try_call(job, form);
}

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
    start_mpi(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm parents, both = MPI_COMM_NULL;
    MPI_Comm_get_parent(&parents);
    for (int i = 0; i < COMMS; i++) comms[i] = MPI_COMM_NULL;
    if (parents == MPI_COMM_NULL) make(seed);
    /* Some programs have used MPI_COMM_WORLD before they spawn, and some have not. */
    int before = (int)(draw(seed, 1, 92) % 40), alone = (int)(draw(seed, 2, 93) % 2);
    for (int i = 0; i < before; i++) one(MPI_COMM_WORLD, ALLREDUCE, BLOCKING, 1, 0, i);
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
        /* Most calls block. */
        int form = (int)(draw(seed, (uint64_t)step, 100) % (2 * FORMS));
        one(comms[which], (int)(draw(seed, (uint64_t)step, 98) % KINDS), form < FORMS ? form : BLOCKING, n, (int)(draw(seed, (uint64_t)step, 99) % 16), step);
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
