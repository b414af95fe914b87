// SPDX-License-Identifier: Apache-2.0
// Parameters that are cut over the ranks of a job: what of them is here.
#include <string.h>

#include "ckpt/ckpt.h"

const ot_shape *ot__parameter_shape(const ot__parameter *parameter)
{
    static const ot_shape scalar = {0};

    if (parameter->value_sharding == NULL)
        return &parameter->value->shape;
    return parameter->is_scalar ? &scalar : ot_sharding_shape(parameter->value_sharding);
}

ot_status ot__ckpt_state_shape(const ot_checkpoint *checkpoint, const ot__parameter *parameter,
                               ot_shape *out)
{
    *out = parameter->value->shape;
    return parameter->state_sharding == NULL
               ? OT_OK
               : ot_sharding_local_shape(parameter->state_sharding, checkpoint->places, out);
}

static ot_status cut_boxes(const ot_checkpoint *checkpoint, const ot_sharding *sharding,
                           const ot_tensor *whole, int64_t n_boxes, ot_tensor *local)
{
    ot_shard_box *boxes;
    ot_status st;

    if (n_boxes == 0)
        return OT_OK;
    boxes = ot__alloc_zero((size_t)n_boxes, sizeof *boxes);
    OT_TRY(ot__made(boxes != NULL));
    st = ot_sharding_boxes(sharding, checkpoint->places, n_boxes, boxes, &n_boxes);
    for (int64_t i = 0; st == OT_OK && i < n_boxes; i++)
        ot__box_copy(local->data, &local->shape, boxes[i].local, whole->data,
                     ot_sharding_shape(sharding), boxes[i].box.offset, boxes[i].box.size,
                     ot_dtype_size(whole->dtype));
    ot__free(boxes);
    return st;
}

ot_status ot__ckpt_cut(const ot_checkpoint *checkpoint, const ot_sharding *sharding,
                       const ot_tensor *whole, ot_tensor **out)
{
    ot_tensor *local;
    ot_shape shape;
    int64_t n_boxes;
    ot_status st;

    OT_TRY(ot_sharding_boxes(sharding, checkpoint->places, 0, NULL, &n_boxes));
    OT_TRY(ot_sharding_local_shape(sharding, checkpoint->places, &shape));
    OT_TRY(ot_tensor_create(whole->dtype, &shape, &local));
    st = cut_boxes(checkpoint, sharding, whole, n_boxes, local);
    return OT_HAND_OUT(st, out, local, ot_tensor_destroy);
}

ot_status ot__ckpt_keep_sharding(ot_checkpoint *checkpoint, ot_sharding *sharding)
{
    if (!ot__grow(&checkpoint->shardings, &checkpoint->shardings_capacity, checkpoint->n_shardings,
                  sizeof(ot_sharding *))) {
        ot_sharding_destroy(sharding);
        return OT_ERR_NO_MEMORY;
    }
    checkpoint->shardings[checkpoint->n_shardings++] = sharding;
    return OT_OK;
}

// ---- copies of what is here ----

ot_status ot__ckpt_copy_part(const ot_checkpoint *checkpoint, int i, ot_tensor **out)
{
    ot__parameter *p = checkpoint->parameters[i];

    OT_TRY(ot__ckpt_enter(checkpoint));
    ot__ckpt_unpack(checkpoint, p);
    return ot__ckpt_leave(checkpoint, ot_tensor_clone(p->value, out));
}

ot_status ot__ckpt_cut_whole(const ot_checkpoint *checkpoint, int i, ot_tensor **whole)
{
    const ot__parameter *p = checkpoint->parameters[i];
    ot_tensor *part;

    if (p->value_sharding == NULL || ot__shape_equal(&(*whole)->shape, &p->value->shape))
        return OT_OK;
    OT_TRY(ot__ckpt_cut(checkpoint, p->value_sharding, *whole, &part));
    ot_tensor_destroy(*whole);
    *whole = part;
    return OT_OK;
}

static ot_status take_part(const ot_checkpoint *checkpoint, int i, const ot_tensor *part)
{
    ot__parameter *p = checkpoint->parameters[i];

    if (part->dtype != p->value->dtype || !ot__shape_equal(&part->shape, &p->value->shape))
        return ot__error(OT_ERR_INVALID, "what is here of parameter '%s' is %s%s, got %s%s",
                         p->name, ot_dtype_name(p->value->dtype), OT_SHAPE_TEXT(&p->value->shape),
                         ot_dtype_name(part->dtype), OT_SHAPE_TEXT(&part->shape));
    ot__ckpt_unpack(checkpoint, p);
    if (part->n_bytes > 0)
        memcpy(p->value->data, part->data, part->n_bytes);
    return OT_OK;
}

ot_status ot__ckpt_take_part(ot_checkpoint *checkpoint, int i, const ot_tensor *part)
{
    OT_TRY(ot__ckpt_enter(checkpoint));
    checkpoint->n_changes++;
    ot__ckpt_outdate(checkpoint);
    return ot__ckpt_leave(checkpoint, take_part(checkpoint, i, part));
}

// ---- what takes parameters whole ----

static ot_status refuse_cut_parameter(const ot__parameter *parameter, const char *what)
{
    return ot__error(OT_ERR_STATE,
                     "%sparameter '%s' is cut over ranks: ot_session_get_shards() or "
                     "ot_trainer_get_shards() gives its parts, ot_shards_save() writes them",
                     what, parameter->name);
}

ot_status ot__parameter_check_whole(const ot__parameter *parameter, bool is_gradient)
{
    if (is_gradient && parameter->gradient != NULL && parameter->state_sharding != NULL &&
        !ot__shape_equal(&parameter->gradient->shape, ot__parameter_shape(parameter)))
        return refuse_cut_parameter(parameter, "the gradient of ");
    return parameter->value_sharding == NULL ? OT_OK : refuse_cut_parameter(parameter, "");
}

ot_status ot__ckpt_check_whole(const ot_checkpoint *checkpoint, bool with_state)
{
    for (int i = 0; i < checkpoint->n_parameters; i++) {
        const ot__parameter *p = checkpoint->parameters[i];

        OT_TRY(ot__parameter_check_whole(p, false));
        if (with_state && p->state_sharding != NULL)
            return refuse_cut_parameter(p, "the optimizer's state of ");
    }
    return OT_OK;
}
