// SPDX-License-Identifier: Apache-2.0
// The files in data/ and the inputs that belong to them, as generate.py makes both.
#ifndef OT_TESTS_GOLDEN_GOLDEN_H
#define OT_TESTS_GOLDEN_GOLDEN_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "onnxtrain/onnxtrain.h"

enum { TEXT_MAX = 1 << 20, NAME_SIZE = 128 };

// ---- files ----

static inline char *read_text(const char *model, const char *ending)
{
    char path[1024], *text = calloc(1, TEXT_MAX + 1);
    FILE *file;
    size_t n;

    snprintf(path, sizeof path, OT_TEST_DIR "/data/%s%s", model, ending);
    file = fopen(path, "r");
    if (file == NULL)
        fail_msg("%s cannot be opened", path);
    n = fread(text, 1, TEXT_MAX, file);
    fclose(file);
    assert_in_range(n, 1, TEXT_MAX - 1);
    return text;
}

// The files are in f32; in f64 every word `float` becomes `double`.
static inline ot_model *load_model(const char *name, ot_dtype dtype)
{
    char *text = read_text(name, ".onnxtxt"), *wide = calloc(2, TEXT_MAX);
    ot_model *model;
    size_t n = 0;

    for (const char *at = text; *at != '\0';) {
        if (dtype == OT_F64 && strncmp(at, "float", 5) == 0) {
            n += (size_t)sprintf(wide + n, "double");
            at += 5;
        } else {
            wide[n++] = *at++;
        }
    }
    if (ot_model_load_buffer(wide, n, NULL, &model) != OT_OK)
        fail_msg("%s: %s", name, ot_error_message());
    free(text);
    free(wide);
    return model;
}

static inline long header_number(const char *text, const char *word)
{
    const char *at = strstr(text, word);

    assert_non_null(at);
    return strtol(at + strlen(word), NULL, 10);
}

// Where the numbers of the line "KIND NAME numbers" begin.
static inline const char *find_line(const char *text, const char *kind, const char *name)
{
    char start[3 * NAME_SIZE];
    const char *at;

    snprintf(start, sizeof start, "\n%s %s ", kind, name);
    at = strstr(text, start);
    if (at == NULL)
        fail_msg("nothing is recorded for %s %s", kind, name);
    return at + strlen(start);
}

static inline const char *read_numbers(const char *at, double *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        char *end;

        to[i] = strtod(at, &end);
        assert_ptr_not_equal(at, end);
        at = end;
    }
    return at;
}

// ---- data, as generate.py makes it ----

static inline uint32_t hashed_24_bits(uint64_t seed, int64_t i)
{
    uint64_t z = seed + (uint64_t)(i + 1) * UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (uint32_t)((z ^ (z >> 31)) >> 40);
}

static inline ot_tensor *make_input(const ot_session *session, int i, int step, int64_t rows,
                                    uint32_t below)
{
    ot_tensor *tensor;
    ot_dtype dtype;
    ot_shape shape;

    assert_int_equal(ot_session_input_info(session, OT_MODE_TRAIN, i, &dtype, &shape), OT_OK);
    shape.dim[0] = rows;
    assert_int_equal(ot_tensor_create(dtype, &shape, &tensor), OT_OK);
    for (int64_t k = 0; k < ot_tensor_count(tensor); k++) {
        const uint32_t word = hashed_24_bits((uint64_t)(2 * step + i), k);
        const double real = word / 0x1p23 - 1;

        if (dtype == OT_F32)
            ((float *)ot_tensor_data(tensor))[k] = (float)real;
        else if (dtype == OT_F64)
            ((double *)ot_tensor_data(tensor))[k] = real;
        else
            ((int64_t *)ot_tensor_data(tensor))[k] = word % below;
    }
    return tensor;
}

static inline double element(const ot_tensor *tensor, int64_t i)
{
    return ot_tensor_dtype(tensor) == OT_F32
               ? (double)((const float *)ot_tensor_data_const(tensor))[i]
               : ((const double *)ot_tensor_data_const(tensor))[i];
}

#endif
