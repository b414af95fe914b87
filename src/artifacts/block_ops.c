// SPDX-License-Identifier: Apache-2.0
// The blocks of onnxblock, by its names of values and nodes.
#include <math.h>
#include <string.h>

#include "artifacts/block.h"

// ---- one node, no attributes ----

static ot_value *unary(ot_block *block, const char *op, const char *token, ot_value *x)
{
    if (!ot__block_enter(block, op) || !ot__block_takes(block, x))
        return NULL;
    return ot__block_unary(block, op, token, x);
}

static ot_value *binary(ot_block *block, const char *op, const char *token, ot_value *a,
                        ot_value *b)
{
    if (!ot__block_enter(block, op) || !ot__block_takes(block, a) || !ot__block_takes(block, b))
        return NULL;
    return ot__block_binary(block, op, token, a, b);
}

ot_value *ot_block_add(ot_block *block, ot_value *a, ot_value *b)
{
    return binary(block, "Add", "add_output", a, b);
}

ot_value *ot_block_sub(ot_block *block, ot_value *a, ot_value *b)
{
    return binary(block, "Sub", "sub_output", a, b);
}

ot_value *ot_block_mul(ot_block *block, ot_value *a, ot_value *b)
{
    return binary(block, "Mul", "mul_output", a, b);
}

ot_value *ot_block_div(ot_block *block, ot_value *a, ot_value *b)
{
    return binary(block, "Div", "div_output", a, b);
}

ot_value *ot_block_sigmoid(ot_block *block, ot_value *x)
{
    return unary(block, "Sigmoid", "sigmoid_output", x);
}

ot_value *ot_block_log(ot_block *block, ot_value *x)
{
    return unary(block, "Log", "log_output", x);
}

ot_value *ot_block_neg(ot_block *block, ot_value *x)
{
    return unary(block, "Neg", "neg_output", x);
}

ot_value *ot_block_abs(ot_block *block, ot_value *x)
{
    return unary(block, "Abs", "abs_output", x);
}

// ---- with constants ----

ot_value *ot_block_pow(ot_block *block, ot_value *x, double exponent)
{
    ot_value *power;

    if (!ot__block_enter(block, "Pow") || !ot__block_takes(block, x))
        return NULL;
    power = ot__block_constant(block, "pow_exponent", exponent, x->dtype);
    return ot__block_binary(block, "Pow", "pow_output", x, power);
}

// A scalar, as ONNX wants it. onnxblock gives one of shape [1].
static ot_value *bound(ot_block *block, const char *token, double number, ot_dtype dtype)
{
    return isinf(number) ? NULL : ot__block_scalar(block, token, number, dtype);
}

ot_value *ot_block_clip(ot_block *block, ot_value *x, double low, double high)
{
    ot_value *inputs[3] = {x};

    if (!ot__block_enter(block, "Clip") || !ot__block_takes(block, x))
        return NULL;
    if (!(low <= high && low < INFINITY && high > -INFINITY))
        ot__build_note(&block->build, ot__error(OT_ERR_INVALID, "bounds %g and %g", low, high));
    inputs[1] = bound(block, "clip_min", low, x->dtype);
    inputs[2] = bound(block, "clip_max", high, x->dtype);
    return ot__block_settle(block, ot__block_maker(block, "", "Clip", "clip_output", inputs,
                                                   inputs[2]   ? 3
                                                   : inputs[1] ? 2
                                                               : 1));
}

// ---- with attributes ----

ot_value *ot_block_cast(ot_block *block, ot_value *x, ot_dtype to)
{
    ot_node *node;

    if (!ot__block_enter(block, "Cast") || !ot__block_takes(block, x))
        return NULL;
    node = ot__block_maker(block, "", "Cast", "cast.output", &x, 1);
    ot__build_int(&block->build, node, "to", (int64_t)to);
    return ot__block_settle(block, node);
}

