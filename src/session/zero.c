// SPDX-License-Identifier: Apache-2.0
// What zero says is cut over the ranks: every bucket into as many shares of about the same size,
// which begin with a row of a parameter. A share is one piece of memory in whatever layout, so that
// value, gradient and slots match element by element, and the optimizer takes parts of parameters
// as it takes whole ones.
#include "session/ranks.h"

#include <string.h>

// ---- where a bucket may be cut ----

// The axis that is cut: the first one that has more than one element.
static int axis_of_rows(const ot_shape *shape)
{
    int axis = 0;

    while (axis < shape->ndim - 1 && shape->dim[axis] == 1)
        axis++;
    return axis;
}

static int64_t count_of_parameter(const ot__parameter *p)
{
    int64_t count;

    return ot__shape_count(ot__parameter_shape(p), &count) ? count : 0;
}

// Elements of the least piece of a parameter that is rows in its layout too: 0, it cannot be cut.
static int64_t step_of_cuts(const ot_session *session, const ot__parameter *p)
{
    const ot_shape *shape = ot__parameter_shape(p);
    const ot_layout *layout =
        session->packing.layouts != NULL ? session->packing.layouts[p->number] : NULL;
    const int64_t unit = ot__layout_row_unit(layout, shape);

    return unit == 0 ? 0 : count_of_parameter(p) / shape->dim[axis_of_rows(shape)] * unit;
}

// Shares of a bucket, in elements. Where a share of equal size would begin, it begins with the next
// row.
static void cut_bucket(const ot_session *session, ot__bucket *b, int n_ranks)
{
    int rank = 1;

    b->starts[0] = 0;
    for (int i = 0; i < b->n_parameters; i++) {
        const ot__parameter *p = b->parameters[i];
        const int64_t at = session->ranks->offset_of[p->number];
        const int64_t count = count_of_parameter(p), step = step_of_cuts(session, p);
        const int64_t next = i + 1 < b->n_parameters
                                 ? session->ranks->offset_of[b->parameters[i + 1]->number]
                                 : b->n_elements;

        for (; rank < n_ranks; rank++) {
            const int64_t inside = b->n_elements / n_ranks * rank - at;
            const int64_t cut = step > 0 ? (inside + step - 1) / step * step : count;

            if (at + inside >= next)
                break;
            b->starts[rank] = inside <= 0 ? at : cut >= count ? next : at + cut;
        }
    }
    for (; rank <= n_ranks; rank++)
        b->starts[rank] = b->n_elements;
}

void ot__zero_find_shares(const ot_session *session)
{
    const struct ot__ranks *ranks = session->ranks;

    for (int k = 0; k < ranks->n_buckets; k++)
        cut_bucket(session, &ranks->buckets[k], ranks->n_ranks);
}

// ---- shardings ----

// Which rows each rank has of a parameter.
static ot_status make_state_sharding(const struct ot__ranks *ranks, const ot__bucket *b,
                                     const ot__parameter *p, int64_t *points, ot_sharding **out)
{
    const ot_shape one = OT_SHAPE(1);
    const ot_shape *shape = ot__parameter_shape(p)->ndim > 0 ? ot__parameter_shape(p) : &one;
    const int64_t count = count_of_parameter(p), at = ranks->offset_of[p->number];
    const int axis = axis_of_rows(shape);
    const int64_t row = count > 0 ? count / shape->dim[axis] : 1;
    ot_cut cut = OT_CUT_INIT;

    cut.group = OT_CUT_DATA;
    cut.axis = axis;
    cut.rule = OT_CUT_POINTS;
    cut.n_parts = ranks->n_ranks;
    cut.points = points;
    for (int i = 0; i < cut.n_parts; i++)
        points[i] = OT_MAX(OT_MIN(b->starts[i] - at, count), 0) / row;
    points[cut.n_parts] = shape->dim[axis];
    return ot_sharding_create(p->value->dtype, shape, &cut, 1, -1, out);
}

// All slots of a parameter, or none.
static ot_status cut_slots(ot_checkpoint *checkpoint, ot__parameter *p, const ot_sharding *sharding)
{
    ot_tensor *local[OT_SLOTS] = {NULL};
    ot_status st = OT_OK;

    for (int k = 0; k < OT_SLOTS && st == OT_OK; k++)
        if (p->slots[k] != NULL)
            st = ot__ckpt_cut(checkpoint, sharding, p->slots[k], &local[k]);
    for (int k = 0; k < OT_SLOTS; k++) {
        ot_tensor *unused = st == OT_OK && local[k] != NULL ? p->slots[k] : local[k];

        if (st == OT_OK && local[k] != NULL)
            p->slots[k] = local[k];
        ot_tensor_destroy(unused);
    }
    return st;
}

