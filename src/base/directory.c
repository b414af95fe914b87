// SPDX-License-Identifier: Apache-2.0
// Directories for writing: a complete new one takes the place of the old one, or nothing happens.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_calls.h"
#include "base/file_temporary.h"

// Names beside `<name>`: ".<name>.staging-<id>" of what is being made, ".<name>.old-<id>" of what
// is about to be replaced, ".<name>.gone-<id>" of what is being removed.
static const char staging_mark[] = ".staging-", old_mark[] = ".old-", gone_mark[] = ".gone-";

ot_status ot__directory_sync(const char *path)
{
    const int fd = ot__call_open(path, O_RDONLY | O_DIRECTORY, 0);
    ot_status st = OT_OK;

    if (fd < 0 && errno == EACCES) // writable, but not readable: there is no way to synchronise it
        return OT_OK;
    if (fd < 0)
        return ot__error_errno(path, "cannot be opened");
    // Some file systems cannot sync a directory; names are then as durable as they make them.
    if (ot__call_sync(fd) != 0 && errno != EINVAL && errno != ENOTSUP)
        st = ot__error_errno(path, "cannot be synchronised");
    (void)ot__call_close(fd); // read only: nothing can be lost here
    return st;
}

// ---- names ----

// The directory's own name, without what is before it.
static const char *last_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

// "<parent>/.<name><mark><id>"; NULL when out of memory.
static char *marked_name(const char *parent, const char *name, const char *mark, uint64_t id)
{
    char text[OT_HEX_ID_LENGTH + 1];
    ot__buf buf = {0};

    ot__id_text(id, text);
    ot__buf_printf(&buf, "%s/.%.*s%s%s", parent, OT_TEMPORARY_KEPT, name, mark, text);
    return buf.data;
}

// Whether a name is of the form above, for the name of one directory or, NULL, of any.
static bool has_mark(const char *entry, const char *name, const char *mark)
{
    const size_t n = strlen(entry), n_end = strlen(mark) + OT_HEX_ID_LENGTH;
    const size_t n_name = n > 1 + n_end ? n - 1 - n_end : 0;

    if (n_name == 0 || entry[0] != '.' || !ot__starts_with(entry + 1 + n_name, mark) ||
        !ot__is_hex_id(entry + n - OT_HEX_ID_LENGTH))
        return false;
    return name == NULL || (n_name == OT_MIN(strlen(name), (size_t)OT_TEMPORARY_KEPT) &&
                            strncmp(entry + 1, name, n_name) == 0);
}

// ---- removing ----

