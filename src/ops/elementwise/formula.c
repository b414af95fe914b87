// SPDX-License-Identifier: Apache-2.0
// Reads the formulas of kernels/elementwise/*.def, which are C, and writes them in ONNX's
// operators: nodes stand in the order in which C computes them, left before right.
#include "ops/elementwise/formula.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "op/grad.h"

enum { MAX_NAMES = 12, MAX_NAME = 16 };

// A value, or without one a number.
typedef struct term {
    ot_value *value;
    double number;
} term;

typedef struct reader {
    ot_grad *g;
    const char *at;
    const ot_value *like; // numbers become constants of its type
    ot_value *sum_to;     // what SUM sums to
    int n_names;
    struct {
        char name[MAX_NAME];
        term term;
    } names[MAX_NAMES];
} reader;

static term formula_read_choice(reader *r);

static term formula_misread(reader *r)
{
    ot_grad_fail(r->g, "the formula is not understood from '%s'", r->at);
    return (term){NULL, 0.0};
}

static bool formula_take(reader *r, const char *text)
{
    const size_t n = strlen(text);

    r->at += strspn(r->at, " ");
    if (strncmp(r->at, text, n) != 0)
        return false;
    r->at += n;
    return true;
}

static void formula_expect(reader *r, const char *text)
{
    if (!formula_take(r, text))
        formula_misread(r);
}

static bool formula_read_name(reader *r, char *name)
{
    size_t n = 0;

    r->at += strspn(r->at, " ");
    while (isalnum((unsigned char)r->at[n]) || r->at[n] == '_')
        n++;
    if (n == 0 || n >= MAX_NAME || isdigit((unsigned char)r->at[0]))
        return false;
    memcpy(name, r->at, n);
    name[n] = '\0';
    r->at += n;
    return true;
}

static ot_value *formula_value_of(reader *r, term t)
{
    return t.value != NULL ? t.value : ot_emit_constant(r->g, t.number, r->like);
}

static term formula_emit2(reader *r, const char *op, term a, term b)
{
    ot_value *first = formula_value_of(r, a), *second = formula_value_of(r, b);

    return (term){ot_emit2(r->g, op, first, second), 0.0};
}

static term formula_apply(reader *r, char op, term a, term b)
{
    if (a.value == NULL && b.value == NULL)
        return (term){NULL, op == '+'   ? a.number + b.number
                            : op == '-' ? a.number - b.number
                            : op == '*' ? a.number * b.number
                                        : a.number / b.number};
    if (op == '*' && b.value == NULL && b.number == 1.0)
        return a;
    return formula_emit2(r,
                         op == '+'   ? "Add"
                         : op == '-' ? "Sub"
                         : op == '*' ? "Mul"
                                     : "Div",
                         a, b);
}

// "EXP" is Exp.
static term formula_call(reader *r, char *name)
{
    const term x = formula_read_choice(r);
    const bool is_pair = formula_take(r, ",");
    const term second = is_pair ? formula_read_choice(r) : x;

    formula_expect(r, ")");
    if (strcmp(name, "C") == 0)
        return x;
    if (strcmp(name, "SUM") == 0)
        return (term){ot_emit_sum_to(r->g, formula_value_of(r, x), r->sum_to), 0.0};
    for (char *c = name + 1; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    return is_pair ? formula_emit2(r, name, x, second)
                   : (term){ot_emit1(r->g, name, formula_value_of(r, x)), 0.0};
}

// A name that was not given is an attribute of the node.
static term formula_look_up(const reader *r, const char *name)
{
    for (int i = 0; i < r->n_names; i++)
        if (strcmp(r->names[i].name, name) == 0)
            return r->names[i].term;
    return (term){NULL, (double)ot_attr_float(ot_grad_node(r->g), name)};
}

static term formula_read_operand(reader *r)
{
    char name[MAX_NAME], *end;
    term t;

    if (formula_take(r, "-")) {
        t = formula_read_operand(r);
        return t.value == NULL ? (term){NULL, -t.number}
                               : (term){ot_emit1(r->g, "Neg", t.value), 0.0};
    }
    if (formula_take(r, "(")) {
        t = formula_read_choice(r);
        formula_expect(r, ")");
        return t;
    }
    if (formula_read_name(r, name))
        return formula_take(r, "(") ? formula_call(r, name) : formula_look_up(r, name);
    t = (term){NULL, strtod(r->at, &end)};
    if (end == r->at)
        return formula_misread(r);
    r->at = end;
    return t;
}

static term formula_read_product(reader *r)
{
    term t = formula_read_operand(r);

    for (;;)
        if (formula_take(r, "*"))
            t = formula_apply(r, '*', t, formula_read_operand(r));
        else if (formula_take(r, "/"))
            t = formula_apply(r, '/', t, formula_read_operand(r));
        else
            return t;
}

static term formula_read_sum(reader *r)
{
    term t = formula_read_product(r);

    for (;;)
        if (formula_take(r, "+"))
            t = formula_apply(r, '+', t, formula_read_product(r));
        else if (formula_take(r, "-"))
            t = formula_apply(r, '-', t, formula_read_product(r));
        else
            return t;
}

static term formula_read_comparison(reader *r)
{
    static const char *const comparisons[][2] = {{"<=", "LessOrEqual"},
                                                 {">=", "GreaterOrEqual"},
                                                 {"==", "Equal"},
                                                 {"<", "Less"},
                                                 {">", "Greater"}};
    const term t = formula_read_sum(r);

    for (size_t i = 0; i < OT_COUNT(comparisons); i++)
        if (formula_take(r, comparisons[i][0]))
            return formula_emit2(r, comparisons[i][1], t, formula_read_sum(r));
    return t;
}

static term formula_read_choice(reader *r)
{
    const term condition = formula_read_comparison(r);
    ot_value *a, *b;

    if (!formula_take(r, "?") || r->g->build.status != OT_OK)
        return condition;
    a = formula_value_of(r, formula_read_choice(r));
    formula_expect(r, ":");
    b = formula_value_of(r, formula_read_choice(r));
    return (term){ot_emit3(r->g, "Where", condition.value, a, b), 0.0};
}

static void formula_give(reader *r, const char *name, term t)
{
    if (r->n_names == MAX_NAMES || strlen(name) >= MAX_NAME) {
        formula_misread(r);
        return;
    }
    strcpy(r->names[r->n_names].name, name);
    r->names[r->n_names++].term = t;
}

// GIVEN(name, formula) ...; a number becomes a constant here.
static void formula_read_given(reader *r, const char *given)
{
    char name[MAX_NAME] = "";

    for (r->at = given; r->g->build.status == OT_OK && formula_take(r, "GIVEN(");
         formula_expect(r, ")")) {
        if (!formula_read_name(r, name))
            formula_misread(r);
        formula_expect(r, ",");
        formula_give(r, name, (term){formula_value_of(r, formula_read_choice(r)), 0.0});
    }
}

ot_value *ot__emit_formula(ot_grad *g, const ot__formula *formula, const ot__named *names,
                           ot_value *sum_to)
{
    reader r = {.g = g, .like = names[0].value, .sum_to = sum_to};
    ot_value *v;

    for (int i = 0; names[i].name != NULL; i++)
        formula_give(&r, names[i].name, (term){names[i].value, 0.0});
    formula_read_given(&r, formula->given);
    r.at = formula->text;
    v = formula_value_of(&r, formula_read_choice(&r));
    if (g->build.status == OT_OK && *r.at != '\0')
        formula_misread(&r);
    return g->build.status == OT_OK ? v : NULL;
}
