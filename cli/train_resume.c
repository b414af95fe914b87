// SPDX-License-Identifier: Apache-2.0
// What a run goes on from: the file that one process saves, or the directory of several.
#include <stdlib.h>
#include <sys/stat.h>

#include "commands.h"
#include "output_files.h"
#include "report.h"
#include "train.h"

// The session may change whose moments they are.
static void take_owner(train_run *r)
{
    const char *owner;

    if (ot_checkpoint_get_string(r->resumed, "onnxtrain.optimizer", &owner) == OT_OK)
        snprintf(r->moments_of, sizeof(r->moments_of), "%s", owner);
}

// The checkpoint that the run goes on from, if there is one.
int train_load_resumed(train_run *r)
{
    const train_values *v = r->values;
    struct stat info;
    char *path;
    ot_status st = OT_OK;

    if (!v->resume)
        return EXIT_SUCCESS;
    path = path_in(v->checkpoint_dir, "", "checkpoint");
    if (!path)
        return EXIT_FAILED;
    if (stat(path, &info) == 0) {
        ot_checkpoint_destroy(ot_artifacts_take_checkpoint(r->artifacts)); // makes room
        st = ot_checkpoint_load(path, &r->resumed);
        snprintf(r->resumed_from, sizeof(r->resumed_from), "%s", path);
    }
    free(path);
    if (st != OT_OK)
        return report_error();
    if (r->resumed)
        take_owner(r);
    r->is_resumed = r->resumed != NULL;
    return EXIT_SUCCESS;
}

// Processes that each have a part of the state save a directory. It counts when it is later than
// the file that one process saves.
int train_load_directory(train_run *r)
{
    const char *folder = r->values->checkpoint_dir;
    ot_shards_info info = OT_SHARDS_INFO_INIT;
    ot_shards_reader *reader;
    struct stat status;
    char *latest;
    bool is_there;

    if (!r->values->resume)
        return EXIT_SUCCESS;
    latest = path_in(folder, "", "latest");
    if (!latest)
        return EXIT_FAILED;
    is_there = stat(latest, &status) == 0;
    free(latest);
    if (!is_there)
        return EXIT_SUCCESS;
    if (ot_shards_open(folder, &reader) != OT_OK)
        return report_error();
    ot_shards_reader_info(reader, &info);
    snprintf(r->resumed_from, sizeof(r->resumed_from), "%s", ot_shards_reader_path(reader));
    ot_shards_reader_destroy(reader);
    if (r->resumed && info.step <= ot_session_step_count(r->session))
        return EXIT_SUCCESS;
    r->is_resumed = true;
    return ot_session_load_shards(r->session, folder) == OT_OK ? EXIT_SUCCESS : report_error();
}
