/*
 * The binary interface of Open MPI 5 (and 4): handles are addresses of objects, the predefined ones by name in libmpi.
 *
 * What is here are facts of that interface, not its header, so that this library is built without an MPI.
 * tests/abi.c compares constants, sizes and the handles with names with the real mpi.h.
 */
#ifndef LWM_ABI_H
#define LWM_ABI_H
#include <stddef.h>

#define LWM_ABI_NAME "openmpi"
#define LWM_ABI_TITLE "Open MPI"
/* What MPI_Get_library_version begins with, any of these. */
#define LWM_ABI_VERSIONS {"Open MPI", NULL}
/* Predefined handles are found by name. */
#define LWM_HANDLES_BY_NAME 1

typedef struct ompi_communicator_t *MPI_Comm;
typedef struct ompi_datatype_t *MPI_Datatype;
typedef struct ompi_op_t *MPI_Op;
typedef struct ompi_group_t *MPI_Group;
typedef struct ompi_errhandler_t *MPI_Errhandler;
typedef struct ompi_info_t *MPI_Info;
typedef struct ompi_request_t *MPI_Request;
typedef struct ompi_win_t *MPI_Win;
typedef ptrdiff_t MPI_Aint;
typedef long long MPI_Count;
typedef int MPI_Fint;
typedef struct { int MPI_SOURCE, MPI_TAG, MPI_ERROR, cancelled; size_t count; } MPI_Status;

#define LWM_IN_PLACE ((void *)1)
#define LWM_STATUS_IGNORE ((MPI_Status *)0)
#define LWM_UNDEFINED (-32766)
#define LWM_ANY_SOURCE (-1)
#define LWM_ANY_TAG (-1)
#define LWM_ROOT (-4)
#define LWM_PROC_NULL (-2)
/* Classes up to here are of arguments. */
#define LWM_ERR_ARG 13
#define LWM_ERR_OTHER 16
#define LWM_COMBINER_DUP 1
#define LWM_COMBINER_CONTIGUOUS 2
#define LWM_COMBINER_SUBARRAY 12
#define LWM_ORDER_C 0
#define LWM_LONGEST_VERSION 256

#define LWM_COMM_WORLD ompi_mpi_comm_world
#define LWM_COMM_SELF ompi_mpi_comm_self
#define LWM_COMM_NULL ompi_mpi_comm_null
#define LWM_ERRORS_RETURN ompi_mpi_errors_return
#define LWM_DATATYPE_NULL ompi_mpi_datatype_null
#define LWM_REQUEST_NULL ompi_request_null
#define LWM_INFO_NULL ompi_mpi_info_null
#define LWM_BYTE ompi_mpi_byte
#define LWM_CHAR ompi_mpi_char
#define LWM_INT ompi_mpi_int
#define LWM_LONG_LONG ompi_mpi_long_long_int
#define LWM_DOUBLE ompi_mpi_double
#define LWM_SUM ompi_mpi_op_sum
#define LWM_MIN ompi_mpi_op_min
#define LWM_MAX ompi_mpi_op_max

