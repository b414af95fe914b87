// SPDX-License-Identifier: Apache-2.0
// Where a run stands, to and from properties of its checkpoint. Numbers are exact and do not depend
// on the locale.
#include <math.h>
#include <string.h>

#include "dist/dist.h"
#include "train/train.h"

enum { WORD_MAX = 64 };
static const char validation_word[] = "validation", training_word[] = "training";

// ---- writing ----

static ot_status remove_property(ot_checkpoint *checkpoint, const char *name)
{
    ot_property_kind kind;

    return ot_checkpoint_property_kind_of(checkpoint, name, &kind) == OT_OK
               ? ot_checkpoint_remove_property(checkpoint, name)
               : OT_OK;
}

static void put_reals(ot__buf *text, const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ot__buf_text(text, " ");
        ot__buf_float(text, values[i], false);
    }
}

static ot_status put_sums(ot_checkpoint *checkpoint, const ot__metric_sums *s)
{
    const double reals[] = {s->loss,    s->correct, s->counted, s->absolute,
                            s->squared, s->shift,   s->targets, s->targets_squared};
    ot__buf text = {0};

    ot__buf_printf(&text, "%" PRId64 " %" PRId64, s->rows, s->elements);
    put_reals(&text, reals, OT_COUNT(reals));
    return ot__ckpt_set_text(checkpoint, OT_PROPERTY_SUMS, &text);
}

static ot_status put_metrics(ot_checkpoint *checkpoint, const char *name,
                             const ot__epoch_metrics *epoch)
{
    const ot_metrics *m = &epoch->metrics;
    const double reals[] = {m->loss, m->accuracy, m->mae, m->r2};
    ot__buf text = {0};

    if (m->rows == 0)
        return remove_property(checkpoint, name);
    ot__buf_printf(&text, "%s %" PRId64, epoch->is_validation ? validation_word : training_word,
                   m->rows);
    put_reals(&text, reals, OT_COUNT(reals));
    return ot__ckpt_set_text(checkpoint, name, &text);
}

static ot_status put_best_loss(ot_checkpoint *checkpoint, double loss)
{
    ot__buf text = {0};

    if (!isfinite(loss))
        return remove_property(checkpoint, OT_PROPERTY_BEST_LOSS);
    ot__buf_float(&text, loss, false);
    return ot__ckpt_set_text(checkpoint, OT_PROPERTY_BEST_LOSS, &text);
}

ot_status ot__position_put(ot_checkpoint *checkpoint, const ot__position *position)
{
    OT_TRY(ot_checkpoint_set_int(checkpoint, OT_PROPERTY_EPOCH, position->epoch));
    OT_TRY(ot_checkpoint_set_int(checkpoint, OT_PROPERTY_BATCH, position->batch));
    OT_TRY(ot_checkpoint_set_int(checkpoint, OT_PROPERTY_FIRST_STEP, position->first_step));
    OT_TRY(ot_checkpoint_set_int(checkpoint, OT_PROPERTY_BAD_EPOCHS, position->bad_epochs));
    OT_TRY(position->n_slices > 1
               ? ot_checkpoint_set_int(checkpoint, OT_PROPERTY_SLICES, position->n_slices)
               : remove_property(checkpoint, OT_PROPERTY_SLICES));
    OT_TRY(put_best_loss(checkpoint, position->best_loss));
    OT_TRY(put_metrics(checkpoint, OT_PROPERTY_LAST, &position->last));
    OT_TRY(put_metrics(checkpoint, OT_PROPERTY_BEST, &position->best));
    return put_sums(checkpoint, &position->sums);
}

// ---- reading ----

// The next word of *text; false when there is none, or a longer one than is ever written.
static bool take_position_word(const char **text, char word[WORD_MAX])
{
    const size_t n = strcspn(*text, " ");

    if (n == 0 || n >= WORD_MAX)
        return false;
    memcpy(word, *text, n);
    word[n] = '\0';
    *text += n + ((*text)[n] == ' ');
    return true;
}

static bool take_counts(const char **text, int64_t *const *counts, size_t n)
{
    char word[WORD_MAX];

    for (size_t i = 0; i < n; i++)
        if (!take_position_word(text, word) || !ot__parse_int(word, counts[i]) || *counts[i] < 0)
            return false;
    return true;
}

