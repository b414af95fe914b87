// SPDX-License-Identifier: Apache-2.0
// Accuracy, mean absolute error and R2 as sums over batches.
#include "train/train.h"

// A batch has as many of them as scores: the usual types are read without a call.
static inline double metric_element(const ot_tensor *tensor, int64_t i)
{
    if (tensor->dtype == OT_F32)
        return ((const float *)tensor->data)[i];
    if (tensor->dtype == OT_F64)
        return ((const double *)tensor->data)[i];
    return ot__tensor_get_f64(tensor, i);
}

// Arg max over the class axis of scores [N, C, ...] or [N, ..., C] against integer labels [N, ...];
// labels outside 0..C-1 (ignored ones) do not count.
static ot_status add_arg_max(ot__metric_sums *sums, int class_axis, const ot_tensor *scores,
                             const ot_tensor *labels)
{
    const int axis = class_axis < 0 ? scores->shape.ndim - 1 : 1;
    int64_t n_rows = 1, n_classes, inner = 1;

    if (class_axis != 1 && class_axis != -1)
        return ot__error(OT_ERR_INVALID, "class axis %d, expected 1, or -1: the last", class_axis);
    if (scores->shape.ndim < 2)
        return ot__error(OT_ERR_INVALID, "accuracy needs scores [N, classes, ...], got %d axes",
                         scores->shape.ndim);
    n_classes = scores->shape.dim[axis];
    for (int i = 0; i < axis; i++)
        n_rows *= scores->shape.dim[i];
    for (int i = axis + 1; i < scores->shape.ndim; i++)
        inner *= scores->shape.dim[i];
    if (ot_tensor_count(labels) != n_rows * inner)
        return ot__error(OT_ERR_INVALID, "accuracy needs %" PRId64 " labels, got %" PRId64,
                         n_rows * inner, ot_tensor_count(labels));
    for (int64_t i = 0; i < n_rows * inner; i++) {
        int64_t label = ot__tensor_get_i64(labels, i), best = 0;
        int64_t first = i / inner * n_classes * inner + i % inner;

        if (label < 0 || label >= n_classes)
            continue;
        for (int64_t c = 1; c < n_classes; c++)
            if (metric_element(scores, first + c * inner) >
                metric_element(scores, first + best * inner))
                best = c;
        sums->correct += best == label;
        sums->counted += 1;
    }
    return OT_OK;
}

static ot_status check_same_count(const ot_tensor *scores, const ot_tensor *targets)
{
    if (ot_tensor_count(scores) != ot_tensor_count(targets))
        return ot__error(OT_ERR_INVALID,
                         "metrics need as many targets as predictions: %" PRId64 " and %" PRId64,
                         ot_tensor_count(targets), ot_tensor_count(scores));
    return OT_OK;
}

// Logits against targets 0 and 1.
static ot_status add_sign(ot__metric_sums *sums, const ot_tensor *scores, const ot_tensor *targets)
{
    OT_TRY(check_same_count(scores, targets));
    for (int64_t i = 0; i < ot_tensor_count(scores); i++)
        sums->correct += (metric_element(scores, i) > 0) == (metric_element(targets, i) > 0.5);
    sums->counted += (double)ot_tensor_count(scores);
    return OT_OK;
}

static ot_status add_differences(ot__metric_sums *sums, const ot_tensor *predictions,
                                 const ot_tensor *targets)
{
    OT_TRY(check_same_count(predictions, targets));
    for (int64_t i = 0; i < ot_tensor_count(targets); i++) {
        double target = metric_element(targets, i);
        double difference = metric_element(predictions, i) - target;

        if (sums->elements++ == 0)
            sums->shift = target; // so that the variance does not cancel
        sums->absolute += difference < 0 ? -difference : difference;
        sums->squared += difference * difference;
        sums->targets += target - sums->shift;
        sums->targets_squared += (target - sums->shift) * (target - sums->shift);
    }
    return OT_OK;
}

static ot_status add_task(ot__metric_sums *sums, ot_task task, int class_axis,
                          const ot_tensor *scores, const ot_tensor *labels)
{
    if (task == OT_TASK_NONE || !scores || !labels)
        return OT_OK;
    if (task == OT_TASK_REGRESSION)
        return add_differences(sums, scores, labels);
    return ot__dtype_is_int(labels->dtype) ? add_arg_max(sums, class_axis, scores, labels)
                                           : add_sign(sums, scores, labels);
}

// A batch is summed by itself, so that the bits are the same whoever has summed it.
ot_status ot__metrics_add(ot__metric_sums *sums, ot_task task, int class_axis, int64_t rows,
                          double loss, const ot_tensor *scores, const ot_tensor *labels)
{
    ot__metric_sums batch = {.rows = rows, .loss = loss * (double)rows};

    OT_TRY(add_task(&batch, task, class_axis, scores, labels));
    ot__metrics_join(sums, &batch);
    return OT_OK;
}

void ot__metrics_join(ot__metric_sums *sums, const ot__metric_sums *more)
{
    const double n = (double)more->elements;
    double moved;

    if (sums->elements == 0)
        sums->shift = more->shift;
    moved = more->shift - sums->shift; // of targets that are more than the other shift
    sums->rows += more->rows;
    sums->loss += more->loss;
    sums->correct += more->correct;
    sums->counted += more->counted;
    if (more->elements == 0)
        return;
    sums->elements += more->elements;
    sums->absolute += more->absolute;
    sums->squared += more->squared;
    sums->targets += more->targets + n * moved;
    sums->targets_squared += more->targets_squared + 2 * moved * more->targets + n * moved * moved;
}

ot_metrics ot__metrics_of(const ot__metric_sums *sums, double seconds)
{
    ot_metrics metrics = {.rows = sums->rows, .seconds = seconds};
    double n = (double)sums->elements, spread;

    if (sums->rows > 0)
        metrics.loss = sums->loss / (double)sums->rows;
    if (sums->counted > 0)
        metrics.accuracy = sums->correct / sums->counted;
    if (n > 0) {
        spread = sums->targets_squared - sums->targets * sums->targets / n;
        metrics.mae = sums->absolute / n;
        metrics.r2 = spread > 0 ? 1 - sums->squared / spread : 0;
    }
    return metrics;
}
