// SPDX-License-Identifier: Apache-2.0
// A few oneDNN primitives run one after the other on memory that is given at each run: how every
// dnnl_*.c executes. Internal to `kernels`.
#ifndef OT_KERNELS_DNNL_PROGRAM_H
#define OT_KERNELS_DNNL_PROGRAM_H

#include "kernels/dnnl_compat.h"
#include "kernels/kernels.h"

enum { OT__DNNL_MAX_ARGS = 6, OT__DNNL_MAX_STEPS = 12, OT__DNNL_NAMES = 256 };

// Where an argument lies: in slot i of the pointers given to a run, or in the scratch memory.
typedef struct ot__dnnl_place {
    int slot; // -1: scratch
    size_t offset;
    size_t per_chunk, per_thread; // bytes from one to the next, in steps that run chunk by chunk
} ot__dnnl_place;
#define OT__DNNL_SLOT(i) ((ot__dnnl_place){.slot = (i)})
#define OT__DNNL_SLOT_CHUNKS(i, bytes) ((ot__dnnl_place){.slot = (i), .per_chunk = (bytes)})

// Three kinds: a primitive that all threads run together; one that each thread runs alone, on its
// share of the chunks; and without a primitive, the sum of what the chunks have left in arg 0.
typedef struct ot__dnnl_step {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t *arg; // n_threads rows of them; their memory objects belong to the step
    ot__dnnl_place place[OT__DNNL_MAX_ARGS];
    int n_args;
    int n_threads;    // that run it on chunks of their own
    int64_t n_chunks; // 0: all threads together
    int64_t n_floats; // sums: of one chunk; place 0 is from, place 1 to
} ot__dnnl_step;

// Starts as zeros. Everything is made while preparing, with the number of threads it will run with.
struct ot__dnnl_primitives {
    ot__dnnl_step step[OT__DNNL_MAX_STEPS];
    int n_steps;
    size_t scratch_used, scratch_bytes;
    char names[OT__DNNL_NAMES]; // of the implementations, without copies, and notes
};

// The instruction sets that oneDNN uses, of dnnl_cpu_isa_t: those of the processor that OT_ISA
// allows.
int ot__dnnl_isa(void);
dnnl_status_t ot__dnnl_engine(dnnl_engine_t *out); // one for the process, made when first needed
ot_status ot__dnnl_error(dnnl_status_t status, const char *what); // OT_OK for dnnl_success
// Scratch memory as the caller's, so that it can be planned; `relu` behind the primitive.
dnnl_status_t ot__dnnl_attr(bool relu, dnnl_primitive_attr_t *out);
ot__dnnl_place ot__dnnl_scratch(ot__dnnl_primitives *p, size_t n_bytes);
void ot__dnnl_scratch_reuse(ot__dnnl_primitives *p); // steps that follow need nothing that is in it
// Append the primitive of `pd`, with its own scratch bound; its other arguments follow.
dnnl_status_t ot__dnnl_add(ot__dnnl_primitives *p, const_dnnl_primitive_desc_t pd);
// The same for n_chunks parts of the problem, `pd` being that of one of them, made with one thread.
// Which chunks there are says the problem alone, so the number of threads changes no bit.
dnnl_status_t ot__dnnl_add_chunks(ot__dnnl_primitives *p, const_dnnl_primitive_desc_t pd,
                                  int64_t n_chunks);
// What n_chunks chunks of a step have left at `from`, added in their order; `to` may be the first.
dnnl_status_t ot__dnnl_add_sum(ot__dnnl_primitives *p, ot__dnnl_place from, int64_t n_chunks,
                               size_t n_bytes, ot__dnnl_place to);
// Scratch for each of n_chunks chunks, or for each thread.
ot__dnnl_place ot__dnnl_scratch_chunks(ot__dnnl_primitives *p, size_t n_bytes, int64_t n_chunks);
ot__dnnl_place ot__dnnl_scratch_threads(ot__dnnl_primitives *p, size_t n_bytes);
dnnl_status_t ot__dnnl_arg(ot__dnnl_primitives *p, int arg, ot__md md, ot__dnnl_place place);
// Append a copy from one description to another, of n_chunks chunks or, where that is 0, at once.
dnnl_status_t ot__dnnl_reorder(ot__dnnl_primitives *p, ot__md from, ot__dnnl_place from_place,
                               ot__md to, ot__dnnl_place to_place, int64_t n_chunks);
// What lies at *place as `have`, brought to `want` in scratch unless they are equal.
dnnl_status_t ot__dnnl_packed(ot__dnnl_primitives *p, ot__md have, ot__md want,
                              ot__dnnl_place *place);
dnnl_data_type_t ot__dnnl_type(ot_dtype dtype); // f32; of 16 bits: bf16, as which f16 is only moved
// Memory of `shape` in a layout that oneDNN knows; `md` is released with ot__md_release().
dnnl_status_t ot__dnnl_md(dnnl_memory_desc_t *md, ot_dtype dtype, const ot_shape *shape,
                          const ot_layout *layout);

// dnnl_weights.c: weights of convolutions, of 3 to 5 axes.
// Memory in a layout that ot__dnnl_weights_layout() may return, or row-major.
dnnl_status_t ot__dnnl_weights_md(dnnl_memory_desc_t *md, ot_dtype dtype, const ot_shape *w,
                                  int64_t groups, const ot_layout *layout);
// Memory in whatever layout a primitive likes.
dnnl_status_t ot__dnnl_weights_any(dnnl_memory_desc_t *md, ot_dtype dtype, const ot_shape *w,
                                   int64_t groups);
// The layout of `wanted`, which is f32; NULL when it is not one of ours or has padding.
const ot_layout *ot__dnnl_weights_layout(ot__md wanted, const ot_shape *w, int64_t groups);

#endif
