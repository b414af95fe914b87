// SPDX-License-Identifier: Apache-2.0
// LabelEncoder: each number or text is replaced by the number or text that a table has for it.
#include "op/op.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Opset of ai.onnx.ml; of equal keys the last one counts since then, before that the first one.
enum { TENSORS_SINCE = 4 };

// What is compared: integers as they are, floats by their bits, all zeros and all NaNs alike;
// strings by their bytes.
typedef struct key {
    int64_t number;
    ot__string text;
} key;

typedef struct entry {
    key key;
    int at;   // among the values
    int rank; // of equal keys the one of least rank counts
} entry;

typedef struct table {
    const entry *entries; // sorted by key, those of less rank before others
    const char *values;   // of `size` bytes each, then the default
    size_t size;
    int n;
} table;

static int64_t bits_of(float x)
{
    uint32_t bits;

    if (isnan(x))
        return -1;
    x = x == 0.0F ? 0.0F : x;
    memcpy(&bits, &x, sizeof(bits));
    return (int64_t)bits;
}

static int64_t bits_of_double(double x)
{
    int64_t bits;

    if (isnan(x))
        x = (double)NAN;
    x = x == 0.0 ? 0.0 : x;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static int compare_keys(const key *a, const key *b)
{
    const size_t n = OT_MIN(a->text.size, b->text.size);
    const int order = n > 0 ? memcmp(a->text.data, b->text.data, n) : 0;

    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    if (order != 0)
        return order;
    return a->text.size < b->text.size ? -1 : a->text.size > b->text.size;
}

static int compare_entries(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    const int order = compare_keys(&x->key, &y->key);

    return order != 0 ? order : x->rank < y->rank ? -1 : x->rank > y->rank;
}

// Element number i of the input, or of the keys in the same form.
static key key_at(ot_dtype dtype, const void *elements, int64_t i)
{
    switch (dtype) {
    case OT_F32:
        return (key){.number = bits_of(((const float *)elements)[i])};
    case OT_F64:
        return (key){.number = bits_of_double(((const double *)elements)[i])};
    case OT_I16:
        return (key){.number = ((const int16_t *)elements)[i]};
    case OT_I32:
        return (key){.number = ((const int32_t *)elements)[i]};
    case OT_I64:
        return (key){.number = ((const int64_t *)elements)[i]};
    default:
        return (key){.text = ((const ot__string *)elements)[i]};
    }
}

// ---- keys and values: lists, or a tensor ----

typedef struct labels {
    const void *data;
    ot_dtype dtype; // undefined: not given, or more than once
    int64_t n;
} labels;

typedef struct label_names {
    const char *floats, *ints, *strings, *tensor;
} label_names;

static const label_names key_names = {"keys_floats", "keys_int64s", "keys_strings", "keys_tensor"};
static const label_names value_names = {"values_floats", "values_int64s", "values_strings",
                                        "values_tensor"};

static labels read_labels(const ot_node *node, const label_names *names)
{
    const ot_attr *strings = ot__node_attr(node, names->strings);
    const ot_tensor *tensor =
        node->op->since < TENSORS_SINCE ? NULL : ot_attr_tensor(node, names->tensor);
    const bool has_floats = ot_attr_given(node, names->floats);
    const bool has_ints = ot_attr_given(node, names->ints);
    int n = 0;
    labels found = {0};

    if (has_floats + has_ints + (strings != NULL) + (tensor != NULL) != 1)
        return found;
    if (tensor != NULL)
        return (labels){tensor->data, tensor->dtype, ot_tensor_count(tensor)};
    if (strings != NULL)
        return (labels){strings->strings, OT_STRING, strings->n};
    if (has_floats)
        found.data = ot_attr_floats(node, names->floats, &n);
    else
        found.data = ot_attr_ints(node, names->ints, &n);
    found.dtype = has_floats ? OT_F32 : OT_I64;
    found.n = n;
    return found;
}

static const ot_tensor *default_label(const ot_node *node)
{
    return node->op->since < TENSORS_SINCE ? NULL : ot_attr_tensor(node, "default_tensor");
}

static void put_default(const ot_node *node, ot_dtype dtype, void *to)
{
    const ot_attr *given = ot__node_attr(node, "default_string");
    const char *text = ot_attr_string(node, "default_string");
    const ot_tensor *tensor = default_label(node);
    double number =
        dtype == OT_F32 || dtype == OT_F64 ? (double)ot_attr_float(node, "default_float") : 0;

    if (tensor != NULL)
        memcpy(to, tensor->data, ot__element_size(dtype));
    else if (dtype == OT_STRING)
        *(ot__string *)to =
            given != NULL ? given->s : (ot__string){(const uint8_t *)text, strlen(text)};
    else if (dtype == OT_F32 || dtype == OT_F64)
        (void)ot__convert(to, dtype, &number, OT_F64, 1);
    else
        (void)ot__convert(to, dtype, &(int64_t){ot_attr_int(node, "default_int64")}, OT_I64, 1);
}

// ---- inference ----

static bool is_label_type(ot_dtype dtype)
{
    return dtype == OT_F32 || dtype == OT_F64 || dtype == OT_I16 || dtype == OT_I32 ||
           dtype == OT_I64 || dtype == OT_STRING;
}

static void label_encoder_infer(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);
    const ot_dtype from = ot_infer_dtype(c, 0);
    const labels keys = read_labels(node, &key_names), values = read_labels(node, &value_names);
    const ot_tensor *other = default_label(node);

    if (!is_label_type(values.dtype))
        ot_infer_fail(c, "expected one list or tensor of values, of numbers or strings");
    else if (keys.dtype != from)
        ot_infer_fail(c, "its input is %s, but its keys are not", ot_dtype_name(from));
    else if (keys.n != values.n)
        ot_infer_fail(c, "%" PRId64 " keys and %" PRId64 " values", keys.n, values.n);
    else if (keys.n > INT32_MAX)
        ot_infer_fail(c, "%" PRId64 " keys, expected at most %d", keys.n, INT32_MAX);
    else if (other != NULL && (other->dtype != values.dtype || ot_tensor_count(other) != 1))
        ot_infer_fail(c, "default_tensor has %" PRId64 " elements of %s, expected 1 of %s",
                      ot_tensor_count(other), ot_dtype_name(other->dtype),
                      ot_dtype_name(values.dtype));
    else
        ot_infer_set(c, 0, values.dtype, ot_infer_shape(c, 0));
}

