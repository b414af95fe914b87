// SPDX-License-Identifier: Apache-2.0
// LabelEncoder: each number or text is replaced by the number or text that a table has for it.
#include "op/op.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// What is compared: integers as they are, floats by their bits, all zeros and all NaNs alike;
// strings by their bytes.
typedef struct key {
    int64_t number;
    ot__string text;
} key;

typedef struct entry {
    key key;
    int at; // among the values
} entry;

typedef struct table {
    const entry *entries; // sorted by key, the first of equal ones before the others
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

    return order != 0 ? order : x->at < y->at ? -1 : x->at > y->at;
}

// Element number i of the input, or of the keys in the same form.
static key key_at(ot_dtype dtype, const void *elements, int64_t i)
{
    if (dtype == OT_F32)
        return (key){.number = bits_of(((const float *)elements)[i])};
    if (dtype == OT_I64)
        return (key){.number = ((const int64_t *)elements)[i]};
    return (key){.text = ((const ot__string *)elements)[i]};
}

// The keys for inputs of a type; NULL: there are none.
static const void *keys_for(const ot_node *node, ot_dtype dtype, int *n)
{
    const ot_attr *strings = ot__node_attr(node, "keys_strings");

    *n = 0;
    if (dtype == OT_F32)
        return ot_attr_floats(node, "keys_floats", n);
    if (dtype == OT_I64)
        return ot_attr_ints(node, "keys_int64s", n);
    *n = strings != NULL ? strings->n : 0;
    return strings != NULL ? strings->strings : NULL;
}

static const char *keys_name(ot_dtype dtype)
{
    return dtype == OT_F32 ? "keys_floats" : dtype == OT_I64 ? "keys_int64s" : "keys_strings";
}

// The values that the node gives, and of which type; undefined: none, or of several types.
static ot_dtype values_of(const ot_node *node, const void **values, int *n)
{
    const ot_attr *strings = ot__node_attr(node, "values_strings");
    const bool has_floats = ot_attr_given(node, "values_floats");
    const bool has_ints = ot_attr_given(node, "values_int64s");

    *values = NULL;
    *n = 0;
    if (has_floats + has_ints + (strings != NULL) != 1)
        return OT_DTYPE_UNDEFINED;
    if (strings != NULL) {
        *n = strings->n;
        *values = strings->strings;
        return OT_STRING;
    }
    *values = has_floats ? (const void *)ot_attr_floats(node, "values_floats", n)
                         : (const void *)ot_attr_ints(node, "values_int64s", n);
    return has_floats ? OT_F32 : OT_I64;
}

static void put_default(const ot_node *node, ot_dtype dtype, void *to)
{
    const ot_attr *given = ot__node_attr(node, "default_string");
    const char *text = ot_attr_string(node, "default_string");

    if (dtype == OT_F32)
        *(float *)to = ot_attr_float(node, "default_float");
    else if (dtype == OT_I64)
        *(int64_t *)to = ot_attr_int(node, "default_int64");
    else
        *(ot__string *)to =
            given != NULL ? given->s : (ot__string){(const uint8_t *)text, strlen(text)};
}

static void label_encoder_infer(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);
    const ot_dtype from = ot_infer_dtype(c, 0);
    const void *values;
    int n_values, n_keys;
    const ot_dtype to = values_of(node, &values, &n_values);

    keys_for(node, from, &n_keys);
    if (to == OT_DTYPE_UNDEFINED)
        ot_infer_fail(c, "expected one of values_floats, values_int64s and values_strings");
    else if (!ot_attr_given(node, keys_name(from)))
        ot_infer_fail(c, "its input is %s, but its keys are not", ot_dtype_name(from));
    else if (n_keys != n_values)
        ot_infer_fail(c, "%d keys and %d values", n_keys, n_values);
    else
        ot_infer_set(c, 0, to, ot_infer_shape(c, 0));
}

// State: the table, its entries, its values and default, in one block. Texts stay in the model,
// which the plan keeps.
static ot_status label_encoder_prepare(ot_prep *p)
{
    const ot_node *node = ot_prep_node(p);
    const ot_dtype from = ot_prep_in(p, 0)->dtype;
    int n, n_values;
    const void *given, *keys = keys_for(node, from, &n);
    const ot_dtype to = values_of(node, &given, &n_values);
    const size_t count = (size_t)n, size = ot__element_size(to);
    table *t = ot_prep_state(p, sizeof(*t) + count * sizeof(entry) + (count + 1) * size);
    entry *entries;
    char *values;

    OT_TRY(ot__made(t));
    entries = (entry *)(t + 1);
    values = (char *)(entries + count);
    for (int k = 0; k < n; k++)
        entries[k] = (entry){key_at(from, keys, k), k};
    qsort(entries, count, sizeof(*entries), compare_entries);
    if (n > 0)
        memcpy(values, given, count * size);
    put_default(node, to, values + count * size);
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
static const ot_attr_spec label_encoder_attrs[] = {
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
const ot_op_def ot__op_label_encoder[] = {
    {.domain = "ai.onnx.ml",
     .name = "LabelEncoder",
     .since = 2,
     .inputs = label_encoder_in,
     .outputs = label_encoder_out,
     .attrs = label_encoder_attrs,
     .types = "T1: f32 i64 string; T2: f32 i64 string",
     .infer = label_encoder_infer,
     .kernels = label_encoder_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
