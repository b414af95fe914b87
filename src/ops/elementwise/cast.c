// SPDX-License-Identifier: Apache-2.0
// Converting element types: what Cast and CastLike share.
#include "ops/elementwise/cast.h"

#include "kernels/kernels.h"

void ot__cast_infer(ot_infer *c, ot_dtype to)
{
    const bool keeps_extents = to == OT_I64 || to == OT_I32;
    const int64_t *known;
    int n;

    if (ot__element_size(to) == 0) {
        ot_infer_fail(c, "cannot convert to element type %d (%s)", (int)to, ot_dtype_name(to));
        return;
    }
    ot_infer_set(c, 0, to, ot_infer_shape(c, 0));
    known = ot_infer_values(c, 0, &n);
    if (known != NULL && n > 0 && keeps_extents)
        ot_infer_set_values(c, 0, known, n);
}

static bool has_texts(const ot_arg *x, const ot_arg *y)
{
    return x->dtype == OT_STRING || y->dtype == OT_STRING;
}

typedef bool (*convert_function)(void *to, ot_dtype to_dtype, const void *from, ot_dtype from_dtype,
                                 int64_t count);
typedef struct casting {
    convert_function convert;
} casting;

static ot_status cast_prepare(ot_prep *p)
{
    const ot_dtype from = ot_prep_in(p, 0)->dtype, to = ot_prep_out(p, 0)->dtype;
    uint8_t nothing[16] = {0};
    casting *state;

    if (has_texts(ot_prep_in(p, 0), ot_prep_out(p, 0)))
        return ot__cast_texts_prepare(p);
    state = ot_prep_state(p, sizeof *state);
    if (state == NULL)
        return p->status;
    state->convert = ot_attr_int(p->node, "saturate") != 0 ? ot__convert : ot__convert_unsaturated;
    if (!ot__convert(nothing, to, nothing, from, 0))
        return ot_prep_fail(p, OT_ERR_UNSUPPORTED, "cannot convert %s to %s", ot_dtype_name(from),
                            ot_dtype_name(to));
    return OT_OK;
}

static void cast_part(void *context, int64_t first, int64_t last)
{
    const ot_run *r = context;
    const ot_arg *x = r->in[0];
    ot_arg *y = r->out[0];

    ((const casting *)r->state)
        ->convert((uint8_t *)y->data + (size_t)first * ot_dtype_size(y->dtype), y->dtype,
                  (const uint8_t *)x->data + (size_t)first * ot_dtype_size(x->dtype), x->dtype,
                  last - first);
}

static ot_status cast_run(const ot_run *r)
{
    if (has_texts(r->in[0], r->out[0]))
        return ot__cast_texts_run(r);
    ot__parallel_for(r->out[0]->count, OT_PAR_MIN, cast_part, (void *)r);
    return OT_OK;
}

const ot_kernel ot__cast_kernels[] = {
    OT__REF_KERNEL(NULL, cast_prepare, cast_run),
    {0},
};
