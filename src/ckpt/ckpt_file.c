// Checkpoints to and from files. With external data there are two files, and no rename replaces
// both at once: the data file ends with an id that the checkpoint states in a property, and the old
// data file stays under a second name until the new checkpoint is in place, so that whichever
// checkpoint a kill leaves finds its own data.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ckpt/ckpt.h"

#define PROPERTY_DATA_ID "onnxtrain.data_id"
#define DATA_ID_MARK "onnxtrain data id "
enum { DATA_ID_LENGTH = 16 };
static const size_t external_from = (size_t)1800 << 20; // bytes, as ONNX Runtime's default

static char *with_suffix(const char *path, const char *suffix)
{
    size_t n = strlen(path), m = strlen(suffix) + 1;
    char *text = ot__alloc(n + m);

    if (text) {
        memcpy(text, path, n);
        memcpy(text + n, suffix, m);
    }
    return text;
}

static void format_id(const ot__buf *data, char id[DATA_ID_LENGTH + 1])
{
    ot__rng_key key = ot__rng_key_make(data->length, (uint64_t)(ot__clock_seconds() * 1e9),
                                       (uint64_t)getpid(), "checkpoint data");
    uint32_t words[4];

    ot__rng_block(key, 0, words);
    snprintf(id, DATA_ID_LENGTH + 1, "%08" PRIx32 "%08" PRIx32, words[0], words[1]);
}

// ---- loading ----

// Whether the data file at `path` ends with the id.
static bool data_has_id(const char *path, const char *id)
{
    ot__file_map map = {0};
    size_t n = sizeof(DATA_ID_MARK) - 1;
    bool same = false;

    if (!ot__path_exists(path) || ot__file_map_open(&map, path) != OT_OK)
        return false;
    if (map.size >= n + DATA_ID_LENGTH) {
        const uint8_t *end = map.data + map.size - n - DATA_ID_LENGTH;
        same = memcmp(end, DATA_ID_MARK, n) == 0 && memcmp(end + n, id, DATA_ID_LENGTH) == 0;
    }
    ot__file_map_close(&map);
    return same;
}

static ot_status load_mapped(const ot__file_map *map, const char *path, const char *data,
                             const char *data_old, ot_checkpoint **out)
{
    const ot__property *id = NULL;

    // Which data file belongs to the checkpoint is known only from its properties, so the old one
    // is tried second.
    OT_TRY(ot__flatbuf_read(map->data, map->size, path, data, out));
    if (!(*out)->has_external_data)
        return OT_OK;
    for (int i = 0; i < (*out)->n_properties; i++)
        if (strcmp((*out)->properties[i].name, PROPERTY_DATA_ID) == 0 && (*out)->properties[i].s)
            id = &(*out)->properties[i];
    if (!id || strlen(id->s) != DATA_ID_LENGTH || data_has_id(data, id->s))
        return OT_OK; // other writers leave no id
    if (data_has_id(data_old, id->s) &&
        rename(data_old, data) == 0) { // a save was cut short: undo it
        ot_checkpoint_destroy(*out);
        *out = NULL;
        return ot__flatbuf_read(map->data, map->size, path, data, out);
    }
    ot_checkpoint_destroy(*out);
    *out = NULL;
    return ot__error(OT_ERR_FORMAT, "%s: is not the data file of %s", data, path);
}

ot_status ot_checkpoint_load(const char *path, ot_checkpoint **out)
{
    ot__file_map map = {0};
    char *data = with_suffix(path, ".data"), *data_old = with_suffix(path, ".data.old");
    ot_status st;

    *out = NULL;
    st = data && data_old ? OT_OK : OT_ERR_NO_MEMORY;
    if (st == OT_OK && ot__path_is_folder(path))
        st = ot__error(OT_ERR_FORMAT,
                       "%s: is a folder; checkpoints from before ONNX Runtime 1.16 cannot be read",
                       path);
    if (st == OT_OK)
        st = ot__file_map_open(&map, path);
    if (st == OT_OK)
        st = load_mapped(&map, path, data, data_old, out);
    ot__file_map_close(&map);
    ot__free(data);
    ot__free(data_old);
    return st;
}

