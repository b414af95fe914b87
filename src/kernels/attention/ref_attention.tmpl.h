// SPDX-License-Identifier: Apache-2.0
// One element type of ref_attention.c.

// One head: its first query, key and value, and what of the mask is for them.
typedef struct FN(head) {
    const ot__attention *a;
    const T *q, *k, *v, *y, *dy;
    int64_t mask_at, lse_at;
    const void *mask;
    const T *lse;
    const ot__attention_dropout *dropout;
} FN(head);

static FN(head)
    FN(head_of)(const ot__attention *a, const ot__attention_data *d, int64_t batch, int64_t head)
{
    const int64_t y_at = ot__heads_at(&a->y, batch, head);

    return (FN(head)){.a = a,
                      .q = (const T *)d->q + ot__heads_at(&a->q, batch, head),
                      .k = (const T *)d->k + ot__heads_at(&a->k, batch, head),
                      .v = (const T *)d->v + ot__heads_at(&a->v, batch, head),
                      .y = (const T *)d->y + y_at,
                      .dy = d->dy == NULL ? NULL : (const T *)d->dy + y_at,
                      .mask_at = ot__heads_at(&a->mask, batch, head),
                      .lse_at = (batch * a->heads + head) * a->queries,
                      .mask = d->mask,
                      .lse = d->lse,
                      .dropout = &d->dropout};
}

static double FN(dot)(const T *x, int64_t x_step, const T *z, int64_t z_step, int64_t n)
{
    double sum = 0;

    for (int64_t e = 0; e < n; e++)
        sum += (double)x[e * x_step] * (double)z[e * z_step];
    return sum;
}

// Whether the score of query i and key j is the product of the two.
static bool FN(is_product)(const FN(head) * h, int64_t i, int64_t j)
{
    const int64_t at = h->mask_at + i * h->a->mask.position + j * h->a->mask.element;

    return takes_part(h->a, i, j) &&
           (h->a->mask_kind != OT__MASK_KEPT || ((const uint8_t *)h->mask)[at] != 0);
}

static double FN(score)(const FN(head) * h, int64_t i, int64_t j)
{
    const ot__attention *a = h->a;
    const int64_t at = h->mask_at + i * a->mask.position + j * a->mask.element;
    double score;

    if (!takes_part(a, i, j))
        return -INFINITY;
    if (!FN(is_product)(h, i, j))
        return (double)a->fill;
    score = (double)a->scale * FN(dot)(h->q + i * a->q.position, a->q.element,
                                       h->k + j * a->k.position, a->k.element, a->head_size);
    return a->mask_kind == OT__MASK_ADDED ? score + (double)((const T *)h->mask)[at] : score;
}

static double FN(kept)(const FN(head) * h, int64_t i, int64_t j)
{
    return dropout_factor(h->a, h->dropout, h->lse_at * h->a->keys, i, j);
}

static void FN(attend)(const FN(head) * h, int64_t i, T *y, T *lse, double *row)
{
    const ot__attention *a = h->a;
    double shift = -INFINITY, sum = 0;

    for (int64_t j = 0; j < a->keys; j++) {
        row[j] = FN(score)(h, i, j);
        shift = row[j] > shift ? row[j] : shift;
    }
    for (int64_t j = 0; j < a->keys; j++)
        sum += row[j] = isinf(row[j]) && row[j] < 0 ? 0 : exp(row[j] - shift);
    for (int64_t j = 0; h->dropout->ratio > 0 && j < a->keys; j++)
        row[j] *= FN(kept)(h, i, j);
    for (int64_t e = 0; e < a->value_size; e++) {
        double weighted = 0;

        for (int64_t j = 0; j < a->keys; j++)
            weighted += row[j] * (double)h->v[j * a->v.position + e * a->v.element];
        y[i * a->y.position + e * a->y.element] =
            (T)(sum == 0 ? (a->has_zero_rows ? 0 : NAN) : weighted / sum);
    }
    if (lse != NULL)
        lse[h->lse_at + i] = (T)(shift + log(sum));
}

