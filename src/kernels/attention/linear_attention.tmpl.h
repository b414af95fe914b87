// SPDX-License-Identifier: Apache-2.0
// Linear attention of elements T, with states and sums of A, and the table TABLE of its functions:
// ref_linear_attention.c and simd_linear_attention.c include it, with EXP for A. Rows of a block
// are OT__LINEAR_COLUMNS wide, so that loops over them have a constant length.
//
// With f = exp(decay): S' = f * S, r = S'^T k, u = beta * (v - r), S = S' + k u^T, y = scale * S^T
// q for each query head.

enum { FN(WIDTH) = OT__LINEAR_COLUMNS, FN(LANES) = 8, FN(TOGETHER) = 8 };

// One head of keys and values in one batch.
typedef struct FN(linear_head) {
    const ot__linear_attention *a;
    const ot__linear_attention_data *d;
    int64_t batch, head;
} FN(linear_head);

// ---- where things are at a step ----

static const T *FN(key_at)(const FN(linear_head) * h, const void *keys, int64_t t)
{
    const ot__linear_attention *a = h->a;

    return (const T *)keys + ((h->batch * a->length + t) * a->kv_heads + h->head) * a->key_size;
}

static int64_t FN(value_at)(const FN(linear_head) * h, int64_t t, int64_t column)
{
    const ot__linear_attention *a = h->a;

    return ((h->batch * a->length + t) * a->kv_heads + h->head) * a->value_size + column;
}

// Of the query head number `of` that reads this state; `size`: key_size or value_size.
static int64_t FN(query_at)(const FN(linear_head) * h, int64_t t, int64_t of, int64_t size)
{
    const ot__linear_attention *a = h->a;
    const int64_t head = h->head * (a->q_heads / a->kv_heads) + of;

    return ((h->batch * a->length + t) * a->q_heads + head) * size;
}

static int64_t FN(state_at)(const FN(linear_head) * h, int64_t row, int64_t column)
{
    const ot__linear_attention *a = h->a;

    return ((h->batch * a->kv_heads + h->head) * a->key_size + row) * a->value_size + column;
}

static A FN(beta_at)(const FN(linear_head) * h, int64_t t)
{
    const ot__linear_attention *a = h->a;
    const int64_t at = h->batch * a->length + t;

    return a->beta_heads == 1 ? (A)((const T *)h->d->beta)[at]
                              : (A)((const T *)h->d->beta)[at * a->kv_heads + h->head];
}

// exp(decay) of each row of the state.
static void FN(read_factors)(A *factors, const FN(linear_head) * h, int64_t t)
{
    const ot__linear_attention *a = h->a;
    const int64_t at = (h->batch * a->length + t) * a->kv_heads + h->head;
    const T *decay = (const T *)h->d->decay + at * a->decay_size;

    if (a->decay_size == 1) {
        const A factor = EXP((A)decay[0]);

        for (int64_t i = 0; i < a->key_size; i++)
            factors[i] = factor;
        return;
    }
    for (int64_t i = 0; i < a->key_size; i++)
        factors[i] = EXP((A)decay[i]);
}

// Columns of a row of T, as many as there are, and 0 beyond.
static void FN(read_columns)(A *to, const T *from, int64_t n)
{
    for (int64_t c = 0; c < FN(WIDTH); c++)
        to[c] = c < n ? (A)from[c] : 0;
}

static void FN(write_columns)(T *to, const A *from, int64_t n)
{
    for (int64_t c = 0; c < n; c++)
        to[c] = (T)from[c];
}

static int64_t FN(columns_of)(const FN(linear_head) * h, int64_t block)
{
    return OT_MIN(h->a->value_size - block * FN(WIDTH), (int64_t)FN(WIDTH));
}

static void FN(read_state)(A *state, const T *from, const FN(linear_head) * h, int64_t block)
{
    const int64_t column = block * FN(WIDTH), n = FN(columns_of)(h, block);

    memset(state, 0, (size_t)(h->a->key_size * FN(WIDTH)) * sizeof(A));
    for (int64_t i = 0; from != NULL && i < h->a->key_size; i++)
        FN(read_columns)(state + i * FN(WIDTH), from + FN(state_at)(h, i, column), n);
}

