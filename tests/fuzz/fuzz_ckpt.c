// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>
#include <stdint.h>

#include "ckpt/ckpt.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    ot_checkpoint *checkpoint;

    if (ot_checkpoint_load_buffer(bytes, n_bytes, &checkpoint) == OT_OK) {
        ot__pieces pieces = {0};
        (void)ot__flatbuf_write(
            checkpoint, &(ot__ckpt_write_options){.flags = OT_CHECKPOINT_OPTIMIZER_STATE}, &pieces);
        ot__pieces_deinit(&pieces);
    }
    ot_checkpoint_destroy(checkpoint);
    return 0;
}
