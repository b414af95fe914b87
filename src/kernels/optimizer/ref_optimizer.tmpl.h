// SPDX-License-Identifier: Apache-2.0
// Updates of n elements of one tensor, for one element type: the formulas of the optimizers. Each
// stands above its loop, with g the gradient times the row's scale; the numbers are in the order of
// the attributes of its record (ops/optimizer/rules.c).
//
// Moments that decay for want of gradients, as those of words that are rare, end so small that
// they, or their products with the rate, are below the smallest normal number, with which
// processors take many times as long. There they become 0: steps would be as small, but for LAMB's
// where all moments of a tensor are. v, whose root divides, does so where adding that to epsilon
// changes nothing, and Lion's moment does not, since its step is a sign.
//
// OT_UPDATE_LOOP stands before loops whose iterations are independent of each other,
// OT_UPDATE_TABLE is the table that the file makes. Sums have OT_UPDATE_LANES parts, so that vector
// code adds in the same order.

#ifndef OT_UPDATE_LANES
#define OT_UPDATE_LANES 8
#endif

// The smallest normal number.
static const T FN(least_normal) = sizeof(T) == sizeof(float) ? (T)FLT_MIN : (T)DBL_MIN;

// Below which a moment becomes 0, by the rate that multiplies it.
static T FN(least_moment)(T rate)
{
    const T least_rate = (T)0x1p-20;

    return FN(least_normal) / (rate >= 1 ? 1 : rate > least_rate ? rate : least_rate);
}

// x, or 0 where it is closer to 0 than `least`.
static inline T FN(normal)(T x, T least)
{
    return x < least && x > -least ? 0 : x;
}

// Below which v becomes 0: its root is then at most 1e-18, also times the largest correction.
static T FN(least_square)(double epsilon)
{
    return epsilon >= 1e-10 ? FN(least_normal) : 0;
}

// Adam (Kingma and Ba, 2015) with decoupled weight decay (Loshchilov and Hutter, 2019).
// m = alpha m + (1 - alpha) g;  v = beta v + (1 - beta) g^2
// mode 0, as PyTorch's AdamW: w -= lr ((m / c1) / (sqrt(v / c2) + epsilon) + decay w)
// mode 1, as Hugging Face's:  w -= lr sqrt(c2) / c1 m / (sqrt(v) + epsilon);  w -= lr decay w
static void FN(adam_update)(T *w, T *m, T *v, const T *g, int64_t n, const ot__update_row *row)
{
    const double lr = row->lr, alpha = (double)row->hyper[0], beta = (double)row->hyper[1];
    const bool is_late = row->hyper[5] != 0;
    const T beta1 = (T)alpha, rest1 = (T)(1 - alpha), beta2 = (T)beta, rest2 = (T)(1 - beta);
    const T epsilon = (T)row->hyper[2], decay = (T)(lr * (double)row->hyper[3]);
    const T root_scale = is_late ? 1 : (T)(1 / sqrt(row->c2));
    const T rate = (T)(is_late ? lr * sqrt(row->c2) / row->c1 : lr / row->c1);
    // Mode 0 takes the decay from the old weight, mode 1 from the new one.
    const T before = is_late ? 0 : decay, after = is_late ? decay : 0, scale = (T)row->scale;
    const T least = FN(least_moment)(rate);
    const T least_v = FN(least_square)((double)row->hyper[2]);

    OT_UPDATE_LOOP
    for (int64_t i = 0; i < n; i++) {
        const T gi = g[i] * scale, wi = w[i];
        const T mi = FN(normal)(beta1 * m[i] + rest1 * gi, least);
        const T vi = beta2 * v[i] + rest2 * gi * gi;
        const T moved = wi - before * wi - rate * mi / (FN(root)(vi) * root_scale + epsilon);

        m[i] = mi;
        v[i] = FN(normal)(vi, least_v);
        w[i] = moved - after * moved;
    }
}

// LAMB (You et al., 2020): m and v as Adam's, and the direction
// d = (m / c1) / (sqrt(v / c2) + epsilon) + lambda w, 0 where that is not finite
typedef struct FN(lamb_numbers) {
    T beta1, rest1, beta2, rest2, m_scale, root_scale, epsilon, decay, scale, least_v;
} FN(lamb_numbers);

static FN(lamb_numbers) FN(lamb_read)(const ot__update_row *row)
{
    const double alpha = (double)row->hyper[0], beta = (double)row->hyper[1];

    return (FN(lamb_numbers)){
        .beta1 = (T)alpha,
        .rest1 = (T)(1 - alpha),
        .beta2 = (T)beta,
        .rest2 = (T)(1 - beta),
        .m_scale = (T)(1 / row->c1),
        .root_scale = (T)(1 / sqrt(row->c2)),
        .epsilon = (T)row->hyper[2],
        .decay = (T)row->hyper[3],
        .scale = (T)row->scale,
        .least_v = FN(least_square)((double)row->hyper[2]),
    };
}