static void FN(write_state)(T *to, const A *state, const FN(linear_head) * h, int64_t block)
{
    const int64_t column = block * FN(WIDTH), n = FN(columns_of)(h, block);

    for (int64_t i = 0; to != NULL && i < h->a->key_size; i++)
        FN(write_columns)(to + FN(state_at)(h, i, column), state + i * FN(WIDTH), n);
}

// ---- a step ----

// state = f * state, where f is not NULL.
static void FN(decay_state)(A *state, const A *factors, int64_t rows)
{
    for (int64_t i = 0; factors != NULL && i < rows; i++)
        for (int64_t c = 0; c < FN(WIDTH); c++)
            state[i * FN(WIDTH) + c] *= factors[i];
}

// to = the sum over rows of weights[row] * state[row].
static void FN(weigh_rows)(A *to, const A *state, const T *weights, int64_t rows)
{
    A sums[FN(WIDTH)] = {0};

    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < FN(WIDTH); c++)
            sums[c] += state[i * FN(WIDTH) + c] * (A)weights[i];
    memcpy(to, sums, sizeof(sums));
}

// to[row] += the sum over columns of state[row] * x[row], for n <= TOGETHER rows; those of x are
// x_row apart. What is left in each lane is added up for all rows at once.
static void FN(weigh_columns_of)(A *to, const A *state, const A *x, int64_t x_row, int64_t n)
{
    A lanes[FN(TOGETHER)][FN(LANES)], sums[FN(TOGETHER)] = {0};

    for (int64_t i = 0; i < n; i++) {
        const A *row = state + i * FN(WIDTH), *by = x + i * x_row;

        for (int c = 0; c < FN(LANES); c++)
            lanes[i][c] = row[c] * by[c];
        for (int k = FN(LANES); k < FN(WIDTH); k += FN(LANES))
            for (int c = 0; c < FN(LANES); c++)
                lanes[i][c] += row[k + c] * by[k + c];
    }
    for (int c = 0; c < FN(LANES); c++)
        for (int64_t i = 0; i < n; i++)
            sums[i] += lanes[i][c];
    for (int64_t i = 0; i < n; i++)
        to[i] += sums[i];
}

static void FN(weigh_columns)(A *to, const A *state, const A *x, int64_t x_row, int64_t rows)
{
    int64_t i = 0;

    for (; i + FN(TOGETHER) <= rows; i += FN(TOGETHER)) // a constant number
        FN(weigh_columns_of)(to + i, state + i * FN(WIDTH), x + i * x_row, x_row, FN(TOGETHER));
    FN(weigh_columns_of)(to + i, state + i * FN(WIDTH), x + i * x_row, x_row, rows - i);
}

// state += scale * weights x^T.
static void FN(add_outer)(A *state, const T *weights, const A *x, A scale, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++) {
        const A weight = scale * (A)weights[i];

        for (int64_t c = 0; c < FN(WIDTH); c++)
            state[i * FN(WIDTH) + c] += weight * x[c];
    }
}

// What is written at step t, u, with the state decayed; v - r goes to `rest` unless it is NULL.
static void FN(find_update)(A *u, A *rest, const A *state, const FN(linear_head) * h, int64_t t,
                            int64_t block)
{
    const ot__linear_attention *a = h->a;
    const T *v = (const T *)h->d->value + FN(value_at)(h, t, block * FN(WIDTH));
    A retrieved[FN(WIDTH)], beta;

    FN(read_columns)(u, v, FN(columns_of)(h, block));
    if (a->beta_heads == 0)
        return;
    beta = FN(beta_at)(h, t);
    FN(weigh_rows)(retrieved, state, FN(key_at)(h, h->d->key, t), a->key_size);
    for (int64_t c = 0; c < FN(WIDTH); c++) {
        u[c] -= retrieved[c];
        if (rest != NULL)
            rest[c] = u[c];
        u[c] *= beta;
    }
}

// The state before step t becomes that after it.
static void FN(advance)(A *state, const A *factors, const FN(linear_head) * h, int64_t t,
                        int64_t block)
{
    A u[FN(WIDTH)];

    FN(decay_state)(state, factors, h->a->key_size);
    FN(find_update)(u, NULL, state, h, t, block);
    FN(add_outer)(state, FN(key_at)(h, h->d->key, t), u, 1, h->a->key_size);
}

