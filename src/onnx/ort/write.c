// SPDX-License-Identifier: Apache-2.0
// A model as an .ort file, front to back: what ONNX Runtime's own writer stores, so that builds
// which derive nothing themselves read it too.
#include <string.h>

#include "onnx/ort/ort.h"

size_t ot__ort_write_list(ot__ort_writer *w, size_t n, ot__ort_element element, const void *context)
{
    const size_t list = ot__fb_write_offsets(w->buf, n);

    for (size_t i = 0; i < n && w->status == OT_OK; i++)
        ot__fb_patch(w->buf, list + 4 + 4 * i, element(w, context, i));
    return list;
}

void ot__ort_put_list(ot__ort_writer *w, const ot__fb_field *field, int n, ot__ort_element element,
                      const void *context)
{
    ot__fb_patch(w->buf, field->position, ot__ort_write_list(w, (size_t)n, element, context));
}

static size_t write_opset(ot__ort_writer *w, const void *context, size_t i)
{
    const ot__opset *opset = (const ot__opset *)context + i;
    ot__fb_field fields[2] = {
        {.text = strcmp(opset->domain, "ai.onnx") == 0 ? "" : opset->domain},
        {.n_bytes = 8, .value = (uint64_t)opset->version},
    };

    return ot__fb_write_table(w->buf, fields, 2);
}

static size_t ort_write_metadata(ot__ort_writer *w, const void *context, size_t i)
{
    const char *const *pair = (const char *const *)context + 2 * i;
    ot__fb_field fields[2] = {{.text = pair[0]}, {.text = pair[1]}};

    return ot__fb_write_table(w->buf, fields, 2);
}

static size_t ort_write_model(ot__ort_writer *w)
{
    const ot_model *m = w->model;
    const int64_t version = m->model_version ? m->model_version : INT64_MAX;
    ot__fb_field fields[ORT_MODEL_SLOTS] = {
        [ORT_MODEL_IR_VERSION] = {.n_bytes = 8, .value = (uint64_t)m->ir_version},
        [ORT_MODEL_OPSETS] = {.n_bytes = 4},
        [ORT_MODEL_PRODUCER_NAME] = {.text = ot__fb_given(m->producer_name)},
        [ORT_MODEL_PRODUCER_VERSION] = {.text = ot__fb_given(m->producer_version)},
        [ORT_MODEL_DOMAIN] = {.text = m->domain},
        [ORT_MODEL_VERSION] = {.n_bytes = 8, .value = (uint64_t)version},
        [ORT_MODEL_DOC] = {.text = ot__fb_given(m->doc)},
        [ORT_MODEL_GRAPH] = {.n_bytes = 4},
        [ORT_MODEL_GRAPH_DOC] = {.text = ot__fb_given(m->graph->doc)},
        [ORT_MODEL_METADATA] = {.n_bytes = m->n_metadata > 0 ? 4 : 0},
    };
    const size_t position = ot__fb_begin_table(w->buf, fields, ORT_MODEL_SLOTS);

    ot__ort_put_list(w, &fields[ORT_MODEL_OPSETS], m->n_opsets, write_opset, m->opsets);
    ot__fb_write_strings(w->buf, fields, ORT_MODEL_SLOTS);
    if (m->n_metadata > 0)
        ot__ort_put_list(w, &fields[ORT_MODEL_METADATA], m->n_metadata, ort_write_metadata,
                         m->metadata);
    ot__fb_patch(w->buf, fields[ORT_MODEL_GRAPH].position, ot__ort_write_graph(w, m->graph));
    return position;
}

static void write_session(ot__ort_writer *w)
{
    char version[8];
    ot__fb_field fields[] = {
        [ORT_SESSION_VERSION] = {.text = version},
        [ORT_SESSION_MODEL] = {.n_bytes = 4},
        [ORT_SESSION_RESOLVER] = {.n_bytes = 4},
    };

    snprintf(version, sizeof version, "%d", OT_ORT_VERSION);
    ot__buf_append(w->buf, "\0\0\0\0" OT_ORT_IDENTIFIER, 8);
    ot__fb_patch(w->buf, 0, ot__fb_write_table(w->buf, fields, (int)OT_COUNT(fields)));
    ot__fb_patch(w->buf, fields[ORT_SESSION_MODEL].position, ort_write_model(w));
    if (w->status == OT_OK)
        ot__fb_patch(w->buf, fields[ORT_SESSION_RESOLVER].position, ot__ort_write_resolver(w));
    ot__fb_align(w->buf, 8, 0);
}

ot_status ot__ort_write(const ot_model *model, ot__buf *out)
{
    ot__ort_writer w = {.buf = out};
    ot_status st = ot__model_clone(model, &w.model);

    OT_THEN(st, ot__ort_prepare(w.model));
    if (st == OT_OK) {
        write_session(&w);
        st = w.status != OT_OK ? w.status : ot__buf_status(out);
    }
    if (st == OT_OK && out->length > INT32_MAX)
        st = ot__error(OT_ERR_UNSUPPORTED,
                       "the model has %zu bytes, more than the %d of the .ort format", out->length,
                       INT32_MAX);
    ot_model_destroy(w.model);
    return st;
}
