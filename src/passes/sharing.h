// SPDX-License-Identifier: Apache-2.0
// Shared by the passes that separate and join parameters.
#ifndef OT_PASSES_SHARING_H
#define OT_PASSES_SHARING_H

#include "passes/owner.h"
#include "passes/passes.h"

// The newer exporter makes one of equal tensors that have at most so many elements.
enum { OT_MERGED_MAX = 1024 };

typedef struct ot__separation {
    ot_graph *graph;
    const ot__kept_names *kept;
    ot__sharings *out;
    ot__owners owners;
    ot__uses uses; // of the graph as the step found it
    // Equal parameters stand side by side, so that nothing was merged for its elements: in the
    // file, and among those small enough for the newer exporter.
    bool has_equal, has_small_equal;
    // An optimiser has gone over the file, and taken the names of copies with them:
    // "/l/Mul_output_0" is an initializer.
    bool is_optimised;
    ot_value **forgotten; // go when nobody reads them any more
    int n_forgotten, forgotten_capacity;
} ot__separation;

// sharing.c
bool ot__sharing_stays(const ot__separation *s, const char *name); // by the user's patterns
ot_status ot__sharing_say(ot__separation *s, ot__sharing_kind kind, const char *name,
                          const char *const *parts, int n_parts);
// What an input is for; through nodes that only rearrange elements, for what comes behind. *leaf:
// what PyTorch calls a parameter that is read so; "" when nothing says.
ot__port_role ot__sharing_role(const ot__separation *s, const ot__use *use, const char **leaf);
// A weight of the module is another input: then the use reads data that the module is given.
bool ot__sharing_is_beside_weight(const ot__use *use);
// The weight of the product to which the use adds a bias; NULL: none.
const ot_value *ot__sharing_weight_beside(const ot__use *use);
bool ot__is_parameter(const ot_value *value);        // an initializer that could train
ot_status ot__sharing_find_equal(ot__separation *s); // has_equal and has_small_equal
// Sums over the bytes of elements, whatever their order.
uint64_t ot__elements_hash(const ot_tensor *tensor);

// A tensor, or the copy that an Identity makes of one, which its readers may have left.
ot_status ot__sharing_forget(ot__separation *s, ot_value *value);
ot_status ot__sharing_drop_forgotten(ot__separation *s);

// sharing_restore.c: biases of zeros that the exporter dropped.
ot_status ot__sharing_restore(ot__separation *s);
// sharing_join.c: a copy of a parameter that the exporter transposed is that parameter again.
ot_status ot__sharing_join(ot__separation *s);
// sharing_separate.c, sharing_readers.c
ot_status ot__sharing_separate(ot__separation *s);
// sharing_statistics.c: running statistics belong to one node each.
ot_status ot__sharing_statistics(ot__separation *s);

#endif
