// SPDX-License-Identifier: Apache-2.0
// Gradients of a model given as text, three ways: run as built, run in ONNX's own operators, and by
// central differences.
#ifndef TESTS_UNIT_TRAIN_GRADIENTS_FIXTURE_H
#define TESTS_UNIT_TRAIN_GRADIENTS_FIXTURE_H

#include <math.h>
#include <stdlib.h>

#include "evaluate.h"
#include "train/train.h"

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> "
#define HEAD_24 "<ir_version: 8, opset_import: [\"\" : 24]> "
#define HEAD_26 "<ir_version: 8, opset_import: [\"\" : 26]> "
#define HEAD_13 "<ir_version: 8, opset_import: [\"\" : 13, \"com.microsoft\" : 1]> "

enum { MAX_VALUES = 8 };

typedef struct values {
    const char *name[MAX_VALUES];
    ot_tensor *tensor[MAX_VALUES];
    int n;
} values;

static inline void values_deinit(values *v)
{
    for (int i = 0; i < v->n; i++)
        ot_tensor_destroy(v->tensor[i]);
    v->n = 0;
}

static inline ot_tensor *values_find(const values *v, const char *name)
{
    for (int i = 0; i < v->n; i++)
        if (strcmp(v->name[i], name) == 0)
            return v->tensor[i];
    return NULL;
}

// Extents by the name of their symbol.
static inline int64_t extent_of(const ot_model *model, int64_t dim)
{
    const char *name = ot__dim_name(model, dim);

    if (ot__dim_is_number(dim))
        return dim;
    if (name == NULL)
        return 3;
    return strcmp(name, "N") == 0 ? 2 : strcmp(name, "H") == 0 ? 6 : strcmp(name, "O") == 0 ? 1 : 5;
}

// Reals without symmetry and away from 0; integers 0, 1, 2, 0, ...
static inline ot_tensor *some_tensor(const ot_model *model, const ot_value *value, int salt)
{
    ot_shape shape = value->shape;
    ot_tensor *t = NULL;

    for (int k = 0; k < shape.ndim; k++)
        shape.dim[k] = extent_of(model, shape.dim[k]);
    assert_ok(ot_tensor_create(value->dtype, &shape, &t));
    for (int64_t k = 0; k < ot_tensor_count(t); k++) {
        const double wave = sin(1.0 + 3.7 * (double)k + salt);
        const double number =
            ot__dtype_is_int(t->dtype) ? (double)((k * 2 + 1) % 3) : wave + copysign(0.1, wave);

        assert_true(ot__convert((char *)t->data + (size_t)k * ot_dtype_size(t->dtype), t->dtype,
                                &number, OT_F64, 1));
    }
    return t;
}

static inline values some_values(const ot_model *model)
{
    values v = {0};

    for (int i = 0; i < model->graph->n_inputs; i++) {
        const ot_value *x = model->graph->inputs[i];

        if (x->constant)
            continue;
        v.name[v.n] = x->name;
        v.tensor[v.n] = some_tensor(model, x, v.n);
        v.n++;
    }
    return v;
}

static inline int list_inputs(const ot_model *model, const values *v, const ot_tensor **in)
{
    const int n = ot_model_input_count(model);

    for (int i = 0; i < n; i++) {
        in[i] = values_find(v, ot_model_input_name(model, i));
        assert_non_null(in[i]);
    }
    return n;
}

static inline double dot(const ot_tensor *a, const ot_tensor *b)
{
    double sum = 0;

    for (int64_t k = 0; k < ot_tensor_count(a); k++)
        sum += ot__tensor_get_f64(a, k) * (b ? ot__tensor_get_f64(b, k) : 1.0);
    return sum;
}

// The sum over the first output of `model` weighted by `seed` (NULL: 1).
static inline double weighed(const ot_model *model, const values *v, const ot_tensor *seed)
{
    const ot_tensor *in[MAX_VALUES];
    ot_tensor *y[1];
    double sum;

    assert_ok(ot_model_run(model, NULL, in, list_inputs(model, v, in), y, 1));
    sum = dot(y[0], seed);
    ot_tensor_destroy(y[0]);
    return sum;
}

