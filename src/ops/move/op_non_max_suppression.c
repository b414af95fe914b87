// SPDX-License-Identifier: Apache-2.0
// NonMaxSuppression: the boxes of each class by their scores, without those that overlap a better
// one too much. How many there are only the elements say.
#include "ops/move/move.h"

#include <math.h>

enum { BOXES, SCORES, MOST, IOU, SCORE }; // inputs

static bool infer_detection(ot_infer *c)
{
    const ot_shape *boxes = ot_infer_shape(c, BOXES), *scores = ot_infer_shape(c, SCORES);

    if (boxes->ndim != 3 || scores->ndim != 3)
        return ot__refuse(c, "boxes have %d axes and scores %d, expected 3 each", boxes->ndim,
                          scores->ndim);
    if (ot_dim_is_number(boxes->dim[2]) && boxes->dim[2] != 4)
        return ot__refuse(c, "boxes have %" PRId64 " numbers, expected 4", boxes->dim[2]);
    if (ot__dim_differs(boxes->dim[0], scores->dim[0]))
        return ot__refuse(c, "boxes are of %" PRId64 " batches, scores of %" PRId64, boxes->dim[0],
                          scores->dim[0]);
    if (ot__dim_differs(boxes->dim[1], scores->dim[2]))
        return ot__refuse(c, "there are %" PRId64 " boxes and scores of %" PRId64, boxes->dim[1],
                          scores->dim[2]);
    return ot__infer_one_element(c, MOST) && ot__infer_one_element(c, IOU) &&
           ot__infer_one_element(c, SCORE);
}

// The thresholds, of NULL where they are not given, and the shapes.
static ot_status read_detection(ot__nms *p, const ot_shape *scores, bool is_center,
                                const int64_t *most, const float *iou, const float *score)
{
    *p = (ot__nms){.batch = scores->dim[0],
                   .n_classes = scores->dim[1],
                   .n_boxes = scores->dim[2],
                   .most = most == NULL ? 0 : *most,
                   .iou_threshold = iou == NULL ? 0.0F : *iou,
                   .score_threshold = score == NULL ? -INFINITY : *score,
                   .is_center = is_center};
    if (!(p->iou_threshold >= 0 && p->iou_threshold <= 1))
        return ot__error(OT_ERR_INVALID, "iou_threshold is %g, expected 0 to 1",
                         (double)p->iou_threshold);
    return OT_OK;
}

// Of constants; unknown where one of the inputs is none.
static int64_t count_selected(ot_infer *c)
{
    const void *data[5] = {NULL};
    int64_t *scratch, count = ot_dim_unknown();
    ot__nms p;

    for (int i = 0; i < 5; i++) {
        const ot_tensor *x = ot_infer_constant(c, i);

        if (x != NULL && (i < MOST || ot_tensor_count(x) == 1))
            data[i] = ot_tensor_data_const(x);
        else if (ot_infer_has(c, i))
            return ot_dim_unknown();
    }
    if (read_detection(&p, ot_infer_shape(c, SCORES),
                       ot_attr_int(ot_infer_node(c), "center_point_box") != 0, data[MOST],
                       data[IOU], data[SCORE]) != OT_OK) {
        ot_infer_fail(c, "%s", ot_error_message());
        return count;
    }
    scratch = ot__alloc_zero((size_t)p.n_boxes + 1, 2 * sizeof(*scratch));
    if (ot__infer_made(c, scratch != NULL))
        count = ot__ref_nms(NULL, 0, data[BOXES], data[SCORES], &p, scratch);
    ot__free(scratch);
    return count;
}

static void nms_infer(ot_infer *c)
{
    if (infer_detection(c))
        ot_infer_set(c, 0, OT_I64, &OT_SHAPE(ot_infer_has(c, MOST) ? count_selected(c) : 0, 3));
}

typedef struct nms_state {
    bool is_center;
} nms_state;

static ot_status nms_prep(ot_prep *p)
{
    nms_state *state = ot_prep_state(p, sizeof(*state));

    OT_TRY(ot__made(state));
    state->is_center = ot_attr_int(ot_prep_node(p), "center_point_box") != 0;
    if (ot_prep_in(p, SCORES)->count > 0)
        ot_prep_scratch(p, 2 * (size_t)ot_prep_in(p, SCORES)->shape.dim[2] * sizeof(int64_t));
    return OT_OK;
}

static ot_status nms_run(const ot_run *r)
{
    const nms_state *state = r->state;
    const ot_arg *scores = r->in[SCORES], *y = r->out[0];
    int64_t count = 0;
    ot__nms p;

    for (int i = MOST; i < r->n_in; i++)
        if (r->in[i] != NULL && r->in[i]->count != 1)
            return ot__error(OT_ERR_INVALID, "input %d has %" PRId64 " elements, expected 1", i,
                             r->in[i]->count);
    OT_TRY(read_detection(&p, &scores->shape, state->is_center, ot__run_in(r, MOST),
                          ot__run_in(r, IOU), ot__run_in(r, SCORE)));
    if (scores->count > 0)
        count =
            ot__ref_nms(y->data, y->shape.dim[0], r->in[BOXES]->data, scores->data, &p, r->scratch);
    return ot__check_planned(count, "boxes are selected", y->shape.dim[0]);
}

static const ot_port nms_in[] = {
    {"boxes", "f32", OT_PORT_NO_GRAD | OT_PORT_F32},
    {"scores", "f32", OT_PORT_NO_GRAD | OT_PORT_F32},
    {"max_output_boxes_per_class", "i64", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {"iou_threshold", "f32", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD | OT_PORT_F32},
    {"score_threshold", "f32", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD | OT_PORT_F32},
    {0},
};
static const ot_port nms_out[] = {{"selected_indices", "i64", 0}, {0}};
static const ot_attr_spec nms_attrs[] = {OT__FLAG_ATTR("center_point_box", 0), {0}};
static const ot_kernel nms_kernels[] = {OT__REF_KERNEL(NULL, nms_prep, nms_run), {0}};
const ot_op_def ot__op_non_max_suppression[] = {
    {.name = "NonMaxSuppression",
     .since = 10,
     .inputs = nms_in,
     .outputs = nms_out,
     .attrs = nms_attrs,
     .types = "",
     .infer = nms_infer,
     .kernels = nms_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
