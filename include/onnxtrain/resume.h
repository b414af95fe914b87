// SPDX-License-Identifier: Apache-2.0
// What a run of training goes on from: the newest checkpoint of its directory that can be read.
#ifndef ONNXTRAIN_RESUME_H
#define ONNXTRAIN_RESUME_H

#include "onnxtrain/comm.h"
#include "onnxtrain/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A checkpoint that was found in a directory where ot_train_run() has saved: the file `checkpoint`,
 * or `step-<n>`, the later of both.
 *
 *     ot_resume_create(comm, "run", &resume);
 *     checkpoint = ot_resume_take_checkpoint(resume); // NULL: that of the artifacts
 *     ot_session_create(..., checkpoint ? checkpoint : ..., &options, &session);
 *     ot_resume_load(resume, session);
 *     train_options.resume = ot_resume_path(resume) != NULL;
 */
typedef struct ot_resume ot_resume;

/**
 * Collective: rank 0 looks for what there is, and all take that. What is damaged is passed over
 * with a warning: then it is the newest of what is left, among the directories `step-<n>` with a
 * lower number than the one that `latest` names. Where `latest` cannot be read, all of them count,
 * the one that was made last first: others may be of a run that this one has overwritten.
 *
 * @param comm that of the session, needed until ot_resume_load() is done; NULL: this process alone
 * @param out  the caller's, also where the directory has no checkpoint
 * @return OT_ERR_FORMAT or OT_ERR_IO when all that there is is damaged; OT_ERR_MISMATCH when a
 * process does not see the directory of rank 0
 */
OT_API ot_status ot_resume_create(ot_comm *comm, const char *checkpoint_dir, ot_resume **out);
OT_API void ot_resume_destroy(ot_resume *resume); ///< NULL is fine

/** What the file has, for ot_session_create(); the caller's from now on. NULL: there is none, or it
 * was taken. */
OT_API ot_checkpoint *ot_resume_take_checkpoint(ot_resume *resume);

/**
 * Collective: the session, which was made of what ot_resume_take_checkpoint() gave, takes over the
 * directory where that is later. Some damage shows only now: what has it is passed over, too.
 *
 * @return as ot_session_load_shards() for what is whole and does not fit; as ot_resume_create()
 * when nothing whole is left
 */
OT_API ot_status ot_resume_load(ot_resume *resume, ot_session *session);

/** Where the state is from that the session has after ot_resume_load(); the resume's. NULL: there
 * is no checkpoint, the run begins anew. */
OT_API const char *ot_resume_path(const ot_resume *resume);

#ifdef __cplusplus
}
#endif
#endif
