// SPDX-License-Identifier: Apache-2.0
#include "kernels/dnnl_primitives.h"

static bool knows(ot_dtype dtype, const ot_shape *shape, const ot_layout *layout)
{
    dnnl_memory_desc_t md = {0};
    const bool known = ot__dnnl_md(&md, dtype, shape, layout) == dnnl_success;

    if (known)
        ot__md_release(&md);
    return known;
}

// Without AVX-512 oneDNN moves elements of 16 bits one by one.
static bool moves_fast(ot_dtype dtype)
{
    return dtype == OT_F32 || (ot__dtype_is_narrow(dtype) && ot__isa_best() >= OT__ISA_AVX512);
}

bool ot__dnnl_can_reorder(ot_dtype dtype, const ot_shape *shape, const ot_layout *from,
                          const ot_layout *to)
{
    return moves_fast(dtype) && knows(dtype, shape, from) && knows(dtype, shape, to);
}

ot_status ot__dnnl_reorder_create(ot_dtype dtype, const ot_shape *shape, const ot_layout *from,
                                  const ot_layout *to, ot__dnnl_primitives **out)
{
    dnnl_memory_desc_t x = {0}, y = {0};
    dnnl_status_t st;

    *out = ot__alloc_zero(1, sizeof **out);
    OT_TRY(ot__made(*out));
    ot__forks_hold();
    st = ot__dnnl_md(&x, dtype, shape, from);
    if (st == dnnl_success)
        st = ot__dnnl_md(&y, dtype, shape, to);
    if (st == dnnl_success)
        st = ot__dnnl_reorder(*out, ot__md_of(&x), OT__DNNL_SLOT(0), ot__md_of(&y),
                              OT__DNNL_SLOT(1), 0);
    ot__md_release(&x);
    ot__md_release(&y);
    ot__forks_release();
    if (st != dnnl_success) {
        ot__dnnl_destroy(*out);
        *out = NULL;
    }
    return ot__dnnl_error(st, "reorder");
}
