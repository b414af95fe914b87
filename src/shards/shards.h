// SPDX-License-Identifier: Apache-2.0
// Interface of `shards`: files of tensors and of parts of tensors.
#ifndef OT_SHARDS_SHARDS_H
#define OT_SHARDS_SHARDS_H

#include <pthread.h>

#include "onnxtrain/shards.h"
#include "tensor/tensor.h"

// ---- safetensors (safetensors_read.c, safetensors_write.c) ----

enum {
    OT_SAFETENSORS_HEADER_MAX = 100000000, // bytes of JSON
    OT_SAFETENSORS_ALIGNMENT = 8,          // of the data in files of other makers
};

typedef struct ot__safetensor {
    const char *name;
    ot_dtype dtype;
    int ndim;
    const int64_t *dims;
    uint64_t begin, end; // of its bytes, in the data
} ot__safetensor;

typedef struct ot__safetensors_text { // of __metadata__
    const char *name, *text;
} ot__safetensors_text;

typedef struct ot__safetensors {
    const uint8_t *data;           // what was read, behind the header
    uint64_t data_start;           // in the file
    const ot__safetensor *tensors; // in the order of their places
    int n_tensors;
    const ot__safetensors_text *texts;
    int n_texts;
    ot__arena *arena; // of all above but the data
    ot__map by_name;
} ot__safetensors;

// A whole file in memory, which must outlive what is read of it; the data are not looked at.
// OT_ERR_FORMAT says what is wrong, without the file's name.
ot_status ot__safetensors_read(const void *bytes, size_t n_bytes, ot__safetensors *out);
void ot__safetensors_deinit(ot__safetensors *file); // of {0} it does nothing
const ot__safetensor *ot__safetensors_find(const ot__safetensors *file, const char *name);
// "F32" for OT_F32 and back; NULL, OT_DTYPE_UNDEFINED: it has no such type.
const char *ot__safetensors_type(ot_dtype dtype);
ot_dtype ot__safetensors_dtype(const char *name);
// The bytes of a tensor; OT_ERR_FORMAT "overflow", or for sub-byte types that end within a byte.
ot_status ot__safetensor_bytes(const ot__safetensor *tensor, uint64_t *n_bytes);

// Sorts the tensors as the files have them, the largest elements first, and sets their places.
// OT_ERR_INVALID for names that are there twice or cannot be written; OT_ERR_UNSUPPORTED for types.
ot_status ot__safetensors_place(ot__safetensor *tensors, int n_tensors);
// What is before the data, whose first byte is at a multiple of `alignment`: length, JSON, spaces.
// Of tensors that have places. OT_ERR_UNSUPPORTED above OT_SAFETENSORS_HEADER_MAX.
ot_status ot__safetensors_header(const ot__safetensor *tensors, int n_tensors,
                                 const ot__safetensors_text *texts, int n_texts, size_t alignment,
                                 ot__buf *out);

// ---- the tensors of trees (tree.c) ----

// What a rank has of a tensor, or wants of it.
typedef struct ot__leaf {
    const char *key; // item and names, joined by '.'
    ot_dtype dtype;
    ot_shape shape; // of the whole
    int n_parts;
    const ot_box *boxes;
    ot_tensor *const *parts;
} ot__leaf;
typedef struct ot__leaves {
    ot__arena *arena; // of keys, and of what a tensor is as one part
    ot__leaf *items;  // in the order of their keys
    int n;
} ot__leaves;
// Borrows from the trees. OT_ERR_INVALID for keys that are there twice, names that are not UTF-8;
// OT_ERR_UNSUPPORTED for types that files do not have.
ot_status ot__leaves_of(const ot_shards_item *items, int n_items, ot__leaves *out);
void ot__leaves_deinit(ot__leaves *leaves); // of {0} it does nothing
const ot__leaf *ot__leaves_find(const ot__leaves *leaves, const char *key);
// Options of a caller: own[i] for each. OT_ERR_INVALID for names that are none, or there twice.
ot_status ot__items_read(const ot_shards_item *items, int n_items, ot_shards_item *own);
// "key.name", or "name" for a key of "".
void ot__key_append(ot__buf *key, const char *name);

// ---- the index of a directory (index_read.c, index_check.c, index_write.c, values.c) ----

#define OT_INDEX_NAME "otckpt.index.json"
enum {
    OT_INDEX_BYTES_MAX = 512 << 20, // of one of its files
    OT_INDEX_FILES_MAX = 1 << 20,
    OT_INDEX_CHUNKS_MAX = 2000000,
    OT_INDEX_KEY_MAX = 4096,
    OT_INDEX_NAME_MAX = 255, // of a file
    OT_INDEX_PART_CHUNKS = 100000,
    OT_INDEX_VERSION = 1,
};

#define OT_INDEX_FORMAT "onnxtrain-checkpoint"

typedef struct ot__index_file {
    const char *name;
    uint64_t size, data_start;
    uint32_t crc; // CRC-32C of what is before the data
} ot__index_file;

