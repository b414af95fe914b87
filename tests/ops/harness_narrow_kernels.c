// SPDX-License-Identifier: Apache-2.0
// Every kernel that takes f16 or bf16 as it is, against the reference in f64 on inputs that the
// type holds. All that is checked of a kernel for f32 is checked of these.
//
// Bound. Inputs are the same numbers in both, so a kernel that computes in f32 gives what
// harness_bound.c allows of f32, rounded to the type once where the output has it.
//
// Beside f32 a kernel may take the type at some ports only. Each port is given the other type in
// turn, among ports of either type: what the kernel accepts it must compute.
#include "harness_internal.h"

#include <string.h>

enum { MAX_RUN = 1000, N_PORTS = 2 * OT_CASE_MAX_PORTS };

static const ot_dtype types[] = {OT_BF16, OT_F16};
enum { N_TYPES = sizeof types / sizeof types[0] };

// ---- the kernels that ran ----

static const ot_kernel *kernels_run[N_TYPES][MAX_RUN];
static int n_run[N_TYPES];

static bool was_run(const ot_kernel *kernel, int type)
{
    for (int k = 0; k < n_run[type]; k++)
        if (kernels_run[type][k] == kernel)
            return true;
    return false;
}

bool was_run_narrow(const ot_kernel *kernel, ot_dtype narrow)
{
    return was_run(kernel, narrow == types[0] ? 0 : 1);
}

bool kernel_names(const ot_op_def *op, const ot_kernel *kernel, ot_dtype dtype)
{
    const ot_port *const lists[] = {op->inputs, op->outputs};
    uint64_t set;

    for (size_t l = 0; l < sizeof lists / sizeof lists[0]; l++)
        for (const ot_port *port = lists[l]; port->name != NULL; port++)
            if (ot__types_set(kernel->types, port->type, &set) && (set >> dtype & 1) != 0)
                return true;
    return false;
}

static void note_run(const ot_kernel *kernel, int type)
{
    if (!was_run(kernel, type) && n_run[type] < MAX_RUN)
        kernels_run[type][n_run[type]++] = kernel;
}

// ---- types of ports: inputs, then outputs ----

static ot_value *value_at(const ot_node *node, int port)
{
    return port < node->n_inputs ? node->inputs[port] : node->outputs[port - node->n_inputs];
}

static bool needs_f32(const ot_node *node, int port)
{
    const ot_port *p = port < node->n_inputs ? ot__op_input_port(node->op, port)
                                             : ot__op_output_port(node->op, port - node->n_inputs);

    return p == NULL || (p->flags & (OT_PORT_F32 | OT_PORT_STATE)) != 0;
}

// Whether the case gives the port floats.
static bool has_floats(const ot_node *node, const inputs *in, int port)
{
    if (port < node->n_inputs)
        return port < in->n && in->tensor[port] != NULL && in->tensor[port]->dtype == OT_F32;
    return value_at(node, port) != NULL && value_at(node, port)->dtype == OT_F32;
}

typedef struct assignment {
    int n;
    bool is_float[N_PORTS], is_narrow[N_PORTS];
} assignment;

enum { ALL_NARROW, F32_OUTPUTS, N_WHOLE, MAX_TURNED = 8, MANY = 10000 };

// Large cases and those of many sizes are about loops, which the ports' types do not change.
static int n_assignments(const assignment *a, const ot_op_case *c, const inputs *in)
{
    int64_t n = 0;

    for (int i = 0; i < in->n; i++)
        n += in->tensor[i] == NULL ? 0 : ot_tensor_count(in->tensor[i]);
    return c->edges != NULL || n > MANY ? N_WHOLE : N_WHOLE + 2 * OT_MIN(a->n, MAX_TURNED);
}

static check_extent extent_of(const ot_op_case *c, int which)
{
    if (c->edges != NULL)
        return which == ALL_NARROW ? CHECK_ISAS : CHECK_RESULTS;
    return which < N_WHOLE ? CHECK_ALL : CHECK_RESULTS;
}

// Number `which` of them; false: it is another one.
static bool assign(assignment *a, const ot_node *node, int which)
{
    const int turned = (which - N_WHOLE) / 2;
    const bool among_narrow = which < N_WHOLE || which % 2 == 0;
    bool has_narrow = false;

    for (int p = 0; p < a->n; p++) {
        a->is_narrow[p] = a->is_float[p] && among_narrow && !needs_f32(node, p) &&
                          !(which == F32_OUTPUTS && p >= node->n_inputs);
        if (which >= N_WHOLE && p == turned)
            a->is_narrow[p] = a->is_float[p] && !a->is_narrow[p];
        has_narrow = has_narrow || a->is_narrow[p];
    }
    return has_narrow && (which < N_WHOLE || a->is_float[turned]);
}

