// SPDX-License-Identifier: Apache-2.0
// What differs between oneDNN 2.x (operation descriptors) and 3.x (primitive descriptors made
// directly, opaque memory descriptors). The only file that knows; included by dnnl_*.c only.
#ifndef OT_KERNELS_DNNL_COMPAT_H
#define OT_KERNELS_DNNL_COMPAT_H

#include <oneapi/dnnl/dnnl.h>

#define OT__DNNL_TRY(call)                                                                         \
    do {                                                                                           \
        const dnnl_status_t dnnl_try_status_ = (call);                                             \
        if (dnnl_try_status_ != dnnl_success)                                                      \
            return dnnl_try_status_;                                                               \
    } while (0)

// One convolution, all three directions; memory descriptors as ot__md.
typedef enum ot__dnnl_direction {
    OT__DNNL_FORWARD,
    OT__DNNL_BACKWARD_DATA,
    OT__DNNL_BACKWARD_WEIGHTS,
} ot__dnnl_direction;

#if DNNL_VERSION_MAJOR >= 3

typedef const_dnnl_memory_desc_t ot__md; // borrowed; NULL: none

static inline ot__md ot__md_of(const dnnl_memory_desc_t *md)
{
    return *md;
}

static inline dnnl_status_t ot__md_tagged(dnnl_memory_desc_t *md, dnnl_data_type_t type, int ndim,
                                          const dnnl_dims_t dims, dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_create_with_tag(md, ndim, dims, type, tag);
}

static inline dnnl_status_t ot__md_strided(dnnl_memory_desc_t *md, dnnl_data_type_t type, int ndim,
                                           const dnnl_dims_t dims, const dnnl_dims_t strides)
{
    return dnnl_memory_desc_create_with_strides(md, ndim, dims, type, strides);
}

// `md` was made by one of the above or is all zeros.
static inline void ot__md_release(dnnl_memory_desc_t *md)
{
    if (*md != NULL)
        dnnl_memory_desc_destroy(*md);
}

static inline dnnl_status_t ot__dnnl_append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t algorithm,
                                                    float alpha, float beta)
{
    return dnnl_post_ops_append_eltwise(ops, algorithm, alpha, beta);
}

// The result is added to what is in its memory.
static inline dnnl_status_t ot__dnnl_append_sum(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_sum(ops, 1.0F, 0, dnnl_data_type_undef);
}

#else

typedef const dnnl_memory_desc_t *ot__md; // borrowed; NULL: none

static inline ot__md ot__md_of(const dnnl_memory_desc_t *md)
{
    return md;
}

static inline dnnl_status_t ot__md_tagged(dnnl_memory_desc_t *md, dnnl_data_type_t type, int ndim,
                                          const dnnl_dims_t dims, dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_init_by_tag(md, ndim, dims, type, tag);
}

static inline dnnl_status_t ot__md_strided(dnnl_memory_desc_t *md, dnnl_data_type_t type, int ndim,
                                           const dnnl_dims_t dims, const dnnl_dims_t strides)
{
    return dnnl_memory_desc_init_by_strides(md, ndim, dims, type, strides);
}

static inline void ot__md_release(dnnl_memory_desc_t *md)
{
    (void)md;
}

static inline dnnl_status_t ot__dnnl_append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t algorithm,
                                                    float alpha, float beta)
{
    return dnnl_post_ops_append_eltwise(ops, 1.0F, algorithm, alpha, beta);
}

static inline dnnl_status_t ot__dnnl_append_sum(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_sum(ops, 1.0F);
}

#endif

typedef struct ot__dnnl_convolution {
    ot__dnnl_direction direction;
    ot__md x, w, b, y;                                    // b NULL: none
    const int64_t *strides, *dilations, *pads, *pads_end; // dilations as oneDNN counts: from 0
} ot__dnnl_convolution;

#if DNNL_VERSION_MAJOR >= 3

static inline dnnl_status_t ot__dnnl_pd_convolution(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                                    const ot__dnnl_convolution *c,
                                                    const_dnnl_primitive_desc_t forward,
                                                    const_dnnl_primitive_attr_t attr)
{
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;

    switch (c->direction) {
    case OT__DNNL_FORWARD:
        return dnnl_convolution_forward_primitive_desc_create(
            pd, engine, dnnl_forward_training, direct, c->x, c->w, c->b, c->y, c->strides,
            c->dilations, c->pads, c->pads_end, attr);
    case OT__DNNL_BACKWARD_DATA:
        return dnnl_convolution_backward_data_primitive_desc_create(
            pd, engine, direct, c->x, c->w, c->y, c->strides, c->dilations, c->pads, c->pads_end,
            forward, attr);
    default:
        return dnnl_convolution_backward_weights_primitive_desc_create(
            pd, engine, direct, c->x, c->w, c->b, c->y, c->strides, c->dilations, c->pads,
            c->pads_end, forward, attr);
    }
}

// `bias` NULL: none.
static inline dnnl_status_t ot__dnnl_pd_matmul(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                               ot__md a, ot__md b, ot__md bias, ot__md y,
                                               const_dnnl_primitive_attr_t attr)
{
    return dnnl_matmul_primitive_desc_create(pd, engine, a, b, bias, y, attr);
}

#else

static inline dnnl_status_t ot__dnnl_pd_convolution(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                                    const ot__dnnl_convolution *c,
                                                    const_dnnl_primitive_desc_t forward,
                                                    const_dnnl_primitive_attr_t attr)
{
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;
    dnnl_convolution_desc_t desc;

    switch (c->direction) {
    case OT__DNNL_FORWARD:
        OT__DNNL_TRY(dnnl_dilated_convolution_forward_desc_init(
            &desc, dnnl_forward_training, direct, c->x, c->w, c->b, c->y, c->strides, c->dilations,
            c->pads, c->pads_end));
        break;
    case OT__DNNL_BACKWARD_DATA:
        OT__DNNL_TRY(dnnl_dilated_convolution_backward_data_desc_init(
            &desc, direct, c->x, c->w, c->y, c->strides, c->dilations, c->pads, c->pads_end));
        break;
    default:
        OT__DNNL_TRY(dnnl_dilated_convolution_backward_weights_desc_init(
            &desc, direct, c->x, c->w, c->b, c->y, c->strides, c->dilations, c->pads, c->pads_end));
        break;
    }
    return dnnl_primitive_desc_create(pd, &desc, attr, engine, forward);
}

static inline dnnl_status_t ot__dnnl_pd_matmul(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                               ot__md a, ot__md b, ot__md bias, ot__md y,
                                               const_dnnl_primitive_attr_t attr)
{
    dnnl_matmul_desc_t desc;

    OT__DNNL_TRY(dnnl_matmul_desc_init(&desc, a, b, bias, y));
    return dnnl_primitive_desc_create(pd, &desc, attr, engine, NULL);
}

#endif

#endif
