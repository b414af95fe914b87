// SPDX-License-Identifier: Apache-2.0
// What state dicts say of an optimizer: its slots and its groups of parameters, by the names that
// PyTorch has for them.
#include <string.h>

#include "op/op.h"
#include "session/group_table.h"
#include "session/state_dict.h"

// ---- slots ----

static const struct {
    const char *state; // of the rule
    const char *keys[OT_SLOT_MOMENTS];
} slot_rows[] = {
    {"adam", {"exp_avg", "exp_avg_sq"}}, {"momentum", {"momentum_buffer", NULL}},
    {"adagrad", {"sum", NULL}},          {"rmsprop", {"square_avg", "momentum_buffer"}},
    {"lion", {"exp_avg", NULL}},
};

const char *ot__slot_key(const ot__optimizer *o, int k)
{
    if (!o->uses_slot[k])
        return NULL;
    if (k == OT_SLOT_AVERAGE)
        return ot__slot_names[k];
    for (size_t i = 0; i < OT_COUNT(slot_rows); i++)
        if (strcmp(slot_rows[i].state, o->rule->op->rule->state) == 0)
            return slot_rows[i].keys[k];
    return ot__slot_names[k];
}

const char *ot__session_slot_key(const ot_session *session, int slot)
{
    return session->optimizer.rule != NULL ? ot__slot_key(&session->optimizer, slot) : NULL;
}

bool ot__counts_steps(const ot__optimizer *o)
{
    return o->rule != NULL && o->rule->op->rule->needs_step;
}

// ---- hyper-parameters ----

// Names of attributes that are others in PyTorch; pairs are a list of two. Those that only we have
// need not be given.
static const ot__hyper_row hyper_rows[] = {
    {"alpha", "beta", "betas", "adam", OT_HYPER_PAIR, false},
    {"beta1", "beta2", "betas", NULL, OT_HYPER_PAIR, false},
    {"epsilon", NULL, "eps", NULL, OT_HYPER_NUMBER, false},
    {"lambda", NULL, "weight_decay", NULL, OT_HYPER_NUMBER, false},
    {"nesterov", NULL, "nesterov", NULL, OT_HYPER_BOOL, false},
    {"do_bias_correction", NULL, "bias_correction", NULL, OT_HYPER_BOOL, true},
    {"correct_bias", NULL, "bias_correction", NULL, OT_HYPER_BOOL, true},
    {"adam_mode", NULL, "weight_decay_mode", NULL, OT_HYPER_WHOLE, true},
    {"weight_decay_mode", NULL, "weight_decay_mode", NULL, OT_HYPER_WHOLE, true},
    {"max_norm_clip", NULL, "max_norm_clip", NULL, OT_HYPER_NUMBER, true},
    {"ratio_min", NULL, "ratio_min", NULL, OT_HYPER_NUMBER, true},
    {"ratio_max", NULL, "ratio_max", NULL, OT_HYPER_NUMBER, true},
};

static bool is_row_of(const ot__hyper_row *row, const ot_op_def *op, const char *attr)
{
    return strcmp(row->attr, attr) == 0 &&
           (row->state == NULL || strcmp(row->state, op->rule->state) == 0);
}

bool ot__hyper_row_at(const ot_op_def *op, int index, ot__hyper_row *out)
{
    for (int i = 0, n = 0;; i++) {
        const ot_attr_spec *spec = ot__hyper_at(op, i);
        bool is_second = false;

        if (spec == NULL)
            return false;
        *out = (ot__hyper_row){spec->name, NULL, spec->name, NULL, OT_HYPER_NUMBER, false};
        for (size_t k = 0; k < OT_COUNT(hyper_rows); k++) {
            if (is_row_of(&hyper_rows[k], op, spec->name))
                *out = hyper_rows[k];
            is_second = is_second || (hyper_rows[k].second != NULL &&
                                      strcmp(hyper_rows[k].second, spec->name) == 0 &&
                                      is_row_of(&hyper_rows[k], op, hyper_rows[k].attr));
        }
        if (!is_second && n++ == index)
            return true;
    }
}

