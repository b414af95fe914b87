// SPDX-License-Identifier: Apache-2.0
// The one update of all parameters by the rule of a record: in one pass over them, whatever the
// number of groups. What differs between tensors is a row of numbers each (rows.c).
#include "ops/optimizer/optimizer.h"

#include <assert.h>
#include <math.h>
#include <string.h>

// ---- what a node says ----

// The place of a port that the node has, else -1.
static int port_given(const ot_node *node, int port)
{
    return port >= 0 && port < node->n_inputs && node->inputs[port] != NULL ? port : -1;
}

static ot__rule_ports ports_given(const ot_node *node)
{
    const ot__rule_ports *p = node->op->rule->ports;

    return (ot__rule_ports){
        .lr = port_given(node, p->lr),
        .step = port_given(node, p->step),
        .params = port_given(node, p->params),
        .gradients = port_given(node, p->gradients),
        .slots = {port_given(node, p->slots[0]), port_given(node, p->slots[1])},
        .divisor = port_given(node, p->divisor),
        .norm = port_given(node, p->norm),
        .finite = port_given(node, p->finite),
    };
}

// How many numbers an attribute has; 0: it is absent, or not a list.
static int list_length(const ot_node *node, const ot_attr_spec *spec)
{
    int n = 0;

    if (spec->kind == OT_ATTRIBUTE_FLOATS)
        (void)ot_attr_floats(node, spec->name, &n);
    else if (spec->kind == OT_ATTRIBUTE_INTS)
        (void)ot_attr_ints(node, spec->name, &n);
    return n;
}

static int count_groups(const ot_node *node)
{
    int n_groups = 1, n;

    (void)ot_attr_floats(node, "lr_factor", &n);
    n_groups = OT_MAX(n_groups, n);
    for (int i = 0; ot__hyper_at(node->op, i) != NULL; i++)
        n_groups = OT_MAX(n_groups, list_length(node, ot__hyper_at(node->op, i)));
    return n_groups;
}

// The hyper-parameter in a group.
static float hyper_in(const ot_node *node, const ot_attr_spec *spec, int group)
{
    const int64_t *ints;
    const float *floats;
    int n;

    switch (spec->kind) {
    case OT_ATTRIBUTE_FLOAT:
        return ot_attr_float(node, spec->name);
    case OT_ATTRIBUTE_INT:
        return (float)ot_attr_int(node, spec->name);
    case OT_ATTRIBUTE_INTS:
        ints = ot_attr_ints(node, spec->name, &n);
        return (float)(n == 0 ? spec->i : ints[n == 1 ? 0 : group]);
    default:
        floats = ot_attr_floats(node, spec->name, &n);
        return n == 0 ? spec->f : floats[n == 1 ? 0 : group];
    }
}

static int hyper_index(const ot_op_def *op, const char *name)
{
    const ot_attr_spec *spec;

    for (int i = 0; name != NULL && (spec = ot__hyper_at(op, i)) != NULL; i++)
        if (strcmp(spec->name, name) == 0)
            return i;
    return -1;
}

// The last of its slots may be of no use: without momentum there is no buffer.
static int count_slots(const ot_node *node, int n_groups)
{
    const ot_update_rule *rule = node->op->rule;
    const int last = hyper_index(node->op, rule->last_slot_for);

    for (int g = 0; last >= 0 && g < n_groups; g++)
        if (hyper_in(node, ot__hyper_at(node->op, last), g) != 0)
            return rule->n_slots;
    return last >= 0 ? rule->n_slots - 1 : rule->n_slots;
}

// ---- inference ----

static bool check_numbers_of_groups(ot_infer *c, int n_groups)
{
    const ot_node *node = ot_infer_node(c);
    const ot_attr_spec *spec;
    const int64_t *groups;
    const float *factors;
    int n;

    for (int i = 0; (spec = ot__hyper_at(node->op, i)) != NULL; i++) {
        n = list_length(node, spec);
        if (n > 1 && n != n_groups)
            return ot__refuse(c, "%s has %d numbers, of %d groups", spec->name, n, n_groups);
    }
    factors = ot_attr_floats(node, "lr_factor", &n);
    if (n > 1 && n != n_groups)
        return ot__refuse(c, "lr_factor has %d numbers, of %d groups", n, n_groups);
    for (int i = 0; i < n; i++)
        if (!(factors[i] >= 0 && isfinite(factors[i])))
            return ot__refuse(c, "lr_factor is %g, expected at least 0", (double)factors[i]);
    groups = ot_attr_ints(node, "group", &n);
    for (int i = 0; i < n; i++)
        if (groups[i] < 0 || groups[i] >= n_groups)
            return ot__refuse(c, "tensor %d is of group %" PRId64 ", there are %d", i, groups[i],
                              n_groups);
    return true;
}

