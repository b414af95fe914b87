// SPDX-License-Identifier: Apache-2.0
// Models that take one number of rows and no other, since whoever wrote the file fixed it.
#include <inttypes.h>

#include "train/bind.h"

// The rows that an input of the training model takes; 0: any number.
static ot_status fixed_batch(const ot_session *session, int64_t *rows, const char **input)
{
    *rows = 0;
    for (int i = 0; i < ot_session_input_count(session, OT_MODE_TRAIN); i++) {
        ot_dtype dtype;
        ot_shape shape;

        OT_TRY(ot_session_input_info(session, OT_MODE_TRAIN, i, &dtype, &shape));
        if (shape.ndim < 1 || shape.dim[0] < 1)
            continue;
        *rows = shape.dim[0];
        *input = ot_session_input_name(session, OT_MODE_TRAIN, i);
        return OT_OK;
    }
    return OT_OK;
}

ot_status ot__batch_size_settle(const ot_session *session, ot_batches_options *how, int64_t *fixed)
{
    const char *input = NULL;

    OT_TRY(fixed_batch(session, fixed, &input));
    if (*fixed == 0)
        return OT_OK;
    if (how->batch_size == 0)
        how->batch_size = *fixed;
    if (how->batch_size != *fixed)
        return ot__error(OT_ERR_INVALID,
                         "batch-size: %" PRId64 ", but input '%s' takes %" PRId64
                         " rows and no other number; export with dynamic_axes or dynamic_shapes "
                         "for another",
                         how->batch_size, input, *fixed);
    if (!how->drop_last)
        ot__log(OT_LOG_INFO,
                "the model takes batches of %" PRId64
                " rows and no others: rows that are left over are not used",
                *fixed);
    how->drop_last = 1;
    return OT_OK;
}

ot_status ot__batch_size_check(const ot_batches *batches, int64_t fixed)
{
    if (batches == NULL || ot_batches_rows(batches) >= fixed)
        return OT_OK;
    return ot__error(OT_ERR_INVALID,
                     "%" PRId64 " rows are fewer than the %" PRId64 " that the model takes at once",
                     ot_batches_rows(batches), fixed);
}
