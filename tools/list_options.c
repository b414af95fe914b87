// SPDX-License-Identifier: Apache-2.0
// Prints the table of options, a line each: path, type, default, effect, help, separated by tabs.
// gen_options_md.py makes docs/options.md of it.
#include <math.h>

#include "trainer/options.h"

static const char *const types[] = {
    [OT_OPTION_BOOL] = "bool",
    [OT_OPTION_INT] = "int",
    [OT_OPTION_BYTES] = "int or text",
    [OT_OPTION_DECAY] = "float, 0 to below 1",
    [OT_OPTION_CHOICE] = "text",
    [OT_OPTION_FLAGS] = "text",
    [OT_OPTION_TEXT] = "text",
    [OT_OPTION_NAMES] = "list of texts",
    [OT_OPTION_MAP] = "objects by name",
    [OT_OPTION_INT_MAP] = "int by name",
    [OT_OPTION_INTS_MAP] = "lists of int by name",
    [OT_OPTION_LR] = "schedule",
    [OT_OPTION_SCALER] = "loss scaler",
    [OT_OPTION_SESSION] = "null",
    [OT_OPTION_NONE] = "null",
};

static void print_type(const ot__option *o)
{
    printf("%s", types[o->kind]);
    if (o->kind == OT_OPTION_INT && isfinite(o->high))
        printf(", %.0f to %.0f", o->low, o->high);
    else if (o->kind == OT_OPTION_INT)
        printf(", from %.0f", o->low);
    for (const char *const *choice = o->kind != OT_OPTION_TEXT ? o->choices : NULL;
         choice && *choice; choice++)
        printf("%s`%s`", choice == o->choices ? ": " : ", ", *choice);
    if (o->is_nullable && o->kind != OT_OPTION_SESSION && o->kind != OT_OPTION_NONE)
        printf(", or null");
}

int main(void)
{
    for (const ot__option *o = ot__options; o->path; o++) {
        printf("%s\t", o->path);
        print_type(o);
        printf("\t%s\t%s\t%s\n", o->fallback, ot__option_effect_text(o->effect), o->help);
    }
    return 0;
}
