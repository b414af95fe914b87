// SPDX-License-Identifier: Apache-2.0
// Arrays of an .npz: a zip of .npy files. Members are unpacked one behind the other into one
// temporary file.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>

#include "data/data.h"

enum { MAX_MEMBERS = 4096, ALIGNMENT = 64, CHUNK = 1 << 14 };

typedef struct member {
    char *name; // without .npy
    uint64_t start, size;
} member;

static ot_status unpack_member(zip_t *archive, zip_uint64_t index, const char *name,
                               ot__spill *spill)
{
    zip_file_t *file = zip_fopen_index(archive, index, 0);
    char chunk[CHUNK];
    zip_int64_t n;
    ot_status st = OT_OK;

    if (!file)
        return ot__error(OT_ERR_FORMAT, "%s: member '%s' cannot be opened: %s", spill->source->path,
                         name, zip_strerror(archive));
    while (st == OT_OK && (n = zip_fread(file, chunk, sizeof(chunk))) != 0)
        st = n < 0 ? ot__error(OT_ERR_FORMAT, "%s: member '%s' is damaged: %s", spill->source->path,
                               name, zip_file_strerror(file))
                   : ot__spill_write(spill, chunk, (size_t)n);
    zip_fclose(file);
    return st;
}

static ot_status unpack_all(zip_t *archive, ot__spill *spill, member *members, int *n_members)
{
    const zip_int64_t n = zip_get_num_entries(archive, 0);
    static const char zeros[ALIGNMENT] = {0};

    for (zip_int64_t i = 0; i < n; i++) {
        const char *name = zip_get_name(archive, (zip_uint64_t)i, 0);
        member *m = &members[*n_members];

        if (!name || !ot__ends_with(name, ".npy"))
            continue;
        if (*n_members == MAX_MEMBERS)
            return ot__error(OT_ERR_UNSUPPORTED, "%s: has more than %d arrays", spill->source->path,
                             MAX_MEMBERS);
        m->name = ot__strdup(name);
        OT_TRY(ot__made(m->name));
        ++*n_members;
        OT_TRY(ot__spill_write(spill, zeros, (ALIGNMENT - spill->size % ALIGNMENT) % ALIGNMENT));
        m->start = spill->size;
        OT_TRY(unpack_member(archive, (zip_uint64_t)i, name, spill));
        m->size = spill->size - m->start;
        m->name[strlen(name) - 4] = '\0';
    }
    return OT_OK;
}

// An array that cannot be used matters only to whom it is bound.
static ot_status add_npz_member(ot_dataset *dataset, ot__source *source, const member *m)
{
    const ot_status st = ot__npy_add(dataset, source, m->start, m->size, m->name, NULL);

    if (st != OT_ERR_FORMAT && st != OT_ERR_UNSUPPORTED)
        return st;
    return ot__dataset_add_fault(dataset, source, m->name);
}

static ot_status add_members(ot_dataset *dataset, ot__source *source, const member *members, int n)
{
    const int first = dataset->n_fields;

    source->is_archive = true;
    for (int i = 0; i < n; i++)
        OT_TRY(add_npz_member(dataset, source, &members[i]));
    for (int i = first; i < dataset->n_fields; i++)
        if (!dataset->fields[i].fault)
            return OT_OK;
    return n == 0 ? ot__error(OT_ERR_FORMAT, "%s: has no arrays, which are members named .npy",
                              source->path)
                  : ot__error(OT_ERR_UNSUPPORTED, "%s", dataset->fields[first].fault);
}

// The archive where it lies; a file is read, not mapped, with a descriptor of zip's own.
static zip_source_t *npz_source(const ot__file_input *input, zip_error_t *error)
{
    zip_source_t *bytes;
    FILE *file;
    int fd;

    if (!input->is_file)
        return zip_source_buffer_create(input->memory.data, input->memory.size, 0, error);
    fd = fcntl(input->fd, F_DUPFD_CLOEXEC, 0);
    file = fd >= 0 ? fdopen(fd, "rb") : NULL;
    bytes = file ? zip_source_filep_create(file, 0, -1, error) : NULL;
    if (!file)
        zip_error_set(error, ZIP_ER_OPEN, errno);
    if (file && !bytes)
        fclose(file);
    if (!file && fd >= 0)
        close(fd);
    return bytes;
}

static ot_status open_archive(const ot__source *source, zip_t **out)
{
    zip_error_t error;
    zip_source_t *bytes;
    ot_status st = OT_OK;

    zip_error_init(&error);
    bytes = npz_source(&source->input, &error);
    *out = bytes ? zip_open_from_source(bytes, ZIP_RDONLY, &error) : NULL;
    if (!*out)
        st = ot__error(OT_ERR_FORMAT, "%s: is not an .npz: %s", source->path,
                       zip_error_strerror(&error));
    if (bytes && !*out)
        zip_source_free(bytes);
    zip_error_fini(&error);
    return st;
}

static ot_status unpack_archive(ot__source *source, const ot_dataset_options *options,
                                member *members, int *n_members)
{
    zip_t *archive;
    ot__spill spill = {.fd = -1};
    ot_status st;

    OT_TRY(open_archive(source, &archive));
    st = ot__spill_open(&spill, source, options);
    OT_THEN(st, unpack_all(archive, &spill, members, n_members));
    zip_discard(archive);
    OT_THEN(st, ot__spill_replace(&spill, source));
    ot__spill_close(&spill);
    return st;
}

ot_status ot__npz_add(ot_dataset *dataset, ot__source *source, const ot_dataset_options *options)
{
    member *members = ot__alloc_zero(MAX_MEMBERS, sizeof(*members));
    int n_members = 0;
    ot_status st = ot__made(members);

    OT_THEN(st, unpack_archive(source, options, members, &n_members));
    OT_THEN(st, add_members(dataset, source, members, n_members));
    for (int i = 0; i < n_members; i++)
        ot__free(members[i].name);
    ot__free(members);
    return st;
}
