/*
 * Forming the team of a communicator's ranks on this node, once they have agreed to form one: in two steps, of which the first is within a call.
 *
 * 1. `lwm_forming_agree`: all ranks exchange by the host an existing team that has all ranks of their node, places in its memory, and whether the
 *    call went well. If not all know the same team, they exchange their CPUs and a name. A team in which all of its ranks have joined a communicator
 *    before is sure: all have it, so the first rank tells the others only by the word of agree.c that they join there, and nothing is exchanged.
 *    Ranks of several MPI_COMM_WORLD have no such team.
 * 2. `lwm_forming_make`: they join the communicator in that team's memory, where they wait for each other, and all succeed or none does; or they
 *    meet at the name and form a team, in whose memory later ones are made. No call of the host is made here, so a thread may do it (beside.c).
 */
#define _GNU_SOURCE
#include "forming.h"
#include "bases.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t meetings;

/* CPUs of a mask that are passed on: more are left out. */
#define CPUS 1024

/* The offer that ranks exchange of the team that has all ranks of their node: places are those of the node's first rank. */
struct offer {
    uint64_t fine, meets, base, places[LWM_PLACES];
};
/* The first rank's message by a word instead: the number of a sure team, or this value, which is no such number, if there is none. */
enum { UNSURE = 1 };

/* The card that ranks exchange to meet. */
struct lwm_card {
    char name[64];
    uint64_t mask[CPUS / 64];
};

static void fill(struct lwm_card *card)
{
    memset(card, 0, sizeof *card);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(card->name, sizeof card->name, "@lineweave-mpi-%d-%llu-%lld%09ld", (int)getpid(),
             (unsigned long long)__atomic_add_fetch(&meetings, 1, __ATOMIC_RELAXED), (long long)now.tv_sec, now.tv_nsec);
    cpu_set_t mask;
    if (sched_getaffinity(0, sizeof mask, &mask) != 0) return;
    for (int cpu = 0; cpu < CPUS && cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &mask)) card->mask[cpu / 64] |= (uint64_t)1 << cpu % 64;
    }
}

/* Stores the CPUs that the ranks of this node may use together, one of them at least, and returns their number. */
static int find_allowed(const struct lwm_forming *f, int allowed[CPUS])
{
    uint64_t mask[CPUS / 64] = {0};
    int many = 0;
    for (int i = 0; i < f->many; i++) {
        for (int word = 0; word < CPUS / 64; word++) mask[word] |= f->cards[f->ranks[i]].mask[word];
    }
    for (int cpu = 0; cpu < CPUS; cpu++) {
        if (mask[cpu / 64] >> cpu % 64 & 1) allowed[many++] = cpu;
    }
    if (many == 0) allowed[many++] = 0;
    return many;
}

int lwm_forming_cpus(const struct lwm_forming *f)
{
    int allowed[CPUS];
    return find_allowed(f, allowed);
}

/* Places the ranks of this node on CPUs: each on the first of its CPUs that has the fewest so far. */
static void place(const struct lwm_forming *f, int *cpus)
{
    int load[CPUS] = {0};
    for (int i = 0; i < f->many; i++) {
        const uint64_t *mask = f->cards[f->ranks[i]].mask;
        int best = -1;
        for (int cpu = 0; cpu < CPUS; cpu++) {
            if (mask[cpu / 64] >> cpu % 64 & 1 && (best < 0 || load[cpu] < load[best])) best = cpu;
        }
        cpus[i] = best < 0 ? 0 : best;
        load[cpus[i]]++;
    }
}

/* Returns the ranks of the communicator that are on this one's node, in its order. */
static bool find_local(struct lwm_forming *f, const int *nodes)
{
    f->memory = malloc(3 * sizeof *f->memory * (size_t)f->size);
    if (!f->memory) return false;
    f->ranks = f->memory, f->world = f->memory + f->size, f->in_base = f->memory + 2 * f->size;
    f->first = -1;
    for (int r = 0; r < f->size; r++) {
        if (nodes[r] != nodes[f->rank]) continue;
        if (f->first < 0) f->first = r;
        if (r == f->rank) f->mine = f->many;
        f->ranks[f->many] = r;
        f->world[f->many++] = nodes[f->size + r];
    }
    return true;
}

static bool take_places(struct lwm_forming *f, const struct lwm_base *base)
{
    for (int i = 0; i < LWM_PLACES; i++) {
        if (lw_site_place(base->site, f->in_base, f->many, &f->places[i]) != LW_OK) return false;
    }
    return true;
}

/* Returns whether the first rank says by the word that all have a team, in which they join; if they may not, nothing was done. */
static bool is_sure(struct lwm_forming *f)
{
    if (!f->word || f->many < f->size) return false;
    struct lwm_base base = {0};
    uint64_t told = UNSURE;
    if (f->rank == 0) {
        base = lwm_base_find(f->world, f->many, f->in_base);
        if (base.id && base.sure && take_places(f, &base)) told = base.id;
        lwm_agree_tell(f->word, told, f->places);
    } else {
        told = lwm_agree_told(f->word, f->places);
    }
    if (told == UNSURE) return false;
    if (f->rank != 0) base = lwm_base_sure(told, f->world, f->many, f->in_base);
    f->site = base.site;
    return true;
}

/* Exchanges the cards by which the ranks of each node meet. */
static bool exchange_cards(struct lwm_forming *f, MPI_Comm comm)
{
    struct lwm_card mine;
    f->cards = malloc(sizeof mine * (size_t)f->size);
    /* A rank without memory cannot take part in the exchange, nor tell the others. */
    if (!f->cards) lwm_host.Abort(comm, 1);
    fill(&mine);
    return lwm_host.Allgather(&mine, sizeof mine, lwm_host.byte, f->cards, sizeof mine, lwm_host.byte, comm) == 0;
}

