// SPDX-License-Identifier: Apache-2.0
// The log: {"event":"step","epoch":1,"step":7,"lr":0.001,"training":{"rows":70,"loss":0.3}}
#include "train/journal.h"

static void begin_line(ot__buf *out, const char *event)
{
    ot__json_open(out, NULL, '{');
    ot__json_string(out, "event", event);
}

static void end_line(ot__buf *out)
{
    ot__json_close(out, '}');
    ot__buf_text(out, "\n");
}

static void add_metrics(ot__buf *out, const char *name, ot_task task, const ot_metrics *metrics)
{
    ot__json_open(out, name, '{');
    ot__json_int(out, "rows", metrics->rows);
    ot__json_float(out, "loss", metrics->loss);
    if (task == OT_TASK_CLASSIFICATION)
        ot__json_float(out, "accuracy", metrics->accuracy);
    if (task == OT_TASK_REGRESSION) {
        ot__json_float(out, "mae", metrics->mae);
        ot__json_float(out, "r2", metrics->r2);
    }
    ot__json_close(out, '}');
}

void ot__journal_json_options(const char *json, ot__buf *out)
{
    begin_line(out, "options");
    ot__json_raw(out, "options", json);
    end_line(out);
}

void ot__journal_json_note(const char *text, ot__buf *out)
{
    begin_line(out, "note");
    ot__json_string(out, "text", text);
    end_line(out);
}

void ot__journal_json(const ot__journal *j, const ot_event *e, ot__buf *out)
{
    static const char *const names[] = {"step", "epoch", "saved", "early_stop"};

    begin_line(out, names[e->kind]);
    ot__json_int(out, "epoch", e->epoch + 1);
    ot__json_int(out, "step", e->step);
    ot__json_float(out, "lr", e->learning_rate);
    if (e->kind == OT_EVENT_SAVED)
        ot__json_string(out, "path", e->path);
    if (e->n_skipped > 0)
        ot__json_int(out, "skipped", e->n_skipped);
    if (e->loss_scale > 0)
        ot__json_float(out, "loss_scale", e->loss_scale);
    if (e->kind != OT_EVENT_SAVED)
        add_metrics(out, "training", j->task, &e->training);
    if (e->kind == OT_EVENT_EPOCH && e->validation.rows > 0)
        add_metrics(out, "validation", j->task, &e->validation);
    end_line(out);
}
