// SPDX-License-Identifier: Apache-2.0
// Operators of ai.onnx.ml on features: Scaler, Normalizer, Imputer, Binarizer,
// ArrayFeatureExtractor and FeatureVectorizer.
#include <math.h>
#include <string.h>

#include "kernels/kernels.h"
#include "ops/ml/ml.h"

// ---- Scaler: Y = (X - offset) * scale ----

static void scaler_infer(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);
    int n_offset, n_scale;
    const float *offset = ot_attr_floats(node, "offset", &n_offset);
    const float *scale = ot_attr_floats(node, "scale", &n_scale);

    if (offset != NULL && scale != NULL && n_offset != n_scale)
        ot_infer_fail(c, "offset has %d entries, scale %d", n_offset, n_scale);
    if ((offset == NULL || ot__ml_check_list(c, "offset", n_offset)) &&
        (scale == NULL || ot__ml_check_list(c, "scale", n_scale)))
        ot_infer_set(c, 0, ot__ml_float_type(c, 0), ot_infer_shape(c, 0));
}

// x and a list of a float for each feature, or for all of them; without the list x itself.
static ot_value *emit_with_list(ot_grad *g, const char *op, ot_value *x, const char *name)
{
    int n;
    const float *list = ot_attr_floats(ot_grad_node(g), name, &n);
    const ot_shape shape = n == 1 ? OT_SHAPE_SCALAR : OT_SHAPE(n);

    return list == NULL ? x : ot_emit2(g, op, x, ot__ml_emit_floats(g, list, &shape, x));
}

static void scaler_compose(ot_grad *g)
{
    ot_value *y = emit_with_list(g, "Sub", ot__ml_emit_x(g), "offset");

    ot__ml_set(g, 0, emit_with_list(g, "Mul", y, "scale"));
}

// ---- Normalizer: each row divided by its largest element or its norm; by nothing where that is 0
// ----

static bool has_norm(const ot_node *node, const char *name)
{
    return strcmp(ot_attr_string(node, "norm"), name) == 0;
}

static void normalizer_infer(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);

    if (!has_norm(node, "MAX") && !has_norm(node, "L1") && !has_norm(node, "L2"))
        ot_infer_fail(c, "norm '%.40s' is not one of MAX, L1 and L2", ot_attr_string(node, "norm"));
    if (ot__ml_check_rows(c))
        ot_infer_set(c, 0, ot__ml_float_type(c, 0), ot_infer_shape(c, 0));
}

static void normalizer_compose(ot_grad *g)
{
    static const int64_t last[] = {-1};
    const ot_node *node = ot_grad_node(g);
    ot_value *x = ot__ml_emit_x(g), *norm, *is_zero;

    if (has_norm(node, "MAX"))
        norm = ot__emit_reduce(g, "ReduceMax", x, last, 1);
    else if (has_norm(node, "L1"))
        norm = ot__emit_sum(g, ot_emit1(g, "Abs", x), last, 1, true);
    else
        norm = ot__emit_sum(g, ot_emit2(g, "Mul", x, x), last, 1, true);
    if (has_norm(node, "L2")) { // the root of 0 has no gradient
        is_zero = ot_emit2(g, "Equal", norm, ot_emit_constant(g, 0, norm));
        norm = ot_emit3(g, "Where", is_zero, ot_emit_constant(g, 1, norm), norm);
        ot__ml_set(g, 0, ot_emit2(g, "Div", x, ot_emit1(g, "Sqrt", norm)));
        return;
    }
    ot__ml_set(g, 0, ot__ml_emit_divided(g, x, norm, &is_zero));
}

// ---- Imputer: elements that equal a value, or are not a number, become another ----

typedef struct imputed {
    const char *name, *replaced;
    int n;
} imputed;

