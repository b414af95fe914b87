// SPDX-License-Identifier: Apache-2.0
#include "parallel_ranks.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

enum { RANKS_MAX = 32768 };

static const struct {
    const char *name;
    size_t offset; // of the int
    long least, most;
} keys[] = {
    {"D", offsetof(ot_parallel_ranks, n_ranks), 1, RANKS_MAX},
    {"zero", offsetof(ot_parallel_ranks, zero), 0, 3},
    {"slices", offsetof(ot_parallel_ranks, slices), 1, RANKS_MAX},
    {"accumulate", offsetof(ot_parallel_ranks, accumulation), 1, 1 << 20},
    {"sync-batch-norm", offsetof(ot_parallel_ranks, sync_batch_norm), 0, 1},
    {"reproducible", offsetof(ot_parallel_ranks, reproducible), 0, 1},
};
enum { N_KEYS = sizeof keys / sizeof keys[0] };

// Which key "zero=3" is of; -1: of none.
static int key_of(const char *word, size_t n)
{
    for (int i = 0; i < N_KEYS; i++) {
        const size_t length = strlen(keys[i].name);

        if (n > length && strncmp(word, keys[i].name, length) == 0 && word[length] == '=')
            return i;
    }
    return -1;
}

static int take_word(const char *word, size_t n, unsigned *given, ot_parallel_ranks *out)
{
    const int i = key_of(word, n);
    const char *digits;
    char *end;
    long number;
    int value;

    if (i < 0)
        return report_usage(
            "--parallel: '%.*s' is none of D=N, zero=STAGE, slices=N, accumulate=N, "
            "sync-batch-norm=1, reproducible=1",
            (int)n, word);
    if ((*given & 1U << i) != 0)
        return report_usage("--parallel: %s is given twice", keys[i].name);
    digits = word + strlen(keys[i].name) + 1;
    errno = 0;
    number = strtol(digits, &end, 10);
    if (*digits < '0' || *digits > '9' || end != word + n || errno != 0 || number < keys[i].least ||
        number > keys[i].most)
        return report_usage("--parallel: '%.*s' is not %s=N with N from %ld to %ld", (int)n, word,
                            keys[i].name, keys[i].least, keys[i].most);
    value = (int)number;
    memcpy((char *)out + keys[i].offset, &value, sizeof value);
    *given |= 1U << i;
    return EXIT_SUCCESS;
}

int parallel_ranks_parse(const char *text, ot_parallel_ranks *out)
{
    unsigned given = 0;

    *out = (ot_parallel_ranks)OT_PARALLEL_RANKS_INIT;
    for (const char *at = text + strspn(text, " "); *at != '\0';) {
        const size_t n = strcspn(at, " ");
        const int code = take_word(at, n, &given, out);

        if (code != EXIT_SUCCESS)
            return code;
        at += n;
        at += strspn(at, " ");
    }
    if ((given & 1) == 0)
        return report_usage("--parallel: '%s' does not say D=N, the number of processes", text);
    if (out->slices == 0)
        out->slices = out->n_ranks;
    if (out->slices < out->n_ranks)
        return report_usage("--parallel: %d slices for %d processes, expected at least one for "
                            "each",
                            out->slices, out->n_ranks);
    return EXIT_SUCCESS;
}
