// SPDX-License-Identifier: Apache-2.0
// What a run goes on from: the file that one process saves, or the directory of several. Rank 0
// looks for the newest that can be read, and all take that one.
#include <stdlib.h>
#include <string.h>

#include "dist/dist.h"
#include "onnxtrain/resume.h"
#include "onnxtrain/shards.h"
#include "session/session.h"
#include "train/train.h"

enum { FOLDER_NAME_MAX = 255 };
static const char file_name[] = "checkpoint", latest_name[] = "latest", stem[] = "step-";

// A checkpoint directory, by its name in that of the run.
typedef struct saved_directory {
    char name[FOLDER_NAME_MAX + 1]; // "": there is none
    int64_t step, unix_ns;
} saved_directory;

// What all ranks know.
typedef struct resume_point {
    bool has_file;
    saved_directory directory;
} resume_point;

struct ot_resume {
    ot_comm *comm; // NULL: there is one process
    char *folder;
    resume_point point;
    ot_checkpoint *checkpoint; // of the file, until it is taken
    char *path;                // of what is gone on from
    // of rank 0
    ot_status status;                 // of what was passed over last, or OT_OK,
    char passed_over[OT_MESSAGE_MAX]; // and what is wrong with it, which is not told yet
    saved_directory *others;          // that may take the place of the latest, the last made first
    int n_others, i_other;
    bool has_others; // they have been looked for
};

static bool is_in_folder(const ot_resume *r, const char *name)
{
    char *path = ot__path_join(r->folder, name);
    const bool is_there = path != NULL && ot__path_exists(path);

    ot__free(path);
    return is_there;
}

// The run goes on from what is there.
static void set_resume_path(ot_resume *r, char *path)
{
    ot__free(r->path);
    r->path = path;
}

// ---- what is passed over ----

static void tell_passed_over(ot_resume *r)
{
    if (r->status != OT_OK)
        ot__log(OT_LOG_WARNING, "%s; passed over", r->passed_over);
    r->status = OT_OK;
}

// For what the last error's message says, which is told when it is known what else there is.
static ot_status pass_over(ot_resume *r, ot_status st)
{
    if (st == OT_ERR_NO_MEMORY)
        return st;
    tell_passed_over(r);
    snprintf(r->passed_over, sizeof r->passed_over, "%s", ot_error_message());
    r->status = st;
    return OT_OK;
}

static ot_status end_search(ot_resume *r)
{
    if (r->status != OT_OK && !r->point.has_file && r->point.directory.name[0] == '\0')
        return ot__error(r->status,
                         "%s; there is no other checkpoint to go on from (overwrite begins anew)",
                         r->passed_over);
    tell_passed_over(r);
    return OT_OK;
}

// ---- the file ----

static ot_status load_resumed_file(ot_resume *r)
{
    char *path = ot__path_join(r->folder, file_name);
    ot_status st = ot__made(path != NULL);

    OT_THEN(st, ot_checkpoint_load(path, &r->checkpoint));
    if (st == OT_OK)
        set_resume_path(r, path);
    else
        ot__free(path);
    return st;
}

static ot_status find_file(ot_resume *r)
{
    ot_status st;

    if (!is_in_folder(r, file_name))
        return OT_OK;
    st = load_resumed_file(r);
    r->point.has_file = st == OT_OK;
    return st == OT_OK ? OT_OK : pass_over(r, st);
}

// ---- directories ----

// The one at a path, or the one that is named there.
static ot_status look_at_directory(const char *path, saved_directory *out)
{
    ot_shards_info info = OT_SHARDS_INFO_INIT;
    ot_shards_reader *reader;
    const char *found, *slash;
    ot_status st;

    OT_TRY(ot_shards_open(path, &reader));
    st = ot_shards_reader_info(reader, &info);
    found = ot_shards_reader_path(reader);
    slash = strrchr(found, '/');
    snprintf(out->name, sizeof out->name, "%s", slash != NULL ? slash + 1 : found);
    out->step = info.step;
    out->unix_ns = info.unix_ns;
    ot_shards_reader_destroy(reader);
    return st;
}

