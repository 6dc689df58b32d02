/*
 * Names of communicators, by which their ranks on one node find a common word in memory (board.c) without a message.
 *
 * 1. MPI_COMM_WORLD has one (presence.c). An intercommunicator between ranks that were spawned and those who spawned them has the spawn's.
 * 2. A communicator that is made from one with a name gets a name made from that name, from the number of those made from it before, and from its
 *    own first rank. All ranks of the old one make new ones in one order, so all ranks of a new one get the same name, and no other has it.
 * 3. Communicators that only the ranks of a group make are counted for each group and tag separately.
 *
 * If a communicator could not be made at one rank, though the call was not refused, this rank's later names match no other rank's: those
 * communicators are left to the host. Communicators made otherwise (MPI_Comm_idup, MPI_Dist_graph_create, sessions) have no name.
 */
#include "presence.h"

#include <pthread.h>
#include <stdlib.h>

/* The number of communicators that ranks of one group have made. */
struct lwm_group_count {
    uint64_t group, many;
    struct lwm_group_count *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The name itself is the attribute. */
_Static_assert(sizeof(void *) == sizeof(uint64_t), "a name is kept in a pointer");
static int keyval;

static int nothing_to_free(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    return 0;
}

bool lwm_names_open(void) { return lwm_host.Comm_create_keyval(lwm_no_copy, nothing_to_free, &keyval, NULL) == 0; }

void lwm_names_forget(struct lwm_comm *comm)
{
    for (struct lwm_group_count *next; comm->groups; comm->groups = next) {
        next = comm->groups->next;
        free(comm->groups);
    }
}

uint64_t lwm_name_of(MPI_Comm comm)
{
    void *name = NULL;
    int known = 0;
    MPI_Comm parents = lwm_host.null;
    if (comm == lwm_host.world) return lwm_presence_world();
    if (lwm_host.Comm_get_attr(comm, keyval, &name, &known) == 0 && known) return (uint64_t)name;
    bool spawned = lwm_presence_parent() && lwm_host.Comm_get_parent(&parents) == 0;
    return spawned && comm == parents ? lwm_presence_parent() : 0;
}

/* Returns the rank in the parent of a new communicator's first rank; -1 where there is none. */
static int first_in(MPI_Comm parent, MPI_Comm made)
{
    MPI_Group old, new;
    int zero = 0, first = -1;
    if (lwm_host.Comm_group(parent, &old) != 0) return -1;
    if (lwm_host.Comm_group(made, &new) == 0) {
        if (lwm_host.Group_translate_ranks(new, 1, &zero, old, &first) != 0) first = -1;
        lwm_host.Group_free(&new);
    }
    lwm_host.Group_free(&old);
    return first;
}

/* Gives a communicator a name. A rank without memory for it would decide otherwise than the others, so it ends the program. */
void lwm_named(MPI_Comm made, uint64_t name)
{
    if (lwm_host.Comm_set_attr(made, keyval, (void *)name) != 0) lwm_host.Abort(made, 1);
}


/* Returns the record that counts the communicators made from this one; null where no names are given. */
static struct lwm_comm *parent_of(MPI_Comm handle)
{
    if (!lwm_active && !lwm_open) return NULL;
    struct lwm_comm *parent = lwm_record_of(handle);
    if (!parent) lwm_host.Abort(handle, 1);
    return parent && parent->name ? parent : NULL;
}

/* Returns the name of the communicator that all ranks of `parent` made now; 0: none. */
static uint64_t next_name(struct lwm_comm *parent, int result)
{
    if (!parent) return 0;
    if (LWM_UNLIKELY(result != 0)) {
        /* If the call was refused, no other rank made one either. */
        if (!lwm_is_refusal(result)) parent->made = lwm_mix(lwm_board_token() + parent->made, (uint64_t)lwm_world_rank + lwm_now_ns());
        return 0;
    }
    return lwm_mix_for(LWM_NAME_MADE, parent->name, __atomic_add_fetch(&parent->made, 1, __ATOMIC_RELAXED));
}

int lwm_introduced_by(MPI_Comm handle, int result, const MPI_Comm *made)
{
    if (LWM_LIKELY(!lwm_open) || result != 0 || !made || *made == lwm_host.null) return result;
    int size = 0;
    /* Some calls return at once at a rank that is in no new communicator: only a rank in it knows that all of its ranks arrived. */
    bool of_all = handle == lwm_host.world && lwm_host.Comm_size(*made, &size) == 0 && size == lwm_world_size;
    bool of_parents = lwm_presence_parent() && lwm_name_of(handle) == lwm_presence_parent();
    if (of_all || of_parents) lwm_set_up();
    return result;
}

int lwm_duplicated(MPI_Comm handle, int result, const MPI_Comm *made)
{
    uint64_t name = next_name(parent_of(handle), result);
    if (name) lwm_named(*made, name);
    return lwm_introduced_by(handle, result, made);
}

int lwm_all_made(MPI_Comm handle, int result, const MPI_Comm *made)
{
    uint64_t name = next_name(parent_of(handle), result);
    int inter = 1;
    /* The two groups of an intercommunicator know different first ranks. */
    if (name && made && *made != lwm_host.null && lwm_host.Comm_test_inter(*made, &inter) == 0 && !inter)
        lwm_named(*made, lwm_mix_for(LWM_NAME_MADE, name, (uint64_t)first_in(handle, *made)));
    return lwm_introduced_by(handle, result, made);
}

/* Returns the counter of the communicators that this group has made by this tag. */
static uint64_t *count_of(struct lwm_comm *parent, uint64_t group)
{
    pthread_mutex_lock(&lock);
    struct lwm_group_count *found = parent->groups;
    while (found && found->group != group) found = found->next;
    if (!found && (found = calloc(1, sizeof *found))) {
        *found = (struct lwm_group_count){.group = group, .next = parent->groups};
        parent->groups = found;
    }
    pthread_mutex_unlock(&lock);
    return found ? &found->many : NULL;
}

int lwm_group_made(MPI_Comm handle, MPI_Group group, int tag, int result, const MPI_Comm *made)
{
    struct lwm_comm *parent = result == 0 && made && *made != lwm_host.null ? parent_of(handle) : NULL;
    int size = 0;
    if (!parent || lwm_host.Comm_size(*made, &size) != 0) return result;
    int *ranks = malloc(2 * sizeof *ranks * (size_t)size), *there = ranks + size;
    MPI_Group all;
    if (!ranks || lwm_host.Comm_group(handle, &all) != 0) lwm_host.Abort(handle, 1);
    for (int r = 0; r < size; r++) ranks[r] = r;
    uint64_t name = lwm_mix_for(LWM_NAME_GROUP, parent->name, (uint64_t)tag);
    if (lwm_host.Group_translate_ranks(group, size, ranks, all, there) != 0) lwm_host.Abort(handle, 1);
    for (int r = 0; r < size; r++) name = lwm_mix(name, (uint64_t)there[r]);
    lwm_host.Group_free(&all);
    free(ranks);
    uint64_t *many = count_of(parent, name);
    if (!many) lwm_host.Abort(handle, 1);
    lwm_named(*made, lwm_mix_for(LWM_NAME_GROUP, name, ++*many));
    return result;
}