typedef struct ot__index_chunk {
    int file;
    uint32_t crc;   // of its bytes
    uint64_t begin; // in the data of the file
    const int64_t
        *box; // offsets, then sizes; of what was read, then the bytes that it is said to have
} ot__index_chunk;

typedef struct ot__index_tensor {
    const char *key;
    ot_dtype dtype;
    ot_shape shape;
    int n_chunks;
    const ot__index_chunk *chunks; // in the order of their offsets
} ot__index_tensor;

// A further file of the index, with the tensors that the ones before it have not.
typedef struct ot__index_part {
    const char *name;
    uint64_t size;
    uint32_t crc;
} ot__index_part;

typedef struct ot__index_item {
    const char *name;
    const char *json; // its tree
} ot__index_item;

typedef struct ot__index {
    ot__arena *arena; // of all
    const char *save_id, *writer;
    uint64_t unix_ns, step;
    int world_size;
    bool is_later;   // of a later minor version than this one knows
    bool is_foreign; // made of files of others, which have no checksums
    size_t n_prefix; // bytes of keys that the files leave out
    ot__index_file *files;
    ot__index_part *parts;
    ot__index_item *items;
    ot__index_tensor *tensors; // in the order of their keys, once all files are read
    int n_files, n_parts, n_items, n_tensors;
    int64_t n_chunks;
    int files_capacity, parts_capacity, items_capacity, tensors_capacity;
} ot__index;

// The first file, and then each of its parts, in their order; then the check of what they say
// together. OT_ERR_FORMAT says what is wrong, without the file's name. Memory is taken for what is
// spelled out only.
ot_status ot__index_read(const char *text, size_t n_bytes, ot__index *out);
ot_status ot__index_read_part(ot__index *index, const char *text, size_t n_bytes);
ot_status ot__index_check(ot__index *index);
ot_status ot__index_check_content(ot__index *index); // but for the names of files
ot_status ot__index_check_name(const char *name);    // of a file beside the index
// Of the first file, as it is written: what stands before its files.
ot_status ot__index_read_head(const char *text, size_t n_bytes, uint64_t *step, uint64_t *unix_ns);
void ot__index_deinit(ot__index *index); // of {0} it does nothing
const ot__index_tensor *ot__index_find(const ot__index *index, const char *key);
uint64_t ot__index_chunk_bytes(const ot__index_tensor *tensor, const ot__index_chunk *chunk);
ot_box ot__index_chunk_box(const ot__index_tensor *tensor, const ot__index_chunk *chunk);
// One file of the index in memory: its size, its header and the places of all its chunks.
ot_status ot__index_check_file(const ot__index *index, int i_file, const void *bytes,
                               size_t n_bytes);
// The first tensors, from *i_tensor on, as far as one file takes them; moves *i_tensor on.
void ot__index_write_tensors(const ot__index *index, int *i_tensor, ot__buf *out);
// The first file, whose tensors are those up to `n_tensors`; parts as `index` has them.
void ot__index_write(const ot__index *index, int n_tensors, ot__buf *out);

// Trees as JSON, without the elements of tensors.
ot_status ot__values_write(const ot_dict *dict, ot__buf *out);
// What `json` says, from an index that has been checked, as values of an empty dict: its tensors
// are shards without parts or, `whole`, tensors of zeros.
ot_status ot__values_read(const ot__index *index, const ot__index_item *item, bool whole,
                          ot_dict *dict);
// The tensors of the trees are in the index, which has as many.
ot_status ot__values_check(const ot__index *index);

// ---- planning a save (plan_save.c): records in, owners out ----

// A part of a tensor that a rank has.
typedef struct ot__save_record {
    int tensor, rank;
    int number;         // of those of its rank
    bool is_owned;      // out: this rank writes it
    const int64_t *box; // offsets, then sizes
} ot__save_record;
// What all ranks have, in any order, which becomes that of tensors and offsets. Of equal parts one
// is written, by the rank that has the fewest bytes so far. OT_ERR_INVALID naming the tensor: parts
// with elements in common, elements that are nowhere.
ot_status ot__plan_save(const ot__leaves *tensors, ot__save_record *records, int64_t n_records,
                        int n_ranks);

// ---- writing the files of a rank (save_files.c) ----

typedef struct ot__save_chunk { // one that this rank writes
    const ot__leaf *leaf;
    int part;   // of the leaf
    int number; // among all parts that this rank has
    const void *data;
    int file;       // out: of this rank's
    uint64_t begin; // out: in its data
    uint32_t crc;   // out
} ot__save_chunk;
typedef struct ot__save_file {
    uint64_t size, data_start;
    uint32_t crc;
} ot__save_file;
typedef struct ot__save_files {
    int rank;
    char save_id[OT_HEX_ID_LENGTH + 1];
    int64_t file_bytes_max;
    ot__save_chunk *chunks; // in the order of their keys
    int n_chunks;
    ot__save_file *files; // out
    int n_files, files_capacity;
    // What gives the bytes of a chunk, until the next one; NULL: they are at its `data`.
    ot_status (*fetch)(void *context, const ot__save_chunk *chunk, const void **data);
    void *context;
} ot__save_files;
void ot__save_file_name(int rank, int file, char name[64]);
ot_status ot__save_files_write(ot__save_files *files, const char *folder);
void ot__save_files_deinit(ot__save_files *files);

