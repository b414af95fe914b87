// SPDX-License-Identifier: Apache-2.0
// Nodes and attributes, written.
#include <string.h>

#include "onnx/protobuf/write.h"

static void pb_write_attr_value(ot__wire *wire, const ot_attr *attr)
{
    const uint32_t field = ot__attr_rows[attr->kind].field;
    const ot__attr_items items = ot__attr_items_of(attr);

    for (int i = 0; i < items.n; i++) {
        const ot__string *string = (const ot__string *)items.data + i;

        if (items.element == OT_ATTR_FLOAT)
            ot__wire_put_float(wire, field, ((const float *)items.data)[i]);
        else if (items.element == OT_ATTR_INT)
            ot__wire_put_int(wire, field, ((const int64_t *)items.data)[i]);
        else if (items.element == OT_ATTR_STRING)
            ot__wire_put_bytes(wire, field, string->data, string->size);
        else if (items.element == OT_ATTR_GRAPH)
            ot__wire_put_message(wire, field, ot__write_graph, ((ot_graph *const *)items.data)[i]);
        else
            ot__wire_put_message(wire, field, ot__write_tensor,
                                 &(ot__noted_tensor){((ot_tensor *const *)items.data)[i],
                                                     attr->notes ? &attr->notes[i] : NULL});
    }
}

void ot__write_attr(ot__wire *wire, const void *object)
{
    const ot_attr *attr = object;

    ot__wire_put_name(wire, 1, attr->name);
    if (!attr->ref_name)
        pb_write_attr_value(wire, attr);
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