static inline void assert_near(double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance * (1 + fabs(expected))))
        fail_msg("%.17g, expected %.17g", found, expected);
}

static inline void assert_central_differences(const ot_model *model, const values *v, ot_tensor *x,
                                              const ot_tensor *dx, const ot_tensor *seed)
{
    const double step = 1e-5;
    double *elements = x->data;

    for (int64_t k = 0; k < ot_tensor_count(x); k++) {
        const double was = elements[k];
        double up, down;

        elements[k] = was + step;
        up = weighed(model, v, seed);
        elements[k] = was - step;
        down = weighed(model, v, seed);
        elements[k] = was;
        assert_near(ot__tensor_get_f64(dx, k), (up - down) / (2 * step), 2e-6);
    }
}

static inline ot_model *model_of(const char *text)
{
    ot_model *model = NULL;

    assert_ok(ot_model_load_buffer(text, strlen(text), NULL, &model));
    return model;
}

// Gradients of the first output, called y, with respect to `wrt`, inputs of the model in f64.
// Returns what of the model for files ONNX does not have; the caller frees it. NULL: nothing.
static inline char *check_gradients(const char *text, const char *const *wrt, int n_wrt)
{
    ot_model *model = model_of(text);
    values v = some_values(model);
    const ot_tensor *in[MAX_VALUES], *seed;
    ot_tensor *fast[MAX_VALUES] = {NULL}, *plain[MAX_VALUES] = {NULL};
    const ot_model *standard;
    ot_gradients *g = NULL;
    const char *left;
    char *copy;
    int n;

    assert_ok(ot_gradients_create(model, "y", wrt, n_wrt, NULL, &g));
    standard = ot_gradients_model(g);
    n = ot_model_input_count(standard);
    if (strcmp(ot_model_input_name(standard, n - 1), "y_grad") == 0) {
        ot_tensor *y[1];

        // The seed has the shape of the value.
        assert_ok(ot_model_run(model, NULL, in, list_inputs(model, &v, in), y, 1));
        for (int64_t k = 0; k < ot_tensor_count(y[0]); k++)
            ((double *)y[0]->data)[k] = cos(2.0 + 1.3 * (double)k);
        v.name[v.n] = "y_grad";
        v.tensor[v.n++] = y[0];
    }
    seed = values_find(&v, "y_grad");
    n = list_inputs(standard, &v, in);
    assert_ok(ot_gradients_run(g, in, n, fast, n_wrt + 1));
    assert_ok(ot_model_run(standard, NULL, in, n, plain, n_wrt + 1));
    for (int i = 0; i <= n_wrt; i++) {
        assert_true(ot__shape_equal(&fast[i]->shape, &plain[i]->shape));
        for (int64_t k = 0; k < ot_tensor_count(fast[i]); k++)
            assert_near(ot__tensor_get_f64(plain[i], k), ot__tensor_get_f64(fast[i], k), 1e-12);
    }
    assert_near(dot(fast[0], seed), weighed(model, &v, seed), 1e-12);
    for (int i = 0; i < n_wrt; i++) {
        ot_tensor *x = values_find(&v, wrt[i]);

        assert_true(ot__shape_equal(&x->shape, &fast[i + 1]->shape));
        assert_central_differences(model, &v, x, fast[i + 1], seed);
    }
    left = ot_model_metadata(standard, OT_METADATA_NONSTANDARD);
    copy = left ? strdup(left) : NULL;
    for (int i = 0; i <= n_wrt; i++) {
        ot_tensor_destroy(fast[i]);
        ot_tensor_destroy(plain[i]);
    }
    ot_gradients_destroy(g);
    values_deinit(&v);
    ot_model_destroy(model);
    return copy;
}

#endif