ot_status ot_checkpoint_load_buffer(const void *bytes, size_t n_bytes, ot_checkpoint **out)
{
    return ot__flatbuf_read(bytes, n_bytes, "checkpoint", NULL, out);
}

// ---- saving ----

static ot_status sync_all(const ot_checkpoint *checkpoint)
{
    if (!checkpoint->sync)
        return OT_OK;
    for (int i = 0; i < checkpoint->n_parameters; i++)
        OT_TRY(checkpoint->sync(checkpoint->session, checkpoint->parameters[i], 0));
    return OT_OK;
}

static bool wants_external(const ot_checkpoint *checkpoint)
{
    size_t total = 0;

    for (int i = 0; i < checkpoint->n_parameters; i++)
        total += checkpoint->parameters[i]->value->n_bytes;
    return !checkpoint->is_nominal && (checkpoint->has_external_data || total >= external_from);
}

// Both files, in the order that keeps a matching pair at every moment.
static ot_status save_pair(const char *path, const ot__buf *main_file, const ot__buf *data_file)
{
    char *data = with_suffix(path, ".data"), *data_old = with_suffix(path, ".data.old");
    ot_status st = data && data_old ? OT_OK : OT_ERR_NO_MEMORY;

    if (st == OT_OK &&
        ot__path_exists(data_old)) { // left by a save cut short: loading puts it right
        ot_checkpoint *repaired;
        if (ot_checkpoint_load(path, &repaired) == OT_OK)
            ot_checkpoint_destroy(repaired);
        unlink(data_old);
    }
    if (st == OT_OK && ot__path_exists(path) && ot__path_exists(data)) {
        if (link(data, data_old) != 0)
            st = ot__error(OT_ERR_IO, "%s: cannot keep the old data as '%s'", data, data_old);
    }
    if (st == OT_OK)
        st = ot__file_write(data, data_file->data, data_file->length);
    if (st == OT_OK)
        st = ot__file_write(path, main_file->data, main_file->length);
    if (st == OT_OK)
        unlink(data_old);
    ot__free(data);
    ot__free(data_old);
    return st;
}

static ot_status save(ot_checkpoint *checkpoint, const char *path, ot__ckpt_write_options options)
{
    ot__buf buf = {0}, external = {0};
    char id[DATA_ID_LENGTH + 1];
    ot_status st = sync_all(checkpoint);

    if (st != OT_OK)
        return st;
    if (!options.nominal && wants_external(checkpoint)) {
        options.external = &external;
        format_id(&external, id);
        st = ot_checkpoint_set_string(checkpoint, PROPERTY_DATA_ID, id);
    }
    if (st == OT_OK)
        st = ot__flatbuf_write(checkpoint, &options, &buf);
    if (st == OT_OK && options.external) {
        ot__buf_text(&external, DATA_ID_MARK);
        ot__buf_text(&external, id);
        st = ot__buf_status(&external);
    }
    if (st == OT_OK)
        st = options.external ? save_pair(path, &buf, &external)
                              : ot__file_write(path, buf.data, buf.length);
    ot__buf_deinit(&buf);
    ot__buf_deinit(&external);
    return st;
}

ot_status ot_checkpoint_save(ot_checkpoint *checkpoint, const char *path, unsigned flags)
{
    return save(checkpoint, path, (ot__ckpt_write_options){.flags = flags});
}

ot_status ot__ckpt_save_artifact(ot_checkpoint *checkpoint, const char *path,
                                 const char *const *names, int n_names, bool nominal)
{
    return save(checkpoint, path,
                (ot__ckpt_write_options){
                    .names = names, .n_names = n_names, .as_artifact = true, .nominal = nominal});
}