// Unless an earlier call, which failed for something else, has.
static ot_status cut_state(ot_session *session, const ot__bucket *b, ot__parameter *p,
                           int64_t *points)
{
    struct ot__ranks *ranks = session->ranks;
    const int64_t first = b->starts[ranks->rank];
    ot_sharding *sharding;

    if (p->state_sharding != NULL)
        return OT_OK;
    OT_TRY(make_state_sharding(ranks, b, p, points, &sharding));
    OT_TRY(ot__ckpt_keep_sharding(session->checkpoint, sharding));
    ot__ckpt_unpack(session->checkpoint, p);
    OT_TRY(cut_slots(session->checkpoint, p, sharding));
    p->state_sharding = sharding;
    ranks->first_here[p->number] =
        OT_MAX(OT_MIN(first - ranks->offset_of[p->number], count_of_parameter(p)), 0);
    return OT_OK;
}

// ---- gradients and values: shares of their buckets ----

// What is here of a parameter, in the share of its bucket.
typedef struct share_part {
    ot_shape shape;
    size_t n_bytes;
    char *place;
} share_part;

static ot_status find_part(const ot_session *session, const ot__bucket *b, const ot__parameter *p,
                           char *share, share_part *out)
{
    const struct ot__ranks *ranks = session->ranks;
    const int64_t at =
        ranks->offset_of[p->number] + ranks->first_here[p->number] - b->starts[ranks->rank];

    OT_TRY(ot__ckpt_state_shape(session->checkpoint, p, &out->shape));
    OT_TRY(ot__tensor_sizes(b->dtype, &out->shape, &out->n_bytes));
    out->place = out->n_bytes > 0 ? share + (size_t)at * ot_dtype_size(b->dtype) : share;
    return OT_OK;
}

static ot_status cut_gradients(ot_session *session, ot__bucket *b)
{
    const struct ot__ranks *ranks = session->ranks;
    const size_t n_bytes = ot__bucket_share_bytes(ranks, b);
    void *share;

    if (!ranks->cuts_gradients || b->gradient_share != NULL)
        return OT_OK;
    OT_TRY(ot__ckpt_add_block(session->checkpoint, n_bytes, &share));
    for (int i = 0; i < b->n_parameters; i++) {
        ot__parameter *p = b->parameters[i];
        ot_tensor *gradient;
        share_part part;

        OT_TRY(find_part(session, b, p, share, &part));
        OT_TRY(ot_tensor_wrap(b->dtype, &part.shape, part.place, part.n_bytes, &gradient));
        ot_tensor_destroy(p->gradient);
        p->gradient = gradient;
    }
    b->gradient_share = share;
    return OT_OK;
}

// The memory of the whole bucket, in which its values alone lie, goes.
static ot_status cut_values(ot_session *session, ot__bucket *b)
{
    const struct ot__ranks *ranks = session->ranks;
    const size_t element = ot_dtype_size(b->dtype), n_bytes = ot__bucket_share_bytes(ranks, b);
    const char *whole = b->parameters[0]->value->data;
    void *share;

    if (!ranks->cuts_values || b->value_share != NULL)
        return OT_OK;
    OT_TRY(ot__ckpt_add_block(session->checkpoint, n_bytes, &share));
    if (n_bytes > 0)
        memcpy(share, whole + (size_t)b->starts[ranks->rank] * element, n_bytes);
    for (int i = 0; i < b->n_parameters; i++) {
        ot__parameter *p = b->parameters[i];
        share_part part;

        OT_TRY(find_part(session, b, p, share, &part));
        p->is_scalar = p->value->shape.ndim == 0;
        ot__tensor_become(p->value, &part.shape, part.place);
        p->value_sharding = p->state_sharding;
    }
    b->value_share = share;
    ot__ckpt_drop_block(session->checkpoint, whole);
    return OT_OK;
}

// ---- layouts ----

static uint64_t hash_layouts(const ot_session *session)
{
    uint64_t id = 1;

    if (session->packing.layouts == NULL)
        return 0;
    for (int i = 0; i < session->n_parameters; i++) {
        const ot_layout *layout = session->packing.layouts[i];

        if (layout == NULL)
            id = ot__id_mix_word(id, 0);
        else
            id = ot__id_mix(id, layout, sizeof *layout);
    }
    return id;
}

// Sums over slices that wait lie as the steps left them that made them.
static void unpack_waiting_sums(ot_session *session)
{
    const ot__packing *packing = &session->packing;
    const int n = session->slices.is_under_way ? session->slices.n_waiting : 0;

    for (int i = 0; i < session->n_parameters && packing->layouts != NULL; i++) {
        const ot_tensor *t = session->parameters[i]->value; // as its gradient

        for (int k = 0; k < n && packing->layouts[i] != NULL; k++)
            if (session->slices.sets[k].gradients[i] != NULL)
                ot__layout_convert_in_place(session->slices.sets[k].gradients[i], NULL,
                                            packing->layouts[i], &t->shape, ot_dtype_size(t->dtype),
                                            packing->buffer);
    }
}