// A port of one number, or of one for each of n things (n < 0: their number is not known).
static bool has_numbers(ot_infer *c, int port, int n)
{
    const ot_shape *x = ot_infer_shape(c, port);

    if (x->ndim == 1 && (n < 0 || !ot_dim_is_number(x->dim[0]) || x->dim[0] == n))
        return true;
    return ot__infer_one_element(c, port);
}

static bool check_ports_of_rule(ot_infer *c, int n_groups)
{
    const ot_node *node = ot_infer_node(c);
    const ot_update_rule *rule = node->op->rule;
    const ot__rule_ports at = ports_given(node);
    const int n_slots = count_slots(node, n_groups);
    const int singles[] = {at.divisor, at.norm, at.finite};

    for (int k = 0; k < 2; k++)
        if (k < n_slots && at.slots[k] < 0)
            return ot__refuse(c, "moments %d are missing", k + 1);
    for (int k = rule->n_slots; k < 2; k++)
        if (at.slots[k] >= 0)
            return ot__refuse(c, "it has no moments %d", k + 1);
    if (rule->needs_step && at.step < 0)
        return ot__refuse(c, "input 'step' is missing");
    for (size_t i = 0; i < OT_COUNT(singles); i++)
        if (singles[i] >= 0 && !ot__infer_one_element(c, singles[i]))
            return false;
    return has_numbers(c, at.lr, n_groups) && (at.step < 0 || has_numbers(c, at.step, -1));
}

void ot__rule_infer(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);
    const int n_groups = count_groups(node);

    if (node->op->rule->check != NULL && !node->op->rule->check(c))
        return;
    if (check_numbers_of_groups(c, n_groups) && check_ports_of_rule(c, n_groups))
        ot_infer_set(c, 0, OT_BOOL, &OT_SHAPE(1));
}

// ---- preparing ----

static void read_numbers(const ot_node *node, ot__update_state *s, int n_tensors, int *group)
{
    const ot_op_def *op = node->op;
    const ot_attr_spec *spec;
    const float *factors;
    int n;
    const int64_t *groups = ot_attr_ints(node, "group", &n);

    assert(ot__hyper_at(op, OT_RULE_MAX_HYPER) == NULL);
    for (int i = 0; n > 0 && i < n_tensors; i++)
        group[i] = (int)groups[i];
    s->group = n > 0 ? group : NULL;
    factors = ot_attr_floats(node, "lr_factor", &n);
    for (int g = 0; g < s->n_groups; g++) {
        s->lr_factor[g] = n == 0 ? 1 : (double)factors[n == 1 ? 0 : g];
        for (int i = 0; (spec = ot__hyper_at(op, i)) != NULL; i++)
            s->hyper[g][i] = hyper_in(node, spec, g);
    }
    s->max_norm = (double)ot_attr_float(node, "max_norm");
    s->correct_at = hyper_index(op, op->rule->correction);
    s->clip_at = hyper_index(op, "max_norm_clip");
}

static bool lengths_fit(ot_prep *p, const ot__rule_ports *at, int n_tensors)
{
    const ot_node *node = p->node;
    const int others[] = {at->gradients, at->slots[0], at->slots[1]};
    const ot_attr *names = ot__node_attr(node, "names");
    const int64_t n_rates = p->in[p->in_first[at->lr]]->count;
    int n_groups;

    (void)ot_attr_ints(node, "group", &n_groups);
    for (size_t i = 0; i < OT_COUNT(others); i++)
        if (others[i] >= 0 && !ot__pieces_fit(p, at->params, others[i]))
            return false;
    if (n_groups > 0 && n_groups != n_tensors)
        ot_prep_fail(p, OT_ERR_INVALID, "group has %d numbers, of %d tensors", n_groups, n_tensors);
    else if (names != NULL && names->n != n_tensors)
        ot_prep_fail(p, OT_ERR_INVALID, "names has %d names, of %d tensors", names->n, n_tensors);
    else if (n_rates != 1 && n_rates != count_groups(node))
        ot_prep_fail(p, OT_ERR_INVALID, "%" PRId64 " learning rates, of %d groups", n_rates,
                     count_groups(node));
    else if (at->step >= 0 && p->in[p->in_first[at->step]]->count != 1 &&
             p->in[p->in_first[at->step]]->count != n_tensors)
        ot_prep_fail(p, OT_ERR_INVALID, "step has %" PRId64 " numbers, of %d tensors",
                     p->in[p->in_first[at->step]]->count, n_tensors);
    return p->status == OT_OK;
}

