// SPDX-License-Identifier: Apache-2.0
// A model from ONNX's textual syntax:
//   <ir_version: 10, opset_import: ["" : 21]> graph (...) => (...) {...} functions
#include <string.h>

#include "onnx/text/parse.h"

static const int64_t default_ir_version = 10, default_opset = 21;

static ot_status parse_metadata(ot__parser *p)
{
    ot_model *model = p->model;
    const char **pairs = NULL;
    int n = 0, capacity = 0;

    OT_TRY(ot__parse_expect(p, '['));
    if (ot__parse_accept(p, ']'))
        return OT_OK;
    do {
        const char *key, *value;

        OT_TRY(ot__parse_text(p, &key));
        OT_TRY(ot__parse_expect(p, ':'));
        OT_TRY(ot__parse_text(p, &value));
        OT_TRY(ot__made(ot__arena_grow(model->arena, &pairs, &capacity, n, 2 * sizeof *pairs)));
        pairs[2 * n] = key;
        pairs[2 * n + 1] = value;
        n++;
    } while (ot__parse_accept(p, ','));
    model->metadata = pairs;
    model->n_metadata = n;
    return ot__parse_expect(p, ']');
}

static ot_status parse_entry(ot__parser *p, ot__bytes key)
{
    ot_model *model = p->model;

    if (ot__word_is(key, "ir_version"))
        return ot__parse_integer(p, &model->ir_version);
    if (ot__word_is(key, "opset_import")) {
        OT_TRY(ot__parse_opsets(p, &model->opsets, &model->n_opsets));
        model->opsets_capacity = model->n_opsets;
        return OT_OK;
    }
    if (ot__word_is(key, "producer_name"))
        return ot__parse_text(p, &model->producer_name);
    if (ot__word_is(key, "producer_version"))
        return ot__parse_text(p, &model->producer_version);
    if (ot__word_is(key, "domain"))
        return ot__parse_text(p, &model->domain);
    if (ot__word_is(key, "model_version"))
        return ot__parse_integer(p, &model->model_version);
    if (ot__word_is(key, "doc_string"))
        return ot__parse_text(p, &model->doc);
    if (ot__word_is(key, "metadata_props"))
        return parse_metadata(p);
    return ot__parse_error(p, "a model has no '%.*s'", (int)OT_MIN(key.size, (size_t)40),
                           (const char *)key.data);
}

static ot_status text_model_header(ot__parser *p)
{
    if (!ot__parse_accept(p, '<'))
        return ot__model_set_opset(p->model, "", default_opset);
    do {
        ot__bytes key = ot__parse_peek_word(p);

        p->at += key.size;
        OT_TRY(ot__parse_expect(p, ':'));
        OT_TRY(parse_entry(p, key));
    } while (ot__parse_accept(p, ','));
    return ot__parse_expect(p, '>');
}

static ot_status parse_model(ot__parser *p)
{
    ot_model *model = p->model;
    int capacity = 0;

    model->ir_version = default_ir_version;
    OT_TRY(text_model_header(p));
    if (model->ir_version <= 0)
        return ot__parse_error(p, "ir_version is %" PRId64, model->ir_version);
    OT_TRY(ot__parse_graph(p, model->graph));
    while (!ot__parse_at_end(p)) {
        OT_TRY(ot__made(ot__arena_grow(model->arena, &model->functions, &capacity,
                                       model->n_functions, sizeof *model->functions)));
        OT_TRY(ot__parse_function(p, &model->functions[model->n_functions]));
        model->n_functions++;
    }
    return OT_OK;
}

ot_status ot__text_read_from(const char *folder, const char *text, size_t length,
                             const ot_model_options *options, const char *where, ot_model **out)
{
    const ot__limits limits = ot__limits_of(options, length);
    ot__parser p = {.begin = text, .at = text, .end = text + length};
    ot_status st = ot__reader_init(&p.reader, folder, limits);

    p.model = p.reader.model;
    OT_THEN(st, parse_model(&p));
    return ot__reader_finish(&p.reader, st, where, out);
}

ot_status ot__text_read(const char *text, size_t length, const ot_model_options *options,
                        const char *where, ot_model **out)
{
    return ot__text_read_from(NULL, text, length, options, where, out);
}