static void assignment_init(assignment *a, const ot_node *node, const inputs *in)
{
    a->n = node->n_inputs + node->n_outputs;
    for (int p = 0; p < a->n; p++)
        a->is_float[p] = has_floats(node, in, p);
}

static void set_types(const ot_node *node, const assignment *a, ot_dtype narrow)
{
    for (int p = 0; p < a->n; p++)
        if (a->is_float[p])
            value_at(node, p)->dtype = a->is_narrow[p] ? narrow : OT_F32;
}

static ot_status set_inputs(const inputs *from, const assignment *a, ot_dtype narrow, inputs *out)
{
    out->n = from->n;
    for (int i = 0; i < from->n; i++) {
        const ot_tensor *x = from->tensor[i];

        out->spec[i] = from->spec[i];
        if (x == NULL)
            continue;
        if (!a->is_narrow[i]) {
            OT_TRY(ot_tensor_clone(x, &out->tensor[i]));
            continue;
        }
        out->spec[i].dtype = narrow;
        OT_TRY(ot_tensor_create(narrow, &x->shape, &out->tensor[i]));
        (void)ot__convert(out->tensor[i]->data, narrow, x->data, OT_F32, ot_tensor_count(x));
    }
    return OT_OK;
}

// ---- the check ----

typedef struct problem {
    const ot_op_case *c;
    int type;
    inputs in; // f32, of numbers that the type has
    one_node one;
    wide_case exact;
} problem;

static void check_types(problem *p, const assignment *a, check_extent extent)
{
    inputs in = {0};

    set_types(p->one.node, a, types[p->type]);
    if (set_inputs(&p->in, a, types[p->type], &in) != OT_OK)
        fail("in %s: %s", ot_dtype_name(types[p->type]), ot_error_message());
    for (const ot_kernel *k = p->one.node->op->kernels; k->name != NULL; k++)
        if (ot__kernel_takes(k, p->one.node) &&
            check_kernel(p->c, &(call){.one = &p->one, .kernel = k, .in = &in, .in_place = -1},
                         &p->exact.expected, extent))
            note_run(k, p->type);
    inputs_deinit(&in);
}

static void check_type(problem *p, const ot_op_test *test, const inputs *given)
{
    assignment a;

    if (!inputs_round(given, types[p->type], &p->in) ||
        one_node_make(test, p->c, &p->in, STATIC_EXTENTS, &p->one) != OT_OK) {
        fail("in %s: %s", ot_dtype_name(types[p->type]), ot_error_message());
        return;
    }
    if (!wide_make(&p->exact, test, p->c, &p->in, p->one.given) || !wide_measure(&p->exact, p->c))
        return; // check_narrow() compares what has no f64
    assignment_init(&a, p->one.node, &p->in);
    for (int which = 0; which < n_assignments(&a, p->c, &p->in); which++)
        if (assign(&a, p->one.node, which))
            check_types(p, &a, extent_of(p->c, which));
}

// Whether some kernel names the type at a port that has floats.
static bool has_own_kernels(const ot_op_test *test, const ot_op_case *c, const inputs *in,
                            ot_dtype narrow)
{
    one_node one = {0};
    bool found = false;

    if (one_node_make(test, c, in, STATIC_EXTENTS, &one) == OT_OK)
        for (const ot_kernel *k = one.node->op->kernels; k != NULL && k->name != NULL; k++)
            found = found || ((k->flags & OT_KERNEL_REFERENCE) == 0 &&
                              kernel_names(one.node->op, k, narrow));
    one_node_deinit(&one);
    return found;
}

void check_narrow_kernels(const ot_op_test *test, const ot_op_case *c, const inputs *in)
{
    ot_op_case plain = *c; // values that are written in a case are those of other inputs

    for (int i = 0; i < OT_CASE_MAX_PORTS; i++)
        if (plain.out[i] != NULL && plain.out[i][0] != '\0')
            plain.out[i] = "f32[]";
    for (int type = 0; type < N_TYPES; type++) {
        problem p = {.c = &plain, .type = type};

        if (!has_own_kernels(test, &plain, in, types[type]))
            continue;
        check_type(&p, test, in);
        wide_deinit(&p.exact);
        one_node_deinit(&p.one);
        inputs_deinit(&p.in);
    }
}