// ---- the kernel ----

// State: the table, its entries, its values and default, in one block. Texts stay in the model,
// which the plan keeps.
static ot_status label_encoder_prepare(ot_prep *p)
{
    const ot_node *node = ot_prep_node(p);
    const labels keys = read_labels(node, &key_names), given = read_labels(node, &value_names);
    const bool last_counts = node->op->since >= TENSORS_SINCE;
    const int n = (int)keys.n;
    const size_t count = (size_t)n, size = ot__element_size(given.dtype);
    table *t = ot_prep_state(p, sizeof(*t) + count * sizeof(entry) + (count + 1) * size);
    entry *entries;
    char *values;

    OT_TRY(ot__made(t));
    entries = (entry *)(t + 1);
    values = (char *)(entries + count);
    for (int k = 0; k < n; k++)
        entries[k] = (entry){key_at(keys.dtype, keys.data, k), k, last_counts ? n - k : k};
    qsort(entries, count, sizeof(*entries), compare_entries);
    if (n > 0)
        memcpy(values, given.data, count * size);
    put_default(node, given.dtype, values + count * size);
    *t = (table){entries, values, size, n};
    return OT_OK;
}

// Where the value for a key stands; behind the last one: the default.
static int find_label(const table *t, const key *wanted)
{
    int low = 0, high = t->n;

    while (low < high) {
        const int middle = low + (high - low) / 2;

        if (compare_keys(&t->entries[middle].key, wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < t->n && compare_keys(&t->entries[low].key, wanted) == 0 ? t->entries[low].at
                                                                         : t->n;
}

static ot_status label_encoder_run(const ot_run *r)
{
    const table *t = r->state;
    const ot_arg *x = r->in[0];

    for (int64_t k = 0; k < x->count; k++) {
        const key wanted = key_at(x->dtype, x->data, k);

        memcpy((char *)r->out[0]->data + (size_t)k * t->size,
               t->values + (size_t)find_label(t, &wanted) * t->size, t->size);
    }
    return OT_OK;
}

static const ot_port label_encoder_in[] = {{"X", "T1", 0}, {0}};
static const ot_port label_encoder_out[] = {{"Y", "T2", 0}, {0}};
// Those of opset 2 behind what opset 4 has before them.
static const ot_attr_spec label_encoder_attrs[] = {
    {.name = "default_tensor", .kind = OT_ATTRIBUTE_TENSOR},
    {.name = "keys_tensor", .kind = OT_ATTRIBUTE_TENSOR},
    {.name = "values_tensor", .kind = OT_ATTRIBUTE_TENSOR},
    OT__FLOAT_ATTR("default_float", -0.0F),
    OT__INT_ATTR("default_int64", -1),
    OT__STRING_ATTR("default_string", "_Unused"),
    {.name = "keys_floats", .kind = OT_ATTRIBUTE_FLOATS},
    {.name = "keys_int64s", .kind = OT_ATTRIBUTE_INTS},
    {.name = "keys_strings", .kind = OT_ATTRIBUTE_STRINGS},
    {.name = "values_floats", .kind = OT_ATTRIBUTE_FLOATS},
    {.name = "values_int64s", .kind = OT_ATTRIBUTE_INTS},
    {.name = "values_strings", .kind = OT_ATTRIBUTE_STRINGS},
    {0},
};
static const ot_kernel label_encoder_kernels[] = {
    OT__REF_KERNEL(NULL, label_encoder_prepare, label_encoder_run),
    {0},
};
#define LABEL_ENCODER(since_, attrs_, types_)                                                      \
    {                                                                                              \
        .domain = "ai.onnx.ml", .name = "LabelEncoder", .since = since_,                           \
        .inputs = label_encoder_in, .outputs = label_encoder_out, .attrs = attrs_,                 \
        .types = "T1: " types_ "; T2: " types_, .infer = label_encoder_infer,                      \
        .kernels = label_encoder_kernels, .flags = OT_OP_NO_GRAD                                   \
    }
const ot_op_def ot__op_label_encoder[] = {
    LABEL_ENCODER(2, label_encoder_attrs + 3, "f32 i64 string"),
    LABEL_ENCODER(TENSORS_SINCE, label_encoder_attrs, "f32 f64 i16 i32 i64 string"),
    {0},
};
