/* A team of several processes with several threads each, as Team::spawn_mixed starts it: lw_team_from_env.
 * team mixed | alone */
#include "expect.h"

static lw_team *team;

static void *member(void *argument) {
    int rank = *(int *)argument;
    lw_comm *comm;
    EXPECT(lw_team_join(team, rank, &comm) == LW_OK);
    EXPECT(lw_comm_rank(comm) == rank);
    int64_t size = lw_comm_size(comm), sum = rank + 1, all[64];
    EXPECT(lw_allreduce(comm, LW_IN_PLACE, &sum, 1, LW_I64, LW_SUM) == LW_OK);
    EXPECT(sum == size * (size + 1) / 2);
    EXPECT(lw_allgather(comm, &sum, all, 1, LW_I64) == LW_OK);
    for (int64_t i = 0; i < size; i++) EXPECT(all[i] == sum);
    EXPECT(lw_comm_free(comm) == LW_OK);
    return NULL;
}

int main(int argc, char **argv) {
    int first = -1, count = -1, ranks[64];
    pthread_t threads[64];
    lw_status found = lw_team_from_env(&team, &first, &count);
    if (argc > 1 && strcmp(argv[1], "alone") == 0) {
        /* Nobody has started this process for a team. */
        EXPECT(found == LW_ERR_ENVIRONMENT && strlen(lw_last_error()) > 10);
        EXPECT(lw_team_from_env(NULL, &first, &count) == LW_ERR_NULL);
        EXPECT(lw_team_from_env(&team, NULL, &count) == LW_ERR_NULL);
        EXPECT(lw_team_from_env(&team, &first, NULL) == LW_ERR_NULL);
        return 0;
    }
    EXPECT(found == LW_OK);
    EXPECT(first >= 0 && count > 0 && count <= 64);
    for (int i = 0; i < count; i++) {
        ranks[i] = first + i;
        EXPECT(pthread_create(&threads[i], NULL, member, &ranks[i]) == 0);
    }
    for (int i = 0; i < count; i++) EXPECT(pthread_join(threads[i], NULL) == 0);
    /* A rank is joined once, and there is none before the first. */
    lw_comm *again;
    EXPECT(lw_team_join(team, first, &again) == LW_ERR_RANK);
    EXPECT(first == 0 || lw_team_join(team, first - 1, &again) == LW_ERR_RANK);
    EXPECT(lw_team_free(team) == LW_OK);
    printf("%d\n", count);
    return 0;
}
