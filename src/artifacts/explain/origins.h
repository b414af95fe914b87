// SPDX-License-Identifier: Apache-2.0
// What initializers were in the framework, as far as the file says.
#ifndef OT_ARTIFACTS_ORIGINS_H
#define OT_ARTIFACTS_ORIGINS_H

#include "graph/graph.h"

typedef enum ot__origin {
    OT_ORIGIN_UNKNOWN,
    OT_ORIGIN_PARAMETER,
    OT_ORIGIN_BUFFER, // a buffer, or a tensor that the module's code holds
    OT_ORIGIN_CODE,   // computed by the exporter from no tensor of the module
} ot__origin;

typedef struct ot__origins {
    ot__map names; // of the framework's tensors: ot__origin, as a pointer
    ot__map paths; // of modules, by the text that says them
    ot__arena *arena;
} ot__origins;
// Does the file list what the exported program is given?
bool ot__origins_are_listed(const ot_graph *graph);
ot_status ot__origins_init(ot__origins *origins, const ot_graph *graph);
void ot__origins_deinit(ot__origins *origins); // {0} is fine
// Of an initializer, which the exporter may have computed from others: *name is that of the
// framework.
ot_status ot__origins_find(const ot__origins *origins, const ot_value *value, ot__origin *origin,
                           const char **name);

// Where a reader of the framework's tensor `name` stands. Nothing is known: in its own module.
typedef enum ot__nearness {
    OT_PLACE_OWN,    // in the tensor's own module
    OT_PLACE_INSIDE, // in a module within that
    OT_PLACE_ELSEWHERE,
} ot__nearness;
ot_status ot__origins_place(ot__origins *origins, const ot_node *reader, const char *name,
                            ot__nearness *out);

#endif
