// SPDX-License-Identifier: Apache-2.0
// Checkpoint files to checkpoint directories, and back, and from safetensors files of other tools:
// by a session, which knows all of them.
#include "ckpt_convert.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "ckpt_summary.h"
#include "onnxtrain/onnxtrain.h"
#include "report.h"

typedef struct conversion {
    ot_artifacts *artifacts;
    ot_checkpoint *checkpoint;
    ot_session *session;
    ot_dict *state;
    ot_shards_item *items; // the sections of the state
    int n_items;
    unsigned sections;
} conversion;

// `path`: of the checkpoint that the session works on; NULL: that of the artifacts.
static ot_status open_session(conversion *c, const char *artifacts, const char *path)
{
    ot_status st = ot_artifacts_load(artifacts, "", &c->artifacts);

    if (st == OT_OK && path == NULL)
        return ot_session_create_from_artifacts(c->artifacts, NULL, &c->session);
    if (st == OT_OK)
        st = ot_checkpoint_load(path, &c->checkpoint);
    if (st == OT_OK)
        st = ot_session_create(ot_artifacts_training_model(c->artifacts), NULL,
                               ot_artifacts_optimizer_model(c->artifacts), c->checkpoint, NULL,
                               &c->session);
    return st;
}

static ot_status get_state(conversion *c)
{
    ot_state_dict_options options = OT_STATE_DICT_OPTIONS_INIT;
    ot_status st;

    c->sections = OT_STATE_MODEL | OT_STATE_OWN;
    if (ot_artifacts_optimizer_model(c->artifacts) != NULL)
        c->sections |= OT_STATE_OPTIMIZER;
    options.copy = 1;
    st = ot_session_get_shards(c->session, c->sections, &options, &c->state);
    c->items = calloc((size_t)ot_dict_count(c->state) + 1, sizeof *c->items);
    if (st == OT_OK && c->items == NULL)
        st = OT_ERR_NO_MEMORY;
    for (int i = 0; st == OT_OK && i < ot_dict_count(c->state); i++) {
        c->items[i] = (ot_shards_item)OT_SHARDS_ITEM_INIT;
        c->items[i].name = ot_dict_name(c->state, i);
        st = ot_dict_get_dict(c->state, c->items[i].name, &c->items[i].dict);
        c->n_items++;
    }
    return st;
}

static ot_status file_to_directory(conversion *c, const char *from, const char *to,
                                   const char *artifacts, bool replaces)
{
    ot_shards_save_options options = OT_SHARDS_SAVE_OPTIONS_INIT;
    ot_status st = open_session(c, artifacts, from);

    if (st == OT_OK)
        st = get_state(c);
    options.replaces = replaces;
    return st == OT_OK ? ot_shards_save(NULL, to, c->items, c->n_items, &options) : st;
}

static ot_status directory_to_file(conversion *c, const char *from, const char *to,
                                   const char *artifacts)
{
    ot_shards_load_options options = OT_SHARDS_LOAD_OPTIONS_INIT;
    ot_status st = open_session(c, artifacts, NULL);

    options.allows_unexpected = 1; // what other programs keep there
    if (st == OT_OK)
        st = get_state(c);
    if (st == OT_OK)
        st = ot_shards_load(NULL, from, c->items, c->n_items, &options);
    if (st == OT_OK)
        st = ot_session_set_shards(c->session, c->sections, c->state, NULL, NULL);
    return st == OT_OK ? ot_session_save(c->session, to) : st;
}

// Of another tool: its tensors are the parameters, in whatever type; all else is as it begins.
static ot_status foreign_to_file(conversion *c, const char *from, const char *to,
                                 const char *artifacts)
{
    ot_status st = open_session(c, artifacts, NULL);

    if (st == OT_OK)
        st = ot_session_load_shards(c->session, from);
    return st == OT_OK ? ot_session_save(c->session, to) : st;
}

static bool is_directory(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

int convert_checkpoint(const char *from, const char *to, const char *artifacts, bool replaces)
{
    const bool is_foreign = ckpt_is_safetensors(from) || ckpt_is_foreign(from);
    const bool to_file = is_foreign || is_directory(from);
    conversion c = {0};
    struct stat info;
    ot_status st;

    if (to_file && !replaces && stat(to, &info) == 0)
        return report_text("%s: exists already, and is not replaced without --replace", to);
    st = is_foreign ? foreign_to_file(&c, from, to, artifacts)
         : to_file  ? directory_to_file(&c, from, to, artifacts)
                    : file_to_directory(&c, from, to, artifacts, replaces);
    ot_dict_destroy(c.state);
    ot_session_destroy(c.session);
    ot_checkpoint_destroy(c.checkpoint);
    ot_artifacts_destroy(c.artifacts);
    free(c.items);
    return st == OT_OK ? EXIT_SUCCESS : report_error();
}
