// SPDX-License-Identifier: Apache-2.0
// The first phase of setting a state: all of it is compared with what the session has, and nothing
// is changed.
#include <string.h>

#include "session/set_shards.h"

// ---- one tensor ----

static ot_status note_tensor(ot__pending_state *pending, ot_report_category category,
                             unsigned section, const char *label, ot_dtype dtype,
                             const ot_shape *shape, ot_dtype expected_dtype,
                             const ot_shape *expected)
{
    ot__buf text = {0};
    ot_status st;

    ot__buf_printf(&text, "is %s%s, expected %s%s", ot_dtype_name(dtype), OT_SHAPE_TEXT(shape),
                   ot_dtype_name(expected_dtype), OT_SHAPE_TEXT(expected));
    st = ot__buf_status(&text);
    OT_THEN(st, ot__report_add(pending->report, category, section, label, text.data));
    ot__buf_deinit(&text);
    return st;
}

// Given parts have no element in common; so all of a box is there when as many are.
static int64_t count_given(const ot__pending_tensor *t, const ot_box *box)
{
    int64_t count = 0;

    for (int i = 0; i < t->shards->n_parts; i++) {
        const ot_box given = ot__box_in_checkpoint(t->name, t->sharding, &t->shards->boxes[i]);
        ot_box both;

        if (ot_box_intersect(box, &given, &both))
            count += ot__box_count(&both);
    }
    return count;
}

static ot_status check_box_given(const ot__pending_tensor *t, const ot_box *box, const char *label)
{
    const int64_t expected = ot__box_count(box), found = count_given(t, box);

    return found == expected
               ? OT_OK
               : ot__error(OT_ERR_INVALID,
                           "the parts of '%s' have %" PRId64 " of the %" PRId64
                           " elements that are here: states cut in another way are set whole, or "
                           "by way of a checkpoint directory",
                           label, found, expected);
}

static ot_status check_parts_given(const ot__pending_state *pending, const ot__pending_tensor *t,
                                   const char *label)
{
    const ot_checkpoint *checkpoint = pending->call->checkpoint;
    ot_box whole = {.ndim = ot__parameter_shape(t->name->parameter)->ndim};
    ot_shard_box *boxes = NULL;
    int64_t n, count;
    ot_status st;

    if (t->name->how != NULL && t->name->how->transform == OT_NAME_RESHAPE)
        return ot__error(OT_ERR_UNSUPPORTED, "'%s' has another shape here: it is set whole", label);
    if (t->sharding == NULL) {
        memcpy(whole.size, ot__parameter_shape(t->name->parameter)->dim, sizeof whole.size);
        (void)ot__shape_count(ot__parameter_shape(t->name->parameter), &count);
        return count > 0 ? check_box_given(t, &whole, label) : OT_OK;
    }
    OT_TRY(ot_sharding_boxes(t->sharding, checkpoint->places, 0, NULL, &n));
    if (n == 0)
        return OT_OK;
    boxes = ot__alloc_zero((size_t)n, sizeof *boxes);
    OT_TRY(ot__made(boxes != NULL));
    st = ot_sharding_boxes(t->sharding, checkpoint->places, n, boxes, &n);
    for (int64_t i = 0; i < n && st == OT_OK; i++)
        st = check_box_given(t, &boxes[i].box, label);
    ot__free(boxes);
    return st;
}

// The type and the whole shape of what is given.
static ot_status read_given(const ot_dict *from, const char *key, ot__pending_tensor *t,
                            ot_dtype *dtype, ot_shape *shape)
{
    ot_dict_kind kind;

    OT_TRY(ot_dict_kind_of(from, key, &kind));
    if (kind == OT_DICT_TENSOR) {
        OT_TRY(ot_dict_get_tensor(from, key, &t->tensor));
        *dtype = t->tensor->dtype;
        *shape = t->tensor->shape;
    } else if (kind == OT_DICT_SHARDS) {
        OT_TRY(ot_dict_get_shards(from, key, &t->shards));
        *dtype = t->shards->dtype;
        *shape = t->shards->shape;
    }
    return OT_OK;
}

static ot_status append_tensor(ot__pending_state *pending, const ot__pending_tensor *t)
{
    OT_TRY(
        ot__made(ot__grow(&pending->tensors, &pending->capacity, pending->n_tensors, sizeof *t)));
    pending->tensors[pending->n_tensors++] = *t;
    return OT_OK;
}

