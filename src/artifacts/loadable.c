// SPDX-License-Identifier: Apache-2.0
// What ONNX Runtime cannot load says so.
#include <string.h>

#include "artifacts/artifacts.h"

static bool is_our_own(const ot_node *node)
{
    return strcmp(node->domain, "ai.onnxtrain") == 0;
}

ot_status ot__note_loadable(ot_model *model)
{
    ot__buf names = {0};
    ot_status st;

    ot__graph_list_operators(model->graph, is_our_own, &names);
    st = ot__buf_status(&names);
    if (st == OT_OK && names.length > 0) {
        const char *text =
            ot__arena_printf(model->arena, "not loadable: it has no operators %s", names.data);

        st = text ? ot_model_set_metadata(model, OT_METADATA_LOADABLE, text) : OT_ERR_NO_MEMORY;
    }
    ot__buf_deinit(&names);
    return st;
}
