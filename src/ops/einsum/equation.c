// SPDX-License-Identifier: Apache-2.0
#include "ops/einsum/einsum.h"

#include <string.h>

// A term as it is written.
typedef struct written {
    ot__einsum_term term; // letters
    int ellipsis;         // the letter before which it stands; -1: there is none
} written;

typedef struct equation_reader {
    ot_infer *c;
    const char *text, *at;
} equation_reader;

int ot__einsum_find(const ot__einsum_term *term, uint8_t label)
{
    for (int k = 0; k < term->n; k++)
        if (term->label[k] == label)
            return k;
    return -1;
}

// What is wrong at the place that has been reached.
static bool refuse_equation(const equation_reader *r, const char *what)
{
    if (r->c)
        ot_infer_fail(r->c, "equation, character %d: %s", (int)(r->at - r->text), what);
    return false;
}

static bool read_ellipsis(equation_reader *r, written *w)
{
    if (strncmp(r->at, "...", 3) != 0)
        return refuse_equation(r, "a '.' that is not part of '...'");
    if (w->ellipsis >= 0)
        return refuse_equation(r, "a second '...' in a term");
    w->ellipsis = w->term.n;
    r->at += 3;
    return true;
}

// Up to what ends a term.
static bool read_equation_term(equation_reader *r, written *w)
{
    *w = (written){.ellipsis = -1};
    for (;;) {
        const char letter = *r->at;

        if (letter == '\0' || letter == ',' || letter == '-')
            return true;
        if (letter == ' ') {
            r->at++;
        } else if (letter == '.') {
            if (!read_ellipsis(r, w))
                return false;
        } else if (w->term.n == OT_MAX_NDIM) {
            return refuse_equation(r, "a term has too many letters");
        } else if (letter >= 'A' && letter <= 'Z') {
            w->term.label[w->term.n++] = (uint8_t)(letter - 'A');
            r->at++;
        } else if (letter >= 'a' && letter <= 'z') {
            w->term.label[w->term.n++] = (uint8_t)(letter - 'a' + OT__EINSUM_LETTERS / 2);
            r->at++;
        } else {
            return refuse_equation(r, "expected a letter, ',', '->', '...' or a space");
        }
    }
}

static bool read_terms(equation_reader *r, const ot_node *node, written *in)
{
    for (int i = 0;; i++) {
        if (i == node->n_inputs)
            return refuse_equation(r, "there are more terms than inputs");
        if (!read_equation_term(r, &in[i]))
            return false;
        if (*r->at == ',') {
            r->at++;
            continue;
        }
        return i + 1 == node->n_inputs || refuse_equation(r, "there are fewer terms than inputs");
    }
}

// ---- axes ----

// How many axes the ellipsis stands for, at most: with fewer axes it stands for the last ones.
static bool count_ellipsis(const equation_reader *r, const ot_node *node, const written *in,
                           int *n_axes)
{
    *n_axes = 0;
    for (int i = 0; i < node->n_inputs; i++) {
        const int ndim = node->inputs[i]->shape.ndim, left = ndim - in[i].term.n;

        if (in[i].ellipsis >= 0 ? left < 0 : left != 0) {
            if (r->c)
                ot_infer_fail(r->c, "input %d has %d axes, its term in the equation %d%s", i, ndim,
                              in[i].term.n, in[i].ellipsis >= 0 ? " and an ellipsis" : "");
            return false;
        }
        if (in[i].ellipsis >= 0)
            *n_axes = OT_MAX(*n_axes, left);
    }
    return true;
}

// With the last `n` of so many axes of the ellipsis in its place.
static bool expand_term(const equation_reader *r, const written *w, int n, int n_axes,
                        ot__einsum_term *term)
{
    *term = (ot__einsum_term){0};
    if (w->term.n + (w->ellipsis >= 0 ? n : 0) > OT_MAX_NDIM)
        return refuse_equation(r, "a term has too many axes");
    for (int k = 0; k <= w->term.n; k++) {
        for (int a = 0; k == w->ellipsis && a < n; a++)
            term->label[term->n++] = (uint8_t)(OT__EINSUM_LETTERS + n_axes - n + a);
        if (k < w->term.n)
            term->label[term->n++] = w->term.label[k];
    }
    return true;
}

static void count_labels(const ot__einsum *e, int *count)
{
    for (int i = 0; i < e->n_inputs; i++)
        for (int k = 0; k < e->in[i].n; k++)
            count[e->in[i].label[k]]++;
}

// The axes of the ellipsis, then letters that occur once.
static bool make_implicit_output(const equation_reader *r, const int *count, int n_axes,
                                 ot__einsum_term *out)
{
    *out = (ot__einsum_term){0};
    for (int a = 0; a < n_axes; a++)
        out->label[out->n++] = (uint8_t)(OT__EINSUM_LETTERS + a);
    for (int label = 0; label < OT__EINSUM_LETTERS; label++) {
        if (count[label] != 1)
            continue;
        if (out->n == OT_MAX_NDIM)
            return refuse_equation(r, "the output has too many axes");
        out->label[out->n++] = (uint8_t)label;
    }
    return true;
}

static bool check_output(const equation_reader *r, const int *count, const ot__einsum_term *out)
{
    for (int k = 0; k < out->n; k++) {
        if (count[out->label[k]] == 0)
            return refuse_equation(r, "the output has a letter that no input has");
        if (ot__einsum_find(out, out->label[k]) != k)
            return refuse_equation(r, "the output has a letter twice");
    }
    return true;
}

static bool read_output_term(equation_reader *r, const int *count, int n_axes, ot__einsum_term *out)
{
    written w;

    if (*r->at == '\0')
        return make_implicit_output(r, count, n_axes, out);
    if (strncmp(r->at, "->", 2) != 0)
        return refuse_equation(r, "a '-' that is not part of '->'");
    r->at += 2;
    if (!read_equation_term(r, &w))
        return false;
    if (*r->at != '\0')
        return refuse_equation(r, "expected the end behind the output");
    return expand_term(r, &w, n_axes, n_axes, out) && check_output(r, count, out);
}

bool ot__einsum_read(ot_infer *c, const ot_node *node, ot__einsum *e)
{
    const char *text = ot_attr_string(node, "equation");
    equation_reader r = {c, text, text};
    written in[OT__EINSUM_INPUTS];
    int count[OT__EINSUM_LABELS] = {0}, n_axes, n_labels = 0;

    if (node->n_inputs > OT__EINSUM_INPUTS) {
        if (c)
            ot_infer_fail(c, "%d inputs, expected at most %d", node->n_inputs, OT__EINSUM_INPUTS);
        return false;
    }
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] == NULL) {
            if (c)
                ot_infer_fail(c, "input %d is missing", i);
            return false;
        }
    e->n_inputs = node->n_inputs;
    if (!read_terms(&r, node, in) || !count_ellipsis(&r, node, in, &n_axes))
        return false;
    for (int i = 0; i < e->n_inputs; i++)
        if (!expand_term(&r, &in[i], node->inputs[i]->shape.ndim - in[i].term.n, n_axes, &e->in[i]))
            return false;
    count_labels(e, count);
    for (int label = 0; label < OT__EINSUM_LABELS; label++)
        n_labels += count[label] > 0;
    if (n_labels > OT_MAX_NDIM)
        return refuse_equation(&r, "too many axes have different letters");
    return read_output_term(&r, count, n_axes, &e->out);
}