// N of "step-N"; -1: it is called otherwise.
static int64_t number_of_name(const char *name)
{
    const size_t n = sizeof stem - 1;
    char *end;
    long long number;

    if (strncmp(name, stem, n) != 0 || !ot__is_digit(name[n]))
        return -1;
    number = strtoll(name + n, &end, 10);
    return *end == '\0' || *end == '\n' ? number : -1;
}

// Of what `latest` names; the largest where that is not known.
static int64_t number_of_latest(const ot_resume *r)
{
    char *path = ot__path_join(r->folder, latest_name), line[FOLDER_NAME_MAX + 1] = "";
    ot__file_map map = {0};
    uint64_t size;
    int64_t number;

    if (path != NULL && ot__path_file_size(path, &size) == OT_OK &&
        ot__file_map_open(&map, path) == OT_OK) {
        memcpy(line, map.data, OT_MIN(map.size, sizeof line - 1));
        ot__file_map_close(&map);
    }
    ot__free(path);
    number = number_of_name(line);
    return number >= 0 ? number : INT64_MAX;
}

static bool is_numbered_below(const void *context, const char *name)
{
    const int64_t number = number_of_name(name);

    return number >= 0 && number < *(const int64_t *)context;
}

// Within a run steps and times rise together. A run that was overwritten ended before this one.
static int compare_saved_directories(const void *a, const void *b)
{
    const saved_directory *x = a, *y = b;

    if (x->unix_ns != y->unix_ns)
        return x->unix_ns > y->unix_ns ? -1 : 1;
    return x->step > y->step ? -1 : x->step < y->step;
}

// Of names, each with its NUL.
static ot_status look_at_others(ot_resume *r, const ot__buf *names)
{
    ot_status st = OT_OK;
    size_t n = 0;

    for (size_t at = 0; at < names->length; at += strlen(names->data + at) + 1)
        n++;
    r->others = ot__alloc_zero(n + 1, sizeof *r->others);
    OT_TRY(ot__made(r->others != NULL));
    for (size_t at = 0; at < names->length && st == OT_OK; at += strlen(names->data + at) + 1) {
        char *path = ot__path_join(r->folder, names->data + at);

        st = ot__made(path != NULL);
        OT_THEN(st, look_at_directory(path, &r->others[r->n_others]));
        if (st == OT_OK)
            r->n_others++;
        else
            st = pass_over(r, st);
        ot__free(path);
    }
    qsort(r->others, (size_t)r->n_others, sizeof *r->others, compare_saved_directories);
    return st;
}

static ot_status find_others(ot_resume *r)
{
    int64_t below = number_of_latest(r);
    const ot__file_names wanted = {is_numbered_below, &below};
    ot__buf names = {0};
    ot_status st;

    r->has_others = true;
    ot__directory_list(r->folder, &wanted, &names);
    st = ot__buf_status(&names);
    OT_THEN(st, look_at_others(r, &names));
    ot__buf_deinit(&names);
    return st;
}

// Instead of the one before, which is damaged.
static ot_status find_other_directory(ot_resume *r)
{
    r->point.directory = (saved_directory){0};
    if (!r->has_others)
        OT_TRY(find_others(r));
    if (r->i_other < r->n_others)
        r->point.directory = r->others[r->i_other++];
    return OT_OK;
}

static ot_status find_directory(ot_resume *r)
{
    ot_status st;

    if (!is_in_folder(r, latest_name))
        return OT_OK;
    st = look_at_directory(r->folder, &r->point.directory);
    if (st == OT_OK)
        return OT_OK;
    OT_TRY(pass_over(r, st));
    return find_other_directory(r);
}

// ---- what all ranks do ----

static int resuming_rank(const ot_comm *comm)
{
    return comm != NULL ? ot_comm_rank(comm) : 0;
}

static ot_status agree_on_point(ot_comm *comm, ot_status st)
{
    return comm != NULL ? ot__comm_agree_on(comm, st, "resume", NULL, 0) : st;
}

// What rank 0 has found, `st` is how.
static ot_status share_point(ot_comm *comm, ot_status st, ot_resume *r)
{
    OT_TRY(agree_on_point(comm, st));
    return comm != NULL ? ot_comm_broadcast(comm, 0, &r->point, sizeof r->point) : OT_OK;
}

