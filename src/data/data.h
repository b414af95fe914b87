// Face of `data`: rows of named fields from files, and batches of them.
#ifndef OT_DATA_DATA_H
#define OT_DATA_DATA_H

#include "base/base.h"
#include "onnxtrain/data.h"
#include "tensor/tensor.h"

// One column or array of a source file. read_rows must be able to read any row.
typedef struct ot__field {
    char *name;
    ot_dtype dtype; // as stored; CSV: OT_F64 or OT_STRING
    ot_shape row_shape;
    struct ot__source *source;
    int column;          // CSV
    const uint8_t *data; // arrays: row-major elements, little-endian; NULL for CSV
    bool swap_bytes, fortran_order;
} ot__field;

typedef struct ot__source ot__source; // a file of one format: csv.c, npy.c, npz.c, idx.c

struct ot_dataset {
    ot__source **sources;
    int n_sources;
    ot__field *fields;
    int n_fields;
    int64_t rows;
};

#endif
