// SPDX-License-Identifier: Apache-2.0
// Part of the interface of `kernels`: regions of images pooled to one size. Only kernels.h includes
// this.
#ifndef OT_KERNELS_KERNELS_ROI_H
#define OT_KERNELS_KERNELS_ROI_H

#include "kernels/kernels_nn.h"

enum { OT__ROI_AXES = 2 };

// ---- ref_roi_align.c: y (n_rois, channels, out...) = means, or maxima, over points of regions
// (n_rois, 4) of images x (batch, channels, in...); image[r] is the one that region r is in ----

typedef struct ot__roi_align {
    int64_t n_rois, batch, channels;
    int64_t in[OT__ROI_AXES], out[OT__ROI_AXES];
    float scale;       // of the regions' coordinates
    int64_t n_samples; // points along each axis of an element of y; 0: as many as it is wide
    bool is_shifted;   // by half an element
    bool is_max;
    int n_parts; // worked on at the same time
} ot__roi_align;
// Bytes of scratch of all parts; false: too many.
bool ot__ref_roi_align_bytes(const ot__roi_align *p, size_t *n_bytes);
#define OT_DECLARE(suffix, T)                                                                      \
    void ot__ref_roi_align_##suffix(T *y, const T *x, const T *rois, const int64_t *image,         \
                                    const ot__roi_align *p, void *scratch);                        \
    /* x is read for maxima alone */                                                               \
    void ot__ref_roi_align_grad_##suffix(T *dx, const T *dy, const T *x, const T *rois,            \
                                         const int64_t *image, const ot__roi_align *p,             \
                                         void *scratch);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE

// ---- ref_max_roi_pool.c: y (n_rois, channels, out...) = maxima over parts of regions (n_rois, 5),
// each an image's number and the first and last element along the axes, the last one first ----

typedef struct ot__roi_pool {
    int64_t n_rois, batch, channels;
    int64_t in[OT__ROI_AXES], out[OT__ROI_AXES];
    float scale;
} ot__roi_pool;
#define OT_DECLARE(suffix, T)                                                                      \
    /* the first region whose image is none, or -1; then the others are called */                  \
    int64_t ot__ref_max_roi_check_##suffix(const T *rois, const ot__roi_pool *p);                  \
    void ot__ref_max_roi_pool_##suffix(T *y, const T *x, const T *rois, const ot__roi_pool *p);    \
    void ot__ref_max_roi_pool_grad_##suffix(T *dx, const T *dy, const T *x, const T *rois,         \
                                            const ot__roi_pool *p);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE

#endif
