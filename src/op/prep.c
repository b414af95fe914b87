// SPDX-License-Identifier: Apache-2.0
// Preparing a kernel for one node and given shapes.
#include "op/op.h"

const ot_node *ot_prep_node(const ot_prep *p)
{
    return p->node;
}

int ot_prep_input_count(const ot_prep *p)
{
    return p->n_in;
}

int ot_prep_output_count(const ot_prep *p)
{
    return p->n_out;
}

const ot_arg *ot_prep_in(const ot_prep *p, int i)
{
    return i >= 0 && i < p->n_in ? p->in[i] : NULL;
}

const ot_arg *ot_prep_out(const ot_prep *p, int i)
{
    return i >= 0 && i < p->n_out ? p->out[i] : NULL;
}

const void *ot_prep_constant(const ot_prep *p, int i)
{
    return p->constant != NULL && i >= 0 && i < p->n_in ? p->constant[i] : NULL;
}

int ot_prep_threads(const ot_prep *p)
{
    return p->n_threads;
}

bool ot__prep_has_elements(const ot_prep *p)
{
    return p->in[0]->count > 0 || ot_prep_declines(p, "there is nothing to compute");
}

bool ot_prep_reproducible(const ot_prep *p)
{
    return p->reproducible;
}

void *ot_prep_state(ot_prep *p, size_t n_bytes)
{
    p->state = ot__alloc_zero(1, n_bytes);
    p->state_bytes = n_bytes;
    if (p->state == NULL)
        p->status = OT_ERR_NO_MEMORY;
    return p->state;
}

void ot_prep_scratch(ot_prep *p, size_t n_bytes)
{
    p->scratch_bytes = n_bytes;
}

const ot_layout *ot_prep_offered_in(const ot_prep *p, int i)
{
    const ot_arg *x = ot_prep_in(p, i);

    return x == NULL ? NULL : x->layout;
}

bool ot_prep_is_open(const ot_prep *p, int i)
{
    return p->open != NULL && i >= 0 && i < p->n_in && p->open[i];
}

void ot_prep_want_in(ot_prep *p, int i, const ot_layout *layout)
{
    if (p->want_in != NULL && i >= 0 && i < p->n_in)
        p->want_in[i] = layout;
}

void ot_prep_want_out(ot_prep *p, int i, const ot_layout *layout)
{
    if (p->want_out != NULL && i >= 0 && i < p->n_out)
        p->want_out[i] = layout;
}

ot_status ot_prep_fail(ot_prep *p, ot_status status, const char *format, ...)
{
    char label[160];
    va_list args;

    if (p->status != OT_OK)
        return p->status;
    va_start(args, format);
    p->status = ot__error_v(status, format, args);
    va_end(args);
    return ot__error_prefix(p->status, "%s", ot__node_label(p->node, label, sizeof(label)));
}

ot_status ot_run_fail(const ot_run *r, ot_status status, const char *format, ...)
{
    va_list args;

    (void)r;
    va_start(args, format);
    status = ot__error_v(status, format, args);
    va_end(args);
    return status;
}

ot_status ot__kernel_prepare(const ot_kernel *kernel, ot_prep *p)
{
    p->state = NULL;
    p->scratch_bytes = p->state_bytes = 0;
    p->status = OT_OK;
    if (kernel->prepare != NULL) {
        const ot_status st = kernel->prepare(p);

        p->status = p->status == OT_OK ? st : p->status;
    }
    if (p->status != OT_OK) {
        ot__kernel_release(kernel, p->state);
        p->state = NULL;
    }
    return p->status;
}

void ot__kernel_release(const ot_kernel *kernel, void *state)
{
    if (state != NULL && kernel->release != NULL)
        kernel->release(state);
    ot__free(state);
}
