// SPDX-License-Identifier: Apache-2.0
// What is wrong with an input: all of it, nested as the input is. A place has the messages about it
// and the places within it.
#include <string.h>

#include "trainer/options.h"

struct ot__violation {
    const char *name;
    struct ot__violation *next, *children, *last_child;
    struct message {
        const char *text;
        struct message *next;
    } * messages, *last_message;
};

enum { MOST_VIOLATIONS = 1000 }; // more are counted alone

ot_status ot__violations_init(ot__violations *v)
{
    *v = (ot__violations){.arena = ot__arena_create()};
    return ot__made(v->arena);
}

void ot__violations_deinit(ot__violations *v)
{
    ot__arena_destroy(v->arena);
    ot__buf_deinit(&v->text);
}

static void enter_place(ot__violations *v, const char *name, size_t index)
{
    if (v->depth < (int)OT_COUNT(v->path)) {
        v->path[v->depth].name = name;
        v->path[v->depth].index = index;
    }
    v->depth++;
}

void ot__violations_enter(ot__violations *v, const char *name)
{
    enter_place(v, name, 0);
}

void ot__violations_enter_index(ot__violations *v, size_t index)
{
    enter_place(v, NULL, index);
}

void ot__violations_leave(ot__violations *v)
{
    v->depth--;
}

// The name on level `i` of where we are.
static const char *place_name(const ot__violations *v, int i, char text[24])
{
    if (v->path[i].name)
        return v->path[i].name;
    snprintf(text, 24, "%zu", v->path[i].index);
    return text;
}

static ot__violation *violation_child(ot__violations *v, ot__violation *place, const char *name)
{
    ot__violation *child = place->children;

    while (child && strcmp(child->name, name) != 0)
        child = child->next;
    if (child)
        return child;
    child = ot__arena_alloc(v->arena, sizeof *child);
    if (!child)
        return NULL;
    child->name = ot__arena_strdup(v->arena, name);
    if (!child->name)
        return NULL;
    if (place->last_child)
        place->last_child->next = child;
    else
        place->children = child;
    return place->last_child = child;
}

static ot__violation *violation_here(ot__violations *v)
{
    ot__violation *place = v->root;
    char text[24];

    if (!place)
        place = v->root = ot__arena_alloc(v->arena, sizeof *place);
    for (int i = 0; place && i < OT_MIN(v->depth, (int)OT_COUNT(v->path)); i++)
        place = violation_child(v, place, place_name(v, i, text));
    return place;
}

static bool add_message(ot__violations *v, const char *text)
{
    ot__violation *place = violation_here(v);
    struct message *added = place ? ot__arena_alloc(v->arena, sizeof *added) : NULL;

    if (!added)
        return false;
    added->text = text;
    if (place->last_message)
        place->last_message->next = added;
    else
        place->messages = added;
    place->last_message = added;
    return true;
}

static void describe_violation(ot__violations *v, const char *text, const char *hint)
{
    enum { LONG_ENOUGH = 1 << 12 }; // messages have room for less
    char name[24];

    if (v->text.length > LONG_ENOUGH)
        return;
    ot__buf_text(&v->text, v->text.length > 0 ? "; " : "");
    for (int i = 0; i < OT_MIN(v->depth, (int)OT_COUNT(v->path)); i++)
        ot__buf_printf(&v->text, "%s%.128s", i > 0 ? "." : "", place_name(v, i, name));
    ot__buf_printf(&v->text, "%s%s%s", v->depth > 0 ? ": " : "", text, hint);
}

int ot__violations_enter_path(ot__violations *v, const char *path)
{
    const int depth = v->depth;
    char *name = ot__arena_strdup(v->arena, path);

    if (!name)
        v->status = OT_ERR_NO_MEMORY;
    while (name) {
        char *rest = ot__cut(name, '.');

        ot__violations_enter(v, name);
        name = rest;
    }
    return depth;
}

void ot__violations_leave_to(ot__violations *v, int depth)
{
    v->depth = depth;
}

void ot__violate(ot__violations *v, const char *hint, const char *format, ...)
{
    const char *text;
    va_list args;

    if (v->count++ >= MOST_VIOLATIONS)
        return;
    va_start(args, format);
    text = ot__arena_vprintf(v->arena, format, args);
    va_end(args);
    if (!text || !add_message(v, text)) {
        v->status = OT_ERR_NO_MEMORY;
        return;
    }
    describe_violation(v, text, hint);
}

// The input's nesting is limited, and so is this.
static void write_place(ot__buf *out, const ot__violation *place)
{
    for (const struct message *m = place->messages; m; m = m->next)
        ot__json_string(out, NULL, m->text);
    if (!place->children)
        return;
    ot__json_open(out, NULL, '{');
    for (const ot__violation *child = place->children; child; child = child->next) {
        ot__json_open(out, child->name, '[');
        write_place(out, child);
        ot__json_close(out, ']');
    }
    ot__json_close(out, '}');
}

void ot__violations_write(const ot__violations *v, ot__buf *out)
{
    if (v->root && v->root->children)
        write_place(out, &(ot__violation){.children = v->root->children});
    else
        ot__buf_text(out, "{}");
}

ot_status ot__violations_status(const ot__violations *v, const char *what)
{
    char count[64] = "";

    if (v->status != OT_OK || v->text.failed)
        return ot__error_memory(v->text.capacity);
    if (v->count == 0)
        return OT_OK;
    if (v->count > 1)
        snprintf(count, sizeof count, "%d violations: ", v->count);
    return ot__error(OT_ERR_INVALID, "%s: %s%s", what, count, v->text.data);
}
