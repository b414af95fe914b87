// SPDX-License-Identifier: Apache-2.0
void FN(ot__ref_adamw)(T *w, T *m, T *v, const T *g, int64_t n, const ot__adamw *p)
{
    const T beta1 = (T)p->beta1, beta2 = (T)p->beta2, rest1 = (T)(1 - p->beta1),
            rest2 = (T)(1 - p->beta2);
    const T epsilon = (T)p->epsilon, decay = (T)(p->lr * p->weight_decay);
    const T root2 = (T)sqrt(p->c2);
    const T rate = (T)(p->mode == 0 ? p->lr / p->c1 : p->lr * sqrt(p->c2) / p->c1);

    if (p->mode == 0) {
        for (int64_t i = 0; i < n; i++) {
            const T mi = beta1 * m[i] + rest1 * g[i], vi = beta2 * v[i] + rest2 * g[i] * g[i];
            m[i] = mi;
            v[i] = vi;
            w[i] = w[i] - w[i] * decay - rate * mi / (FN(root)(vi) / root2 + epsilon);
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const T mi = beta1 * m[i] + rest1 * g[i], vi = beta2 * v[i] + rest2 * g[i] * g[i];
        const T moved = w[i] - rate * mi / (FN(root)(vi) + epsilon);
        m[i] = mi;
        v[i] = vi;
        w[i] = moved - moved * decay;
    }
}

void FN(ot__ref_sgd)(T *w, T *buffer, const T *g, int64_t n, const ot__sgd *p)
{
    const T lr = (T)p->lr, momentum = (T)p->momentum, decay = (T)p->weight_decay;

    for (int64_t i = 0; i < n; i++) {
        T step = decay != 0 ? g[i] + decay * w[i] : g[i];
        if (buffer) {
            buffer[i] = momentum * buffer[i] + step;
            step = p->nesterov ? step + momentum * buffer[i] : buffer[i];
        }
        w[i] -= lr * step;
    }
}

void FN(ot__ref_scale)(T *x, int64_t n, double factor)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (T)((double)x[i] * factor);
}
