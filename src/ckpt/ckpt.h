// SPDX-License-Identifier: Apache-2.0
// Interface of `ckpt`: training state and its file formats.
#ifndef OT_CKPT_CKPT_H
#define OT_CKPT_CKPT_H

#include <stdatomic.h>

#include "onnxtrain/checkpoint.h"
#include "onnxtrain/dict.h"
#include "onnxtrain/sharding.h"
#include "tensor/tensor.h"

// Names the files and the runtime agree on: inputs and outputs of a training model that belong to a
// parameter.
#define OT_NAME_LAZY_RESET "lazy_reset_grad"
#define OT_NAME_LOSS_SCALE "onnxtrain.loss_scale"
#define OT_SUFFIX_BUFFER "_grad.accumulation.buffer"
#define OT_SUFFIX_ACCUMULATED "_grad.accumulation.out"

// What an optimizer keeps for every element of a parameter.
typedef enum ot__slot {
    OT_SLOT_MOMENT1,
    OT_SLOT_MOMENT2,
    OT_SLOT_AVERAGE, // of the parameter's values over the updates
    OT_SLOTS,
    OT_SLOT_MOMENTS = OT_SLOT_AVERAGE, // as many are moments
} ot__slot;
extern const char *const ot__slot_names[OT_SLOTS]; // in files: "momentum0", "momentum1", "average"
// More are never seen, and keeping the lists sorted stays cheap whatever a file holds.
enum { OT_MAX_PARAMETERS = 1 << 16, OT_MAX_PROPERTIES = 1 << 14 };

typedef struct ot__parameter {
    char *name;
    char *doc;        // NULL when absent
    ot_tensor *value; // NULL elements in a nominal checkpoint: only the dtype counts
    bool trainable;
    ot_tensor *gradient;        // NULL before a session exists and for frozen ones
    bool gradient_is_given;     // before there was a session, which keeps it
    ot_tensor *slots[OT_SLOTS]; // NULL when the optimizer has not made them
    int64_t n_updates;          // of this parameter; the checkpoint's step unless loaded apart
    const ot_layout
        *layout; // of value, gradient and slots; NULL, which is row-major, outside sessions
    // Which rank has what of the value, and of its state: the reduced gradient and the slots. NULL:
    // all of it is here, which `value` then has the shape of. Borrowed from who cuts.
    const ot_sharding *value_sharding, *state_sharding;
    bool is_scalar; // where the value is cut, as one row: it has no axis
    int number; // of the session that has the checkpoint: among its parameters; -1: none of them
    bool is_undone; // and whether it keeps a copy, for steps that fail
} ot__parameter;

typedef struct ot__property {
    char *name;
    ot_property_kind kind;
    int64_t i;
    float f;
    char *s;
} ot__property;

// Optimizer groups of the file. Others than these two are kept as they are and saved back.
#define OT_GROUP_OPTIMIZER "group0" // the moments
#define OT_GROUP_OWN "onnxtrain"    // what ONNX Runtime's group has no place for
#define OT_STATE_UPDATES "updates"  // in OT_GROUP_OWN: i64 [1]
#define OT_STATE_GRADIENT "gradient"
typedef struct ot__moment {
    const char *name;
    ot_tensor *value;
} ot__moment;
typedef struct ot__param_state {
    char *param_name;
    ot__moment *moments;
    int n_moments;
} ot__param_state;
typedef struct ot__optimizer_group {
    char *name;
    int64_t step;
    float initial_lr;
    ot__param_state *states;
    int n_states;
} ot__optimizer_group;

#define OT_KIND_CHECKPOINT "checkpoint"