static size_t norms_room(const ot__pieces *pieces, const ot__update_state *s)
{
    if (s->rule->norms == 0)
        return 0;
    return s->is_exact
               ? ot__exact_norms_room(pieces)
               : ((size_t)pieces->n_pieces + (size_t)pieces->n_tensors) * 2 * sizeof(double);
}

ot_status ot__rule_prepare(ot_prep *p)
{
    const ot__rule_ports at = ports_given(p->node);
    const size_t n_groups = (size_t)count_groups(p->node);
    const size_t n_tensors = (size_t)(p->in_first[at.params + 1] - p->in_first[at.params]);
    const size_t of_group = sizeof(double) + sizeof(float[OT_RULE_MAX_HYPER]);
    ot__update_state *s;
    ot__pieces *pieces;

    if (!lengths_fit(p, &at, (int)n_tensors))
        return p->status;
    pieces =
        ot__pieces_make(p, at.params, sizeof *s + n_groups * of_group + n_tensors * sizeof(int));
    OT_TRY(p->status);
    s = pieces->own;
    s->rule = p->node->op->rule;
    s->at = at;
    s->n_groups = (int)n_groups;
    s->lr_factor = (double *)(s + 1);
    s->hyper = (float(*)[OT_RULE_MAX_HYPER])(s->lr_factor + n_groups);
    read_numbers(p->node, s, (int)n_tensors, (int *)(s->hyper + n_groups));
    s->is_exact =
        p->reproducible && n_tensors > 0 && p->in[p->in_first[at.params]]->dtype == OT_F32;
    ot_prep_scratch(p, n_tensors * sizeof(ot__update_row) + norms_room(pieces, s));
    return OT_OK;
}

// ---- running ----

static void *slot_data(const ot_run *r, const ot__update_state *s, int slot,
                       const ot__piece_of *piece)
{
    return s->at.slots[slot] < 0 ? NULL : ot__piece_data(r, s->at.slots[slot], piece);
}

// Sums of pieces into those of their tensors, in order. `totals`: room for two numbers a tensor.
static ot_status add_norms(const ot_run *r, const ot__pieces *pieces, const double *sums,
                           double *totals)
{
    int64_t i = 0;

    for (int k = 0; k < pieces->n_tensors; k++) {
        totals[2 * k] = totals[2 * k + 1] = 0;
        for (; i < pieces->n_pieces && pieces->piece[i].tensor == k; i++) {
            totals[2 * k] += sums[2 * i];
            totals[2 * k + 1] += sums[2 * i + 1];
        }
    }
    return ot__run_sum(r, totals, 2 * pieces->n_tensors);
}

static void take_ratios(const ot__update_state *s, ot__update_row *rows, int n_tensors,
                        const double *totals)
{
    for (int k = 0; k < n_tensors; k++)
        rows[k].lr *= s->rule->ratio(&rows[k], totals[2 * k], totals[2 * k + 1]);
}

#define TEMPLATE "ops/optimizer/update.tmpl.h"
#include "kernels/by_float.tmpl.h"

static ot_status rule_run_simd(const ot_run *r)
{
    return rule_update_f32(r, ot__updates_best());
}

#define RULE_SEQUENCE (OT_PORT_SEQUENCE | OT_PORT_F32)
const ot_port ot__rule_in[] = {
    {"learning_rate", "f32", OT_PORT_F32},
    {"step", "i64", OT_PORT_OPTIONAL},
    {"params", "T", RULE_SEQUENCE | OT_PORT_STATE},
    {"gradients", "T", RULE_SEQUENCE},
    {"first_order_moments", "T", RULE_SEQUENCE | OT_PORT_STATE | OT_PORT_OPTIONAL},
    {"second_order_moments", "T", RULE_SEQUENCE | OT_PORT_STATE | OT_PORT_OPTIONAL},
    {"gradient_divisor", "f32", OT_PORT_F32 | OT_PORT_OPTIONAL},
    {"norm", "f64", OT_PORT_OPTIONAL},
    {"finite", "bool", OT_PORT_OPTIONAL},
    {0},
};
const ot_port ot__rule_out[] = {{"updated", "bool", 0}, {0}};
const ot_kernel ot__rule_kernels[] = {
    OT__SIMD_KERNEL("T: f32", NULL, ot__rule_prepare, rule_run_simd),
    OT__REF_KERNELS(ot__rule_prepare, rule_run),
    {0},
};
