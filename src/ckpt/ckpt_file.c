// Checkpoints to and from files.
#include "ckpt/ckpt.h"

static const size_t external_from = (size_t)1800 << 20; // bytes, as ONNX Runtime's default

// ---- loading ----

ot_status ot_checkpoint_load(const char *path, ot_checkpoint **out)
{
    ot__file_map map = {0};
    ot_status st;

    *out = NULL;
    if (ot__path_is_folder(path))
        return ot__error(
            OT_ERR_FORMAT,
            "%s: is a folder; checkpoints from before ONNX Runtime 1.16 cannot be read", path);
    st = ot__file_map_open(&map, path);
    if (st == OT_OK)
        st = ot__flatbuf_read(map.data, map.size, path, out);
    ot__file_map_close(&map);
    return st;
}

ot_status ot_checkpoint_load_buffer(const void *bytes, size_t n_bytes, ot_checkpoint **out)
{
    return ot__flatbuf_read(bytes, n_bytes, NULL, out);
}

// ---- saving ----

static bool wants_external(const ot_checkpoint *checkpoint)
{
    size_t total = 0;

    for (int i = 0; i < checkpoint->n_parameters; i++)
        total += checkpoint->parameters[i]->value->n_bytes;
    return !checkpoint->is_nominal && (checkpoint->has_external_data || total >= external_from);
}

static ot_status save(ot_checkpoint *checkpoint, const char *path, ot__ckpt_write_options options)
{
    ot__buf buf = {0}, external = {0};
    ot_status st = OT_OK;

    for (int i = 0; i < checkpoint->n_parameters; i++)
        ot__ckpt_unpack(checkpoint, checkpoint->parameters[i]);
    if (!options.nominal && wants_external(checkpoint)) {
        options.external = &external;
        st = ot__ckpt_data_name(checkpoint, &options);
    }
    if (st == OT_OK)
        st = ot__flatbuf_write(checkpoint, &options, &buf);
    if (st == OT_OK && options.external)
        st = ot__ckpt_data_mark(checkpoint, &external);
    if (st == OT_OK)
        st = options.external ? ot__ckpt_save_pair(path, &buf, &external)
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