static imputed imputed_of(const ot_node *node, ot_dtype dtype)
{
    imputed i = {"imputed_value_int64s", "replaced_value_int64", 0};

    if (ot__dtype_is_float(dtype))
        i = (imputed){"imputed_value_floats", "replaced_value_float", 0};
    if (ot__dtype_is_float(dtype))
        (void)ot_attr_floats(node, i.name, &i.n);
    else
        (void)ot_attr_ints(node, i.name, &i.n);
    return i;
}

static void imputer_infer(ot_infer *c)
{
    const ot_dtype dtype = ot_infer_dtype(c, 0);
    const imputed i = imputed_of(ot_infer_node(c), dtype);

    if (i.n == 0)
        ot_infer_fail(c, "%s is missing or empty, its input is %s", i.name, ot_dtype_name(dtype));
    if (ot__ml_check_list(c, i.name, i.n))
        ot_infer_set(c, 0, dtype, ot_infer_shape(c, 0));
}

static void imputer_compose(ot_grad *g)
{
    const ot_node *node = ot_grad_node(g);
    ot_value *x = ot_grad_x(g, 0), *is_missing, *values;
    const imputed i = imputed_of(node, ot_value_dtype(x));
    const ot_shape shape = i.n == 1 ? OT_SHAPE_SCALAR : OT_SHAPE(i.n);
    ot_value *replaced = ot__emit_tensor(g, ot_value_dtype(x), &OT_SHAPE_SCALAR);
    int n;

    if (replaced == NULL)
        return;
    if (ot__dtype_is_float(ot_value_dtype(x))) {
        const float number = ot_attr_float(node, i.replaced);

        (void)ot__convert(replaced->constant->data, replaced->dtype, &number, OT_F32, 1);
        values = ot__ml_emit_floats(g, ot_attr_floats(node, i.name, &n), &shape, x);
        is_missing = isnan(number) ? ot_emit1(g, "IsNaN", x) : ot_emit2(g, "Equal", x, replaced);
    } else {
        const int64_t number = ot_attr_int(node, i.replaced);

        (void)ot__convert(replaced->constant->data, replaced->dtype, &number, OT_I64, 1);
        values = ot__emit_tensor(g, ot_value_dtype(x), &shape);
        if (values != NULL)
            (void)ot__convert(values->constant->data, values->dtype, ot_attr_ints(node, i.name, &n),
                              OT_I64, i.n);
        is_missing = ot_emit2(g, "Equal", x, replaced);
    }
    ot_expand_set(g, 0, ot_emit3(g, "Where", is_missing, values, x));
}

// ---- ArrayFeatureExtractor: Z = X[..., Y], with a row for X of one axis ----

static void extractor_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0), *indices = ot_infer_shape(c, 1);
    ot_shape z = *x;
    int64_t n = 1;

    if (x->ndim < 1) {
        ot_infer_fail(c, "X has no axes, expected at least 1");
        return;
    }
    for (int k = 0; k < indices->ndim; k++)
        n = ot_infer_mul(c, n, indices->dim[k]);
    if (x->ndim == 1)
        z = OT_SHAPE(1, n);
    z.dim[z.ndim - 1] = n;
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &z);
}

static void extractor_compose(ot_grad *g)
{
    ot_value *in[] = {ot_grad_x(g, 0), NULL}, *z;

    in[1] = ot__emit_reshape(g, ot_grad_x(g, 1), &(int64_t){-1}, 1);
    if (in[1] == NULL || !ot_value_has_shape(in[0]))
        return;
    z = ot_emit_output(g, ot_emit(g, "Gather", "axis = -1", in, 2, 1), 0);
    if (ot_value_shape(in[0])->ndim == 1)
        z = ot_emit2(g, "Unsqueeze", z, ot_emit_constant_i64(g, &(int64_t){0}, 1));
    ot_expand_set(g, 0, z);
}

// ---- FeatureVectorizer: the features of all inputs side by side, as many of each as
// `inputdimensions` says ----

