/*
 * Measurement of messages between two nodes, for `lineweave run --link FILE`: a ping-pong of the host between the first ranks of
 * MPI_COMM_WORLD's first two nodes, when ranks learn of each other. Rank 0 writes half of each round trip as JSON Lines; the command that
 * reads them fits the costs.
 */
#include "files.h"
#include "lwm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Lengths, each with a line in the file: from an empty message to one that takes long by any protocol. */
static const int lengths[] = {0, 8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 2 << 20, 8 << 20};
enum { LENGTHS = sizeof lengths / sizeof *lengths, WARM = 4, MOST = 60, LEAST = 6 };
/* Time for each length. */
#define WINDOW_NS 100000000u
#define TAG 77
/* A communicator of its own, apart from the program's messages. */
static MPI_Comm apart;

static bool there_and_back(bool first, int peer, void *data, int bytes)
{
    MPI_Datatype byte = lwm_host.byte;
    if (first && lwm_host.Send(data, bytes, byte, peer, TAG, apart) != 0) return false;
    if (lwm_host.Recv(data, bytes, byte, peer, TAG, apart, LWM_STATUS_IGNORE) != 0) return false;
    return first || lwm_host.Send(data, bytes, byte, peer, TAG, apart) == 0;
}

/* Times messages of one length; returns the number of samples, or -1. Both ranks take as many, which the first decides after warming up. */
static int time_length(bool first, int peer, void *data, int bytes, double *samples)
{
    uint64_t start = lwm_now_ns();
    for (int i = 0; i < WARM; i++) {
        if (i == 1) start = lwm_now_ns();
        if (!there_and_back(first, peer, data, bytes)) return -1;
    }
    uint64_t once = (lwm_now_ns() - start) / (WARM - 1) + 1;
    int many = once * MOST < WINDOW_NS ? MOST : (int)(WINDOW_NS / once) + 1;
    if (many < LEAST) many = LEAST;
    if (first && lwm_host.Send(&many, 1, lwm_host.integer, peer, TAG, apart) != 0) return -1;
    if (!first && lwm_host.Recv(&many, 1, lwm_host.integer, peer, TAG, apart, LWM_STATUS_IGNORE) != 0) return -1;
    for (int i = 0; i < many; i++) {
        uint64_t left = lwm_now_ns();
        if (!there_and_back(first, peer, data, bytes)) return -1;
        samples[i] = (double)(lwm_now_ns() - left) / 2;
    }
    return many;
}

/* Removes the characters from a host's name, or from the MPI's first line, that JSON would interpret. */
static void clean(char *text)
{
    for (char *c = text; *c; c++) {
        if (*c == '\n' || *c == ',') *c = 0;
        if (!*c) break;
        if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ') *c = ' ';
    }
}

static bool write_head(FILE *file, const char *own, const char *other)
{
    char *version = calloc(1, LWM_LONGEST_VERSION + 1);
    int length = 0;
    if (!version || lwm_host.Get_library_version(version, &length) != 0) {
        free(version);
        return false;
    }
    clean(version);
    fprintf(file, "{\"schema\":1,\"kind\":\"mpi-link\",\"mpi\":\"%s\",\"from\":\"%s\",\"to\":\"%s\"}\n", version, own, other);
    free(version);
    return true;
}

static void measure(void)
{
    int peer = -1;
    for (int r = lwm_world_size - 1; r > 0; r--) {
        if (lwm_node_of[r] != lwm_node_of[0]) peer = r;
    }
    bool first = lwm_world_rank == 0;
    if (first && peer < 0) lwm_say("all ranks are on one node: no link was measured");
    if (peer < 0 || (!first && lwm_world_rank != peer)) return;
    char own[64] = "", other[64] = "";
    gethostname(own, sizeof own - 1);
    clean(own);
    if (first) memcpy(other, own, sizeof own);
    else peer = 0;
    bool fine = lwm_host.Sendrecv(own, sizeof own, lwm_host.byte, peer, TAG, other, sizeof other, lwm_host.byte, peer, TAG,
                                  apart, LWM_STATUS_IGNORE) == 0;
    other[sizeof other - 1] = 0;
    void *data = calloc(1, (size_t)lengths[LENGTHS - 1]);
    /* A rank without memory cannot answer. */
    if (!data) lwm_host.Abort(lwm_host.world, 1);
    char *made = NULL;
    FILE *file = first ? lwm_file_make(lwm_settings.link, &made) : NULL;
    bool written = file && write_head(file, own, other);
    for (int i = 0; i < LENGTHS && fine; i++) {
        double samples[MOST + 1];
        int many = time_length(first, peer, data, lengths[i], samples);
        fine = many > 0;
        if (!file || !fine) continue;
        fprintf(file, "{\"schema\":1,\"kind\":\"mpi-link-message\",\"bytes\":%d,\"samples_ns\":[", lengths[i]);
        for (int s = 0; s < many; s++) fprintf(file, "%s%.1f", s ? "," : "", samples[s]);
        fprintf(file, "]}\n");
    }
    free(data);
    if (file) written = lwm_file_keep(file, lwm_settings.link, made, written && fine);
    if (first && !written) fprintf(stderr, "lineweave: %s: the link cannot be written: %s\n", lwm_settings.link, strerror(errno));
}

void lwm_link(void)
{
    if (lwm_host.Comm_dup(lwm_host.world, &apart) != 0) return;
    measure();
    lwm_host.Comm_free(&apart);
}
