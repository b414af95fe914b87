// SPDX-License-Identifier: Apache-2.0
// The numbers of an optimizer: which hyper-parameters there are for all parameters and for groups
// of them, and which record can have them.
#include <string.h>

#include "artifacts/optimizer.h"

static const double most_number = 1e30;

// ---- hyper-parameters ----

static bool hyper_given(const ot_hyper *hyper, int n, const char *name, double *value)
{
    for (int i = n - 1; i >= 0; i--)
        if (strcmp(hyper[i].name, name) == 0) {
            *value = hyper[i].value;
            return true;
        }
    return false;
}

// What the asked record calls a hyper-parameter of the one that is written; NULL: it has none.
static const ot_attr_spec *asked_spec(const ot__optimizer_plan *plan, const ot_attr_spec *spec)
{
    const char *name = spec->name;
    const ot_attr_spec *found;

    if (plan->op != plan->asked)
        for (const ot__hyper_alias *a = plan->asked->rule->general_names; a && a->name; a++)
            if (strcmp(a->general, name) == 0)
                name = a->name;
    for (int i = 0; (found = ot__hyper_at(plan->asked, i)) != NULL; i++)
        if (strcmp(found->name, name) == 0)
            return found;
    return NULL;
}

static bool is_norm_clip(const ot_attr_spec *spec)
{
    return strcmp(spec->name, "max_norm_clip") == 0;
}

// Of group 0 is what the options say of all.
static double hyper_of_group(const ot__optimizer_plan *plan, const ot_attr_spec *spec, int group)
{
    const ot_optimizer_options *o = plan->options;
    const ot_attr_spec *asked = asked_spec(plan, spec);
    double value;

    if (!asked || (is_norm_clip(spec) && plan->wiring.clips_none))
        return 0;
    if (group > 0 &&
        hyper_given(o->groups[group - 1].hyper, o->groups[group - 1].n_hyper, asked->name, &value))
        return value;
    if (hyper_given(o->hyper, o->n_hyper, asked->name, &value))
        return value;
    // Gradients are clipped in one way or the other.
    return is_norm_clip(spec) && o->max_norm > 0 ? 0 : ot__hyper_fallback(plan->asked, asked);
}

// Whether a hyper-parameter of this name is above 0 in any group.
static bool is_positive_anywhere(const ot__optimizer_plan *plan, const char *name)
{
    const ot_attr_spec *spec;

    for (int i = 0; name && (spec = ot__hyper_at(plan->op, i)) != NULL; i++)
        for (int g = 0; strcmp(spec->name, name) == 0 && g < plan->n_groups; g++)
            if (hyper_of_group(plan, spec, g) > 0)
                return true;
    return false;
}

// ---- checks ----

static ot_status check_hyper(const ot_op_def *op, const ot_hyper *hyper, int n)
{
    for (int i = 0; i < n; i++) {
        const ot_attr_spec *spec;
        ot_status st;

        OT_TRY(ot__hyper_lookup(op, hyper[i].name, &spec));
        st = ot__attr_check_bounds(spec, hyper[i].value);
        if (st != OT_OK)
            return ot__error_prefix(st, "%s", op->name);
    }
    return OT_OK;
}

static ot_status check_optimizer_number(const char *name, double value, double high)
{
    if (value >= 0 && value < high)
        return OT_OK;
    return ot__error(OT_ERR_INVALID, "%s is %g, expected at least 0 and below %g", name, value,
                     high);
}

static ot_status check_groups(const ot__optimizer_plan *plan)
{
    const ot_optimizer_options *o = plan->options;
    ot_status st = OT_OK;

    if (o->n_groups > 0 && !plan->wiring.candidates)
        return ot__error(OT_ERR_INVALID, "groups are of parameters, which are not known here");
    for (int g = 0; g < o->n_groups && st == OT_OK; g++) {
        st = check_hyper(plan->asked, o->groups[g].hyper, o->groups[g].n_hyper);
        OT_THEN(st, check_optimizer_number("lr_factor", o->groups[g].lr_factor, most_number));
        if (st != OT_OK)
            ot__error_prefix(st, "group %d", g);
    }
    return st;
}

