// SPDX-License-Identifier: Apache-2.0
// A case in mixed precision, against the same in f32 on inputs that the narrow type holds: the node
// alone, and the node with its gradient.
//
// Where the node runs an entry for f32 between conversions, results are those of f32 rounded once,
// bit for bit. Entries that take the narrow type as it is are off by one of its units at most.
#include "harness_internal.h"

#include <math.h>
#include <string.h>

#include "exec/exec.h"
#include "passes/passes.h"

enum { MAX_VALUES = 2 * OT_CASE_MAX_PORTS };

static bool has_floats(const inputs *in)
{
    for (int i = 0; i < in->n; i++)
        if (in->tensor[i] != NULL && in->tensor[i]->dtype == OT_F32)
            return true;
    return false;
}

bool inputs_round(const inputs *from, ot_dtype narrow, inputs *out)
{
    *out = *from;
    for (int i = 0; i < from->n; i++) {
        if (from->tensor[i] == NULL)
            continue;
        if (ot_tensor_clone(from->tensor[i], &out->tensor[i]) != OT_OK)
            return false;
        for (int64_t k = 0; from->tensor[i]->dtype == OT_F32 && k < ot_tensor_count(out->tensor[i]);
             k++) {
            float *x = (float *)out->tensor[i]->data + k;
            uint16_t bits;

            ot__convert(&bits, narrow, x, OT_F32, 1);
            ot__convert(x, OT_F32, &bits, narrow, 1);
        }
    }
    return true;
}

bool list_outputs(one_node *one)
{
    for (int i = 0; i < one->node->n_outputs; i++)
        if (one->node->outputs[i] != NULL && !one->node->outputs[i]->is_output &&
            !ot__graph_add_output(one->model->graph, one->node->outputs[i]))
            return false;
    return true;
}

// `at` counts through the inputs, and then through `more`.
static const ot_tensor *next_input(const inputs *in, ot_tensor *const *more, int *at)
{
    const ot_tensor *x = NULL;

    for (; x == NULL && *at < in->n; (*at)++)
        x = in->spec[*at].is_const ? NULL : in->tensor[*at];
    for (; x == NULL; (*at)++)
        x = more[*at - in->n];
    return x;
}

ot_status run_graph(ot_graph *graph, const inputs *in, ot_tensor *const *more,
                    const ot__plan_options *options, ot_tensor **out)
{
    const ot_step step = {.training = true};
    ot_tensor *given[MAX_VALUES] = {NULL};
    ot__plan *plan = NULL;
    ot_status st = ot__plan_create(graph, options, NULL, NULL, &plan);
    int at = 0;

    for (int i = 0; st == OT_OK && i < graph->n_inputs; i++) {
        st = ot_tensor_clone(next_input(in, more, &at), &given[i]); // state is written
        if (st == OT_OK)
            ot__plan_bind_input(plan, i, 0, given[i]->data);
    }
    for (int i = 0; st == OT_OK && i < graph->n_outputs; i++) {
        const ot_arg *y = ot__plan_output(plan, i);

        st = ot_tensor_create(y->dtype, &y->shape, &out[i]);
        if (st == OT_OK)
            ot__plan_bind_output(plan, i, out[i]->data);
    }
    if (st == OT_OK)
        st = ot__plan_run(plan, &step);
    ot__plan_destroy(plan);
    for (int i = 0; i < graph->n_inputs && i < MAX_VALUES; i++)
        ot_tensor_destroy(given[i]);
    return st;
}

// Units of the narrow type between two numbers of it.
static double units_between(float a, float b, ot_dtype narrow)
{
    uint16_t bits[2];
    const float numbers[2] = {a, b};
    int32_t place[2];

    ot__convert(bits, narrow, numbers, OT_F32, 2);
    for (int i = 0; i < 2; i++)
        place[i] = (bits[i] & 0x8000) != 0 ? -(int32_t)(bits[i] & 0x7fff) : bits[i];
    return fabs((double)place[0] - (double)place[1]);
}

static bool is_narrowed(const ot_graph *graph, int i, ot_dtype narrow)
{
    const ot_node *cast = graph->outputs[i]->producer;

    return cast != NULL && strcmp(cast->op_type, "Cast") == 0 && cast->inputs[0]->dtype == narrow;
}

