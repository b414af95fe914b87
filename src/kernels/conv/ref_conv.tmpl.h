// SPDX-License-Identifier: Apache-2.0
// One element type of ref_conv.c.

void FN(ot__ref_conv)(T *y, const T *x, const T *w, const T *b, const ot__conv *p, T *columns)
{
    const ot__window *window = &p->window;
    const int64_t n_inner = p->c_in * window->n_kernel;
    const ot__gemm product = {.m = p->c_out,
                              .n = window->n_out,
                              .k = n_inner,
                              .alpha = 1,
                              .beta = 1,
                              .a_row = n_inner,
                              .a_column = 1,
                              .b_row = window->n_out,
                              .b_column = 1,
                              .c_row = 1,
                              .y_row = window->n_out};

    for (int64_t i = 0; i < p->batch * p->groups; i++) {
        const int64_t group = i % p->groups;
        FN(ot__ref_to_columns)(columns, x + i * p->c_in * window->n_in, p->c_in, window);
        FN(ot__ref_gemm)
        (y + i * p->c_out * window->n_out, w + group * p->c_out * n_inner, columns,
         b ? b + group * p->c_out : NULL, &product, false);
    }
}

void FN(ot__ref_conv_dx)(T *dx, const T *dy, const T *w, const T *b, const ot__conv *p, T *columns)
{
    const ot__window *window = &p->window;
    const int64_t n_inner = p->c_in * window->n_kernel;
    const ot__gemm product = {.m = n_inner,
                              .n = window->n_out,
                              .k = p->c_out,
                              .alpha = 1,
                              .a_row = 1,
                              .a_column = n_inner,
                              .b_row = window->n_out,
                              .b_column = 1,
                              .y_row = window->n_out};

    for (int64_t i = 0; i < p->batch * p->groups; i++) {
        const int64_t group = i % p->groups;
        T *image = dx + i * p->c_in * window->n_in;

        for (int64_t k = 0; k < p->c_in * window->n_in; k++)
            image[k] = b ? b[group * p->c_in + k / window->n_in] : 0;
        FN(ot__ref_gemm)
        (columns, w + group * p->c_out * n_inner, dy + i * p->c_out * window->n_out, NULL, &product,
         false);
        FN(ot__ref_from_columns)(image, columns, p->c_in, window);
    }
}

void FN(ot__ref_conv_dw)(T *dw, const T *dy, const T *x, const ot__conv *p, T *columns,
                         bool accumulates)
{
    const ot__window *window = &p->window;
    const int64_t n_inner = p->c_in * window->n_kernel;
    const ot__gemm product = {.m = p->c_out,
                              .n = n_inner,
                              .k = window->n_out,
                              .alpha = 1,
                              .a_row = window->n_out,
                              .a_column = 1,
                              .b_row = 1,
                              .b_column = window->n_out,
                              .y_row = n_inner};

    for (int64_t i = 0; i < p->batch * p->groups; i++) {
        T *to = dw + i % p->groups * p->c_out * n_inner;
        FN(ot__ref_to_columns)(columns, x + i * p->c_in * window->n_in, p->c_in, window);
        FN(ot__ref_gemm)
        (to, dy + i * p->c_out * window->n_out, columns, NULL, &product,
         accumulates || i >= p->groups);
    }
    for (int64_t k = 0; p->batch == 0 && !accumulates && k < p->groups * p->c_out * n_inner; k++)
        dw[k] = 0;
}

void FN(ot__ref_conv_db)(T *db, const T *dy, const ot__conv *p, bool accumulates)
{
    const int64_t n_channels = p->groups * p->c_out, n_out = p->window.n_out;

#pragma omp parallel for schedule(static) if (p->batch * n_channels * n_out > OT_PAR_MIN)
    for (int64_t c = 0; c < n_channels; c++) {
        double sum = accumulates ? (double)db[c] : 0;
        for (int64_t i = 0; i < p->batch; i++)
            for (int64_t o = 0; o < n_out; o++)
                sum += (double)dy[(i * n_channels + c) * n_out + o];
        db[c] = (T)sum;
    }
}
