// SPDX-License-Identifier: Apache-2.0
// What the Reduce* records share.
#ifndef OT_OPS_REDUCTION_H
#define OT_OPS_REDUCTION_H

#include "ops/move/move.h"

// Shape; axes from the attribute (before opset 18) or input 1.
void ot__infer_reduce(ot_infer *c);
// Also known integer elements, when everything is reduced; `fold` joins two, which may be symbols.
void ot__infer_reduce_known(ot_infer *c, int64_t (*fold)(ot_infer *c, int64_t a, int64_t b));
ot_status ot__prep_reduce(ot_prep *p, ot__reduce_op op);
ot_status ot__run_reduce(const ot_run *r);

// For gradient rules: `v`, which has Y's shape, with extents of 1 where Y lost axes, so that it
// broadcasts to X.
ot_value *ot__reduce_restore(ot_grad *g, ot_value *v);
// The same operator with the node's axes and attributes, but keeping the axes.
ot_value *ot__reduce_again(ot_grad *g, const char *op, ot_value *x);
// How many elements of X each element of Y stands for, a scalar of X's type.
ot_value *ot__reduce_count(ot_grad *g);
// Sum of a mask of X's shape over the node's axes, which are kept.
ot_value *ot__reduce_count_where(ot_grad *g, ot_value *mask);
void ot__reduce_extreme_grad(ot_grad *g); // of ReduceMax and ReduceMin

void ot__reduce_upgrade(ot_upgrade *u); // axes to an input
extern const ot_port ot__reduce_in_1[], ot__reduce_in[], ot__reduce_out[];
extern const ot_attr_spec ot__reduce_attrs_1[], ot__reduce_attrs[];

#endif
