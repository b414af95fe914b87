// SPDX-License-Identifier: Apache-2.0
// Shardings: which process of a training has which elements of a tensor.
#ifndef ONNXTRAIN_SHARDING_H
#define ONNXTRAIN_SHARDING_H

#include "onnxtrain/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- boxes ----

/** A part of a tensor: `size[k]` elements of axis k from `offset[k]` on. Without axes it is the one
 * element of a scalar. */
typedef struct ot_box {
    int ndim;
    int64_t offset[OT_MAX_NDIM], size[OT_MAX_NDIM];
} ot_box;

/** The elements that are in both; `out` may be one of the two, and NULL. 0: there are none, or the
 * numbers of axes differ. */
OT_API int ot_box_intersect(const ot_box *a, const ot_box *b, ot_box *out);

/**
 * Boxes are a partition of a tensor: all within its shape, none empty, no two with an element in
 * common, and every element in one of them. A tensor without elements has no boxes.
 *
 * @param boxes NULL is fine where there are none
 * @return OT_ERR_INVALID naming the boxes, by number, or how many elements are missing
 */
OT_API ot_status ot_box_check_partition(const ot_shape *shape, const ot_box *boxes,
                                        int64_t n_boxes);

enum { OT_MAX_RANGE_BOXES = 2 * OT_MAX_NDIM - 1 };

/**
 * The elements from `begin` up to, but not including, `end` in row-major order, as boxes in that
 * order: at most 2 * ndim - 1.
 *
 * @param boxes  room for OT_MAX_RANGE_BOXES
 * @return OT_ERR_INVALID for a range that the tensor does not have
 */
OT_API ot_status ot_box_of_range(const ot_shape *shape, int64_t begin, int64_t end, ot_box *boxes,
                                 int *n_boxes);

// ---- shardings ----

/** How an axis is divided among the members of a group. */
typedef enum ot_cut_rule {
    OT_CUT_REPLICATE, ///< not at all: every member has all of it
    OT_CUT_CEIL,      ///< parts of size / n_parts, rounded up; the last ones have less, or nothing
    OT_CUT_EVEN,      ///< parts of one size, else OT_ERR_INVALID
    OT_CUT_POINTS,    ///< part i from points[i] to points[i + 1]
} ot_cut_rule;

/** Groups of processes, by number; a group takes part in one cut at most. */
enum { OT_CUT_DATA = 0, OT_CUT_HORIZONTAL = 1, OT_MAX_CUT_GROUPS = 4 };

/** One cut: an axis is divided among the members of a group. Begin with OT_CUT_INIT. */
typedef struct ot_cut {
    size_t size; ///< sizeof(ot_cut)
    int group;   ///< 0 to OT_MAX_CUT_GROUPS - 1
    int axis;
    ot_cut_rule rule;
    int n_parts; ///< members of the group
    /** The axis is so many blocks of one size, each of which is cut; a member's parts are joined.
     */
    int64_t blocks;
    const int64_t *points; ///< OT_CUT_POINTS: n_parts + 1 places in a block, from 0 to its size
} ot_cut;
#define OT_CUT_INIT                                                                                \
    {                                                                                              \
        sizeof(ot_cut), 0, 0, OT_CUT_REPLICATE, 1, 1, 0                                            \
    }

/** Where each element of a tensor is. Does not change. */
typedef struct ot_sharding ot_sharding;

/**
 * A tensor, cut one time after the other: each cut divides what the ones before it have left to a
 * process.
 *
 * @param cuts  copied, points too; NULL is fine where there are none: every process has all of it
 * @param stage the stage of a pipeline that has the tensor; -1: all of them
 * @param out   the caller destroys it
 * @return OT_ERR_INVALID naming the cut and what does not fit
 */
OT_API ot_status ot_sharding_create(ot_dtype dtype, const ot_shape *shape, const ot_cut *cuts,
                                    int n_cuts, int stage, ot_sharding **out);
OT_API void ot_sharding_destroy(ot_sharding *sharding); ///< NULL is fine

OT_API ot_dtype ot_sharding_dtype(const ot_sharding *sharding);
OT_API const ot_shape *ot_sharding_shape(const ot_sharding *sharding); ///< owned by the sharding
OT_API int ot_sharding_stage(const ot_sharding *sharding);
/** Into how many parts a group cuts the tensor; 1: its members have the same elements. */
OT_API int ot_sharding_parts(const ot_sharding *sharding, int group);

// A process is named by its place in each group, OT_MAX_CUT_GROUPS of them; those of groups that
// cut nothing do not matter. OT_ERR_INVALID for a place that a group does not have.

/** The shape of what a process has, which may be empty. */
OT_API ot_status ot_sharding_local_shape(const ot_sharding *sharding, const int *places,
                                         ot_shape *out);

/** Elements that a process has, and where they begin in its tensor. */
typedef struct ot_shard_box {
    ot_box box; ///< in the whole tensor
    int64_t local[OT_MAX_NDIM];
} ot_shard_box;

/**
 * What a process has, in the order in which its tensor has it: one box, none where it has nothing,
 * more where an axis is cut by blocks.
 *
 * @param capacity of `boxes`; with 0 it may be NULL, and only the number is told
 * @return OT_ERR_INVALID when `capacity` is less than *n_boxes, and not 0
 */
OT_API ot_status ot_sharding_boxes(const ot_sharding *sharding, const int *places, int64_t capacity,
                                   ot_shard_box *boxes, int64_t *n_boxes);

#ifdef __cplusplus
}
#endif
#endif
