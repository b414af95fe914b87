// SPDX-License-Identifier: Apache-2.0
// Cases whose extents go around the tiles of vector code, and the instruction sets.
#include "harness_internal.h"

#include <ctype.h>
#include <string.h>

#include "kernels/kernels.h"

enum { MAX_LETTERS = 3, N_SIZES = 6, CHANNEL_BLOCK = 16 };

// ---- what kernels work on at once, from their own tables ----

static int64_t tile_extent(const char *name)
{
    const struct {
        const char *name;
        int64_t extent;
    } tiles[] = {
        {"vector", ot__gemm_kernel_best()->lanes},
        {"gemm_rows", ot__gemm_kernel_best()->tile_rows},
        {"gemm_columns", ot__gemm_kernel_best()->tile_columns},
        {"gemm_depth", ot__gemm_kernel_best()->depth},
        {"row", OT__SUM_BLOCK},
        {"exponentials", ot__rows_best()->exponentials},
        {"norm_inner", ot__norms_best()->inner},
        {"norm_channels", ot__norms_best()->channels},
        {"norm_chunk", ot__norms_best()->chunk},
        {"columns", OT__COLUMN_BLOCK},
        {"column_part", ot__columns_best()->part},
        {"reduce_row", ot__reducers_best()->row},
        {"reduce_columns", ot__reducers_best()->columns},
        {"reduce_steps", ot__reducers_best()->steps},
        {"pool_channels", ot__pools_best()->channels},
        {"pool_lanes", ot__row_pools_best()->lanes},
        {"pool_piece", ot__row_pools_best()->piece},
        {"positions", ot__samplers_best()->positions},
        {"channel_block", CHANNEL_BLOCK}, // of ot__layout_blocked
    };

    for (size_t k = 0; k < sizeof(tiles) / sizeof(tiles[0]); k++)
        if (strcmp(tiles[k].name, name) == 0)
            return tiles[k].extent;
    fail("the case's edges name no tile '%s'", name);
    return 1;
}

// ---- letters ----

typedef struct letter {
    char name;
    bool may_be_0;
    int64_t tile, extent;
} letter;
static letter letters[MAX_LETTERS];
static int n_letters;

int64_t edge_extent(char name)
{
    for (int i = 0; i < n_letters; i++)
        if (letters[i].name == name)
            return letters[i].extent;
    return -1;
}

void edges_print(void)
{
    for (int i = 0; i < n_letters; i++)
        fprintf(stderr, "%s%c = %" PRId64, i == 0 ? "; " : ", ", letters[i].name,
                letters[i].extent);
}

static bool read_letters(const char *at)
{
    for (n_letters = 0; *at != '\0' && n_letters < MAX_LETTERS; n_letters++) {
        char name[32];
        const size_t length = strcspn(at + 2, "+,");

        if (isupper((unsigned char)at[0]) == 0 || at[1] != ' ' || length >= sizeof(name))
            return false;
        memcpy(name, at + 2, length);
        name[length] = '\0';
        letters[n_letters] = (letter){at[0], at[2 + length] != '+', tile_extent(name), 0};
        at += 2 + length;
        at += strspn(at, "+, ");
    }
    return *at == '\0';
}

static bool set_extent(letter *l, int which)
{
    const int64_t sizes[N_SIZES] = {1, l->tile - 1, l->tile, l->tile + 1, 2 * l->tile + 1, 0};

    l->extent = sizes[which];
    return l->extent > 0 || (which == N_SIZES - 1 && l->may_be_0);
}

// All pairs of the first two letters; each size of a third.
static void run_sizes(const ot_op_test *test, const ot_op_case *c)
{
    for (int i = 0; i < N_SIZES; i++)
        for (int j = 0; j < (n_letters > 1 ? N_SIZES : 1); j++) {
            const int which[MAX_LETTERS] = {i, j, (i + 2 * j) % N_SIZES};
            bool fits = true;

            for (int k = 0; k < n_letters; k++)
                fits = set_extent(&letters[k], which[k]) && fits;
            if (fits)
                run_case(test, c);
        }
}

// ---- instruction sets ----

bool next_isa(int *isa)
{
    ot__isa_limit(OT__ISA_LAST);
    if (*isa >= (int)ot__isa_best())
        return false;
    ot__isa_limit((ot__isa)++ * isa);
    return true;
}

int present_isa(void)
{
    return (int)ot__isa_best();
}

void limit_isa(int isa)
{
    ot__isa_limit((ot__isa)isa);
}

const char *isa_name(int isa)
{
    return ot__isa_name((ot__isa)isa);
}

void run_edges(const ot_op_test *test, const ot_op_case *c)
{
    letter before[MAX_LETTERS] = {{0}};

    for (int isa = -1; next_isa(&isa);) {
        if (!read_letters(c->edges)) {
            fail("the case's edges '%s' cannot be read", c->edges);
            break;
        }
        if (memcmp(before, letters, sizeof(before)) == 0)
            continue; // the lower sets run at every size anyway
        run_sizes(test, c);
        for (int k = 0; k < n_letters; k++)
            letters[k].extent = 0;
        memcpy(before, letters, sizeof(before));
    }
    limit_isa(OT__ISA_LAST);
    n_letters = 0;
}
