// SPDX-License-Identifier: Apache-2.0
// Runs one optimizer node on arrays, by each of its kernels and with any number of threads.
#ifndef TESTS_UPDATE_RUN_H
#define TESTS_UPDATE_RUN_H

#include <math.h>
#include <stdlib.h>

#include "evaluate.h"
#include "kernels/kernels.h"

enum { MOST_TENSORS = 8, MOST_ENTRIES = 64 };

// What a node reads and writes. Numbers are f64 here, and of the model's type in the run.
typedef struct update {
    const char *op, *attrs; // "ai.onnxtrain.AdamOptimizer"
    const char *inputs;     // by the names below, in the order of the ports; "" leaves one out
    ot_dtype dtype;
    bool is_simd;
    int n_threads;
    int n; // tensors
    int64_t count[MOST_TENSORS];
    double *w[MOST_TENSORS], *g[MOST_TENSORS], *m[MOST_TENSORS], *v[MOST_TENSORS];
    double lr[4], divisor, norm;
    int n_lr, n_steps;
    int64_t step[MOST_TENSORS];
    bool finite;
    bool updated;      // result
    double norm_found; // results of GradientNorm
    bool finite_found;
} update;

#define OUR_INPUTS "learning_rate, step, params, gradients, moments1"
#define TWO_MOMENTS OUR_INPUTS ", moments2"

static inline void *in_type(const double *x, int64_t n, ot_dtype dtype)
{
    void *copy = malloc((size_t)(n > 0 ? n : 1) * ot_dtype_size(dtype));

    assert_true(ot__convert(copy, dtype, x, OT_F64, n));
    return copy;
}

typedef struct update_entries {
    ot_arg args[MOST_ENTRIES];
    const ot_arg *in[MOST_ENTRIES];
    double **from[MOST_ENTRIES]; // where the elements go back to
    int first[16], n, n_ports;
} update_entries;

static inline void add_arg(update_entries *e, void *data, ot_dtype dtype, int64_t count)
{
    e->args[e->n] =
        (ot_arg){.data = data, .dtype = dtype, .shape = OT_SHAPE(count), .count = count};
    e->in[e->n] = &e->args[e->n];
    e->n++;
}

static inline void add_tensors(update_entries *e, const update *u, double *const *x)
{
    for (int i = 0; i < u->n; i++) {
        e->from[e->n] = (double **)(uintptr_t)&x[i];
        add_arg(e, in_type(x[i], u->count[i], u->dtype), u->dtype, u->count[i]);
    }
}

static inline void add_input(update_entries *e, update *u, const ot_value *value)
{
    static float rates[4], divisor;
    const char *name = value ? value->name : "";

    e->first[e->n_ports++] = e->n;
    if (strcmp(name, "params") == 0)
        add_tensors(e, u, u->w);
    else if (strcmp(name, "gradients") == 0)
        add_tensors(e, u, u->g);
    else if (strcmp(name, "moments1") == 0)
        add_tensors(e, u, u->m);
    else if (strcmp(name, "moments2") == 0)
        add_tensors(e, u, u->v);
    else if (strcmp(name, "learning_rate") == 0) {
        for (int k = 0; k < 4; k++)
            rates[k] = (float)u->lr[k];
        add_arg(e, rates, OT_F32, u->n_lr ? u->n_lr : 1);
    } else if (strcmp(name, "step") == 0)
        add_arg(e, u->step, OT_I64, u->n_steps ? u->n_steps : 1);
    else if (strcmp(name, "divisor") == 0) {
        divisor = (float)u->divisor;
        add_arg(e, &divisor, OT_F32, 1);
    } else if (strcmp(name, "norm") == 0)
        add_arg(e, &u->norm, OT_F64, 1);
    else if (strcmp(name, "finite") == 0)
        add_arg(e, &u->finite, OT_BOOL, 1);
    else
        e->in[e->n++] = NULL;
}

static inline void take_back(update_entries *e, const update *u)
{
    for (int i = 0; i < e->n; i++)
        if (e->from[i]) {
            assert_true(
                ot__convert(*e->from[i], OT_F64, e->args[i].data, u->dtype, e->args[i].count));
            free(e->args[i].data);
        }
}

static inline ot_model *update_model(const update *u)
{
    const char *type = u->dtype == OT_F32 ? "float" : "double";
    const bool is_norm = strstr(u->op, "GradientNorm") != NULL;
    char text[2048];

    snprintf(
        text, sizeof text,
        "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnxtrain\" : 1, \"com.microsoft\" : 1]>"
        "g (float[%d] learning_rate, int64[%d] step, seq(%s[]) params, seq(%s[]) gradients, "
        "seq(%s[]) moments1, seq(%s[]) moments2, float[1] divisor, double[1] norm, "
        "bool[1] finite) => (%s) { %s = %s%s%s%s(%s) }",
        u->n_lr ? u->n_lr : 1, u->n_steps ? u->n_steps : 1, type, type, type, type,
        is_norm ? "double[1] y, bool[1] z" : "bool[1] y", is_norm ? "y, z" : "y", u->op,
        *u->attrs ? "<" : "", u->attrs, *u->attrs ? ">" : "", u->inputs);
    return read_text(text);
}

// The status of checking and running it.
static inline ot_status update_try(update *u)
{
    ot_model *model = update_model(u);
    update_entries e = {0};
    double norm = 0;
    uint8_t flags[2] = {9, 9};
    ot_arg y = {.data = flags, .dtype = OT_BOOL, .shape = OT_SHAPE(1), .count = 1}, z = y;
    ot_arg *const out[] = {&y, &z};
    const void *constants[MOST_ENTRIES] = {NULL};
    ot_status st = ot__pass_prepare(model);

    if (st != OT_OK) {
        ot_model_destroy(model);
        return st;
    }
    const ot_node *node = model->graph->nodes[0];
    const ot_kernel *kernel = NULL;

    z.data = &flags[1];
    if (node->n_outputs == 2) {
        y.data = &norm;
        y.dtype = OT_F64;
    }
    for (int i = 0; i < node->n_inputs; i++)
        add_input(&e, u, node->inputs[i]);
    e.first[e.n_ports] = e.n;
    ot_prep p = {.node = node,
                 .in = e.in,
                 .out = (const ot_arg *const *)out,
                 .constant = constants,
                 .n_in = e.n,
                 .n_out = node->n_outputs,
                 .in_first = e.first,
                 .n_threads = u->n_threads ? u->n_threads : 1};
    kernel = ot__kernel_select(&p, !u->is_simd);
    assert_non_null(kernel);
    st = ot__kernel_prepare(kernel, &p);
    if (st == OT_OK) {
        void *scratch = malloc(p.scratch_bytes + 1);
        const ot_run r = {.in = e.in,
                          .out = out,
                          .n_in = e.n,
                          .n_out = node->n_outputs,
                          .in_first = e.first,
                          .state = p.state,
                          .scratch = scratch,
                          .n_threads = p.n_threads};
        st = kernel->run(&r);
        free(scratch);
    }
    ot__kernel_release(kernel, p.state);
    take_back(&e, u);
    u->updated = flags[0] == 1;
    u->norm_found = norm;
    u->finite_found = flags[1] == 1;
    ot_model_destroy(model);
    return st;
}

static inline void update_run(update *u)
{
    assert_ok(update_try(u));
}

#endif