// Some numbers are one for all parameters.
static ot_status check_shared_numbers(const ot__optimizer_plan *plan)
{
    const ot_attr_spec *spec;

    for (int i = 0; (spec = ot__hyper_at(plan->op, i)) != NULL; i++) {
        const bool is_list = spec->kind == OT_ATTRIBUTE_FLOATS || spec->kind == OT_ATTRIBUTE_INTS;
        const double first = hyper_of_group(plan, spec, 0);

        for (int g = 1; !is_list && g < plan->n_groups; g++)
            if (hyper_of_group(plan, spec, g) != first)
                return ot__error(
                    OT_ERR_INVALID, "group %d: %s is %g and %g for others: %s has one for all",
                    g - 1, spec->name, hyper_of_group(plan, spec, g), first, plan->asked->name);
    }
    if (plan->options->max_norm > 0 && plan->clips_groups)
        return ot__error(OT_ERR_INVALID,
                         "max_norm and max_norm_clip clip the same gradients: one of them is 0");
    return OT_OK;
}

ot_status ot__optimizer_plan_make(const ot_optimizer_options *options,
                                  const ot__optimizer_wiring *wiring, ot__optimizer_plan *plan)
{
    const ot_update_rule *rule;

    *plan = (ot__optimizer_plan){.options = options, .n_groups = 1};
    if (wiring)
        plan->wiring = *wiring;
    OT_TRY(ot__optimizer_lookup(options->name, &plan->asked));
    OT_TRY(check_hyper(plan->asked, options->hyper, options->n_hyper));
    OT_TRY(check_optimizer_number("max_norm", options->max_norm, most_number));
    OT_TRY(check_optimizer_number("lr", options->lr, most_number));
    OT_TRY(check_optimizer_number("average_decay", options->average_decay, 1));
    OT_TRY(check_groups(plan));
    plan->n_groups += options->n_groups;
    plan->op = plan->asked;
    rule = plan->asked->rule;
    if (rule->general && (options->n_groups > 0 || options->average_decay > 0 ||
                          plan->wiring.divides || plan->wiring.skips || plan->wiring.counts_apart))
        plan->op = ot__optimizer_find(rule->general);
    rule = plan->op->rule;
    plan->n_slots = rule->n_slots;
    if (rule->last_slot_for && !is_positive_anywhere(plan, rule->last_slot_for))
        plan->n_slots--;
    plan->clips_groups = is_positive_anywhere(plan, "max_norm_clip");
    plan->has_norm =
        !rule->general && (plan->wiring.skips || options->max_norm > 0 || plan->clips_groups);
    return check_shared_numbers(plan);
}

// ---- attributes ----

static void set_list(ot_block *block, ot_node *node, const ot__optimizer_plan *plan,
                     const ot_attr_spec *spec)
{
    ot__arena *arena = block->build.graph->model->arena;
    const size_t n = (size_t)plan->n_groups;
    float *floats = ot__arena_alloc(arena, n * sizeof *floats);
    int64_t *ints = ot__arena_alloc(arena, n * sizeof *ints);
    int length = 1;

    if (!ot__build_made(&block->build, floats && ints))
        return;
    for (int g = 0; g < plan->n_groups; g++) {
        const double value = hyper_of_group(plan, spec, g);

        floats[g] = (float)value;
        ints[g] = (int64_t)value;
        if (value != hyper_of_group(plan, spec, 0))
            length = plan->n_groups;
    }
    ot__build_made(&block->build, spec->kind == OT_ATTRIBUTE_INTS
                                      ? ot__node_set_ints(node, spec->name, ints, length)
                                      : ot__node_set_floats(node, spec->name, floats, length));
}

// The last group that names a parameter is its group.
static int group_of_parameter(const ot_optimizer_options *o, const ot_value *value,
                              bool *const *is_used)
{
    int group = 0;

    for (int g = 0; g < o->n_groups; g++)
        for (int i = 0; i < o->groups[g].n_params; i++)
            if (ot__pattern_has(o->groups[g].params[i], value)) {
                is_used[g][i] = true;
                group = g + 1;
            }
    return group;
}

// All names and patterns that are those of no initializer.
static ot_status check_patterns_used(const ot_optimizer_options *o, bool *const *is_used)
{
    ot__buf names = {0};
    ot_status st = OT_OK;

    for (int g = 0; g < o->n_groups; g++)
        for (int i = 0; i < o->groups[g].n_params; i++)
            if (!is_used[g][i])
                ot__buf_printf(&names, "%s'%s'", names.length > 0 ? ", " : "",
                               o->groups[g].params[i]);
    if (names.length > 0)
        st = ot__error(OT_ERR_NOT_FOUND,
                       "groups of the optimizer name %s, the model has no such "
                       "initializer",
                       names.data);
    ot__buf_deinit(&names);
    return st;
}

