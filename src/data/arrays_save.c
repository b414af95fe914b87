// SPDX-License-Identifier: Apache-2.0
// Writing .npy files and .npz archives.
#include <zip.h>

#include "data/data.h"

static ot_status refuse_array(const char *path, const char *why)
{
    return ot__error(OT_ERR_IO, "%s: %s", path, why);
}

// The archive reads the bytes when it is closed, so they must stay until then.
static ot_status add_array(zip_t *archive, const char *path, const char *name, const ot__buf *bytes)
{
    ot__buf member = {0};
    zip_source_t *source;
    zip_int64_t at = -1;
    ot_status st;

    ot__buf_printf(&member, "%s.npy", name);
    st = ot__buf_status(&member);
    if (st == OT_OK) {
        source = zip_source_buffer(archive, bytes->data, bytes->length, 0);
        if (source)
            at = zip_file_add(archive, member.data, source, ZIP_FL_ENC_UTF_8);
        if (source && at < 0)
            zip_source_free(source);
        // As NumPy: not packed. One time for all, so that the same arrays give the same bytes.
        if (at < 0 || zip_set_file_compression(archive, (zip_uint64_t)at, ZIP_CM_STORE, 0) != 0 ||
            zip_file_set_dostime(archive, (zip_uint64_t)at, 0, 0x21, 0) != 0)
            st = refuse_array(path, zip_strerror(archive));
    }
    ot__buf_deinit(&member);
    return st;
}

static ot_status write_source(const char *path, zip_source_t *source)
{
    ot__file_writer *writer = NULL;
    char chunk[1 << 16];
    zip_int64_t n = 0;
    ot_status st;

    if (zip_source_open(source) != 0)
        return refuse_array(path, zip_error_strerror(zip_source_error(source)));
    st = ot__file_writer_open(&writer, path);
    while (st == OT_OK && (n = zip_source_read(source, chunk, sizeof(chunk))) > 0)
        st = ot__file_writer_write(writer, chunk, (size_t)n);
    if (st == OT_OK && n < 0)
        st = refuse_array(path, zip_error_strerror(zip_source_error(source)));
    zip_source_close(source);
    if (st == OT_OK)
        return ot__file_writer_commit(writer);
    ot__file_writer_abort(writer);
    return st;
}

static ot_status fill_arrays(zip_t *archive, const char *path, const char *const *names,
                             const ot_tensor *const *tensors, int n, ot__buf *bytes)
{
    for (int i = 0; i < n; i++) {
        OT_TRY(ot__npy_write(names[i], tensors[i], &bytes[i]));
        OT_TRY(add_array(archive, path, names[i], &bytes[i]));
    }
    return OT_OK;
}

static ot_status save_archive(const char *path, const char *const *names,
                              const ot_tensor *const *tensors, int n, ot__buf *bytes)
{
    zip_error_t error;
    zip_source_t *source;
    zip_t *archive = NULL;
    ot_status st;

    zip_error_init(&error);
    source = zip_source_buffer_create(NULL, 0, 0, &error);
    if (source) {
        zip_source_keep(source); // what the archive was written to is read below
        archive = zip_open_from_source(source, ZIP_TRUNCATE, &error);
        if (!archive)
            zip_source_free(source);
    }
    st = archive ? fill_arrays(archive, path, names, tensors, n, bytes)
                 : refuse_array(path, zip_error_strerror(&error));
    if (archive && st == OT_OK && zip_close(archive) != 0)
        st = refuse_array(path, zip_strerror(archive));
    else if (st == OT_OK)
        archive = NULL;
    if (archive)
        zip_discard(archive);
    OT_THEN(st, write_source(path, source));
    if (source)
        zip_source_free(source);
    zip_error_fini(&error);
    return st;
}

ot_status ot_arrays_save(const char *path, const char *const *names,
                         const ot_tensor *const *tensors, int n_tensors)
{
    bool is_archive;
    ot__buf *bytes;
    ot_status st;

    OT_TRY(OT_GIVEN(path));
    OT_TRY(OT_GIVEN_MANY(names, n_tensors));
    OT_TRY(OT_GIVEN_MANY(tensors, n_tensors));
    for (int i = 0; i < n_tensors; i++) {
        if (!names[i] || !tensors[i])
            return ot__error(OT_ERR_INVALID, "%s: %s %d is NULL", path, names[i] ? "array" : "name",
                             i);
        OT_TRY(OT_OPTIONAL(tensors[i], names[i]));
    }
    is_archive = ot__ends_with(path, ".npz");
    if (!is_archive && !ot__ends_with(path, ".npy"))
        return ot__error(OT_ERR_INVALID, "%s: arrays are written to .npz or .npy", path);
    if (n_tensors < 1 || (!is_archive && n_tensors > 1))
        return ot__error(OT_ERR_INVALID, "%s: %d arrays, expected %s", path, n_tensors,
                         is_archive ? "at least one" : "one");
    bytes = ot__alloc_zero((size_t)n_tensors, sizeof(*bytes));
    OT_TRY(ot__made(bytes));
    if (is_archive) {
        st = save_archive(path, names, tensors, n_tensors, bytes);
    } else {
        st = ot__npy_write(names[0], tensors[0], &bytes[0]);
        OT_THEN(st, ot__file_write(path, bytes[0].data, bytes[0].length));
    }
    for (int i = 0; i < n_tensors; i++)
        ot__buf_deinit(&bytes[i]);
    ot__free(bytes);
    return st;
}
