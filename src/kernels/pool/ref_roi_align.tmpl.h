// SPDX-License-Identifier: Apache-2.0
// One element type of ref_roi_align.c. How many points a bin has is decided by numbers of that
// type, as other programs do.

static void FN(find_lines)(roi_line *lines, const job *j, int64_t roi)
{
    const ot__roi_align *p = j->p;
    const T scale = (T)p->scale, shift = p->is_shifted ? (T)0.5 : 0;

    for (int a = 0; a < OT__ROI_AXES; a++) {
        const T *r = (const T *)j->rois + 4 * roi + OT__ROI_AXES - 1 - a;
        const T start = r[0] * scale - shift, end = r[2] * scale - shift;
        const T size = p->is_shifted ? end - start : OT_MAX(end - start, 1);

        fill_line(&lines[a], p, a, (double)start, (double)(size / (T)p->out[a]));
    }
}

// ---- means ----

static double FN(bin_sum)(const T *plane, int64_t row, const roi_bin *h, const roi_bin *w)
{
    const T *x = plane + h->first * row + w->first;
    double sum = 0;

    for (int64_t i = 0; i < h->n; i++, x += row) {
        double line = 0;

        for (int64_t k = 0; k < w->n; k++)
            line += w->weights[k] * (double)x[k];
        sum += h->weights[i] * line;
    }
    return sum;
}

static void FN(add_to_bin)(T *plane, int64_t row, const roi_bin *h, const roi_bin *w, double dy)
{
    T *x = plane + h->first * row + w->first;

    for (int64_t i = 0; i < h->n; i++, x += row) {
        const double line = h->weights[i] * dy;

        for (int64_t k = 0; k < w->n; k++)
            x[k] += (T)(line * w->weights[k]);
    }
}

// ---- maxima: as ONNX has it, of what each element gives to its point ----

typedef struct FN(roi_best) {
    double value, weight;
    int64_t at; // -1: outside
} FN(roi_best);

static void FN(take_larger)(FN(roi_best) * best, const T *plane, int64_t at, double weight,
                            bool *is_first)
{
    const double value = weight * (double)plane[at];

    if (*is_first || value > best->value || value != value)
        *best = (FN(roi_best)){value, weight, at};
    *is_first = false;
}

static FN(roi_best) FN(find_best)(const T *plane, int64_t row, const roi_bin *h, const roi_bin *w)
{
    FN(roi_best) best = {.at = -1};
    bool is_first = !h->has_outside && !w->has_outside;

    for (int64_t i = 0; i < h->n_samples; i++)
        for (int64_t k = 0; k < w->n_samples; k++) {
            const roi_sample *a = &h->samples[i], *b = &w->samples[k];

            FN(take_larger)
            (&best, plane, a->low * row + b->low, a->low_weight * b->low_weight, &is_first);
            FN(take_larger)
            (&best, plane, a->low * row + b->high, a->low_weight * b->high_weight, &is_first);
            FN(take_larger)
            (&best, plane, a->high * row + b->low, a->high_weight * b->low_weight, &is_first);
            FN(take_larger)
            (&best, plane, a->high * row + b->high, a->high_weight * b->high_weight, &is_first);
        }
    return best;
}

// ---- regions ----

static void FN(pool_channel)(T *y, const T *plane, const ot__roi_align *p, const roi_line *lines)
{
    const double n = OT_MAX(lines[0].n_samples * lines[1].n_samples, 1.0);

    for (int64_t h = 0; h < p->out[0]; h++)
        for (int64_t w = 0; w < p->out[1]; w++) {
            const roi_bin *a = &lines[0].bins[h], *b = &lines[1].bins[w];

            *y++ = (T)(p->is_max ? FN(find_best)(plane, p->in[1], a, b).value
                                 : FN(bin_sum)(plane, p->in[1], a, b) / n);
        }
}

