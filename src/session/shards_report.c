// SPDX-License-Identifier: Apache-2.0
// What of a state did not fit.
#include <string.h>

#include "session/state_dict.h"

typedef struct finding {
    char *name, *detail;
    unsigned section;
} finding;

typedef struct findings {
    finding *items;
    int n, capacity;
} findings;

struct ot_shards_report {
    findings of[OT_REPORT_CATEGORIES];
};

ot_status ot__report_create(ot_shards_report **out)
{
    *out = ot__alloc_zero(1, sizeof **out);
    OT_TRY(ot__made(*out != NULL));
    OT_ENTER(*out);
    return OT_OK;
}

ot_status ot__report_add(ot_shards_report *report, ot_report_category category, unsigned section,
                         const char *name, const char *detail)
{
    finding added = {.section = section};

    OT_TRY(ot__made(ot__grow(&report->of[category].items, &report->of[category].capacity,
                             report->of[category].n, sizeof added)));
    added.name = ot__strdup(name);
    added.detail = ot__strdup(detail);
    if (added.name == NULL || added.detail == NULL) {
        ot__free(added.name);
        ot__free(added.detail);
        return OT_ERR_NO_MEMORY;
    }
    report->of[category].items[report->of[category].n++] = added;
    return OT_OK;
}

void ot__reports_exchange(ot_shards_report *a, ot_shards_report *b)
{
    for (int c = 0; c < OT_REPORT_CATEGORIES; c++) {
        const findings own = a->of[c];

        a->of[c] = b->of[c];
        b->of[c] = own;
    }
}

static const finding *find_finding(const ot_shards_report *report, ot_report_category category,
                                   int index)
{
    return index >= 0 && index < ot_shards_report_count(report, category)
               ? &report->of[category].items[index]
               : NULL;
}

int ot_shards_report_count(const ot_shards_report *report, ot_report_category category)
{
    return OT_IS_LIVE(report) && (int)category >= 0 && category < OT_REPORT_CATEGORIES
               ? report->of[category].n
               : 0;
}

const char *ot_shards_report_name(const ot_shards_report *report, ot_report_category category,
                                  int index)
{
    const finding *found = find_finding(report, category, index);

    return found == NULL ? NULL : found->name;
}

unsigned ot_shards_report_section(const ot_shards_report *report, ot_report_category category,
                                  int index)
{
    const finding *found = find_finding(report, category, index);

    return found == NULL ? 0 : found->section;
}

const char *ot_shards_report_detail(const ot_shards_report *report, ot_report_category category,
                                    int index)
{
    const finding *found = find_finding(report, category, index);

    return found == NULL ? NULL : found->detail;
}

void ot_shards_report_destroy(ot_shards_report *report)
{
    if (!OT_ENDS(report))
        return;
    for (int c = 0; c < OT_REPORT_CATEGORIES; c++) {
        for (int i = 0; i < report->of[c].n; i++) {
            ot__free(report->of[c].items[i].name);
            ot__free(report->of[c].items[i].detail);
        }
        ot__free(report->of[c].items);
    }
    ot__free(report);
}
