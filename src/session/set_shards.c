// SPDX-License-Identifier: Apache-2.0
// Setting a state: first all of it is checked, on all ranks, then it is copied. What needs memory
// is made before anything is changed.
#include <string.h>

#include "session/set_shards.h"

static int own_rank(const ot__state_call *call)
{
    return call->options.comm == NULL ? 0 : ot_comm_rank(call->options.comm);
}

static bool comes_from_root(const ot__state_call *call)
{
    return call->options.comm != NULL && call->options.scatter == OT_SCATTER_ROOT;
}

// ---- what is made before ----

ot_status ot__pending_add_fresh(ot__pending_state *pending, const ot__pending_tensor *t,
                                bool is_average)
{
    ot__pending_tensor own = *t;

    own.otherwise = is_average ? t->name->parameter->value : NULL;
    OT_TRY(
        ot__made(ot__grow(&pending->tensors, &pending->capacity, pending->n_tensors, sizeof own)));
    pending->tensors[pending->n_tensors++] = own;
    return OT_OK;
}

static size_t largest_given(const ot__pending_tensor *t, size_t element_size)
{
    size_t largest = 0;

    if (t->tensor != NULL)
        return (size_t)ot_tensor_count(t->tensor) * element_size;
    for (int i = 0; t->shards != NULL && i < t->shards->n_parts; i++)
        largest = OT_MAX(largest, (size_t)ot_tensor_count(t->shards->parts[i]) * element_size);
    return largest;
}

static bool is_given_transposed(const ot__pending_tensor *t)
{
    return t->name->how != NULL && t->name->how->transform == OT_NAME_TRANSPOSE;
}

static ot_status make_room(ot__pending_state *pending)
{
    size_t n_bytes[2] = {0, 0};

    for (int i = 0; i < pending->n_tensors; i++) {
        ot__pending_tensor *t = &pending->tensors[i];
        const ot_dtype dtype = t->to->dtype;
        const size_t largest = largest_given(t, ot_dtype_size(dtype));
        const ot_dtype given = t->tensor != NULL   ? t->tensor->dtype
                               : t->shards != NULL ? t->shards->dtype
                                                   : dtype;

        if (given != dtype)
            n_bytes[0] = OT_MAX(n_bytes[0], largest);
        if (is_given_transposed(t))
            n_bytes[1] = OT_MAX(n_bytes[1], largest);
        if (t->sharding != NULL)
            OT_TRY(ot__parts_make(pending->call, t->sharding, dtype, true, &t->parts));
    }
    for (int i = 0; i < 2; i++)
        if (n_bytes[i] > 0) {
            pending->scratch[i] = ot__alloc(n_bytes[i]);
            OT_TRY(ot__made(pending->scratch[i] != NULL));
        }
    return OT_OK;
}

// ---- copying: nothing can fail but messages ----

const void *ot__pending_values(const ot__pending_state *pending, const ot__pending_tensor *t,
                               const ot_tensor *given)
{
    const ot_dtype dtype = t->to->dtype;
    const void *data = given->data;

    if (given->dtype != dtype) {
        (void)ot__convert(pending->scratch[0], dtype, data, given->dtype, ot_tensor_count(given));
        data = pending->scratch[0];
    }
    if (is_given_transposed(t)) {
        ot__transpose(pending->scratch[1], data, &given->shape, t->name->how->axes,
                      ot_dtype_size(dtype));
        data = pending->scratch[1];
    }
    return data;
}

// What is here of a row-major tensor that has the parameter's shape.
static void copy_own(const ot__state_call *call, const ot__pending_tensor *t, const void *whole)
{
    const int rank = own_rank(call);

    if (t->sharding == NULL) {
        if (t->to->n_bytes > 0 && t->to->data != whole)
            memcpy(t->to->data, whole, t->to->n_bytes);
        return;
    }
    for (int64_t i = 0; i < t->parts.n_boxes[rank]; i++) {
        const ot_shard_box *b = &t->parts.boxes[rank][i];

        ot__box_copy(t->to->data, &t->to->shape, b->local, whole, ot_sharding_shape(t->sharding),
                     b->box.offset, b->box.size, ot_dtype_size(t->to->dtype));
    }
}

static void copy_box_of_part(const ot__pending_tensor *t, const ot_shard_box *own,
                             const ot_box *box, const void *data)
{
    int64_t to[OT_MAX_NDIM], from[OT_MAX_NDIM];
    ot_shape shape = {.ndim = box->ndim};
    ot_box both;

    if (!ot_box_intersect(&own->box, box, &both))
        return;
    memcpy(shape.dim, box->size, sizeof shape.dim);
    for (int k = 0; k < box->ndim; k++) {
        to[k] = own->local[k] + both.offset[k] - own->box.offset[k];
        from[k] = both.offset[k] - box->offset[k];
    }
    ot__box_copy(t->to->data, &t->to->shape, to, data, &shape, from, both.size,
                 ot_dtype_size(t->to->dtype));
}