static bool has_trained(const char *pattern, const ot__candidates *c)
{
    for (int i = 0; i < c->n; i++)
        if (c->items[i].role == OT_ROLE_TRAINABLE && ot__pattern_has(pattern, c->items[i].value))
            return true;
    return false;
}

ot_status ot__optimizer_idle_names(const ot_optimizer_options *options, const ot__candidates *c,
                                   const char **out)
{
    ot__buf names = {0};
    ot_status st;

    for (int g = 0; g < options->n_groups; g++)
        for (int i = 0; i < options->groups[g].n_params; i++)
            if (!has_trained(options->groups[g].params[i], c))
                ot__buf_printf(&names, "%s'%s'", names.length > 0 ? ", " : "",
                               options->groups[g].params[i]);
    *out = NULL;
    st = ot__buf_status(&names);
    if (st == OT_OK && names.length > 0) {
        *out = ot__arena_strdup(c->graph->model->arena, names.data);
        st = ot__made(*out);
    }
    ot__buf_deinit(&names);
    return st;
}

typedef struct named_groups {
    const char **names; // of the parameters, in their order
    int64_t *group;
    int n;
} named_groups;

static ot_status sort_into_groups(ot__arena *arena, const ot__optimizer_plan *plan,
                                  named_groups *out)
{
    const ot_optimizer_options *o = plan->options;
    const ot__candidates *c = plan->wiring.candidates;
    bool **is_used = ot__arena_alloc(arena, ((size_t)o->n_groups + 1) * sizeof *is_used);

    out->names = ot__arena_alloc(arena, ((size_t)c->n + 1) * sizeof *out->names);
    out->group = ot__arena_alloc(arena, ((size_t)c->n + 1) * sizeof *out->group);
    OT_TRY(ot__made(is_used && out->names && out->group));
    for (int g = 0; g < o->n_groups; g++) {
        is_used[g] = ot__arena_alloc(arena, (size_t)o->groups[g].n_params + 1);
        OT_TRY(ot__made(is_used[g]));
    }
    for (int i = 0; i < c->n; i++) {
        const int group = group_of_parameter(o, c->items[i].value, is_used);

        if (c->items[i].role != OT_ROLE_TRAINABLE)
            continue;
        out->names[out->n] = c->items[i].value->name;
        out->group[out->n++] = group;
    }
    return check_patterns_used(o, is_used);
}

static void set_groups(ot_block *block, ot_node *node, const ot__optimizer_plan *plan)
{
    ot__arena *arena = block->build.graph->model->arena;
    const ot_optimizer_options *o = plan->options;
    named_groups named = {0};
    float *factors = ot__arena_alloc(arena, (size_t)plan->n_groups * sizeof *factors);

    if (!ot__build_made(&block->build, factors != NULL) ||
        !ot__build_note(&block->build, sort_into_groups(arena, plan, &named)))
        return;
    factors[0] = 1;
    for (int g = 0; g < o->n_groups; g++)
        factors[g + 1] = (float)o->groups[g].lr_factor;
    if (plan->n_groups > 1)
        ot__build_made(&block->build,
                       ot__node_set_floats(node, "lr_factor", factors, plan->n_groups) &&
                           ot__node_set_ints(node, "group", named.group, named.n));
    ot__build_made(&block->build, ot__node_set_strings(node, "names", named.names, named.n));
}

void ot__optimizer_set_attrs(ot_block *block, ot_node *node, const ot__optimizer_plan *plan)
{
    const ot_attr_spec *spec;

    for (int i = 0; node && (spec = ot__hyper_at(plan->op, i)) != NULL; i++) {
        const double value = hyper_of_group(plan, spec, 0);

        if (spec->kind == OT_ATTRIBUTE_INT)
            ot__build_int(&block->build, node, spec->name, (int64_t)value);
        else if (spec->kind == OT_ATTRIBUTE_FLOAT)
            ot__build_float(&block->build, node, spec->name, value);
        else
            set_list(block, node, plan, spec);
    }
    if (!node || plan->op->rule->general)
        return;
    if (plan->options->max_norm > 0)
        ot__build_float(&block->build, node, "max_norm", plan->options->max_norm);
    if (plan->wiring.candidates)
        set_groups(block, node, plan);
}