// ---- forward: a block of columns of a head through all steps ----

static int64_t FN(linear_block_bytes)(const ot__linear_attention *a)
{
    return (a->key_size * (FN(WIDTH) + 1) + 1) *
           (int64_t)sizeof(A); // some, so that there is an address
}

static void FN(linear_block)(const ot__linear_attention *a, const ot__linear_attention_data *d,
                             int64_t batch, int64_t head, int64_t block, void *scratch)
{
    const FN(linear_head) h = {a, d, batch, head};
    const int64_t group = a->q_heads / a->kv_heads;
    A *state = scratch, *factors = state + a->key_size * FN(WIDTH);

    FN(read_state)(state, d->past, &h, block);
    for (int64_t t = 0; t < a->length; t++) {
        if (a->decay_size > 0)
            FN(read_factors)(factors, &h, t);
        FN(advance)(state, a->decay_size > 0 ? factors : NULL, &h, t, block);
        for (int64_t of = 0; of < group; of++) {
            const T *q = (const T *)d->query + FN(query_at)(&h, t, of, a->key_size);
            T *y = (T *)d->y + FN(query_at)(&h, t, of, a->value_size) + block * FN(WIDTH);
            A row[FN(WIDTH)];

            FN(weigh_rows)(row, state, q, a->key_size);
            for (int64_t c = 0; c < FN(WIDTH); c++)
                row[c] *= (A)a->scale;
            FN(write_columns)(y, row, FN(columns_of)(&h, block));
        }
    }
    FN(write_state)(d->present, state, &h, block);
}

// ---- backward: a head through all segments of steps, last first ----
//
// A pass forward keeps the state before each segment. From that the states within a segment are
// made again, for one block of columns at a time.

typedef struct FN(linear_grads) {
    FN(linear_head) h;
    int64_t n_blocks, group;
    int64_t first, n; // steps of this segment
    A *kept;          // (segments, blocks, rows, WIDTH): states before the segments
    A *dstate;        // (blocks, rows, WIDTH): gradients of the state after this segment
    A *states;        // (steps of a segment, rows, WIDTH): before each step
    A *after;         // (rows, WIDTH): state within a step
    A *factors;       // (steps of a segment, rows)
    // Sums over blocks, of a segment.
    A *dquery; // (steps, group, rows)
    A *dkey;   // (steps, rows)
    A *ddecay; // (steps, rows)
    A *dbeta;  // (steps)
} FN(linear_grads);

static int64_t FN(linear_head_grad_bytes)(const ot__linear_attention *a)
{
    const int64_t group = a->q_heads / a->kv_heads, rows = a->key_size;
    const int64_t n_blocks = (a->value_size + FN(WIDTH) - 1) / FN(WIDTH);
    const int64_t n_segments = (a->length + a->segment - 1) / a->segment;
    const int64_t states = (n_segments + 1) * n_blocks + a->segment + 1;

    return (states * rows * FN(WIDTH) + a->segment * (rows * (group + 3) + 1)) * (int64_t)sizeof(A);
}

static FN(linear_grads)
    FN(place_grads)(const ot__linear_attention *a, const ot__linear_attention_data *d, A *at)
{
    const int64_t tile = a->key_size * FN(WIDTH), rows = a->key_size;
    const int64_t n_segments = (a->length + a->segment - 1) / a->segment;
    FN(linear_grads) s = {.h = {.a = a, .d = d}};

    s.group = a->q_heads / a->kv_heads;
    s.n_blocks = (a->value_size + FN(WIDTH) - 1) / FN(WIDTH);
    s.kept = at;
    s.dstate = s.kept + n_segments * s.n_blocks * tile;
    s.states = s.dstate + s.n_blocks * tile;
    s.after = s.states + a->segment * tile;
    s.factors = s.after + tile;
    s.dquery = s.factors + a->segment * rows;
    s.dkey = s.dquery + a->segment * s.group * rows;
    s.ddecay = s.dkey + a->segment * rows;
    s.dbeta = s.ddecay + a->segment * rows;
    return s;
}

