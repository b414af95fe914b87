// SPDX-License-Identifier: Apache-2.0
// Shared by the dim files: what a symbolic extent is made of.
#ifndef OT_GRAPH_DIM_INTERNAL_H
#define OT_GRAPH_DIM_INTERNAL_H

#include "graph/graph_internal.h"

enum {
    OT_DIM_MAX_TERMS = 16, // larger expressions become unknown
    OT_DIM_MAX_DEGREE = 8,
    OT_DIM_MAX_TEXT = 240,
};

typedef enum ot__symbol_kind {
    OT_SYMBOL_NAMED,
    OT_SYMBOL_POLYNOMIAL,
    OT_SYMBOL_QUOTIENT,
    OT_SYMBOL_REMAINDER
} ot__symbol_kind;

typedef struct ot__term {
    int64_t coefficient;
    int n_atoms;
    int64_t atoms[OT_DIM_MAX_DEGREE]; // symbols that are no polynomials, sorted by text
} ot__term;

typedef struct ot__polynomial {
    int n_terms;
    ot__term terms[OT_DIM_MAX_TERMS]; // sorted, none with coefficient 0; the constant is last
} ot__polynomial;

typedef struct ot__symbol {
    ot__symbol_kind kind;
    const char *text;
    int64_t a, b; // QUOTIENT, REMAINDER
    const ot__polynomial *sum;
} ot__symbol;

struct ot__symbols {
    ot__symbol *items;
    int n, capacity;
    ot__map names;       // of NAMED -> index + 1
    ot__map expressions; // key made of the operands' codes -> index + 1. Names are no keys: a file
                         // may call a dim "2*n".
};

// NULL for numbers, unknown and codes that are no symbol of this model.
const ot__symbol *ot__symbol_of(const ot_model *model, int64_t dim);

// Numbers; unknown on overflow. Division rounds down.
int64_t ot__number_add(int64_t a, int64_t b);
int64_t ot__number_mul(int64_t a, int64_t b);
int64_t ot__number_div(int64_t a, int64_t b);
int64_t ot__number_mod(int64_t a, int64_t b);

#endif
