// Part of the face of `kernels`: products, normalisation over rows, losses, dropout, optimizers.
// Only kernels.h includes this.
#ifndef OT_KERNELS_KERNELS_NN_H
#define OT_KERNELS_KERNELS_NN_H

#include "tensor/tensor.h"

// X(suffix, element type): every loop below exists for both.
#define OT_KERNEL_FLOATS(X)                                                                        \
    X(f32, float)                                                                                  \
    X(f64, double)

// ---- ref_gemm.c ----

// y (m, n; rows y_row apart) = alpha * a (m, k) * b (k, n) + beta * c. a and b are read with any
// strides, c too (0: broadcast); c NULL: none. Sums in f64. y may be c when their strides agree.
typedef struct ot__gemm {
    int64_t m, n, k;
    double alpha, beta;
    int64_t a_row, a_column, b_row, b_column, c_row, c_column, y_row;
} ot__gemm;
#define OT_DECLARE(suffix, T)                                                                      \
    void ot__ref_gemm_##suffix(T *y, const T *a, const T *b, const T *c, const ot__gemm *g);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE

// ---- ref_softmax.c: along the middle axis of (outer, n, inner) ----

#define OT_DECLARE(suffix, T)                                                                      \
    void ot__ref_softmax_##suffix(T *y, const T *x, int64_t outer, int64_t n, int64_t inner);      \
    void ot__ref_log_softmax_##suffix(T *y, const T *x, int64_t outer, int64_t n, int64_t inner);  \
    /* dx = y * (dy - sum(y * dy)) */                                                              \
    void ot__ref_softmax_grad_##suffix(T *dx, const T *dy, const T *y, int64_t outer, int64_t n,   \
                                       int64_t inner);                                             \
    /* dx = dy - exp(y) * sum(dy) */                                                               \
    void ot__ref_log_softmax_grad_##suffix(T *dx, const T *dy, const T *y, int64_t outer,          \
                                           int64_t n, int64_t inner);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE

// ---- ref_nll.c: negative log likelihood of log_prob (n, classes, inner) and labels (n, inner)
// ----

typedef enum ot__loss_reduction {
    OT__LOSS_NONE,
    OT__LOSS_SUM,
    OT__LOSS_MEAN
} ot__loss_reduction;
typedef struct ot__nll {
    int64_t n, classes, inner;
    ot__loss_reduction reduction;
    bool has_ignore;
    int64_t ignore;
    bool labels_are_i32;
} ot__nll;
// Position of the first label outside 0..classes-1 that is not ignored, or -1.
int64_t ot__ref_nll_check(const void *labels, const ot__nll *p);
int64_t ot__ref_nll_label(const void *labels, const ot__nll *p, int64_t i);
#define OT_DECLARE(suffix, T)                                                                      \
    /* loss (n, inner) or one element; weight (classes) or NULL */                                 \
    void ot__ref_nll_##suffix(T *loss, const T *log_prob, const void *labels, const T *weight,     \
                              const ot__nll *p);                                                   \
    /* dx = (softmax ? exp(log_prob) : 0 minus one-hot) * weight * share of dy; log_prob is not    \
     * read without softmax */                                                                     \
    void ot__ref_nll_grad_##suffix(T *dx, const T *dy, const T *log_prob, const void *labels,      \
                                   const T *weight, bool softmax, const ot__nll *p);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE

// ---- ref_dropout.c ----

// mask[i] = draw i of the key is kept with probability 1 - ratio.
void ot__ref_dropout_mask(uint8_t *mask, int64_t count, double ratio, ot__rng_key key);
#define OT_DECLARE(suffix, T)                                                                      \
    /* y = mask ? x * scale : 0 */                                                                 \
    void ot__ref_mask_scale_##suffix(T *y, const T *x, const uint8_t *mask, double scale,          \
                                     int64_t count);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE

// ---- ref_optimizer.c: updates of n elements of one tensor ----

typedef struct ot__adamw {
    double lr, beta1, beta2, epsilon, weight_decay;
    double c1, c2; // bias corrections 1 - beta^t, or 1
    int mode;      // 0: decay before the update (PyTorch), 1: after
} ot__adamw;
typedef struct ot__sgd {
    double lr, momentum, weight_decay;
    bool nesterov;
} ot__sgd;
#define OT_DECLARE(suffix, T)                                                                      \
    void ot__ref_adamw_##suffix(T *w, T *m, T *v, const T *g, int64_t n, const ot__adamw *p);      \
    /* buffer NULL: without momentum */                                                            \
    void ot__ref_sgd_##suffix(T *w, T *buffer, const T *g, int64_t n, const ot__sgd *p);           \
    double ot__ref_square_sum_##suffix(const T *x, int64_t n);                                     \
    void ot__ref_scale_##suffix(T *x, int64_t n, double factor);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE

#endif
