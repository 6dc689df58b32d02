/*
 * The standard binary interface of MPI-5: handles are addresses, the predefined ones small numbers.
 *
 * What is here are facts of that interface, not its header, so that this library is built without an MPI.
 * tests/abi.c compares constants, sizes and the handles with names with a real mpi_abi.h.
 */
#ifndef LWM_ABI_H
#define LWM_ABI_H
#include <stddef.h>

#define LWM_ABI_NAME "standard"
#define LWM_ABI_TITLE "the standard ABI"
/* What MPI_Get_library_version begins with, any of these. */
#define LWM_ABI_VERSIONS {"", NULL}

typedef struct MPI_ABI_Comm *MPI_Comm;
typedef struct MPI_ABI_Datatype *MPI_Datatype;
typedef struct MPI_ABI_Op *MPI_Op;
typedef struct MPI_ABI_Group *MPI_Group;
typedef struct MPI_ABI_Errhandler *MPI_Errhandler;
typedef struct MPI_ABI_Info *MPI_Info;
typedef struct MPI_ABI_Request *MPI_Request;
typedef struct MPI_ABI_Win *MPI_Win;
typedef ptrdiff_t MPI_Aint;
typedef long long MPI_Count;
typedef int MPI_Fint;
typedef struct { int MPI_SOURCE, MPI_TAG, MPI_ERROR, reserved[5]; } MPI_Status;

/* MPI_x_c, with counts of MPI_Count. */
#define LWM_LARGE_FORMS 1

#define LWM_IN_PLACE ((void *)1)
#define LWM_STATUS_IGNORE ((MPI_Status *)0)
#define LWM_UNDEFINED (-32766)
#define LWM_ANY_SOURCE (-1)
#define LWM_ANY_TAG (-2)
#define LWM_ROOT (-4)
#define LWM_PROC_NULL (-3)
/* Classes up to here are of arguments. */
#define LWM_ERR_ARG 13
#define LWM_ERR_OTHER 16
#define LWM_COMBINER_DUP 102
#define LWM_COMBINER_CONTIGUOUS 103
#define LWM_COMBINER_SUBARRAY 111
#define LWM_ORDER_C 12
#define LWM_LONGEST_VERSION 8192

#define LWM_COMM_WORLD 0x101
#define LWM_COMM_SELF 0x102
#define LWM_COMM_NULL 0x100
#define LWM_ERRORS_RETURN 0x143
#define LWM_DATATYPE_NULL 0x200
#define LWM_REQUEST_NULL 0x180
#define LWM_INFO_NULL 0x130
#define LWM_BYTE 0x00000247
#define LWM_CHAR 0x00000243
#define LWM_INT 0x00000209
#define LWM_LONG_LONG 0x0000020b
#define LWM_DOUBLE 0x00000214
#define LWM_SUM 0x00000021
#define LWM_MIN 0x00000022
#define LWM_MAX 0x00000023