// `own`: the kernel takes the narrow type as it is.
static void compare_output(const ot_tensor *f32, const ot_tensor *found, bool narrowed, bool own,
                           ot_dtype narrow, int i)
{
    const float *want = f32->data, *have = found->data;
    double largest = 0;

    if (f32->dtype != found->dtype || !ot__shape_equal(&f32->shape, &found->shape)) {
        fail("in %s: output %d is %s", ot_dtype_name(narrow), i, ot_dtype_name(found->dtype));
        return;
    }
    if (f32->dtype != OT_F32) {
        if (f32->dtype != OT_STRING && memcmp(f32->data, found->data, f32->n_bytes) != 0)
            fail("in %s: output %d differs", ot_dtype_name(narrow), i);
        return;
    }
    for (int64_t k = 0, n = ot_tensor_count(f32); k < n; k++)
        if (isfinite(want[k]))
            largest = fmax(largest, fabs((double)want[k]));
    for (int64_t k = 0, n = ot_tensor_count(f32); k < n; k++) {
        float rounded = want[k];

        if (narrowed) {
            uint16_t bits;

            ot__convert(&bits, narrow, &want[k], OT_F32, 1);
            ot__convert(&rounded, OT_F32, &bits, narrow, 1);
        }
        if ((isnan(rounded) && isnan(have[k])) || memcmp(&rounded, &have[k], sizeof rounded) == 0)
            continue;
        // Sums in another order, whose terms cancel.
        if (own && ((narrowed && units_between(rounded, have[k], narrow) <= 1) ||
                    fabs((double)want[k] - (double)have[k]) <= 1e-5 * largest))
            continue;
        fail("in %s: output %d, element %" PRId64 " is %.9g, in f32 %.9g, rounded %.9g",
             ot_dtype_name(narrow), i, k, (double)have[k], (double)want[k], (double)rounded);
        return;
    }
}

static bool takes_as_it_is(const ot_node *node)
{
    for (const ot_kernel *k = node->op->kernels; k != NULL && k->run != NULL; k++)
        if ((k->flags & OT_KERNEL_REFERENCE) == 0 && ot__kernel_takes(k, node))
            return true;
    return false;
}

static void check_type(const ot_op_test *test, const ot_op_case *c, const inputs *given,
                       ot_dtype narrow)
{
    one_node f32 = {0}, mixed = {0};
    ot_tensor *want[MAX_VALUES] = {NULL}, *found[MAX_VALUES] = {NULL};
    bool narrowed[MAX_VALUES] = {false};
    inputs in = {0};
    const ot__plan_options options = {.n_threads = 2};
    ot_status st = inputs_round(given, narrow, &in) ? OT_OK : OT_ERR_NO_MEMORY;
    bool own = false;
    int n_outputs;

    OT_THEN(st, one_node_make(test, c, &in, STATIC_EXTENTS, &f32));
    OT_THEN(st, one_node_make(test, c, &in, STATIC_EXTENTS, &mixed));
    if (st == OT_OK && (!list_outputs(&f32) || !list_outputs(&mixed)))
        st = OT_ERR_NO_MEMORY;
    OT_THEN(st, ot__pass_precision(mixed.model, NULL, narrow));
    if (st == OT_OK)
        own = takes_as_it_is(mixed.node);
    n_outputs = st == OT_OK && (own || c->edges == NULL) ? f32.model->graph->n_outputs : 0;
    for (int i = 0; i < n_outputs; i++) // planning moves nodes
        narrowed[i] = is_narrowed(mixed.model->graph, i, narrow);
    if (n_outputs > 0) {
        OT_THEN(st, run_graph(f32.model->graph, &in, NULL, &options, want));
        OT_THEN(st, run_graph(mixed.model->graph, &in, NULL, &options, found));
    }
    if (st != OT_OK)
        fail("in %s: %s", ot_dtype_name(narrow), ot_error_message());
    for (int i = 0; st == OT_OK && i < n_outputs; i++)
        compare_output(want[i], found[i], narrowed[i], own, narrow, i);
    for (int i = 0; i < n_outputs; i++) {
        ot_tensor_destroy(want[i]);
        ot_tensor_destroy(found[i]);
    }
    one_node_deinit(&f32);
    one_node_deinit(&mixed);
    inputs_deinit(&in);
}

void check_narrow(const ot_op_test *test, const ot_op_case *c, const inputs *in)
{
    if (!has_floats(in))
        return;
    check_type(test, c, in, OT_BF16);
    check_type(test, c, in, OT_F16);
}