struct ot_checkpoint {
    ot__guard guard;
    ot__parameter **parameters; // sorted by name
    int n_parameters, parameters_capacity;
    ot__property *properties; // sorted by name
    int n_properties, properties_capacity;
    bool has_optimizer_state; // group0 has been read or made
    int64_t step;             // optimizer steps done (group0)
    float initial_lr;         // base learning rate of schedules (group0)
    // Micro-batches whose summed gradients are part of the state, of an accumulation that goes on
    // when it is loaded; 0: gradients are no part of it.
    int64_t n_accumulated;
    ot__file_map file, data; // that tensors of parameters lie in: see ot__ckpt_view()
    bool shows_averages;     // evaluation and exports take averages where there are some
    ot__optimizer_group *other_groups;
    int n_other_groups;
    bool is_nominal, has_external_data;
    uint64_t n_changes;            // of parameters' values, by whomever
    int places[OT_MAX_CUT_GROUPS]; // of this process, in the groups that parameters are cut among
    struct ot__stamp *stamp;       // of its tensors that are in dicts; NULL: none are
    struct ot__ckpt_block *blocks; // memory that some of its values and gradients lie in
    ot_sharding **shardings;       // that it keeps for its parameters
    int n_shardings, shardings_capacity;
    void *session;    // the session that works on it now, or NULL
    bool is_released; // by its owner: it goes with the session
    // Set while a session keeps parameters in layouts of its own: makes one row-major. The session
    // brings it back before it computes.
    void (*unpack)(void *session, ot__parameter *parameter);
};

// blocks.c: zeroed memory for values and gradients, which goes with the checkpoint, or when nothing
// of that lies in it any more.
ot_status ot__ckpt_add_block(ot_checkpoint *checkpoint, size_t n_bytes, void **out);
void ot__ckpt_drop_blocks(ot_checkpoint *checkpoint);
// The one that begins there, of whose tensors none lies in it any more.
void ot__ckpt_drop_block(ot_checkpoint *checkpoint, const void *data);

ot__parameter *ot__ckpt_find(const ot_checkpoint *checkpoint, const char *name);
// What evaluation and exports take of a parameter: its value, or the average of its values.
static inline ot_tensor *ot__ckpt_shown(const ot_checkpoint *checkpoint, const ot__parameter *p)
{
    ot_tensor *average = p->slots[OT_SLOT_AVERAGE];

    return checkpoint->shows_averages && average != NULL ? average : p->value;
}
// Which rank has what of it; NULL: it is whole.
static inline const ot_sharding *ot__ckpt_shown_sharding(const ot_checkpoint *checkpoint,
                                                         const ot__parameter *p)
{
    return ot__ckpt_shown(checkpoint, p) == p->value ? p->value_sharding : p->state_sharding;
}
// shardings.c. It is the checkpoint's from now on, also on failure.
ot_status ot__ckpt_keep_sharding(ot_checkpoint *checkpoint, ot_sharding *sharding);
// The shape that the model has, of a parameter of a checkpoint that is not nominal;
// `value->shape` is that of the memory here.
const ot_shape *ot__parameter_shape(const ot__parameter *parameter);
// What of its slots is here.
ot_status ot__ckpt_state_shape(const ot_checkpoint *checkpoint, const ot__parameter *parameter,
                               ot_shape *out);
// The part of `whole`, which has the parameter's shape and is row-major, that a sharding leaves to
// this process, as a new tensor.
ot_status ot__ckpt_cut(const ot_checkpoint *checkpoint, const ot_sharding *sharding,
                       const ot_tensor *whole, ot_tensor **out);
// What is here of the value of the i-th parameter, as a row-major copy, and back. `whole`, a tensor
// of the whole value, becomes what is here of it, unless that is all of it or it has done so.
ot_status ot__ckpt_copy_part(const ot_checkpoint *checkpoint, int i, ot_tensor **out);
ot_status ot__ckpt_take_part(ot_checkpoint *checkpoint, int i, const ot_tensor *part);
ot_status ot__ckpt_cut_whole(const ot_checkpoint *checkpoint, int i, ot_tensor **whole);
// OT_ERR_STATE naming a parameter whose value, gradient, or slots (`with_state`) other ranks have
// parts of, and the functions to use.
ot_status ot__parameter_check_whole(const ot__parameter *parameter, bool is_gradient);
ot_status ot__ckpt_check_whole(const ot_checkpoint *checkpoint, bool with_state);
// OT_ERR_NOT_FOUND, with the name that was probably meant.
ot_status ot__ckpt_no_parameter(const ot_checkpoint *checkpoint, const char *name);
// Takes `value` over, also on failure. The new parameter is in *out (may be NULL).
ot_status ot__ckpt_add(ot_checkpoint *checkpoint, const char *name, ot_tensor *value,
                       bool trainable, ot__parameter **out);
