// SPDX-License-Identifier: Apache-2.0
// Option structs of callers who were compiled with other headers. All begin with `size_t size`, and
// only grow at their end, so a size says which fields a caller knows.
#include <ctype.h>
#include <string.h>

#include "base/base.h"

// A larger size is none of a later header's: whoever has it has left out the initialiser.
enum { SIZE_MAX_KNOWN = 4096 };

static ot_status refuse_option(const char *type, const char *format, ...) OT_PRINTF(2, 3);

// The remedy is "begin with OT_LOSS_OPTIONS_INIT" for "ot_loss_options".
static ot_status refuse_option(const char *type, const char *format, ...)
{
    char init[64], text[128];
    va_list args;
    size_t n;

    n = (size_t)snprintf(init, sizeof init, "%s_INIT", type);
    for (size_t i = 0; i < OT_MIN(n, sizeof init - 1); i++)
        init[i] = (char)toupper((unsigned char)init[i]);
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return ot__error(OT_ERR_INVALID, "%s: %s; begin with %s", type, text, init);
}

static size_t size_of(const void *given)
{
    size_t size;

    memcpy(&size, given, sizeof size);
    return size;
}

// Fields that are aligned like `size` are never cut.
static ot_status check_options_size(const char *type, size_t size, size_t own_size)
{
    if (size > sizeof size && size <= SIZE_MAX_KNOWN && size % sizeof size == 0)
        return OT_OK;
    return refuse_option(type, "size is %zu, expected %zu", size, own_size);
}

static ot_status check_rest(const char *type, const void *given, size_t own_size)
{
    const unsigned char *bytes = given;

    for (size_t i = own_size; i < size_of(given); i++)
        if (bytes[i] != 0)
            return refuse_option(
                type,
                "size is %zu and byte %zu is set, but this version of the library knows "
                "%zu bytes: leave fields of later versions 0",
                size_of(given), i, own_size);
    return OT_OK;
}

ot_status ot__options_read(const char *type, const void *given, const void *defaults, void *own,
                           size_t own_size)
{
    memcpy(own, defaults, own_size);
    if (!given)
        return OT_OK;
    OT_TRY(check_options_size(type, size_of(given), own_size));
    OT_TRY(check_rest(type, given, own_size));
    memcpy(own, given, OT_MIN(size_of(given), own_size));
    memcpy(own, &own_size, sizeof own_size);
    return OT_OK;
}

ot_status ot__options_read_all(const char *type, const void *given, int n, const void *defaults,
                               void *own, size_t own_size)
{
    for (int i = 0; i < n; i++) {
        const void *item = (const char *)given + (size_t)i * size_of(given);

        OT_TRY(
            check_options_size(type, size_of(given), own_size)); // before the second is looked for
        if (size_of(item) != size_of(given))
            return refuse_option(type, "size of element %d is %zu, of the first %zu", i,
                                 size_of(item), size_of(given));
        OT_TRY(
            ot__options_read(type, item, defaults, (char *)own + (size_t)i * own_size, own_size));
    }
    return OT_OK;
}

void ot__options_write(void *to, const void *own, size_t own_size)
{
    const size_t size = size_of(to);

    memcpy((char *)to + sizeof size, (const char *)own + sizeof size,
           OT_MIN(size, own_size) - sizeof size);
}