static bool is_castable(const ot_state_dict_options *o, ot_dtype from, ot_dtype to)
{
    return o->allow_cast != 0 && from != OT_STRING && to != OT_STRING && ot_dtype_size(from) > 0 &&
           ot_dtype_size(to) > 0;
}

// Of whole tensors that rank 0 gives, the other ranks know type and shape.
static bool receives(const ot__state_call *call)
{
    return call->options.scatter == OT_SCATTER_ROOT && !ot__state_is_root(call);
}

ot_status ot__pending_add(ot__pending_state *pending, unsigned section, const char *label,
                          const ot_dict *from, const char *key, ot__pending_tensor *t)
{
    const ot_state_dict_options *o = &pending->call->options;
    const ot_shape expected = ot__state_shape(t->name);
    const ot_dtype wanted = t->name->parameter->value->dtype;
    ot_dtype dtype = OT_DTYPE_UNDEFINED;
    ot_shape shape;

    OT_TRY(read_given(from, key, t, &dtype, &shape));
    if (t->tensor == NULL && t->shards == NULL)
        return ot__report_add(pending->report, OT_REPORT_DTYPE, section, label, "is not a tensor");
    if (!ot__shape_equal(&shape, &expected))
        return note_tensor(pending, OT_REPORT_SHAPE, section, label, dtype, &shape, wanted,
                           &expected);
    if (dtype != wanted && !is_castable(o, dtype, wanted))
        return note_tensor(pending, OT_REPORT_DTYPE, section, label, dtype, &shape, wanted,
                           &expected);
    if (t->shards != NULL && o->scatter == OT_SCATTER_SHARDED)
        OT_TRY(check_parts_given(pending, t, label));
    else if (t->shards != NULL && !receives(pending->call))
        return ot__error(OT_ERR_INVALID, "'%s' is given in parts, expected whole", label);
    return append_tensor(pending, t);
}

// ---- the model ----

// Of a parameter's names the first that is given counts.
static const char *given_name(const ot__state_call *call, const ot_dict *model,
                              const ot__parameter *p)
{
    for (int i = 0; i < call->n_names; i++)
        if (call->names[i].parameter == p && ot__dict_has(model, call->names[i].name))
            return call->names[i].name;
    return NULL;
}

static ot_status check_parameter_given(ot__pending_state *pending, const ot_dict *model,
                                       const ot__state_name *name)
{
    ot__pending_tensor t = {
        .name = name, .to = name->parameter->value, .sharding = name->parameter->value_sharding};
    const bool is_there = ot__dict_has(model, name->name);

    if (is_there)
        return ot__pending_add(pending, OT_STATE_MODEL, name->name, model, name->name, &t);
    if (name->is_optional || given_name(pending->call, model, name->parameter) != NULL)
        return OT_OK;
    return ot__report_add(pending->report, OT_REPORT_MISSING, OT_STATE_MODEL, name->name, "");
}

static ot_status check_unexpected(ot__pending_state *pending, const ot_dict *model)
{
    const ot__state_call *call = pending->call;

    for (int i = 0; i < ot_dict_count(model); i++) {
        const char *name = ot_dict_name(model, i);

        if (ot__map_get(&call->by_name, name) == NULL && ot__state_includes(call, name) &&
            ot__bytes_find(call->session, name) == NULL)
            OT_TRY(ot__report_add(pending->report, OT_REPORT_UNEXPECTED, OT_STATE_MODEL, name, ""));
    }
    return OT_OK;
}

static ot_status check_bytes(ot__pending_state *pending, const ot_dict *model)
{
    const ot__state_call *call = pending->call;
    const void *data;
    size_t n_bytes;

    pending->has_bytes = true;
    for (const ot__named_bytes *b = call->session->bytes; b != NULL; b = b->next) {
        ot_dict_kind kind = OT_DICT_BYTES;

        data = b->data;
        n_bytes = b->n_bytes;
        if (!ot__dict_has(model, b->name)) {
            if (ot__state_includes(call, b->name))
                OT_TRY(ot__report_add(pending->report, OT_REPORT_MISSING, OT_STATE_MODEL, b->name,
                                      ""));
        } else if (ot_dict_kind_of(model, b->name, &kind) == OT_OK && kind != OT_DICT_BYTES) {
            OT_TRY(ot__report_add(pending->report, OT_REPORT_DTYPE, OT_STATE_MODEL, b->name,
                                  "is not a byte string"));
        } else {
            OT_TRY(ot_dict_get_bytes(model, b->name, &data, &n_bytes));
        }
        OT_TRY(ot__bytes_put(&pending->bytes, b->name, data, n_bytes));
    }
    return OT_OK;
}

