// SPDX-License-Identifier: Apache-2.0
// Models of exporters for tests of the sharing pass, and what it made of them.
#ifndef OT_TESTS_SHARING_MODEL_H
#define OT_TESTS_SHARING_MODEL_H

#include "passes/passes.h"
#include "unit/graph/model_text.h"

#define FOLDED_FROM "pkg.onnxscript.optimizer.folded_from"
#define SIGNATURE "pkg.torch.export.ExportedProgram.graph_signature"
#define SCOPES "pkg.torch.onnx.name_scopes"
#define CALL "pkg.torch.onnx.fx_node"
#define HEAD "<ir_version: 8, opset_import: ['': 17]> "
#define HEAD_21 "<ir_version: 10, opset_import: ['': 21]> "

static const ot__kept_names nothing_kept;

static inline void run_keeping(ot_model *model, const ot__kept_names *kept, ot__sharings *found)
{
    if (ot__pass_sharing(model, kept, found) != OT_OK)
        fail_msg("%s", ot_error_message());
}

static inline ot__sharings run(ot_model *model)
{
    ot__sharings found;

    run_keeping(model, &nothing_kept, &found);
    return found;
}

static inline const char *input(const ot_model *model, const char *y, int i)
{
    return maker(model, y)->inputs[i]->name;
}

static inline void assert_input(const ot_model *model, const char *y, int i, const char *name)
{
    assert_string_equal(input(model, y, i), name);
    assert_true(maker(model, y)->inputs[i]->is_initializer);
}

static inline const ot__sharing *about(const ot__sharings *found, ot__sharing_kind kind,
                                       const char *name)
{
    for (int i = 0; i < found->n; i++)
        if (found->items[i].kind == kind && strcmp(found->items[i].name, name) == 0)
            return &found->items[i];
    return NULL;
}

enum { MAX_WORDS = 16 };
static const char *words[MAX_WORDS][4];
static int n_words;

static inline void say(ot_model *model, const char *y, const char *scopes, const char *call)
{
    const char **pairs = words[n_words++];

    assert_true(n_words < MAX_WORDS);
    pairs[0] = SCOPES;
    pairs[1] = scopes;
    pairs[2] = CALL;
    pairs[3] = call;
    maker(model, y)->metadata = (ot__metadata){pairs, call ? 2 : 1};
}

static inline void mark(ot__metadata *of, const char *key, const char *text)
{
    const char **pairs = words[n_words++];

    assert_true(n_words < MAX_WORDS);
    pairs[0] = key;
    pairs[1] = text;
    *of = (ot__metadata){pairs, 1};
}

static inline void assert_kind(const ot_model *model, const char *y, const char *kind)
{
    const char *found = ot__metadata_get(&maker(model, y)->inputs[1]->metadata,
                                         "pkg.torch.export.graph_signature.InputSpec.kind");

    if (kind == NULL)
        assert_null(found);
    else
        assert_string_equal(found, kind);
}

#endif