static ot_value *block_reduce(ot_block *block, const char *op, const char *token, ot_value *x,
                              ot_keepdims keepdims)
{
    if (!ot__block_enter(block, op) || !ot__block_takes(block, x))
        return NULL;
    if (keepdims != OT_SCALAR && keepdims != OT_KEEPDIMS)
        ot__build_note(&block->build, ot__error(OT_ERR_INVALID, "keepdims is %d", (int)keepdims));
    return ot__block_reduce(block, op, token, x, keepdims);
}

ot_value *ot_block_reduce_mean(ot_block *block, ot_value *x, ot_keepdims keepdims)
{
    return block_reduce(block, "ReduceMean", "reducemean_output", x, keepdims);
}

ot_value *ot_block_reduce_sum(ot_block *block, ot_value *x, ot_keepdims keepdims)
{
    return block_reduce(block, "ReduceSum", "reducesum_output", x, keepdims);
}

// ---- any number of values ----

static bool takes_all(ot_block *block, const char *scope, ot_value *const *values, int n)
{
    if (!ot__block_enter(block, scope))
        return false;
    if (n < 1 || !values)
        ot__build_note(&block->build,
                       ot__error(OT_ERR_INVALID, "%d values, expected one at least", n));
    for (int i = 0; i < n && block->build.status == OT_OK; i++)
        ot__block_takes(block, values[i]);
    return block->build.status == OT_OK;
}

ot_value *ot_block_reduce_all_l2(ot_block *block, ot_value *const *values, int n_values)
{
    if (!takes_all(block, "ReduceAllL2", values, n_values))
        return NULL;
    return ot__block_settle(block, ot__block_maker(block, "com.microsoft", "ReduceAllL2",
                                                   "reducealll2_output", values, n_values));
}

ot_value *ot_block_sequence_construct(ot_block *block, ot_value *const *values, int n_values)
{
    const char *name;
    ot_value *y;
    ot_node *node;

    if (!takes_all(block, "SequenceConstruct", values, n_values))
        return NULL;
    for (int i = 0; i < n_values; i++)
        if (values[i]->kind != OT_VALUE_TENSOR || values[i]->dtype != values[0]->dtype) {
            ot__build_note(&block->build,
                           ot__error(OT_ERR_INVALID,
                                     "'%s' and '%s' are not tensors of one element type",
                                     values[0]->name, values[i]->name));
            return NULL;
        }
    y = ot__block_value(block, "sequenceconstruct_output");
    name = ot__block_name(block, "SequenceConstruct");
    node = ot__build_node(&block->build, "", "SequenceConstruct", name, values, n_values, &y, 1);
    if (!node)
        return NULL;
    node->op = ot__op_foreign;
    y->kind = OT_VALUE_SEQUENCE;
    y->dtype = values[0]->dtype;
    return y;
}

ot_value *ot_block_pass_through(ot_block *block, ot_value *const *values, int n_values)
{
    return takes_all(block, "pass through", values, n_values) ? values[0] : NULL;
}

// ---- Linear ----

static ot_value *drawn(ot_block *block, const char *token, ot_dtype dtype, ot_shape shape)
{
    const char *name = ot__block_name(block, token);
    ot_value *value = ot__build_initializer(&block->build, name, dtype, &shape);

    if (value)
        ot__build_note(&block->build, ot__init_normal(value->constant, block->seed, name));
    return ot__block_train(block, value);
}

static ot_status check_linear(const ot_value *x, int64_t n_in, int64_t n_out)
{
    if (n_in < 1 || n_out < 1)
        return ot__error(OT_ERR_INVALID, "%" PRId64 " and %" PRId64 " features", n_in, n_out);
    if (!ot__dtype_is_float(x->dtype))
        return ot__error(OT_ERR_INVALID, "'%s' is %s, expected a float type", x->name,
                         ot_dtype_name(x->dtype));
    return OT_OK;
}

