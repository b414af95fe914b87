#include "progress.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

volatile sig_atomic_t progress_is_interrupted;

static void on_signal(int number)
{
    if (progress_is_interrupted) {
        signal(number, SIG_DFL);
        raise(number);
    }
    progress_is_interrupted = 1;
}

void progress_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void print_metrics(FILE *out, ot_task task, const ot_metrics *metrics)
{
    fprintf(out, "loss %.4f", metrics->loss);
    if (task == OT_TASK_CLASSIFICATION)
        fprintf(out, "  accuracy %.2f %%", metrics->accuracy * 100);
    if (task == OT_TASK_REGRESSION)
        fprintf(out, "  MAE %.4g  R2 %.4f", metrics->mae, metrics->r2);
}

// ---- bar ----

static void draw_bar(progress *p, const ot_event *e)
{
    enum { WIDTH = 24 };
    const double seconds = e->training.seconds > 0 ? e->training.seconds : 1e-9;
    const double per_second = (double)e->training.rows / seconds;
    const double part = e->n_batches > 0 ? (double)e->batch / (double)e->n_batches : 1;
    const double left = part > 0 ? seconds * (1 - part) / part : 0;
    const int filled = (int)(part * WIDTH);

    if (now() - p->last_drawn < 0.1 && e->batch < e->n_batches)
        return;
    p->last_drawn = now();
    fprintf(stderr, "\repoch %lld/%lld [%.*s%.*s] ", (long long)e->epoch + 1,
            (long long)e->n_epochs, filled, "========================", WIDTH - filled,
            "                        ");
    print_metrics(stderr, p->task, &e->training);
    fprintf(stderr, "  lr %.3g  %.0f rows/s  %.0f s left \033[K", e->learning_rate, per_second,
            left);
}

static void clear_bar(const progress *p)
{
    if (p->is_terminal)
        fprintf(stderr, "\r\033[K");
}

// ---- lines and log ----

static void print_epoch(const progress *p, const ot_event *e)
{
    clear_bar(p);
    printf("epoch %lld/%lld  ", (long long)e->epoch + 1, (long long)e->n_epochs);
    print_metrics(stdout, p->task, &e->training);
    if (e->validation.rows > 0) {
        printf("  | validation ");
        print_metrics(stdout, p->task, &e->validation);
    }
    printf("  lr %.3g  %.0f rows/s\n", e->learning_rate,
           (double)e->training.rows / (e->training.seconds > 0 ? e->training.seconds : 1e-9));
    fflush(stdout);
}

static json_t *metrics_json(ot_task task, const ot_metrics *m)
{
    json_t *object = json_pack("{s:I,s:f}", "rows", (json_int_t)m->rows, "loss", m->loss);

    if (task == OT_TASK_CLASSIFICATION)
        json_object_set_new(object, "accuracy", json_real(m->accuracy));
    if (task == OT_TASK_REGRESSION) {
        json_object_set_new(object, "mae", json_real(m->mae));
        json_object_set_new(object, "r2", json_real(m->r2));
    }
    return object;
}

static void log_event(const progress *p, const ot_event *e)
{
    static const char *const names[] = {"step", "epoch", "saved", "early_stop"};
    json_t *object =
        json_pack("{s:s,s:I,s:I,s:f}", "event", names[e->kind], "epoch", (json_int_t)e->epoch + 1,
                  "step", (json_int_t)e->step, "lr", e->learning_rate);

    if (e->kind == OT_EVENT_SAVED)
        json_object_set_new(object, "path", json_string(e->path));
    else
        json_object_set_new(object, "training", metrics_json(p->task, &e->training));
    if (e->kind == OT_EVENT_EPOCH && e->validation.rows > 0)
        json_object_set_new(object, "validation", metrics_json(p->task, &e->validation));
    json_dumpf(object, p->log, JSON_COMPACT);
    fputc('\n', p->log);
    fflush(p->log);
    json_decref(object);
}

static void add_point(progress *p, const ot_event *e)
{
    curve_point *grown = realloc(p->points, (size_t)(p->n_points + 1) * sizeof(*grown));

    if (!grown)
        return; // the curve is a courtesy
    p->points = grown;
    p->points[p->n_points++] =
        (curve_point){e->training.loss, e->validation.rows > 0 ? e->validation.loss : -1};
}

int progress_event(void *context, const ot_event *event)
{
    progress *p = context;

    if (p->log)
        log_event(p, event);
    if (event->kind == OT_EVENT_STEP && p->is_terminal && !p->is_quiet)
        draw_bar(p, event);
    if (event->kind == OT_EVENT_EPOCH) {
        add_point(p, event);
        if (!p->is_quiet && !p->is_json)
            print_epoch(p, event);
    }
    if (event->kind == OT_EVENT_EARLY_STOP && !p->is_quiet && !p->is_json)
        printf("stopped early: no better for a while\n");
    return progress_is_interrupted;
}

// ---- curve ----

enum { CURVE_ROWS = 10, CURVE_COLUMNS = 60 };

static double point_at(const progress *p, int column, int n_columns, bool validation)
{
    const int i =
        n_columns > 1 ? (int)((double)column / (n_columns - 1) * (p->n_points - 1) + 0.5) : 0;

    return validation ? p->points[i].validation : p->points[i].training;
}

static void put(char grid[CURVE_ROWS][CURVE_COLUMNS + 1], int column, double value, double low,
                double high, char mark)
{
    int row;

    if (!isfinite(value) || value < 0)
        return;
    row =
        high > low ? (int)((high - value) / (high - low) * (CURVE_ROWS - 1) + 0.5) : CURVE_ROWS - 1;
    grid[row][column] = mark;
}

void progress_curve(const progress *p)
{
    char grid[CURVE_ROWS][CURVE_COLUMNS + 1];
    const int n_columns = p->n_points < CURVE_COLUMNS ? p->n_points : CURVE_COLUMNS;
    double low = INFINITY, high = -INFINITY;
    bool has_validation = false;

    if (p->n_points < 2 || p->is_quiet || p->is_json)
        return;
    for (int i = 0; i < p->n_points; i++) {
        const double both[] = {p->points[i].training, p->points[i].validation};
        for (int k = 0; k < 2; k++)
            if (both[k] >= 0 && isfinite(both[k])) {
                low = fmin(low, both[k]);
                high = fmax(high, both[k]);
            }
        has_validation = has_validation || both[1] >= 0;
    }
    memset(grid, ' ', sizeof(grid));
    for (int c = 0; c < n_columns; c++) {
        put(grid, c, point_at(p, c, n_columns, false), low, high, '*');
        put(grid, c, point_at(p, c, n_columns, true), low, high, 'o');
    }
    printf("\nloss over %d epochs: * training%s\n", p->n_points,
           has_validation ? ", o validation" : "");
    for (int r = 0; r < CURVE_ROWS; r++)
        printf("%10.4f |%.*s\n", high - (high - low) * r / (CURVE_ROWS - 1), n_columns, grid[r]);
    printf("%10s +%.*s\n", "", n_columns,
           "------------------------------------------------------------");
}

void progress_deinit(progress *p)
{
    free(p->points);
    if (p->log)
        fclose(p->log);
}
