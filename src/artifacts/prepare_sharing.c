// SPDX-License-Identifier: Apache-2.0
// Parameters that an exporter merged or untied: what stays by the user's word, and what is said.
#include <string.h>

#include "artifacts/prepare.h"
#include "passes/passes.h"

#define KEEP "keep"

static void write_text(ot__buf *text, const ot__sharing *item)
{
    const char *them = item->n_parts > 1 ? "them" : "it";

    switch (item->kind) {
    case OT_SHARING_SEPARATED:
        ot__buf_printf(text, "'%s' was what an exporter made of several parameters: ", item->name);
        ot__buf_names(text, item->parts, item->n_parts);
        ot__buf_printf(text, " %s", item->n_parts > 1 ? "train separately" : "is separate again");
        break;
    case OT_SHARING_JOINED:
        ot__buf_names(text, item->parts, item->n_parts);
        ot__buf_printf(text, " was what an exporter made of '%s' besides: they train as one",
                       item->name);
        break;
    case OT_SHARING_LEFT:
        ot__buf_printf(text, "'%s' trains as one tensor for ", item->name);
        ot__buf_names(text, item->parts, item->n_parts);
        break;
    case OT_SHARING_RESTORED:
        ot__buf_names(text, item->parts, item->n_parts);
        ot__buf_printf(text, ", all zeros, %s dropped by the exporter: %s again",
                       item->n_parts > 1 ? "were" : "was",
                       item->n_parts > 1 ? "they train" : "it trains");
        break;
    case OT_SHARING_LOST:
        ot__buf_names(text, item->parts, item->n_parts);
        ot__buf_printf(text,
                       " %s gone: computed away by the exporter, or dropped by it as zeros; to "
                       "train all, export with torch.onnx.export(model.train(), ..., "
                       "optimize=False)",
                       item->n_parts > 1 ? "are" : "is");
        break;
    case OT_SHARING_UNUSED:
        ot__buf_names(text, item->parts, item->n_parts);
        ot__buf_printf(text,
                       " of the exported module %s in no operator of the file: the module does not "
                       "use %s, has %s by another name, too, or the exporter computed %s away",
                       item->n_parts > 1 ? "are" : "is", them, them, them);
        break;
    }
}

static ot_status add_finding(const ot__sharing *item, ot_findings *findings)
{
    static const struct {
        ot_finding_kind kind;
        int changes;
    } kinds[] = {
        [OT_SHARING_SEPARATED] = {OT_FINDING_SEPARATED, 1},
        [OT_SHARING_JOINED] = {OT_FINDING_JOINED, 1},
        [OT_SHARING_LEFT] = {OT_FINDING_SHARED, 0},
        [OT_SHARING_RESTORED] = {OT_FINDING_RESTORED, 1},
        [OT_SHARING_LOST] = {OT_FINDING_LOST, 0},
        [OT_SHARING_UNUSED] = {OT_FINDING_UNUSED, 0},
    };
    ot__buf text = {0};
    ot_status st;

    write_text(&text, item);
    st = ot__buf_status(&text);
    OT_THEN(st, ot__findings_add(findings, kinds[item->kind].kind, kinds[item->kind].changes,
                                 item->name, text.data));
    ot__buf_deinit(&text);
    return st;
}

static ot_status check_used(const ot__kept_names *kept)
{
    for (int i = 0; i < kept->n; i++)
        if (!kept->used[i])
            return ot__error(OT_ERR_NOT_FOUND,
                             "shared '%s' matches no tensor that would be separated or joined",
                             kept->patterns[i]);
    return OT_OK;
}

static ot_status separate_parameters(ot_model *model, const ot__kept_names *kept,
                                     ot_findings *findings)
{
    ot__sharings found;

    OT_TRY(ot__pass_sharing(model, kept, &found));
    for (int i = 0; i < found.n; i++)
        OT_TRY(add_finding(&found.items[i], findings));
    return check_used(kept);
}

ot_status ot__prepare_sharing(ot_model *model, const ot_prepare_options *options,
                              ot_findings *findings)
{
    ot__kept_names kept = {.patterns = options->shared, .n = options->n_shared};
    ot_status st;

    if (ot__index_of(options->shared, options->n_shared, KEEP) >= 0)
        return OT_OK;
    kept.used = ot__alloc_zero((size_t)kept.n + 1, sizeof *kept.used);
    st = kept.used ? separate_parameters(model, &kept, findings) : OT_ERR_NO_MEMORY;
    ot__free(kept.used);
    return st;
}
