/*
 * Buffers that lineweave cannot take as they are: derived types are packed into bytes and back, by each rank as its own type
 * needs. Packed bytes are the signature's values in order, so ranks with different types understand each other.
 */
#include "lwm.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The most bytes that one call of MPI_Pack moves; its counts and positions are ints. */
#define PIECE ((size_t)1 << 30)

struct scratch {
    void *start[LWM_SCRATCHES];
    size_t bytes[LWM_SCRATCHES];
};

static __thread struct scratch *mine;
static pthread_key_t at_exit;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void give_back(void *all)
{
    struct scratch *scratch = all;
    for (int i = 0; i < LWM_SCRATCHES; i++) free(scratch->start[i]);
    free(scratch);
}

static void make_key(void) { pthread_key_create(&at_exit, give_back); }

void *lwm_scratch(int which, size_t bytes)
{
    if (!mine) {
        pthread_once(&once, make_key);
        mine = calloc(1, sizeof *mine);
        if (!mine) return NULL;
        pthread_setspecific(at_exit, mine);
    }
    if (mine->bytes[which] < bytes || !mine->start[which]) {
        size_t rounded = (bytes + 4095) & ~(size_t)4095;
        void *grown = NULL;
        if (rounded < bytes || posix_memalign(&grown, 4096, rounded ? rounded : 4096) != 0) return NULL;
        free(mine->start[which]);
        mine->start[which] = grown;
        mine->bytes[which] = rounded;
    }
    return mine->start[which];
}

/* Returns the number of elements of a piece. */
static size_t a_piece(const struct lwm_type *info) { return info->size >= PIECE ? 1 : PIECE / (info->size ? info->size : 1); }

/* A view of MPI_BOTTOM, which MPICH 4.0 takes for an error in MPI_Pack: the same elements, seen from an address that is not
 * null. */
struct bottom {
    char anchor;
    MPI_Datatype type;
};

static bool see_from(struct bottom *bottom, int count, MPI_Datatype type)
{
    MPI_Aint back = -(MPI_Aint)(uintptr_t)&bottom->anchor;
    return lwm_host.Type_create_hindexed(1, &count, &back, type, &bottom->type) == 0 && lwm_host.Type_commit(&bottom->type) == 0;
}

/* Packs a piece of elements into a row, or unpacks it. */
static bool move_piece(bool packs, void *elements, int count, MPI_Datatype type, void *row, int bytes, MPI_Comm comm)
{
    struct bottom bottom = {.type = type};
    int many = elements ? count : 1, position = 0;
    if (!elements && !see_from(&bottom, count, type)) return false;
    void *at = elements ? elements : &bottom.anchor;
    int result = packs ? lwm_host.Pack(at, many, bottom.type, row, bytes, &position, comm)
                       : lwm_host.Unpack(row, bytes, &position, at, many, bottom.type, comm);
    if (!elements) lwm_host.Type_free(&bottom.type);
    return result == 0 && (!packs || position == bytes);
}

static bool move(bool packs, void *elements, size_t count, MPI_Datatype type, const struct lwm_type *info, void *row, MPI_Comm comm)
{
    for (size_t done = 0, many = a_piece(info); done < count; done += many) {
        int n = (int)(count - done < many ? count - done : many);
        char *at = (char *)elements + (ptrdiff_t)done * info->extent, *place = (char *)row + done * info->size;
        if (info->size > PIECE || !move_piece(packs, at, n, type, place, (int)((size_t)n * info->size), comm)) return false;
    }
    return true;
}

bool lwm_pack(const void *from, size_t count, MPI_Datatype type, const struct lwm_type *info, void *to, MPI_Comm comm)
{
    if (!info->dense) return move(true, (void *)from, count, type, info, to, comm);
    memcpy(to, from, count * info->size);
    return true;
}

bool lwm_unpack(const void *from, void *to, size_t count, MPI_Datatype type, const struct lwm_type *info, MPI_Comm comm)
{
    if (!info->dense) return move(false, to, count, type, info, (void *)from, comm);
    memcpy(to, from, count * info->size);
    return true;
}
