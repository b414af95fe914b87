// SPDX-License-Identifier: Apache-2.0
// The end of `train`: the result, or what is left of a run that did not come to its end.
#include "report.h"
#include "train.h"

static void print_json(const train_run *r, const ot_metrics *metrics)
{
    json_t *object = metrics_json(r->options.task, metrics);

    json_object_set_new(object, "data",
                        json_string(r->data.validation ? "validation" : "training"));
    json_object_set_new(object, "step",
                        json_integer((json_int_t)ot_session_step_count(r->session)));
    if (r->values->dry_run)
        json_object_set_new(object, "dry_run", json_true());
    else if (r->output.path)
        json_object_set_new(object, "model", json_string(r->output.path));
    write_json(stdout, object, JSON_COMPACT);
}

void train_report(const train_run *r, const ot_metrics *metrics)
{
    FILE *out = r->progress.out;

    if (r->values->json)
        print_json(r, metrics);
    if (r->values->json || r->values->quiet)
        return;
    progress_curve(&r->progress);
    if (metrics->rows > 0) { // 0: nothing was left to do, and an earlier version saved no metrics
        fprintf(out, "\n%s: ", r->data.validation ? "validation" : "training");
        print_metrics(out, r->options.task, metrics);
        fprintf(out, "\n");
    }
    if (r->values->dry_run)
        fprintf(out, "dry run: one step was made, nothing is written\n");
    else if (r->output.path && out == stdout)
        fprintf(out, "written: %s\n", r->output.path);
}

// ---- a run that does not come to its end ----

// False when steps of this run are lost.
static bool report_saved(const train_run *r)
{
    const long long saved = r->progress.saved_step;

    if (saved >= 0)
        report_text("saved to %s after step %lld; the same command with --resume goes on",
                    r->progress.saved_to, saved);
    else if (ot_session_step_count(r->session) == r->start_step)
        return true;
    else if (r->is_resumed)
        report_text("%s is as it was, after step %lld", ot_resume_path(r->resume),
                    (long long)r->start_step);
    return saved >= 0;
}

// Rank 0 writes the trained model; with parts of it on all ranks, all do.
bool train_writes(const train_run *r)
{
    enum { CUTS_VALUES = 3 };

    return r->job.rank == 0 || train_zero(r) >= CUTS_VALUES;
}

// The parameters are those of the last step, or with --keep-best of the best epoch, if there is
// one.
static bool rescue_model(const train_run *r, ot_status status, const ot_metrics *metrics)
{
    const long long steps = ot_session_step_count(r->session);
    const char *path = r->output.path;

    if (steps == r->start_step) // nothing is lost
        return false;
    if (status == OT_ERR_NOT_FINITE && metrics->rows == 0) {
        report_text("%s: not written: the parameters after step %lld are worth nothing", path,
                    steps);
        return false;
    }
    if (train_output_write(&r->output, r->session, r->artifacts, &r->data_options) != EXIT_SUCCESS)
        return false;
    if (r->values->keep_best && metrics->rows > 0)
        report_text("%s: written with the parameters of the best epoch", path);
    else
        report_text("%s: written with the parameters after step %lld", path, steps);
    return true;
}

// Without a place for checkpoints, or where the last one could not be written.
static bool needs_model(const train_run *r, ot_status status)
{
    if (r->values->dry_run)
        return false;
    return !r->values->checkpoint_dir ||
           (r->output.path && status == OT_ERR_IO &&
            r->progress.saved_step != ot_session_step_count(r->session));
}

// After Ctrl-C or an error: what was kept, and how to go on.
int train_rescue(const train_run *r, ot_status status, const ot_metrics *metrics)
{
    bool is_kept = true;

    if (r->job.rank > 0) { // rank 0 tells and keeps
        report_error();
        if (needs_model(r, status) && train_writes(r))
            (void)rescue_model(r, status, metrics);
        return EXIT_SUCCESS;
    }
    progress_clear(&r->progress);
    if (progress_is_unread() && !freopen("/dev/null", "w", stderr)) // who has gone is told nothing
        return EXIT_FAILED;
    report_error();
    if (r->values->checkpoint_dir)
        is_kept = report_saved(r);
    if (needs_model(r, status))
        is_kept = rescue_model(r, status, metrics);
    return status == OT_ERR_INTERRUPTED && is_kept ? EXIT_INTERRUPTED : EXIT_FAILED;
}