ot_value *ot_block_linear(ot_block *block, ot_value *x, int64_t in_features, int64_t out_features,
                          const ot_linear_options *options)
{
    ot_linear_options o;
    ot_value *inputs[3] = {x}, *y;
    ot_node *node;

    if (!ot__block_enter(block, "Linear") || !ot__block_takes(block, x))
        return NULL;
    ot__build_note(&block->build,
                   OT_OPTIONS_READ(ot_linear_options, OT_LINEAR_OPTIONS_INIT, options, &o));
    ot__build_note(&block->build, check_linear(x, in_features, out_features));
    inputs[1] = drawn(block, "linear.weight", x->dtype, OT_SHAPE(in_features, out_features));
    if (o.has_bias)
        inputs[2] = drawn(block, "linear.bias", x->dtype, OT_SHAPE(out_features));
    y = ot__block_value(block, "linear.output");
    node = ot__block_node_as(block, "linear", "", "Gemm", inputs, o.has_bias ? 3 : 2, &y, 1);
    ot__build_float(&block->build, node, "alpha", (double)o.alpha);
    ot__build_float(&block->build, node, "beta", (double)o.beta);
    return ot__block_settle(block, node);
}

// ---- LabelEncoder ----

static ot_status check_block_list(const char *what, const ot_tensor *list)
{
    if (!list)
        return ot__error(OT_ERR_INVALID, "its %s are NULL", what);
    if (list->dtype != OT_F32 && list->dtype != OT_I64)
        return ot__error(OT_ERR_UNSUPPORTED, "its %s are %s, expected f32 or i64", what,
                         ot_dtype_name(list->dtype));
    if (list->shape.ndim != 1 || list->shape.dim[0] > INT32_MAX)
        return ot__error(OT_ERR_INVALID, "its %s are not a list", what);
    return OT_OK;
}

static ot_status take_encoder(const ot_label_encoder_options *given, ot_label_encoder_options *own)
{
    if (!given)
        return ot__error(OT_ERR_INVALID, "its options are NULL");
    OT_TRY(OT_OPTIONS_READ(ot_label_encoder_options, OT_LABEL_ENCODER_OPTIONS_INIT, given, own));
    OT_TRY(check_block_list("keys", own->keys));
    return check_block_list("values", own->values);
}

// "keys_floats" or "keys_int64s".
static void block_set_list(ot_block *block, ot_node *node, const char *floats, const char *ints,
                           const ot_tensor *list)
{
    const int n = (int)list->shape.dim[0];
    ot_attr *attr;

    if (list->dtype == OT_I64)
        ot__build_ints(&block->build, node, ints, list->data, n);
    if (list->dtype == OT_I64 || block->build.status != OT_OK)
        return;
    attr = ot__node_add_attr(node, floats, OT_ATTR_FLOATS);
    if (attr)
        attr->floats =
            ot__arena_memdup(block->build.graph->model->arena, list->data, list->n_bytes);
    if (ot__build_made(&block->build, attr && attr->floats))
        attr->n = n;
}

ot_value *ot_block_label_encoder(ot_block *block, ot_value *x,
                                 const ot_label_encoder_options *options)
{
    ot_label_encoder_options own;
    ot_node *node;

    if (!ot__block_enter(block, "LabelEncoder") || !ot__block_takes(block, x))
        return NULL;
    ot__build_note(&block->build, take_encoder(options, &own));
    node = ot__block_maker(block, "ai.onnx.ml", "LabelEncoder", "label_encoder.output", &x, 1);
    if (block->build.status != OT_OK)
        return NULL;
    ot__build_float(&block->build, node, "default_float", (double)own.default_float);
    ot__build_int(&block->build, node, "default_int64", own.default_int64);
    ot__build_string(&block->build, node, "default_string", "_Unused");
    block_set_list(block, node, "keys_floats", "keys_int64s", own.keys);
    block_set_list(block, node, "values_floats", "values_int64s", own.values);
    return ot__block_settle(block, node);
}