double ot__hyper_of_group(const ot_node *node, const char *name, int group)
{
    const ot_attr_spec *spec;
    const ot_attr *attr = ot__node_attr(node, name);
    const int i = attr != NULL && attr->n > 1 ? group : 0;

    if (ot__hyper_lookup(node->op, name, &spec) != OT_OK)
        return 0;
    switch (attr == NULL ? OT_ATTR_UNDEFINED : attr->kind) {
    case OT_ATTR_FLOAT:
        return ot__as_written(attr->f);
    case OT_ATTR_FLOATS:
        return attr->n > i ? ot__as_written(attr->floats[i]) : 0;
    case OT_ATTR_INT:
        return (double)attr->i;
    case OT_ATTR_INTS:
        return attr->n > i ? (double)attr->ints[i] : 0;
    default:
        return spec->kind == OT_ATTRIBUTE_INT || spec->kind == OT_ATTRIBUTE_INTS
                   ? (double)spec->i
                   : ot__as_written(spec->f);
    }
}

// ---- groups ----

int ot__group_of(const ot__optimizer *o, int i_parameter)
{
    int n;
    const int64_t *groups = ot_attr_ints(o->rule, "group", &n);

    return groups != NULL && i_parameter < n ? (int)groups[i_parameter] : 0;
}

double ot__lr_factor(const ot__optimizer *o, int group)
{
    int n;
    const float *factors = ot_attr_floats(o->rule, "lr_factor", &n);

    return n == 0 ? 1 : ot__as_written(factors[n > 1 ? group : 0]);
}

double ot__group_rate(const ot_session *session, int group)
{
    const ot__optimizer *o = &session->optimizer;

    return (o->has_rates ? ot__as_written(o->rates[group]) : session->learning_rate) *
           ot__lr_factor(o, group);
}

static ot_status write_pair(const ot_node *rule, const ot__hyper_row *row, int group, ot_dict *to)
{
    ot_dict *list;

    OT_TRY(ot_dict_set_list(to, row->key, &list));
    OT_TRY(ot_dict_set_float(list, "0", ot__hyper_of_group(rule, row->attr, group)));
    return ot_dict_set_float(list, "1", ot__hyper_of_group(rule, row->second, group));
}

static ot_status write_hyper_of_group(const ot_node *rule, const ot__hyper_row *row, int group,
                                      ot_dict *to)
{
    const double value = ot__hyper_of_group(rule, row->attr, group);

    switch (row->kind) {
    case OT_HYPER_PAIR:
        return write_pair(rule, row, group, to);
    case OT_HYPER_BOOL:
        return ot_dict_set_bool(to, row->key, value != 0);
    case OT_HYPER_WHOLE:
        return ot_dict_set_int(to, row->key, (int64_t)value);
    default:
        return ot_dict_set_float(to, row->key, value);
    }
}

ot_status ot__group_write(const ot__state_call *call, int group, ot_dict *to)
{
    const ot_session *session = call->session;
    const ot_node *rule = session->optimizer.rule;
    ot__hyper_row row;
    ot_dict *custom;
    char number[16];

    OT_TRY(ot_dict_set_float(to, OT_KEY_LR, ot__group_rate(session, group)));
    if (session->has_schedule)
        OT_TRY(ot_dict_set_float(to, OT_KEY_INITIAL_LR,
                                 session->schedule.initial_lr *
                                     ot__lr_factor(&session->optimizer, group)));
    for (int i = 0; ot__hyper_row_at(rule->op, i, &row); i++)
        OT_TRY(write_hyper_of_group(rule, &row, group, to));
    snprintf(number, sizeof number, "%d", group);
    if (session->custom_hyper == NULL || !ot__dict_has(session->custom_hyper, number))
        return OT_OK;
    OT_TRY(ot_dict_get_dict(session->custom_hyper, number, &custom));
    for (int i = 0; i < ot_dict_count(custom); i++)
        if (!ot__dict_has(to, ot_dict_name(custom, i)))
            OT_TRY(ot__dict_copy(custom, ot_dict_name(custom, i), to, ot_dict_name(custom, i)));
    return OT_OK;
}
