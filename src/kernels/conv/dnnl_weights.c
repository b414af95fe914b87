// SPDX-License-Identifier: Apache-2.0
// The layouts of weights that oneDNN's convolutions want, as layouts of ours.
#include "kernels/dnnl_primitives.h"

enum { FIRST_NDIM = 3, N_NDIM = 3, OUT = 0, IN = 1 };

#define FORM_3(...)                                                                                \
    {                                                                                              \
        .ndim = 3, .order = {0, 1, 2}, __VA_ARGS__                                                 \
    }
#define FORM_4(...)                                                                                \
    {                                                                                              \
        .ndim = 4, .order = {0, 1, 2, 3}, __VA_ARGS__                                              \
    }
#define FORM_5(...)                                                                                \
    {                                                                                              \
        .ndim = 5, .order = {0, 1, 2, 3, 4}, __VA_ARGS__                                           \
    }

// Weights (m, c / groups, kernel ...) of 3 to 5 axes. With groups oneDNN counts them as an axis of
// their own, which makes no difference to where an element lies as long as blocks do not span
// groups.
typedef struct weights_layout {
    ot_layout layout[N_NDIM];
    dnnl_format_tag_t tag[N_NDIM], grouped[N_NDIM]; // 0: none
} weights_layout;

static const weights_layout known[] = {
    // blocks of input channels, each element a block of output channels
    {.layout = {FORM_3(.n_blocks = 2, .block = {{IN, 16}, {OUT, 16}}),
                FORM_4(.n_blocks = 2, .block = {{IN, 16}, {OUT, 16}}),
                FORM_5(.n_blocks = 2, .block = {{IN, 16}, {OUT, 16}})},
     .tag = {dnnl_OIw16i16o, dnnl_OIhw16i16o, dnnl_OIdhw16i16o},
     .grouped = {dnnl_gOIw16i16o, dnnl_gOIhw16i16o, dnnl_gOIdhw16i16o}},
    {.layout = {FORM_3(.n_blocks = 2, .block = {{IN, 8}, {OUT, 8}}),
                FORM_4(.n_blocks = 2, .block = {{IN, 8}, {OUT, 8}}),
                FORM_5(.n_blocks = 2, .block = {{IN, 8}, {OUT, 8}})},
     .tag = {dnnl_OIw8i8o, dnnl_OIhw8i8o, dnnl_OIdhw8i8o},
     .grouped = {dnnl_gOIw8i8o, dnnl_gOIhw8i8o, dnnl_gOIdhw8i8o}},
    // the first layer of image models: few input channels, innermost but for the block
    {.layout = {{.ndim = 3, .order = {0, 2, 1}, .n_blocks = 1, .block = {{OUT, 16}}},
                {.ndim = 4, .order = {0, 2, 3, 1}, .n_blocks = 1, .block = {{OUT, 16}}},
                {.ndim = 5, .order = {0, 2, 3, 4, 1}, .n_blocks = 1, .block = {{OUT, 16}}}},
     .tag = {dnnl_Owi16o, dnnl_Ohwi16o, dnnl_Odhwi16o},
     .grouped = {dnnl_gOwi16o, dnnl_gOhwi16o, dnnl_gOdhwi16o}},
    {.layout = {{.ndim = 3, .order = {0, 2, 1}, .n_blocks = 1, .block = {{OUT, 8}}},
                {.ndim = 4, .order = {0, 2, 3, 1}, .n_blocks = 1, .block = {{OUT, 8}}},
                {.ndim = 5, .order = {0, 2, 3, 4, 1}, .n_blocks = 1, .block = {{OUT, 8}}}},
     .tag = {dnnl_Owi8o, dnnl_Ohwi8o, dnnl_Odhwi8o},
     .grouped = {dnnl_gOwi8o, dnnl_gOhwi8o, dnnl_gOdhwi8o}},
    // one channel a group: blocks of groups
    {.layout = {FORM_3(.n_blocks = 1, .block = {{OUT, 16}}),
                FORM_4(.n_blocks = 1, .block = {{OUT, 16}}),
                FORM_5(.n_blocks = 1, .block = {{OUT, 16}})},
     .grouped = {dnnl_Goiw16g, dnnl_Goihw16g, dnnl_Goidhw16g}},
    {.layout = {FORM_3(.n_blocks = 1, .block = {{OUT, 8}}),
                FORM_4(.n_blocks = 1, .block = {{OUT, 8}}),
                FORM_5(.n_blocks = 1, .block = {{OUT, 8}})},
     .grouped = {dnnl_Goiw8g, dnnl_Goihw8g}},
};

