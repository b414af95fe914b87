// SPDX-License-Identifier: Apache-2.0
// Boxes by their scores, without those that overlap a better one too much.
#include "kernels/kernels.h"

typedef struct corners {
    float y1, x1, y2, x2; // y1 <= y2, x1 <= x2
} corners;

static corners corners_of(const float *box, bool is_center)
{
    if (is_center) // x, y, width, height
        return (corners){box[1] - box[3] / 2, box[0] - box[2] / 2, box[1] + box[3] / 2,
                         box[0] + box[2] / 2};
    return (corners){OT_MIN(box[0], box[2]), OT_MIN(box[1], box[3]), OT_MAX(box[0], box[2]),
                     OT_MAX(box[1], box[3])};
}

static float area_of(const corners *c)
{
    return (c->y2 - c->y1) * (c->x2 - c->x1);
}

// Whether the area that both have is more than that part of the area of either.
static bool overlap(const corners *a, const corners *b, float threshold)
{
    const float height = OT_MIN(a->y2, b->y2) - OT_MAX(a->y1, b->y1);
    const float width = OT_MIN(a->x2, b->x2) - OT_MAX(a->x1, b->x1);
    const float a_area = area_of(a), b_area = area_of(b), common = height * width;

    return height > 0 && width > 0 && a_area > 0 && b_area > 0 &&
           common / (a_area + b_area - common) > threshold;
}

static bool is_suppressed(const float *boxes, int64_t box, const int64_t *kept, int64_t n_kept,
                          const ot__nms *p)
{
    const corners c = corners_of(boxes + 4 * box, p->is_center);

    for (int64_t k = 0; k < n_kept; k++) {
        const corners other = corners_of(boxes + 4 * kept[k], p->is_center);

        if (overlap(&c, &other, p->iou_threshold))
            return true;
    }
    return false;
}

// Of one class: kept gets the boxes. Gives how many they are.
static int64_t select_boxes(int64_t *kept, int64_t *order, const float *boxes, const float *scores,
                            const ot__nms *p)
{
    int64_t n = 0;

    ot__ref_top_k_f32(NULL, order, scores, 1, p->n_boxes, 1, p->n_boxes, true);
    for (int64_t i = 0; i < p->n_boxes && n < p->most; i++) {
        const float score = scores[order[i]];

        if (score > p->score_threshold && !is_suppressed(boxes, order[i], kept, n, p))
            kept[n++] = order[i];
    }
    return n;
}

int64_t ot__ref_nms(int64_t *selected, int64_t room, const float *boxes, const float *scores,
                    const ot__nms *p, int64_t *scratch)
{
    int64_t *order = scratch, *kept = scratch + p->n_boxes, count = 0;

    for (int64_t i = 0; i < p->batch * p->n_classes && p->most > 0 && p->n_boxes > 0; i++) {
        const int64_t b = i / p->n_classes;
        const int64_t n =
            select_boxes(kept, order, boxes + b * p->n_boxes * 4, scores + i * p->n_boxes, p);

        for (int64_t k = 0; k < n && count + k < room; k++) {
            selected[3 * (count + k)] = b;
            selected[3 * (count + k) + 1] = i % p->n_classes;
            selected[3 * (count + k) + 2] = kept[k];
        }
        count += n;
    }
    return count;
}
