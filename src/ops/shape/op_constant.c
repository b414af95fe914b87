// SPDX-License-Identifier: Apache-2.0
// Constant: a value written down in the node. Folded before anything runs; the kernel serves the
// folding.
#include "ops/move/move.h"

#include <string.h>

// The value in one of its forms: bytes of `count` elements. Texts stay in the model, which the plan
// keeps. False: sparse, which cannot be computed with.
typedef struct constant_value {
    ot_dtype dtype;
    ot_shape shape;
    const void *data;
    int64_t number; // where data points for one int
    float real;
} constant_value;

static bool read_constant_list(const ot_node *node, const char *name, constant_value *v)
{
    int n;
    const int64_t *ints;
    const float *floats;

    if (!ot_attr_given(node, name))
        return false;
    ints = ot_attr_ints(node, name, &n);
    v->data = ints;
    v->dtype = OT_I64;
    if (strcmp(name, "value_floats") == 0) {
        floats = ot_attr_floats(node, name, &n);
        v->data = floats;
        v->dtype = OT_F32;
    }
    v->shape = OT_SHAPE(n);
    return true;
}

static bool read_strings(const ot_node *node, constant_value *v)
{
    const ot_attr *one = ot__node_attr(node, "value_string");
    const ot_attr *list = ot__node_attr(node, "value_strings");

    v->dtype = OT_STRING;
    v->shape = one != NULL || list == NULL ? OT_SHAPE_SCALAR : OT_SHAPE(list->n);
    v->data = one != NULL ? &one->s : list != NULL ? list->strings : NULL;
    return one != NULL || list != NULL;
}

static bool read_constant(const ot_node *node, constant_value *v)
{
    const ot_tensor *tensor = ot_attr_tensor(node, "value");

    *v = (constant_value){0};
    if (tensor != NULL) {
        v->dtype = ot_tensor_dtype(tensor);
        v->shape = *ot_tensor_shape(tensor);
        v->data = ot_tensor_data_const(tensor);
        return true;
    }
    if (ot_attr_given(node, "value_int")) {
        v->dtype = OT_I64;
        v->number = ot_attr_int(node, "value_int");
        v->data = &v->number;
        return true;
    }
    if (ot_attr_given(node, "value_float")) {
        v->dtype = OT_F32;
        v->real = ot_attr_float(node, "value_float");
        v->data = &v->real;
        return true;
    }
    return read_constant_list(node, "value_ints", v) ||
           read_constant_list(node, "value_floats", v) || read_strings(node, v);
}

static void infer_constant(ot_infer *c, const constant_value *v)
{
    int64_t values[OT_MAX_KNOWN], count;

    if ((v->dtype == OT_I64 || v->dtype == OT_I32) && ot__shape_count(&v->shape, &count) &&
        count <= OT_MAX_KNOWN && ot__convert(values, OT_I64, v->data, v->dtype, count))
        ot_infer_set_values(c, 0, values, ot__all_numbers(values, (int)count) ? (int)count : 0);
}

static void constant_infer(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);
    constant_value v;

    if (read_constant(node, &v)) {
        ot_infer_set(c, 0, v.dtype, &v.shape);
        infer_constant(c, &v);
    } else {
        ot_infer_fail(c, ot_attr_given(node, "sparse_value") ? "sparse values are not supported"
                                                             : "no value is given");
    }
}

typedef struct constant_state {
    size_t n_bytes;
    unsigned char bytes[];
} constant_state;

// A copy: the plan outlives the graph.
static ot_status constant_prep(ot_prep *p)
{
    constant_state *state;
    constant_value v;
    int64_t count;
    size_t n_bytes;

    if (!read_constant(ot_prep_node(p), &v) || !ot__shape_count(&v.shape, &count) ||
        !ot__element_bytes(v.dtype, count, &n_bytes))
        return ot_prep_fail(p, OT_ERR_UNSUPPORTED, "a value of type %s cannot be computed with",
                            ot_dtype_name(ot_prep_out(p, 0)->dtype));
    state = ot_prep_state(p, sizeof(*state) + n_bytes);
    OT_TRY(ot__made(state));
    state->n_bytes = n_bytes;
    if (n_bytes > 0)
        memcpy(state->bytes, v.data, n_bytes);
    return OT_OK;
}

static ot_status constant_run(const ot_run *r)
{
    const constant_state *state = r->state;

    ot__ref_copy_bytes(r->out[0]->data, state->bytes, state->n_bytes);
    return OT_OK;
}

static const ot_port constant_in[] = {{0}};
static const ot_attr_spec constant_attrs[] = {
    {.name = "value", .kind = OT_ATTRIBUTE_TENSOR},
    {.name = "sparse_value", .kind = OT_ATTR_SPARSE_TENSOR},
    {.name = "value_int", .kind = OT_ATTRIBUTE_INT},
    {.name = "value_ints", .kind = OT_ATTRIBUTE_INTS},
    {.name = "value_float", .kind = OT_ATTRIBUTE_FLOAT},
    {.name = "value_floats", .kind = OT_ATTRIBUTE_FLOATS},
    {.name = "value_string", .kind = OT_ATTRIBUTE_STRING},
    {.name = "value_strings", .kind = OT_ATTRIBUTE_STRINGS},
    {0},
};
static const ot_kernel constant_kernels[] = {OT__REF_KERNEL(NULL, constant_prep, constant_run),
                                             {0}};
const ot_op_def ot__op_constant[] = {
    {.name = "Constant",
     .since = 1,
     .inputs = constant_in,
     .outputs = ot__output_out,
     .attrs = constant_attrs,
     .types = "T: any string",
     .infer = constant_infer,
     .kernels = constant_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
