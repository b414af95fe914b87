// SPDX-License-Identifier: Apache-2.0
// What callers of public functions may not leave out.
#include "base/base.h"

ot_status ot__argument(const void *pointer, const char *kind, const char *function,
                       const char *argument)
{
    if (!pointer)
        return ot__error(OT_ERR_INVALID, "%s: %s is NULL", function, argument);
    if (kind && ot__handle_check(pointer, kind) != OT_OK)
        return ot__error_prefix(OT_ERR_INVALID, "%s: %s", function, argument);
    return OT_OK;
}

ot_status ot__argument_many(const void *pointer, int64_t count, const char *function,
                            const char *argument, const char *count_argument)
{
    if (count < 0)
        return ot__error(OT_ERR_INVALID, "%s: %s is %" PRId64, function, count_argument, count);
    return count == 0 ? OT_OK : ot__argument(pointer, NULL, function, argument);
}
