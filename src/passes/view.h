// SPDX-License-Identifier: Apache-2.0
// Where the elements of a value lie in another one that it is a view of.
#ifndef OT_PASSES_VIEW_H
#define OT_PASSES_VIEW_H

#include "graph/graph.h"

enum { OT_VIEW_ATOMS = 24 };

// An axis, or a part of one: axes that were joined are several atoms, the outermost first. None has
// the size 1.
typedef struct ot__atom {
    int64_t size, stride; // in elements of the source
    int axis;             // of the view
} ot__atom;

typedef struct ot__view {
    ot_value *source;
    int64_t offset;
    ot_shape shape; // of the view
    ot__atom atoms[OT_VIEW_ATOMS];
    int n;
} ot__view;

// The whole of a value that has a static shape without an extent of 0; false: it has none.
bool ot__view_of(ot_value *value, ot__view *view);
// Whether a node makes output `i` by choosing and ordering elements of input 0 alone.
bool ot__match_view(const ot_node *node);
// What the node's output `output` is of the source that its input 0 is `view` of. False: no view.
bool ot__view_apply(const ot_node *node, const ot_value *output, ot__view *view);
// The same elements under another shape; false: not as atoms.
bool ot__view_reshape(ot__view *view, const ot_shape *shape);
// Joins atoms of one axis that lie one behind the other.
void ot__view_join(ot__view *view);
// The stride of an axis that is one atom or of extent 1 (0, then); false: it is more.
bool ot__view_stride(const ot__view *view, int axis, int64_t *stride);

#endif
