// SPDX-License-Identifier: Apache-2.0
// Groups of an optimizer that are given by names: which of its own they are, and what numbers they
// bring. Numbers are attributes of the rule: others make another optimizer model.
#include <math.h>
#include <string.h>

#include "op/op.h"
#include "session/group_table.h"
#include "session/state_dict.h"

typedef struct group_check {
    const ot__state_call *call;
    const ot__optimizer *optimizer;
    ot_shards_report *report;
    ot_dict **given; // the group that an own one takes its numbers from; NULL: it keeps them
    ot_dict *list;
    ot__map group_of; // index of a given group + 1, by name of a parameter
    ot__pending_groups *out;
    ot_model *model; // a copy with other numbers; NULL: they are the same
    ot_node *rule;   // of it
    bool is_flat;    // the list was made from flat keys, with all own groups
    bool is_refused;
} group_check;

static ot_status refuse_group(group_check *c, const char *name, const char *detail)
{
    c->is_refused = true;
    return ot__report_add(c->report, OT_REPORT_GROUP, OT_STATE_OPTIMIZER, name, detail);
}

// ---- which group is which ----

static ot_status index_group(group_check *c, ot_dict *group, int number)
{
    ot_dict *params;

    OT_TRY(ot_dict_get_list(group, OT_KEY_PARAMS, &params));
    for (int i = 0; i < ot_dict_count(params); i++) {
        const char *name;

        OT_TRY(ot_dict_get_string(params, ot_dict_name(params, i), &name));
        if (ot__map_get(&c->group_of, name) != NULL)
            OT_TRY(refuse_group(c, name, "is in two groups of the state"));
        OT_TRY(ot__made(ot__map_put(&c->group_of, name, (void *)(uintptr_t)(number + 1))));
        if (!ot__map_get(&c->call->by_name, name) && ot__state_includes(c->call, name))
            OT_TRY(ot__report_add(c->report, OT_REPORT_UNEXPECTED, OT_STATE_OPTIMIZER, name,
                                  "is in a group of the state"));
    }
    return OT_OK;
}

static ot_status index_groups(group_check *c)
{
    for (int i = 0; i < ot_dict_count(c->list); i++) {
        ot_dict *group;

        OT_TRY(ot_dict_get_dict(c->list, ot_dict_name(c->list, i), &group));
        OT_TRY(index_group(c, group, i));
    }
    return OT_OK;
}

static ot_dict *given_group(const group_check *c, int number)
{
    ot_dict *group = NULL;

    (void)ot_dict_get_dict(c->list, ot_dict_name(c->list, number), &group); // it has been read
    return group;
}

// Two given groups that members of one own group come from say the same.
static ot_status check_same(group_check *c, ot_dict *a, ot_dict *b, const char *name)
{
    for (int i = 0; i < ot_dict_count(a) && a != b; i++) {
        const char *key = ot_dict_name(a, i);

        if (strcmp(key, OT_KEY_PARAMS) != 0 && ot__dict_has(b, key) &&
            !ot__dict_same(a, key, b, key)) {
            ot__buf text = {0};
            ot_status st;

            ot__buf_printf(&text, "has another '%s' in the state than others of its group", key);
            st = ot__buf_status(&text);
            OT_THEN(st, refuse_group(c, name, text.data));
            ot__buf_deinit(&text);
            return st;
        }
    }
    return OT_OK;
}

static ot_status match_member(group_check *c, int i_parameter, int group)
{
    const ot__state_name *name = ot__state_name_of(c->call, c->optimizer->parameters[i_parameter]);
    const uintptr_t number = name == NULL ? 0 : (uintptr_t)ot__map_get(&c->group_of, name->name);

    if (name == NULL)
        return OT_OK;
    if (number == 0)
        return ot__report_add(c->report, OT_REPORT_MISSING, OT_STATE_OPTIMIZER, name->name,
                              "is in no group of the state");
    if (c->given[group] == NULL)
        c->given[group] = given_group(c, (int)number - 1);
    return check_same(c, c->given[group], given_group(c, (int)number - 1), name->name);
}

static bool is_empty_group(ot_dict *group)
{
    ot_dict *params;

    return ot_dict_get_list(group, OT_KEY_PARAMS, &params) == OT_OK && ot_dict_count(params) == 0 &&
           ot__dict_has(group, OT_KEY_LR);
}

