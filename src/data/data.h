// SPDX-License-Identifier: Apache-2.0
// Face of `data`: rows of named fields from files, and batches of them.
#ifndef OT_DATA_DATA_H
#define OT_DATA_DATA_H

#include "base/base.h"
#include "onnxtrain/data.h"
#include "tensor/tensor.h"

// A file, unpacked when it was packed, and what its format needs to find a row.
typedef struct ot__source {
    char *path;
    ot__file_map map; // the bytes, of the file itself or of an unlinked temporary one
    // CSV only
    const uint64_t *row_start; // offset of every data row; the header is not one
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
    int column;          // of a CSV, from 0
    const uint8_t *data; // elements of an array; NULL for a CSV
    bool swap_bytes, fortran_order;
} ot__field;

#define OT_KIND_DATASET "dataset"

struct ot_dataset {
    ot__guard guard;      // of the caller's handle, which is spent once destroyed
    _Atomic int n_owners; // the caller and batches
    ot__source **sources;
    int n_sources;
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

// dataset.c: takes `name` and field.fault over. Fields of an archive may have other numbers of rows
// than the rest: it may hold more than what is trained with.
ot_status ot__dataset_add(ot_dataset *dataset, char *name, ot__field field);
ot__source *ot__dataset_add_source(ot_dataset *dataset,
                                   const char *path); // NULL when out of memory

// As ot_dataset_open() of one file, packed or not, from memory, which is copied; the field of an
// array is "data".
ot_status ot__dataset_open_bytes(const void *bytes, size_t n_bytes,
                                 const ot_dataset_options *options, ot_dataset **out);

// fields.c: the field of that name, else at that position; "#3" is a position even where a field is
// named "3", -1 the last. -1: there is none.
int ot__dataset_find(const ot_dataset *dataset, const char *name, size_t length);
// OT_ERR_NOT_FOUND, with the fields there are and the one that was probably meant.
ot_status ot__dataset_no_field(const ot_dataset *dataset, const char *name);
// The next fields, first to last, of a text as ot_binding has it; *text moves behind them, and is
// NULL at its end.
ot_status ot__dataset_next_fields(const ot_dataset *dataset, const char *input, const char **text,
                                  int *first, int *last);

// unpack.c
bool ot__is_gzip(const ot__file_map *map);
// Replace source->map by its unpacked bytes.
ot_status ot__unpack_gzip(ot__source *source, const ot_dataset_options *options);
// An unlinked temporary file that bytes are added to, then mapped.
typedef struct ot__spill {
    int fd;
    uint64_t size, max;
    const char *path; // of the packed file, for messages
} ot__spill;
ot_status ot__spill_open(ot__spill *spill, const char *path, const ot_dataset_options *options);
ot_status ot__spill_write(ot__spill *spill, const void *bytes, size_t n_bytes);
ot_status ot__spill_map(ot__spill *spill, ot__file_map *map); // closes
void ot__spill_close(ot__spill *spill);

// npy.c, npz.c, idx.c, csv.c: add the fields of a source. `name` is the field's, for one-array
// formats.
ot_status ot__npy_add(ot_dataset *dataset, ot__source *source, const uint8_t *bytes, size_t n_bytes,
                      const char *name);
ot_status ot__npy_write(const char *name, const ot_tensor *tensor, ot__buf *out); // appends
// A place for an array that cannot be used, with the present error as its fault.
ot_status ot__dataset_add_fault(ot_dataset *dataset, ot__source *source, const char *name);
ot_status ot__npz_add(ot_dataset *dataset, ot__source *source, const ot_dataset_options *options);
ot_status ot__idx_add(ot_dataset *dataset, ot__source *source, const char *name);
ot_status ot__csv_add(ot_dataset *dataset, ot__source *source, const ot_dataset_options *options);

// ---- cells of a CSV row (csv.c) ----

typedef struct ot__cell {
    const char *text;
    size_t length;
    bool is_quoted; // with quotes inside doubled: ot__cell_text removes them
} ot__cell;
// The cells of data row `row`; cells has source->n_columns entries.
void ot__csv_row(const ot__source *source, int64_t row, ot__cell *cells);
int64_t ot__csv_line(const ot__source *source, int64_t row); // line in the file, from 1
// False when it is no number; an empty cell is NaN.
bool ot__cell_number(const ot__cell *cell, double *value);
void ot__cell_text(const ot__cell *cell, ot__buf *out);

// ---- order of rows (permute.c) ----

// A permutation of 0 .. count - 1 that needs no memory: position -> row, from a seed and an epoch.
int64_t ot__permute(uint64_t seed, uint64_t epoch, int64_t count, int64_t position);

#endif
