// SPDX-License-Identifier: Apache-2.0
// Why a kernel runs a node and others do not, for those who look at plans.
#include <string.h>

#include "op/op.h"

static bool reasons_say(const ot_prep *p, const char *reason, bool answer)
{
    if (p->reasons != NULL)
        p->reasons->said = reason;
    return answer;
}

bool ot_prep_takes(const ot_prep *p, const char *reason)
{
    return reasons_say(p, reason, true);
}

bool ot_prep_declines(const ot_prep *p, const char *reason)
{
    return reasons_say(p, reason, false);
}

// Of entries with the same name the one that was asked last has come furthest.
void ot__reasons_decline(ot__reasons *reasons, const ot_kernel *kernel, const char *reason)
{
    int i = 0;

    if (reasons == NULL)
        return;
    while (i < reasons->n_declined && strcmp(reasons->declined[i].kernel, kernel->name) != 0)
        i++;
    if (i == (int)OT_COUNT(reasons->declined))
        return;
    reasons->declined[i] = (struct ot__declined){kernel->name, reason};
    reasons->n_declined = OT_MAX(reasons->n_declined, i + 1);
}

void ot__reasons_text(const ot__reasons *reasons, const ot_kernel *taken, ot__buf *out)
{
    const char *between = "";

    if (reasons->taken != NULL) {
        ot__buf_text(out, reasons->taken);
        between = "; ";
    }
    for (int i = 0; i < reasons->n_declined; i++) {
        if (strcmp(reasons->declined[i].kernel, taken->name) == 0)
            continue;
        ot__buf_printf(out, "%snot %s (%s)", between, reasons->declined[i].kernel,
                       reasons->declined[i].reason);
        between = "; ";
    }
}
