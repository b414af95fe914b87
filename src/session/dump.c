// SPDX-License-Identifier: Apache-2.0
// OT_DUMP_GRAPH=<folder>: every graph after every pass as ONNX text, numbered in the order of the
// passes.
#include <stdatomic.h>
#include <stdlib.h>

#include "session/session_internal.h"

enum { SHOWN_ELEMENTS = 16 };

static _Atomic int n_dumps;

static ot_status write_dump(const ot_model *model, const char *pass)
{
    const ot__text_options options = {.max_elements = SHOWN_ELEMENTS};
    const char *folder = getenv("OT_DUMP_GRAPH");
    ot__buf text = {0};
    char name[128];
    char *path;
    ot_status st;

    if (folder == NULL)
        return OT_OK;
    snprintf(name, sizeof name, "%04d_%s.onnxtxt", atomic_fetch_add(&n_dumps, 1), pass);
    path = ot__path_join(folder, name);
    st = path == NULL ? OT_ERR_NO_MEMORY : ot__path_make_folder(folder);
    OT_THEN(st, ot__text_write(model, &options, &text));
    OT_THEN(st, ot__file_write(path, text.data, text.length));
    ot__buf_deinit(&text);
    ot__free(path);
    return st;
}

// A dump that cannot be written stops nobody.
static void dump(const ot_model *model, const char *pass)
{
    if (write_dump(model, pass) != OT_OK)
        ot__log(OT_LOG_WARNING, "graph after pass '%s' not written: %s", pass, ot_error_message());
}

void ot__dump_start(void)
{
    const char *folder = getenv("OT_DUMP_GRAPH");

    if (folder != NULL && folder[0] != '\0')
        ot__pass_set_observer(dump);
}
