// SPDX-License-Identifier: Apache-2.0
// Rows of named fields from tensors in memory.
#include "data/data.h"

static ot_status dataset_add_tensor(ot_dataset *dataset, ot__source *source, const char *name,
                                    const ot_tensor *tensor)
{
    ot__field field = {
        .source = source, .dtype = tensor->dtype, .is_array = true, .data = tensor->data};
    double number;

    if (tensor->shape.ndim < 1)
        return ot__error(OT_ERR_INVALID, "array '%s' has no axis of rows", name);
    if (ot_dtype_size(tensor->dtype) == 0 ||
        !ot__convert(&number, OT_F64, tensor->data, tensor->dtype, 0))
        return ot__error(OT_ERR_UNSUPPORTED, "array '%s' is %s, expected real numbers", name,
                         ot_dtype_name(tensor->dtype));
    return ot__dataset_add_array(dataset, name, &tensor->shape, field);
}

ot_status ot_dataset_from_tensors(const char *const *names, const ot_tensor *const *tensors, int n,
                                  ot_dataset **out)
{
    ot_dataset *dataset;
    ot__source *source;
    ot_status st;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN_MANY(names, n));
    OT_TRY(OT_GIVEN_MANY(tensors, n));
    if (n < 1)
        return ot__error(OT_ERR_INVALID, "no array is given");
    for (int i = 0; i < n; i++) {
        if (!names[i] || !tensors[i])
            return ot__error(OT_ERR_INVALID, "%s %d is NULL", names[i] ? "array" : "name", i);
        OT_TRY(OT_OPTIONAL(tensors[i], names[i]));
    }
    dataset = ot__dataset_create();
    OT_TRY(ot__made(dataset));
    source = ot__dataset_add_source(dataset, "data");
    st = ot__made(source);
    for (int i = 0; st == OT_OK && i < n; i++)
        st = dataset_add_tensor(dataset, source, names[i], tensors[i]);
    return OT_HAND_OUT(st, out, dataset, ot_dataset_destroy);
}
