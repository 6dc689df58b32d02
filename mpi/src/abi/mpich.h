/*
 * The binary interface of MPICH 3.1 to 5, and so of Intel MPI, MVAPICH and Cray MPICH: handles are 32-bit numbers.
 *
 * What is here are facts of that interface, not its header, so that this library is built without an MPI.
 * tests/abi.c compares constants, sizes and the handles with names with the real mpi.h.
 */
#ifndef LWM_ABI_H
#define LWM_ABI_H
#include <stddef.h>

#define LWM_ABI_NAME "mpich"
#define LWM_ABI_TITLE "MPICH"
/* What MPI_Get_library_version begins with, any of these. */
#define LWM_ABI_VERSIONS {"MPICH", "Intel(R) MPI", "MVAPICH", "CRAY MPICH", NULL}

typedef int MPI_Comm;
typedef int MPI_Datatype;
typedef int MPI_Op;
typedef int MPI_Group;
typedef int MPI_Errhandler;
typedef int MPI_Info;
typedef int MPI_Request;
typedef int MPI_Win;
typedef long MPI_Aint;
typedef long long MPI_Count;
typedef int MPI_Fint;
typedef struct { int count_lo, count_hi_and_cancelled, MPI_SOURCE, MPI_TAG, MPI_ERROR; } MPI_Status;

/* MPI_x_c, with counts of MPI_Count. */
#define LWM_LARGE_FORMS 1

#define LWM_IN_PLACE ((void *)-1)
#define LWM_STATUS_IGNORE ((MPI_Status *)1)
#define LWM_UNDEFINED (-32766)
#define LWM_ANY_SOURCE (-2)
#define LWM_ANY_TAG (-1)
#define LWM_ROOT (-3)
#define LWM_PROC_NULL (-1)
/* Classes up to here are of arguments. */
#define LWM_ERR_ARG 12
#define LWM_ERR_OTHER 15
#define LWM_COMBINER_DUP 2
#define LWM_COMBINER_CONTIGUOUS 3
#define LWM_COMBINER_SUBARRAY 13
#define LWM_ORDER_C 56
#define LWM_LONGEST_VERSION 8192

#define LWM_COMM_WORLD 0x44000000
#define LWM_COMM_SELF 0x44000001
#define LWM_COMM_NULL 0x04000000
#define LWM_ERRORS_RETURN 0x54000001
#define LWM_DATATYPE_NULL 0x0c000000
#define LWM_REQUEST_NULL 0x2c000000
#define LWM_INFO_NULL 0x1c000000
#define LWM_BYTE 0x4c00010d
#define LWM_CHAR 0x4c000101
#define LWM_INT 0x4c000405
#define LWM_LONG_LONG 0x4c000809
#define LWM_DOUBLE 0x4c00080b
#define LWM_SUM 0x58000003
#define LWM_MIN 0x58000002
#define LWM_MAX 0x58000001

