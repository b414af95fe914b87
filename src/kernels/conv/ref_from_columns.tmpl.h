// SPDX-License-Identifier: Apache-2.0
// One element type of ref_columns.c: out of columns.

void FN(ot__ref_from_columns)(T *x, const T *columns, int64_t c, const ot__window *w)
{
    const int64_t n = w->out[OT__WINDOW_AXES - 1], stride = w->stride[OT__WINDOW_AXES - 1];

#pragma omp parallel for schedule(static) if (c * w->n_kernel * w->n_out > OT_PAR_MIN)
    for (int64_t channel = 0; channel < c; channel++) {
        T *image = x + channel * w->n_in;

        for (int64_t row = 0; row < w->n_kernel; row++) {
            const T *from = columns + (channel * w->n_kernel + row) * w->n_out;
            int64_t k[OT__WINDOW_AXES];

            kernel_position(k, row, w);
            for (int64_t o = 0; o < w->n_out; o += n, from += n) {
                const seen_line line = see_line(w, k, o / n);

                for (int64_t i = line.first; i < line.last; i++)
                    image[line.at + (i - line.first) * stride] += from[i];
            }
        }
    }
}
