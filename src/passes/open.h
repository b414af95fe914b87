// SPDX-License-Identifier: Apache-2.0
// Shared by the files that open a fixed batch: pass_open.c walks the graph, match_open.c knows the
// operators, open_place.c follows where the batch lies, open_mend.c gives constants that hold its
// size what follows it, open_rows.c makes one row of repeated ones, open_counted.c numbers rows.
#ifndef OT_PASSES_OPEN_H
#define OT_PASSES_OPEN_H

#include "passes/passes.h"

// What a value was before the walk; values made on the way have none.
typedef struct ot__was {
    bool has_shape;
    ot_shape shape;
} ot__was;

typedef struct ot__opener {
    ot_model *model;
    ot_graph *graph;
    int64_t batch;   // the number
    int64_t symbol;  // what stands in its place
    ot_value *input; // the first one that has it
    ot_value *count; // i64[1]: the batch, computed from `input`; NULL before it is needed
    int64_t block;   // of the search for rows: entries of an axis that stand for one of the batch
    const ot__numbers *numbers; // of the values there were before the walk
    ot__was *was;               // per value of these
    ot__place *places;
    ot__map made; // "one row of v along k" -> value
    struct ot__open_rows_of {
        const ot_value *from;
        ot_value *to;
    } * rows; // initializers of one row, and what they are of
    int n_rows, rows_capacity;
    ot_model *before; // what `model` was before the walk
    bool is_folded;   // `before` has constants where none of its parameters is computed with
    ot__choices *choices;
    int n_choices; // so far
    int i_sources; // the choice whether rows are repeated for the batch; from 1 on, 0: not made
    int n_changes;
} ot__opener;

// What an operator does to the axis of the batch.
typedef enum ot__open_kind {
    OT_OPEN_OTHER, // nothing is known
    OT_OPEN_CONCAT,
    OT_OPEN_CONSTANT,
    OT_OPEN_CONSTANT_OF_SHAPE,
    OT_OPEN_ELEMENTS, // takes or puts elements along an axis; others have as many entries
    OT_OPEN_ELEMENTWISE,
    OT_OPEN_EXPAND,
    OT_OPEN_GATHER,
    OT_OPEN_NORMALIZATION,
    OT_OPEN_PRODUCT,
    OT_OPEN_RECURRENT,
    OT_OPEN_RESHAPE,
    OT_OPEN_SIZES, // an input has the sizes of the output
    OT_OPEN_SLICE,
    OT_OPEN_TILE,
    OT_OPEN_TRANSPOSE,
    OT_OPEN_VIEW, // the shape follows from the input's
    OT_OPEN_KINDS
} ot__open_kind;
ot__open_kind ot__match_open(const ot_node *node); // match_open.c

const ot_shape *ot__open_was(const ot__opener *o, const ot_value *value);    // NULL: not known
const ot__place *ot__open_place(const ot__opener *o, const ot_value *value); // NULL: nowhere
static inline bool ot__place_is_known(const ot__place *place)
{
    return place->axis >= 0;
}
// The places that the batch may come to in the shape that a view of `x` had: those axes that hold
// it as a whole, the likeliest first. With a batch above 1 there is one at most; with 1, any extent
// could hold it.
int ot__open_places_in_view(const ot__opener *o, const ot_value *x, const ot_shape *y,
                            ot__place *out);

// Of an output that has just been inferred.
ot__place ot__open_find_place(const ot__opener *o, const ot_node *node, const ot_value *y);

// A new value over elements of the model's; never an initializer. NULL when out of memory.
ot_value *ot__open_list(ot__opener *o, const ot_node *node, const int64_t *numbers, int n);
// A new node of ONNX's with one output, checked and inferred; attributes as `like` has them (may be
// NULL).
ot_status ot__open_node(ot__opener *o, const char *op_type, const ot_node *named_after,
                        const ot_node *like, ot_value *const *inputs, int n_inputs, ot_value **out);
// ConstantOfShape: `element`, of the model, everywhere.
ot_status ot__open_filled(ot__opener *o, const ot_node *node, ot_value *shape, ot_tensor *element,
                          ot_value **out);
// i64[1]: the batch times `factor`.
ot_status ot__open_count(ot__opener *o, const ot_node *node, int64_t factor, ot_value **out);
// i64[n]: ones (or `numbers`) with the batch at `axis`.
ot_status ot__open_shape(ot__opener *o, const ot_node *node, const int64_t *numbers, int n,
                         int axis, ot_value **out);

// open_rows.c: `value` holds the batch size times `block` at `axis` although no batch reaches it.
// *out: what it is with one row of `block` entries there in place of equal ones; NULL when they are
// not equal or it is not known.
ot_status ot__open_one_row(ot__opener *o, ot_value *value, int axis, int64_t block, ot_value **out);
// That row as often as the batch has entries; of integers that count rows, as many of them.
ot_status ot__open_rows(ot__opener *o, const ot_node *node, ot_value *value, int axis,
                        int64_t block, ot_value **out);

// open_counted.c: what `t` is for any batch when it counts rows along `axis`, the first of which is
// `first`; *out NULL when it does not.
ot_status ot__open_counted(ot__opener *o, const ot_node *node, const ot_tensor *t,
                           const ot_tensor *first, int axis, ot_value **out);

// open_mend.c: before the node is inferred. OT_ERR_INVALID says which input holds the number.
ot_status ot__open_mend(ot__opener *o, ot_node *node);

#endif
