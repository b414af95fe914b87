// SPDX-License-Identifier: Apache-2.0
// Gradients of an accumulation under way, of sessions whose state is cut over ranks: as one process
// has them that is given the batches of all, which is the mean over the ranks.
#include <string.h>

#include "session/ranks.h"

bool ot__session_has_cut_gradients(const ot_session *session)
{
    return ot__ranks_cut_gradients(session) && session->ranks->is_cut;
}

// ---- whole ones ----

static ot_status lay_share(const ot_session *session, const ot__parameter *p, ot_tensor *whole)
{
    const ot_sharding *sharding = p->state_sharding;
    const int *places = session->checkpoint->places;
    ot_shard_box *boxes;
    ot_status st;
    int64_t n;

    OT_TRY(ot_sharding_boxes(sharding, places, 0, NULL, &n));
    boxes = ot__alloc_zero((size_t)n + 1, sizeof *boxes);
    OT_TRY(ot__made(boxes != NULL));
    st = ot_sharding_boxes(sharding, places, n, boxes, &n);
    for (int64_t i = 0; i < n && st == OT_OK; i++)
        ot__box_copy(whole->data, ot_sharding_shape(sharding), boxes[i].box.offset,
                     p->gradient->data, &p->gradient->shape, boxes[i].local, boxes[i].box.size,
                     ot_dtype_size(whole->dtype));
    ot__free(boxes);
    return st;
}

// What this rank has of a gradient, in zeros.
static ot_status lay_gradient(const ot_session *session, const ot__parameter *p, ot_tensor **out)
{
    ot_tensor *whole;
    ot_status st = OT_OK;

    OT_TRY(ot_tensor_create(p->gradient->dtype, ot__parameter_shape(p), &whole));
    if (ot__session_has_cut_gradients(session))
        st = lay_share(session, p, whole);
    else if (whole->n_bytes > 0)
        memcpy(whole->data, p->gradient->data, whole->n_bytes);
    return OT_HAND_OUT(st, out, whole, ot_tensor_destroy);
}

static bool has_gradient(const ot__parameter *p)
{
    return p->trainable && p->gradient != NULL;
}

static ot_status lay_gradients(const ot_session *session, ot_dict *to, int64_t *most)
{
    const ot_checkpoint *checkpoint = session->checkpoint;

    for (int i = 0; i < checkpoint->n_parameters; i++) {
        ot__parameter *p = checkpoint->parameters[i];
        ot_tensor *whole;
        ot_status st;

        if (!has_gradient(p))
            continue;
        ot__ckpt_unpack(checkpoint, p);
        OT_TRY(lay_gradient(session, p, &whole));
        *most = OT_MAX(*most, ot_tensor_count(whole));
        st = ot_dict_take_tensor(to, p->name, whole);
        if (st != OT_OK)
            ot_tensor_destroy(whole);
        OT_TRY(st);
    }
    return OT_OK;
}

static ot_status average_gradient(const ot_session *session, ot_tensor *whole, double *sums)
{
    const int64_t count = ot_tensor_count(whole);

    (void)ot__convert(sums, OT_F64, whole->data, whole->dtype, count);
    OT_TRY(ot_comm_all_reduce(session->ranks->comm, OT_COMM_SUM, OT_F64, sums, count));
    for (int64_t i = 0; i < count; i++)
        sums[i] /= session->ranks->n_ranks;
    (void)ot__convert(whole->data, whole->dtype, sums, OT_F64, count);
    return OT_OK;
}

ot_status ot__session_gather_gradients(ot_session *session, ot_dict **out)
{
    ot_dict *gradients = NULL;
    double *sums = NULL;
    int64_t most = 1;
    ot_status st = ot_dict_create(&gradients);

    OT_THEN(st, lay_gradients(session, gradients, &most));
    if (st == OT_OK) {
        sums = ot__alloc((size_t)most * sizeof *sums);
        st = ot__made(sums != NULL);
    }
    st = ot__session_agree(session, st, "gradients");
    for (int i = 0; st == OT_OK && i < ot_dict_count(gradients); i++) {
        const ot_tensor *whole;

        st = ot_dict_get_tensor(gradients, ot_dict_name(gradients, i), &whole);
        OT_THEN(st, average_gradient(session, (ot_tensor *)(uintptr_t)whole, sums));
    }
    ot__free(sums);
    return OT_HAND_OUT(st, out, gradients, ot_dict_destroy);
}

// ---- and their parts ----

ot_status ot__session_cut_gradients(ot_session *session)
{
    return ot__ranks_cut_gradients(session) ? ot__zero_cut(session) : OT_OK;
}

// A share is a sum over the ranks.
ot_status ot__session_part_of_gradient(const ot_session *session, const ot__parameter *p,
                                       const ot_tensor *whole, ot_tensor **out)
{
    const int n_ranks = session->ranks->n_ranks;
    ot_tensor *part;

    OT_TRY(ot__ckpt_cut(session->checkpoint, p->state_sharding, whole, out));
    part = *out;
    for (int64_t i = 0; i < ot_tensor_count(part); i++)
        if (part->dtype == OT_F32)
            ((float *)part->data)[i] *= (float)n_ranks;
        else
            ((double *)part->data)[i] *= n_ranks;
    return OT_OK;
}
