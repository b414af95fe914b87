// SPDX-License-Identifier: Apache-2.0
// How slices count in their batch: by their rows, once, or by the weights of the labels that they
// have, of which every rank counts those of its own slices.
#include <math.h>
#include <string.h>

#include "data/data.h"
#include "dist/dist.h"
#include "train/loop.h"

static ot_status make_shares(ot__loop *l)
{
    const int64_t room = l->n_slices * OT_MIN(l->trainer->accumulation, l->n_batches);

    l->shares = ot__alloc_zero((size_t)room + 1, sizeof *l->shares);
    return ot__made(l->shares);
}

ot_status ot__loop_find_loss(ot__loop *l)
{
    OT_TRY(ot__session_find_loss(l->session, &l->loss));
    if (l->loss.kind == OT_BATCH_LOSS_MIXED)
        return ot__error(OT_ERR_UNSUPPORTED,
                         "slices: %" PRId64 ", but the loss has terms that are means over a batch "
                         "and others that are sums: give all the same reduction",
                         l->n_slices);
    if (l->loss.kind == OT_BATCH_LOSS_UNKNOWN && ot__loop_rank(l) == 0)
        ot__log(OT_LOG_WARNING,
                "slices: %" PRId64 ", and the loss is not known to be a mean or a sum over the "
                "rows of a batch, or a mean by the weights of its labels: slices count by their "
                "rows, and updates may be others than those of whole batches",
                l->n_slices);
    return l->loss.kind == OT_BATCH_LOSS_WEIGHED ? make_shares(l) : OT_OK;
}

// ---- labels ----

static ot_status count_slice(ot__loop *l, int64_t slice, int64_t n)
{
    OT_TRY(ot__batches_set_slice(l->training, slice, l->n_slices));
    OT_TRY(ot_batches_seek(l->training, l->at.epoch, l->at.batch));
    for (int64_t i = 0; i < n; i++) {
        const ot_tensor *labels;

        OT_TRY(ot__batches_next_of(l->training, l->loss.labels, &labels));
        l->shares[slice * n + i] = ot__batch_loss_weight(&l->loss, labels);
    }
    return OT_OK;
}

ot_status ot__loop_share(ot__loop *l, int64_t n)
{
    const int64_t room = l->n_slices * n;
    ot_status st = OT_OK;

    if (l->shares == NULL)
        return OT_OK;
    l->n_shared = n;
    memset(l->shares, 0, (size_t)room * sizeof *l->shares);
    for (int64_t slice = l->first_slice; slice < l->last_slice; slice++)
        OT_THEN(st, count_slice(l, slice, n));
    if (l->comm == NULL)
        return st;
    OT_TRY(ot__loop_agree(l, st, "labels"));
    return ot_comm_all_reduce(l->comm, OT_COMM_SUM, OT_F64, l->shares, room);
}

// The part of the weights of a batch's labels that a slice has; of none it is 0.
static double part_of_labels(const ot__loop *l, int64_t slice, int64_t i)
{
    double all = 0;

    for (int64_t k = 0; k < l->n_slices; k++)
        all += l->shares[k * l->n_shared + i];
    return fabs(all) > 0 ? l->shares[slice * l->n_shared + i] / all : 0;
}

// ---- weights ----

double ot__loop_weight(const ot__loop *l, int64_t slice, int64_t i, int64_t rows, int64_t all)
{
    const double part = l->shares != NULL ? part_of_labels(l, slice, i) : 0;

    if (l->loss.kind == OT_BATCH_LOSS_SUM)
        return (double)l->n_slices;
    if (fabs(part) > 0)
        return part * (double)l->n_slices;
    return (double)(rows * l->n_slices) / (double)all; // also where no label counts: it adds zeros
}

double ot__loop_loss_factor(const ot__loop *l, int64_t slice, int64_t i, int64_t rows, int64_t all)
{
    const double beside_rows = (double)all / (double)rows;

    if (l->loss.kind == OT_BATCH_LOSS_SUM)
        return l->loss.is_reduced ? beside_rows : 1;
    return l->shares != NULL ? part_of_labels(l, slice, i) * beside_rows : 1;
}