// Dimensions as oneDNN has them; returns how many.
static int dims_of(const ot_shape *w, int64_t groups, dnnl_dims_t dims)
{
    const int grouped = groups > 1;

    dims[0] = groups;
    for (int k = 0; k < w->ndim; k++)
        dims[k + grouped] = w->dim[k];
    dims[grouped] = w->dim[0] / groups;
    return w->ndim + grouped;
}

dnnl_status_t ot__dnnl_weights_any(dnnl_memory_desc_t *md, ot_dtype dtype, const ot_shape *w,
                                   int64_t groups)
{
    dnnl_dims_t dims;
    const int ndim = dims_of(w, groups, dims);

    return ot__md_tagged(md, ot__dnnl_type(dtype), ndim, dims, dnnl_format_tag_any);
}

// The description of known layout `i`; not there when blocks would need padding.
static dnnl_status_t describe_weights(dnnl_memory_desc_t *md, ot_dtype dtype, const ot_shape *w,
                                      int64_t groups, size_t i)
{
    const int row = w->ndim - FIRST_NDIM;
    const dnnl_format_tag_t tag = groups > 1 ? known[i].grouped[row] : known[i].tag[row];
    int64_t count;
    dnnl_dims_t dims;
    const int ndim = dims_of(w, groups, dims);
    dnnl_status_t st;

    if (tag == dnnl_format_tag_undef || !ot__layout_fits(&known[i].layout[row], w) ||
        !ot__shape_count(w, &count))
        return dnnl_unimplemented;
    st = ot__md_tagged(md, ot__dnnl_type(dtype), ndim, dims, tag);
    if (st == dnnl_success &&
        dnnl_memory_desc_get_size(ot__md_of(md)) != (size_t)count * ot_dtype_size(dtype)) {
        ot__md_release(md);
        return dnnl_unimplemented;
    }
    return st;
}

dnnl_status_t ot__dnnl_weights_md(dnnl_memory_desc_t *md, ot_dtype dtype, const ot_shape *w,
                                  int64_t groups, const ot_layout *layout)
{
    static const dnnl_format_tag_t plain[] = {dnnl_abc, dnnl_abcd, dnnl_abcde, dnnl_abcdef};
    dnnl_dims_t dims;
    const int ndim = dims_of(w, groups, dims);

    if (layout == NULL)
        return ot__md_tagged(md, ot__dnnl_type(dtype), ndim, dims, plain[ndim - FIRST_NDIM]);
    for (size_t i = 0; i < OT_COUNT(known); i++)
        if (ot__layout_equal(layout, &known[i].layout[w->ndim - FIRST_NDIM]))
            return describe_weights(md, dtype, w, groups, i);
    return dnnl_unimplemented;
}

const ot_layout *ot__dnnl_weights_layout(ot__md wanted, const ot_shape *w, int64_t groups)
{
    for (size_t i = 0; i < OT_COUNT(known); i++) {
        dnnl_memory_desc_t md;
        bool same;

        if (describe_weights(&md, OT_F32, w, groups, i) != dnnl_success)
            continue;
        same = dnnl_memory_desc_equal(ot__md_of(&md), wanted) != 0;
        ot__md_release(&md);
        if (same)
            return &known[i].layout[w->ndim - FIRST_NDIM];
    }
    return NULL;
}