static bool is_any_entry(const void *context, const char *name)
{
    (void)context;
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

// It changes nothing, so that it is none of the calls that tests count.
static void hold_files(const char *folder, const ot__buf *list, ot__held_files *held)
{
    for (size_t at = 0; !list->failed && at < list->length && held->n < OT_HELD_FILES;
         at += strlen(list->data + at) + 1) {
        char *path = ot__path_join(folder, list->data + at);
        const int fd =
            path != NULL ? open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;

        if (fd >= 0)
            held->fds[held->n++] = fd;
        ot__free(path);
    }
}

void ot__held_files_drop(ot__held_files *held)
{
    while (held->n > 0)
        close(held->fds[--held->n]);
}

static bool remove_with_files(const char *path, ot__held_files *held)
{
    const ot__file_names all = {is_any_entry, NULL};
    ot__buf list = {0};

    ot__directory_list(path, &all, &list);
    if (held != NULL)
        hold_files(path, &list, held);
    ot__file_remove_listed(path, &list);
    ot__buf_deinit(&list);
    return ot__call_rmdir(path) == 0;
}

// Under another name first: what is half removed is nobody's any more.
bool ot__directory_remove(const char *path, ot__held_files *held)
{
    char *parent = ot__path_folder(path);
    char *gone =
        parent != NULL ? marked_name(parent, last_name(path), gone_mark, ot__id_fresh()) : NULL;
    bool is_gone = false;

    if (gone != NULL && ot__call_rename(path, gone) == 0)
        is_gone = remove_with_files(gone, held);
    ot__free(gone);
    ot__free(parent);
    return is_gone;
}

// ---- leftovers ----

typedef struct mark_wanted {
    const char *name, *mark;
} mark_wanted;

static bool has_wanted_mark(const void *context, const char *entry)
{
    const mark_wanted *wanted = context;

    return has_mark(entry, wanted->name, wanted->mark);
}

// A directory that nobody holds. Where locks are not supported nothing is ever taken for a
// leftover.
static void remove_unheld(const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        (void)remove_with_files(path, NULL);
    close(fd);
}

static void sweep_marked(const char *parent, const char *name, const char *mark)
{
    const mark_wanted wanted = {name, mark};
    const ot__file_names names = {has_wanted_mark, &wanted};
    ot__buf list = {0};

    ot__directory_list(parent, &names, &list);
    for (size_t at = 0; !list.failed && at < list.length; at += strlen(list.data + at) + 1) {
        char *path = ot__path_join(parent, list.data + at);

        if (path != NULL)
            remove_unheld(path);
        ot__free(path);
    }
    ot__buf_deinit(&list);
}

void ot__staging_sweep(const char *parent)
{
    sweep_marked(parent, NULL, staging_mark);
    sweep_marked(parent, NULL, gone_mark);
}

char *ot__staging_find_old(const char *path)
{
    char *parent = ot__path_folder(path), *found = NULL;
    const mark_wanted wanted = {last_name(path), old_mark};
    const ot__file_names names = {has_wanted_mark, &wanted};
    ot__buf list = {0};

    if (parent != NULL)
        ot__directory_list(parent, &names, &list);
    if (!list.failed && list.length > 0)
        found = ot__path_join(parent, list.data);
    ot__buf_deinit(&list);
    ot__free(parent);
    return found;
}

// ---- staging ----

// Slashes at the end say nothing.
static char *plain_path(const char *path)
{
    char *copy = ot__strdup(path);
    size_t n = copy != NULL ? strlen(copy) : 0;

    while (n > 1 && copy[n - 1] == '/')
        copy[--n] = '\0';
    return copy;
}

static ot_status make_place(ot__staging *s)
{
    const char *name = last_name(s->path);
    char *place;

    if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return ot__error(OT_ERR_INVALID, "%s: is not the name of a new directory", s->path);
    s->parent = ot__path_folder(s->path);
    OT_TRY(ot__made(s->parent != NULL));
    place = marked_name(s->parent, name, staging_mark, ot__id_fresh());
    OT_TRY(ot__made(place != NULL));
    if (ot__call_mkdir(place, 0777) != 0) {
        const ot_status st = ot__error_errno(place, "cannot be made");

        ot__free(place);
        return st;
    }
    s->place = place;
    s->fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->fd >= 0)
        (void)flock(s->fd, LOCK_EX | LOCK_NB);
    return OT_OK;
}

ot_status ot__staging_open(ot__staging *staging, const char *path)
{
    ot_status st;

    *staging = (ot__staging){.path = plain_path(path), .fd = -1};
    st = ot__made(staging->path != NULL);
    OT_THEN(st, make_place(staging));
    if (st != OT_OK)
        ot__staging_close(staging);
    return st;
}

// What has been said of a failure is not that of this.
static void remove_silently(const char *path)
{
    char said[OT_MESSAGE_MAX];

    snprintf(said, sizeof said, "%s", ot_error_message());
    (void)remove_with_files(path, NULL);
    (void)ot__error(OT_OK, "%s", said);
}

void ot__staging_close(ot__staging *staging)
{
    if (staging->path == NULL)
        return;
    if (staging->place != NULL)
        remove_silently(staging->place);
    if (staging->fd >= 0)
        close(staging->fd);
    ot__free(staging->place);
    ot__free(staging->path);
    ot__free(staging->parent);
    *staging = (ot__staging){.fd = -1};
}

