/*
 * MPI_Comm_spawn and MPI_Comm_spawn_multiple: the children get lineweave as their parents have it.
 *
 * 1. The root starts `env` in the command's place, which sets this process's variables LINEWEAVE_* and LD_PRELOAD, and becomes the command.
 *    Launchers do not pass on the environment of the parents by themselves.
 * 2. One variable names this launcher and the spawn. All parents that share a name for their communicator, and all children, thus know the
 *    intercommunicator by one name, and so those that are made from it (names.c).
 * 3. A command that cannot be found here is left as it is, so that the MPI reports it; so is one with an info object that may name another place.
 */
#define _GNU_SOURCE
#include "presence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENV "/usr/bin/env"
extern char **environ;

static bool is_program(const char *directory, size_t length, const char *command)
{
    char path[4096];
    int many = snprintf(path, sizeof path, "%.*s%s%s", (int)length, directory, length ? "/" : "", command);
    return many > 0 && (size_t)many < sizeof path && access(path, X_OK) == 0;
}

/* Returns whether the launcher will find this command in the same place as this process. */
static bool can_be_found(const char *command, MPI_Info info)
{
    if (command[0] == '/') return is_program("", 0, command);
    if (info != lwm_host.no_info) return false;
    if (strchr(command, '/')) return is_program("", 0, command);
    for (const char *at = getenv("PATH"); at && *at;) {
        size_t length = strcspn(at, ":");
        if (length > 0 && is_program(at, length, command)) return true;
        at += length + (at[length] == ':');
    }
    return false;
}

/* Returns whether a variable is passed on to the children: not one that names files that this job writes. */
static bool is_passed_on(const char *variable)
{
    static const char *const own[] = {LWM_SPAWN_VARIABLE "=", "LINEWEAVE_MPI_REPORT=", "LINEWEAVE_MPI_LINK="};
    bool passed = strncmp(variable, "LINEWEAVE_", 10) == 0 || strncmp(variable, "LD_PRELOAD=", 11) == 0;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) passed = passed && strncmp(variable, own[i], strlen(own[i])) != 0;
    return passed;
}

/* Returns the arguments of `env`: the variables, the command, its arguments. The caller frees the memory; null without. */
static char **arguments_of(const char *told, const char *command, char **given)
{
    size_t many = 3;
    for (char **at = environ; *at; at++) many += is_passed_on(*at);
    for (char **at = given; at && *at; at++) many++;
    char **all = calloc(many, sizeof *all), **to = all;
    if (!all) return NULL;
    for (char **at = environ; *at; at++) {
        if (is_passed_on(*at)) *to++ = *at;
    }
    *to++ = (char *)told;
    *to++ = (char *)command;
    for (char **at = given; at && *at; at++) *to++ = *at;
    return all;
}

/* Returns the spawn's name: all ranks of a communicator with a name compute it alike. For one rank alone, and where there is no such name, only
 * the root needs one. */
static uint64_t name_of(MPI_Comm comm)
{
    static uint64_t alone;
    struct lwm_comm *parent = lwm_active || lwm_open ? lwm_record_of(comm) : NULL;
    uint64_t from = parent && parent->name ? parent->name : lwm_mix(lwm_presence_world(), (uint64_t)lwm_world_rank);
    uint64_t *many = parent && parent->name ? &parent->made : &alone;
    return lwm_mix_for(LWM_NAME_SPAWN, from, __atomic_add_fetch(many, 1, __ATOMIC_RELAXED));
}

/* The arguments of a spawn in place of the program's. */
struct spawn {
    uint64_t name;
    char told[64];
    int many;
    char **commands, ***arguments;
};

static bool begin(struct spawn *spawn, int many, char **commands, char ***arguments, const MPI_Info *infos, int root, MPI_Comm comm)
{
    int rank = -1;
    *spawn = (struct spawn){0};
    if (lwm_open && lwm_presence_is_lone()) {
        lwm_presence_announce();
        lwm_set_up();
    }
    if ((!lwm_active && !lwm_open) || !lwm_presence_world() || lwm_host.Comm_rank(comm, &rank) != 0) return false;
    spawn->name = name_of(comm);
    if (rank != root || many <= 0 || !is_program("", 0, ENV)) return false;
    snprintf(spawn->told, sizeof spawn->told, LWM_SPAWN_VARIABLE "=%llx:%llx", (unsigned long long)lwm_presence_launcher(),
             (unsigned long long)spawn->name);
    spawn->commands = calloc((size_t)many, sizeof *spawn->commands);
    spawn->arguments = calloc((size_t)many, sizeof *spawn->arguments);
    bool fine = spawn->commands && spawn->arguments;
    for (; spawn->many < many && fine; spawn->many++) {
        int i = spawn->many;
        fine = commands[i] && can_be_found(commands[i], infos[i]) &&
               (spawn->arguments[i] = arguments_of(spawn->told, commands[i], arguments ? arguments[i] : NULL));
        spawn->commands[i] = (char *)ENV;
    }
    return fine;
}

static int end(struct spawn *spawn, int result, MPI_Comm comm, const MPI_Comm *made)
{
    for (int i = 0; i < spawn->many; i++) free(spawn->arguments[i]);
    free(spawn->commands);
    free(spawn->arguments);
    if (result == 0 && spawn->name && made && *made != lwm_host.null) lwm_named(*made, spawn->name);
    return lwm_introduced_by(comm, result, made);
}

int MPI_Comm_spawn(const char *command, char **arguments, int ranks, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made, int *errors)
{
    int (*next)(const char *, char **, int, MPI_Info, int, MPI_Comm, MPI_Comm *, int *) = lwm_next("Comm_spawn");
    struct spawn spawn;
    bool ours = begin(&spawn, 1, (char **)&command, arguments ? &arguments : NULL, &info, root, comm);
    int result = next(ours ? ENV : command, ours ? spawn.arguments[0] : arguments, ranks, info, root, comm, made, errors);
    return end(&spawn, result, comm, made);
}

int MPI_Comm_spawn_multiple(int many, char **commands, char ***arguments, const int *ranks, const MPI_Info *infos, int root, MPI_Comm comm,
                            MPI_Comm *made, int *errors)
{
    int (*next)(int, char **, char ***, const int *, const MPI_Info *, int, MPI_Comm, MPI_Comm *, int *) = lwm_next("Comm_spawn_multiple");
    struct spawn spawn;
    bool ours = begin(&spawn, many, commands, arguments, infos, root, comm);
    int result = next(many, ours ? spawn.commands : commands, ours ? spawn.arguments : arguments, ranks, infos, root, comm, made, errors);
    return end(&spawn, result, comm, made);
}
