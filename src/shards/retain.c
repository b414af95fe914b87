// SPDX-License-Identifier: Apache-2.0
// Which checkpoints are kept of those that have the same name but for the number at its end.
#include <stdlib.h>
#include <string.h>

#include "shards/saving.h"

// The name without the digits at its end.
static size_t stem_length(const char *name)
{
    size_t n = strlen(name);

    while (n > 0 && ot__is_digit(name[n - 1]))
        n--;
    return n;
}

static bool has_same_stem(const void *context, const char *name)
{
    const char *own = context;
    const size_t n = stem_length(own);

    return name[0] != '.' && stem_length(name) == n && strncmp(own, name, n) == 0;
}

typedef struct kept_place {
    const char *name;
    uint64_t step, unix_ns;
    bool stays; // whatever its step
} kept_place;

// Those that stay, then the newest.
static int compare_kept_places(const void *a, const void *b)
{
    const kept_place *x = a, *y = b;

    if (x->stays != y->stays)
        return x->stays ? -1 : 1;
    if (x->step != y->step)
        return x->step > y->step ? -1 : 1;
    if (x->unix_ns != y->unix_ns)
        return x->unix_ns > y->unix_ns ? -1 : 1;
    return strcmp(x->name, y->name);
}

// False: it is no checkpoint that can be read.
static bool look_at_checkpoint(const char *parent, kept_place *place)
{
    char *path = ot__path_join(parent, place->name);
    const bool is_one = path != NULL && ot__index_peek(path, &place->step, &place->unix_ns);

    ot__free(path);
    return is_one;
}

static void remove_old(const char *parent, kept_place *places, int n, int n_kept,
                       ot__held_files *removed)
{
    qsort(places, (size_t)n, sizeof *places, compare_kept_places);
    for (int i = n_kept; i < n; i++) {
        char *path = places[i].stays ? NULL : ot__path_join(parent, places[i].name);

        if (path != NULL && !ot__directory_remove(path, removed))
            ot__log(OT_LOG_WARNING, "%s: cannot be removed", path);
        ot__free(path);
    }
}

// Of what is told in `list`, names each with its NUL.
static void retain_listed(const char *parent, const ot__buf *list, const char *own,
                          const char *latest, int n_kept, ot__held_files *removed)
{
    size_t n_names = 0;
    kept_place *places;
    int n = 0;

    for (size_t at = 0; at < list->length; at += strlen(list->data + at) + 1)
        n_names++;
    places = ot__alloc_zero(n_names, sizeof *places);
    for (size_t at = 0; places != NULL && at < list->length; at += strlen(list->data + at) + 1) {
        kept_place place = {.name = list->data + at};

        place.stays =
            strcmp(place.name, own) == 0 || (latest != NULL && strcmp(place.name, latest) == 0);
        if (look_at_checkpoint(parent, &place))
            places[n++] = place;
    }
    if (n > 0)
        remove_old(parent, places, n, n_kept, removed);
    ot__free(places);
}

// What is left over costs space and nothing else, so that failures are not told.
void ot__shards_retain(const char *path, int n_kept, ot__held_files *removed)
{
    const char *slash = strrchr(path, '/');
    const char *own = slash != NULL ? slash + 1 : path;
    const ot__file_names names = {has_same_stem, own};
    char *parent = ot__path_folder(path), *latest = NULL;
    char *latest_path = parent != NULL ? ot__path_join(parent, "latest") : NULL;
    ot__buf list = {0};

    if (latest_path != NULL && ot__path_exists(latest_path) &&
        ot__shards_read_latest(latest_path, &latest) != OT_OK)
        latest_path[0] = '\0'; // what it names is not known: nothing is removed
    if (latest_path != NULL && latest_path[0] != '\0') {
        ot__directory_list(parent, &names, &list);
        if (!list.failed)
            retain_listed(parent, &list, own, latest, n_kept, removed);
    }
    ot__buf_deinit(&list);
    ot__free(latest);
    ot__free(latest_path);
    ot__free(parent);
}
