// SPDX-License-Identifier: Apache-2.0
// What the optimizer keeps is cut over the ranks: every bucket into as many shares of about the
// same size, which begin with a row of a parameter. A share is one piece of memory in whatever
// layout, so that value, gradient and slots match element by element, and the optimizer takes parts
// of parameters as it takes whole ones.
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

// Elements of the least piece of a parameter that is rows in its layout too: 0, it cannot be cut.
static int64_t step_of_cuts(const ot_session *session, const ot__parameter *p)
{
    const ot_shape *shape = &p->value->shape;
    const int64_t unit = ot__layout_row_unit(session->packing.layouts[p->number], shape);

    return unit == 0 ? 0 : ot_tensor_count(p->value) / shape->dim[axis_of_rows(shape)] * unit;
}

// Shares of a bucket; starts[rank] in elements. Where a share of equal size would begin, it begins
// with the next row.
static void cut_bucket(const ot_session *session, const ot__bucket *b, int n_ranks, int64_t *starts)
{
    int64_t at = 0; // of the parameter at hand
    int rank = 1;

    starts[0] = 0;
    for (int i = 0; i < b->n_parameters; i++) {
        const ot__parameter *p = b->parameters[i];
        const int64_t count = ot_tensor_count(p->value), step = step_of_cuts(session, p);
        const int64_t next = at + ot__bucket_count(p->value);

        for (; rank < n_ranks; rank++) {
            const int64_t inside = b->n_elements / n_ranks * rank - at;

            if (at + inside >= next)
                break;
            starts[rank] = step == 0 || inside >= count
                               ? (inside > 0 ? next : at)
                               : at + OT_MIN((inside + step - 1) / step * step, count);
        }
        at = next;
    }
    for (; rank <= n_ranks; rank++)
        starts[rank] = b->n_elements;
}

// ---- shardings ----

// Which rows each rank has of a parameter that begins at element `at` of its bucket.
static ot_status make_state_sharding(const struct ot__ranks *ranks, const ot__parameter *p,
                                     const int64_t *starts, int64_t at, int64_t *points,
                                     ot_sharding **out)
{
    const ot_shape one = OT_SHAPE(1);
    const ot_shape *shape = p->value->shape.ndim > 0 ? &p->value->shape : &one;
    const int64_t count = ot_tensor_count(p->value);
    const int axis = axis_of_rows(shape);
    const int64_t row = count > 0 ? count / shape->dim[axis] : 1;
    ot_cut cut = OT_CUT_INIT;

    cut.group = OT_CUT_DATA;
    cut.axis = axis;
    cut.rule = OT_CUT_POINTS;
    cut.n_parts = ot_comm_world_size(ranks->comm);
    cut.points = points;
    for (int i = 0; i < cut.n_parts; i++)
        points[i] = OT_MAX(OT_MIN(starts[i] - at, count), 0) / row;
    points[cut.n_parts] = shape->dim[axis];
    return ot_sharding_create(p->value->dtype, shape, &cut, 1, -1, out);
}

static ot_status cut_slots(ot_checkpoint *checkpoint, ot__parameter *p, const ot_sharding *sharding)
{
    for (int k = 0; k < OT_SLOTS; k++) {
        ot_tensor *local;

        if (p->slots[k] == NULL)
            continue;
        OT_TRY(ot__ckpt_cut(checkpoint, sharding, p->slots[k], &local));
        ot_tensor_destroy(p->slots[k]);
        p->slots[k] = local;
    }
    return OT_OK;
}