/* D(handle, lineweave's type, what it may be combined by) */
#define LWM_DATATYPES(D) \
    D(0x00000247, LW_U8, BITS) /* BYTE */ \
    D(0x00000207, LW_U8, NOTHING) /* PACKED */ \
    D(0x00000243, LW_I8, NOTHING) /* CHAR */ \
    D(0x00000244, LW_I8, INTEGER) /* SIGNED_CHAR */ \
    D(0x00000245, LW_U8, INTEGER) /* UNSIGNED_CHAR */ \
    D(0x00000208, LW_I16, INTEGER) /* SHORT */ \
    D(0x0000020c, LW_U16, INTEGER) /* UNSIGNED_SHORT */ \
    D(0x00000209, LW_I32, INTEGER) /* INT */ \
    D(0x0000020d, LW_U32, INTEGER) /* UNSIGNED */ \
    D(0x0000020a, LW_I64, INTEGER) /* LONG */ \
    D(0x0000020e, LW_U64, INTEGER) /* UNSIGNED_LONG */ \
    D(0x0000020b, LW_I64, INTEGER) /* LONG_LONG */ \
    D(0x0000020f, LW_U64, INTEGER) /* UNSIGNED_LONG_LONG */ \
    D(0x00000240, LW_I8, INTEGER) /* INT8_T */ \
    D(0x00000248, LW_I16, INTEGER) /* INT16_T */ \
    D(0x00000250, LW_I32, INTEGER) /* INT32_T */ \
    D(0x00000258, LW_I64, INTEGER) /* INT64_T */ \
    D(0x00000241, LW_U8, INTEGER) /* UINT8_T */ \
    D(0x00000249, LW_U16, INTEGER) /* UINT16_T */ \
    D(0x00000251, LW_U32, INTEGER) /* UINT32_T */ \
    D(0x00000259, LW_U64, INTEGER) /* UINT64_T */ \
    D(0x00000201, LW_I64, INTEGER) /* AINT */ \
    D(0x00000203, LW_I64, INTEGER) /* OFFSET */ \
    D(0x00000202, LW_I64, INTEGER) /* COUNT */ \
    D(0x00000219, LW_I32, INTEGER) /* INTEGER */ \
    D(0x000002c1, LW_I8, INTEGER) /* INTEGER1 */ \
    D(0x000002c9, LW_I16, INTEGER) /* INTEGER2 */ \
    D(0x000002d1, LW_I32, INTEGER) /* INTEGER4 */ \
    D(0x000002d9, LW_I64, INTEGER) /* INTEGER8 */ \
    D(0x00000210, LW_F32, REAL) /* FLOAT */ \
    D(0x00000214, LW_F64, REAL) /* DOUBLE */ \
    D(0x0000021a, LW_F32, REAL) /* REAL */ \
    D(0x000002d2, LW_F32, REAL) /* REAL4 */ \
    D(0x000002da, LW_F64, REAL) /* REAL8 */ \
    D(0x0000021c, LW_F64, REAL) /* DOUBLE_PRECISION */ \
    D(0x00000238, LW_BOOL, TRUTH) /* C_BOOL */ \
    D(0x00000239, LW_BOOL, TRUTH) /* CXX_BOOL */ \
    D(0x0000021e, LW_I8, NOTHING) /* CHARACTER */ \
    D(0x0000023c, LW_U32, NOTHING) /* WCHAR */ \
    D(0x00000220, LW_U8, NOTHING) /* LONG_DOUBLE */ \
    D(0x00000218, LW_U32, NOTHING) /* LOGICAL */ \
    D(0x000002c0, LW_U8, NOTHING) /* LOGICAL1 */ \
    D(0x000002c8, LW_U16, NOTHING) /* LOGICAL2 */ \
    D(0x000002d0, LW_U32, NOTHING) /* LOGICAL4 */ \
    D(0x000002d8, LW_U64, NOTHING) /* LOGICAL8 */ \
    D(0x0000021b, LW_COMPLEX_F32, COMPLEX) /* COMPLEX */ \
    D(0x0000021d, LW_COMPLEX_F64, COMPLEX) /* DOUBLE_COMPLEX */ \
    D(0x00000212, LW_COMPLEX_F32, COMPLEX) /* C_FLOAT_COMPLEX */ \
    D(0x00000216, LW_COMPLEX_F64, COMPLEX) /* C_DOUBLE_COMPLEX */ \
    D(0x00000224, LW_U8, NOTHING) /* C_LONG_DOUBLE_COMPLEX */ \
    D(0x00000213, LW_COMPLEX_F32, COMPLEX) /* CXX_FLOAT_COMPLEX */ \
    D(0x00000217, LW_COMPLEX_F64, COMPLEX) /* CXX_DOUBLE_COMPLEX */ \
    D(0x0000022b, LW_2INT, PAIR) /* 2INT */ \
    D(0x00000232, LW_2INT, PAIR) /* 2INTEGER */ \
    D(0x00000230, LW_F32, NOTHING) /* 2REAL */ \
    D(0x00000231, LW_F64, NOTHING) /* 2DOUBLE_PRECISION */ \
    D(0x00000228, LW_FLOAT_INT, PAIR) /* FLOAT_INT */ \
    D(0x00000229, LW_DOUBLE_INT, PAIR) /* DOUBLE_INT */ \
    D(0x0000022a, LW_LONG_INT, PAIR) /* LONG_INT */ \
    D(0x0000022c, LW_SHORT_INT, PAIR) /* SHORT_INT */ \
    D(0x0000022d, LW_U8, NOTHING) /* LONG_DOUBLE_INT */

/* O(handle, lineweave's operator) */
#define LWM_OPS(O) \
    O(0x00000021, LW_SUM) \
    O(0x00000024, LW_PROD) \
    O(0x00000022, LW_MIN) \
    O(0x00000023, LW_MAX) \
    O(0x00000028, LW_BAND) \
    O(0x00000029, LW_BOR) \
    O(0x0000002a, LW_BXOR) \
    O(0x00000030, LW_LAND) \
    O(0x00000031, LW_LOR) \
    O(0x00000032, LW_LXOR) \
    O(0x00000038, LW_MINLOC) \
    O(0x00000039, LW_MAXLOC)

#endif
