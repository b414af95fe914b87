// SPDX-License-Identifier: Apache-2.0
// libhdf5, loaded when it is first needed: it brings thirty libraries of its own, which what needs
// no HDF5 file does not wait for. Its functions have their own names, as members of ot__h5.
#ifndef OT_CKPT_HDF5_LIBRARY_H
#define OT_CKPT_HDF5_LIBRARY_H

#define H5_USE_110_API // the same functions in 1.10 and 1.14
#include <hdf5.h>

#include "ckpt/ckpt.h"

#define OT_H5_FUNCTIONS(X)                                                                         \
    X(H5dont_atexit)                                                                               \
    X(H5open)                                                                                      \
    X(H5get_libversion)                                                                            \
    X(H5free_memory)                                                                               \
    X(H5Eget_auto2)                                                                                \
    X(H5Eset_auto2)                                                                                \
    X(H5Eclear2)                                                                                   \
    X(H5Ewalk2)                                                                                    \
    X(H5PLget_loading_state)                                                                       \
    X(H5PLset_loading_state)                                                                       \
    X(H5Pcreate)                                                                                   \
    X(H5Pclose)                                                                                    \
    X(H5Pset_fapl_sec2)                                                                            \
    X(H5Pset_fclose_degree)                                                                        \
    X(H5Pset_file_locking)                                                                         \
    X(H5Pset_obj_track_times)                                                                      \
    X(H5Pget_layout)                                                                               \
    X(H5Pget_external_count)                                                                       \
    X(H5Pget_nfilters)                                                                             \
    X(H5Pget_filter2)                                                                              \
    X(H5Pget_chunk)                                                                                \
    X(H5Fcreate)                                                                                   \
    X(H5Fopen)                                                                                     \
    X(H5Fflush)                                                                                    \
    X(H5Fclose)                                                                                    \
    X(H5Gcreate2)                                                                                  \
    X(H5Gclose)                                                                                    \
    X(H5Gget_info)                                                                                 \
    X(H5Literate)                                                                                  \
    X(H5Lget_info)                                                                                 \
    X(H5Oopen)                                                                                     \
    X(H5Oclose)                                                                                    \
    X(H5Oget_info2)                                                                                \
    X(H5Dcreate2)                                                                                  \
    X(H5Dclose)                                                                                    \
    X(H5Dread)                                                                                     \
    X(H5Dwrite)                                                                                    \
    X(H5Dget_space)                                                                                \
    X(H5Dget_offset)                                                                               \
    X(H5Dget_type)                                                                                 \
    X(H5Dget_create_plist)                                                                         \
    X(H5Screate)                                                                                   \
    X(H5Screate_simple)                                                                            \
    X(H5Sclose)                                                                                    \
    X(H5Sget_simple_extent_type)                                                                   \
    X(H5Sget_simple_extent_ndims)                                                                  \
    X(H5Sget_simple_extent_dims)                                                                   \
    X(H5Tcopy)                                                                                     \
    X(H5Tclose)                                                                                    \
    X(H5Tequal)                                                                                    \
    X(H5Tget_class)                                                                                \
    X(H5Tget_size)                                                                                 \
    X(H5Tget_sign)                                                                                 \
    X(H5Tget_super)                                                                                \
    X(H5Tget_fields)                                                                               \
    X(H5Tget_nmembers)                                                                             \
    X(H5Tget_member_name)                                                                          \
    X(H5Tget_member_value)                                                                         \
    X(H5Tis_variable_str)                                                                          \
    X(H5Tset_size)                                                                                 \
    X(H5Tset_cset)                                                                                 \
    X(H5Tset_fields)                                                                               \
    X(H5Tset_ebias)                                                                                \
    X(H5Tenum_create)                                                                              \
    X(H5Tenum_insert)

// Numbers that the library gives to its types and lists of properties.
#define OT_H5_NUMBERS(X)                                                                           \
    X(H5P_CLS_FILE_ACCESS_ID_g)                                                                    \
    X(H5P_CLS_DATASET_CREATE_ID_g)                                                                 \
    X(H5T_C_S1_g)                                                                                  \
    X(H5T_IEEE_F32LE_g)                                                                            \
    X(H5T_IEEE_F64LE_g)                                                                            \
    X(H5T_STD_I8LE_g)                                                                              \
    X(H5T_STD_I16LE_g)                                                                             \
    X(H5T_STD_I32LE_g)                                                                             \
    X(H5T_STD_I64LE_g)                                                                             \
    X(H5T_STD_U8LE_g)                                                                              \
    X(H5T_STD_U16LE_g)                                                                             \
    X(H5T_STD_U32LE_g)                                                                             \
    X(H5T_STD_U64LE_g)

// H5F_ACC_RDONLY and H5F_ACC_TRUNC, which the header has together with calls.
enum { OT_H5_READ_ONLY = 0, OT_H5_TRUNCATE = 2 };

typedef struct ot__h5_library {
#define OT_H5_MEMBER(name) __typeof__(name) *name;
    OT_H5_FUNCTIONS(OT_H5_MEMBER)
    OT_H5_NUMBERS(OT_H5_MEMBER)
#undef OT_H5_MEMBER
} ot__h5_library;
extern ot__h5_library ot__h5;

// One thread at a time is in the library, between the two. What a program has set of it, for calls
// of its own, is as it was afterwards.
typedef struct ot__h5_visit {
    H5E_auto2_t report;
    void *context;
    unsigned plugins;
} ot__h5_visit;
ot_status ot__h5_enter(ot__h5_visit *visit);
void ot__h5_leave(const ot__h5_visit *visit);

// The library's own message of what has just failed, which it then forgets.
enum { OT_H5_MESSAGE_MAX = 300 };
const char *ot__h5_message(char text[OT_H5_MESSAGE_MAX]);
// "<path>: <what>: libhdf5: <that message>"
ot_status ot__h5_error(ot_status status, const char *path, const char *what);

// How files are opened: by their own system calls, without locks, and closing one closes what is
// open in it. H5I_INVALID_HID: the library has failed.
hid_t ot__h5_access(void);

// The type of elements in files; closed by the caller. H5I_INVALID_HID: there is none, or the
// library has failed.
hid_t ot__h5_type(ot_dtype dtype);
hid_t ot__h5_string_type(void);
// What the elements are as those of a tensor: OT_DTYPE_UNDEFINED when there is no such type.
ot_dtype ot__h5_dtype(hid_t type);

#endif
