// SPDX-License-Identifier: Apache-2.0
// A model as an .ort file, front to back: what ONNX Runtime's own writer stores, so that builds
// which derive nothing themselves read it too.
#include <string.h>

#include "onnx/ort/ort.h"

static size_t write_opset(ot__ort_writer *w, const ot__opset *opset)
{
    const char *domain = strcmp(opset->domain, "ai.onnx") == 0 ? "" : opset->domain;
    ot__fb_field fields[2] = {{.n_bytes = 4}, {.n_bytes = 8, .value = (uint64_t)opset->version}};
    const size_t position = ot__fb_write_table(w->buf, fields, 2);

    ot__fb_patch(w->buf, fields[0].position, ot__fb_write_string(w->buf, domain));
    return position;
}

static size_t write_opsets(ot__ort_writer *w)
{
    const ot_model *model = w->model;
    const size_t list = ot__fb_write_offsets(w->buf, (size_t)model->n_opsets);

    for (int i = 0; i < model->n_opsets; i++)
        ot__fb_patch(w->buf, list + 4 + 4 * (size_t)i, write_opset(w, &model->opsets[i]));
    return list;
}

static size_t write_metadata(ot__ort_writer *w)
{
    const ot_model *model = w->model;
    const size_t list = ot__fb_write_offsets(w->buf, (size_t)model->n_metadata);

    for (int i = 0; i < model->n_metadata; i++) {
        ot__fb_field fields[2] = {{.n_bytes = 4}, {.n_bytes = 4}};

        ot__fb_patch(w->buf, list + 4 + 4 * (size_t)i, ot__fb_write_table(w->buf, fields, 2));
        for (int k = 0; k < 2; k++)
            ot__fb_patch(w->buf, fields[k].position,
                         ot__fb_write_string(w->buf, model->metadata[2 * i + k]));
    }
    return list;
}

static int offset_if(bool is_there)
{
    return is_there ? 4 : 0;
}

static size_t write_model(ot__ort_writer *w)
{
    const ot_model *m = w->model;
    ot__fb_field fields[ORT_MODEL_SLOTS] = {
        [ORT_MODEL_IR_VERSION] = {.n_bytes = 8, .value = (uint64_t)m->ir_version},
        [ORT_MODEL_OPSETS] = {.n_bytes = 4},
        [ORT_MODEL_PRODUCER_NAME] = {.n_bytes = offset_if(m->producer_name[0])},
        [ORT_MODEL_PRODUCER_VERSION] = {.n_bytes = offset_if(m->producer_version[0])},
        [ORT_MODEL_DOMAIN] = {.n_bytes = 4},
        [ORT_MODEL_VERSION] = {.n_bytes = 8,
                               .value =
                                   (uint64_t)(m->model_version ? m->model_version : INT64_MAX)},
        [ORT_MODEL_DOC] = {.n_bytes = offset_if(m->doc[0])},
        [ORT_MODEL_GRAPH] = {.n_bytes = 4},
        [ORT_MODEL_GRAPH_DOC] = {.n_bytes = offset_if(m->graph->doc[0])},
        [ORT_MODEL_METADATA] = {.n_bytes = offset_if(m->n_metadata > 0)},
    };
    const size_t position = ot__fb_write_table(w->buf, fields, ORT_MODEL_SLOTS);

    ot__fb_patch(w->buf, fields[ORT_MODEL_OPSETS].position, write_opsets(w));
    ot__ort_write_text(w, &fields[ORT_MODEL_PRODUCER_NAME], m->producer_name);
    ot__ort_write_text(w, &fields[ORT_MODEL_PRODUCER_VERSION], m->producer_version);
    ot__fb_patch(w->buf, fields[ORT_MODEL_DOMAIN].position, ot__fb_write_string(w->buf, m->domain));
    ot__ort_write_text(w, &fields[ORT_MODEL_DOC], m->doc);
    ot__ort_write_text(w, &fields[ORT_MODEL_GRAPH_DOC], m->graph->doc);
    if (m->n_metadata > 0)
        ot__fb_patch(w->buf, fields[ORT_MODEL_METADATA].position, write_metadata(w));
    ot__fb_patch(w->buf, fields[ORT_MODEL_GRAPH].position, ot__ort_write_graph(w, m->graph));
    return position;
}

static void write_session(ot__ort_writer *w)
{
    ot__fb_field fields[] = {
        [ORT_SESSION_VERSION] = {.n_bytes = 4},
        [ORT_SESSION_MODEL] = {.n_bytes = 4},
        [ORT_SESSION_RESOLVER] = {.n_bytes = 4},
    };
    char version[8];

    snprintf(version, sizeof version, "%d", OT_ORT_VERSION);
    ot__buf_append(w->buf, "\0\0\0\0" OT_ORT_IDENTIFIER, 8);
    ot__fb_patch(w->buf, 0, ot__fb_write_table(w->buf, fields, (int)OT_COUNT(fields)));
    ot__fb_patch(w->buf, fields[ORT_SESSION_VERSION].position,
                 ot__fb_write_string(w->buf, version));
    ot__fb_patch(w->buf, fields[ORT_SESSION_MODEL].position, write_model(w));
    if (w->status == OT_OK)
        ot__fb_patch(w->buf, fields[ORT_SESSION_RESOLVER].position, ot__ort_write_resolver(w));
    ot__fb_align(w->buf, 8, 0);
}

ot_status ot__ort_write(const ot_model *model, ot__buf *out)
{
    ot__ort_writer w = {.buf = out};
    ot_status st = ot__model_clone(model, &w.model);

    if (st == OT_OK)
        st = ot__ort_prepare(w.model);
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
