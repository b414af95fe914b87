// SPDX-License-Identifier: Apache-2.0
// Nodes and attributes, written.
#include <string.h>

#include "onnx/protobuf/write.h"

static void write_lists(ot__wire *wire, const ot_attr *attr)
{
    for (int i = 0; attr->kind == OT_ATTR_FLOATS && i < attr->n; i++)
        ot__wire_put_float(wire, 7, attr->floats[i]);
    for (int i = 0; attr->kind == OT_ATTR_INTS && i < attr->n; i++)
        ot__wire_put_int(wire, 8, attr->ints[i]);
    for (int i = 0; attr->kind == OT_ATTR_STRINGS && i < attr->n; i++)
        ot__wire_put_bytes(wire, 9, attr->strings[i].data, attr->strings[i].size);
    for (int i = 0; attr->kind == OT_ATTR_TENSORS && i < attr->n; i++) {
        const ot__noted_tensor noted = {attr->tensors[i], attr->notes ? &attr->notes[i] : NULL};

        ot__wire_put_message(wire, 10, ot__write_tensor, &noted);
    }
    for (int i = 0; attr->kind == OT_ATTR_GRAPHS && i < attr->n; i++)
        ot__wire_put_message(wire, 11, ot__write_graph, attr->graphs[i]);
}

static void write_value(ot__wire *wire, const ot_attr *attr)
{
    const ot__noted_tensor noted = {attr->t, attr->notes};

    switch (attr->kind) {
    case OT_ATTR_FLOAT:
        ot__wire_put_float(wire, 2, attr->f);
        break;
    case OT_ATTR_INT:
        ot__wire_put_int(wire, 3, attr->i);
        break;
    case OT_ATTR_STRING:
        ot__wire_put_bytes(wire, 4, attr->s.data, attr->s.size);
        break;
    case OT_ATTR_TENSOR:
        ot__wire_put_message(wire, 5, ot__write_tensor, &noted);
        break;
    case OT_ATTR_GRAPH:
        ot__wire_put_message(wire, 6, ot__write_graph, attr->g);
        break;
    default:
        write_lists(wire, attr);
        break;
    }
}

void ot__write_attr(ot__wire *wire, const void *object)
{
    const ot_attr *attr = object;

    ot__wire_put_name(wire, 1, attr->name);
    if (!attr->ref_name)
        write_value(wire, attr);
    ot__wire_put_text(wire, 13, attr->doc);
    if (attr->kind != OT_ATTR_UNDEFINED)
        ot__wire_put_int(wire, 20, attr->kind);
    ot__wire_put_text(wire, 21, attr->ref_name);
    ot__wire_raw(wire, attr->bytes.data, attr->bytes.size);
    ot__wire_raw(wire, attr->extra.data, attr->extra.size);
}

void ot__write_node(ot__wire *wire, const void *object)
{
    const ot_node *node = object;

    for (int i = 0; i < node->n_inputs; i++)
        ot__wire_put_name(wire, 1, node->inputs[i] ? node->inputs[i]->name : "");
    for (int i = 0; i < node->n_outputs; i++)
        ot__wire_put_name(wire, 2, node->outputs[i] ? node->outputs[i]->name : "");
    ot__wire_put_text(wire, 3, node->name);
    ot__wire_put_name(wire, 4, node->op_type);
    for (int i = 0; i < node->n_attrs; i++)
        ot__wire_put_message(wire, 5, ot__write_attr, node->attrs[i]);
    ot__wire_put_text(wire, 6, node->doc);
    ot__wire_put_text(wire, 7, node->domain);
    ot__wire_put_text(wire, 8, node->overload);
    ot__wire_raw(wire, node->extra.data, node->extra.size);
}
