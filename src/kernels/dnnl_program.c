#include "kernels/dnnl_program.h"

#include <stdatomic.h>

enum { ALIGNMENT = 64 };

// ---- what the process has one of ----

static _Atomic(dnnl_engine_t) process_engine;
static _Atomic(dnnl_stream_t) process_stream;

dnnl_status_t ot__dnnl_engine(dnnl_engine_t *out)
{
    dnnl_engine_t made, expected = NULL;

    *out = atomic_load(&process_engine);
    if (*out != NULL)
        return dnnl_success;
    OT__DNNL_TRY(dnnl_engine_create(&made, dnnl_cpu, 0));
    // Of two threads that come here at once, one keeps its engine.
    if (!atomic_compare_exchange_strong(&process_engine, &expected, made)) {
        dnnl_engine_destroy(made);
        made = expected;
    }
    *out = made;
    return dnnl_success;
}

// A stream of the processor runs what it is given at once and holds no state of its own.
static dnnl_status_t stream(dnnl_stream_t *out)
{
    dnnl_stream_t made, expected = NULL;
    dnnl_engine_t engine;

    *out = atomic_load(&process_stream);
    if (*out != NULL)
        return dnnl_success;
    OT__DNNL_TRY(ot__dnnl_engine(&engine));
    OT__DNNL_TRY(dnnl_stream_create(&made, engine, dnnl_stream_default_flags));
    if (!atomic_compare_exchange_strong(&process_stream, &expected, made)) {
        dnnl_stream_destroy(made);
        made = expected;
    }
    *out = made;
    return dnnl_success;
}

ot_status ot__dnnl_error(dnnl_status_t status, const char *what)
{
    if (status == dnnl_success)
        return OT_OK;
    if (status == dnnl_out_of_memory)
        return ot__error(OT_ERR_NO_MEMORY, "oneDNN: out of memory for %s", what);
    if (status == dnnl_unimplemented)
        return ot__error(OT_ERR_UNSUPPORTED, "oneDNN: no %s for this problem", what);
    return ot__error(OT_ERR_INTERNAL, "oneDNN: %s gives status %d", what, (int)status);
}

// ---- building ----

dnnl_status_t ot__dnnl_attr(bool relu, dnnl_primitive_attr_t *out)
{
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t st = dnnl_primitive_attr_create(out);

    if (st != dnnl_success)
        return st;
    st = dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
    if (st == dnnl_success && relu) {
        st = dnnl_post_ops_create(&ops);
        if (st == dnnl_success)
            st = ot__dnnl_append_eltwise(ops, dnnl_eltwise_relu, 0.0F, 0.0F);
        if (st == dnnl_success)
            st = dnnl_primitive_attr_set_post_ops(*out, ops);
        dnnl_post_ops_destroy(ops);
    }
    if (st != dnnl_success)
        dnnl_primitive_attr_destroy(*out);
    return st;
}

ot__dnnl_place ot__dnnl_scratch(ot__dnnl_program *p, size_t n_bytes)
{
    const ot__dnnl_place place = {-1, p->scratch_used};

    p->scratch_used += (n_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    p->scratch_bytes = OT_MAX(p->scratch_bytes, p->scratch_used);
    return place;
}

void ot__dnnl_scratch_reuse(ot__dnnl_program *p)
{
    p->scratch_used = 0;
}

dnnl_status_t ot__dnnl_arg(ot__dnnl_program *p, int arg, ot__md md, ot__dnnl_place place)
{
    ot__dnnl_step *s = &p->step[p->n_steps - 1];
    dnnl_engine_t engine;

    if (s->n_args == OT__DNNL_MAX_ARGS)
        return dnnl_runtime_error;
    OT__DNNL_TRY(ot__dnnl_engine(&engine));
    s->arg[s->n_args].arg = arg;
    OT__DNNL_TRY(dnnl_memory_create(&s->arg[s->n_args].memory, md, engine, DNNL_MEMORY_NONE));
    s->place[s->n_args++] = place;
    return dnnl_success;
}

dnnl_status_t ot__dnnl_add(ot__dnnl_program *p, const_dnnl_primitive_desc_t pd)
{
    const ot__md scratch = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    const size_t n_bytes = scratch == NULL ? 0 : dnnl_memory_desc_get_size(scratch);

    if (p->n_steps == OT__DNNL_MAX_STEPS)
        return dnnl_runtime_error;
    OT__DNNL_TRY(dnnl_primitive_create(&p->step[p->n_steps].primitive, pd));
    p->n_steps++;
    return n_bytes == 0
               ? dnnl_success
               : ot__dnnl_arg(p, DNNL_ARG_SCRATCHPAD, scratch, ot__dnnl_scratch(p, n_bytes));
}

dnnl_status_t ot__dnnl_reorder(ot__dnnl_program *p, ot__md from, ot__dnnl_place from_place,
                               ot__md to, ot__dnnl_place to_place)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_engine_t engine;
    dnnl_status_t st;

    OT__DNNL_TRY(ot__dnnl_engine(&engine));
    OT__DNNL_TRY(ot__dnnl_attr(false, &attr));
    st = dnnl_reorder_primitive_desc_create(&pd, from, engine, to, engine, attr);
    if (st == dnnl_success) {
        st = ot__dnnl_add(p, pd);
        dnnl_primitive_desc_destroy(pd);
    }
    dnnl_primitive_attr_destroy(attr);
    if (st == dnnl_success)
        st = ot__dnnl_arg(p, DNNL_ARG_FROM, from, from_place);
    return st == dnnl_success ? ot__dnnl_arg(p, DNNL_ARG_TO, to, to_place) : st;
}

