// SPDX-License-Identifier: Apache-2.0
// What a run goes on from: the library finds it.
#include "report.h"
#include "train.h"

// The session may change whose moments they are.
static void take_owner(train_run *r)
{
    const char *owner;

    if (ot_checkpoint_get_string(r->resumed, "onnxtrain.optimizer", &owner) == OT_OK)
        snprintf(r->moments_of, sizeof(r->moments_of), "%s", owner);
}

int train_take_resumed(train_run *r)
{
    if (!r->values->resume)
        return EXIT_SUCCESS;
    if (ot_resume_create(r->job.comm, r->values->checkpoint_dir, &r->resume) != OT_OK)
        return report_error();
    r->resumed = ot_resume_take_checkpoint(r->resume);
    if (r->resumed) {
        ot_checkpoint_destroy(ot_artifacts_take_checkpoint(r->artifacts)); // makes room
        take_owner(r);
    }
    return EXIT_SUCCESS;
}

int train_load_resumed(train_run *r)
{
    if (r->resume && ot_resume_load(r->resume, r->session) != OT_OK)
        return report_error();
    r->is_resumed = r->resume && ot_resume_path(r->resume);
    return EXIT_SUCCESS;
}
