// SPDX-License-Identifier: Apache-2.0
#include "kernels/dnnl_primitives.h"

#include <stdatomic.h>
#include <string.h>

// ---- what the process has one of ----

static _Atomic(dnnl_engine_t) process_engine;
static _Atomic(dnnl_stream_t) process_stream;

// It is too late where the program has used oneDNN itself.
static void limit_dnnl_isa(void)
{
#if defined(__x86_64__)
    static const dnnl_cpu_isa_t limits[] = {dnnl_cpu_isa_sse41, dnnl_cpu_isa_avx2,
                                            dnnl_cpu_isa_avx512_core};

    if (ot__isa_wanted() < OT__ISA_LAST)
        (void)dnnl_set_max_cpu_isa(limits[ot__isa_wanted()]);
#endif
}

int ot__dnnl_isa(void)
{
    limit_dnnl_isa();
    return (int)dnnl_get_effective_cpu_isa();
}

dnnl_status_t ot__dnnl_engine(dnnl_engine_t *out)
{
    dnnl_engine_t made, expected = NULL;

    *out = atomic_load(&process_engine);
    if (*out != NULL)
        return dnnl_success;
    limit_dnnl_isa();
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

bool ot__dnnl_has_bf16(void)
{
    return ot__isa_best() >= OT__ISA_AVX512_BF16;
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

ot__dnnl_place ot__dnnl_scratch(ot__dnnl_primitives *p, size_t n_bytes)
{
    const ot__dnnl_place place = {.slot = -1, .offset = p->scratch_used};

    p->scratch_used += ot__align_up(n_bytes);
    p->scratch_bytes = OT_MAX(p->scratch_bytes, p->scratch_used);
    return place;
}

ot__dnnl_place ot__dnnl_scratch_chunks(ot__dnnl_primitives *p, size_t n_bytes, int64_t n_chunks)
{
    ot__dnnl_place place = ot__dnnl_scratch(p, ot__align_up(n_bytes) * (size_t)n_chunks);

    place.per_chunk = ot__align_up(n_bytes);
    return place;
}

ot__dnnl_place ot__dnnl_scratch_threads(ot__dnnl_primitives *p, size_t n_bytes)
{
    ot__dnnl_place place = ot__dnnl_scratch(p, ot__align_up(n_bytes) * (size_t)ot__parallel_max());

    place.per_thread = ot__align_up(n_bytes);
    return place;
}

void ot__dnnl_scratch_reuse(ot__dnnl_primitives *p)
{
    p->scratch_used = 0;
}

dnnl_status_t ot__dnnl_arg(ot__dnnl_primitives *p, int arg, ot__md md, ot__dnnl_place place)
{
    ot__dnnl_step *s = &p->step[p->n_steps - 1];
    dnnl_engine_t engine;

    if (s->n_args == OT__DNNL_MAX_ARGS)
        return dnnl_runtime_error;
    OT__DNNL_TRY(ot__dnnl_engine(&engine));
    s->place[s->n_args] = place;
    for (int t = 0; t < s->n_threads; t++) {
        dnnl_exec_arg_t *a = &s->arg[t * OT__DNNL_MAX_ARGS + s->n_args];

        a->arg = arg;
        OT__DNNL_TRY(dnnl_memory_create(&a->memory, md, engine, DNNL_MEMORY_NONE));
    }
    s->n_args++;
    return dnnl_success;
}

// A step of `n_threads` rows of arguments.
static dnnl_status_t new_step(ot__dnnl_primitives *p, int n_threads, ot__dnnl_step **out)
{
    ot__dnnl_step *s = &p->step[p->n_steps];

    if (p->n_steps == OT__DNNL_MAX_STEPS)
        return dnnl_runtime_error;
    s->arg = ot__alloc_zero((size_t)n_threads * OT__DNNL_MAX_ARGS, sizeof *s->arg);
    if (s->arg == NULL)
        return dnnl_out_of_memory;
    s->n_threads = n_threads;
    p->n_steps++;
    *out = s;
    return dnnl_success;
}

static size_t scratch_of(const_dnnl_primitive_desc_t pd, ot__md *md)
{
    *md = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    return *md == NULL ? 0 : dnnl_memory_desc_get_size(*md);
}

// "jit:avx512_core and brgconv:avx512_core"; what exceeds the room is left out.
static void note_name(ot__dnnl_primitives *p, const_dnnl_primitive_desc_t pd)
{
    dnnl_primitive_kind_t kind = dnnl_undefined_primitive;
    const size_t length = strlen(p->names);
    const char *name = NULL;

    if (dnnl_primitive_desc_query(pd, dnnl_query_primitive_kind, 0, &kind) != dnnl_success ||
        dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name) != dnnl_success ||
        kind == dnnl_reorder || name == NULL || strstr(p->names, name) != NULL)
        return;
    snprintf(p->names + length, sizeof p->names - length, "%s%s", length > 0 ? " and " : "", name);
}

void ot__dnnl_note(ot__dnnl_primitives *p, const char *text)
{
    const size_t length = strlen(p->names);

    snprintf(p->names + length, sizeof p->names - length, "%s", text);
}

const char *ot__dnnl_names(const ot__dnnl_primitives *p)
{
    return p->names;
}

dnnl_status_t ot__dnnl_add(ot__dnnl_primitives *p, const_dnnl_primitive_desc_t pd)
{
    ot__dnnl_step *s;
    ot__md scratch;
    const size_t n_bytes = scratch_of(pd, &scratch);

    OT__DNNL_TRY(new_step(p, 1, &s));
    note_name(p, pd);
    OT__DNNL_TRY(dnnl_primitive_create(&s->primitive, pd));
    return n_bytes == 0
               ? dnnl_success
               : ot__dnnl_arg(p, DNNL_ARG_SCRATCHPAD, scratch, ot__dnnl_scratch(p, n_bytes));
}

dnnl_status_t ot__dnnl_add_chunks(ot__dnnl_primitives *p, const_dnnl_primitive_desc_t pd,
                                  int64_t n_chunks)
{
    const int n_threads = ot__parallel_max();
    ot__dnnl_step *s;
    ot__md scratch;
    const size_t n_bytes = scratch_of(pd, &scratch);
    dnnl_status_t st;

    OT__DNNL_TRY(new_step(p, n_threads, &s));
    s->n_chunks = n_chunks;
    note_name(p, pd);
    ot__parallel_set(1);
    st = dnnl_primitive_create(&s->primitive, pd);
    ot__parallel_set(n_threads);
    return n_bytes == 0 || st != dnnl_success ? st
                                              : ot__dnnl_arg(p, DNNL_ARG_SCRATCHPAD, scratch,
                                                             ot__dnnl_scratch_threads(p, n_bytes));
}

dnnl_status_t ot__dnnl_add_sum(ot__dnnl_primitives *p, ot__dnnl_place from, int64_t n_chunks,
                               size_t n_bytes, ot__dnnl_place to)
{
    ot__dnnl_step *s;

    OT__DNNL_TRY(new_step(p, 1, &s));
    s->n_chunks = n_chunks;
    s->n_floats = (int64_t)(n_bytes / sizeof(float));
    s->place[0] = from;
    s->place[1] = to;
    return dnnl_success;
}

dnnl_status_t ot__dnnl_reorder(ot__dnnl_primitives *p, ot__md from, ot__dnnl_place from_place,
                               ot__md to, ot__dnnl_place to_place, int64_t n_chunks)
{
    const int n_threads = ot__parallel_max();
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_engine_t engine;
    dnnl_status_t st;

    OT__DNNL_TRY(ot__dnnl_engine(&engine));
    OT__DNNL_TRY(ot__dnnl_attr(false, &attr));
    if (n_chunks > 0)
        ot__parallel_set(1);
    st = dnnl_reorder_primitive_desc_create(&pd, from, engine, to, engine, attr);
    ot__parallel_set(n_threads);
    if (st == dnnl_success) {
        st = n_chunks > 0 ? ot__dnnl_add_chunks(p, pd, n_chunks) : ot__dnnl_add(p, pd);
        dnnl_primitive_desc_destroy(pd);
    }
    dnnl_primitive_attr_destroy(attr);
    if (st == dnnl_success)
        st = ot__dnnl_arg(p, DNNL_ARG_FROM, from, from_place);
    return st == dnnl_success ? ot__dnnl_arg(p, DNNL_ARG_TO, to, to_place) : st;
}

dnnl_status_t ot__dnnl_packed(ot__dnnl_primitives *p, ot__md have, ot__md want,
                              ot__dnnl_place *place)
{
    const ot__dnnl_place from = *place;

    if (dnnl_memory_desc_equal(have, want))
        return dnnl_success;
    *place = ot__dnnl_scratch(p, dnnl_memory_desc_get_size(want));
    return ot__dnnl_reorder(p, have, from, want, *place, 0);
}

dnnl_data_type_t ot__dnnl_type(ot_dtype dtype)
{
    return ot__dtype_is_narrow(dtype) ? dnnl_bf16 : dnnl_f32;
}

dnnl_status_t ot__dnnl_md(dnnl_memory_desc_t *md, ot_dtype dtype, const ot_shape *shape,
                          const ot_layout *layout)
{
    static const dnnl_format_tag_t plain[] = {0, dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd, dnnl_abcde};
    static const dnnl_format_tag_t blocked[2][3] = {{dnnl_nCw8c, dnnl_nChw8c, dnnl_nCdhw8c},
                                                    {dnnl_nCw16c, dnnl_nChw16c, dnnl_nCdhw16c}};
    static const dnnl_format_tag_t last[] = {dnnl_nwc, dnnl_nhwc, dnnl_ndhwc};
    const int block = ot__layout_channel_block(layout);
    const dnnl_data_type_t type = ot__dnnl_type(dtype);
    dnnl_dims_t dims;

    if (shape->ndim < 1 || shape->ndim > 5 || (layout != NULL && layout->ndim != shape->ndim))
        return dnnl_unimplemented;
    for (int k = 0; k < shape->ndim; k++)
        dims[k] = shape->dim[k];
    if (layout == NULL)
        return ot__md_tagged(md, type, shape->ndim, dims, plain[shape->ndim]);
    if (ot__layout_is_channels_last(layout))
        return ot__md_tagged(md, type, shape->ndim, dims, last[shape->ndim - 3]);
    if (!ot__layout_equal(layout, ot__layout_blocked(shape->ndim, block)))
        return dnnl_unimplemented;
    return ot__md_tagged(md, type, shape->ndim, dims, blocked[block == 16][shape->ndim - 3]);
}

// ---- running ----

// One run of a program.
typedef struct runner {
    void *const *slots;
    uint8_t *scratch;
    dnnl_stream_t stream;
} runner;

static void *address(const runner *r, const ot__dnnl_place *at)
{
    return at->slot >= 0 ? r->slots[at->slot] : r->scratch + at->offset;
}

static dnnl_status_t execute(const runner *r, const ot__dnnl_step *s, int64_t chunk, int thread)
{
    const dnnl_exec_arg_t *arg = &s->arg[thread * OT__DNNL_MAX_ARGS];

    for (int i = 0; i < s->n_args; i++) {
        const ot__dnnl_place *at = &s->place[i];
        uint8_t *data = address(r, at);

        data += (size_t)chunk * at->per_chunk + (size_t)thread * at->per_thread;
        OT__DNNL_TRY(dnnl_memory_set_data_handle(arg[i].memory, data));
    }
    return dnnl_primitive_execute(s->primitive, r->stream, s->n_args, arg);
}

static dnnl_status_t execute_chunks(const runner *r, const ot__dnnl_step *s)
{
    const int n_threads_before = ot__parallel_max();
    dnnl_status_t first = dnnl_success;

    // Primitives made for one thread run in one, also where the region has no more than that.
    ot__parallel_set(1);
#ifdef _OPENMP
#pragma omp parallel for schedule(static) num_threads(s->n_threads)
#endif
    for (int thread = 0; thread < s->n_threads; thread++) {
        const int64_t end = s->n_chunks * (thread + 1) / s->n_threads;
        dnnl_status_t st = dnnl_success;

        for (int64_t c = s->n_chunks * thread / s->n_threads; c < end && st == dnnl_success; c++)
            st = execute(r, s, c, thread);
        if (st != dnnl_success) {
#ifdef _OPENMP
#pragma omp atomic write
#endif
            first = st;
        }
    }
    ot__parallel_set(n_threads_before);
    return first;
}

typedef struct sum {
    float *to;
    const float *from;
    int64_t n_chunks, distance;
} sum;

static void sum_range(void *context, int64_t first, int64_t last)
{
    enum { BLOCK = 1024 };
    const sum *s = context;

    for (int64_t at = first; at < last; at += BLOCK) {
        const int64_t n = OT_MIN(last - at, (int64_t)BLOCK);
        float *to = s->to + at;

        if (s->to != s->from)
            memcpy(to, s->from + at, (size_t)n * sizeof(*to));
        for (int64_t c = 1; c < s->n_chunks; c++) {
            const float *from = s->from + c * s->distance + at;

            for (int64_t i = 0; i < n; i++)
                to[i] += from[i];
        }
    }
}

static void add_up(const runner *r, const ot__dnnl_step *s)
{
    sum all = {.to = address(r, &s->place[1]),
               .from = address(r, &s->place[0]),
               .n_chunks = s->n_chunks,
               .distance = (int64_t)(s->place[0].per_chunk / sizeof(float))};

    ot__parallel_for(s->n_floats, OT_PAR_MIN / s->n_chunks, sum_range, &all);
}

static dnnl_status_t run_program_step(const runner *r, const ot__dnnl_step *s)
{
    if (s->primitive == NULL) {
        add_up(r, s);
        return dnnl_success;
    }
    return s->n_chunks > 0 ? execute_chunks(r, s) : execute(r, s, 0, 0);
}

ot_status ot__dnnl_run(const ot__dnnl_primitives *p, void *const *slots, void *scratch)
{
    runner r = {.slots = slots, .scratch = scratch};
    dnnl_status_t st = stream(&r.stream);

    for (int s = 0; s < p->n_steps && st == dnnl_success; s++)
        st = run_program_step(&r, &p->step[s]);
    if (st == dnnl_success)
        st = dnnl_stream_wait(r.stream);
    return ot__dnnl_error(st, "run");
}

size_t ot__dnnl_scratch_bytes(const ot__dnnl_primitives *p)
{
    return p->scratch_bytes;
}

void ot__dnnl_destroy(ot__dnnl_primitives *p)
{
    if (p == NULL)
        return;
    for (int s = 0; s < p->n_steps; s++) {
        for (int i = 0; i < p->step[s].n_threads * OT__DNNL_MAX_ARGS; i++)
            dnnl_memory_destroy(p->step[s].arg[i].memory);
        ot__free(p->step[s].arg);
        dnnl_primitive_destroy(p->step[s].primitive);
    }
    ot__free(p);
}