static void vectorizer_infer(ot_infer *c)
{
    int n;
    const int64_t *sizes = ot_attr_ints(ot_infer_node(c), "inputdimensions", &n);
    int64_t rows = ot_dim_unknown(), total = 0;

    if (sizes != NULL && n != ot_infer_input_count(c))
        ot_infer_fail(c, "inputdimensions has %d entries for %d inputs", n,
                      ot_infer_input_count(c));
    for (int i = 0; i < ot_infer_input_count(c) && (sizes == NULL || i < n); i++) {
        const ot_shape *x = ot_infer_shape(c, i);
        const int64_t found = x->ndim == 1 ? 1 : x->dim[0];

        if (x->ndim != 1 && x->ndim != 2)
            ot_infer_fail(c, "input %d has %d axes, expected 1 or 2", i, x->ndim);
        if (ot__dim_differs(found, rows))
            ot_infer_fail(c, "input %d has %" PRId64 " rows, input 0 %" PRId64, i, found, rows);
        if (sizes != NULL && (sizes[i] < 0 || sizes[i] > INT32_MAX))
            ot_infer_fail(c, "inputdimensions has entry %" PRId64 ", expected 0 to %d", sizes[i],
                          INT32_MAX);
        if (!ot_dim_is_number(rows))
            rows = found;
        total = ot_infer_add(c, total, sizes != NULL ? sizes[i] : x->dim[x->ndim == 2]);
    }
    ot_infer_set(c, 0, ot__ml_float_type(c, 0), &OT_SHAPE(rows, total));
}

// The first `size` features of x, and zeros behind them as far as it has fewer.
static ot_value *emit_cut_or_padded(ot_grad *g, ot_value *x, int64_t size)
{
    const int64_t found = x == NULL ? size : ot_value_shape(x)->dim[1], zeros[] = {0, 0, 0, size};
    static const int64_t axis[] = {1}, first[] = {0};
    ot_value *in[4];

    if (found == size)
        return x;
    in[0] = x;
    if (!ot_dim_is_number(found) || found < size)
        in[0] = ot_emit2(g, "Pad", x, ot_emit_constant_i64(g, zeros, 4));
    in[1] = ot_emit_constant_i64(g, first, 1);
    in[2] = ot_emit_constant_i64(g, &size, 1);
    in[3] = ot_emit_constant_i64(g, axis, 1);
    if (in[0] == NULL || in[1] == NULL || in[2] == NULL || in[3] == NULL)
        return NULL;
    return ot_emit_output(g, ot_emit(g, "Slice", NULL, in, 4, 1), 0);
}

static void vectorizer_compose(ot_grad *g)
{
    static const int64_t row[] = {0};
    const ot_node *node = ot_grad_node(g);
    const int n = ot_grad_input_count(g);
    const ot_dtype dtype = node->outputs[0] != NULL ? node->outputs[0]->dtype : OT_F32;
    int n_sizes;
    const int64_t *sizes = ot_attr_ints(node, "inputdimensions", &n_sizes);
    ot_value **parts =
        ot__arena_alloc(node->graph->model->arena, (size_t)OT_MAX(n, 1) * sizeof(*parts));

    ot__build_made(&g->build, parts != NULL);
    for (int i = 0; parts != NULL && i < n; i++) {
        ot_value *x = ot_emit_cast(g, ot_grad_x(g, i), dtype);

        if (x == NULL || !ot_value_has_shape(x))
            return;
        if (ot_value_shape(x)->ndim == 1)
            x = ot_emit2(g, "Unsqueeze", x, ot_emit_constant_i64(g, row, 1));
        parts[i] = sizes == NULL ? x : emit_cut_or_padded(g, x, sizes[i]);
    }
    if (parts != NULL)
        ot_expand_set(g, 0, ot__emit_concat(g, parts, n, 1));
}

// ---- Binarizer: 1 where X is greater than the threshold, else 0 ----

static ot_status binarizer_run(const ot_run *r)
{
    const ot_arg *x = r->in[0];
    const float *threshold = r->state;

    ot__ref_binarize(r->out[0]->data, x->data, x->dtype, x->count, (double)*threshold);
    return OT_OK;
}

