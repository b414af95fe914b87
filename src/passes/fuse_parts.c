// SPDX-License-Identifier: Apache-2.0
// A value of which several nodes read a part each, as the turns of a loop do that was written out
// (Gather of one index, Slice). The gradient of each is as large as the value, with zeros around
// the part, and all of them are added up. Parts that do not overlap along an axis are joined
// instead: Sum(GatherGrad(a), SliceGrad(b), ...) becomes Concat(a, b, ...), where zeros that are
// left between two parts go with the second.
#include <stdlib.h>

#include "passes/fuse.h"

enum { GATHER_INDEX = 1, GATHER_DY }; // inputs of GatherGrad
enum { SLICE_DY, SLICE_STARTS = 2 };  // inputs of SliceGrad

// What input number `at` of a Sum has at first .. end - 1 along an axis, where it is not 0.
typedef struct part {
    int at, axis;
    int64_t first, end;
    ot_value *dy;
} part;

static bool read_part_of(const ot__fusing *f, const ot_node *sum, int at, part *p)
{
    const ot_value *gradient = sum->inputs[at];
    const ot_node *node = gradient->producer;
    const ot_shape *whole = &sum->outputs[0]->shape;

    p->at = at;
    if (ot__fuse_only_reader(f, gradient) != sum ||
        !ot__values_same_shape(gradient, sum->outputs[0]))
        return false;
    if (ot__node_is(node, "com.microsoft", "SliceGrad")) {
        p->dy = node->inputs[SLICE_DY];
        return ot__fuse_range(node, SLICE_STARTS, whole, &p->axis, &p->first, &p->end);
    }
    if (!ot__node_is(node, "com.microsoft", "GatherGrad") ||
        !ot__fuse_integer(node, GATHER_INDEX, &p->first))
        return false;
    p->axis = ot__fuse_axis(node, whole);
    p->dy = node->inputs[GATHER_DY];
    if (p->axis < 0)
        return false;
    p->first += p->first < 0 ? whole->dim[p->axis] : 0;
    p->end = p->first + 1;
    return p->first >= 0 && p->end <= whole->dim[p->axis];
}

static int compare_parts(const void *a, const void *b)
{
    const part *x = a, *y = b;

    if (x->axis != y->axis)
        return x->axis - y->axis;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->at - y->at;
}

// Moves those of parts from `from` on, all of one axis, to `to` that begin where those before them
// have ended; how many.
static int move_disjoint(part *to, const part *from, int n)
{
    int64_t end = 0;
    int n_to = 0;

    for (int i = 0; i < n; i++)
        if (from[i].first >= end) {
            end = from[i].end;
            to[n_to++] = from[i];
        }
    return n_to;
}

// The most parts of one axis that do not overlap, in their order, in front of `parts`; how many.
static int choose_parts(part *parts, int n)
{
    int best = 0, best_first = 0;

    qsort(parts, (size_t)n, sizeof *parts, compare_parts);
    for (int first = 0, behind; first < n; first = behind) {
        for (behind = first; behind < n && parts[behind].axis == parts[first].axis; behind++)
            ;
        if (behind - first > best) {
            best = behind - first;
            best_first = first;
        }
    }
    return move_disjoint(parts, parts + best_first, best);
}

static ot_value *list_of(ot__builder *b, const ot_node *node, const char *what,
                         const int64_t *numbers, int n)
{
    return ot__fuse_list(b, ot__build_name(b, "%s/%s", node->name, what), numbers, n);
}

// The part with its axis, where an index has taken that, and with zeros from `from` to `to`.
static ot_value *build_piece(ot__builder *b, const ot_node *sum, const part *p, int64_t from,
                             int64_t to)
{
    const ot_node *node = sum->inputs[p->at]->producer;
    ot_shape shape = sum->outputs[0]->shape;
    ot_value *piece = p->dy, *in[5] = {NULL};

    shape.dim[p->axis] = p->end - p->first;
    if (!piece->has_shape || !ot__shape_equal(&piece->shape, &shape)) {
        in[0] = piece;
        in[1] = list_of(b, node, "part", shape.dim, shape.ndim);
        piece = ot__build_value(b, ot__build_name(b, "%s/part_of", node->name));
        ot__op_settle(b, ot__op_build(b, "", "Reshape", node->name, in, 2, &piece, 1));
    }
    if (to - from == p->end - p->first)
        return piece;
    shape.dim[p->axis] = to - from;
    in[0] = piece;
    in[1] = list_of(b, node, "shape", shape.dim, shape.ndim);
    in[2] = list_of(b, node, "starts", &(int64_t){p->first - from}, 1);
    in[3] = list_of(b, node, "ends", &(int64_t){p->end - from}, 1);
    in[4] = list_of(b, node, "axes", &(int64_t){p->axis}, 1);
    piece = ot__build_value(b, ot__build_name(b, "%s/with_zeros", node->name));
    ot__op_settle(b, ot__op_build(b, "com.microsoft", "SliceGrad", node->name, in, 5, &piece, 1));
    return piece;
}

// The parts in one, and what else is added up.
static ot_status join_side_by_side(ot__fusing *f, ot_node *sum, const part *parts, int n,
                                   ot_value **in)
{
    const int64_t extent = sum->outputs[0]->shape.dim[parts[0].axis];
    ot__builder b = {.graph = f->graph};
    ot_value *joined = sum->outputs[0];
    ot_node *concat;
    int n_rest = 1;

    for (int i = 0; i < n; i++)
        in[i] = build_piece(&b, sum, &parts[i], i == 0 ? 0 : parts[i - 1].end,
                            i == n - 1 ? extent : parts[i].end);
    for (int i = 0; i < n; i++) {
        ot__node_detach(sum->inputs[parts[i].at]->producer);
        sum->inputs[parts[i].at] = NULL;
    }
    ot__node_detach(sum);
    if (sum->n_inputs > n)
        joined = ot__build_value(&b, ot__build_name(&b, "%s_parts", sum->outputs[0]->name));
    concat = ot__op_build(&b, "", "Concat", sum->name, in, n, &joined, 1);
    ot__build_int(&b, concat, "axis", parts[0].axis);
    ot__op_settle(&b, concat);
    if (sum->n_inputs == n)
        return b.status;
    in[0] = joined;
    for (int i = 0; i < sum->n_inputs; i++)
        if (sum->inputs[i] != NULL)
            in[n_rest++] = sum->inputs[i];
    ot__op_settle(&b, ot__op_build(&b, "", "Sum", sum->name, in, n_rest, sum->outputs, 1));
    return b.status;
}

static ot_status fuse_sum_of_parts(ot__fusing *f, ot_node *sum)
{
    ot__arena *arena = f->graph->model->arena;
    ot_value **in;
    part *parts;
    int n = 0;

    if (!ot__node_is(sum, "", "Sum") || sum->n_inputs < 2 || !sum->outputs[0]->has_shape ||
        !ot__shape_is_static(&sum->outputs[0]->shape))
        return OT_OK;
    parts = ot__arena_alloc(arena, (size_t)sum->n_inputs * sizeof *parts);
    in = ot__arena_alloc(arena, ((size_t)sum->n_inputs + 1) * sizeof *in);
    OT_TRY(ot__made(parts != NULL && in != NULL));
    for (int i = 0; i < sum->n_inputs; i++)
        n += read_part_of(f, sum, i, &parts[n]);
    n = choose_parts(parts, n);
    return n < 2 ? OT_OK : join_side_by_side(f, sum, parts, n, in);
}

ot_status ot__fuse_parts(ot_model *model)
{
    return ot__fuse_each(model, fuse_sum_of_parts);
}
