// SPDX-License-Identifier: Apache-2.0
// One element type of ref_columns.c: into columns.

void FN(ot__ref_to_columns)(T *columns, const T *x, int64_t c, const ot__window *w)
{
    const int64_t n = w->out[OT__WINDOW_AXES - 1], stride = w->stride[OT__WINDOW_AXES - 1];

#pragma omp parallel for schedule(static) if (c * w->n_kernel * w->n_out > OT_PAR_MIN)
    for (int64_t row = 0; row < c * w->n_kernel; row++) {
        const T *image = x + row / w->n_kernel * w->n_in;
        T *to = columns + row * w->n_out;
        int64_t k[OT__WINDOW_AXES];

        kernel_position(k, row % w->n_kernel, w);
        for (int64_t o = 0; o < w->n_out; o += n, to += n) {
            const seen_line line = see_line(w, k, o / n);

            for (int64_t i = 0; i < line.first; i++)
                to[i] = 0;
            for (int64_t i = line.first; i < line.last; i++)
                to[i] = image[line.at + (i - line.first) * stride];
            for (int64_t i = line.last; i < n; i++)
                to[i] = 0;
        }
    }
}
