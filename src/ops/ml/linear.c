// SPDX-License-Identifier: Apache-2.0
// LinearRegressor and LinearClassifier of ai.onnx.ml: X * coefficients^T + intercepts, transformed.
#include <string.h>

#include "ops/ml/ml.h"

// ---- scores ----

// Rows of coefficients, one for each score; their size is the number of features.
static int64_t features_of(const ot_shape *x)
{
    return x->ndim > 0 ? x->dim[x->ndim - 1] : 1;
}

static bool check_coefficients(ot_infer *c, int64_t n_scores)
{
    const ot_node *node = ot_infer_node(c);
    const int64_t features = features_of(ot_infer_shape(c, 0));
    int n, n_intercepts;

    (void)ot_attr_floats(node, "coefficients", &n);
    (void)ot_attr_floats(node, "intercepts", &n_intercepts);
    if (!ot__ml_check_rows(c) || !ot__ml_check_transform(c))
        return false;
    if (n_scores < 1 || n < 1 || n % n_scores != 0)
        return ot__refuse(c, "there are %d coefficients for %" PRId64 " scores", n, n_scores);
    if (ot__dim_differs(n / n_scores, features))
        return ot__refuse(
            c, "there are %" PRId64 " coefficients for each score, X has %" PRId64 " features",
            n / n_scores, features);
    if (n_intercepts != 0 && n_intercepts != n_scores)
        return ot__refuse(c, "there are %d intercepts for %" PRId64 " scores", n_intercepts,
                          n_scores);
    return true;
}

static int64_t rows_of(const ot_shape *x)
{
    return x->ndim == 2 ? x->dim[0] : 1;
}

static ot_value *emit_linear(ot_grad *g, int64_t n_scores)
{
    const ot_node *node = ot_grad_node(g);
    int n, n_intercepts;
    const float *coefficients = ot_attr_floats(node, "coefficients", &n);
    const float *intercepts = ot_attr_floats(node, "intercepts", &n_intercepts);
    ot_value *x = ot__ml_emit_x(g), *weights, *y;

    if (x == NULL || !ot_value_has_shape(x))
        return NULL;
    if (ot_value_shape(x)->ndim == 1)
        x = ot_emit2(g, "Unsqueeze", x, ot_emit_constant_i64(g, &(int64_t){0}, 1));
    weights = ot__ml_emit_floats(g, coefficients, &OT_SHAPE(n_scores, n / n_scores), x);
    y = ot_emit2(g, "MatMul", x, ot__emit_transpose(g, weights, (const int64_t[]){1, 0}, 2));
    if (n_intercepts > 0)
        y = ot_emit2(g, "Add", y, ot__ml_emit_floats(g, intercepts, &OT_SHAPE(n_scores), y));
    return y;
}

// ---- LinearRegressor ----

static void regressor_infer(ot_infer *c)
{
    const int64_t targets = ot_attr_int(ot_infer_node(c), "targets");

    if (check_coefficients(c, targets))
        ot_infer_set(c, 0, ot__ml_float_type(c, 0),
                     &OT_SHAPE(rows_of(ot_infer_shape(c, 0)), targets));
}

static void regressor_compose(ot_grad *g)
{
    ot_value *y = emit_linear(g, ot_attr_int(ot_grad_node(g), "targets"));

    ot__ml_set(g, 0, ot__ml_emit_transform(g, y));
}

// ---- LinearClassifier: of two classes with one score the other's is its negative ----

typedef struct classes {
    int n;                // labels; 0: of one score they are 0 and 1
    int64_t n_scores;     // that are computed
    bool has_second;      // a score is added
    const ot_attr *texts; // or NULL
} classes;

static classes classes_of(const ot_node *node)
{
    classes k = {.texts = ot__node_attr(node, "classlabels_strings")};
    int n, n_intercepts;

    (void)ot_attr_floats(node, "coefficients", &n);
    (void)ot_attr_floats(node, "intercepts", &n_intercepts);
    if (k.texts != NULL && k.texts->n > 0)
        k.n = k.texts->n;
    else
        (void)ot_attr_ints(node, "classlabels_ints", &k.n);
    k.n_scores = n_intercepts > 0 ? n_intercepts : k.n;
    k.has_second = k.n_scores == 1 && k.n == 2;
    return k;
}

static bool check_classes(ot_infer *c, const classes *k)
{
    const ot_node *node = ot_infer_node(c);
    int n_ints;

    (void)ot_attr_ints(node, "classlabels_ints", &n_ints);
    if (k->texts != NULL && k->texts->n > 0 && n_ints > 0)
        return ot__refuse(c, "both classlabels_ints and classlabels_strings are given");
    if (k->n != k->n_scores && !k->has_second && !(k->n == 0 && k->n_scores == 1))
        return ot__refuse(c, "there are %d labels for %" PRId64 " scores", k->n, k->n_scores);
    if (k->has_second && strcmp(ot_attr_string(node, "post_transform"), "PROBIT") == 0)
        return ot__refuse(c, "post_transform PROBIT is not defined for two classes of one score");
    return check_coefficients(c, k->n_scores);
}

