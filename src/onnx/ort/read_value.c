// SPDX-License-Identifier: Apache-2.0
// Types and tensors of .ort files. Types are brought into protobuf's form, which is what the model
// keeps of those it does not compute with.
#include <string.h>

#include "onnx/ort/ort.h"

// ---- types ----

typedef struct type {
    ot__ort_reader *r;
    const ot__fb_table *table;
    int depth;
} type;

static void write_extent(ot__wire *wire, const void *object)
{
    const type *t = object;
    ot__fb *fb = &t->r->fb;
    ot__fb_table value = ot__fb_subtable(fb, t->table, 0);
    const char *denotation = ot__fb_string(fb, t->table, 1), *symbol;
    int64_t kind = ot__fb_has(fb, t->table, 0) ? ot__fb_int(fb, &value, 0, 1, 0) : ORT_DIM_UNKNOWN;

    if (kind == ORT_DIM_NUMBER) {
        ot__wire_put_int(wire, 1, ot__fb_int(fb, &value, 1, 8, 0));
    } else if (kind == ORT_DIM_SYMBOL) {
        symbol = ot__fb_string(fb, &value, 2);
        if (!symbol)
            ot__fb_fail(fb, "a symbolic dim has no name");
        ot__wire_put_text(wire, 2, symbol);
    }
    ot__wire_put_text(wire, 3, denotation);
}

static void write_shape(ot__wire *wire, const void *object)
{
    const type *t = object;
    ot__fb *fb = &t->r->fb;
    ot__fb_vector dims = ot__fb_subvector(fb, t->table, 0, 4);

    if (dims.count > OT_MAX_NDIM)
        ot__fb_fail(fb, "more axes than are supported");
    for (size_t i = 0; i < dims.count && fb->status == OT_OK; i++) {
        const ot__fb_table dim = ot__fb_element(fb, dims, i);

        ot__wire_put_message(wire, 1, write_extent, &(type){t->r, &dim, t->depth});
    }
}

static void write_tensor_type(ot__wire *wire, const void *object)
{
    const type *t = object;
    ot__fb *fb = &t->r->fb;
    const ot__fb_table shape = ot__fb_subtable(fb, t->table, 1);
    int64_t dtype = ot__fb_int(fb, t->table, 0, 4, 0);

    if (dtype == 0)
        ot__fb_fail(fb, "a tensor type has no element type");
    ot__wire_put_int(wire, 1, dtype);
    if (ot__fb_has(fb, t->table, 1))
        ot__wire_put_message(wire, 2, write_shape, &(type){t->r, &shape, t->depth});
}

static void write_type(ot__wire *wire, const void *object);

static void write_element_type(ot__wire *wire, const type *t, uint32_t number, int slot)
{
    const ot__fb_table element = ot__fb_subtable(&t->r->fb, t->table, slot);

    if (element.position == 0)
        ot__fb_fail(&t->r->fb, "a sequence or map type has no element type");
    else
        ot__wire_put_message(wire, number, write_type, &(type){t->r, &element, t->depth + 1});
}

static void write_sequence_type(ot__wire *wire, const void *object)
{
    write_element_type(wire, object, 1, 0);
}

static void write_map_type(ot__wire *wire, const void *object)
{
    const type *t = object;

    ot__wire_put_int(wire, 1, ot__fb_int(&t->r->fb, t->table, 0, 4, 0));
    write_element_type(wire, t, 2, 1);
}

// A TypeProto of a TypeInfo.
static void write_type(ot__wire *wire, const void *object)
{
    static const struct {
        uint32_t field;
        ot__wire_message write;
    } kinds[] = {[ORT_TAG_TENSOR] = {1, write_tensor_type},
                 [ORT_TAG_SEQUENCE] = {4, write_sequence_type},
                 [ORT_TAG_MAP] = {5, write_map_type}};
    const type *t = object;
    ot__fb *fb = &t->r->fb;
    int64_t tag = ot__fb_int(fb, t->table, ORT_TYPE_TAG, 1, ORT_TAG_NONE);
    const ot__fb_table value = ot__fb_subtable(fb, t->table, ORT_TYPE_TABLE);

    if (tag == ORT_TAG_NONE || tag > ORT_TAG_MAP || value.position == 0)
        ot__fb_fail(fb, "a type is of no kind that is known");
    if (fb->status == OT_OK)
        fb->status = ot__ort_check_depth(t->r, t->depth);
    if (fb->status != OT_OK)
        return;
    ot__wire_put_message(wire, kinds[tag].field, kinds[tag].write,
                         &(type){t->r, &value, t->depth + 1});
    ot__wire_put_text(wire, 6, ot__fb_string(fb, t->table, ORT_TYPE_DENOTATION));
}

ot_status ot__ort_read_type(ot__ort_reader *r, const ot__fb_table *value_info, ot_value *value,
                            int depth)
{
    const ot__fb_table table = ot__fb_subtable(&r->fb, value_info, ORT_VALUE_TYPE);
    ot__buf proto = {0};
    ot__wire counting = {.is_counting = true}, wire = ot__wire_to(&proto);
    ot__bytes bytes;
    ot_status st;

    OT_TRY(r->fb.status);
    if (table.position == 0)
        return ot__error(OT_ERR_FORMAT, "has no type");
    write_type(&counting, &(type){r, &table, depth});
    if (counting.count > r->reader.limits.memory)
        return ot__error(OT_ERR_NO_MEMORY, "a type needs more than the limit of %zu bytes",
                         r->reader.limits.memory);
    write_type(&wire, &(type){r, &table, depth});
    st = ot__keep_bytes(&r->reader, r->fb.status != OT_OK ? r->fb.status : wire.status, &proto,
                        &bytes);
    return st == OT_OK ? ot__read_type(&r->reader, bytes, value) : st;
}