// Processes that do not see the same files.
static ot_status follow_rank_0(ot_resume *r)
{
    const char *const names[] = {file_name, latest_name};
    const bool is_anew = !r->point.has_file && r->point.directory.name[0] == '\0';

    if (r->point.has_file)
        return load_resumed_file(r);
    for (size_t i = 0; is_anew && i < OT_COUNT(names); i++)
        if (is_in_folder(r, names[i]))
            return ot__error(OT_ERR_MISMATCH,
                             "%s/%s is there, and rank 0 has none: the checkpoint directory must "
                             "be the same for all processes",
                             r->folder, names[i]);
    return OT_OK;
}

static ot_status make_resume(ot_comm *comm, const char *folder, ot_resume **out)
{
    ot_resume *r = ot__alloc_zero(1, sizeof *r);

    OT_TRY(ot__made(r != NULL));
    *out = r;
    OT_ENTER(r);
    r->comm = comm;
    r->folder = ot__strdup(folder);
    return ot__made(r->folder != NULL);
}

static ot_status find_point(ot_resume *r)
{
    OT_TRY(find_file(r));
    OT_TRY(find_directory(r));
    return end_search(r);
}

ot_status ot_resume_create(ot_comm *comm, const char *checkpoint_dir, ot_resume **out)
{
    ot_resume *r = NULL;
    ot_status st;

    OT_TRY(OT_OUT(out));
    if (comm != NULL)
        OT_TRY(ot__comm_check(comm));
    st = OT_GIVEN(checkpoint_dir);
    OT_THEN(st, make_resume(comm, checkpoint_dir, &r));
    if (resuming_rank(comm) == 0)
        OT_THEN(st, find_point(r));
    st = share_point(comm, st, r);
    if (st == OT_OK)
        st = agree_on_point(comm, resuming_rank(comm) > 0 ? follow_rank_0(r) : OT_OK);
    return OT_HAND_OUT(st, out, r, ot_resume_destroy);
}

void ot_resume_destroy(ot_resume *resume)
{
    if (!OT_ENDS(resume))
        return;
    ot_checkpoint_destroy(resume->checkpoint);
    ot__free(resume->others);
    ot__free(resume->folder);
    ot__free(resume->path);
    ot__free(resume);
}

ot_checkpoint *ot_resume_take_checkpoint(ot_resume *resume)
{
    ot_checkpoint *checkpoint;

    if (!OT_IS_LIVE(resume))
        return NULL;
    checkpoint = resume->checkpoint;
    resume->checkpoint = NULL;
    return checkpoint;
}

// Some damage shows when the data is read. A session that cannot take it over is as it was.
static ot_status find_next_point(ot_resume *r, ot_status damage)
{
    ot_status st = OT_OK;

    if (resuming_rank(r->comm) == 0) {
        st = pass_over(r, damage);
        OT_THEN(st, find_other_directory(r));
        OT_THEN(st, end_search(r));
    }
    return share_point(r->comm, st, r);
}

static bool is_directory_later(const ot_resume *r, const ot_session *session)
{
    const resume_point *p = &r->point;

    return p->directory.name[0] != '\0' &&
           (!p->has_file || p->directory.step > ot_session_step_count(session));
}

static ot_status load_resumed_directory(ot_resume *r, ot_session *session)
{
    char *path = ot__path_join(r->folder, r->point.directory.name);
    ot_status st = agree_on_point(r->comm, ot__made(path != NULL));

    OT_THEN(st, ot_session_load_shards(session, path));
    if (st == OT_OK)
        set_resume_path(r, path);
    else
        ot__free(path);
    return st;
}

ot_status ot_resume_load(ot_resume *resume, ot_session *session)
{
    OT_TRY(OT_GIVEN(resume));
    OT_TRY(OT_GIVEN(session));
    while (is_directory_later(resume, session)) {
        const ot_status st = load_resumed_directory(resume, session);

        if (st == OT_OK)
            return OT_OK;
        if (st != OT_ERR_FORMAT && st != OT_ERR_IO)
            return st;
        OT_TRY(find_next_point(resume, st));
    }
    return OT_OK;
}

const char *ot_resume_path(const ot_resume *resume)
{
    return OT_IS_LIVE(resume) ? resume->path : NULL;
}