static void classifier_infer(ot_infer *c)
{
    const classes k = classes_of(ot_infer_node(c));
    const int64_t rows = rows_of(ot_infer_shape(c, 0));

    if (!check_classes(c, &k))
        return;
    ot_infer_set(c, 0, k.texts != NULL && k.texts->n > 0 ? OT_STRING : OT_I64, &OT_SHAPE(rows));
    ot_infer_set(c, 1, ot__ml_float_type(c, 1), &OT_SHAPE(rows, k.has_second ? 2 : k.n_scores));
}

// Which class each row is of.
static ot_value *emit_class_places(ot_grad *g, const classes *k, ot_value *scores)
{
    ot_value *is_second;

    if (k->n_scores > 1)
        return scores == NULL
                   ? NULL
                   : ot_emit_output(
                         g, ot_emit(g, "ArgMax", "axis = 1, keepdims = 0", &scores, 1, 1), 0);
    is_second = ot_emit2(g, "Greater", scores, ot_emit_constant(g, 0, scores));
    return ot__emit_reshape(g, ot_emit_cast(g, is_second, OT_I64), &(int64_t){-1}, 1);
}

static ot_value *emit_labels(ot_grad *g, const classes *k, ot_value *places)
{
    const bool are_texts = k->texts != NULL && k->texts->n > 0;
    ot_value *labels;
    int n;

    if (k->n < 2) // their numbers
        return places;
    labels = ot__emit_tensor(g, are_texts ? OT_STRING : OT_I64, &OT_SHAPE(k->n));
    if (labels == NULL)
        return NULL;
    if (are_texts)
        memcpy(labels->constant->data, k->texts->strings, (size_t)k->n * sizeof(ot__string));
    else
        memcpy(labels->constant->data, ot_attr_ints(ot_grad_node(g), "classlabels_ints", &n),
               (size_t)k->n * sizeof(int64_t));
    return ot_emit2(g, "Gather", labels, places);
}

// Of the only score s: 1 - s and s, and as LOGISTIC those of -s and s. The other transforms leave
// them as they are.
static ot_value *emit_two_scores(ot_grad *g, ot_value *s)
{
    const bool is_logistic =
        strcmp(ot_attr_string(ot_grad_node(g), "post_transform"), "LOGISTIC") == 0;
    ot_value *parts[2];

    if (is_logistic)
        parts[0] = ot_emit1(g, "Neg", s);
    else
        parts[0] = ot_emit2(g, "Sub", ot_emit_constant(g, 1, s), s);
    parts[1] = s;
    s = ot__emit_concat(g, parts, 2, 1);
    return is_logistic ? ot_emit1(g, "Sigmoid", s) : s;
}

static void classifier_compose(ot_grad *g)
{
    const classes k = classes_of(ot_grad_node(g));
    ot_value *scores = emit_linear(g, k.n_scores), *labels = NULL;

    if (scores == NULL)
        return;
    if (ot_expand_wants(g, 0))
        labels = emit_labels(g, &k, emit_class_places(g, &k, scores));
    scores = k.has_second ? emit_two_scores(g, scores) : ot__ml_emit_transform(g, scores);
    if (ot_expand_wants(g, 1))
        scores = ot_emit_cast(g, scores, ot_grad_node(g)->outputs[1]->dtype);
    ot_expand_set(g, 0, labels);
    ot_expand_set(g, 1, scores);
}

// ---- records ----

static const ot_port regressor_out[] = {{"Y", "F", 0}, {0}};
static const ot_port classifier_out[] = {{"Y", "T2", OT_PORT_NO_GRAD}, {"Z", "F", 0}, {0}};
static const ot_attr_spec regressor_attrs[] = {
    {.name = "coefficients", .kind = OT_ATTRIBUTE_FLOATS},
    {.name = "intercepts", .kind = OT_ATTRIBUTE_FLOATS},
    OT__STRING_ATTR("post_transform", "NONE"),
    OT__INT_ATTR("targets", 1),
    {0},
};
static const ot_attr_spec classifier_attrs[] = {
    {.name = "classlabels_ints", .kind = OT_ATTRIBUTE_INTS},
    {.name = "classlabels_strings", .kind = OT_ATTRIBUTE_STRINGS},
    {.name = "coefficients", .kind = OT_ATTRIBUTE_FLOATS, .flags = OT_ATTR_REQUIRED},
    {.name = "intercepts", .kind = OT_ATTRIBUTE_FLOATS},
    OT__INT_ATTR("multi_class", 0),
    OT__STRING_ATTR("post_transform", "NONE"),
    {0},
};
const ot_op_def ot__op_linear_regressor[] = {
    {.domain = OT__ML,
     .name = "LinearRegressor",
     .since = 1,
     .inputs = ot__ml_in,
     .outputs = regressor_out,
     .attrs = regressor_attrs,
     .types = "T: " OT__ML_NUMBERS "; F: f32 f64",
     .infer = regressor_infer,
     .train = regressor_compose},
    {0},
};
const ot_op_def ot__op_linear_classifier[] = {
    {.domain = OT__ML,
     .name = "LinearClassifier",
     .since = 1,
     .inputs = ot__ml_in,
     .outputs = classifier_out,
     .attrs = classifier_attrs,
     .types = "T: " OT__ML_NUMBERS "; T2: string i64; F: f32 f64",
     .infer = classifier_infer,
     .train = classifier_compose},
    {0},
};