static void FN(enter_segment)(FN(linear_grads) * s, int64_t segment)
{
    const ot__linear_attention *a = s->h.a;

    s->first = segment * a->segment;
    s->n = OT_MIN(a->segment, a->length - s->first);
    for (int64_t k = 0; a->decay_size > 0 && k < s->n; k++)
        FN(read_factors)(s->factors + k * a->key_size, &s->h, s->first + k);
}

static const A *FN(factors_of)(const FN(linear_grads) * s, int64_t k)
{
    return s->h.a->decay_size > 0 ? s->factors + k * s->h.a->key_size : NULL;
}

static void FN(keep_states)(FN(linear_grads) * s)
{
    const ot__linear_attention *a = s->h.a;
    const int64_t tile = a->key_size * FN(WIDTH);

    for (int64_t block = 0; a->length > 0 && block < s->n_blocks; block++)
        FN(read_state)(s->kept + block * tile, s->h.d->past, &s->h, block);
    for (int64_t segment = 0; (segment + 1) * a->segment < a->length; segment++) {
        FN(enter_segment)(s, segment);
        for (int64_t block = 0; block < s->n_blocks; block++) {
            const A *before = s->kept + (segment * s->n_blocks + block) * tile;
            A *state = s->kept + ((segment + 1) * s->n_blocks + block) * tile;

            memcpy(state, before, (size_t)tile * sizeof(A));
            for (int64_t k = 0; k < s->n; k++)
                FN(advance)(state, FN(factors_of)(s, k), &s->h, s->first + k, block);
        }
    }
}

// What the outputs of step k say: added to the gradient of the state after it, and to dquery.
static void FN(read_output_grads)(FN(linear_grads) * s, A *dstate, int64_t k, int64_t block)
{
    const ot__linear_attention *a = s->h.a;
    const ot__linear_attention_data *d = s->h.d;
    const int64_t rows = a->key_size, t = s->first + k;

    for (int64_t of = 0; d->dy != NULL && of < s->group; of++) {
        const T *q = (const T *)d->query + FN(query_at)(&s->h, t, of, rows);
        const T *from =
            (const T *)d->dy + FN(query_at)(&s->h, t, of, a->value_size) + block * FN(WIDTH);
        A dy[FN(WIDTH)], *dq = s->dquery + (k * s->group + of) * rows;

        FN(read_columns)(dy, from, FN(columns_of)(&s->h, block));
        FN(weigh_columns)(dq, s->after, dy, 0, rows);
        FN(add_outer)(dstate, q, dy, (A)a->scale, rows);
    }
}

// Back through step k: dstate is the gradient of the state after it, then that of the one before.
static void FN(retreat)(FN(linear_grads) * s, A *dstate, int64_t k, int64_t block)
{
    const ot__linear_attention *a = s->h.a;
    const ot__linear_attention_data *d = s->h.d;
    const int64_t rows = a->key_size, tile = rows * FN(WIDTH), t = s->first + k;
    const T *key = FN(key_at)(&s->h, d->key, t);
    const A *factors = FN(factors_of)(s, k);
    A u[FN(WIDTH)], rest[FN(WIDTH)], du[FN(WIDTH)];

    memcpy(s->after, s->states + k * tile, (size_t)tile * sizeof(A));
    FN(decay_state)(s->after, factors, rows);
    FN(find_update)(u, rest, s->after, &s->h, t, block);
    FN(add_outer)(s->after, key, u, 1, rows);
    FN(read_output_grads)(s, dstate, k, block);
    FN(weigh_rows)(du, dstate, key, rows);
    FN(weigh_columns)(s->dkey + k * rows, dstate, u, 0, rows);
    if (a->beta_heads > 0 || factors != NULL) {
        memcpy(s->after, s->states + k * tile, (size_t)tile * sizeof(A));
        FN(decay_state)(s->after, factors, rows);
    }
    if (a->beta_heads > 0) {
        const A beta = FN(beta_at)(&s->h, t);

        for (int64_t c = 0; c < FN(WIDTH); c++) {
            s->dbeta[k] += du[c] * rest[c];
            du[c] *= beta;
            rest[c] = -du[c]; // of what is retrieved
        }
        FN(weigh_columns)(s->dkey + k * rows, s->after, rest, 0, rows);
        FN(add_outer)(dstate, key, rest, 1, rows);
    }
    if (d->dvalue != NULL) {
        T *dv = (T *)d->dvalue + FN(value_at)(&s->h, t, block * FN(WIDTH));

        FN(write_columns)(dv, du, FN(columns_of)(&s->h, block));
    }
    if (factors != NULL)
        FN(weigh_columns)(s->ddecay + k * rows, s->after, dstate, FN(WIDTH), rows);
    FN(decay_state)(dstate, factors, rows);
}

