// SPDX-License-Identifier: Apache-2.0
#include "op/attr_word.h"

#include <stdio.h>
#include <string.h>

int ot__attr_word(ot_infer *c, const ot_node *node, const char *attr, const char *const *words)
{
    const char *word = ot_attr_string(node, attr);
    char known[200] = "";
    size_t n = 0;

    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(word, words[i]) == 0)
            return i;
        if (n < sizeof known)
            n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i > 0 ? ", " : "", words[i]);
    }
    if (c != NULL)
        ot_infer_fail(c, "%s is '%.40s', expected one of %s", attr, word, known);
    return -1;
}
