// SPDX-License-Identifier: Apache-2.0
// Checkpoint directories: the states of one or more processes, in files that any number of
// processes reads again. docs/checkpoints.md.
#ifndef ONNXTRAIN_SHARDS_H
#define ONNXTRAIN_SHARDS_H

#include "onnxtrain/comm.h"
#include "onnxtrain/dict.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A tree of a checkpoint, under a name: a model, an optimizer, the state of a training. */
typedef struct ot_shards_item {
    size_t size;      ///< sizeof(ot_shards_item)
    const char *name; ///< letters, digits, '_', '-' and '.': "model"
    ot_dict *dict;
} ot_shards_item;
#define OT_SHARDS_ITEM_INIT                                                                        \
    {                                                                                              \
        sizeof(ot_shards_item), 0, 0                                                               \
    }

// ---- saving ----

typedef struct ot_shards_save_options {
    size_t size;     ///< sizeof(ot_shards_save_options)
    int replaces;    ///< 1: a checkpoint at the path is replaced; 0: OT_ERR_IO when there is one
    int sets_latest; ///< 1: a file `latest` beside the directory names it
    /** Afterwards so many are left of the checkpoints beside this one whose names differ from its
     * name in the number at the end only; never removed are this one and the one that `latest`
     * names. 0: all */
    int n_kept;
    int64_t step;           ///< from 0: what is kept, and shown, is ordered by it
    int64_t file_bytes_max; ///< of a file of tensors, unless one alone is larger
} ot_shards_save_options;
#define OT_SHARDS_SAVE_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(ot_shards_save_options), 0, 0, 0, 0, INT64_C(5) << 30                               \
    }

/**
 * Collective: write the trees of all ranks into a new directory. It appears whole, durably, or not
 * at all, whenever a process is killed or the power fails.
 *
 * All ranks give the same trees but for the parts of their tensors: what one has of a tensor is
 * either what another has too, which is written once, or apart from that, and all of it is
 * somewhere.
 *
 * @param comm    NULL: this process alone
 * @param path    its parent is there, and is the same directory for all ranks
 * @param items   borrowed for the call
 * @return OT_ERR_INVALID naming tensors that overlap or are incomplete, names that are there twice,
 * text that is not UTF-8; OT_ERR_MISMATCH when ranks differ in names, types, shapes or values;
 * OT_ERR_UNSUPPORTED for types that safetensors files do not have; OT_ERR_IO. What was written is
 * removed then, and what was there before is there still. Only where `latest` cannot be written
 * does the new checkpoint stay: that comes after it. Older ones that cannot be removed are a
 * warning
 */
OT_API ot_status ot_shards_save(ot_comm *comm, const char *path, const ot_shards_item *items,
                                int n_items, const ot_shards_save_options *options);

/** A save that goes on while its caller works: the elements that this rank writes are copied, and a
 * thread does all that is done with files; later calls come to the end together. Of one job there
 * is one save at a time. */
typedef struct ot_shards_job ot_shards_job;

OT_API ot_status ot_shards_job_create(ot_shards_job **out);
/** Waits for the thread. A save that has not come to its end is given up: what rank 0 has of it is
 * removed when it destroys its job, which all ranks do. NULL is fine. */
OT_API void ot_shards_job_destroy(ot_shards_job *job);
/** Collective: take the memory that saves of these trees need, which else the first of them does
 * while its caller waits. Nothing is saved. Waits for the job's save before, and returns its
 * failure. */
OT_API ot_status ot_shards_job_prepare(ot_shards_job *job, ot_comm *comm,
                                       const ot_shards_item *items, int n_items);
/**
 * Collective: begin a save, as ot_shards_save() does. What is borrowed is free when it returns; the
 * communicator and the job are needed until the end. Waits for the job's save before this one, and
 * returns its failure.
 */
OT_API ot_status ot_shards_job_start(ot_shards_job *job, ot_comm *comm, const char *path,
                                     const ot_shards_item *items, int n_items,
                                     const ot_shards_save_options *options);
/** Collective: *done is 1 when all ranks have written, and the checkpoint is there, or the save has
 * failed; or when there is none under way. Works on no files and waits for none; several calls lead
 * to the end. */
OT_API ot_status ot_shards_job_poll(ot_shards_job *job, int *done);
/** Collective: wait for the end. */
OT_API ot_status ot_shards_job_wait(ot_shards_job *job);

// ---- loading ----

typedef enum ot_shards_verify_mode {
    OT_SHARDS_VERIFY_READ, ///< checksums of what is read whole
    OT_SHARDS_VERIFY_ALL,  ///< also of what is read in part, which is read whole for that
    OT_SHARDS_VERIFY_NONE,
} ot_shards_verify_mode;

/** What a rank has read. */
typedef struct ot_shards_counters {
    size_t size;             ///< sizeof(ot_shards_counters)
    int64_t bytes_wanted;    ///< of its elements
    int64_t bytes_read;      ///< with what lies between them and was read along
    int64_t bytes_unchecked; ///< wanted ones of parts that were not read whole
} ot_shards_counters;
#define OT_SHARDS_COUNTERS_INIT                                                                    \
    {                                                                                              \
        sizeof(ot_shards_counters), 0, 0, 0                                                        \
    }

