// SPDX-License-Identifier: Apache-2.0
// Part of the interface of `kernels`: what oneDNN computes. Only kernels.h includes this. Built
// without oneDNN, nothing can be run by it.
#ifndef OT_KERNELS_KERNELS_DNNL_H
#define OT_KERNELS_KERNELS_DNNL_H

#include "tensor/tensor.h"

// A prepared problem. Made with the number of threads that it will run with; many may be run at
// once.
typedef struct ot__dnnl_primitives ot__dnnl_primitives;

// A convolution as ONNX has it, f32 or bf16: x (n, c, spatial ...), w (m, c / groups, kernel ...),
// y (n, m, spatial ...). The bias is row-major; w and its gradient have one layout. Gradients of w
// and of the bias are f32.
typedef struct ot__dnnl_conv {
    ot_dtype type, bias_type; // OT_F32 or OT_BF16; `type` of x, w and y
    const ot_shape *x, *w, *y;
    const ot_layout *x_layout, *w_layout, *y_layout;
    int64_t groups;
    const int64_t *strides, *dilations, *pads; // one number a spatial axis
    bool has_bias, relu;                       // forward only
    // Chunk by chunk of fixed size, each by one thread: the same bits for any number of threads.
    bool is_exact;
} ot__dnnl_conv;
// Each channel is convolved by itself.
static inline bool ot__dnnl_conv_is_depthwise(const ot__dnnl_conv *c)
{
    return c->groups > 1 && c->w->dim[1] == 1 && c->w->dim[0] == c->groups;
}

enum { OT__DNNL_CONV_X, OT__DNNL_CONV_W, OT__DNNL_CONV_B, OT__DNNL_CONV_Y };
enum {
    OT__DNNL_CONV_GRAD_DY,
    OT__DNNL_CONV_GRAD_X,
    OT__DNNL_CONV_GRAD_W,
    OT__DNNL_CONV_GRAD_DX, // from here on: NULL where it is not wanted
    OT__DNNL_CONV_GRAD_DW,
    OT__DNNL_CONV_GRAD_DB,
    OT__DNNL_CONV_GRAD_SLOTS,
};

// A product as ot__gemm has it, of f32 or bf16, with alpha and beta 1, of batches that lie evenly
// apart; y's follow each other.
typedef enum ot__dnnl_gemm_after {
    OT__DNNL_GEMM_ENDS,
    OT__DNNL_GEMM_RELU,
    OT__DNNL_GEMM_ADD,      // y + other
    OT__DNNL_GEMM_MULTIPLY, // y * other
} ot__dnnl_gemm_after;

typedef struct ot__dnnl_gemm {
    const struct ot__gemm *g;
    int64_t n_batches, a_stride, b_stride; // in elements; 0: all batches share it
    ot_dtype type, bias_type, y_type;      // OT_F32 or OT_BF16; `type` of a and b
    bool packs;                            // b is brought into the layout that oneDNN chooses first
    bool has_bias;                         // a row, n elements
    bool accumulates;                      // to what is in y; nothing comes after then
    ot__dnnl_gemm_after after;
    const char *reason; // for which oneDNN is ahead, or is not
} ot__dnnl_gemm;
enum {
    OT__DNNL_GEMM_A,
    OT__DNNL_GEMM_B,
    OT__DNNL_GEMM_BIAS,
    OT__DNNL_GEMM_OTHER, // as y
    OT__DNNL_GEMM_Y,
    OT__DNNL_GEMM_SLOTS,
};

#if OT_WITH_ONEDNN

// dnnl_primitives.c. `slots` are named by the enums of each problem.
ot_status ot__dnnl_run(const ot__dnnl_primitives *p, void *const *slots, void *scratch);
bool ot__dnnl_has_bf16(void); // the processor multiplies bf16: AVX-512 with it, or AMX
size_t ot__dnnl_scratch_bytes(const ot__dnnl_primitives *p);
const char *ot__dnnl_names(const ot__dnnl_primitives *p); // what oneDNN calls its implementations
void ot__dnnl_note(ot__dnnl_primitives *p, const char *text); // behind the names
void ot__dnnl_destroy(ot__dnnl_primitives *p);                // NULL is fine

// dnnl_reorder.c: the same elements of f32, f16 or bf16 in another layout; false where oneDNN does
// not know the layouts or is slow
bool ot__dnnl_can_reorder(ot_dtype dtype, const ot_shape *shape, const ot_layout *from,
                          const ot_layout *to);
ot_status ot__dnnl_reorder_create(ot_dtype dtype, const ot_shape *shape, const ot_layout *from,
                                  const ot_layout *to,
                                  ot__dnnl_primitives **out); // slots: from, to

// dnnl_conv.c
bool ot__dnnl_can_conv(const ot__dnnl_conv *c);
bool ot__dnnl_can_conv_grad(const ot__dnnl_conv *c);
// The layouts of x and y that are fastest on this processor.
void ot__dnnl_conv_layouts(const ot__dnnl_conv *c, const ot_layout **x_layout,
                           const ot_layout **y_layout);
