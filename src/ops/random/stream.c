// SPDX-License-Identifier: Apache-2.0
#include "ops/random/stream.h"

#include <string.h>

// Seeds are integers or, of ONNX's random operators, floats, which count by their bits.
static uint64_t seed_of(const ot_node *node)
{
    const ot_attr *attr = ot__node_attr(node, "seed");
    uint32_t bits;

    if (attr->kind != OT_ATTR_FLOAT)
        return (uint64_t)attr->i;
    memcpy(&bits, &attr->f, sizeof(bits));
    return bits;
}

void *ot__prep_stream(ot_prep *p, size_t size)
{
    const ot_node *node = ot_prep_node(p);
    const char *name = node->outputs[0] ? node->outputs[0]->name : "";
    char *state = ot_prep_state(p, size + strlen(name) + 1);
    ot__stream *stream = (ot__stream *)(void *)state;

    if (!state)
        return NULL;
    stream->has_seed = ot_attr_given(node, "seed");
    stream->seed = stream->has_seed ? seed_of(node) : 0;
    stream->name = strcpy(state + size, name);
    return state;
}

ot__rng_key ot__run_key(const ot_run *r)
{
    const ot__stream *stream = r->state;

    return ot__rng_key_make(stream->has_seed ? stream->seed : r->step->seed, r->step->counter,
                            r->step->rank, stream->name);
}
