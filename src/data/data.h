// SPDX-License-Identifier: Apache-2.0
// Interface of `data`: rows of named fields from files, and batches of them.
#ifndef OT_DATA_DATA_H
#define OT_DATA_DATA_H

#include "base/base.h"
#include "onnxtrain/data.h"
#include "tensor/tensor.h"

// A file, unpacked when it was packed, and what its format needs to find a row.
typedef struct ot__source {
    char *path;
    ot__file_input input; // the file itself; of what was unpacked, a map of a file without a name
    // CSV only
    const uint64_t *row_start; // offset of every data row; the header is not one
    uint64_t rows_end;         // offset behind the last one
    uint64_t *own_row_start;   // where they lie in memory,
    ot__file_map row_map;      // or, being many, in a temporary file
    int64_t rows;
    int64_t first_line; // line number (from 1) of data row 0
    int n_columns;
    char separator;
    bool is_archive; // .npz
} ot__source;

typedef struct ot__field {
    char *name;
    ot_dtype dtype; // as stored; a CSV column is OT_F64 or OT_STRING
    ot_shape row_shape;
    int64_t row_count; // elements of a row
    int64_t rows;
    char *fault; // why nothing can be bound to it; NULL: nothing is wrong
    ot__source *source;
    int column; // of a CSV, from 0
    bool is_array;
    const uint8_t *data; // elements of an array in memory; NULL: of a file, from `offset` on
    uint64_t offset;
    bool swap_bytes, fortran_order; // in Fortran order they are in memory
} ot__field;

#define OT_KIND_DATASET "dataset"

struct ot_dataset {
    ot__guard guard;      // of the caller's handle, which is spent once destroyed
    _Atomic int n_owners; // the caller and batches
    ot__source **sources;
    int n_sources, sources_capacity;
    ot__field *fields;
    int n_fields, fields_capacity;
    ot__map names;       // of the fields
    int64_t rows;        // -1 before the first field
    bool rows_are_given; // by a file whose rows all count, so that other such files must agree
};

ot_dataset *ot__dataset_create(void); // empty; NULL when out of memory
// Batches keep what they read from; whoever leaves last frees it.
void ot__dataset_retain(const ot_dataset *dataset);
void ot__dataset_release(const ot_dataset *dataset);

// dataset.c: takes field.fault over. Fields of an archive may have other numbers of rows than the
// rest: it may hold more than what is trained with.
ot_status ot__dataset_add(ot_dataset *dataset, const char *name, ot__field field);
// The same of an array, whose first axis are the rows.
ot_status ot__dataset_add_array(ot_dataset *dataset, const char *name, const ot_shape *shape,
                                ot__field field);
ot__source *ot__dataset_add_source(ot_dataset *dataset,
                                   const char *path); // NULL when out of memory

// As ot_dataset_open() of one file, packed or not, from memory, which is copied; the field of an
// array is "data".
ot_status ot__dataset_open_bytes(const void *bytes, size_t n_bytes,
                                 const ot_dataset_options *options, ot_dataset **out);

// fields.c: the field of that name, else at that position; "#3" is a position even where a field is
// named "3", -1 the last. -1: there is none.
int ot__dataset_find(const ot_dataset *dataset, const char *name, size_t length);
int ot__dataset_find_name(const ot_dataset *dataset, const char *name, size_t length); // name only
// OT_ERR_NOT_FOUND, with the fields there are and the one that was probably meant.
ot_status ot__dataset_no_field(const ot_dataset *dataset, const char *name);
// The next fields, first to last, of a text as ot_binding has it; *text moves behind them, and is
// NULL at its end.
ot_status ot__dataset_next_fields(const ot_dataset *dataset, const char *input, const char **text,
                                  int *first, int *last);

// window.c: bytes of a source in memory, of which each reader has its own.
typedef struct ot__window {
    const uint8_t *data; // of the source from `start` on; NULL: nothing yet
    uint64_t start;
    size_t n_bytes;
    uint8_t *buffer; // of bytes of a file
    size_t capacity;
} ot__window;
// Has n_bytes from `offset` on, which must be in the source, and what else is cheap to have.
// OT_ERR_IO naming file (and row) when the file has become shorter.
ot_status ot__window_move(ot__window *window, const ot__source *source, uint64_t offset,
                          size_t n_bytes);
