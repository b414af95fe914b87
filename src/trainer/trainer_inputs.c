// SPDX-License-Identifier: Apache-2.0
// The inputs of a call against the description: how many, how many axes, sizes that are numbers,
// and symbols, which stand for one size in all inputs.
#include <inttypes.h>
#include <string.h>

#include "trainer/trainer.h"

// Descriptions have few symbols.
static ot__symbol *symbol_called(ot_trainer *trainer, const char *name)
{
    for (int i = 0; i < trainer->n_symbols; i++)
        if (strcmp(trainer->symbols[i].name, name) == 0)
            return &trainer->symbols[i];
    return NULL;
}

// Found in an earlier input or axis, or from now on.
static ot_status bind_symbol(ot_trainer *trainer, const char *name, int64_t size, int i_input,
                             int axis)
{
    ot__symbol *symbol = symbol_called(trainer, name);

    if (symbol->size < 0) {
        symbol->size = size;
        symbol->i_input = i_input;
        symbol->axis = axis;
        return OT_OK;
    }
    if (symbol->size == size)
        return OT_OK;
    return ot__error(OT_ERR_INVALID,
                     "input '%s': axis %d '%s' has size %" PRId64 ", but axis %d of input '%s' has "
                     "%" PRId64 ": one symbol stands for one size",
                     trainer->inputs[i_input].name, axis, name, size, symbol->axis,
                     trainer->inputs[symbol->i_input].name, symbol->size);
}

static ot_status check_axes(ot_trainer *trainer, int i_input, const ot_shape *shape)
{
    const ot__described *input = &trainer->inputs[i_input];

    if (shape->ndim != input->n_dims)
        return ot__error(OT_ERR_INVALID, "input '%s' has %d axes %s, expected %d", input->name,
                         shape->ndim, OT_SHAPE_TEXT(shape), input->n_dims);
    for (int axis = 0; axis < shape->ndim; axis++) {
        const ot_dim_description *dim = &input->dims[axis];

        if (dim->symbol != NULL)
            OT_TRY(bind_symbol(trainer, dim->symbol, shape->dim[axis], i_input, axis));
        else if (dim->size != shape->dim[axis])
            return ot__error(OT_ERR_INVALID,
                             "input '%s': axis %d has size %" PRId64 ", expected %" PRId64,
                             input->name, axis, shape->dim[axis], dim->size);
    }
    return OT_OK;
}

static void unbind_symbols(ot_trainer *trainer)
{
    for (int i = 0; i < trainer->n_symbols; i++)
        trainer->symbols[i].size = -1;
}

// Of a call with so many inputs, whose symbols stand for nothing yet.
static ot_status begin_inputs(ot_trainer *trainer, int n_inputs)
{
    if (n_inputs != trainer->n_inputs)
        return ot__error(OT_ERR_INVALID, "%d inputs given, expected the %d of the description",
                         n_inputs, trainer->n_inputs);
    unbind_symbols(trainer);
    return OT_OK;
}

ot_status ot__trainer_check_inputs(ot_trainer *trainer, const ot_tensor *const *inputs,
                                   int n_inputs)
{
    OT_TRY(begin_inputs(trainer, n_inputs));
    for (int i = 0; i < n_inputs; i++) {
        if (inputs[i] == NULL)
            return ot__error(OT_ERR_INVALID, "input '%s' is NULL", trainer->inputs[i].name);
        if (trainer->inputs[i].dims != NULL)
            OT_TRY(check_axes(trainer, i, &inputs[i]->shape));
    }
    return OT_OK;
}

ot_status ot__trainer_check_batch(ot_trainer *trainer, ot_mode mode, const ot_tensor *const *inputs)
{
    unbind_symbols(trainer);
    for (int i = 0; i < trainer->n_inputs; i++) {
        const ot__described *input = &trainer->inputs[i];
        const int place = mode == OT_MODE_TRAIN ? input->train : input->eval;

        if (place >= 0 && input->dims != NULL)
            OT_TRY(check_axes(trainer, i, &inputs[place]->shape));
    }
    return OT_OK;
}

ot_status ot__trainer_check_shapes(ot_trainer *trainer, const ot_shape *inputs, int n_inputs)
{
    OT_TRY(begin_inputs(trainer, n_inputs));
    for (int i = 0; i < n_inputs; i++) {
        int64_t count;

        if (inputs[i].ndim < 0 || inputs[i].ndim > (int)OT_COUNT(inputs[i].dim))
            return ot__error(OT_ERR_INVALID, "input '%s' has %d axes, expected at most %d",
                             trainer->inputs[i].name, inputs[i].ndim, (int)OT_COUNT(inputs[i].dim));
        if (!ot__shape_count(&inputs[i], &count))
            return ot__error(OT_ERR_INVALID, "input '%s' has shape %s, expected sizes from 0",
                             trainer->inputs[i].name, OT_SHAPE_TEXT(&inputs[i]));
        if (trainer->inputs[i].dims != NULL)
            OT_TRY(check_axes(trainer, i, &inputs[i]));
    }
    return OT_OK;
}
