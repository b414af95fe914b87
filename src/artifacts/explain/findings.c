// SPDX-License-Identifier: Apache-2.0
// Findings: lines of text about a model, kept together.
#include "artifacts/prepare.h"

struct ot_findings {
    ot__arena *arena;
    ot_finding *items;
    int n, capacity;
};

static const char *const words[] = {
    [OT_FINDING_SEPARATED] = "separated", [OT_FINDING_JOINED] = "joined",
    [OT_FINDING_SHARED] = "shared",       [OT_FINDING_BATCH] = "batch",
    [OT_FINDING_LOST] = "lost",           [OT_FINDING_RESTORED] = "restored",
    [OT_FINDING_UNUSED] = "unused",
};

ot_status ot__findings_create(ot_findings **out)
{
    ot_findings *findings = ot__alloc_zero(1, sizeof *findings);
    ot_status st;

    *out = NULL;
    OT_TRY(ot__made(findings));
    OT_ENTER(findings);
    findings->arena = ot__arena_create();
    st = ot__made(findings->arena);
    return OT_HAND_OUT(st, out, findings, ot_findings_destroy);
}

ot_status ot__findings_add(ot_findings *findings, ot_finding_kind kind, int changes,
                           const char *name, const char *text)
{
    ot_finding item = {.kind = kind, .word = words[kind], .changes = changes};

    item.name = name ? ot__arena_strdup(findings->arena, name) : NULL;
    item.text = text ? ot__arena_strdup(findings->arena, text) : NULL;
    return ot__made(item.name && item.text &&
                    ot__arena_push(findings->arena, &findings->items, &findings->capacity,
                                   &findings->n, &item, sizeof item));
}

int ot_findings_count(const ot_findings *findings)
{
    return OT_IS_LIVE(findings) ? findings->n : 0;
}

const ot_finding *ot_findings_get(const ot_findings *findings, int index)
{
    return !OT_IS_LIVE(findings) || index < 0 || index >= findings->n ? NULL
                                                                      : &findings->items[index];
}

void ot_findings_destroy(ot_findings *findings)
{
    if (!OT_ENDS(findings))
        return;
    ot__arena_destroy(findings->arena);
    ot__free(findings);
}