// ---- tensors ----

static ot_status ort_read_dims(ot__ort_reader *r, const ot__fb_table *table, int slot,
                               ot_shape *shape)
{
    ot__fb_vector dims = ot__fb_subvector(&r->fb, table, slot, 8);
    int64_t count;

    OT_TRY(r->fb.status);
    if (!ot__fb_has(&r->fb, table, slot))
        return ot__error(OT_ERR_FORMAT, "has no dims");
    OT_TRY(ot__read_dims(r->fb.bytes + dims.position, dims.count, shape));
    if (!ot__shape_count(shape, &count))
        return ot__error(OT_ERR_FORMAT, "the shape has more elements than can be counted");
    return OT_OK;
}

// String elements point into the file, which stays as long as the model.
static ot_status ort_read_strings(ot__ort_reader *r, const ot__fb_table *table,
                                  const ot_shape *shape, ot_tensor **out)
{
    ot__fb_vector list = ot__fb_subvector(&r->fb, table, ORT_TENSOR_STRINGS, 4);
    int64_t count = 0;
    ot__string *strings;

    OT_TRY(r->fb.status);
    (void)ot__shape_count(shape, &count);
    if ((uint64_t)count != list.count)
        return ot__error(OT_ERR_FORMAT, "string_data has %zu entries, expected %" PRId64,
                         list.count, count);
    *out = ot__model_tensor_new(r->reader.model, OT_STRING, shape);
    OT_TRY(ot__made(*out));
    strings = (*out)->data;
    for (size_t i = 0; i < list.count; i++) {
        ot__fb_vector bytes = ot__fb_bytes_element(&r->fb, list, i);

        OT_TRY(r->fb.status);
        strings[i] = (ot__string){r->fb.bytes + bytes.position, bytes.count};
    }
    return OT_OK;
}

static ot_status read_raw(ot__ort_reader *r, const ot__fb_table *table, ot_dtype dtype,
                          const ot_shape *shape, ot_tensor **out)
{
    ot__fb_vector raw = ot__fb_subvector(&r->fb, table, ORT_TENSOR_RAW, 1);

    OT_TRY(r->fb.status);
    if (!ot__fb_has(&r->fb, table, ORT_TENSOR_RAW))
        return ot__error(OT_ERR_FORMAT, "has no raw_data");
    return ot__read_raw(&r->reader, dtype, shape,
                        (ot__bytes){r->fb.bytes + raw.position, raw.count}, out);
}

static ot_status read_elements(ot__ort_reader *r, const ot__fb_table *table, ot_tensor **out)
{
    int64_t number = ot__fb_int(&r->fb, table, ORT_TENSOR_TYPE, 4, 0);
    ot_dtype dtype;
    ot_shape shape;

    OT_TRY(r->fb.status);
    OT_TRY(ot__read_dtype(number, &dtype));
    OT_TRY(ort_read_dims(r, table, ORT_TENSOR_DIMS, &shape));
    if (dtype == OT_STRING)
        return ort_read_strings(r, table, &shape, out);
    return read_raw(r, table, dtype, &shape, out);
}

ot_status ot__ort_read_tensor(ot__ort_reader *r, const ot__fb_table *table, ot__read_tensor *out)
{
    *out = (ot__read_tensor){0};
    OT_TRY(ot__ort_read_text(r, table, ORT_TENSOR_NAME, &out->name));
    OT_TRY(ot__ort_read_text(r, table, ORT_TENSOR_DOC, &out->doc));
    return ot__error_prefix(read_elements(r, table, &out->tensor), "tensor '%s'", out->name);
}

// ---- sparse tensors ----

// Made dense, as ONNX Runtime does; the model's limit on memory holds for it.
ot_status ot__ort_read_sparse(ot__ort_reader *r, const ot__fb_table *table, ot__read_tensor *out)
{
    ot__fb_table values = ot__fb_subtable(&r->fb, table, ORT_SPARSE_VALUES);
    ot__fb_table indices = ot__fb_subtable(&r->fb, table, ORT_SPARSE_INDICES);
    ot__read_tensor places;
    ot_shape shape;
    ot_status st;

    OT_TRY(r->fb.status);
    if (values.position == 0 || indices.position == 0)
        return ot__error(OT_ERR_FORMAT, "a sparse tensor has no values or no indices");
    OT_TRY(ot__ort_read_tensor(r, &values, out));
    OT_TRY(ot__ort_read_tensor(r, &indices, &places));
    st = ort_read_dims(r, table, ORT_SPARSE_DIMS, &shape);
    OT_THEN(st,
            ot__sparse_to_dense(r->reader.model, out->tensor, places.tensor, &shape, &out->tensor));
    return ot__error_prefix(st, "tensor '%s'", out->name);
}