static ot_status check_model(ot__pending_state *pending, const ot_dict *model)
{
    for (int i = 0; i < pending->call->n_names; i++)
        OT_TRY(check_parameter_given(pending, model, &pending->call->names[i]));
    OT_TRY(check_unexpected(pending, model));
    return check_bytes(pending, model);
}

// ---- what goes on bit for bit needs besides ----

static ot_status check_own_state(ot__pending_state *pending, ot_dict *train)
{
    ot__resume *r = &pending->resume;
    const char *text;
    int64_t number;

    pending->has_resume = true;
    OT_TRY(ot__properties_check(pending->call->checkpoint, train, &pending->properties));
    if (pending->call->owner != NULL)
        OT_TRY(pending->call->owner->check(pending->call->owner->context, train));
    if (ot__dict_has(train, OT_KEY_TRAIN_SEED)) {
        OT_TRY(ot_dict_get_int(train, OT_KEY_TRAIN_SEED, &number));
        r->has_seed = true;
        r->seed = (uint64_t)number;
    }
    if (ot__dict_has(train, OT_KEY_TRAIN_COUNTER)) {
        OT_TRY(ot_dict_get_int(train, OT_KEY_TRAIN_COUNTER, &number));
        r->has_counter = true;
        r->counter = (uint64_t)number;
    }
    if (ot__dict_has(train, OT_KEY_TRAIN_RATE)) {
        if (!ot__given_number(train, OT_KEY_TRAIN_RATE, &r->learning_rate) ||
            !ot__is_learning_rate(r->learning_rate))
            return ot__error(OT_ERR_INVALID,
                             "'%s' of the state is not a finite number of at least 0",
                             OT_KEY_TRAIN_RATE);
        r->has_rate = true;
    }
    if (ot__dict_has(train, OT_KEY_TRAIN_SCHEDULE)) {
        OT_TRY(ot_dict_get_string(train, OT_KEY_TRAIN_SCHEDULE, &text));
        OT_TRY(ot__schedule_parse(text, &r->schedule));
        r->has_schedule = true;
    }
    if (!ot__dict_has(train, OT_KEY_SLOT_STEP))
        return OT_OK;
    OT_TRY(ot_dict_get_int(train, OT_KEY_SLOT_STEP, &pending->step));
    return pending->step >= 0 ? OT_OK
                              : ot__error(OT_ERR_INVALID, "'%s' of the state is %" PRId64,
                                          OT_KEY_SLOT_STEP, pending->step);
}

// ---- the whole ----

// A section that is asked for; NULL: the state has none of it, which is not refused.
static ot_status find_given_section(const ot__pending_state *pending, ot_dict *state,
                                    unsigned section, const char *name, ot_dict **out)
{
    const ot_state_dict_options *o = &pending->call->options;
    const bool may_lack = o->strictness == OT_STRICTNESS_SUBSET ||
                          o->strictness == OT_STRICTNESS_NONE || o->n_include > 0 ||
                          (section == OT_STATE_MODEL && o->skip_frozen != 0);

    *out = NULL;
    if ((pending->call->sections & section) == 0)
        return OT_OK;
    if (ot__dict_has(state, name))
        OT_TRY(ot_dict_get_dict(state, name, out));
    if (section == OT_STATE_OPTIMIZER && !ot__session_has_optimizer(pending->call->session))
        *out = NULL;
    else if ((*out == NULL || ot_dict_count(*out) == 0) && section != OT_STATE_OWN && !may_lack)
        return ot__error(OT_ERR_NOT_FOUND, "the state has no '%s', or nothing in it", name);
    return OT_OK;
}

ot_status ot__pending_check(ot__pending_state *pending, ot_dict *state)
{
    ot_dict *section;

    OT_TRY(find_given_section(pending, state, OT_STATE_MODEL, OT_KEY_SECTION_MODEL, &section));
    if (section != NULL)
        OT_TRY(check_model(pending, section));
    OT_TRY(
        find_given_section(pending, state, OT_STATE_OPTIMIZER, OT_KEY_SECTION_OPTIMIZER, &section));
    if (section != NULL)
        OT_TRY(ot__pending_check_optimizer(pending, section));
    OT_TRY(find_given_section(pending, state, OT_STATE_OWN, OT_KEY_SECTION_OWN, &section));
    if (section != NULL)
        OT_TRY(check_own_state(pending, section));
    return ot__pending_verdict(pending);
}
