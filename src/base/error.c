// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "base/base.h"

static _Thread_local char message[OT_MESSAGE_MAX];

static const struct {
    const char *name, *text;
} statuses[OT_N_STATUSES] = {
#define STATUS_ROW(name, text) {#name, text},
    OT_STATUS_LIST(STATUS_ROW)
#undef STATUS_ROW
};

const char *ot_status_name(ot_status status)
{
    return (size_t)status < OT_COUNT(statuses) ? statuses[status].name : "unknown status";
}

const char *ot_status_text(ot_status status)
{
    return (size_t)status < OT_COUNT(statuses) ? statuses[status].text : "unknown status";
}

const char *ot_error_message(void)
{
    return message;
}

#define TEXT_OF(x) #x
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *ot_version(void)
{
    return VERSION_TEXT(OT_VERSION_MAJOR, OT_VERSION_MINOR, OT_VERSION_PATCH);
}

ot_status ot__error_v(ot_status status, const char *format, va_list args)
{
    char text[OT_MESSAGE_MAX]; // arguments may point into the present message

    if (vsnprintf(text, sizeof(text), format, args) < 0)
        text[0] = '\0';
    ot__text_printable(text); // names come from files: a message stays one printable line
    memcpy(message, text, sizeof(text));
    return status;
}

ot_status ot__error(ot_status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    ot__error_v(status, format, args);
    va_end(args);
    return status;
}

ot_status ot__error_prefix(ot_status status, const char *format, ...)
{
    char prefix[OT_MESSAGE_MAX / 2], old[OT_MESSAGE_MAX];
    va_list args;

    if (status == OT_OK)
        return OT_OK;
    va_start(args, format);
    if (vsnprintf(prefix, sizeof(prefix), format, args) < 0)
        prefix[0] = '\0';
    va_end(args);
    memcpy(old, message, sizeof(old));
    return ot__error(status, "%s: %s", prefix, old);
}

ot_status ot__error_errno(const char *path, const char *what)
{
    return ot__error(OT_ERR_IO, "%s: %s: %s", path, what, strerror(errno));
}

ot_status ot__error_memory(size_t n_bytes)
{
    return ot__error(OT_ERR_NO_MEMORY, "out of memory: %zu bytes could not be had", n_bytes);
}

void *ot__no_memory(size_t n_bytes)
{
    ot__error_memory(n_bytes);
    return NULL;
}

void ot__error_clear(void)
{
    message[0] = '\0';
}
