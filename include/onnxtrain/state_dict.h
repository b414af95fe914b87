// SPDX-License-Identifier: Apache-2.0
// State dicts: what a training has learned, by names that do not depend on how many processes
// train. docs/state-dict.md.
#ifndef ONNXTRAIN_STATE_DICT_H
#define ONNXTRAIN_STATE_DICT_H

#include "onnxtrain/comm.h"
#include "onnxtrain/dict.h"
#include "onnxtrain/session.h"
#include "onnxtrain/shards.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Sections of a state, added up. A state dict has the first two and the last, as "model", "optim"
 * and "train"; what ot_trainer_get_state() has in them, docs/trainer.md says. */
enum {
    OT_STATE_MODEL = 1,      ///< parameters, and byte strings of the program
    OT_STATE_OPTIMIZER = 2,  ///< slots, counters and groups of parameters
    OT_STATE_OPTIONS = 4,    ///< of a trainer: "trainer_options"
    OT_STATE_STEPS = 8,      ///< of a trainer: "train_step_info"
    OT_STATE_PARTITION = 16, ///< of a trainer: "partition_info"
    OT_STATE_OWN = 32,       ///< what goes on bit for bit needs besides
    OT_STATE_ALL = 63,
    OT_STATE_VIEW = 64, ///< of a trainer: tensors are its own, to be read until its next call
};

/** What a state must have of what its receiver has. */
typedef enum ot_strictness {
    OT_STRICTNESS_ALL,    ///< all names of the model and of the optimizer, where it has these; no
                          ///< others
    OT_STRICTNESS_SUBSET, ///< any: what is not given stays (slots begin anew), names that the
                          ///< receiver lacks are ignored
    OT_STRICTNESS_MODEL,  ///< state dicts: all of the model, no others; slots may be missing
    OT_STRICTNESS_NONE,   ///< state dicts: as a subset, and tensors that do not fit are left out
} ot_strictness;

/** Where tensors that are cut over ranks are made whole. */
typedef enum ot_gather {
    OT_GATHER_NONE, ///< nowhere: every rank has its parts
    OT_GATHER_ROOT, ///< on rank 0; the other ranks get an empty dict
    OT_GATHER_ALL,
} ot_gather;

/** Who gives what to set. */
typedef enum ot_scatter {
    OT_SCATTER_SHARDED, ///< every rank its parts, or whole tensors
    OT_SCATTER_EACH,    ///< every rank whole tensors, of which it takes its parts
    OT_SCATTER_ROOT,    ///< rank 0 whole tensors; the others nothing (NULL)
} ot_scatter;

typedef enum ot_name_transform {
    OT_NAME_SAME,
    OT_NAME_TRANSPOSE, ///< two axes change places
    OT_NAME_RESHAPE,   ///< the same elements in row-major order
} ot_name_transform;

/** A parameter under another name, perhaps in another shape: as the program knows it that the model
 * was exported from. Two entries for one parameter are tied names of it. Begin with
 * OT_NAME_ENTRY_INIT. */
typedef struct ot_name_entry {
    size_t size;           ///< sizeof(ot_name_entry)
    const char *name;      ///< in state dicts
    const char *parameter; ///< of the checkpoint
    ot_name_transform transform;
    int axes[2];           ///< OT_NAME_TRANSPOSE
    const ot_shape *shape; ///< OT_NAME_RESHAPE: in state dicts
} ot_name_entry;
#define OT_NAME_ENTRY_INIT                                                                         \
    {                                                                                              \
        sizeof(ot_name_entry), NULL, NULL, OT_NAME_SAME, {0, 0}, NULL                              \
    }

typedef struct ot_state_dict_options {
    size_t size;   ///< sizeof(ot_state_dict_options)
    ot_comm *comm; ///< the ranks that the state is cut over; NULL: those of the session, or this
                   ///< process alone
    ot_gather gather;
    ot_scatter scatter;
    int copy;           ///< get: 1: copies; 0: where they are whole, tensors refer to the session's
    int skip_frozen;    ///< 1: without parameters that are neither trained nor written by steps
    int flat_optimizer; ///< get: 1: "state.<name>.<slot>", "param_groups.<name>.<number>"
    ot_strictness strictness;
    int allow_cast;             ///< set: 1: numbers of another type are converted
    const char *const *include; ///< names, beginnings of names, patterns with * and ?; the others
                                ///< are neither given nor set. None: all
    int n_include;
    int strip_prefix;           ///< 1: names come without the one beginning that `include` has
    const ot_name_entry *names; ///< all of one size
    int n_names;
    size_t window_bytes; ///< largest message, and buffer for it (8 MiB)
} ot_state_dict_options;
#define OT_STATE_DICT_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(ot_state_dict_options), NULL, OT_GATHER_NONE, OT_SCATTER_SHARDED, 0, 0, 0,          \
            OT_STRICTNESS_ALL, 0, NULL, 0, 0, NULL, 0, (size_t)8 << 20                             \
    }

