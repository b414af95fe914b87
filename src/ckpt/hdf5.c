// SPDX-License-Identifier: Apache-2.0
// Dicts to and from HDF5 files: what holds with and without libhdf5.
#include <string.h>

#include "ckpt/hdf5.h"

void ot__h5_link_name(const char *part, size_t length, ot__buf *out)
{
    out->length = 0;
    if (length == 0 || (length == 1 && part[0] == '.'))
        ot__buf_text(out, "%");
    ot__buf_append(out, part, length);
}

#if !OT_WITH_HDF5
static ot_status refuse_hdf5(const char *path)
{
    return ot__error(OT_ERR_UNSUPPORTED, "%s: this library was built without HDF5 (OT_WITH_HDF5)",
                     path);
}
#endif

ot_status ot_dict_save_hdf5(const ot_dict *dict, const char *path)
{
    OT_TRY(OT_GIVEN(dict));
    OT_TRY(OT_GIVEN(path));
#if OT_WITH_HDF5
    return ot__hdf5_save(dict, path);
#else
    return refuse_hdf5(path);
#endif
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