// What the sums of a segment are the gradients of.
static void FN(write_sums)(const FN(linear_grads) * s)
{
    const ot__linear_attention *a = s->h.a;
    const ot__linear_attention_data *d = s->h.d;
    const int64_t rows = a->key_size;

    for (int64_t k = 0; k < s->n; k++) {
        const int64_t t = s->first + k, at = (s->h.batch * a->length + t) * a->kv_heads + s->h.head;

        for (int64_t of = 0; d->dquery != NULL && of < s->group; of++)
            for (int64_t i = 0; i < rows; i++)
                ((T *)d->dquery)[FN(query_at)(&s->h, t, of, rows) + i] =
                    (T)((A)a->scale * s->dquery[(k * s->group + of) * rows + i]);
        for (int64_t i = 0; d->dkey != NULL && i < rows; i++)
            ((T *)d->dkey)[at * rows + i] = (T)s->dkey[k * rows + i];
        if (d->dbeta != NULL)
            ((T *)d->dbeta)[at] = (T)s->dbeta[k];
        if (d->ddecay != NULL && a->decay_size == 1) {
            A sum = 0;

            for (int64_t i = 0; i < rows; i++)
                sum += s->ddecay[k * rows + i];
            ((T *)d->ddecay)[at] = (T)sum;
        }
        for (int64_t i = 0; d->ddecay != NULL && a->decay_size != 1 && i < rows; i++)
            ((T *)d->ddecay)[at * rows + i] = (T)s->ddecay[k * rows + i];
    }
}

static void FN(segment_grads)(FN(linear_grads) * s, int64_t segment)
{
    const ot__linear_attention *a = s->h.a;
    const int64_t tile = a->key_size * FN(WIDTH);
    const int64_t n_sums = a->segment * (a->key_size * (s->group + 2) + 1);

    FN(enter_segment)(s, segment);
    memset(s->dquery, 0, (size_t)n_sums * sizeof(A));
    for (int64_t block = 0; block < s->n_blocks; block++) {
        const A *before = s->kept + (segment * s->n_blocks + block) * tile;

        memcpy(s->states, before, (size_t)tile * sizeof(A));
        for (int64_t k = 0; k + 1 < s->n; k++) {
            A *next = s->states + (k + 1) * tile;

            memcpy(next, next - tile, (size_t)tile * sizeof(A));
            FN(advance)(next, FN(factors_of)(s, k), &s->h, s->first + k, block);
        }
        for (int64_t k = s->n - 1; k >= 0; k--)
            FN(retreat)(s, s->dstate + block * tile, k, block);
    }
    FN(write_sums)(s);
}

static void FN(linear_head_grad)(const ot__linear_attention *a, const ot__linear_attention_data *d,
                                 int64_t batch, int64_t head, void *scratch)
{
    FN(linear_grads) s = FN(place_grads)(a, d, scratch);
    const int64_t tile = a->key_size * FN(WIDTH);

    s.h.batch = batch;
    s.h.head = head;
    FN(keep_states)(&s);
    for (int64_t block = 0; block < s.n_blocks; block++)
        FN(read_state)(s.dstate + block * tile, d->dpresent, &s.h, block);
    for (int64_t segment = (a->length + a->segment - 1) / a->segment - 1; segment >= 0; segment--)
        FN(segment_grads)(&s, segment);
    for (int64_t block = 0; block < s.n_blocks; block++)
        FN(write_state)(d->dpast, s.dstate + block * tile, &s.h, block);
}

const ot__linear_attentions TABLE = {
    .block = FN(linear_block),
    .block_bytes = FN(linear_block_bytes),
    .head_grad = FN(linear_head_grad),
    .head_grad_bytes = FN(linear_head_grad_bytes),
};
