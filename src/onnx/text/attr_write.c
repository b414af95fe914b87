// SPDX-License-Identifier: Apache-2.0
// Attributes in ONNX's textual syntax.
#include <string.h>

#include "onnx/text/print.h"

// The fields of a kind that is kept as bytes.
static void print_kept(ot__printer *printer, const ot_attr *attr)
{
    ot__walk walk = ot__walk_over(attr->bytes);
    bool is_list = attr->kind == OT_ATTR_TYPE_PROTOS;
    const char *separator = "";
    ot__field field;

    if (attr->kind == OT_ATTR_SPARSE_TENSOR || attr->kind == OT_ATTR_SPARSE_TENSORS) {
        if (printer->max_elements == 0 && printer->status == OT_OK)
            printer->status =
                ot__error(OT_ERR_UNSUPPORTED,
                          "attribute '%s': sparse tensors cannot be written as text", attr->name);
        ot__buf_text(printer->out, "...");
        return;
    }
    ot__buf_text(printer->out, is_list ? "[" : "");
    while (ot__wire_next(&walk, &field)) {
        ot__buf_text(printer->out, separator);
        ot__print_type(printer->out, (ot__bytes){field.data, field.size});
        separator = ", ";
    }
    ot__buf_text(printer->out, is_list ? "]" : "");
}

static void print_item(ot__printer *printer, const ot_attr *attr, const ot__attr_items *items,
                       int i)
{
    const ot__string *string = (const ot__string *)items->data + i;

    switch (items->element) {
    case OT_ATTR_FLOAT:
        ot__buf_float(printer->out, (double)((const float *)items->data)[i], true);
        break;
    case OT_ATTR_INT:
        ot__buf_printf(printer->out, "%" PRId64, ((const int64_t *)items->data)[i]);
        break;
    case OT_ATTR_STRING:
        ot__print_quoted(printer->out, string->data, string->size);
        break;
    case OT_ATTR_TENSOR:
        ot__print_tensor(printer, ((ot_tensor *const *)items->data)[i],
                         attr->notes ? attr->notes[i].name : "", false);
        break;
    default:
        ot__print_graph(printer, ((ot_graph *const *)items->data)[i]);
        break;
    }
}

static void print_attr_value(ot__printer *printer, const ot_attr *attr)
{
    const ot__attr_items items = ot__attr_items_of(attr);
    int shown = items.n;

    if (ot__attr_rows[attr->kind].size == 0 && attr->kind != OT_ATTR_UNDEFINED) {
        print_kept(printer, attr);
        return;
    }
    if (items.is_list && printer->max_elements > 0)
        shown = OT_MIN(items.n, printer->max_elements);
    ot__buf_text(printer->out, items.is_list ? "[" : "");
    for (int i = 0; i < shown; i++) {
        ot__buf_text(printer->out, i ? ", " : "");
        print_item(printer, attr, &items, i);
    }
    if (items.is_list)
        ot__buf_text(printer->out, shown < items.n ? ", ...]" : "]");
}

void ot__print_attr(ot__printer *printer, const ot_attr *attr)
{
    ot__print_id(printer->out, attr->name);
    if (attr->kind != OT_ATTR_UNDEFINED)
        ot__buf_printf(printer->out, ": %s", ot__attr_rows[attr->kind].word);
    ot__buf_text(printer->out, " = ");
    if (attr->ref_name) {
        ot__buf_text(printer->out, "@");
        ot__print_id(printer->out, attr->ref_name);
        return;
    }
    printer->indent += 3;
    print_attr_value(printer, attr);
    printer->indent -= 3;
}