/**
 * Collective with `comm`, and over the session's ranks with `gather`: the state by names.
 *
 * @param sections OT_STATE_MODEL, OT_STATE_OPTIMIZER, OT_STATE_OWN added up
 * @param options  NULL for defaults
 * @param out      the caller destroys it. What refers to the session's tensors is OT_ERR_STATE to
 * get from it after the session's next step or change
 * @return OT_ERR_STATE for a nominal checkpoint, and for tensors that are cut while `comm` is NULL;
 * OT_ERR_NOT_FOUND for an entry of `names` without parameter; OT_ERR_INVALID for two of one name;
 * OT_ERR_MISMATCH when ranks differ in options or names
 */
OT_API ot_status ot_session_get_shards(ot_session *session, unsigned sections,
                                       const ot_state_dict_options *options, ot_dict **out);

/** Takes a value: `leaf` has it alone, under path[n_path - 1], until the function returns. */
typedef ot_status (*ot_state_sink)(void *context, const char *const *path, int n_path,
                                   const ot_dict *leaf);
/** Collective: the same, made whole on rank 0 one value at a time, in the order of the names. */
OT_API ot_status ot_session_stream_shards(ot_session *session, unsigned sections,
                                          const ot_state_dict_options *options, ot_state_sink sink,
                                          void *context);

// ---- setting: all of it or, on failure, nothing ----

typedef enum ot_report_category {
    OT_REPORT_MISSING,    ///< not given
    OT_REPORT_UNEXPECTED, ///< given, and not known here
    OT_REPORT_SHAPE,
    OT_REPORT_DTYPE,
    OT_REPORT_ZEROED, ///< slots that were not given, and begin anew
    OT_REPORT_CUSTOM, ///< numbers of groups that no optimizer here knows: kept, and given back
    OT_REPORT_GROUP,
    OT_REPORT_CATEGORIES,
} ot_report_category;

/** What did not fit, by names; the same on all ranks. */
typedef struct ot_shards_report ot_shards_report;
OT_API int ot_shards_report_count(const ot_shards_report *report, ot_report_category category);
/** Owned by the report; NULL out of range. */
OT_API const char *ot_shards_report_name(const ot_shards_report *report,
                                         ot_report_category category, int index);
/** OT_STATE_MODEL, OT_STATE_OPTIMIZER or OT_STATE_OWN. */
OT_API unsigned ot_shards_report_section(const ot_shards_report *report,
                                         ot_report_category category, int index);
/** What is wrong with it: "f32[2], expected f32[3]". Owned by the report; "" where the category
 * says all. */
OT_API const char *ot_shards_report_detail(const ot_shards_report *report,
                                           ot_report_category category, int index);
OT_API void ot_shards_report_destroy(ot_shards_report *report); ///< NULL is fine

/**
 * Collective with `comm`, or over the session's ranks: take a state over. Sections that it lacks
 * stay, "model" and "optim" of those asked for must not be empty. Accumulated gradients stay.
 *
 * @param state  borrowed, and not changed. NULL on ranks that give nothing (OT_SCATTER_ROOT)
 * @param report NULL, or receives what did not fit, also on failure; the caller destroys it
 * @return OT_ERR_NOT_FOUND naming what is missing; OT_ERR_INVALID naming what is unexpected, does
 * not fit, or groups that contradict each other; OT_ERR_MISMATCH when ranks differ in options, in
 * numbers that they give, or in tensors that are whole on all of them. When messages fail after all
 * was checked, steps are OT_ERR_STATE until a state is set
 */
OT_API ot_status ot_session_set_shards(ot_session *session, unsigned sections, const ot_dict *state,
                                       const ot_state_dict_options *options,
                                       ot_shards_report **report);
/** Collective with `comm`: the same without taking anything over. */
OT_API ot_status ot_session_check_shards(ot_session *session, unsigned sections,
                                         const ot_dict *state, const ot_state_dict_options *options,
                                         ot_shards_report **report);

// ---- as checkpoint directories (onnxtrain/shards.h) ----

/** Collective with several ranks: the state and the properties of the checkpoint, each rank what it
 * has, as ot_shards_save() does. `options` NULL: defaults. */
OT_API ot_status ot_session_save_shards(ot_session *session, const char *path,
                                        const ot_shards_save_options *options);
/** Collective with several ranks: begin such a save, which comes to its end by ot_shards_job_poll()
 * or ot_shards_job_wait(). The session may go on at once: what this rank writes is copied. Waits
 * for the job's save before this one, and returns its failure. */
OT_API ot_status ot_session_save_shards_async(ot_session *session, ot_shards_job *job,
                                              const char *path,
                                              const ot_shards_save_options *options);
/** Collective with several ranks: take over what any number of ranks has saved; of safetensors
 * files of another tool the values of all parameters, the rest stays. OT_ERR_NOT_FOUND and
 * OT_ERR_INVALID naming what does not fit; the session is then as it was. OT_ERR_STATE for that of
 * a trainer, which has ot_trainer_load_shards(). */
OT_API ot_status ot_session_load_shards(ot_session *session, const char *path);

// ---- byte strings of the program, which are part of "model" ----

/** A copy; NULL takes it away. OT_ERR_INVALID for the name of a parameter. */
OT_API ot_status ot_session_set_bytes(ot_session *session, const char *name, const void *bytes,
                                      size_t n_bytes);
/** Owned by the session until it is set again. OT_ERR_NOT_FOUND when there is none. */
OT_API ot_status ot_session_get_bytes(const ot_session *session, const char *name,
                                      const void **bytes, size_t *n_bytes);

#ifdef __cplusplus
}
#endif
#endif
