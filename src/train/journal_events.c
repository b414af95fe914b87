// SPDX-License-Identifier: Apache-2.0
// TensorBoard's event files: records of TFRecord (length, its CRC, bytes, their CRC), each an Event
// of tensorflow/core/util/event.proto, of which a few fields are written.
#include <time.h>
#include <unistd.h>

#include "train/journal.h"

enum { HOST_MAX = 64, MAX_SCALARS = 8 };

// ---- records ----

// A CRC of bytes that hold CRCs is to be another one.
static uint32_t masked_crc(const void *bytes, size_t n_bytes)
{
    const uint32_t crc = ot__crc32c(0, bytes, n_bytes);

    return (crc >> 15 | crc << 17) + 0xa282ead8;
}

static void put_record(ot__buf *out, const ot__buf *bytes)
{
    const uint64_t length = bytes->length;
    const uint32_t length_crc = masked_crc(&length, sizeof length),
                   crc = masked_crc(bytes->data, bytes->length);

    ot__buf_append(out, &length, sizeof length);
    ot__buf_append(out, &length_crc, sizeof length_crc);
    ot__buf_append(out, bytes->data, bytes->length);
    ot__buf_append(out, &crc, sizeof crc);
}

// ---- messages; the numbers are those of event.proto and summary.proto ----

enum { SESSION_START = 1 };

typedef struct scalar {
    const char *tag;
    double value;
} scalar;
typedef struct scalars {
    scalar items[MAX_SCALARS];
    int count;
} scalars;
typedef struct scalar_event { // one of: version, scalars, the start of a session
    int64_t step;
    const char *version;
    const scalars *summary;
} scalar_event;

static void write_scalar(ot__wire *wire, const void *object)
{
    const scalar *s = object;

    ot__wire_put_text(wire, 1, s->tag);
    ot__wire_put_float(wire, 2, (float)s->value);
}

static void write_summary(ot__wire *wire, const void *object)
{
    const scalars *all = object;

    for (int i = 0; i < all->count; i++)
        ot__wire_put_message(wire, 1, write_scalar, &all->items[i]);
}

static void write_session_start(ot__wire *wire, const void *object)
{
    (void)object;
    ot__wire_put_int(wire, 1, SESSION_START);
}

static double wall_time(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void put_event(ot__buf *out, const scalar_event *event)
{
    ot__buf bytes = {0};
    ot__wire wire = ot__wire_to(&bytes);

    ot__wire_put_double(&wire, 1, wall_time());
    ot__wire_put_int(&wire, 2, event->step);
    if (event->version)
        ot__wire_put_text(&wire, 3, event->version);
    else if (event->summary)
        ot__wire_put_message(&wire, 5, write_summary, event->summary);
    else
        ot__wire_put_message(&wire, 7, write_session_start, event);
    put_record(out, &bytes);
    out->failed = out->failed || bytes.failed;
    ot__buf_deinit(&bytes);
}

// ---- what is written ----

char *ot__journal_events_path(const char *folder)
{
    char host[HOST_MAX] = "", name[HOST_MAX + 96];
    const long long seconds = (long long)time(NULL);
    char *path = NULL;

    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0')
        snprintf(host, sizeof host, "localhost");
    for (int i = 0; i == 0 || (path && ot__path_exists(path)); i++) {
        ot__free(path);
        snprintf(name, sizeof name, "events.out.tfevents.%lld.%s.%ld.%d", seconds, host,
                 (long)getpid(), i);
        path = ot__path_join(folder, name);
    }
    return path;
}

void ot__journal_events_begin(int64_t step, ot__buf *out)
{
    put_event(out, &(scalar_event){.version = "brain.Event:2"});
    if (step > 0)
        put_event(out, &(scalar_event){.step = step + 1});
}

static void add_scalar(scalars *all, const char *tag, double value)
{
    all->items[all->count++] = (scalar){tag, value};
}

// The loss of the step alone: events have the mean of the epoch so far.
static void add_step(scalars *all, const ot__journal *j, const ot_event *e)
{
    const bool is_begun = e->epoch == j->epoch && e->training.rows >= j->rows;
    const int64_t rows = e->training.rows - (is_begun ? j->rows : 0);
    const double sum = e->training.loss * (double)e->training.rows - (is_begun ? j->loss : 0);

    if (rows > 0) // none of a step that was skipped
        add_scalar(all, "train/loss", sum / (double)rows);
    add_scalar(all, "train/lr", e->learning_rate);
    if (e->loss_scale > 0)
        add_scalar(all, "train/loss_scale", e->loss_scale);
    if (e->n_skipped > 0)
        add_scalar(all, "train/skipped", (double)e->n_skipped);
}

static void add_epoch(scalars *all, ot_task task, const ot_event *e)
{
    const ot_metrics *training = &e->training, *validation = &e->validation;
    const bool is_validated = validation->rows > 0;

    if (is_validated)
        add_scalar(all, "validation/loss", validation->loss);
    if (task == OT_TASK_CLASSIFICATION) {
        add_scalar(all, "train/accuracy", training->accuracy);
        if (is_validated)
            add_scalar(all, "validation/accuracy", validation->accuracy);
    }
    if (task == OT_TASK_REGRESSION) {
        add_scalar(all, "train/mae", training->mae);
        add_scalar(all, "train/r2", training->r2);
        if (is_validated) {
            add_scalar(all, "validation/mae", validation->mae);
            add_scalar(all, "validation/r2", validation->r2);
        }
    }
}

void ot__journal_events(const ot__journal *j, const ot_event *e, ot__buf *out)
{
    scalars all = {0};

    if (e->kind == OT_EVENT_STEP)
        add_step(&all, j, e);
    if (e->kind == OT_EVENT_EPOCH)
        add_epoch(&all, j->task, e);
    if (all.count > 0)
        put_event(out, &(scalar_event){.step = e->step, .summary = &all});
}