void ot__pending_copy_parts(const ot__pending_state *pending, const ot__pending_tensor *t)
{
    const int rank = own_rank(pending->call);
    ot_shard_box whole = {.box.ndim = t->to->shape.ndim};

    memcpy(whole.box.size, t->to->shape.dim, sizeof whole.box.size);
    for (int i = 0; i < t->shards->n_parts; i++) {
        const ot_box box = ot__box_in_checkpoint(t->name, t->sharding, &t->shards->boxes[i]);
        const void *data;

        if (t->shards->parts[i]->data == t->to->data) // a view of what is here
            continue;
        data = ot__pending_values(pending, t, t->shards->parts[i]);
        if (t->sharding == NULL)
            copy_box_of_part(t, &whole, &box, data);
        for (int64_t k = 0; t->sharding != NULL && k < t->parts.n_boxes[rank]; k++)
            copy_box_of_part(t, &t->parts.boxes[rank][k], &box, data);
    }
}

static ot_status receive_tensor(const ot__pending_state *pending, const ot__pending_tensor *t)
{
    const ot__state_call *call = pending->call;
    const void *whole = t->tensor != NULL && ot__state_is_root(call)
                            ? ot__pending_values(pending, t, t->tensor)
                            : NULL;

    if (ot__sharding_cuts(t->sharding))
        return ot__parts_scatter(call, &t->parts, whole, t->to);
    if (whole != NULL)
        copy_own(call, t, whole);
    return ot__comm_spread(call->options.comm, OT_TAG_BROADCAST, 0, t->to->data, t->to->n_bytes,
                           call->what);
}

static ot_status take_given(const ot__pending_state *pending, const ot__pending_tensor *t)
{
    if (t->tensor == NULL && t->shards == NULL) {
        if (t->otherwise == NULL && t->to->n_bytes > 0)
            memset(t->to->data, 0, t->to->n_bytes);
        else if (t->otherwise != NULL && t->otherwise->n_bytes == t->to->n_bytes)
            memcpy(t->to->data, t->otherwise->data, t->to->n_bytes);
        else if (t->otherwise != NULL)
            copy_own(pending->call, t, t->otherwise->data);
        return OT_OK;
    }
    if (comes_from_root(pending->call))
        return receive_tensor(pending, t);
    if (t->tensor != NULL)
        copy_own(pending->call, t, ot__pending_values(pending, t, t->tensor));
    else
        ot__pending_copy_parts(pending, t);
    return OT_OK;
}

static void take_numbers_of_state(ot__pending_state *pending)
{
    ot_session *session = pending->call->session;
    ot_checkpoint *checkpoint = session->checkpoint;
    ot__named_bytes *bytes = session->bytes;

    for (int i = 0; pending->updates != NULL && i < session->optimizer.n_parameters; i++)
        session->optimizer.parameters[i]->n_updates = pending->updates[i];
    if (pending->step >= 0)
        checkpoint->step = pending->step;
    for (int i = 0; pending->step >= 0 && i < session->optimizer.n_parameters; i++)
        if (!ot__counts_steps(&session->optimizer)) // their state does not say
            session->optimizer.parameters[i]->n_updates = pending->step;
    if (pending->has_resume)
        ot__session_go_to(session, &pending->resume);
    ot__groups_take(session, &pending->groups);
    ot__properties_take(checkpoint, pending->properties);
    if (pending->has_bytes) {
        session->bytes = pending->bytes;
        pending->bytes = bytes;
    }
    checkpoint->n_changes++;
    if (pending->call->owner != NULL)
        pending->call->owner->take(pending->call->owner->context);
}

// Values come before slots: an average that is not given begins with the value that is. All ranks
// have their elements, or none goes on with a state that another has a part of only.
static ot_status take_pending(ot__pending_state *pending)
{
    ot_session *session = pending->call->session;
    ot_status st = OT_OK;

    for (int i = 0; i < pending->n_tensors && st == OT_OK; i++)
        st = take_given(pending, &pending->tensors[i]);
    if (comes_from_root(pending->call))
        st = ot__state_agree(pending->call, st);
    session->is_half_set = st != OT_OK;
    if (st == OT_OK)
        take_numbers_of_state(pending);
    return st;
}

// ---- from rank 0 ----