ot_status ot__window_move_to_row(ot__window *window, const ot__source *source, int64_t row,
                                 uint64_t offset, size_t n_bytes);
static inline const uint8_t *ot__window_at(const ot__window *window, uint64_t offset)
{
    return window->data + (offset - window->start);
}
void ot__window_deinit(ot__window *window);

// unpack.c
// Replace source->input by its unpacked bytes.
ot_status ot__unpack_gzip(ot__source *source, const ot_dataset_options *options);
// An unlinked temporary file that bytes are added to, then mapped.
typedef struct ot__spill {
    int fd;
    uint64_t size, max;
    uint64_t max_of_size;     // by that of the packed file
    const ot__source *source; // for messages
} ot__spill;
ot_status ot__spill_open(ot__spill *spill, const ot__source *source,
                         const ot_dataset_options *options);
ot_status ot__spill_write(ot__spill *spill, const void *bytes, size_t n_bytes);
ot_status ot__spill_map(ot__spill *spill, ot__file_map *map); // closes
// The spilled bytes take the place of the source's; closes.
ot_status ot__spill_replace(ot__spill *spill, ot__source *source);
void ot__spill_close(ot__spill *spill);

// Copy a source's file into one without a name that nobody else can change, as a map.
ot_status ot__spill_source(ot__source *source, const ot_dataset_options *options);

// npy.c, npz.c, idx.c, csv.c: add the fields of a source. `name` is the field's, for one-array
// formats. The array of ot__npy_add() is n_bytes of the source from `start` on.
ot_status ot__npy_add(ot_dataset *dataset, ot__source *source, uint64_t start, uint64_t n_bytes,
                      const char *name, const ot_dataset_options *options);
ot_status ot__npy_write(const char *name, const ot_tensor *tensor, ot__buf *out); // appends
// A place for an array that cannot be used, with the present error as its fault.
ot_status ot__dataset_add_fault(ot_dataset *dataset, ot__source *source, const char *name);
ot_status ot__npz_add(ot_dataset *dataset, ot__source *source, const ot_dataset_options *options);
ot_status ot__idx_add(ot_dataset *dataset, ot__source *source, const char *name);
// dataset.c: the elements of an array begin at `offset` of its source.
void ot__field_place(ot__field *field, uint64_t offset);
ot_status ot__csv_add(ot_dataset *dataset, ot__source *source, const ot_dataset_options *options);

// ---- cells of a CSV row (csv.c) ----

typedef struct ot__cell {
    const char *text;
    size_t length;
    bool is_quoted; // with quotes inside doubled: ot__cell_text removes them
} ot__cell;
// The cells of data row `row`, which stay until the window moves; cells has source->n_columns
// entries. OT_ERR_FORMAT when the file has changed so that the row has other columns than before.
ot_status ot__csv_row(const ot__source *source, int64_t row, ot__window *window, ot__cell *cells);
// Line of the row in the file, from 1; moves the window.
ot_status ot__csv_line(const ot__source *source, int64_t row, ot__window *window, int64_t *line);
// csv_number.c: false when it is no decimal number; an empty cell is NaN.
bool ot__cell_number(const ot__cell *cell, double *value);
// Also "nan" and "inf", which stand where numbers are meant, but are none to train on.
bool ot__cell_is_numeric(const ot__cell *cell);
bool ot__cell_is_empty(const ot__cell *cell); // or has blanks alone
void ot__cell_text(const ot__cell *cell, ot__buf *out);

// ---- batches (batch.c) ----

// From the next batch on, the slice of it alone. OT_ERR_INVALID for batches that are slices.
ot_status ot__batches_set_slice(ot_batches *batches, int64_t slice, int64_t slices);
// As ot_batches_next() for one input alone.
ot_status ot__batches_next_of(ot_batches *batches, int input, const ot_tensor **tensor);
// Of what the first and the last row have, in the order of epoch 0.
ot_status ot__batches_id(ot_batches *batches, uint64_t *id);
int64_t ot__batches_size(const ot_batches *batches); // rows of whole batches, in all their slices

// ---- order of rows (permute.c) ----

// A permutation of 0 .. count - 1 that needs no memory: position -> row, from a seed and an epoch.
int64_t ot__permute(uint64_t seed, uint64_t epoch, int64_t count, int64_t position);

#endif
