// SPDX-License-Identifier: Apache-2.0
// Tensors of a state: whole where they are whole, in the parts that are here, or gathered.
#include <string.h>

#include "session/get_shards.h"

ot_status ot__leaf_open(const ot__state_writer *w, ot__state_leaf *l)
{
    l->dict = w->root;
    if (w->root == NULL)
        return ot_dict_create(&l->dict);
    for (int i = 0; i < l->n_path - 1; i++) {
        ot_dict *inner;

        OT_TRY(ot__dict_has(l->dict, l->path[i]) ? ot_dict_get_dict(l->dict, l->path[i], &inner)
                                                 : ot_dict_set_dict(l->dict, l->path[i], &inner));
        l->dict = inner;
    }
    if (ot__dict_has(l->dict, l->path[l->n_path - 1]))
        return ot__error(OT_ERR_INVALID, "two values of the state have the name '%s'",
                         l->path[l->n_path - 1]);
    return OT_OK;
}

// A function of the program may say nothing; what was said before is of something else.
static ot_status give_leaf(const ot__state_writer *w, const ot__state_leaf *l)
{
    ot__buf path = {0};
    ot_status st;

    ot__error_clear();
    st = w->sink(w->context, l->path, l->n_path, l->dict);
    if (st == OT_OK || *ot_error_message() != '\0')
        return st;
    for (int i = 0; i < l->n_path; i++)
        ot__buf_printf(&path, "%s%s", i > 0 ? "/" : "", l->path[i]);
    st = ot__error(st, "the sink has failed at '%s'", path.failed ? "" : path.data);
    ot__buf_deinit(&path);
    return st;
}

ot_status ot__leaf_close(const ot__state_writer *w, ot__state_leaf *l, ot_status st)
{
    if (w->root != NULL)
        return st;
    OT_THEN(st, give_leaf(w, l));
    ot_dict_destroy(l->dict);
    return st;
}

// ---- tensors that are here ----

static bool is_transposed_name(const ot__state_name *name)
{
    return name->how != NULL && name->how->transform == OT_NAME_TRANSPOSE;
}

// Takes `tensor` over.
static ot_status take_leaf_tensor(ot_dict *dict, const char *key, ot_tensor *tensor)
{
    const ot_status st = ot_dict_take_tensor(dict, key, tensor);

    if (st != OT_OK)
        ot_tensor_destroy(tensor);
    return st;
}

// Row-major elements in the axes of the checkpoint, as a tensor in those of state dicts. `own`: of
// the session, else they may be given up.
static ot_status tensor_of(const ot__state_name *name, const ot_shape *shape, ot_dtype dtype,
                           void *data, size_t n_bytes, bool is_view, ot_tensor **out)
{
    const ot_shape expected = *shape;

    if (is_transposed_name(name)) {
        ot_shape turned = expected;

        turned.dim[name->how->axes[0]] = expected.dim[name->how->axes[1]];
        turned.dim[name->how->axes[1]] = expected.dim[name->how->axes[0]];
        OT_TRY(ot_tensor_create(dtype, &turned, out));
        ot__transpose((*out)->data, data, &expected, name->how->axes, ot_dtype_size(dtype));
        return OT_OK;
    }
    if (is_view)
        return ot_tensor_wrap(dtype, &expected, data, n_bytes, out);
    OT_TRY(ot_tensor_create(dtype, &expected, out));
    if (n_bytes > 0)
        memcpy((*out)->data, data, n_bytes);
    return OT_OK;
}

static bool is_reshaped(const ot__state_name *name)
{
    return name->how != NULL && name->how->transform == OT_NAME_RESHAPE;
}

static ot_status put_whole(const ot__state_writer *w, const ot__state_name *name, ot__state_leaf *l,
                           const ot_tensor *tensor)
{
    const bool is_view = w->call->options.copy == 0;
    const ot_shape *shape = is_reshaped(name) ? name->how->shape : &tensor->shape;
    ot_tensor *out;

    OT_TRY(tensor_of(name, shape, tensor->dtype, tensor->data, tensor->n_bytes, is_view, &out));
    out->layout = name->parameter->layout;
    OT_TRY(take_leaf_tensor(l->dict, l->path[l->n_path - 1], out));
    return is_view && !is_transposed_name(name)
               ? ot__dict_mark_view(l->dict, l->path[l->n_path - 1], w->call->checkpoint)
               : OT_OK;
}

// ---- parts ----

typedef struct part_list {
    ot_box *boxes;
    ot_tensor **parts;
    int n;
} part_list;

static void free_parts(part_list *list, bool with_parts)
{
    for (int i = 0; i < list->n && with_parts; i++)
        ot_tensor_destroy(list->parts[i]);
    ot__free(list->boxes);
    ot__free(list->parts);
}

static ot_status add_part(const ot__state_writer *w, const ot__state_name *name,
                          const ot_tensor *local, const ot_shard_box *box, part_list *list)
{
    static const int64_t zero[OT_MAX_NDIM];
    const ot_box in_state = ot__box_in_state(name, &box->box);
    ot_shape shape = {.ndim = in_state.ndim};
    const bool is_all = ot__box_count(&box->box) == ot_tensor_count(local);
    ot_tensor *copy = NULL;
    ot_status st = OT_OK;

    memcpy(shape.dim, box->box.size, sizeof shape.dim);
    if (!is_all) {
        OT_TRY(ot_tensor_create(local->dtype, &shape, &copy));
        ot__box_copy(copy->data, &shape, zero, local->data, &local->shape, box->local,
                     box->box.size, ot_dtype_size(local->dtype));
    }
    if (copy != NULL && !is_transposed_name(name))
        list->parts[list->n] = copy;
    else {
        const ot_tensor *from = copy != NULL ? copy : local;

        st = tensor_of(name, &shape, local->dtype, from->data, from->n_bytes,
                       w->call->options.copy == 0, &list->parts[list->n]);
        ot_tensor_destroy(copy);
    }
    if (st == OT_OK)
        list->boxes[list->n++] = in_state;
    return st;
}