// ---- what the ranks of a call exchange (team.c) ----

typedef struct ot__team {
    ot_comm *comm; // NULL: this process alone
    int rank, n;
} ot__team;
ot_status ot__team_of(ot_comm *comm, ot__team *team);
// How it went on all ranks.
ot_status ot__team_agree(const ot__team *team, ot_status st, const char *call,
                         const ot_agree_field *fields, int n_fields);
// Collective, and an agreement on `st`: what all ranks have, for rank 0 in all[0] to all[n - 1];
// the others' `all` is not looked at. Or what rank 0 has there, for each rank; or what it has in
// `bytes`, for all.
ot_status ot__team_gather(const ot__team *team, ot_status st, const ot__buf *own, ot__buf *all);
ot_status ot__team_scatter(const ot__team *team, ot_status st, const ot__buf *all, ot__buf *own);
ot_status ot__team_spread(const ot__team *team, ot_status st, ot__buf *bytes);

// ---- directories (find.c) ----

bool ot__shards_is_checkpoint(const char *path); // it has an index
// Where a checkpoint is: at the path; where the file `latest` there says; or what a killed process
// was about to replace. Or, where none of these is, files of another tool. All {0}: none.
typedef struct ot__located {
    char *path;   // of the directory; of a foreign file, or of the list of several
    char *folder; // of all files
    bool is_foreign;
} ot__located;
ot_status ot__shards_locate(const char *path, ot__located *out); // OT_ERR_NOT_FOUND
ot_status ot__located_set(ot__located *at, const char *path, bool is_foreign);
void ot__located_deinit(ot__located *at);
// Collective: files of another tool are there, which have the item "model" and no other.
ot_status ot__shards_is_foreign(ot_comm *comm, const char *path, bool *is_foreign);
// The name that a file `latest` says.
ot_status ot__shards_read_latest(const char *path, char **out);
// When a checkpoint was made; false: it is none, or cannot be read.
bool ot__index_peek(const char *folder, uint64_t *step, uint64_t *unix_ns);

// ---- safetensors files of others (foreign.c) ----

// A safetensors file, or a list of them, at a path or in a folder there; NULL: there is none. The
// caller frees it.
char *ot__foreign_find(const char *path);
// What it has as an index. Messages name the file.
ot_status ot__foreign_load(const char *path, const char *folder, ot__index *out);

// ---- reading (find.c, plan_load.c, runs.c, read.c) ----

// The same by all ranks: rank 0 reads the files of the index, and looks whether all others are
// there with their sizes. Of foreign files every rank reads the headers. Messages name them.
ot_status ot__index_load(const ot__team *team, const ot__located *at, ot__index *out);

// Elements that two boxes share, which both have row-major: runs that are in one piece in both, in
// the order in which `from` has them.
typedef struct ot__runs {
    int64_t length; // of each, in elements
    int n_axes;     // that are walked
    int64_t size[OT_MAX_NDIM], place[OT_MAX_NDIM];
    int64_t from_stride[OT_MAX_NDIM], to_stride[OT_MAX_NDIM];
    int64_t from, to;
    bool is_done;
} ot__runs;
void ot__runs_begin(ot__runs *runs, const ot_box *both, const ot_box *from, const ot_box *to);
// Where the next one begins, in elements; false: there are no more.
bool ot__runs_next(ot__runs *runs, int64_t *from, int64_t *to);

// A chunk, and the part of a leaf that wants some of its elements.
typedef struct ot__portion {
    const ot__index_tensor *tensor;
    const ot__index_chunk *chunk;
    const ot__leaf *leaf;
    int part;
} ot__portion;
typedef struct ot__portions {
    ot__portion *items;
    int n, capacity;
} ot__portions;
// Adds what a leaf wants. OT_ERR_INVALID for another shape, and another type unless `casts`;
// OT_ERR_FORMAT for elements that no chunk has.
ot_status ot__plan_load(const ot__index_tensor *tensor, const ot__leaf *leaf, bool casts,
                        ot__portions *pieces);
// In the order of files and of places in them.
void ot__portions_sort(ot__portions *pieces);
bool ot__may_cast(ot_dtype to, ot_dtype from);

typedef struct ot__read_counts {
    uint64_t wanted, read, unchecked; // bytes
} ot__read_counts;
// Pieces that are sorted.
ot_status ot__portions_read(const ot__index *index, const char *folder, const ot__portions *pieces,
                            ot_shards_verify_mode verify, ot__read_counts *counts);

#endif
