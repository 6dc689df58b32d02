/*
 * Calls that come again: the last one of a kind is kept with its arguments, and one like it is carried out, or passes, after a few comparisons
 * (collectives.inc). Those are counted later, together.
 *
 * Where ranks still have to agree on something, every so many calls that pass have to go all steps:
 * 1. While a communicator has no team, those after which ranks agree whether it gets one (agree.c, teams.c). So only those before the next of these
 *    pass without all steps, whatever their kind.
 * 2. While a team forms, or plans are chosen, calls are numbered for the change-over (change.c). Some numbers are taken ahead, and those that were
 *    not used are given back before the next call that goes all steps.
 */
#include "call.h"
#include "forming.h"
#include "planning.h"

/* The most calls that pass so before a team forms; the most whose numbers are taken ahead, by which a change-over comes later; and the most bytes of
 * these. Longer ones gain nothing. */
enum { MOST = 31, AHEAD = 15, FEW_BYTES = 4096 };

/* Returns one more than the number of calls until the next one that is timed (lwm_is_timed), after so many. */
static uint32_t until_timed(uint64_t before) { return before < 16 ? 0 : 64 - (uint32_t)(before & 63) + 1; }

void lwm_count_hot(struct lwm_comm *comm, enum lwm_kind kind)
{
    struct lwm_hot *hot = &comm->hot[kind];
    struct lwm_count *count = &lwm_counts[kind][hot->size_class];
    if (hot->done > 0) {
        lwm_add(hot->host ? &count->passed : &count->taken, hot->done);
        if (hot->host) lwm_add(&count->why[hot->why], hot->done);
        else lwm_add(&count->taken_bytes, hot->done * hot->bytes);
    }
    if (hot->planning) lwm_planning_back(hot->planning, hot->left - 1);
    else if (hot->race) hot->race->left -= hot->done;
    hot->planning = NULL;
    hot->done = hot->left = 0;
}

void lwm_heat(const struct lwm_call *call, struct lwm_hot hot)
{
    struct lwm_comm *comm = call->comm;
    /* Calls without data are not compared, and need no plans, but for barriers. */
    bool counts = hot.bytes > 0 || call->kind == LWM_BARRIER, planned = counts && call->why == LWM_WHY_PLANS;
    struct lwm_race *race = counts && (lwm_settings.race || planned) ? &comm->races[call->kind][call->race_class] : NULL;
    if (comm->way != LWM_TEAM || (race && race->left == 0 && !planned)) return;
    /* The next timed call goes through all steps, and so does the first of the next contest. */
    const struct lwm_count *count = &lwm_counts[call->kind][call->size_class];
    hot.host = race && (race->host || planned);
    hot.why = planned ? LWM_WHY_PLANS : LWM_WHY_RACE;
    hot.left = until_timed(hot.host ? count->passed : count->taken);
    hot.race = race;
    uint64_t most = !race ? UINT32_MAX : planned ? AHEAD : race->left;
    if (hot.left > most) hot.left = (uint32_t)most + 1;
    if (planned) {
        if (!race->planning || !comm->brief || hot.bytes > FEW_BYTES || hot.left < 2) return;
        if (!lwm_planning_ahead(race->planning, hot.left - 1)) return;
        hot.planning = race->planning;
    }
    hot.size_class = call->size_class;
    comm->hot[call->kind] = hot;
}

int lwm_repeat_failed(struct lwm_comm *comm, enum lwm_kind kind)
{
    struct lwm_call call = {.comm = comm, .kind = kind, .bytes = comm->hot[kind].bytes};
    lwm_count_hot(comm, kind);
    lwm_done(&call, LW_ERR_FAILED);
    return call.result;
}

/* Returns how many calls may pass before one has to go all steps, on a communicator without a team; 0: none. */
static uint32_t may_pass(struct lwm_comm *comm)
{
    if (!comm->brief) return 0;
    if (comm->way == LWM_FORMS) return lwm_beside_ahead(comm, AHEAD) ? AHEAD : 0;
    /* This call may count yet. */
    uint64_t to_look = comm->look_at > comm->calls + 2 ? comm->look_at - comm->calls - 2 : 0;
    uint64_t to_agree = !comm->word ? MOST : comm->agrees_at > comm->position + 1 ? comm->agrees_at - comm->position - 1 : 0;
    uint64_t many = to_look < to_agree ? to_look : to_agree;
    return many < MOST ? (uint32_t)many : MOST;
}

bool lwm_away_again(struct lwm_call *call, struct lwm_hot hot)
{
    lwm_away(call, hot.count, hot.type);
    struct lwm_comm *comm = call->comm;
    bool known = comm && hot.count >= 0 && lwm_size_of_known(hot.type) > 0;
    if (!known || lwm_threads || lwm_settings.report || comm->way == LWM_FIRST) return false;
    if (comm->pass_way != comm->way) comm->pass_kinds = 0;
    comm->pass_way = comm->way;
    comm->pass_kinds |= 1u << call->kind;
    hot.host = true;
    hot.why = (uint8_t)call->why;
    hot.bytes = call->bytes;
    hot.align = 1;
    hot.size_class = call->size_class;
    comm->hot[call->kind] = hot;
    if (comm->way == LWM_AWAY) {
        comm->hot[call->kind].left = until_timed(lwm_counts[call->kind][call->size_class].passed);
        return false;
    }
    uint32_t many = may_pass(comm);
    comm->pass_given = many;
    comm->pass_left = many;
    for (unsigned kinds = many > 0 ? comm->pass_kinds : 0; kinds > 0; kinds &= kinds - 1) {
        enum lwm_kind kind = (enum lwm_kind)__builtin_ctz(kinds);
        struct lwm_hot *other = &comm->hot[kind];
        other->left = until_timed(lwm_counts[kind][other->size_class].passed);
        if (other->left > many) other->left = many + 1;
    }
    return false;
}

void lwm_pass_end(struct lwm_comm *comm)
{
    uint32_t unused = (uint32_t)comm->pass_left, passed = comm->pass_given - unused;
    if (comm->pass_way == LWM_FORMS) {
        lwm_beside_back(comm, unused);
    } else {
        /* Nobody agrees at these numbers. */
        if (comm->word) __atomic_fetch_add(&comm->position, passed, __ATOMIC_RELAXED);
        __atomic_fetch_add(&comm->numbers[LWM_BLOCKING], passed, __ATOMIC_RELAXED);
        comm->calls += comm->pass_met;
        comm->untimed += passed;
        comm->untimed_left -= passed < comm->untimed_left ? passed : comm->untimed_left;
    }
    comm->pass_left = comm->pass_given = comm->pass_met = 0;
    for (unsigned kinds = comm->pass_kinds; kinds > 0; kinds &= kinds - 1) lwm_count_hot(comm, (enum lwm_kind)__builtin_ctz(kinds));
}

int lwm_pass_failed(struct lwm_comm *comm, enum lwm_kind kind, int result)
{
    struct lwm_hot *hot = &comm->hot[kind];
    /* A call that was refused has no number. */
    if (!lwm_is_refusal(result)) {
        hot->left--;
        hot->done++;
        comm->pass_met += hot->meets;
        comm->pass_left--;
    }
    if (comm->pass_given) lwm_pass_end(comm);
    return lwm_agree_saw(comm, result);
}