// The layout of w that the forward kernel reads without a copy and the gradient's kernel writes,
// for x and y in the layouts above. The same for every batch size. NULL: there is none.
const ot_layout *ot__dnnl_conv_weights_layout(const ot__dnnl_conv *c);
// Whether w may come in c->w_layout.
bool ot__dnnl_conv_accepts_weights(const ot__dnnl_conv *c);
// Whether it has code for the gradient of weights of one element a channel (depthwise) here.
bool ot__dnnl_conv_sums_channels(const ot__dnnl_conv *c);
ot_status ot__dnnl_conv_create(const ot__dnnl_conv *c, ot__dnnl_primitives **out);
ot_status ot__dnnl_conv_grad_create(const ot__dnnl_conv *c, bool wants_dx, bool wants_dw,
                                    bool wants_db, ot__dnnl_primitives **out);

// dnnl_gemm.c
bool ot__dnnl_can_gemm(const ot__dnnl_gemm *p);
// Whether this processor is faster so than with ot__gemm_kernel_best(), and then, with p->packs or
// not. Both rules leave p->reason.
bool ot__dnnl_gemm_is_ahead(ot__dnnl_gemm *p);
bool ot__dnnl_gemm_bf16_is_ahead(ot__dnnl_gemm *p); // than conversions and our own kernel
ot_status ot__dnnl_gemm_create(const ot__dnnl_gemm *p, ot__dnnl_primitives **out);

#else

static inline ot_status ot__dnnl_run(const ot__dnnl_primitives *p, void *const *slots,
                                     void *scratch)
{
    (void)p, (void)slots, (void)scratch;
    return OT_ERR_UNSUPPORTED;
}
static inline size_t ot__dnnl_scratch_bytes(const ot__dnnl_primitives *p)
{
    (void)p;
    return 0;
}
static inline void ot__dnnl_note(ot__dnnl_primitives *p, const char *text)
{
    (void)p;
    (void)text;
}
static inline const char *ot__dnnl_names(const ot__dnnl_primitives *p)
{
    (void)p;
    return "";
}
static inline void ot__dnnl_destroy(ot__dnnl_primitives *p)
{
    (void)p;
}
static inline bool ot__dnnl_can_reorder(ot_dtype dtype, const ot_shape *shape,
                                        const ot_layout *from, const ot_layout *to)
{
    (void)dtype, (void)shape, (void)from, (void)to;
    return false;
}
static inline ot_status ot__dnnl_reorder_create(ot_dtype dtype, const ot_shape *shape,
                                                const ot_layout *from, const ot_layout *to,
                                                ot__dnnl_primitives **out)
{
    (void)dtype, (void)shape, (void)from, (void)to;
    *out = NULL;
    return OT_ERR_UNSUPPORTED;
}
static inline bool ot__dnnl_can_conv(const ot__dnnl_conv *c)
{
    (void)c;
    return false;
}
static inline bool ot__dnnl_can_conv_grad(const ot__dnnl_conv *c)
{
    (void)c;
    return false;
}
static inline bool ot__dnnl_conv_sums_channels(const ot__dnnl_conv *c)
{
    (void)c;
    return false;
}
static inline void ot__dnnl_conv_layouts(const ot__dnnl_conv *c, const ot_layout **x_layout,
                                         const ot_layout **y_layout)
{
    (void)c;
    *x_layout = *y_layout = NULL;
}
static inline const ot_layout *ot__dnnl_conv_weights_layout(const ot__dnnl_conv *c)
{
    (void)c;
    return NULL;
}
static inline bool ot__dnnl_conv_accepts_weights(const ot__dnnl_conv *c)
{
    return c->w_layout == NULL;
}
static inline ot_status ot__dnnl_conv_create(const ot__dnnl_conv *c, ot__dnnl_primitives **out)
{
    (void)c;
    *out = NULL;
    return OT_ERR_UNSUPPORTED;
}
static inline ot_status ot__dnnl_conv_grad_create(const ot__dnnl_conv *c, bool wants_dx,
                                                  bool wants_dw, bool wants_db,
                                                  ot__dnnl_primitives **out)
{
    (void)c, (void)wants_dx, (void)wants_dw, (void)wants_db;
    *out = NULL;
    return OT_ERR_UNSUPPORTED;
}

static inline bool ot__dnnl_can_gemm(const ot__dnnl_gemm *p)
{
    (void)p;
    return false;
}
static inline bool ot__dnnl_gemm_is_ahead(ot__dnnl_gemm *p)
{
    p->reason = "built without oneDNN";
    return false;
}
static inline bool ot__dnnl_gemm_bf16_is_ahead(ot__dnnl_gemm *p)
{
    return ot__dnnl_gemm_is_ahead(p);
}
static inline bool ot__dnnl_has_bf16(void)
{
    return false;
}
static inline ot_status ot__dnnl_gemm_create(const ot__dnnl_gemm *p, ot__dnnl_primitives **out)
{
    (void)p;
    *out = NULL;
    return OT_ERR_UNSUPPORTED;
}

#endif

#endif