enum lwm_forms lwm_forming_agree(struct lwm_forming *f, MPI_Comm comm, const int *nodes, bool fine)
{
    /* The ranks are known to be there: without memory this one cannot tell the others. */
    if (!find_local(f, nodes)) lwm_host.Abort(comm, 1);
    if (is_sure(f)) {
        if (!fine) lw_site_decline(f->site, f->places, LWM_PLACES, f->in_base, f->many);
        return fine ? LWM_FORM : LWM_FORM_NOT;
    }
    /* A rank that is alone needs no team. */
    struct lwm_base base = f->many > 1 ? lwm_base_find(f->world, f->many, f->in_base) : (struct lwm_base){.id = UNSURE};
    bool first = f->first == f->rank;
    if (first && base.site && !take_places(f, &base)) base.id = 0;
    struct offer mine = {.fine = fine, .meets = lwm_beside_meets(), .base = base.id}, *offers = malloc(sizeof mine * (size_t)f->size);
    /* As above. */
    if (!offers) lwm_host.Abort(comm, 1);
    if (first) memcpy(mine.places, f->places, sizeof mine.places);
    bool known = lwm_host.Allgather(&mine, sizeof mine, lwm_host.byte, offers, sizeof mine, lwm_host.byte, comm) == 0, well = known, later = false;
    for (int r = 0; r < f->size; r++) {
        known = known && offers[r].base != 0;
        well = well && offers[r].fine;
        later = later || offers[r].meets;
    }
    for (int i = 0; i < f->many; i++) known = known && offers[f->ranks[i]].base == offers[f->first].base;
    if (known && base.site) {
        f->site = base.site;
        memcpy(f->places, offers[f->first].places, sizeof f->places);
        if (f->word && f->many == base.size) f->becomes_sure = base.id;
    }
    free(offers);
    f->meets = !known;
    if (!well) return LWM_FORM_NOT;
    if (known) return LWM_FORM;
    if (!later) return exchange_cards(f, comm) ? LWM_FORM : LWM_FORM_NOT;
    /* All have read what the first rank told. */
    if (f->word && f->rank == 0) lwm_agree_tell(f->word, 0, f->places);
    return LWM_FORM_LATER;
}

/* Joins the communicator, and the one for started calls, at places in the memory of a team. */
static bool join(struct lwm_forming *f, lw_progress_fn progress)
{
    if (lw_site_join(f->site, f->places, LWM_PLACES, f->in_base, f->many, progress, NULL, f->made) != LW_OK) {
        lwm_say("rank %d cannot join a communicator: %s", f->rank, lw_last_error());
        return false;
    }
    if (f->becomes_sure) lwm_base_make_sure(f->becomes_sure);
    return true;
}

/* Returns whether nobody gave up, asked while ranks wait for each other to meet: a rank that cannot go on tells so by the word, where there is
 * one. */
static int nobody_gave_up(void *forming)
{
    const struct lwm_forming *f = forming;
    return lwm_beside_goes_on() && (!f->word || !lwm_agree_gave_up(f->word));
}

/* Meets the ranks of the node and forms a team with them, and makes its communicator for started calls. */
static bool meet(struct lwm_forming *f)
{
    int *cpus = malloc(sizeof *cpus * (size_t)f->many), allowed[CPUS];
    lw_comm *team = NULL;
    if (cpus) {
        place(f, cpus);
        int usable = find_allowed(f, allowed);
        const char *name = f->cards[f->first].name;
        if (lw_comm_connect_on(name, f->mine, f->many, cpus, allowed, usable, nobody_gave_up, f, &team) != LW_OK) {
            /* Ranks that waited for one that gave up, or were told by their host, need not repeat the message. */
            if (nobody_gave_up(f) && !strstr(lw_last_error(), "has said why")) lwm_say("rank %d cannot join its node's team: %s", f->rank, lw_last_error());
            team = NULL;
        } else {
            __atomic_fetch_add(&lwm_setup[LWM_MET], 1, __ATOMIC_RELAXED);
            if (!f->foreign) lwm_base_keep(team, name, f->world, f->many);
        }
    }
    free(cpus);
    if (team && f->many == f->size && lw_comm_dup(team, &f->made[LWM_STARTED]) != LW_OK) {
        lwm_say("rank %d cannot make a communicator for started calls: %s", f->rank, lw_last_error());
        lw_comm_free(team);
        team = NULL;
    }
    f->made[LWM_BLOCKING] = team;
    return team;
}

bool lwm_forming_make(struct lwm_forming *f, lw_progress_fn progress)
{
    if (f->many == 1) return true;
    bool made = f->meets ? meet(f) : join(f, progress);
    if (!made && f->word) lwm_agree_give_up(f->word);
    return made;
}

void lwm_forming_give(struct lwm_forming *f, lw_comm **to, int which)
{
    if (!f->made[which]) return;
    lw_comm_set_progress(f->made[which], lwm_progress, NULL);
    /* A rank may next wait for a message in the host, and others for a started call, so a thread carries them on. */
    if (which == LWM_STARTED) lw_comm_set_progress_thread(f->made[which], 1);
    *to = f->made[which];
    f->made[which] = NULL;
}

void lwm_forming_free(struct lwm_forming *f)
{
    for (int i = 0; i < LWM_PLACES; i++) {
        if (f->made[i]) lw_comm_free(f->made[i]);
    }
    free(f->cards);
    free(f->memory);
    free(f);
}