static inline T FN(lamb_m)(const FN(lamb_numbers) * p, T m, T g)
{
    return FN(normal)(p->beta1 * m + p->rest1 * g, FN(least_normal));
}

static inline T FN(lamb_direction)(const FN(lamb_numbers) * p, T w, T m, T v)
{
    return m * p->m_scale / (FN(root)(v) * p->root_scale + p->epsilon) + p->decay * w;
}

// The direction as its norm has it.
static inline T FN(lamb_finite)(const FN(lamb_numbers) * p, T w, T m, T v, T g)
{
    const T gi = g * p->scale;
    const T d = FN(lamb_direction)(p, w, FN(lamb_m)(p, m, gi), p->beta2 * v + p->rest2 * gi * gi);

    return d - d == 0 ? d : 0;
}

// sums[0] = sum of w^2, sums[1] = sum of d^2
static void FN(lamb_norms)(const T *w, const T *m, const T *v, const T *g, int64_t n,
                           const ot__update_row *row, double *sums)
{
    const FN(lamb_numbers) p = FN(lamb_read)(row);
    double of_w[OT_UPDATE_LANES] = {0}, of_d[OT_UPDATE_LANES] = {0};
    int64_t i = 0;

    sums[0] = sums[1] = 0;
    for (; i + OT_UPDATE_LANES <= n; i += OT_UPDATE_LANES) {
        OT_UPDATE_LOOP
        for (int k = 0; k < OT_UPDATE_LANES; k++) {
            const double wk = (double)w[i + k];
            const double d = (double)FN(lamb_finite)(&p, w[i + k], m[i + k], v[i + k], g[i + k]);

            of_w[k] += wk * wk;
            of_d[k] += d * d;
        }
    }
    for (; i < n; i++) {
        const double d = (double)FN(lamb_finite)(&p, w[i], m[i], v[i], g[i]);

        sums[0] += (double)w[i] * (double)w[i];
        sums[1] += d * d;
    }
    for (int k = 0; k < OT_UPDATE_LANES; k++) {
        sums[0] += of_w[k];
        sums[1] += of_d[k];
    }
}

static void FN(lamb_directions)(T *d, const T *w, const T *m, const T *v, const T *g, int64_t n,
                                const ot__update_row *row)
{
    const FN(lamb_numbers) p = FN(lamb_read)(row);

    OT_UPDATE_LOOP
    for (int64_t i = 0; i < n; i++)
        d[i] = FN(lamb_finite)(&p, w[i], m[i], v[i], g[i]);
}

// w -= lr d, with m and v, where they are finite; the row's lr has the tensor's trust ratio.
static void FN(lamb_update)(T *w, T *m, T *v, const T *g, int64_t n, const ot__update_row *row)
{
    const FN(lamb_numbers) p = FN(lamb_read)(row);
    const T lr = (T)row->lr;

    OT_UPDATE_LOOP
    for (int64_t i = 0; i < n; i++) {
        const T gi = g[i] * p.scale, wi = w[i], m_old = m[i], v_old = v[i];
        const T mi = FN(lamb_m)(&p, m_old, gi), vi = p.beta2 * v_old + p.rest2 * gi * gi;
        const T d = FN(lamb_direction)(&p, wi, mi, vi);
        const bool is_finite = d - d == 0;
        const T moved = wi - lr * (is_finite ? d : 0);

        m[i] = is_finite ? mi : m_old;
        v[i] = is_finite ? FN(normal)(vi, p.least_v) : v_old;
        w[i] = moved - moved == 0 ? moved : wi;
    }
}

// SGD as PyTorch's with dampening 0.  step = g + decay w;  buffer = momentum buffer + step
// w -= lr step without momentum, lr buffer with it, lr (step + momentum buffer) as Nesterov's
static void FN(sgd_update)(T *w, T *buffer, T *none, const T *g, int64_t n,
                           const ot__update_row *row)
{
    const T lr = (T)row->lr, scale = (T)row->scale, momentum = (T)row->hyper[0];
    const T decay = (T)row->hyper[1], now = row->hyper[2] != 0 ? 1 : 0;
    const T later = row->hyper[2] != 0 ? momentum : 1, least = FN(least_moment)(lr);

    (void)none;
    if (buffer == NULL) {
        OT_UPDATE_LOOP
        for (int64_t i = 0; i < n; i++)
            w[i] -= lr * (g[i] * scale + decay * w[i]);
        return;
    }
    OT_UPDATE_LOOP
    for (int64_t i = 0; i < n; i++) {
        const T step = g[i] * scale + decay * w[i];
        const T moment = FN(normal)(momentum * buffer[i] + step, least);

        buffer[i] = moment;
        w[i] -= lr * (now * step + later * moment);
    }
}

