// SPDX-License-Identifier: Apache-2.0
// What a run goes on from: the file that one process saves, or the directory of several. Rank 0
// looks for the newest that can be read, and all take that one.
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "commands.h"
#include "output_files.h"
#include "report.h"
#include "train.h"

static const char file_name[] = "checkpoint", latest_name[] = "latest", stem[] = "step-";

// "FOLDER/NAME" is there. Without memory for the path it is not, which is told.
static bool has_entry(const train_run *r, const char *name)
{
    char *path = path_in(r->values->checkpoint_dir, "", name);
    struct stat info;
    const bool is_there = path && stat(path, &info) == 0;

    free(path);
    return is_there;
}

static void tell_passed_over(train_run *r)
{
    if (r->passed_over[0])
        report_text("%s; passed over", r->passed_over);
    r->passed_over[0] = '\0';
}

// Of the library's message. It is told when there is another checkpoint, or that there is none.
static void pass_over(train_run *r)
{
    tell_passed_over(r);
    snprintf(r->passed_over, sizeof(r->passed_over), "%s", ot_error_message());
}

static int end_search(train_run *r)
{
    if (r->passed_over[0] && !r->point.has_file && !r->point.name[0])
        return report_text(
            "%s; there is no other checkpoint to go on from, --overwrite begins anew",
            r->passed_over);
    tell_passed_over(r);
    return EXIT_SUCCESS;
}

// ---- the file ----

// The session may change whose moments they are.
static void take_owner(train_run *r)
{
    const char *owner;

    if (ot_checkpoint_get_string(r->resumed, "onnxtrain.optimizer", &owner) == OT_OK)
        snprintf(r->moments_of, sizeof(r->moments_of), "%s", owner);
}

static ot_status load_file(train_run *r)
{
    char *path = path_in(r->values->checkpoint_dir, "", file_name);
    ot_status st = path ? ot_checkpoint_load(path, &r->resumed) : OT_ERR_NO_MEMORY;

    if (st == OT_OK) {
        ot_checkpoint_destroy(ot_artifacts_take_checkpoint(r->artifacts)); // makes room
        snprintf(r->resumed_from, sizeof(r->resumed_from), "%s", path);
        take_owner(r);
        r->is_resumed = true;
    }
    free(path);
    return st;
}

// ---- directories ----

// N of "step-N"; -1: it is called otherwise.
static int64_t number_of(const char *name)
{
    const size_t n = sizeof(stem) - 1;
    char *end;
    long long number;

    if (strncmp(name, stem, n) != 0 || name[n] < '0' || name[n] > '9')
        return -1;
    number = strtoll(name + n, &end, 10);
    return *end == '\0' || *end == '\n' ? number : -1;
}

// Takes the directory at a path, or the one that is named there.
static ot_status open_directory(resume_point *p, const char *path)
{
    ot_shards_info info = OT_SHARDS_INFO_INIT;
    ot_shards_reader *reader;
    const char *found, *slash;
    ot_status st = ot_shards_open(path, &reader);

    if (st != OT_OK)
        return st;
    ot_shards_reader_info(reader, &info);
    found = ot_shards_reader_path(reader);
    slash = strrchr(found, '/');
    snprintf(p->name, sizeof(p->name), "%s", slash ? slash + 1 : found);
    p->step = info.step;
    ot_shards_reader_destroy(reader);
    return st;
}

// Directories older than what `latest` names are all that may take its place: others are of a run
// that this one has overwritten.
static int64_t number_of_latest(const train_run *r)
{
    char *path = path_in(r->values->checkpoint_dir, "", latest_name), line[NAME_MAX + 1] = "";
    struct stat info;
    // What is no file, such as a pipe, may have no end.
    FILE *file = path && stat(path, &info) == 0 && S_ISREG(info.st_mode) ? fopen(path, "r") : NULL;
    int64_t number;

    if (file) {
        if (!fgets(line, sizeof(line), file))
            line[0] = '\0';
        fclose(file);
    }
    free(path);
    number = number_of(line);
    return number >= 0 ? number : INT64_MAX;
}

// The last one before p->below.
static int64_t number_before(const train_run *r)
{
    DIR *entries = opendir(r->values->checkpoint_dir);
    int64_t last = -1;

    for (const struct dirent *e; entries && (e = readdir(entries));) {
        const int64_t number = number_of(e->d_name);

        if (number > last && number < r->point.below)
            last = number;
    }
    if (entries)
        closedir(entries);
    return last;
}