// All that is left.
static bool take_reals(const char **text, double *const *reals, size_t n)
{
    char word[WORD_MAX];

    for (size_t i = 0; i < n; i++)
        if (!take_position_word(text, word) || !ot__parse_float(word, reals[i]))
            return false;
    return **text == '\0';
}

static bool parse_sums(const char *text, ot__metric_sums *s)
{
    int64_t *const counts[] = {&s->rows, &s->elements};
    double *const reals[] = {&s->loss,    &s->correct, &s->counted, &s->absolute,
                             &s->squared, &s->shift,   &s->targets, &s->targets_squared};

    return take_counts(&text, counts, OT_COUNT(counts)) &&
           take_reals(&text, reals, OT_COUNT(reals));
}

static bool parse_metrics(const char *text, ot__epoch_metrics *epoch)
{
    ot_metrics *m = &epoch->metrics;
    int64_t *const counts[] = {&m->rows};
    double *const reals[] = {&m->loss, &m->accuracy, &m->mae, &m->r2};
    char word[WORD_MAX];

    if (!take_position_word(&text, word))
        return false;
    epoch->is_validation = strcmp(word, validation_word) == 0;
    return (epoch->is_validation || strcmp(word, training_word) == 0) &&
           take_counts(&text, counts, OT_COUNT(counts)) &&
           take_reals(&text, reals, OT_COUNT(reals));
}

// NULL: there is none.
static const char *text_of(const ot_checkpoint *checkpoint, const char *name)
{
    const char *text;

    return ot_checkpoint_get_string(checkpoint, name, &text) == OT_OK ? text : NULL;
}

static ot_status get_strings(const ot_checkpoint *checkpoint, ot__position *p)
{
    const char *const loss = text_of(checkpoint, OT_PROPERTY_BEST_LOSS),
                      *const sums = text_of(checkpoint, OT_PROPERTY_SUMS),
                      *const last = text_of(checkpoint, OT_PROPERTY_LAST),
                      *const best = text_of(checkpoint, OT_PROPERTY_BEST);

    if (loss && !ot__parse_float(loss, &p->best_loss))
        return ot__error(OT_ERR_FORMAT, "property '%s' is '%s', not a number",
                         OT_PROPERTY_BEST_LOSS, loss);
    if (sums && !parse_sums(sums, &p->sums))
        return ot__error(OT_ERR_FORMAT, "property '%s' is '%s', not ten numbers", OT_PROPERTY_SUMS,
                         sums);
    if (last && !parse_metrics(last, &p->last))
        return ot__error(OT_ERR_FORMAT, "property '%s' is '%s', not a word and five numbers",
                         OT_PROPERTY_LAST, last);
    if (best && !parse_metrics(best, &p->best))
        return ot__error(OT_ERR_FORMAT, "property '%s' is '%s', not a word and five numbers",
                         OT_PROPERTY_BEST, best);
    return OT_OK;
}

ot_status ot__position_get(const ot_checkpoint *checkpoint, int64_t n_batches,
                           ot__position *position)
{
    *position =
        (ot__position){.best_loss = INFINITY, .first_step = position->first_step, .n_slices = 1};
    if (ot_checkpoint_get_int(checkpoint, OT_PROPERTY_EPOCH, &position->epoch) != OT_OK ||
        ot_checkpoint_get_int(checkpoint, OT_PROPERTY_BATCH, &position->batch) != OT_OK) {
        position->epoch = position->batch = 0;
        return OT_OK;
    }
    if (position->epoch < 0 || position->batch < 0 || position->batch > n_batches)
        return ot__error(OT_ERR_INVALID,
                         "the checkpoint stands at batch %" PRId64 " of an epoch of %" PRId64
                         ": data or batch size are not those it was trained with",
                         position->batch, n_batches);
    position->first_step = 0;
    (void)ot_checkpoint_get_int(checkpoint, OT_PROPERTY_FIRST_STEP, &position->first_step);
    (void)ot_checkpoint_get_int(checkpoint, OT_PROPERTY_BAD_EPOCHS, &position->bad_epochs);
    if (ot_checkpoint_get_int(checkpoint, OT_PROPERTY_SLICES, &position->n_slices) != OT_OK)
        position->n_slices = 1;
    if (position->n_slices < 1 || position->n_slices > OT_SLICES_MAX)
        return ot__error(OT_ERR_FORMAT, "property '%s' is %" PRId64 ", expected 1 to %d",
                         OT_PROPERTY_SLICES, position->n_slices, OT_SLICES_MAX);
    return get_strings(checkpoint, position);
}
