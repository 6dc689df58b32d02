/* Communicators made from others, among threads and among processes. */
#include "expect.h"

static int64_t sum(lw_comm *comm, int64_t mine) {
    int64_t all = 0;
    EXPECT(lw_allreduce(comm, &mine, &all, 1, LW_I64, LW_SUM) == LW_OK);
    return all;
}

static lw_status everything(lw_comm *comm, void *arg) {
    (void)arg;
    int rank = lw_comm_rank(comm), ranks = lw_comm_size(comm);
    lw_comm *twin = NULL, *part = NULL, *here = NULL, *group = NULL, *many[50];
    lw_memory before, after;

    EXPECT(lw_comm_dup(comm, &twin) == LW_OK);
    EXPECT(lw_comm_rank(twin) == rank && lw_comm_size(twin) == ranks);
    EXPECT(lw_comm_memory(twin, &before) == LW_OK);
    EXPECT(sum(twin, 1) == ranks && sum(comm, 2) == 2 * ranks);
    EXPECT(lw_comm_memory(twin, &after) == LW_OK);
    EXPECT(after.shared_bytes >= before.shared_bytes && after.shared_bytes < after.address_bytes);
    lw_setup setup;
    EXPECT(lw_comm_setup(twin, &setup) == LW_OK);
    EXPECT(setup.plans > 0 && setup.plan_bytes > 0 && setup.took_ns > 0 && setup.held_up <= setup.plans);

    /* The last rank is in none, the others in two, in reverse order. */
    int colour = rank == ranks - 1 ? LW_UNDEFINED : rank % 2;
    EXPECT(lw_comm_split(twin, colour, -rank, &part) == LW_OK);
    EXPECT((part == NULL) == (rank == ranks - 1));
    if (part) {
        int size = lw_comm_size(part);
        EXPECT(size == (ranks - 1 + 1 - rank % 2) / 2);
        EXPECT(lw_comm_rank(part) == size - 1 - rank / 2);
        EXPECT(sum(part, rank % 2) == size * (rank % 2));
    }
    EXPECT(lw_comm_split_level(comm, LW_LEVEL_MACHINE, &here) == LW_OK);
    EXPECT(lw_comm_free(twin) == LW_OK);
    EXPECT(sum(here, rank) == ranks * (ranks - 1) / 2);
    if (part) EXPECT(lw_barrier(part) == LW_OK && lw_comm_free(part) == LW_OK);

    int list[2] = {ranks - 1, 0};
    size_t count = ranks > 1 ? 2 : 1;
    if (rank == 0 || rank == ranks - 1) {
        EXPECT(lw_comm_create_group(comm, list, count, &group) == LW_OK);
        EXPECT(lw_comm_rank(group) == (rank == ranks - 1 ? 0 : 1));
        EXPECT(sum(group, 1) == (int64_t)count);
        EXPECT(lw_comm_free(group) == LW_OK);
    }
    for (int i = 0; i < 50; i++) EXPECT(lw_comm_dup(here, &many[i]) == LW_OK);
    for (int i = 49; i >= 0; i--) {
        EXPECT(sum(many[i], i) == i * ranks);
        EXPECT(lw_comm_free(many[i]) == LW_OK);
    }
    EXPECT(lw_comm_free(here) == LW_OK);

    /* Plans that are chosen ahead, and what cannot be planned. */
    lw_planner *planner = NULL;
    EXPECT(lw_comm_planner(comm, &planner) == LW_OK);
    for (lw_collective kind = LW_BARRIER; kind <= LW_ALLTOALL; kind++) EXPECT(lw_planner_plan(planner, kind, 3, LW_I64, LW_SUM, ranks - 1) == LW_OK);
    EXPECT(sum(comm, 1) == ranks);
    EXPECT(lw_planner_plan(planner, LW_ALLTOALL + 1, 3, LW_I64, LW_SUM, 0) == LW_ERR_TYPE);
    EXPECT(lw_planner_plan(planner, LW_BCAST, 3, LW_I64, LW_SUM, ranks) == LW_ERR_ROOT);
    EXPECT(lw_planner_plan(planner, LW_REDUCE, 3, LW_I64, -1, 0) == LW_ERR_OP);
    for (lw_collective kind = LW_BARRIER; kind <= LW_ALLTOALL; kind++) {
        size_t many = 100;
        for (size_t i = 0; i < many; i++) EXPECT(lw_planner_plan_alike(planner, kind, 1000, LW_I64, LW_SUM, 0, i, &many) == LW_OK && many <= 32);
        EXPECT(kind == LW_BARRIER ? many == 0 : many > 0);
        EXPECT(lw_planner_plan_alike(planner, kind, 0, LW_I64, LW_SUM, 0, 0, &many) == LW_OK && many == 0);
    }
    EXPECT(lw_planner_plan_alike(planner, LW_BCAST, 3, LW_I64, LW_SUM, 0, 0, NULL) == LW_ERR_NULL);
    EXPECT(lw_planner_plan(NULL, LW_BCAST, 3, LW_I64, LW_SUM, 0) == LW_ERR_NULL && lw_comm_planner(comm, NULL) == LW_ERR_NULL);
    /* Nothing is kept where there is no folder for it. */
    uint64_t kept = 1;
    EXPECT(lw_planner_keep(planner, 42, 7) == LW_OK && lw_planner_kept(planner, 42, &kept) == LW_OK && (kept == 7 || kept == 0));
    EXPECT(lw_planner_kept(planner, 43, &kept) == LW_OK && kept == 0);
    EXPECT(lw_planner_kept(planner, 42, NULL) == LW_ERR_NULL && lw_planner_keep(NULL, 42, 7) == LW_ERR_NULL);
    EXPECT(lw_planner_free(planner) == LW_OK && lw_planner_free(planner) == LW_ERR_HANDLE && lw_planner_free(NULL) == LW_OK);

    /* Places that rank 0 takes and tells; all ranks in reverse order. */
    lw_site *site = NULL;
    uint64_t places[2] = {0, 0};
    lw_comm *pair[2] = {NULL, NULL};
    int reverse[64];
    for (int r = 0; r < ranks; r++) reverse[r] = ranks - 1 - r;
    EXPECT(ranks <= 64 && lw_comm_site(comm, &site) == LW_OK);
    for (int i = 0; i < 2 && rank == 0; i++) EXPECT(lw_site_place(site, reverse, ranks, &places[i]) == LW_OK);
    EXPECT(lw_bcast(comm, places, 2, LW_U64, 0) == LW_OK);
    EXPECT(lw_site_join(site, places, 2, reverse, ranks, NULL, NULL, pair) == LW_OK);
    EXPECT(lw_comm_rank(pair[0]) == ranks - 1 - rank && sum(pair[1], 1) == ranks && sum(pair[0], 3) == 3 * ranks);
    EXPECT(lw_site_join(site, NULL, 1, reverse, ranks, NULL, NULL, pair) == LW_ERR_NULL);
    EXPECT(lw_site_place(site, reverse, 0, places) == LW_ERR_SIZE && lw_site_place(NULL, reverse, 1, places) == LW_ERR_NULL);
    EXPECT(lw_site_place(site, NULL, 1, places) == LW_ERR_NULL && lw_site_place(site, &ranks, 1, places) == LW_ERR_RANK);
    /* A rank declines. */
    lw_comm *none = NULL;
    if (rank == 0) EXPECT(lw_site_place(site, reverse, ranks, &places[0]) == LW_OK);
    EXPECT(lw_bcast(comm, places, 1, LW_U64, 0) == LW_OK);
    lw_status declined = rank == ranks - 1 ? lw_site_decline(site, places, 1, reverse, ranks)
                                           : lw_site_join(site, places, 1, reverse, ranks, NULL, NULL, &none);
    EXPECT(declined == (rank == ranks - 1 ? LW_OK : LW_ERR_FAILED) && none == NULL);
    EXPECT(lw_site_decline(site, NULL, 1, reverse, ranks) == LW_ERR_NULL);
    EXPECT(lw_site_free(site) == LW_OK && lw_site_free(site) == LW_ERR_HANDLE && lw_site_free(NULL) == LW_OK);
    EXPECT(lw_barrier(pair[0]) == LW_OK && lw_comm_free(pair[0]) == LW_OK && lw_comm_free(pair[1]) == LW_OK);

    /* What is refused is refused at every rank, before anything is exchanged. */
    EXPECT(lw_comm_dup(comm, NULL) == LW_ERR_NULL);
    EXPECT(lw_comm_dup(NULL, &twin) == LW_ERR_NULL);
    EXPECT(lw_comm_split(comm, -2, 0, &part) == LW_ERR_RANK);
    EXPECT(lw_comm_split_level(comm, 5, &part) == LW_ERR_RANK);
    EXPECT(lw_comm_split_level(comm, -1, &part) == LW_ERR_RANK);
    EXPECT(lw_comm_create_group(comm, NULL, 1, &part) == LW_ERR_NULL);
    EXPECT(lw_comm_create_group(comm, list, (size_t)ranks + 1, &part) == LW_ERR_COUNT);
    list[0] = -1;
    EXPECT(lw_comm_create_group(comm, list, 1, &part) == LW_ERR_RANK);
    EXPECT(lw_comm_memory(comm, NULL) == LW_ERR_NULL);
    EXPECT(lw_comm_setup(comm, NULL) == LW_ERR_NULL);
    EXPECT(lw_barrier(comm) == LW_OK);
    return LW_OK;
}

int main(int argc, char **argv) { return run_team(argc, argv, everything); }
