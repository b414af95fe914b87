// SPDX-License-Identifier: Apache-2.0
// Element types of tensors and those of HDF5 files.
#include <string.h>

#include "ckpt/hdf5_library.h"

static const struct {
    ot_dtype dtype;
    size_t place; // in ot__h5, of the library's number for it
} h5_types[] = {
    {OT_F32, offsetof(ot__h5_library, H5T_IEEE_F32LE_g)},
    {OT_F64, offsetof(ot__h5_library, H5T_IEEE_F64LE_g)},
    {OT_I8, offsetof(ot__h5_library, H5T_STD_I8LE_g)},
    {OT_I16, offsetof(ot__h5_library, H5T_STD_I16LE_g)},
    {OT_I32, offsetof(ot__h5_library, H5T_STD_I32LE_g)},
    {OT_I64, offsetof(ot__h5_library, H5T_STD_I64LE_g)},
    {OT_U8, offsetof(ot__h5_library, H5T_STD_U8LE_g)},
    {OT_U16, offsetof(ot__h5_library, H5T_STD_U16LE_g)},
    {OT_U32, offsetof(ot__h5_library, H5T_STD_U32LE_g)},
    {OT_U64, offsetof(ot__h5_library, H5T_STD_U64LE_g)},
};

// Where sign, exponent and mantissa of a float lie.
typedef struct float_fields {
    size_t sign, exponent, exponent_bits, mantissa, mantissa_bits;
} float_fields;
static const struct {
    ot_dtype dtype; // that takes all of its values
    float_fields fields;
} h5_floats[] = {
    {OT_F16, {15, 10, 5, 0, 10}},
    {OT_F32, {15, 7, 8, 0, 7}}, // bf16
    {OT_F32, {31, 23, 8, 0, 23}},
    {OT_F64, {63, 52, 11, 0, 52}},
};
enum { F16_BIAS = 15 };

// ---- from ours ----

static hid_t half_type(void)
{
    const float_fields *f = &h5_floats[0].fields;
    const hid_t type = ot__h5.H5Tcopy(*ot__h5.H5T_IEEE_F32LE_g);

    if (type < 0)
        return H5I_INVALID_HID;
    // The fields must lie within the type at every moment: it is made smaller after them.
    if (ot__h5.H5Tset_fields(type, f->sign, f->exponent, f->exponent_bits, f->mantissa,
                             f->mantissa_bits) >= 0 &&
        ot__h5.H5Tset_size(type, 2) >= 0 && ot__h5.H5Tset_ebias(type, F16_BIAS) >= 0)
        return type;
    (void)ot__h5.H5Tclose(type);
    return H5I_INVALID_HID;
}

static hid_t bool_type(void)
{
    static const int8_t no = 0, yes = 1;
    const hid_t type = ot__h5.H5Tenum_create(*ot__h5.H5T_STD_I8LE_g);

    if (type < 0)
        return H5I_INVALID_HID;
    if (ot__h5.H5Tenum_insert(type, "FALSE", &no) >= 0 &&
        ot__h5.H5Tenum_insert(type, "TRUE", &yes) >= 0)
        return type;
    (void)ot__h5.H5Tclose(type);
    return H5I_INVALID_HID;
}

hid_t ot__h5_type(ot_dtype dtype)
{
    if (dtype == OT_F16)
        return half_type();
    if (dtype == OT_BOOL)
        return bool_type();
    for (size_t i = 0; i < OT_COUNT(h5_types); i++)
        if (h5_types[i].dtype == dtype) {
            const hid_t *number;

            memcpy(&number, (const char *)&ot__h5 + h5_types[i].place, sizeof number);
            return ot__h5.H5Tcopy(*number);
        }
    return H5I_INVALID_HID;
}

hid_t ot__h5_string_type(void)
{
    const hid_t type = ot__h5.H5Tcopy(*ot__h5.H5T_C_S1_g);

    if (type < 0)
        return H5I_INVALID_HID;
    if (ot__h5.H5Tset_size(type, H5T_VARIABLE) >= 0 && ot__h5.H5Tset_cset(type, H5T_CSET_UTF8) >= 0)
        return type;
    (void)ot__h5.H5Tclose(type);
    return H5I_INVALID_HID;
}

// ---- to ours ----

static ot_dtype integer_dtype(hid_t type)
{
    static const ot_dtype of_bytes[][2] = {[1] = {OT_U8, OT_I8},
                                           [2] = {OT_U16, OT_I16},
                                           [4] = {OT_U32, OT_I32},
                                           [8] = {OT_U64, OT_I64}};
    const size_t size = ot__h5.H5Tget_size(type);

    return size < OT_COUNT(of_bytes) ? of_bytes[size][ot__h5.H5Tget_sign(type) == H5T_SGN_2]
                                     : OT_DTYPE_UNDEFINED;
}

static ot_dtype float_dtype(hid_t type)
{
    float_fields f;

    if (ot__h5.H5Tget_fields(type, &f.sign, &f.exponent, &f.exponent_bits, &f.mantissa,
                             &f.mantissa_bits) < 0)
        return OT_DTYPE_UNDEFINED;
    for (size_t i = 0; i < OT_COUNT(h5_floats); i++) {
        const float_fields *known = &h5_floats[i].fields;

        if (f.sign == known->sign && f.exponent == known->exponent &&
            f.exponent_bits == known->exponent_bits && f.mantissa == known->mantissa &&
            f.mantissa_bits == known->mantissa_bits)
            return h5_floats[i].dtype;
    }
    return OT_DTYPE_UNDEFINED;
}

static bool has_member(hid_t type, unsigned i, const char *wanted, int8_t wanted_value)
{
    char *name = ot__h5.H5Tget_member_name(type, i);
    int8_t value = -1;
    const bool is_it = name != NULL && strcmp(name, wanted) == 0 &&
                       ot__h5.H5Tget_member_value(type, i, &value) >= 0 && value == wanted_value;

    if (name != NULL)
        (void)ot__h5.H5free_memory(name);
    return is_it;
}

static bool is_bool(hid_t type)
{
    return ot__h5.H5Tget_size(type) == 1 && ot__h5.H5Tget_nmembers(type) == 2 &&
           has_member(type, 0, "FALSE", 0) && has_member(type, 1, "TRUE", 1);
}

ot_dtype ot__h5_dtype(hid_t type)
{
    switch (ot__h5.H5Tget_class(type)) {
    case H5T_INTEGER:
        return integer_dtype(type);
    case H5T_FLOAT:
        return float_dtype(type);
    case H5T_ENUM:
        return is_bool(type) ? OT_BOOL : OT_DTYPE_UNDEFINED;
    default:
        return OT_DTYPE_UNDEFINED;
    }
}