dnnl_status_t ot__dnnl_packed(ot__dnnl_program *p, ot__md have, ot__md want, ot__dnnl_place *place)
{
    const ot__dnnl_place from = *place;

    if (dnnl_memory_desc_equal(have, want))
        return dnnl_success;
    *place = ot__dnnl_scratch(p, dnnl_memory_desc_get_size(want));
    return ot__dnnl_reorder(p, have, from, want, *place);
}

dnnl_status_t ot__dnnl_md(dnnl_memory_desc_t *md, const ot_shape *shape, const ot_form *form)
{
    static const dnnl_format_tag_t plain[] = {0, dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd, dnnl_abcde};
    static const dnnl_format_tag_t blocked[2][3] = {{dnnl_nCw8c, dnnl_nChw8c, dnnl_nCdhw8c},
                                                    {dnnl_nCw16c, dnnl_nChw16c, dnnl_nCdhw16c}};
    static const dnnl_format_tag_t last[] = {dnnl_nwc, dnnl_nhwc, dnnl_ndhwc};
    const int block = ot__form_channel_block(form);
    dnnl_dims_t dims;

    if (shape->ndim < 1 || shape->ndim > 5 || (form != NULL && form->ndim != shape->ndim))
        return dnnl_unimplemented;
    for (int k = 0; k < shape->ndim; k++)
        dims[k] = shape->dim[k];
    if (form == NULL)
        return ot__md_tagged(md, shape->ndim, dims, plain[shape->ndim]);
    if (ot__form_is_channels_last(form))
        return ot__md_tagged(md, shape->ndim, dims, last[shape->ndim - 3]);
    if (!ot__form_equal(form, ot__form_blocked(shape->ndim, block)))
        return dnnl_unimplemented;
    return ot__md_tagged(md, shape->ndim, dims, blocked[block == 16][shape->ndim - 3]);
}

// ---- running ----

ot_status ot__dnnl_run(const ot__dnnl_program *p, void *const *slots, void *scratch)
{
    dnnl_status_t st;
    dnnl_stream_t on;

    st = stream(&on);
    for (int s = 0; s < p->n_steps && st == dnnl_success; s++) {
        const ot__dnnl_step *step = &p->step[s];

        for (int i = 0; i < step->n_args && st == dnnl_success; i++) {
            const ot__dnnl_place *at = &step->place[i];

            st = dnnl_memory_set_data_handle(step->arg[i].memory,
                                             at->slot >= 0 ? slots[at->slot]
                                                           : (uint8_t *)scratch + at->offset);
        }
        if (st == dnnl_success)
            st = dnnl_primitive_execute(step->primitive, on, step->n_args, step->arg);
    }
    if (st == dnnl_success)
        st = dnnl_stream_wait(on);
    return ot__dnnl_error(st, "run");
}

size_t ot__dnnl_scratch_bytes(const ot__dnnl_program *p)
{
    return p->scratch_bytes;
}

void ot__dnnl_destroy(ot__dnnl_program *p)
{
    if (p == NULL)
        return;
    for (int s = 0; s < OT__DNNL_MAX_STEPS; s++) {
        for (int i = 0; i < OT__DNNL_MAX_ARGS; i++)
            dnnl_memory_destroy(p->step[s].arg[i].memory);
        dnnl_primitive_destroy(p->step[s].primitive);
    }
    ot__free(p);
}