void FN(ot__ref_attention)(const ot__attention *a, const ot__attention_data *d, double *row)
{
    for (int64_t batch = 0; batch < a->batch; batch++)
        for (int64_t head = 0; head < a->heads; head++) {
            const FN(head) h = FN(head_of)(a, d, batch, head);

            for (int64_t i = 0; i < a->queries; i++)
                FN(attend)(&h, i, (T *)d->y + ot__heads_at(&a->y, batch, head), d->lse, row);
        }
}

// ---- gradients ----

// p: the probability of key j in query i, recomputed, times `kept`, 0 where it is dropped; ds: the
// gradient of their product before it is scaled. With delta = sum(dy * y):
// ds = p * (kept * dy . v - delta).
static void FN(pair)(const FN(head) * h, int64_t i, int64_t j, double *p, double *ds)
{
    const ot__attention *a = h->a;
    const double lse = (double)h->lse[h->lse_at + i];
    const T *dy = h->dy + i * a->y.position, *y = h->y + i * a->y.position;
    double change, kept;

    *p = *ds = 0;
    if (!takes_part(a, i, j) || (a->has_zero_rows && isinf(lse) && lse < 0))
        return;
    *p = exp(FN(score)(h, i, j) - lse);
    kept = FN(kept)(h, i, j);
    if (FN(is_product)(h, i, j)) {
        change = kept * FN(dot)(dy, a->y.element, h->v + j * a->v.position, a->v.element,
                                a->value_size) -
                 FN(dot)(dy, a->y.element, y, a->y.element, a->value_size);
        *ds = *p * change * (double)a->scale;
    }
    *p *= kept;
}

// to[e] = sum over n of factor * x[n][e].
static void FN(weigh)(T *to, const ot__heads *to_lies, const double *factor, const T *x,
                      const ot__heads *x_lies, int64_t n, int64_t size)
{
    for (int64_t e = 0; e < size; e++) {
        double sum = 0;

        for (int64_t k = 0; k < n; k++)
            sum += factor[k] * (double)x[k * x_lies->position + e * x_lies->element];
        to[e * to_lies->element] = (T)sum;
    }
}

static void FN(head_grad)(const FN(head) * h, T *dq, T *dk, T *dv, double *p)
{
    const ot__attention *a = h->a;
    double *ds = p + OT_MAX(a->keys, a->queries);

    for (int64_t i = 0; dq != NULL && i < a->queries; i++) {
        for (int64_t j = 0; j < a->keys; j++)
            FN(pair)(h, i, j, &p[j], &ds[j]);
        FN(weigh)(dq + i * a->q.position, &a->q, ds, h->k, &a->k, a->keys, a->head_size);
    }
    for (int64_t j = 0; (dk != NULL || dv != NULL) && j < a->keys; j++) {
        for (int64_t i = 0; i < a->queries; i++)
            FN(pair)(h, i, j, &p[i], &ds[i]);
        if (dk != NULL)
            FN(weigh)(dk + j * a->k.position, &a->k, ds, h->q, &a->q, a->queries, a->head_size);
        if (dv != NULL)
            FN(weigh)(dv + j * a->v.position, &a->v, p, h->dy, &a->y, a->queries, a->value_size);
    }
}

void FN(ot__ref_attention_grad)(const ot__attention *a, const ot__attention_data *d, double *row)
{
    for (int64_t batch = 0; batch < a->batch; batch++)
        for (int64_t head = 0; head < a->heads; head++) {
            const FN(head) h = FN(head_of)(a, d, batch, head);
            T *dq = d->dq, *dk = d->dk, *dv = d->dv;

            FN(head_grad)
            (&h, dq == NULL ? NULL : dq + ot__heads_at(&a->q, batch, head),
             dk == NULL ? NULL : dk + ot__heads_at(&a->k, batch, head),
             dv == NULL ? NULL : dv + ot__heads_at(&a->v, batch, head), row);
        }
}
