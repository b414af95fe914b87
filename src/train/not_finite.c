// SPDX-License-Identifier: Apache-2.0
// Why a loss is not finite: its cause is looked for in the data, in what the model was given, and
// only then in the steps that were made.
#include <math.h>
#include <stdio.h>

#include "train/loop.h"

enum { PLACE_MAX = 160 };
static const char advice[] = "lower the learning rate, or clip gradients";

// "nan", "inf" or "-inf": the sign of a nan means nothing.
static const char *print_number(double value)
{
    return isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

static ot_status blame_input(const ot__loop *l, const char *place)
{
    for (int i = 0; i < l->n_inputs; i++) {
        const int64_t at = ot__tensor_find_not_finite(l->inputs[i]);
        const int64_t rows = l->inputs[i]->shape.ndim > 0 ? l->inputs[i]->shape.dim[0] : 1;

        if (at >= 0)
            return ot__error(OT_ERR_NOT_FINITE,
                             "%s: input '%s' is %s in row %" PRId64 " of the batch", place,
                             ot_session_input_name(l->session, OT_MODE_TRAIN, i),
                             print_number(ot__tensor_get_f64(l->inputs[i], at)),
                             at / (ot_tensor_count(l->inputs[i]) / rows) + 1);
    }
    return OT_OK;
}

ot_status ot__loop_blame(const ot__loop *l, double loss)
{
    const bool is_first = ot_session_step_count(l->session) == l->start_step;
    ot__not_finite found;
    char place[PLACE_MAX];

    if (l->is_at_end)
        snprintf(place, sizeof place, "the loss is %s after step %" PRId64, print_number(loss),
                 ot_session_step_count(l->session));
    else
        snprintf(place, sizeof place, "the loss is %s at batch %" PRId64 " of epoch %" PRId64 "%s",
                 print_number(loss), l->at.batch + 1, l->at.epoch + 1,
                 is_first ? ", before any update" : "");
    OT_TRY(blame_input(l, place));
    if (ot__session_find_not_finite(l->session, true, &found))
        return ot__error(OT_ERR_NOT_FINITE, "%s: %s '%s' has %s%s%s", place, found.what, found.name,
                         print_number(found.value), is_first ? "" : ": ", is_first ? "" : advice);
    if (ot__session_find_not_finite(l->session, false, &found))
        return ot__error(OT_ERR_NOT_FINITE, "%s: %s%s%s '%s' has %s%s", place,
                         is_first ? "" : advice, is_first ? "" : "; or ", found.what, found.name,
                         print_number(found.value),
                         isnan(found.value) ? ""
                                            : "; a mask that covers a row needs a finite "
                                              "number, as -1e4");
    return ot__error(OT_ERR_NOT_FINITE, "%s: %s", place,
                     is_first ? "inputs, targets or parameters are too large" : advice);
}

static ot_status check_here(const ot__loop *l)
{
    ot__not_finite found;

    if (!ot__session_find_not_finite(l->session, true, &found))
        return OT_OK;
    return ot__error(OT_ERR_NOT_FINITE, "%s '%s' has %s after step %" PRId64 ": %s", found.what,
                     found.name, print_number(found.value), ot_session_step_count(l->session),
                     found.is_moment ? "scale inputs and targets, or clip gradients" : advice);
}

// Ranks may have parts of what is looked at.
ot_status ot__loop_check_parameters(ot__loop *l)
{
    const ot_status st = check_here(l);

    return ot__session_is_cut(l->session) ? ot__loop_agree(l, st, "parameters") : st;
}