/* D(handle, lineweave's type, what it may be combined by). Only types that MPICH 3.1 has: asked about one that it does not know, it aborts. */
#define LWM_DATATYPES(D) \
    D(0x4c00010d, LW_U8, BITS) /* BYTE */ \
    D(0x4c00010f, LW_U8, NOTHING) /* PACKED */ \
    D(0x4c000101, LW_I8, NOTHING) /* CHAR */ \
    D(0x4c000118, LW_I8, INTEGER) /* SIGNED_CHAR */ \
    D(0x4c000102, LW_U8, INTEGER) /* UNSIGNED_CHAR */ \
    D(0x4c000203, LW_I16, INTEGER) /* SHORT */ \
    D(0x4c000204, LW_U16, INTEGER) /* UNSIGNED_SHORT */ \
    D(0x4c000405, LW_I32, INTEGER) /* INT */ \
    D(0x4c000406, LW_U32, INTEGER) /* UNSIGNED */ \
    D(0x4c000807, LW_I64, INTEGER) /* LONG */ \
    D(0x4c000808, LW_U64, INTEGER) /* UNSIGNED_LONG */ \
    D(0x4c000809, LW_I64, INTEGER) /* LONG_LONG */ \
    D(0x4c000819, LW_U64, INTEGER) /* UNSIGNED_LONG_LONG */ \
    D(0x4c000137, LW_I8, INTEGER) /* INT8_T */ \
    D(0x4c000238, LW_I16, INTEGER) /* INT16_T */ \
    D(0x4c000439, LW_I32, INTEGER) /* INT32_T */ \
    D(0x4c00083a, LW_I64, INTEGER) /* INT64_T */ \
    D(0x4c00013b, LW_U8, INTEGER) /* UINT8_T */ \
    D(0x4c00023c, LW_U16, INTEGER) /* UINT16_T */ \
    D(0x4c00043d, LW_U32, INTEGER) /* UINT32_T */ \
    D(0x4c00083e, LW_U64, INTEGER) /* UINT64_T */ \
    D(0x4c000843, LW_I64, INTEGER) /* AINT */ \
    D(0x4c000844, LW_I64, INTEGER) /* OFFSET */ \
    D(0x4c000845, LW_I64, INTEGER) /* COUNT */ \
    D(0x4c00041b, LW_I32, INTEGER) /* INTEGER */ \
    D(0x4c00012d, LW_I8, INTEGER) /* INTEGER1 */ \
    D(0x4c00022f, LW_I16, INTEGER) /* INTEGER2 */ \
    D(0x4c000430, LW_I32, INTEGER) /* INTEGER4 */ \
    D(0x4c000831, LW_I64, INTEGER) /* INTEGER8 */ \
    D(0x4c00040a, LW_F32, REAL) /* FLOAT */ \
    D(0x4c00080b, LW_F64, REAL) /* DOUBLE */ \
    D(0x4c00041c, LW_F32, REAL) /* REAL */ \
    D(0x4c000427, LW_F32, REAL) /* REAL4 */ \
    D(0x4c000829, LW_F64, REAL) /* REAL8 */ \
    D(0x4c00081f, LW_F64, REAL) /* DOUBLE_PRECISION */ \
    D(0x4c00013f, LW_BOOL, TRUTH) /* C_BOOL */ \
    D(0x4c000133, LW_BOOL, TRUTH) /* CXX_BOOL */ \
    D(0x4c00011a, LW_I8, NOTHING) /* CHARACTER */ \
    D(0x4c00040e, LW_U32, NOTHING) /* WCHAR */ \
    D(0x4c00100c, LW_U8, NOTHING) /* LONG_DOUBLE */ \
    D(0x4c00041d, LW_U32, NOTHING) /* LOGICAL */ \
    D(0x4c00081e, LW_COMPLEX_F32, COMPLEX) /* COMPLEX */ \
    D(0x4c001022, LW_COMPLEX_F64, COMPLEX) /* DOUBLE_COMPLEX */ \
    D(0x4c000840, LW_COMPLEX_F32, COMPLEX) /* C_FLOAT_COMPLEX */ \
    D(0x4c001041, LW_COMPLEX_F64, COMPLEX) /* C_DOUBLE_COMPLEX */ \
    D(0x4c002042, LW_U8, NOTHING) /* C_LONG_DOUBLE_COMPLEX */ \
    D(0x4c000834, LW_COMPLEX_F32, COMPLEX) /* CXX_FLOAT_COMPLEX */ \
    D(0x4c001035, LW_COMPLEX_F64, COMPLEX) /* CXX_DOUBLE_COMPLEX */ \
    D(0x4c000816, LW_2INT, PAIR) /* 2INT */ \
    D(0x4c000820, LW_2INT, PAIR) /* 2INTEGER */ \
    D(0x4c000821, LW_F32, NOTHING) /* 2REAL */ \
    D(0x4c001023, LW_F64, NOTHING) /* 2DOUBLE_PRECISION */ \
    D(0x8c000000, LW_FLOAT_INT, PAIR) /* FLOAT_INT */ \
    D(0x8c000001, LW_DOUBLE_INT, PAIR) /* DOUBLE_INT */ \
    D(0x8c000002, LW_LONG_INT, PAIR) /* LONG_INT */ \
    D(0x8c000003, LW_SHORT_INT, PAIR) /* SHORT_INT */ \
    D(0x8c000004, LW_U8, NOTHING) /* LONG_DOUBLE_INT */

/* O(handle, lineweave's operator) */
#define LWM_OPS(O) \
    O(0x58000003, LW_SUM) \
    O(0x58000004, LW_PROD) \
    O(0x58000002, LW_MIN) \
    O(0x58000001, LW_MAX) \
    O(0x58000006, LW_BAND) \
    O(0x58000008, LW_BOR) \
    O(0x5800000a, LW_BXOR) \
    O(0x58000005, LW_LAND) \
    O(0x58000007, LW_LOR) \
    O(0x58000009, LW_LXOR) \
    O(0x5800000b, LW_MINLOC) \
    O(0x5800000c, LW_MAXLOC)

#endif
