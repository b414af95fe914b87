// SPDX-License-Identifier: Apache-2.0
// Training data from .npz, .npy, CSV and IDX files (each also gzipped): fields, bindings to model
// inputs, batches.
#ifndef ONNXTRAIN_DATA_H
#define ONNXTRAIN_DATA_H

#include "onnxtrain/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Rows of named fields: the arrays of an .npz, the array of an .npy or IDX file (named after the
 * file: "train" for train.npy), the columns of a CSV. Mapped or read by row; never all in memory.
 */
typedef struct ot_dataset ot_dataset;

typedef struct ot_dataset_options {
    size_t size;          ///< sizeof(ot_dataset_options)
    int csv_header;       ///< -1: detected from the first row (all text, no numbers); 0: no; 1: yes
    char csv_separator;   ///< 0: detected among , ; tab
    const char *temp_dir; ///< for unpacked files; NULL: TMPDIR or /tmp
    uint64_t max_unpacked; ///< bytes a packed file may become; 0: 1,000 times its own, or 64 MiB
                           ///< where that is more, and at most 64 GiB. Never more than the free
                           ///< space less 1 GiB
} ot_dataset_options;
#define OT_DATASET_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(ot_dataset_options), -1, 0, NULL, 0                                                 \
    }

/**
 * Open files together. All must have the same number of rows; of the arrays of an .npz only those
 * that are bound. "name=path" gives the field of an .npy or IDX file that name.
 *
 * @param out the caller destroys it
 * @return OT_ERR_FORMAT naming file, row and column
 */
OT_API ot_status ot_dataset_open(const char *const *paths, int n_paths,
                                 const ot_dataset_options *options, ot_dataset **out);
/**
 * Fields from tensors, whose first axis counts the rows; all must have the same number of them.
 *
 * @param tensors borrowed until the dataset and its batches are destroyed
 * @param out     the caller destroys it
 */
OT_API ot_status ot_dataset_from_tensors(const char *const *names, const ot_tensor *const *tensors,
                                         int n, ot_dataset **out);
/** NULL is fine. Batches over it go on; the memory goes with the last of them. */
OT_API void ot_dataset_destroy(ot_dataset *dataset);

/** Where arrays of an .npz differ, the rows of the first array that can be used; ot_batches_rows()
 * has those of the arrays that are bound. */
OT_API int64_t ot_dataset_rows(const ot_dataset *dataset);
OT_API int ot_dataset_field_count(const ot_dataset *dataset);
/** Owned by the dataset; NULL out of range. CSV columns without header are "0", "1", ... */
OT_API const char *ot_dataset_field_name(const ot_dataset *dataset, int index);
/** Type and shape of one row of a field. CSV numbers are f64 scalars, text is OT_STRING.
 * OT_ERR_UNSUPPORTED with the reason for an array of an .npz that cannot be bound. */
OT_API ot_status ot_dataset_field_info(const ot_dataset *dataset, int index, ot_dtype *dtype,
                                       ot_shape *row_shape);

/** What a model input takes from a dataset. */
typedef struct ot_binding {
    const char *input;  ///< model input, for messages
    ot_dtype dtype;     ///< element type the input wants
    ot_shape shape;     ///< of one row; dim sizes below 0 are those of the data
    const char *fields; ///< field name, or several CSV columns: "a,b,c" or "first:last" (by name or
                        ///< position, last included; "#3" is always a position, -1 the last)
    double scale;       ///< multiplied first (1)
    const double *mean, *std; ///< subtracted, then divided; NULL: nothing; n_channels of them: 1,
                              ///< or the size of the row's axis 0
    int n_channels;
    int is_class;       ///< labels: text becomes classes (sorted), numbers must be whole
    int is_probability; ///< numbers must be in 0..1, as targets of binary cross entropy are
} ot_binding;

/** One thread at a time, else OT_ERR_STATE. */
typedef struct ot_batches ot_batches;

typedef struct ot_batches_options {
    size_t size;        ///< sizeof(ot_batches_options)
    int64_t batch_size; ///< rows a batch; 0: 32, or with ot_train_batches() the only number that
                        ///< the model takes
    int shuffle;        ///< 1: another order each epoch, from seed and epoch alone
    uint64_t seed;
    int64_t first, last; ///< rows first .. last - 1 of the split order (0, 0: all)
    uint64_t split_seed; ///< 0: file order; else rows are permuted once by this seed before
                         ///< first/last are taken
    int drop_last;       ///< 1: leave out a last short batch
    const char *const
        *class_names;      ///< n_classes of text labels as trained; NULL: found in the data
    int n_classes;         ///< labels must be below this; 0: not checked
    int has_ignored_label; ///< 1: ignored_label may stand where a class is wanted
    int64_t ignored_label;
    int64_t slice, slices; ///< of each batch of R rows those from R * slice / slices up to
                           ///< R * (slice + 1) / slices, which may be none (0, 0: all)
} ot_batches_options;
#define OT_BATCHES_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(ot_batches_options), 0, 0, 0, 0, 0, 0, 0, NULL, 0, 0, 0, 0, 0                       \
    }

/** A reader of batches; keeps the dataset alive and copies the bindings; `options` NULL for
 * defaults. Fails when a field is missing or does not fit. */
OT_API ot_status ot_batches_create(const ot_dataset *dataset, const ot_binding *bindings,
                                   int n_bindings, const ot_batches_options *options,
                                   ot_batches **out);
OT_API void ot_batches_destroy(ot_batches *batches); ///< NULL is fine
OT_API int64_t ot_batches_rows(const ot_batches *batches);
OT_API int64_t ot_batches_count(const ot_batches *batches); ///< batches an epoch
/** Rows of an epoch that are in no batch: with drop_last, those after the last whole batch. */
OT_API int64_t ot_batches_left_over(const ot_batches *batches);
/** Rows of the latest batch in all its slices. */
OT_API int64_t ot_batches_batch_rows(const ot_batches *batches);
/** Go to a batch of an epoch: any point can be resumed. */
OT_API ot_status ot_batches_seek(ot_batches *batches, int64_t epoch, int64_t batch);
/**
 * Fill the next batch.
 *
 * @param tensors one per binding, owned by `batches`, valid until the next call; all NULL at the
 * end of the epoch, of 0 rows for a slice without any
 * @param n_tensors how many `tensors` has room for: as many as there are bindings
 * @return OT_ERR_INVALID when that is another number, and with row and column for NaN features,
 * labels out of range, text where a number is wanted, fractions for integers, numbers outside the
 * input's type, and probabilities outside 0..1
 */
OT_API ot_status ot_batches_next(ot_batches *batches, const ot_tensor **tensors, int n_tensors);
/** Names of the classes of a text label binding, sorted; NULL when labels are numbers. Owned by
 * `batches`. */
OT_API const char *const *ot_batches_class_names(const ot_batches *batches, int *n_classes);

/** Write arrays as NumPy does: an .npz holds any number under their names, an .npy the one there
 * is. The old file stays until the new one is complete. OT_ERR_UNSUPPORTED for element types that
 * NumPy does not have. */
OT_API ot_status ot_arrays_save(const char *path, const char *const *names,
                                const ot_tensor *const *tensors, int n_tensors);

#ifdef __cplusplus
}
#endif
#endif