// Room for one more element in an array that doubles.
ot_status ot__ckpt_grow(void *array_pointer, int *capacity, int count, int max, size_t item_size);
// One thread at a time works on a checkpoint. Leaving returns `status`.
ot_status ot__ckpt_enter(const ot_checkpoint *checkpoint);
ot_status ot__ckpt_leave(const ot_checkpoint *checkpoint, ot_status status);
// Its session is gone: what the owner has destroyed meanwhile is now freed.
void ot__ckpt_release(ot_checkpoint *checkpoint);
// Make the parameter row-major if a session keeps it in another layout.
void ot__ckpt_unpack(const ot_checkpoint *checkpoint, ot__parameter *parameter);
const ot__property *ot__ckpt_property(const ot_checkpoint *checkpoint,
                                      const char *name); // NULL: none
// properties.c: a string property that was written into `text`, which is freed, also on failure.
ot_status ot__ckpt_set_text(ot_checkpoint *checkpoint, const char *name, ot__buf *text);

// ckpt_flatbuf_read.c; the data beside it are read from where `path` says, or refused when it is
// NULL. Pages of a mapped file are given back as they are read.
// `flags`: OT_CHECKPOINT_OPTIMIZER_STATE, or it is left out. `is_view`: values, moments and
// gradients of parameters stay in the map, only to be read; all of it has been read once then, and
// the checkpoint takes it over when all goes well.
ot_status ot__flatbuf_read(ot__file_map *file, const char *path, unsigned flags, bool is_view,
                           ot_checkpoint **out);
// Properties and flags only: without parameters and moments.
ot_status ot__flatbuf_read_head(const void *bytes, size_t n_bytes, const char *path,
                                ot_checkpoint **out);

// pieces.c: the bytes of a file to be written. Large ones are referred to: they must stay as they
// are until then.
typedef struct ot__piece {
    size_t position;   // in `own`, of the byte that comes after it
    const void *bytes; // of the caller
    size_t n_bytes;
    size_t n_until; // of this one and those before
} ot__piece;
typedef struct ot__pieces {
    ot__buf own; // all that is not referred to
    ot__piece *large;
    int n_large, capacity;
    size_t n_referred;
} ot__pieces;
typedef ot_status (*ot__pieces_sink)(void *context, const void *bytes, size_t n_bytes);
void ot__pieces_append(ot__pieces *pieces, const void *bytes, size_t n_bytes);
size_t ot__pieces_size(const ot__pieces *pieces);
size_t ot__pieces_place(const ot__pieces *pieces,
                        size_t position); // in the file, of a byte of `own`
// The file from its first byte to its last. An error when an append before has failed.
ot_status ot__pieces_each(const ot__pieces *pieces, ot__pieces_sink sink, void *context);
ot_status ot__pieces_write(const ot__pieces *pieces, ot__file_writer *file);
void ot__pieces_deinit(ot__pieces *pieces);

// ckpt_flatbuf_write.c
typedef struct ot__ckpt_write_options {
    unsigned flags; // OT_CHECKPOINT_OPTIMIZER_STATE
    const char *const
        *names; // parameters in this order, trainable and frozen mixed; NULL: sorted by name
    int n_names;
    // true: as artifacts are written: no optimizer groups, and properties only when there are some.
    // false: as a running session saves: optimizer groups always there, perhaps empty.
    bool as_artifact;
    bool nominal;          // names and element types only
    ot__pieces *external;  // receives the parameters' elements when not NULL
    bool external_moments; // it receives those of the optimizer state, too
} ot__ckpt_write_options;
ot_status ot__flatbuf_write(const ot_checkpoint *checkpoint, const ot__ckpt_write_options *options,
                            ot__pieces *out);

