// SPDX-License-Identifier: Apache-2.0
// Optimizer updates in f32, compiled once per instruction set (OT_ISA). Formulas: ref_optimizer.c.
#include "kernels/kernels.h"

#include "kernels/simd.h"

static void adamw_simd(float *w, float *m, float *v, const float *g, int64_t n, const ot__adamw *p)
{
    const float beta1 = (float)p->beta1, beta2 = (float)p->beta2;
    const float rest1 = (float)(1 - p->beta1), rest2 = (float)(1 - p->beta2);
    const float epsilon = (float)p->epsilon, decay = (float)(p->lr * p->weight_decay);
    const float scale = p->mode == 0 ? (float)(1 / sqrt(p->c2)) : 1; // of the root
    const float rate = (float)(p->mode == 0 ? p->lr / p->c1 : p->lr * sqrt(p->c2) / p->c1);
    // Mode 0 takes the decay from the old weight, mode 1 from the new one.
    const float before = p->mode == 0 ? decay : 0, after = p->mode == 0 ? 0 : decay;

    OT_SIMD_LOOP
    for (int64_t i = 0; i < n; i++) {
        const float gi = g[i], wi = w[i];
        const float mi = beta1 * m[i] + rest1 * gi, vi = beta2 * v[i] + rest2 * gi * gi;
        const float moved = wi - before * wi - rate * mi / (sqrtf(vi) * scale + epsilon);

        m[i] = mi;
        v[i] = vi;
        w[i] = moved - after * moved;
    }
}

static void sgd_simd(float *w, float *buffer, const float *g, int64_t n, const ot__sgd *p)
{
    const float lr = (float)p->lr, momentum = (float)p->momentum, decay = (float)p->weight_decay;
    const float now = p->nesterov ? 1 : 0, later = p->nesterov ? momentum : 1;

    if (buffer == NULL) {
        OT_SIMD_LOOP
        for (int64_t i = 0; i < n; i++)
            w[i] -= lr * (g[i] + decay * w[i]);
        return;
    }
    OT_SIMD_LOOP
    for (int64_t i = 0; i < n; i++) {
        const float step = g[i] + decay * w[i], moment = momentum * buffer[i] + step;

        buffer[i] = moment;
        w[i] -= lr * (now * step + later * moment);
    }
}

const ot__updates OT_ISA_NAME(ot__updates) = {.adamw = adamw_simd, .sgd = sgd_simd};
