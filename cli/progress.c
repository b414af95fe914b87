// SPDX-License-Identifier: Apache-2.0
#include "progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "report.h"

static volatile sig_atomic_t caught; // the signal that ends the run; 0: none
static bool signals_come_twice;
static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1};
enum { N_SIGNALS = sizeof(signals) / sizeof(signals[0]), N_OF_JOBS = 1 }; // the last ones

// A terminal that is closed sends SIGHUP more than once, and every write to a closed pipe SIGPIPE.
static void on_signal(int number)
{
    const bool is_repeated = !signals_come_twice && (caught == SIGINT || caught == SIGTERM);

    if (is_repeated && (number == SIGINT || number == SIGTERM)) {
        signal(number, SIG_DFL);
        raise(number);
    }
    if (caught == 0 || number != SIGPIPE)
        caught = number;
}

// What is ignored, as SIGHUP under nohup and SIGINT in the background of a script, stays so.
void progress_catch_signals(bool is_in_job)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, old;

    sigemptyset(&action.sa_mask);
    signals_come_twice = is_in_job;
    for (int i = 0; i < N_SIGNALS - (is_in_job ? 0 : N_OF_JOBS); i++)
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
}

bool progress_is_unread(void)
{
    return caught == SIGPIPE;
}

void progress_end_signals(void)
{
    fflush(stdout); // to a closed pipe, perhaps
    if (caught == SIGPIPE) {
        signal(SIGPIPE, SIG_DFL);
        raise(SIGPIPE);
    }
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// The sign of NaN differs from processor to processor and says nothing.
static double without_nan_sign(double value)
{
    return isnan(value) ? (double)NAN : value;
}

void print_metrics(FILE *out, ot_task task, const ot_metrics *metrics)
{
    fprintf(out, "loss %.4f", without_nan_sign(metrics->loss));
    if (task == OT_TASK_CLASSIFICATION)
        fprintf(out, "  accuracy %.2f %%", without_nan_sign(metrics->accuracy * 100));
    if (task == OT_TASK_REGRESSION)
        fprintf(out, "  MAE %.4g  R2 %.4f", without_nan_sign(metrics->mae),
                without_nan_sign(metrics->r2));
}

// JSON has no NaN and no infinity.
static json_t *number_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *metrics_json(ot_task task, const ot_metrics *metrics)
{
    json_t *object = json_object();

    json_object_set_new(object, "rows", json_integer((json_int_t)metrics->rows));
    json_object_set_new(object, "loss", number_json(metrics->loss));
    if (task == OT_TASK_CLASSIFICATION)
        json_object_set_new(object, "accuracy", number_json(metrics->accuracy));
    if (task == OT_TASK_REGRESSION) {
        json_object_set_new(object, "mae", number_json(metrics->mae));
        json_object_set_new(object, "r2", number_json(metrics->r2));
    }
    return object;
}

// ---- bar ----

// 0: not known.
static int terminal_columns(void)
{
    struct winsize size;

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool progress_has_terminal(void)
{
    const char *kind = getenv("TERM");

    return isatty(STDERR_FILENO) && isatty(STDOUT_FILENO) && kind && strcmp(kind, "dumb") != 0;
}

static void print_scaling(FILE *out, const ot_event *e)
{
    if (e->loss_scale > 0)
        fprintf(out, "  scale %g", e->loss_scale);
    if (e->n_skipped > 0)
        fprintf(out, "  %lld skipped", (long long)e->n_skipped);
}

static void write_bar(FILE *out, const progress *p, const ot_event *e, int width)
{
    const double seconds = e->training.seconds > 0 ? e->training.seconds : 1e-9;
    const double per_second = (double)e->training.rows / seconds;
    const double part = e->n_batches > 0 ? (double)e->batch / (double)e->n_batches : 1;
    const double left = part > 0 ? seconds * (1 - part) / part : 0;
    const int filled = (int)(part * width);

    fprintf(out, "epoch %lld/%lld [%.*s%.*s] ", (long long)e->epoch + 1, (long long)e->n_epochs,
            filled, "========================", width - filled, "                        ");
    print_metrics(out, p->task, &e->training);
    print_scaling(out, e);
    fprintf(out, "  lr %.3g  %.0f rows/s  %.0f s left ", e->learning_rate, per_second, left);
}

// A line longer than the terminal would go on in the next, and could not be drawn over.
static void draw_bar(progress *p, const ot_event *e)
{
    enum { WIDE = 110, LONG_BAR = 24, SHORT_BAR = 4 };
    const int columns = terminal_columns();
    char *line = NULL;
    size_t length;
    FILE *out;

    if (now() - p->last_drawn < 0.1 && e->batch < e->n_batches)
        return;
    p->last_drawn = now();
    out = open_memstream(&line, &length);
    if (!out)
        return; // the bar is a courtesy
    write_bar(out, p, e, columns > 0 && columns < WIDE ? SHORT_BAR : LONG_BAR);
    if (fclose(out) == 0)
        fprintf(stderr, "\r%.*s\033[K", columns > 0 ? columns - 1 : (int)length, line);
    free(line);
}

void progress_clear(const progress *p)
{
    if (p->last_drawn > 0) // there has been a bar
        fprintf(stderr, "\r\033[K");
}

// ---- lines ----

static void print_epoch(const progress *p, const ot_event *e)
{
    progress_clear(p);
    fprintf(p->out, "epoch %lld/%lld  ", (long long)e->epoch + 1, (long long)e->n_epochs);
    print_metrics(p->out, p->task, &e->training);
    if (e->validation.rows > 0) {
        fprintf(p->out, "  | validation ");
        print_metrics(p->out, p->task, &e->validation);
    }
    print_scaling(p->out, e);
    fprintf(p->out, "  lr %.3g  %.0f rows/s\n", e->learning_rate,
            (double)e->training.rows / (e->training.seconds > 0 ? e->training.seconds : 1e-9));
    fflush(p->out);
}

bool progress_note(progress *p, const char *text)
{
    char **grown = realloc(p->notes, (size_t)(p->n_notes + 1) * sizeof(*grown));

    if (!grown)
        return false;
    p->notes = grown;
    p->notes[p->n_notes] = strdup(text);
    if (!p->notes[p->n_notes])
        return false;
    p->n_notes++;
    if (!p->is_quiet && !p->is_json)
        fprintf(p->out, "note: %s\n", text);
    return true;
}

static void add_point(progress *p, const ot_event *e)
{
    curve_point *grown = realloc(p->points, (size_t)(p->n_points + 1) * sizeof(*grown));

    if (!grown)
        return; // the curve is a courtesy
    p->points = grown;
    if (p->n_points == 0)
        p->first_epoch = e->epoch;
    p->points[p->n_points++] =
        (curve_point){e->training.loss, e->validation.rows > 0 ? e->validation.loss : NAN};
}

static void show_header(progress *p)
{
    if (p->header && !p->is_quiet && !p->is_json)
        fputs(p->header, p->out);
    free(p->header);
    p->header = NULL;
}

// Of several processes, too: what is held is told at the end.
static void warn_now(const progress *p)
{
    char text[2048];

    progress_clear(p);
    snprintf(text, sizeof(text), "%s\n", ot_error_message());
    report_told(text, -1);
}

int progress_event(void *context, const ot_event *event)
{
    progress *p = context;

    show_header(p);
    if (event->kind == OT_EVENT_SAVED && strcmp(strrchr(event->path, '/'), "/best") != 0) {
        p->saved_step = event->step;
        snprintf(p->saved_to, sizeof(p->saved_to), "%s", event->path);
    }
    if (event->kind == OT_EVENT_LOG_LOST) { // the training is worth more
        progress_clear(p);
        report_error();
        p->has_lost_log = true;
    }
    if (event->kind == OT_EVENT_SAVE_FAILED)
        warn_now(p);
    if (event->kind == OT_EVENT_STEP && p->is_terminal && !p->is_quiet)
        draw_bar(p, event);
    if (event->kind == OT_EVENT_EPOCH) {
        add_point(p, event);
        if (!p->is_quiet && !p->is_json)
            print_epoch(p, event);
    }
    if (event->kind == OT_EVENT_EARLY_STOP && !p->is_quiet && !p->is_json)
        fprintf(p->out, "stopped early: the loss has not become better\n");
    return caught;
}

// ---- curve ----

enum { CURVE_ROWS = 10, CURVE_COLUMNS = 60 };

typedef struct curve {
    char grid[CURVE_ROWS][CURVE_COLUMNS + 1];
    int n_columns;
    double low, high;
} curve;

static void curve_range(curve *c, double value)
{
    if (isfinite(value)) {
        c->low = fmin(c->low, value);
        c->high = fmax(c->high, value);
    }
}

static void curve_put(curve *c, int column, double value, char mark)
{
    double part = c->high > c->low ? (c->high - value) / (c->high - c->low) : 1;

    if (isfinite(value))
        c->grid[(int)(part * (CURVE_ROWS - 1) + 0.5)][column] = mark;
}

// Few epochs are spread out, many are thinned; the last one always shows.
static void curve_draw(curve *c, const progress *p)
{
    const int last = p->n_points - 1;
    const int spacing = last > 0 && last < CURVE_COLUMNS ? (CURVE_COLUMNS - 1) / last : 1;
    const int n_marks = last < CURVE_COLUMNS ? last + 1 : CURVE_COLUMNS;

    memset(c->grid, ' ', sizeof(c->grid));
    c->n_columns = (n_marks - 1) * spacing + 1;
    for (int i = 0; i < n_marks; i++) {
        int at = n_marks > 1 ? (int)((double)i / (n_marks - 1) * last + 0.5) : 0;
        curve_put(c, i * spacing, p->points[at].training, '*');
        curve_put(c, i * spacing, p->points[at].validation, 'o');
    }
}

void progress_curve(const progress *p)
{
    curve c = {.low = INFINITY, .high = -INFINITY};
    bool has_validation = false;

    if (p->n_points < 2 || p->is_quiet || p->is_json)
        return;
    for (int i = 0; i < p->n_points; i++) {
        curve_range(&c, p->points[i].training);
        curve_range(&c, p->points[i].validation);
        has_validation = has_validation || isfinite(p->points[i].validation);
    }
    if (c.low > c.high)
        return;
    curve_draw(&c, p);
    fprintf(p->out, "\nloss over the epochs: * training%s\n",
            has_validation ? ", o validation" : "");
    for (int r = 0; r < CURVE_ROWS; r++)
        fprintf(p->out, "%#10.4g |%.*s\n", c.high - (c.high - c.low) * r / (CURVE_ROWS - 1),
                c.n_columns, c.grid[r]);
    fprintf(p->out, "%10s +%.*s\n", "", c.n_columns,
            "------------------------------------------------------------");
    fprintf(p->out, "%11s %-*lld%lld\n", "epoch", c.n_columns - 1, (long long)p->first_epoch + 1,
            (long long)p->first_epoch + p->n_points);
}

void progress_deinit(progress *p)
{
    free(p->points);
    free(p->header);
    for (int i = 0; i < p->n_notes; i++)
        free(p->notes[i]);
    free(p->notes);
}
