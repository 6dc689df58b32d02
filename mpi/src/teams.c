/*
 * The decision to form the team of a communicator, and what comes of it.
 *
 * 1. Ranks count the calls that all of them entered, as each can know after leaving: not those that were refused at a rank, nor those that end at
 *    one rank without the others. So the count is equal on all ranks. When calls that passed have cost about as much as a team costs, the
 *    communicator gets one, after such a call or another (docs/explanation/mpi-teams.md). On one node the ranks agree to it in memory (agree.c),
 *    which also shows that all of them are there. On several nodes rank 0 decides, and tells the others by the host: all ranks of MPI_COMM_WORLD
 *    are known to be there (presence.c).
 * 2. Directly after the same call, within it, they find out where they meet (forming.c).
 * 3. Where the ranks of one node have to meet first, a thread of each rank forms the team beside the program (beside.c). If one of them meets others
 *    already, they try again later.
 * 4. Otherwise they form it within the call, and then all tell by the host whether it worked. If it failed at one, none has a team: the communicator
 *    passes for ever.
 */
#include "board.h"
#include "forming.h"
#include "nodes.h"

#include <stdlib.h>

/* Processor time that a team has cost this rank lately, in nanoseconds; before the first team, about the cost on known machines. */
static uint64_t team_ns = 3000000;
uint64_t lwm_team_ns(void) { return __atomic_load_n(&team_ns, __ATOMIC_RELAXED); }

void lwm_team_cost(uint64_t cost_ns, uint64_t took_ns, int where)
{
    __atomic_store_n(&team_ns, (lwm_team_ns() + cost_ns) / 2, __ATOMIC_RELAXED);
    __atomic_fetch_add(&lwm_setup[where], took_ns, __ATOMIC_RELAXED);
}

int *lwm_nodes_of(MPI_Comm comm, int size)
{
    int *ranks = malloc(2 * sizeof *ranks * (size_t)size), *there = ranks + size;
    MPI_Group group;
    if (!ranks || lwm_host.Comm_group(comm, &group) != 0) {
        free(ranks);
        return NULL;
    }
    for (int r = 0; r < size; r++) ranks[r] = r;
    bool known = lwm_host.Group_translate_ranks(group, size, ranks, lwm_world_group, there) == 0;
    lwm_host.Group_free(&group);
    for (int r = 0; r < size && known; r++) {
        known = there[r] != LWM_UNDEFINED && there[r] >= 0;
        if (known) ranks[r] = lwm_node_of[there[r]];
    }
    if (known) return ranks;
    free(ranks);
    return NULL;
}

/* Lets the host move messages while a rank waits in lineweave: other ranks may need them before they arrive. Probing for a message takes none
 * away. (MPICH does nothing for others when asked about MPI_COMM_SELF.) */
void lwm_progress(void *unused)
{
    (void)unused;
    int flag;
    lwm_host.Iprobe(LWM_ANY_SOURCE, 0, lwm_host.world, &flag, LWM_STATUS_IGNORE);
}

static void away(struct lwm_comm *comm, enum lwm_reason why)
{
    comm->way = LWM_AWAY;
    comm->why = why;
}

void lwm_comm_has_team(struct lwm_comm *comm, enum lwm_way way)
{
    comm->way = way;
    __atomic_fetch_add(&lwm_setup[LWM_TEAMS], 1, __ATOMIC_RELAXED);
}

void lwm_comm_has_none(struct lwm_comm *comm)
{
    away(comm, LWM_WHY_FAILED);
    if (comm->rank == 0) lwm_say("a communicator of %d ranks has no team, and passes to the host", comm->size);
}

/* Returns whether all ranks have the library, after a call that all entered. Of ranks of one MPI_COMM_WORLD it is known; of others, each that has
 * the library took the line before the call. */
static bool all_are_there(struct lwm_comm *comm)
{
    bool there = !comm->foreign || lwm_board_users(comm->line) >= comm->size;
    comm->why = there ? LWM_WHY_EARLY : LWM_WHY_ABSENT;
    return there;
}

