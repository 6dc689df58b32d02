/*
 * What the host's handles of types and operators mean.
 *
 * Predefined ones are looked up in a table that is made once; derived types are asked about each time, since a freed
 * handle may come back as another type.
 */
#include "collectives.h"

#include <string.h>

#define TYPES 256
#define OPS 64

static struct lwm_type types[TYPES];
static struct { uintptr_t key; int op; bool used; } ops[OPS];

static size_t place(uintptr_t key, unsigned bits) { return (size_t)((uint64_t)key * 0x9e3779b97f4a7c15u >> (64 - bits)); }

static size_t width(int element)
{
    static const uint8_t widths[] = {
        [LW_I8] = 1, [LW_I16] = 2, [LW_I32] = 4, [LW_I64] = 8, [LW_U8] = 1, [LW_U16] = 2,
        [LW_U32] = 4, [LW_U64] = 8, [LW_F16] = 2, [LW_BF16] = 2, [LW_F32] = 4, [LW_F64] = 8,
        [LW_COMPLEX_F32] = 8, [LW_COMPLEX_F64] = 16, [LW_BOOL] = 1, [LW_FLOAT_INT] = 8, [LW_DOUBLE_INT] = 16,
        [LW_LONG_INT] = 16, [LW_2INT] = 8, [LW_SHORT_INT] = 8,
    };
    return widths[element];
}

/* Adds a predefined type, as the host has it; what the host does not have is left out. */
static void add_type(uintptr_t key, int element, enum lwm_combines combines, bool absent)
{
    if (absent) return;
    MPI_Count size = 0;
    MPI_Aint low = 0, extent = 0;
    MPI_Datatype handle = (MPI_Datatype)key;
    if (lwm_host.Type_size_x(handle, &size) != 0 || lwm_host.Type_get_extent(handle, &low, &extent) != 0) return;
    if (size <= 0 || extent <= 0) return;
    size_t at = place(key, 8);
    while (types[at].known && types[at].key != key) at = (at + 1) % TYPES;
    /* A type of another width, as Fortran's with changed kinds, is moved but not combined. */
    if ((size_t)(combines == PAIR ? extent : size) != width(element)) combines = NOTHING;
    size_t step = (size_t)extent;
    types[at] = (struct lwm_type){
        .key = key, .size = (size_t)size, .extent = extent, .dense = size == extent && low == 0,
        .predefined = true, .combines = combines, .element = element, .known = 1, .step = step, .align = step < 8 ? step : 8,
    };
}

static void add_op(uintptr_t key, int op, bool absent)
{
    if (absent) return;
    size_t at = place(key, 6);
    while (ops[at].used && ops[at].key != key) at = (at + 1) % OPS;
    ops[at].key = key;
    ops[at].op = op;
    ops[at].used = true;
}

