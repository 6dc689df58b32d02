/*
 * The meaning of the host's handles of types and operators.
 *
 * Predefined ones are looked up in a table that is made once; derived types are examined each time, since a freed handle may come back as another
 * type.
 */
#include "collectives.h"

#include <string.h>

#define TYPES 256
#define OPS 64

static struct lwm_type types[TYPES];
static struct { uintptr_t key; int op; bool used; } ops[OPS];

/* Functions that tell how a type was made, in the form of MPI-4; null in older hosts. No other way works for types with large counts: hosts end a
 * program that asks otherwise. */
static int (*envelope_of)(MPI_Datatype, MPI_Count *, MPI_Count *, MPI_Count *, MPI_Count *, int *);
static int (*contents_of)(MPI_Datatype, MPI_Count, MPI_Count, MPI_Count, MPI_Count, int *, MPI_Aint *, MPI_Count *, MPI_Datatype *);

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

/* Adds a predefined type in the host's form; a type that the host does not have is left out. */
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
        .key = key, .size = (size_t)size, .extent = extent, .dense = size == extent && low == 0, .run = size == extent && low == 0,
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
    *(void **)&envelope_of = lwm_pmpi("Type_get_envelope_c");
    *(void **)&contents_of = lwm_pmpi("Type_get_contents_c");
    struct lwm_type byte;
    return lwm_type_of(lwm_host.byte, &byte) && byte.size == 1 && byte.dense;
}

/* Asks the host about reductions of MPI_CHAR. MPI has none, yet hosts carry them out as of the C type, and benchmarks rely on it. Where this host
 * does so for all operators of integers, lineweave does. */
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

/* Most dimensions of a part of an array that are examined. */
#define DIMENSIONS 16

/* The construction of a type from one other, by MPI_Type_dup, MPI_Type_contiguous or MPI_Type_create_subarray. */
struct made {
    MPI_Datatype base;  /* to be freed unless predefined */
    int combiner, dimensions, order;
    MPI_Count lists[3 * DIMENSIONS];  /* of a part of an array: its sizes, those of the part, and where that starts */
};

/* Finds out how a type was made; false when it was made in another way. */
static bool made_of(MPI_Datatype type, struct made *made)
{
    int numbers[3 * DIMENSIONS + 2], old[3] = {0};
    MPI_Count integers, addresses, counts = 0, datatypes;
    bool large = envelope_of && contents_of;
    if (large) {
        if (envelope_of(type, &integers, &addresses, &counts, &datatypes, &made->combiner) != 0) return false;
    } else {
        if (lwm_host.Type_get_envelope(type, &old[0], &old[1], &old[2], &made->combiner) != 0) return false;
        integers = old[0], addresses = old[1], datatypes = old[2];
    }
    bool part = made->combiner == LWM_COMBINER_SUBARRAY;
    if (!part && made->combiner != LWM_COMBINER_DUP && made->combiner != LWM_COMBINER_CONTIGUOUS) return false;
    if (integers > 3 * DIMENSIONS + 2 || counts > 3 * DIMENSIONS || addresses != 0 || datatypes != 1) return false;
    int result = large ? contents_of(type, integers, 0, counts, 1, numbers, NULL, made->lists, &made->base)
                       : lwm_host.Type_get_contents(type, (int)integers, 0, 1, numbers, NULL, &made->base);
    if (result != 0) return false;
    made->dimensions = part ? numbers[0] : 0;
    if (part) made->order = counts > 0 ? numbers[1] : numbers[1 + 3 * made->dimensions];
    for (int i = 0; counts == 0 && i < 3 * made->dimensions; i++) made->lists[i] = numbers[1 + i];
    return true;
}

/* Returns whether a type that is a part of an array lies in a row, and stores the place of its first element in the array. It does if only one
 * element is taken of each dimension that is slower than a dimension of which only a part is taken. */
static bool part_in_row(const struct made *made, size_t *first)
{
    const MPI_Count *sizes = made->lists, *parts = sizes + made->dimensions, *starts = parts + made->dimensions;
    bool whole = true;
    size_t stride = 1;
    *first = 0;
    for (int i = 0; i < made->dimensions; i++) {
        int d = made->order == LWM_ORDER_C ? made->dimensions - 1 - i : i;
        if (!whole && parts[d] != 1) return false;
        whole = whole && parts[d] == sizes[d];
        *first += (size_t)starts[d] * stride;
        stride *= (size_t)sizes[d];
    }
    return true;
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
    struct made made;
    if (!made_of(type, &made)) return true;
    struct lwm_type inner;
    if (!predefined(made.base, &inner)) {
        lwm_host.Type_free(&made.base);
    } else if (made.combiner == LWM_COMBINER_SUBARRAY) {
        to->run = inner.dense && part_in_row(&made, &to->first);
        to->first *= inner.size;
    } else {
        to->dense = to->run = inner.dense;
        /* A copy of a predefined type behaves like it. */
        if (made.combiner == LWM_COMBINER_DUP) {
            to->combines = inner.combines;
            to->element = inner.element;
            to->step = inner.step;
            to->align = inner.align;
        }
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
