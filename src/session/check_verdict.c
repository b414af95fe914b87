// SPDX-License-Identifier: Apache-2.0
// What the strictness makes of what did not fit.
#include "session/set_shards.h"

static bool is_lenient(const ot__pending_state *pending)
{
    return pending->call->options.strictness == OT_STRICTNESS_SUBSET ||
           pending->call->options.strictness == OT_STRICTNESS_NONE;
}

static bool refuses(const ot__pending_state *pending, ot_report_category category)
{
    switch (category) {
    case OT_REPORT_MISSING:
    case OT_REPORT_UNEXPECTED:
        return !is_lenient(pending);
    case OT_REPORT_SHAPE:
    case OT_REPORT_DTYPE:
        return pending->call->options.strictness != OT_STRICTNESS_NONE;
    case OT_REPORT_GROUP:
        return pending->is_refused;
    default:
        return false;
    }
}

static const char *const category_words[OT_REPORT_CATEGORIES] = {
    [OT_REPORT_MISSING] = "missing",
    [OT_REPORT_UNEXPECTED] = "unexpected",
    [OT_REPORT_SHAPE] = "of another shape",
    [OT_REPORT_DTYPE] = "of another type",
    [OT_REPORT_ZEROED] = "zeroed",
    [OT_REPORT_CUSTOM] = "custom",
    [OT_REPORT_GROUP] = "groups that do not fit",
};

static void describe_category(const ot_shards_report *report, ot_report_category category,
                              ot__buf *text)
{
    enum { NAMED = 4 };
    const int n = ot_shards_report_count(report, category);

    ot__buf_printf(text, "%s%s:", text->length > 0 ? "; " : "", category_words[category]);
    for (int i = 0; i < n && i < NAMED; i++) {
        const char *detail = ot_shards_report_detail(report, category, i);

        ot__buf_printf(text, "%s '%s'%s%s", i > 0 ? "," : "",
                       ot_shards_report_name(report, category, i), *detail ? " " : "", detail);
    }
    if (n > NAMED)
        ot__buf_printf(text, " and %d more", n - NAMED);
}

ot_status ot__pending_verdict(const ot__pending_state *pending)
{
    ot__buf text = {0};
    ot_status st = OT_OK;

    for (int c = 0; c < OT_REPORT_CATEGORIES; c++) {
        if (ot_shards_report_count(pending->report, (ot_report_category)c) == 0 ||
            !refuses(pending, (ot_report_category)c))
            continue;
        describe_category(pending->report, (ot_report_category)c, &text);
        if (st == OT_OK)
            st = c == OT_REPORT_MISSING ? OT_ERR_NOT_FOUND : OT_ERR_INVALID;
    }
    if (st != OT_OK && !text.failed)
        st = ot__error(st, "the state does not fit: %s", text.data);
    ot__buf_deinit(&text);
    return text.failed ? OT_ERR_NO_MEMORY : st;
}