// On the other ranks what rank 0 has, but for the elements of tensors.
static ot_status spread_state(const ot__state_call *call, const ot_dict *state, ot_dict **out)
{
    ot_comm *comm = call->options.comm;
    ot__buf bytes = {0};
    ot_status st = OT_OK;

    if (ot_comm_rank(comm) == 0 && state == NULL)
        st = ot__error(OT_ERR_INVALID, "state is NULL on rank 0, which gives it");
    if (ot_comm_rank(comm) == 0)
        OT_THEN(st, ot__dict_pack(state, &bytes));
    st = ot__comm_agree_on(comm, st, call->what, NULL, 0);
    OT_THEN(st, ot__state_spread(comm, 0, &bytes, call->what));
    if (st == OT_OK && ot_comm_rank(comm) != 0)
        st = ot__dict_unpack(bytes.data, out);
    ot__buf_deinit(&bytes);
    return st; // told with the next agreement
}

// ---- the call ----

static void end_pending(ot__pending_state *pending)
{
    for (int i = 0; i < pending->n_tensors; i++)
        ot__parts_free(&pending->tensors[i].parts);
    ot__free(pending->tensors);
    ot__free(pending->updates);
    ot__free(pending->scratch[0]);
    ot__free(pending->scratch[1]);
    ot__groups_drop(&pending->groups);
    ot_dict_destroy(pending->normal);
    ot_checkpoint_destroy(pending->properties);
    ot__bytes_free(pending->bytes);
}

static ot_status check_given_state(ot__pending_state *pending, const ot_dict *state,
                                   ot_dict **received)
{
    const ot__state_call *call = pending->call;
    ot_dict *checked = (ot_dict *)(uintptr_t)state; // only looked at
    ot_status st = OT_OK;

    if (comes_from_root(call)) {
        st = spread_state(call, state, received);
        if (st != OT_OK && *received == NULL && call->options.comm != NULL)
            return st;
        if (*received != NULL)
            checked = *received;
    } else if (state == NULL) {
        st = ot__error(OT_ERR_INVALID, "state is NULL");
    }
    for (int i = 0; i < call->checkpoint->n_parameters; i++)
        ot__ckpt_unpack(call->checkpoint, call->checkpoint->parameters[i]);
    OT_THEN(st, ot__pending_check(pending, checked));
    OT_THEN(st, make_room(pending));
    return st;
}

static ot_status set_checked_state(ot__state_call *call, const ot_dict *state, bool is_check,
                                   ot_shards_report *report)
{
    ot__pending_state pending = {.call = call, .report = report, .step = -1};
    ot_dict *received = NULL;
    ot_status st = check_given_state(&pending, state, &received);
    const ot_status joined = ot__reports_join(call, report);

    st = ot__state_agree(call, st == OT_OK ? joined : st);
    OT_THEN(st, ot__pending_agree(&pending, (ot_dict *)(uintptr_t)state));
    if (st == OT_OK && !is_check)
        st = take_pending(&pending);
    end_pending(&pending);
    ot_dict_destroy(received);
    return st;
}

ot_status ot__session_set_shards(ot_session *session, unsigned sections, const ot_dict *state,
                                 const ot_state_dict_options *options, bool is_check,
                                 const ot__state_owner *owner, ot_shards_report **out)
{
    const char *what = is_check ? "check_shards" : "set_shards";
    ot_shards_report *report = NULL;
    ot__state_call call = {0};
    ot_status st = ot__state_begin(&call, what, session, sections, options, true);

    call.owner = owner;
    if (st == OT_OK)
        st = ot__state_agree(&call, ot__report_create(&report));
    OT_THEN(st, set_checked_state(&call, state, is_check, report));
    ot__state_end(&call);
    if (out != NULL)
        *out = report;
    else
        ot_shards_report_destroy(report);
    return st;
}

ot_status ot_session_set_shards(ot_session *session, unsigned sections, const ot_dict *state,
                                const ot_state_dict_options *options, ot_shards_report **report)
{
    if (report != NULL)
        *report = NULL;
    OT_TRY(OT_OPTIONAL(state, "state"));
    OT_TRY(ot__session_enter_step(session));
    return ot__session_leave(
        session, ot__session_set_shards(session, sections, state, options, false, NULL, report));
}

ot_status ot_session_check_shards(ot_session *session, unsigned sections, const ot_dict *state,
                                  const ot_state_dict_options *options, ot_shards_report **report)
{
    if (report != NULL)
        *report = NULL;
    OT_TRY(OT_OPTIONAL(state, "state"));
    OT_TRY(ot__session_enter_step(session));
    return ot__session_leave(
        session, ot__session_set_shards(session, sections, state, options, true, NULL, report));
}