bool lwm_types_open(void)
{
#ifdef LWM_HANDLES_BY_NAME
#define D(handle, element, combines) \
    { void *object = lwm_host_object(#handle); add_type((uintptr_t)object, element, combines, !object); }
#define O(handle, op) { void *object = lwm_host_object(#handle); add_op((uintptr_t)object, op, !object); }
#else
#define D(handle, element, combines) add_type((uintptr_t)(MPI_Datatype)(handle), element, combines, false);
#define O(handle, op) add_op((uintptr_t)(MPI_Op)(handle), op, false);
#endif
    LWM_DATATYPES(D)
    LWM_OPS(O)
#undef D
#undef O
    struct lwm_type byte;
    return lwm_type_of(lwm_host.byte, &byte) && byte.size == 1 && byte.dense;
}

/* MPI has no reductions of MPI_CHAR, yet hosts carry them out as of the C type, and benchmarks rely on it. Where this host does so for all
 * operators of integers, lineweave does. */
void lwm_types_ask(void)
{
    MPI_Datatype letter = LWM_HANDLE(MPI_Datatype, LWM_CHAR);
    struct lwm_type integer = {.combines = INTEGER};
    bool all = true;
    for (int i = 0; i < OPS; i++) {
        MPI_Op op = (MPI_Op)ops[i].key;
        if (ops[i].used && lwm_op_of(op, &integer) >= 0) all = all && lwm_same_combines(letter, op);
    }
    signed char least = -1, most = 1;
    if (!all || lwm_host.Reduce_local(&least, &most, 1, letter, lwm_host.max) != 0) return;
    for (size_t at = place(LWM_KEY(letter), 8); types[at].known; at = (at + 1) % TYPES) {
        if (types[at].key != LWM_KEY(letter)) continue;
        types[at].combines = INTEGER;
        types[at].element = most == 1 ? LW_I8 : LW_U8;
        return;
    }
}

static bool predefined(MPI_Datatype type, struct lwm_type *to)
{
    uintptr_t key = LWM_KEY(type);
    for (size_t at = place(key, 8); types[at].known; at = (at + 1) % TYPES) {
        if (types[at].key == key) {
            *to = types[at];
            return true;
        }
    }
    return false;
}

size_t lwm_size_of_known(MPI_Datatype type)
{
    struct lwm_type known;
    return predefined(type, &known) ? known.size : 0;
}

/* The one type that `type` is a copy of, or some of in a row; false when it is neither. It must be freed if `derived`. */
static bool base_of(MPI_Datatype type, MPI_Datatype *base, int *times, int *combiner)
{
    int integers, addresses, datatypes;
    if (lwm_host.Type_get_envelope(type, &integers, &addresses, &datatypes, combiner) != 0) return false;
    bool copy = *combiner == LWM_COMBINER_DUP && datatypes == 1 && integers == 0;
    bool row = *combiner == LWM_COMBINER_CONTIGUOUS && datatypes == 1 && integers == 1;
    if ((!copy && !row) || addresses != 0) return false;
    *times = 1;
    return lwm_host.Type_get_contents(type, integers, 0, 1, times, NULL, base) == 0;
}

static bool derived(MPI_Datatype type, struct lwm_type *to)
{
    MPI_Count size = 0;
    MPI_Aint low = 0, extent = 0;
    if (lwm_host.Type_size_x(type, &size) != 0 || size < 0) return false;
    if (lwm_host.Type_get_extent(type, &low, &extent) != 0) return false;
    *to = (struct lwm_type){
        .key = LWM_KEY(type), .size = (size_t)size, .extent = extent, .combines = NOTHING, .element = LW_U8,
        .known = 1, .step = (size_t)size, .align = 1,
    };
    MPI_Datatype base;
    int times, combiner;
    if (!base_of(type, &base, &times, &combiner)) return true;
    struct lwm_type inner;
    if (predefined(base, &inner)) {
        to->dense = inner.dense;
        /* A copy of a predefined type behaves like it. */
        if (combiner == LWM_COMBINER_DUP) {
            to->combines = inner.combines;
            to->element = inner.element;
            to->step = inner.step;
            to->align = inner.align;
        }
    } else {
        lwm_host.Type_free(&base);
    }
    return true;
}

bool lwm_type_of(MPI_Datatype type, struct lwm_type *to)
{
    if (predefined(type, to)) return true;
    return type != lwm_host.no_type && type != (MPI_Datatype)0 && derived(type, to);
}

int lwm_op_of(MPI_Op op, const struct lwm_type *type)
{
    uintptr_t key = LWM_KEY(op);
    int found = -1;
    for (size_t at = place(key, 6); ops[at].used; at = (at + 1) % OPS) {
        if (ops[at].key == key) found = ops[at].op;
    }
    bool arithmetic = found == LW_SUM || found == LW_PROD || found == LW_MIN || found == LW_MAX;
    bool bits = found == LW_BAND || found == LW_BOR || found == LW_BXOR;
    bool truth = found == LW_LAND || found == LW_LOR || found == LW_LXOR;
    switch (type->combines) {
    case INTEGER: return arithmetic || bits || truth ? found : -1;
    case REAL: return arithmetic ? found : -1;
    case BITS: return bits ? found : -1;
    case TRUTH: return truth ? found : -1;
    case COMPLEX: return found == LW_SUM || found == LW_PROD ? found : -1;
    case PAIR: return found == LW_MINLOC || found == LW_MAXLOC ? found : -1;
    default: return -1;
    }
}