static ot_status binarizer_prepare(ot_prep *p)
{
    float *threshold = ot_prep_state(p, sizeof *threshold);

    OT_TRY(ot__made(threshold));
    *threshold = ot_attr_float(ot_prep_node(p), "threshold");
    return OT_OK;
}

// ---- records ----

static const ot_port extractor_in[] = {{"X", "T", 0}, {"Y", "i64", OT_PORT_NO_GRAD}, {0}};
static const ot_port extractor_out[] = {{"Z", "T", 0}, {0}};
static const ot_port vectorizer_in[] = {{"X", "T", OT_PORT_VARIADIC}, {0}};
static const ot_port float_out[] = {{"Y", "F", 0}, {0}};
static const ot_attr_spec scaler_attrs[] = {
    {.name = "offset", .kind = OT_ATTRIBUTE_FLOATS},
    {.name = "scale", .kind = OT_ATTRIBUTE_FLOATS},
    {0},
};
static const ot_attr_spec normalizer_attrs[] = {OT__STRING_ATTR("norm", "MAX"), {0}};
static const ot_attr_spec imputer_attrs[] = {
    {.name = "imputed_value_floats", .kind = OT_ATTRIBUTE_FLOATS},
    {.name = "imputed_value_int64s", .kind = OT_ATTRIBUTE_INTS},
    OT__FLOAT_ATTR("replaced_value_float", 0.0F),
    OT__INT_ATTR("replaced_value_int64", 0),
    {0},
};
static const ot_attr_spec binarizer_attrs[] = {OT__FLOAT_ATTR("threshold", 0.0F), {0}};
static const ot_attr_spec vectorizer_attrs[] = {
    {.name = "inputdimensions", .kind = OT_ATTRIBUTE_INTS}, {0}};
static const ot_kernel binarizer_kernels[] = {
    OT__REF_KERNEL(NULL, binarizer_prepare, binarizer_run),
    {0},
};
#define TO_FLOAT "T: " OT__ML_NUMBERS "; F: f32 f64"
#define COMPOSED(name_, inputs_, outputs_, attrs_, types_, symbol)                                 \
    {                                                                                              \
        .domain = OT__ML, .name = name_, .since = 1, .inputs = inputs_, .outputs = outputs_,       \
        .attrs = attrs_, .types = types_, .infer = symbol##_infer, .train = symbol##_compose       \
    }
const ot_op_def ot__op_scaler[] = {
    COMPOSED("Scaler", ot__ml_in, float_out, scaler_attrs, TO_FLOAT, scaler), {0}};
const ot_op_def ot__op_normalizer[] = {
    COMPOSED("Normalizer", ot__ml_in, float_out, normalizer_attrs, TO_FLOAT, normalizer), {0}};
const ot_op_def ot__op_imputer[] = {
    COMPOSED("Imputer", ot__ml_in, ot__unary_out, imputer_attrs, "T: " OT__ML_NUMBERS, imputer),
    {0}};
const ot_op_def ot__op_array_feature_extractor[] = {
    COMPOSED("ArrayFeatureExtractor", extractor_in, extractor_out, NULL,
             "T: " OT__ML_NUMBERS " string", extractor),
    {0}};
const ot_op_def ot__op_feature_vectorizer[] = {
    COMPOSED("FeatureVectorizer", vectorizer_in, float_out, vectorizer_attrs, TO_FLOAT, vectorizer),
    {0}};
const ot_op_def ot__op_binarizer[] = {
    {.domain = OT__ML,
     .name = "Binarizer",
     .since = 1,
     .inputs = ot__ml_in,
     .outputs = ot__unary_out,
     .attrs = binarizer_attrs,
     .types = "T: " OT__ML_NUMBERS,
     .infer = ot__infer_same_shape,
     .kernels = binarizer_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