bool ot__directory_is_empty(const char *path)
{
    const ot__file_names all = {is_any_entry, NULL};
    ot__buf list = {0};
    bool is_empty;

    ot__directory_list(path, &all, &list);
    is_empty = !list.failed && list.length == 0;
    ot__buf_deinit(&list);
    return is_empty;
}

// There is something at the path, which is no empty directory.
static bool has_content(const char *path)
{
    struct stat info;

    return lstat(path, &info) == 0 && !(S_ISDIR(info.st_mode) && ot__directory_is_empty(path));
}

// Where two names cannot be exchanged there is a moment in which neither is at the path; the old
// one is found then by ot__staging_find_old(). *aside: its name since, else NULL.
static ot_status take_place_of(ot__staging *s, char **aside)
{
    char *name = marked_name(s->parent, last_name(s->path), old_mark, ot__id_fresh());
    ot_status st = ot__made(name != NULL);

    *aside = NULL;
    if (st == OT_OK && ot__call_exchange(s->place, s->path) != 0) {
        *aside = name;
        name = NULL;
        if (ot__call_rename(s->path, *aside) != 0)
            st = ot__error_errno(s->path, "cannot be replaced");
        else if (ot__call_rename(s->place, s->path) != 0) {
            st = ot__error_errno(s->path, "cannot be written");
            (void)ot__call_rename(*aside, s->path);
        }
    }
    ot__free(name);
    return st;
}

static ot_status take_free_place(ot__staging *s)
{
    if (ot__call_rename(s->place, s->path) == 0)
        return OT_OK;
    return errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR
               ? ot__error(OT_ERR_IO, "%s: exists already, and is not replaced", s->path)
               : ot__error_errno(s->path, "cannot be written");
}

// Names as they were before. Until that is on the disk, both directories stay: a power cut may
// leave either at the path.
static void take_publish_back(ot__staging *s, bool replaced, const char *aside)
{
    char said[OT_MESSAGE_MAX];
    bool is_back;

    snprintf(said, sizeof said, "%s", ot_error_message());
    if (replaced && aside == NULL)
        is_back = ot__call_exchange(s->place, s->path) == 0;
    else
        is_back = ot__call_rename(s->path, s->place) == 0 &&
                  (aside == NULL || ot__call_rename(aside, s->path) == 0);
    if (!is_back || ot__directory_sync(s->parent) != OT_OK) {
        ot__free(s->place);
        s->place = NULL;
    }
    (void)ot__error(OT_OK, "%s", said);
}

static void remove_replaced(const char *old, ot__held_files *held)
{
    if (!remove_with_files(old, held))
        ot__log(OT_LOG_WARNING, "%s: the old directory, replaced by now, cannot be removed: %s",
                old, strerror(errno));
}

ot_status ot__staging_publish(ot__staging *staging, bool replaces, ot__held_files *held)
{
    const bool replaced = has_content(staging->path);
    char *aside = NULL;
    ot_status st = ot__directory_sync(staging->place);

    if (st == OT_OK && replaced && !replaces)
        st = ot__error(OT_ERR_IO, "%s: exists already, and is not replaced", staging->path);
    if (st == OT_OK)
        st = replaced ? take_place_of(staging, &aside) : take_free_place(staging);
    if (st == OT_OK) {
        st = ot__directory_sync(staging->parent);
        if (st != OT_OK)
            take_publish_back(staging, replaced, aside);
    }
    if (st == OT_OK && replaced)
        remove_replaced(aside != NULL ? aside : staging->place, held);
    if (st == OT_OK) {
        sweep_marked(staging->parent, last_name(staging->path), old_mark);
        ot__free(staging->place);
        staging->place = NULL;
    }
    ot__free(aside);
    return st;
}
