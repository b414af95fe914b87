// SPDX-License-Identifier: Apache-2.0
// Models of any size, in ONNX's textual syntax, and data for them.
#ifndef OT_TESTS_SCALE_MODELS_H
#define OT_TESTS_SCALE_MODELS_H

#include <stdio.h>

typedef void (*ot_write_model)(FILE *model, long n);

void write_parameters(FILE *model, long n);   // n biases added one after the other
void write_exponents(FILE *model, long n);    // n additions and powers by turns
void write_wide_sum(FILE *model, long n);     // one Sum of n inputs
void write_distinct_sum(FILE *model, long n); // one Sum of n parameters
void write_fan(FILE *model, long n);          // n readers of one value
void write_inputs(FILE *model, long n);       // n graph inputs
void write_outputs(FILE *model, long n);      // n graph outputs
void write_shared(FILE *model, long n);       // one parameter that n nodes read
void write_long_name(FILE *model, long n);    // names of n bytes
void write_chain(FILE *model, long n);        // n elementwise nodes
void write_layers(FILE *model, long n);       // n layers: Gemm with a bias, Relu
void write_branches(FILE *model, long n);     // n branches into one Concat
void write_split(FILE *model, long n);        // one Split into n parts
void write_merged(FILE *model, long n);       // n names of one initializer
void write_copies(FILE *model, long n);       // n initializers through Identity of their own
void write_functions(FILE *model, long n);    // n local functions, each called once
void write_calls(FILE *model, long n);        // one local function called n times
void write_branching(FILE *model, long n);    // n If nodes with two subgraphs each
void write_deep(FILE *model, long n);         // one If of n nodes in each branch
void write_norms(FILE *model, long n);        // n batch normalisations with their statistics
void write_fixed_batch(FILE *model, long n);  // n Reshapes to a fixed batch size
void write_quantized(FILE *model, long n);    // n pairs of QuantizeLinear and DequantizeLinear
void write_shapes(FILE *model, long n);       // n chains of shape arithmetic
void write_sequences(FILE *model, long n);    // n sequences of two, made and taken apart
void write_symbols(FILE *model, long n);      // n inputs with a symbolic extent each
void write_metadata(FILE *model, long n);     // n entries of metadata
void write_plain(FILE *model, long n);        // the smallest, whatever n is
void write_shared_norm(FILE *model, long n);  // n batch normalisations with the same statistics
void write_wide_data(FILE *model, long n);    // n columns of x

void write_rows(FILE *csv, long n_rows, long n_columns);

#endif
