// SPDX-License-Identifier: Apache-2.0
// Dicts to and from HDF5 files: what holds with and without libhdf5.
#include <string.h>
#include <sys/stat.h>

#include "ckpt/hdf5.h"

void ot__h5_link_name(const char *part, size_t length, ot__buf *out)
{
    out->length = 0;
    if (length == 0 || (length == 1 && part[0] == '.'))
        ot__buf_text(out, "%");
    ot__buf_append(out, part, length);
}

// The signature is at the beginning, or at 512, 1024, 2048, ..., behind what is the user's.
bool ot__hdf5_has_signature(const ot__file_map *map)
{
    static const char signature[] = "\x89HDF\r\n\x1a\n";
    const size_t length = sizeof signature - 1;

    for (size_t at = 0; at <= map->size - OT_MIN(map->size, length); at = at > 0 ? 2 * at : 512)
        if (map->size >= length && memcmp(map->data + at, signature, length) == 0)
            return true;
    return false;
}

#if !OT_WITH_HDF5
static ot_status refuse_hdf5(const char *path)
{
    return ot__error(OT_ERR_UNSUPPORTED, "%s: this library was built without HDF5 (OT_WITH_HDF5)",
                     path);
}
#endif

ot_status ot__dict_write_hdf5(const ot_dict *dict, const char *path, ot__file_writer **out)
{
#if OT_WITH_HDF5
    return ot__hdf5_write(dict, path, out);
#else
    (void)dict;
    (void)out;
    return refuse_hdf5(path);
#endif
}

ot_status ot_dict_save_hdf5(const ot_dict *dict, const char *path)
{
    ot__file_writer *file = NULL;

    OT_TRY(OT_GIVEN(dict));
    OT_TRY(OT_GIVEN(path));
    OT_TRY(ot__dict_write_hdf5(dict, path, &file));
    return ot__file_writer_commit(file);
}

ot_status ot_dict_load_hdf5(const char *path, const char *key, ot_dict **out)
{
    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(path));
#if OT_WITH_HDF5
    return ot__hdf5_load(path, key, out);
#else
    (void)key;
    return refuse_hdf5(path);
#endif
}

ot_status ot_dict_load_hdf5_apart(const char *path, const char *key, ot_dict **out)
{
    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(path));
#if OT_WITH_HDF5
    return ot__hdf5_load_apart(path, key, out);
#else
    (void)key;
    return refuse_hdf5(path);
#endif
}

ot_status ot__dict_view_hdf5(const char *path, ot__file_map *map, ot_dict **out)
{
#if OT_WITH_HDF5
    return ot__hdf5_view(path, map, out);
#else
    (void)map;
    (void)out;
    return refuse_hdf5(path);
#endif
}

int ot_hdf5_is_file(const char *path)
{
    struct stat info;
    ot__file_map map;
    int is_it;

    // What comes through a pipe is read once only, by who takes it.
    if (path == NULL || strcmp(path, "-") == 0 || stat(path, &info) != 0 ||
        !S_ISREG(info.st_mode) || ot__file_map_open(&map, path) != OT_OK)
        return 0;
    is_it = map.is_mapped && ot__hdf5_has_signature(&map);
    ot__file_map_close(&map);
    return is_it;
}