static void FN(spread_channel)(T *dx, const T *dy, const T *plane, const ot__roi_align *p,
                               const roi_line *lines)
{
    const double share = 1 / OT_MAX(lines[0].n_samples * lines[1].n_samples, 1.0);

    for (int64_t h = 0; h < p->out[0]; h++)
        for (int64_t w = 0; w < p->out[1]; w++, dy++) {
            const roi_bin *a = &lines[0].bins[h], *b = &lines[1].bins[w];

            if (p->is_max) {
                const FN(roi_best) best = FN(find_best)(plane, p->in[1], a, b);

                if (best.at >= 0)
                    dx[best.at] += (T)(best.weight * (double)*dy);
            } else {
                FN(add_to_bin)(dx, p->in[1], a, b, share * (double)*dy);
            }
        }
}

// Each part has some channels of regions, in their order.
static void FN(pool_parts)(void *context, int64_t first, int64_t last)
{
    const job *j = context;
    const ot__roi_align *p = j->p;
    const int64_t n_in = p->in[0] * p->in[1], n_out = p->out[0] * p->out[1];

    for (int64_t part = first; part < last; part++) {
        const int64_t behind = part_start(p->n_rois * p->channels, part + 1, p->n_parts);
        int64_t of_lines = -1;
        roi_line lines[OT__ROI_AXES];

        place_lines(lines, p, j->scratch + (size_t)part * j->part_bytes);
        for (int64_t i = part_start(p->n_rois * p->channels, part, p->n_parts); i < behind; i++) {
            const int64_t roi = i / p->channels;

            if (roi != of_lines)
                FN(find_lines)(lines, j, roi);
            of_lines = roi;
            FN(pool_channel)
            ((T *)j->to + i * n_out,
             (const T *)j->x + (j->image[roi] * p->channels + i % p->channels) * n_in, p, lines);
        }
    }
}

void FN(ot__ref_roi_align)(T *y, const T *x, const T *rois, const int64_t *image,
                           const ot__roi_align *p, void *scratch)
{
    job j = make_roi_job(p, y, x, rois, image, scratch);

    ot__parallel_for(p->n_parts, 1, FN(pool_parts), &j);
}

// Each part has some channels of all images, and goes through the regions in their order.
static void FN(spread_parts)(void *context, int64_t first, int64_t last)
{
    const job *j = context;
    const ot__roi_align *p = j->p;
    const int64_t n_in = p->in[0] * p->in[1], n_out = p->out[0] * p->out[1];
    T *dx = j->to;

    for (int64_t part = first; part < last; part++) {
        const int64_t from = part_start(p->channels, part, p->n_parts);
        const int64_t behind = part_start(p->channels, part + 1, p->n_parts);
        roi_line lines[OT__ROI_AXES];

        place_lines(lines, p, j->scratch + (size_t)part * j->part_bytes);
        for (int64_t n = 0; n < p->batch; n++)
            for (int64_t i = (n * p->channels + from) * n_in; i < (n * p->channels + behind) * n_in;
                 i++)
                dx[i] = 0;
        for (int64_t roi = 0; roi < p->n_rois && from < behind; roi++) {
            FN(find_lines)(lines, j, roi);
            for (int64_t c = from; c < behind; c++) {
                const int64_t plane = (j->image[roi] * p->channels + c) * n_in;

                FN(spread_channel)
                (dx + plane, (const T *)j->dy + (roi * p->channels + c) * n_out,
                 p->is_max ? (const T *)j->x + plane : NULL, p, lines);
            }
        }
    }
}

void FN(ot__ref_roi_align_grad)(T *dx, const T *dy, const T *x, const T *rois, const int64_t *image,
                                const ot__roi_align *p, void *scratch)
{
    job j = make_roi_job(p, dx, x, rois, image, scratch);

    j.dy = dy;
    ot__parallel_for(p->n_parts, 1, FN(spread_parts), &j);
}
