#include <string.h>

#include "kernels/kernels.h"

void ot__ref_reorder(void *y, const ot_form *y_form, const void *x, const ot_form *x_form,
                     const ot_shape *shape, size_t element_size)
{
    int64_t index[OT_MAX_NDIM] = {0}, count = 1;

    for (int k = 0; k < shape->ndim; k++)
        count *= shape->dim[k];
    for (int64_t i = 0; i < count; i++) {
        memcpy((uint8_t *)y + (size_t)ot__form_offset(y_form, shape, index) * element_size,
               (const uint8_t *)x + (size_t)ot__form_offset(x_form, shape, index) * element_size,
               element_size);
        for (int k = shape->ndim - 1; k >= 0 && ++index[k] == shape->dim[k]; k--)
            index[k] = 0;
    }
}