// Where ranks have other layouts than rank 0, for their processors differ, or have made no plan
// yet, parameters are row-major on all.
static ot_status agree_on_layouts(ot_session *session)
{
    ot_comm *comm = session->ranks->comm;
    const uint64_t mine = hash_layouts(session);
    const uint64_t of_none = (uint64_t)ot_comm_rank(comm); // no other rank's
    bool differ;

    OT_TRY(ot__ranks_compare(comm, mine != 0 ? mine : of_none, "update", &differ));
    if (!differ)
        return OT_OK;
    ot__log(OT_LOG_INFO, "the ranks have parameters in different layouts: they keep them "
                         "row-major");
    unpack_waiting_sums(session);
    return ot__ranks_agree(comm, ot__packing_give_up(session), "update", NULL, 0);
}

ot_status ot__ranks_settle_layouts(ot_session *session)
{
    if (session->ranks->has_layouts)
        return OT_OK;
    OT_TRY(agree_on_layouts(session));
    session->ranks->has_layouts = true;
    return OT_OK;
}

// Parts of parameters are packed in the layouts that there were when these were cut.
ot_status ot__ranks_forget_layouts(ot_session *session)
{
    struct ot__ranks *ranks = session->ranks;

    if (ranks == NULL)
        return OT_OK;
    if (ranks->is_half_cut && session->packing.buffer != NULL)
        return ot__error(OT_ERR_UNSUPPORTED,
                         "the optimizer cannot be changed once packed parameters are cut over the "
                         "ranks (zero %d): export the checkpoint, and make a session of it",
                         ranks->zero);
    ranks->has_layouts = ranks->is_half_cut;
    return OT_OK;
}

// ---- all of it ----

static ot_status cut_all(ot_session *session, int64_t *points)
{
    struct ot__ranks *ranks = session->ranks;

    session->checkpoint->places[OT_CUT_DATA] = ranks->rank;
    for (int k = 0; k < ranks->n_buckets; k++) {
        ot__bucket *b = &ranks->buckets[k];

        for (int i = 0; i < b->n_parameters; i++)
            OT_TRY(cut_state(session, b, b->parameters[i], points));
        OT_TRY(cut_gradients(session, b));
        OT_TRY(cut_values(session, b));
    }
    return OT_OK;
}

static ot_status cut_here(ot_session *session)
{
    struct ot__ranks *ranks = session->ranks;
    int64_t *points = ot__alloc_zero((size_t)ranks->n_ranks + 1, sizeof *points);
    ot_status st;

    if (ranks->first_here == NULL)
        ranks->first_here = ot__alloc_zero((size_t)session->n_parameters + 1, sizeof(int64_t));
    st = ot__made(points != NULL && ranks->first_here != NULL);
    OT_THEN(st, cut_all(session, points));
    ot__free(points);
    return st;
}

ot_status ot__zero_cut(ot_session *session)
{
    struct ot__ranks *ranks = session->ranks;
    ot_status st;

    if (ranks->zero == 0 || ranks->is_cut)
        return OT_OK;
    if (!ranks->is_half_cut) {
        OT_TRY(ot__ranks_settle_layouts(session));
        ot__zero_find_shares(session);
        ranks->is_half_cut = true;
    }
    OT_TRY(ot__ranks_agree(ranks->comm, cut_here(session), "update", NULL, 0));
    ranks->is_cut = true;
    ot__compiled_model_drop_plans(&session->optimizer.program); // of whole slots
    session->optimizer.plan = NULL;
    if (ot__ranks_gather(session, OT_MODE_EVAL))
        ot__compiled_model_drop_plans(&session->eval); // of whole values
    st = ot__buckets_set_slices(session, ranks->n_slices > 0 ? ranks->n_slices : ranks->n_ranks);
    ranks->is_cut = st == OT_OK;
    return st;
}

// ---- values, behind an update ----

ot_status ot__zero_gather(ot_session *session)
{
    struct ot__ranks *ranks = session->ranks;
    ot_status st = OT_OK;

    if (ranks->zero == 0 || ranks->cuts_values)
        return OT_OK;
    for (int k = 0; k < ranks->n_buckets; k++) {
        void *buffers[OT_TREE_COVER_MAX] = {ranks->buckets[k].parameters[0]->value->data};

        OT_TRY(ot__reduce_start(ranks->buckets[k].reduce, OT_REDUCE_GATHER, buffers));
    }
    for (int k = 0; k < ranks->n_buckets; k++)
        OT_THEN(st, ot__reduce_wait(ranks->buckets[k].reduce));
    return st;
}