// What the optimizer's state has of a parameter, in the order of the files; their number.
enum { OT_STATE_TENSORS = OT_SLOTS + 1 };
int ot__ckpt_state_tensors(const ot_checkpoint *checkpoint, const ot__parameter *parameter,
                           const ot_tensor *out[OT_STATE_TENSORS]);

// ckpt_file.c: a checkpoint as generate_artifacts writes it: parameters in the order of `names`.
ot_status ot__ckpt_save_artifact(ot_checkpoint *checkpoint, const char *path,
                                 const char *const *names, int n_names, bool nominal);
// As ot_checkpoint_load(), with tensors in the mapped file.
ot_status ot__ckpt_view(const char *path, ot_checkpoint **out);
// As ot_dict_save_hdf5(), but for its last step: the writer, which the caller commits or aborts.
ot_status ot__dict_write_hdf5(const ot_dict *dict, const char *path, ot__file_writer **out);
// As ot_dict_load_hdf5(), with tensors in the mapped file where they lie in it as they are here;
// the caller closes the map after it has destroyed the dict.
ot_status ot__dict_view_hdf5(const char *path, ot__file_map *map, ot_dict **out);
// The elements of a tensor of a checkpoint that is viewed have been read.
void ot__ckpt_view_forget(const ot_checkpoint *view, const ot_tensor *tensor);
// ckpt_data.c: which data file belongs to the checkpoint at `path`, of which `head` has been read.
ot_status ot__ckpt_data_open(const ot_checkpoint *head, const char *path, ot__file_map *out);
// Write the two files of a checkpoint with external data.
ot_status ot__ckpt_save_pair(const char *path, const ot__pieces *main_file,
                             const ot__pieces *data_file);
// Give the checkpoint the id of its data as a property, and put that id behind the data.
ot_status ot__ckpt_data_name(ot_checkpoint *checkpoint, const ot__ckpt_write_options *options);
ot_status ot__ckpt_data_mark(const ot_checkpoint *checkpoint, ot__pieces *data);

// dict_view.c: a value of a dict that is memory of a checkpoint. To get it is OT_ERR_STATE once
// that has changed, or how it lies in memory has.
typedef struct ot__stamp {
    atomic_int n_users; // the checkpoint, and values of dicts
    _Atomic uint64_t now;
} ot__stamp;
ot_status ot__dict_mark_view(ot_dict *dict, const char *name, ot_checkpoint *checkpoint);
void ot__ckpt_outdate(ot_checkpoint *checkpoint);

// dict_copy.c: of values that are there.
bool ot__dict_has(const ot_dict *dict, const char *name); // NULL: no
ot_status ot__dict_copy(const ot_dict *from, const char *name, ot_dict *to, const char *new_name);
bool ot__dict_same(const ot_dict *a, const char *a_name, const ot_dict *b, const char *b_name);
uint64_t ot__dict_hash(const ot_dict *dict, const char *name); // the same of such that are the same
// dict_pack.c: for ranks of one job. Tensors of more than one element have no parts afterwards.
ot_status ot__dict_pack(const ot_dict *dict, ot__buf *out);
ot_status ot__dict_unpack(const char *bytes, ot_dict **out);

// dict.c: a value to another dict, where it replaces what has that name. A 0 is left in its place.
ot_status ot__dict_move(ot_dict *from, const char *name, ot_dict *to, const char *new_name);
// A tensor that is whole leaves the dict: it is the caller's. A 0 is left in its place.
ot_status ot__dict_release_tensor(ot_dict *dict, const char *name, ot_tensor **out);

#endif