/* D(handle, lineweave's type, what it may be combined by) */
#define LWM_DATATYPES(D) \
    D(ompi_mpi_byte, LW_U8, BITS) \
    D(ompi_mpi_packed, LW_U8, NOTHING) \
    D(ompi_mpi_char, LW_I8, NOTHING) \
    D(ompi_mpi_signed_char, LW_I8, INTEGER) \
    D(ompi_mpi_unsigned_char, LW_U8, INTEGER) \
    D(ompi_mpi_short, LW_I16, INTEGER) \
    D(ompi_mpi_unsigned_short, LW_U16, INTEGER) \
    D(ompi_mpi_int, LW_I32, INTEGER) \
    D(ompi_mpi_unsigned, LW_U32, INTEGER) \
    D(ompi_mpi_long, LW_I64, INTEGER) \
    D(ompi_mpi_unsigned_long, LW_U64, INTEGER) \
    D(ompi_mpi_long_long_int, LW_I64, INTEGER) \
    D(ompi_mpi_unsigned_long_long, LW_U64, INTEGER) \
    D(ompi_mpi_int8_t, LW_I8, INTEGER) \
    D(ompi_mpi_int16_t, LW_I16, INTEGER) \
    D(ompi_mpi_int32_t, LW_I32, INTEGER) \
    D(ompi_mpi_int64_t, LW_I64, INTEGER) \
    D(ompi_mpi_uint8_t, LW_U8, INTEGER) \
    D(ompi_mpi_uint16_t, LW_U16, INTEGER) \
    D(ompi_mpi_uint32_t, LW_U32, INTEGER) \
    D(ompi_mpi_uint64_t, LW_U64, INTEGER) \
    D(ompi_mpi_aint, LW_I64, INTEGER) \
    D(ompi_mpi_offset, LW_I64, INTEGER) \
    D(ompi_mpi_count, LW_I64, INTEGER) \
    D(ompi_mpi_integer, LW_I32, INTEGER) \
    D(ompi_mpi_integer1, LW_I8, INTEGER) \
    D(ompi_mpi_integer2, LW_I16, INTEGER) \
    D(ompi_mpi_integer4, LW_I32, INTEGER) \
    D(ompi_mpi_integer8, LW_I64, INTEGER) \
    D(ompi_mpi_float, LW_F32, REAL) \
    D(ompi_mpi_double, LW_F64, REAL) \
    D(ompi_mpi_real, LW_F32, REAL) \
    D(ompi_mpi_real4, LW_F32, REAL) \
    D(ompi_mpi_real8, LW_F64, REAL) \
    D(ompi_mpi_dblprec, LW_F64, REAL) \
    D(ompi_mpi_c_bool, LW_BOOL, TRUTH) \
    D(ompi_mpi_cxx_bool, LW_BOOL, TRUTH) \
    D(ompi_mpi_character, LW_I8, NOTHING) \
    D(ompi_mpi_wchar, LW_U32, NOTHING) \
    D(ompi_mpi_long_double, LW_U8, NOTHING) \
    D(ompi_mpi_logical, LW_U32, NOTHING) \
    D(ompi_mpi_logical1, LW_U8, NOTHING) \
    D(ompi_mpi_logical2, LW_U16, NOTHING) \
    D(ompi_mpi_logical4, LW_U32, NOTHING) \
    D(ompi_mpi_logical8, LW_U64, NOTHING) \
    D(ompi_mpi_cplex, LW_COMPLEX_F32, COMPLEX) \
    D(ompi_mpi_dblcplex, LW_COMPLEX_F64, COMPLEX) \
    D(ompi_mpi_c_float_complex, LW_COMPLEX_F32, COMPLEX) \
    D(ompi_mpi_c_double_complex, LW_COMPLEX_F64, COMPLEX) \
    D(ompi_mpi_c_long_double_complex, LW_U8, NOTHING) \
    D(ompi_mpi_cxx_cplex, LW_COMPLEX_F32, COMPLEX) \
    D(ompi_mpi_cxx_dblcplex, LW_COMPLEX_F64, COMPLEX) \
    D(ompi_mpi_2int, LW_2INT, PAIR) \
    D(ompi_mpi_2integer, LW_2INT, PAIR) \
    D(ompi_mpi_2real, LW_F32, NOTHING) \
    D(ompi_mpi_2dblprec, LW_F64, NOTHING) \
    D(ompi_mpi_float_int, LW_FLOAT_INT, PAIR) \
    D(ompi_mpi_double_int, LW_DOUBLE_INT, PAIR) \
    D(ompi_mpi_long_int, LW_LONG_INT, PAIR) \
    D(ompi_mpi_short_int, LW_SHORT_INT, PAIR) \
    D(ompi_mpi_longdbl_int, LW_U8, NOTHING)

/* O(handle, lineweave's operator) */
#define LWM_OPS(O) \
    O(ompi_mpi_op_sum, LW_SUM) \
    O(ompi_mpi_op_prod, LW_PROD) \
    O(ompi_mpi_op_min, LW_MIN) \
    O(ompi_mpi_op_max, LW_MAX) \
    O(ompi_mpi_op_band, LW_BAND) \
    O(ompi_mpi_op_bor, LW_BOR) \
    O(ompi_mpi_op_bxor, LW_BXOR) \
    O(ompi_mpi_op_land, LW_LAND) \
    O(ompi_mpi_op_lor, LW_LOR) \
    O(ompi_mpi_op_lxor, LW_LXOR) \
    O(ompi_mpi_op_minloc, LW_MINLOC) \
    O(ompi_mpi_op_maxloc, LW_MAXLOC)

#endif
