// SPDX-License-Identifier: Apache-2.0
// Batch normalisation and pools for the processor at hand.
#include "kernels/kernels.h"

#include "kernels/simd.h"

extern const ot__norms ot__norms_base;
extern const ot__pools ot__pools_base;
#if OT_HAS_X86_ISAS
extern const ot__norms ot__norms_avx2, ot__norms_avx512;
extern const ot__pools ot__pools_avx2, ot__pools_avx512;
#endif

static const struct {
    const ot__norms *norms;
    const ot__pools *pools;
} tables[] = {
    [OT__ISA_BASE] = {&ot__norms_base, &ot__pools_base},
#if OT_HAS_X86_ISAS
    [OT__ISA_AVX2] = {&ot__norms_avx2, &ot__pools_avx2},
    [OT__ISA_AVX512] = {&ot__norms_avx512, &ot__pools_avx512},
#endif
};

const ot__norms *ot__norms_best(void)
{
    return tables[ot__isa_best()].norms;
}

const ot__pools *ot__pools_best(void)
{
    return tables[ot__isa_best()].pools;
}

bool ot__channels_of(const ot_shape *shape, const ot_form *form, ot__channels *c)
{
    const int block = ot__form_channel_block(form);

    if (shape->ndim < 2)
        return false;
    *c = (ot__channels){.outer = shape->dim[0], .blocks = shape->dim[1], .inner = 1, .width = 1};
    for (int k = 2; k < shape->ndim; k++)
        c->inner *= shape->dim[k];
    if (form == NULL)
        return true;
    if (ot__form_is_channels_last(form)) {
        c->width = c->blocks;
        c->blocks = 1;
        return true;
    }
    c->width = block;
    c->blocks /= block;
    return ot__form_equal(form, ot__form_blocked(shape->ndim, block));
}

size_t ot__norm_scratch_bytes(const ot__channels *c)
{
    enum { NUMBERS = 3 }; // per image and channel

    return (size_t)(c->outer * c->blocks * c->width) * NUMBERS * sizeof(double);
}

int64_t ot__pool_check_indices(const int64_t *indices, const ot__window *w, const ot__channels *c)
{
    for (int64_t unit = 0; unit < c->outer * c->blocks; unit++)
        for (int64_t i = 0; i < w->n_out * c->width; i++) {
            const int64_t at = unit * w->n_out * c->width + i;
            const int64_t plane = (unit * c->width + i % c->width) * w->n_in;

            if (indices[at] < plane || indices[at] >= plane + w->n_in)
                return at;
        }
    return -1;
}