// A group without parameters is the one at the same place, where there are as many; else it stays.
static ot_status match_empty(group_check *c)
{
    for (int g = 0; g < c->optimizer->n_groups; g++) {
        bool has_members = false;

        for (int i = 0; i < c->optimizer->n_parameters && !has_members; i++)
            has_members = ot__group_of(c->optimizer, i) == g;
        if (has_members)
            continue;
        if (ot_dict_count(c->list) == c->optimizer->n_groups && is_empty_group(given_group(c, g))) {
            c->given[g] = given_group(c, g);
        } else {
            char name[32];

            snprintf(name, sizeof name, OT_KEY_GROUPS ".%d", g);
            OT_TRY(ot__report_add(c->report, OT_REPORT_GROUP, OT_STATE_OPTIMIZER, name,
                                  "has no parameters, and is not in the state: it stays"));
        }
    }
    return OT_OK;
}

static bool is_taken(const group_check *c, const ot_dict *group)
{
    bool taken = false;

    for (int g = 0; g < c->optimizer->n_groups && !taken; g++)
        taken = c->given[g] == group;
    return taken;
}

// Groups without parameters that are none of the own. Behind a filter any may be one.
static ot_status check_superfluous(group_check *c)
{
    for (int i = 0; i < ot_dict_count(c->list) && !c->is_flat; i++) {
        ot_dict *params;
        char name[32];

        OT_TRY(ot_dict_get_list(given_group(c, i), OT_KEY_PARAMS, &params));
        if (ot_dict_count(params) > 0 || c->call->options.n_include > 0 ||
            is_taken(c, given_group(c, i)))
            continue;
        snprintf(name, sizeof name, OT_KEY_GROUPS ".%d", i);
        OT_TRY(ot__report_add(c->report, OT_REPORT_UNEXPECTED, OT_STATE_OPTIMIZER, name,
                              "has no parameters"));
    }
    return OT_OK;
}

// ---- numbers ----

bool ot__given_number(const ot_dict *from, const char *key, double *out)
{
    ot_dict_kind kind;
    const ot_tensor *tensor;
    int64_t whole = 0;
    int flag = 0;

    if (ot_dict_kind_of(from, key, &kind) != OT_OK)
        return false;
    if (kind == OT_DICT_FLOAT)
        return ot_dict_get_float(from, key, out) == OT_OK;
    if (kind == OT_DICT_INT && ot_dict_get_int(from, key, &whole) == OT_OK)
        *out = (double)whole;
    else if (kind == OT_DICT_BOOL && ot_dict_get_bool(from, key, &flag) == OT_OK)
        *out = flag;
    else if (kind == OT_DICT_TENSOR && ot_dict_get_tensor(from, key, &tensor) == OT_OK &&
             ot_tensor_count(tensor) == 1)
        *out = ot__tensor_get_f64(tensor, 0);
    else
        return false;
    return true;
}

// A value of each group: what is given, else the present one.
static ot_status set_hyper(group_check *c, const char *attr, const double *values)
{
    const int n = c->optimizer->n_groups;
    const ot_node *present = c->optimizer->rule;
    const ot_attr_spec *spec;
    bool is_same = true;

    OT_TRY(ot__hyper_lookup(present->op, attr, &spec));
    for (int g = 0; g < n; g++) {
        is_same = is_same && (float)values[g] == (float)ot__hyper_of_group(present, attr, g);
        if (!(values[g] >= spec->low && (values[g] < spec->high || isinf(spec->high)))) {
            ot__buf text = {0};
            ot_status st;

            ot__buf_printf(&text, "is %g, expected %g up to %g", values[g], spec->low, spec->high);
            st = ot__buf_status(&text);
            OT_THEN(st, refuse_group(c, attr, text.data));
            ot__buf_deinit(&text);
            return st;
        }
    }
    if (is_same || c->is_refused)
        return OT_OK;
    if (c->model == NULL) {
        const ot_graph *g = c->optimizer->program.model->graph;
        int i = 0;

        while (g->nodes[i] != present)
            i++;
        OT_TRY(ot__model_clone(c->optimizer->program.model, &c->model));
        c->rule = c->model->graph->nodes[i];
    }
    return ot__rule_set_hyper(c->rule, spec, values, n);
}

