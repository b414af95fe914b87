// SPDX-License-Identifier: Apache-2.0
// Lists of strings in metadata, as Python's repr() writes them, and lines of signatures.
#include <limits.h>
#include <string.h>

#include "graph/graph.h"

// The closing quote of the text that opens at `p`; NULL when there is none.
static const char *find_end(const char *p)
{
    const char quote = *p;

    for (p++; *p && *p != quote; p++)
        if (*p == '\\' && p[1])
            p++;
    return *p ? p : NULL;
}

// How many strings the list has; -1: it is no list of strings.
static int count_strings(const char *p)
{
    if (*p++ != '[')
        return -1;
    if (*p == ']')
        return p[1] == '\0' ? 0 : -1;
    for (int n = 1; n < INT_MAX; n++) {
        if ((*p != '\'' && *p != '"') || (p = find_end(p)) == NULL)
            return -1;
        p++;
        if (*p == ']')
            return p[1] == '\0' ? n : -1;
        if (p[0] != ',' || p[1] != ' ')
            return -1;
        p += 2;
    }
    return -1;
}

const char *const *ot__metadata_list(ot__arena *arena, const char *text, int *n)
{
    static const char *const none[1];
    const int count = count_strings(text);
    const char **items;
    char *to;

    *n = count;
    if (count <= 0)
        return none;
    // A text is shorter than what is written for it, so that they all go into one block.
    items = ot__arena_alloc(arena, (size_t)count * sizeof *items);
    to = ot__arena_alloc(arena, strlen(text));
    if (!items || !to)
        return NULL;
    text++;
    for (int i = 0; i < count; i++) {
        const char *end = find_end(text);

        items[i] = to;
        for (text++; text < end; text++) {
            text += *text == '\\';
            *to++ = *text;
        }
        *to++ = '\0';
        text = end + sizeof "', " - 1;
    }
    return items;
}

bool ot__metadata_input(char *line, const char **kind, const char **target)
{
    static const char key[] = " target=";
    char *colon = strstr(line, ": "), *open = colon ? strstr(colon, key) : NULL, *end = NULL;

    if (open)
        open += sizeof key - 1;
    if (open && (*open == '\'' || *open == '"'))
        end = strchr(open + 1, *open);
    if (!end)
        return false;
    *colon = *open = *end = '\0';
    *kind = colon + 2;
    *target = open + 1;
    return true;
}