static ot_status put_parts(const ot__state_writer *w, const ot__state_name *name, ot__state_leaf *l,
                           const ot_tensor *local, const ot_sharding *sharding)
{
    const char *key = l->path[l->n_path - 1];
    const ot_shape whole = ot__state_shape(name);
    part_list list = {0};
    ot_shard_box *boxes;
    int64_t n;
    ot_status st;

    if (is_reshaped(name))
        return ot__error(OT_ERR_UNSUPPORTED,
                         "names: '%s' is cut over ranks and has another shape: gather it",
                         name->name);
    OT_TRY(ot_sharding_boxes(sharding, w->call->checkpoint->places, 0, NULL, &n));
    boxes = ot__alloc_zero((size_t)n + 1, sizeof *boxes);
    list.boxes = ot__alloc_zero((size_t)n + 1, sizeof *list.boxes);
    list.parts = ot__alloc_zero((size_t)n + 1, sizeof(ot_tensor *));
    st = ot__made(boxes != NULL && list.boxes != NULL && list.parts != NULL);
    if (n > 0)
        OT_THEN(st, ot_sharding_boxes(sharding, w->call->checkpoint->places, n, boxes, &n));
    for (int64_t i = 0; i < n && st == OT_OK; i++)
        st = add_part(w, name, local, &boxes[i], &list);
    OT_THEN(st, ot_dict_take_shards(l->dict, key, local->dtype, &whole, list.boxes, list.parts,
                                    list.n));
    free_parts(&list, st != OT_OK);
    ot__free(boxes);
    OT_THEN(st, w->call->options.copy == 0 ? ot__dict_mark_view(l->dict, key, w->call->checkpoint)
                                           : OT_OK);
    return st;
}

// ---- what is made whole ----

// On ranks that get it a tensor of the checkpoint's shape; NULL on the others.
static ot_status gather_whole(const ot__state_writer *w, const ot__state_name *name,
                              const ot_tensor *local, const ot_sharding *sharding, ot_tensor **out)
{
    const ot__state_call *call = w->call;
    ot__parts_of_ranks parts = {0};
    ot_status st = OT_OK;

    if (call->options.comm == NULL)
        return ot__error(OT_ERR_STATE,
                         "parameter '%s' is cut over ranks: to gather it needs comm of the options",
                         name->parameter->name);
    if (w->is_here)
        st = ot_tensor_create(local->dtype, ot__parameter_shape(name->parameter), out);
    OT_THEN(st, ot__parts_make(call, sharding, local->dtype, false, &parts));
    st = ot__state_agree(call, st);
    OT_THEN(st, ot__parts_gather(call, &parts, local, w->is_here ? (*out)->data : NULL));
    if (call->options.gather == OT_GATHER_ALL)
        OT_THEN(st, ot__comm_spread(call->options.comm, OT_TAG_BROADCAST, 0, (*out)->data,
                                    (*out)->n_bytes, call->what));
    ot__parts_free(&parts);
    return st;
}

static ot_status put_gathered(const ot__state_name *name, ot__state_leaf *l, ot_tensor *whole)
{
    ot_tensor *turned;

    if (is_reshaped(name))
        whole->shape = *name->how->shape;
    if (!is_transposed_name(name))
        return take_leaf_tensor(l->dict, l->path[l->n_path - 1], whole);
    OT_TRY(
        tensor_of(name, &whole->shape, whole->dtype, whole->data, whole->n_bytes, false, &turned));
    ot_tensor_destroy(whole);
    return take_leaf_tensor(l->dict, l->path[l->n_path - 1], turned);
}

// ---- a tensor ----

ot_status ot__leaf_put_tensor(const ot__state_writer *w, const ot__state_name *name,
                              ot__state_leaf *l, const ot_tensor *local,
                              const ot_sharding *sharding, ot_status *failed)
{
    const bool gathers = w->call->options.gather != OT_GATHER_NONE && ot__sharding_cuts(sharding);
    ot_tensor *whole = NULL;
    ot_status st = *failed;

    if (!w->call->keeps_layouts)
        ot__ckpt_unpack(w->call->checkpoint, name->parameter);
    if (gathers) {
        if (w->call->options.comm != NULL)
            OT_TRY(ot__state_agree(w->call, *failed));
        st = gather_whole(w, name, local, sharding, &whole);
        if (st != OT_OK) {
            ot_tensor_destroy(whole);
            return st;
        }
    }
    if (!w->is_here || st != OT_OK)
        return OT_OK;
    st = ot__leaf_open(w, l);
    if (st == OT_OK) {
        st = gathers                       ? put_gathered(name, l, whole)
             : ot__sharding_cuts(sharding) ? put_parts(w, name, l, local, sharding)
                                           : put_whole(w, name, l, local);
        st = ot__leaf_close(w, l, st);
    } else {
        ot_tensor_destroy(whole);
    }
    *failed = st;
    return OT_OK;
}