static ot_status note_hyper(group_check *c, int group, const char *key, ot_report_category category,
                            const char *detail)
{
    ot__buf text = {0};
    ot_status st;

    ot__buf_printf(&text, OT_KEY_GROUPS ".%d.%s", group, key);
    st = ot__buf_status(&text);
    OT_THEN(st, ot__report_add(c->report, category, OT_STATE_OPTIMIZER, text.data, detail));
    ot__buf_deinit(&text);
    return st;
}

// One number of a group, or one of a pair (`at`: "0" or "1").
static ot_status read_given_hyper(group_check *c, const ot__hyper_row *row, const char *attr,
                                  const char *at, int group, double *value)
{
    ot_dict *from = c->given[group], *list;

    *value = ot__hyper_of_group(c->optimizer->rule, attr, group);
    if (from == NULL)
        return OT_OK;
    if (!ot__dict_has(from, row->key))
        return row->is_own || (at != NULL && strcmp(at, "1") == 0)
                   ? OT_OK
                   : note_hyper(c, group, row->key, OT_REPORT_MISSING, "");
    if (at == NULL)
        return ot__given_number(from, row->key, value)
                   ? OT_OK
                   : note_hyper(c, group, row->key, OT_REPORT_DTYPE, "is not a number");
    if (ot_dict_get_list(from, row->key, &list) == OT_OK && ot_dict_count(list) == 2 &&
        ot__given_number(list, at, value))
        return OT_OK;
    return note_hyper(c, group, row->key, OT_REPORT_DTYPE, "is not a list of two numbers");
}

static ot_status take_row(group_check *c, const ot__hyper_row *row, const char *attr,
                          const char *at, double *values)
{
    for (int g = 0; g < c->optimizer->n_groups; g++)
        OT_TRY(read_given_hyper(c, row, attr, at, g, &values[g]));
    return set_hyper(c, attr, values);
}

static ot_status take_rates(group_check *c)
{
    const ot__optimizer *o = c->optimizer;

    for (int g = 0; g < o->n_groups; g++) {
        const double factor = ot__lr_factor(o, g);
        double lr = ot__group_rate(c->call->session, g);

        if (c->given[g] != NULL && !ot__dict_has(c->given[g], OT_KEY_LR))
            OT_TRY(note_hyper(c, g, OT_KEY_LR, OT_REPORT_MISSING, ""));
        else if (c->given[g] != NULL && !ot__given_number(c->given[g], OT_KEY_LR, &lr))
            OT_TRY(note_hyper(c, g, OT_KEY_LR, OT_REPORT_DTYPE, "is not a number"));
        if (!ot__is_learning_rate(lr))
            OT_TRY(refuse_group(c, OT_KEY_LR, "is not a finite number of at least 0"));
        c->out->has_rates = c->out->has_rates || c->given[g] != NULL;
        c->out->rates[g] = factor > 0 ? lr / factor : c->call->session->learning_rate;
    }
    return OT_OK;
}

static ot_status take_numbers(group_check *c)
{
    double *values = ot__alloc_zero((size_t)c->optimizer->n_groups, sizeof *values);
    ot__hyper_row row;
    ot_status st = ot__made(values != NULL);

    for (int i = 0; st == OT_OK && ot__hyper_row_at(c->optimizer->rule->op, i, &row); i++) {
        const bool is_pair = row.kind == OT_HYPER_PAIR;

        st = take_row(c, &row, row.attr, is_pair ? "0" : NULL, values);
        if (is_pair)
            OT_THEN(st, take_row(c, &row, row.second, "1", values));
    }
    ot__free(values);
    OT_THEN(st, take_rates(c));
    return st;
}

// ---- what no rule here knows ----

static bool is_known_key(const group_check *c, const char *key)
{
    ot__hyper_row row;

    if (strcmp(key, OT_KEY_PARAMS) == 0 || strcmp(key, OT_KEY_LR) == 0 ||
        (strcmp(key, OT_KEY_INITIAL_LR) == 0 && c->call->session->has_schedule))
        return true;
    for (int i = 0; ot__hyper_row_at(c->optimizer->rule->op, i, &row); i++)
        if (strcmp(row.key, key) == 0)
            return true;
    return false;
}