static ot_status cut_parameters(ot_session *session, const ot__bucket *b, const int64_t *starts,
                                int64_t *points)
{
    struct ot__ranks *ranks = session->ranks;
    const int64_t first = starts[ot_comm_rank(ranks->comm)];
    int64_t at = 0;

    for (int i = 0; i < b->n_parameters; i++) {
        ot__parameter *p = b->parameters[i];
        ot_sharding *sharding;

        OT_TRY(make_state_sharding(ranks, p, starts, at, points, &sharding));
        OT_TRY(ot__ckpt_keep_sharding(session->checkpoint, sharding));
        ot__ckpt_unpack(session->checkpoint, p);
        OT_TRY(cut_slots(session->checkpoint, p, sharding));
        p->state_sharding = sharding;
        ranks->first_here[p->number] = OT_MAX(OT_MIN(first - at, ot_tensor_count(p->value)), 0);
        at += ot__bucket_count(p->value);
    }
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

// Where ranks have other layouts than rank 0, for their processors differ, or have made no plan
// yet, parameters are row-major on all.
static ot_status agree_on_layouts(ot_session *session)
{
    ot_comm *comm = session->ranks->comm;
    const uint64_t mine = hash_layouts(session);
    ot_agreement a = OT_AGREEMENT_INIT;
    uint64_t first = mine;

    OT_TRY(ot__comm_spread(comm, OT_TAG_BROADCAST, 0, &first, sizeof first, "update"));
    a.call = "update";
    a.any = mine != first || mine == 0;
    OT_TRY(ot_comm_agree(comm, &a));
    if (a.any != 0) {
        ot__log(OT_LOG_INFO, "the ranks have parameters in different layouts: they keep them "
                             "row-major");
        a.status = ot__packing_give_up(session);
        OT_TRY(ot_comm_agree(comm, &a));
    }
    return OT_OK;
}

// ---- all of it ----

static ot_status cut_all(ot_session *session, int64_t *starts, int64_t *points)
{
    struct ot__ranks *ranks = session->ranks;
    ot_status st = OT_OK;

    session->checkpoint->places[OT_CUT_DATA] = ot_comm_rank(ranks->comm);
    for (int k = 0; k < ranks->n_buckets; k++) {
        ot__bucket *b = &ranks->buckets[k];

        cut_bucket(session, b, ot_comm_world_size(ranks->comm), starts);
        OT_THEN(st, cut_parameters(session, b, starts, points));
        memcpy(b->starts, starts, ((size_t)ot_comm_world_size(ranks->comm) + 1) * sizeof *starts);
    }
    return st;
}

ot_status ot__zero_cut(ot_session *session)
{
    struct ot__ranks *ranks = session->ranks;
    const size_t n = (size_t)ot_comm_world_size(ranks->comm) + 1;
    int64_t *starts, *points;
    ot_status st;

    if (ranks->zero == 0 || ranks->is_cut)
        return OT_OK;
    OT_TRY(agree_on_layouts(session));
    starts = ot__alloc_zero(n, sizeof *starts);
    points = ot__alloc_zero(n, sizeof *points);
    ot__free(ranks->first_here); // of a call that failed
    ranks->first_here = ot__alloc_zero((size_t)session->n_parameters + 1, sizeof(int64_t));
    st = ot__made(starts != NULL && points != NULL && ranks->first_here != NULL);
    OT_THEN(st, cut_all(session, starts, points));
    ot__free(starts);
    ot__free(points);
    OT_TRY(ot__ranks_agree(ranks->comm, st, "update", NULL, 0));
    ranks->is_cut = true;
    ot__compiled_model_drop_plans(&session->optimizer.program); // of whole slots
    session->optimizer.plan = NULL;
    return ot__buckets_set_slices(session, ranks->n_slices);
}

// ---- values, behind an update ----

ot_status ot__zero_gather(ot_session *session)
{
    struct ot__ranks *ranks = session->ranks;
    ot_status st = OT_OK;

    for (int k = 0; k < ranks->n_buckets && ranks->zero > 0; k++) {
        void *buffers[OT_TREE_COVER_MAX] = {ranks->buckets[k].parameters[0]->value->data};

        OT_TRY(ot__reduce_start(ranks->buckets[k].reduce, OT_REDUCE_GATHER, buffers));
    }
    for (int k = 0; k < ranks->n_buckets && ranks->zero > 0; k++)
        OT_THEN(st, ot__reduce_wait(ranks->buckets[k].reduce));
    return st;
}