// Adagrad (Duchi et al., 2011) as PyTorch's.  step = g + decay w;  sum += step^2
// w -= lr / (1 + (t - 1) lr_decay) step / (sqrt(sum) + epsilon)
static void FN(adagrad_update)(T *w, T *sum, T *none, const T *g, int64_t n,
                               const ot__update_row *row)
{
    const T lr = (T)(row->lr / (1 + (row->step - 1) * (double)row->hyper[0]));
    const T decay = (T)row->hyper[1], epsilon = (T)row->hyper[2], scale = (T)row->scale;

    (void)none;
    OT_UPDATE_LOOP
    for (int64_t i = 0; i < n; i++) {
        const T step = g[i] * scale + decay * w[i], s = sum[i] + step * step;

        sum[i] = s;
        w[i] -= lr * step / (FN(root)(s) + epsilon);
    }
}

// RMSprop (Hinton) as PyTorch's.  step = g + decay w;  v = alpha v + (1 - alpha) step^2
// u = step / (sqrt(v) + epsilon);  w -= lr u, with momentum: buffer = momentum buffer + u;
// w -= lr buffer
static void FN(rmsprop_update)(T *w, T *v, T *buffer, const T *g, int64_t n,
                               const ot__update_row *row)
{
    const double alpha = (double)row->hyper[0];
    const T keep = (T)alpha, rest = (T)(1 - alpha), epsilon = (T)row->hyper[1];
    const T decay = (T)row->hyper[2], momentum = (T)row->hyper[3];
    const T lr = (T)row->lr, scale = (T)row->scale;
    const T least = FN(least_moment)(lr), least_v = FN(least_square)((double)row->hyper[1]);

    if (buffer == NULL) {
        OT_UPDATE_LOOP
        for (int64_t i = 0; i < n; i++) {
            const T step = g[i] * scale + decay * w[i], vi = keep * v[i] + rest * step * step;

            v[i] = FN(normal)(vi, least_v);
            w[i] -= lr * step / (FN(root)(vi) + epsilon);
        }
        return;
    }
    OT_UPDATE_LOOP
    for (int64_t i = 0; i < n; i++) {
        const T step = g[i] * scale + decay * w[i], vi = keep * v[i] + rest * step * step;
        const T moment = FN(normal)(momentum * buffer[i] + step / (FN(root)(vi) + epsilon), least);

        v[i] = FN(normal)(vi, least_v);
        buffer[i] = moment;
        w[i] -= lr * moment;
    }
}

// Lion (Chen et al., 2023).  u = sign(beta1 m + (1 - beta1) g);  w -= lr (u + decay w)
// m = beta2 m + (1 - beta2) g
static void FN(lion_update)(T *w, T *m, T *none, const T *g, int64_t n, const ot__update_row *row)
{
    const double b1 = (double)row->hyper[0], b2 = (double)row->hyper[1];
    const T beta1 = (T)b1, rest1 = (T)(1 - b1), beta2 = (T)b2, rest2 = (T)(1 - b2);
    const T lr = (T)row->lr, scale = (T)row->scale, decay = (T)row->hyper[2];

    (void)none;
    OT_UPDATE_LOOP
    for (int64_t i = 0; i < n; i++) {
        const T gi = g[i] * scale, u = beta1 * m[i] + rest1 * gi;

        w[i] -= lr * ((T)(u > 0) - (T)(u < 0) + decay * w[i]);
        m[i] = beta2 * m[i] + rest2 * gi;
    }
}

// Moving average of parameters: average = decay average + (1 - decay) parameter
static void FN(average_update)(T *average, T *none1, T *none2, const T *parameter, int64_t n,
                               const ot__update_row *row)
{
    const T decay = (T)row->hyper[0], rest = (T)(1 - (double)row->hyper[0]);

    (void)none1;
    (void)none2;
    OT_UPDATE_LOOP
    for (int64_t i = 0; i < n; i++)
        average[i] = decay * average[i] + rest * parameter[i];
}

static double FN(sum_square)(const T *x, int64_t n)
{
    double lane[OT_UPDATE_LANES] = {0}, sum = 0;
    int64_t i = 0;

    for (; i + OT_UPDATE_LANES <= n; i += OT_UPDATE_LANES) {
        OT_UPDATE_LOOP
        for (int l = 0; l < OT_UPDATE_LANES; l++)
            lane[l] += (double)x[i + l] * (double)x[i + l];
    }
    for (; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    for (int l = 0; l < OT_UPDATE_LANES; l++)
        sum += lane[l];
    return sum;
}

#define UPDATE_ENTRY(type, name) .name = FN(name##_update),
const FN(ot__updates) OT_UPDATE_TABLE = {
    OT_UPDATE_LOOPS(UPDATE_ENTRY, ).lamb_norms = FN(lamb_norms),
    .lamb_direction = FN(lamb_directions),
    .sum_square = FN(sum_square),
};
#undef UPDATE_ENTRY