/* Returns whether it is time to make the communicator's team, and all ranks are there for it. */
static bool is_due(struct lwm_comm *comm)
{
    if (comm->calls < comm->look_at) return false;
    comm->look_at = 2 * comm->calls;
    if (comm->word) return all_are_there(comm) && lwm_agree_all(comm);
    lwm_waits();
    if (lwm_settings.counts) return true;
    int due = comm->passed_ns > lwm_team_ns();
    return lwm_host.Bcast(&due, 1, lwm_host.integer, 0, comm->handle) == 0 && due;
}

/* Forms the team within this call, with those of other nodes if there are `several`, and tells the others whether it worked at this rank. */
static void make_within(struct lwm_comm *comm, struct lwm_forming *f, const int *nodes, bool several)
{
    bool made = lwm_forming_make(f, lwm_progress);
    if (made && several) made = (comm->nodes = lwm_nodes_make(comm, nodes, f->made[LWM_BLOCKING])) != NULL;
    int fine = made, all = made;
    /* A rank that joined in memory knows that all did. */
    bool agreed = !f->meets && !several ? fine :
        lwm_host.Allreduce(&fine, &all, 1, lwm_host.integer, lwm_host.min, comm->handle) == 0 && all;
    if (agreed && several) agreed = lwm_nodes_join(comm, comm->nodes);
    if (agreed) {
        lwm_forming_give(f, &comm->team, LWM_BLOCKING);
        if (!several) lwm_forming_give(f, &comm->started, LWM_STARTED);
        lwm_comm_has_team(comm, several ? LWM_NODES : LWM_TEAM);
    } else {
        if (comm->nodes) lwm_nodes_free(comm->nodes);
        comm->nodes = NULL;
        lwm_comm_has_none(comm);
    }
}

/* Gives a communicator a team of each node that has several of its ranks, if all is `fine` at every rank. */
static void make(struct lwm_comm *comm, const int *nodes, bool several, bool fine)
{
    struct lwm_forming *f = calloc(1, sizeof *f);
    /* The ranks are known to be there: without memory this one cannot tell the others. */
    if (!f) lwm_host.Abort(comm->handle, 1);
    *f = (struct lwm_forming){.rank = comm->rank, .size = comm->size, .foreign = comm->foreign, .word = comm->word};
    enum lwm_forms forms = lwm_forming_agree(f, comm->handle, nodes, fine);
    if (forms == LWM_FORM && lwm_beside_is_due(f)) {
        lwm_beside_begin(comm, f);
        return;
    }
    if (forms == LWM_FORM) make_within(comm, f, nodes, several);
    else if (forms == LWM_FORM_NOT) lwm_comm_has_none(comm);
    else comm->look_at = comm->calls + comm->calls / 4 + 8;
    lwm_forming_free(f);
}

/* Returns the result of lwm_nodes_of for ranks that share a node and are no ranks of this MPI_COMM_WORLD. */
static int *nowhere(int size)
{
    int *nodes = malloc(2 * sizeof *nodes * (size_t)size);
    for (int r = 0; nodes && r < size; r++) {
        nodes[r] = 0;
        nodes[size + r] = -1;
    }
    return nodes;
}

void lwm_comm_settle(struct lwm_comm *comm, bool fine)
{
    uint64_t began = lwm_now_ns();
    int *nodes = comm->foreign ? nowhere(comm->size) : lwm_nodes_of(comm->handle, comm->size);
    /* As above. */
    if (!nodes) lwm_host.Abort(comm->handle, 1);
    bool shared = false, several = false;
    for (int r = 0; r < comm->size; r++) {
        several = several || nodes[r] != nodes[0];
        for (int q = 0; q < r && !shared; q++) shared = nodes[q] == nodes[r];
    }
    if (shared) make(comm, nodes, several, fine);
    else away(comm, LWM_WHY_SPREAD);
    free(nodes);
    uint64_t took = lwm_now_ns() - began;
    if (comm->way == LWM_FORMS || comm->way == LWM_NEW) __atomic_fetch_add(&lwm_setup[LWM_TEAMS_NS], took, __ATOMIC_RELAXED);
    else lwm_team_cost(took, took, LWM_TEAMS_NS);
}

void lwm_comm_came(struct lwm_comm *comm, bool fine)
{
    comm->calls++;
    if (is_due(comm)) lwm_comm_settle(comm, fine);
}