typedef struct ot_shards_load_options {
    size_t size; ///< sizeof(ot_shards_load_options)
    /** 1: f32 from f16 and bf16, f64 from those, integers from narrower ones of the same sign, f16
     * and bf16 from f32, rounded to the nearest; 0: other types are OT_ERR_INVALID */
    int casts;
    int allows_missing;    ///< 1: names that the checkpoint lacks stay as they are
    int allows_unexpected; ///< 1: names that a tree lacks are left out
    ot_shards_verify_mode verify;
    ot_shards_counters *counters; ///< NULL: nobody wants to know
} ot_shards_load_options;
#define OT_SHARDS_LOAD_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(ot_shards_load_options), 0, 0, 0, OT_SHARDS_VERIFY_READ, 0                          \
    }

/**
 * Collective: fill trees from a checkpoint that any number of ranks has written. Elements of
 * tensors, and of parts of tensors, are read into the memory that the trees have for them; other
 * values become what the checkpoint has. Every rank reads the bytes that it wants, and no others
 * but for gaps of up to 64 KiB.
 *
 * @param comm  NULL: this process alone
 * @param path  a checkpoint, or a directory whose file `latest` names one; or, as ot_shards_open()
 * takes them, safetensors files of another tool, which have one item, "model"
 * @param items their trees say what is wanted; items that are not given are not read. A tree
 * without any name wants all values, but no tensors
 * @return OT_ERR_NOT_FOUND when there is no checkpoint, and naming items and names that it, or a
 * tree, lacks; OT_ERR_INVALID for other shapes and types; OT_ERR_FORMAT for files that are damaged,
 * naming file and tensor; OT_ERR_IO. Nothing is read before all of that is known but for damaged
 * files; then, and after OT_ERR_IO, tensors of the trees have old and new elements
 */
OT_API ot_status ot_shards_load(ot_comm *comm, const char *path, const ot_shards_item *items,
                                int n_items, const ot_shards_load_options *options);

// ---- one process looks at a checkpoint ----

/**
 * Write a checkpoint again, as `n_ranks` that each have some rows of every tensor would. In memory
 * there is one part of a tensor at a time; all that is read is checked.
 *
 * @param options the step is that of the checkpoint
 * @return as ot_shards_load() and ot_shards_save()
 */
OT_API ot_status ot_shards_reshard(const char *path, const char *to, int n_ranks,
                                   const ot_shards_save_options *options);

/** A checkpoint that has been opened. */
typedef struct ot_shards_reader ot_shards_reader;

typedef struct ot_shards_info {
    size_t size;     ///< sizeof(ot_shards_info)
    int64_t step;    ///< that the writer gave
    int64_t unix_ns; ///< when it was made
    int64_t n_bytes; ///< of elements
    int world_size;  ///< ranks that wrote it
    int n_files;     ///< of tensors
    int n_tensors;
    int64_t n_chunks; ///< parts of tensors, each in one piece
    int n_items;
    int is_foreign; ///< 1: safetensors files of other makers: no step, no time, no checksums
} ot_shards_info;
#define OT_SHARDS_INFO_INIT                                                                        \
    {                                                                                              \
        sizeof(ot_shards_info), 0, 0, 0, 0, 0, 0, 0, 0, 0                                          \
    }

/** One tensor of a checkpoint. */
typedef struct ot_shards_tensor {
    size_t size;     ///< sizeof(ot_shards_tensor)
    const char *key; ///< item and names, joined by '.'; the reader's
    ot_dtype dtype;
    const ot_shape *shape; ///< the reader's
    int n_chunks;
} ot_shards_tensor;
#define OT_SHARDS_TENSOR_INIT                                                                      \
    {                                                                                              \
        sizeof(ot_shards_tensor), 0, OT_DTYPE_UNDEFINED, 0, 0                                      \
    }

/** Reads the index; of the other files it looks at their sizes. As ot_shards_load() finds it.
 * Besides, a safetensors file of any maker, a list of them (model.safetensors.index.json), or a
 * directory with one of that name: its tensors are those of an item "model". */
OT_API ot_status ot_shards_open(const char *path, ot_shards_reader **out);
OT_API void ot_shards_reader_destroy(ot_shards_reader *reader); ///< NULL is fine
/** Where it was found; the reader's. */
OT_API const char *ot_shards_reader_path(const ot_shards_reader *reader);
OT_API ot_status ot_shards_reader_info(const ot_shards_reader *reader, ot_shards_info *info);
/** The name of an item; NULL out of range. */
OT_API const char *ot_shards_reader_item(const ot_shards_reader *reader, int index);
/** Tensors stand in the order of their keys. OT_ERR_NOT_FOUND out of range. */
OT_API ot_status ot_shards_reader_tensor(const ot_shards_reader *reader, int index,
                                         ot_shards_tensor *tensor);
/** The tree of an item with all its values; of tensors it has shards without parts. */
OT_API ot_status ot_shards_reader_describe(const ot_shards_reader *reader, const char *item,
                                           ot_dict **out);
/** The tree of an item with all its values and whole tensors. */
OT_API ot_status ot_shards_reader_read(const ot_shards_reader *reader, const char *item,
                                       ot_dict **out);
/**
 * A part of a tensor.
 *
 * @param part of the tensor's type and of the box's size
 */
OT_API ot_status ot_shards_reader_read_box(const ot_shards_reader *reader, const char *key,
                                           const ot_box *box, ot_tensor *part);
/**
 * Read all files whole and compare all sizes, headers and checksums. A warning names what else is
 * in the directory.
 *
 * @return OT_ERR_FORMAT naming the first file and tensor that is damaged
 */
OT_API ot_status ot_shards_reader_verify(const ot_shards_reader *reader);

#ifdef __cplusplus
}
#endif
#endif
