// SPDX-License-Identifier: Apache-2.0
// Memory that tensors of a checkpoint lie in together.
#include "ckpt/ckpt.h"

struct ot__ckpt_block {
    struct ot__ckpt_block *next;
    unsigned char *data;
    size_t n_bytes;
};

ot_status ot__ckpt_add_block(ot_checkpoint *checkpoint, size_t n_bytes, void **out)
{
    struct ot__ckpt_block *block = ot__alloc_zero(1, sizeof *block);

    *out = NULL;
    OT_TRY(ot__made(block));
    block->n_bytes = OT_MAX(n_bytes, (size_t)1);
    block->data = ot__alloc_aligned(block->n_bytes);
    if (!block->data) {
        ot__free(block);
        return OT_ERR_NO_MEMORY;
    }
    block->next = checkpoint->blocks;
    checkpoint->blocks = block;
    *out = block->data;
    return OT_OK;
}

static bool lies_in(const ot_tensor *t, const struct ot__ckpt_block *block)
{
    const uintptr_t first = (uintptr_t)block->data;

    return t && (uintptr_t)t->data >= first && (uintptr_t)t->data < first + block->n_bytes;
}

static bool is_used(const ot_checkpoint *checkpoint, const struct ot__ckpt_block *block)
{
    for (int i = 0; i < checkpoint->n_parameters; i++) {
        const ot__parameter *p = checkpoint->parameters[i];

        if (lies_in(p->value, block) || lies_in(p->gradient, block))
            return true;
    }
    return false;
}

// That of a link goes.
static void drop_block(struct ot__ckpt_block **link)
{
    struct ot__ckpt_block *block = *link;

    *link = block->next;
    ot__free_aligned(block->data);
    ot__free(block);
}

void ot__ckpt_drop_blocks(ot_checkpoint *checkpoint)
{
    struct ot__ckpt_block **link = &checkpoint->blocks;

    while (*link)
        if (is_used(checkpoint, *link))
            link = &(*link)->next;
        else
            drop_block(link);
}

void ot__ckpt_drop_block(ot_checkpoint *checkpoint, const void *data)
{
    struct ot__ckpt_block **link = &checkpoint->blocks;

    while (*link && (*link)->data != data)
        link = &(*link)->next;
    if (*link)
        drop_block(link);
}