// The newest that can be opened, of those that have not been passed over.
static int find_directory(train_run *r)
{
    resume_point *p = &r->point;
    char name[sizeof(stem) + 24];

    p->name[0] = '\0';
    if (!has_entry(r, latest_name))
        return EXIT_SUCCESS;
    if (p->below < 0) {
        p->below = number_of_latest(r);
        if (open_directory(p, r->values->checkpoint_dir) == OT_OK)
            return EXIT_SUCCESS;
        pass_over(r);
    }
    while (!p->name[0] && (p->below = number_before(r)) >= 0) {
        char *path;

        snprintf(name, sizeof(name), "%s%lld", stem, (long long)p->below);
        path = path_in(r->values->checkpoint_dir, "", name);
        if (!path)
            return EXIT_FAILED;
        if (open_directory(p, path) != OT_OK)
            pass_over(r);
        free(path);
    }
    return EXIT_SUCCESS;
}

// ---- what all ranks do ----

int train_find_resumed(train_run *r)
{
    int code;

    r->point = (resume_point){.below = -1};
    if (!r->values->resume || r->job.rank > 0)
        return EXIT_SUCCESS;
    if (has_entry(r, file_name)) {
        if (load_file(r) != OT_OK)
            pass_over(r);
        r->point.has_file = r->resumed != NULL;
    }
    code = find_directory(r);
    return code == EXIT_SUCCESS ? end_search(r) : code;
}

// Processes that do not see the same files.
static int follow_rank_0(train_run *r)
{
    const char *const names[] = {file_name, latest_name};
    const bool is_anew = !r->point.has_file && !r->point.name[0];

    if (r->job.rank == 0)
        return EXIT_SUCCESS;
    if (r->point.has_file && !r->resumed)
        return load_file(r) == OT_OK ? EXIT_SUCCESS : report_error();
    for (int i = 0; is_anew && i < 2; i++)
        if (has_entry(r, names[i]))
            return report_text("%s/%s is there, and rank 0 has none: --checkpoint-dir must be the "
                               "same directory for all processes",
                               r->values->checkpoint_dir, names[i]);
    return EXIT_SUCCESS;
}

static int share_point(train_run *r)
{
    const ot_agree_field field = {"--resume", r->values->resume};
    ot_agreement a = OT_AGREEMENT_INIT;

    a.call = "resume";
    a.fields = &field;
    a.n_fields = 1;
    if (ot_comm_agree(r->job.comm, &a) != OT_OK ||
        ot_comm_broadcast(r->job.comm, 0, &r->point, sizeof(r->point)) != OT_OK)
        return report_error();
    return EXIT_SUCCESS;
}

int train_take_resumed(train_run *r)
{
    int code = EXIT_SUCCESS;

    if (r->job.comm)
        code = share_point(r);
    if (code == EXIT_SUCCESS && r->values->resume)
        code = follow_rank_0(r);
    return job_agree(&r->job, code);
}

static ot_status load_directory(train_run *r)
{
    char *path = path_in(r->values->checkpoint_dir, "", r->point.name);
    const ot_status st = path ? ot_session_load_shards(r->session, path) : OT_ERR_NO_MEMORY;

    if (st == OT_OK) {
        snprintf(r->resumed_from, sizeof(r->resumed_from), "%s", path);
        r->is_resumed = true;
    }
    free(path);
    return st;
}

// Some damage shows when the data is read. A session that cannot take it over is as it was.
static int find_next(train_run *r)
{
    int code = EXIT_SUCCESS;

    if (r->job.rank == 0) {
        pass_over(r);
        code = find_directory(r);
        if (code == EXIT_SUCCESS)
            code = end_search(r);
    }
    code = job_agree(&r->job, code);
    return code == EXIT_SUCCESS ? train_take_resumed(r) : code;
}

int train_load_directory(train_run *r)
{
    const resume_point *p = &r->point;
    int code = EXIT_SUCCESS;

    while (code == EXIT_SUCCESS && p->name[0] &&
           (!p->has_file || p->step > ot_session_step_count(r->session))) {
        const ot_status st = load_directory(r);

        if (st == OT_OK)
            return EXIT_SUCCESS;
        code = st == OT_ERR_FORMAT || st == OT_ERR_IO ? find_next(r) : report_error();
    }
    return code;
}