static ot_status keep_custom(group_check *c, int group)
{
    const ot_dict *from = c->given[group];
    char number[16];
    ot_dict *to = NULL;

    snprintf(number, sizeof number, "%d", group);
    if (from == NULL) {
        const ot_dict *old = c->call->session->custom_hyper;

        return old != NULL && ot__dict_has(old, number)
                   ? ot__dict_copy(old, number, c->out->custom, number)
                   : OT_OK;
    }
    OT_TRY(ot_dict_set_dict(c->out->custom, number, &to));
    for (int i = 0; i < ot_dict_count(from); i++) {
        const char *key = ot_dict_name(from, i);

        if (is_known_key(c, key))
            continue;
        OT_TRY(ot__dict_copy(from, key, to, key));
        OT_TRY(note_hyper(c, group, key, OT_REPORT_CUSTOM, ""));
    }
    return OT_OK;
}

// ---- another optimizer ----

// It is made in the place of the present one, which comes back.
static ot_status make_optimizer(group_check *c)
{
    ot_session *session = c->call->session;
    const ot__optimizer old = session->optimizer;
    ot_model *model = c->model;
    ot_status st;

    if (model == NULL)
        return OT_OK;
    c->model = NULL;
    session->optimizer = (ot__optimizer){.is_switch = true};
    st = ot__optimizer_create(session, model);
    if (st == OT_OK) {
        memcpy(session->optimizer.rates, old.rates, (size_t)old.n_groups * sizeof *old.rates);
        session->optimizer.has_rates = old.has_rates;
        c->out->optimizer = session->optimizer;
    } else {
        ot__optimizer_deinit(&session->optimizer);
    }
    session->optimizer = old;
    return st;
}

ot_status ot__groups_check(const ot__state_call *call, ot_dict *list, bool is_flat,
                           ot_shards_report *report, bool *is_refused, ot__pending_groups *out)
{
    const ot__optimizer *o = &call->session->optimizer;
    group_check c = {.call = call,
                     .optimizer = o,
                     .report = report,
                     .list = list,
                     .is_flat = is_flat,
                     .out = out};
    ot_status st;

    *out = (ot__pending_groups){.is_given = true};
    c.given = ot__alloc_zero((size_t)o->n_groups + 1, sizeof *c.given);
    out->rates = ot__alloc_zero((size_t)o->n_groups + 1, sizeof *out->rates);
    st = ot__made(c.given != NULL && out->rates != NULL);
    OT_THEN(st, ot_dict_create(&out->custom));
    OT_THEN(st, index_groups(&c));
    for (int i = 0; i < o->n_parameters && st == OT_OK; i++)
        st = match_member(&c, i, ot__group_of(o, i));
    OT_THEN(st, match_empty(&c));
    OT_THEN(st, check_superfluous(&c));
    OT_THEN(st, take_numbers(&c));
    for (int g = 0; g < o->n_groups && st == OT_OK; g++)
        st = keep_custom(&c, g);
    if (st == OT_OK && !c.is_refused)
        st = make_optimizer(&c);
    *is_refused = c.is_refused;
    ot_model_destroy(c.model);
    ot__map_deinit(&c.group_of);
    ot__free(c.given);
    return st;
}

void ot__groups_take(ot_session *session, ot__pending_groups *groups)
{
    ot__optimizer *o = &session->optimizer;
    bool are_same = true;

    if (!groups->is_given)
        return;
    if (groups->optimizer.program.model != NULL) {
        ot__optimizer_deinit(o);
        *o = groups->optimizer;
        groups->optimizer = (ot__optimizer){0};
    }
    for (int g = 0; g < o->n_groups && groups->has_rates; g++) {
        are_same = are_same && (float)groups->rates[g] == (float)groups->rates[0];
        o->rates[g] = (float)groups->rates[g];
    }
    if (groups->has_rates) {
        o->has_rates = !are_same;
        session->learning_rate = groups->rates[0];
    }
    ot_dict_destroy(session->custom_hyper);
    session->custom_hyper = groups->custom;
    groups->custom = NULL;
}

void ot__groups_drop(ot__pending_groups *groups)
{
    ot__optimizer_deinit(&groups->optimizer);
    ot_dict_destroy(groups->custom);
    ot__free(groups->rates);
    *groups = (ot__pending_groups){0};
}
