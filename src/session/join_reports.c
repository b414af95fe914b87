// SPDX-License-Identifier: Apache-2.0
// What did not fit on some rank, on all of them.
#include <string.h>

#include "session/ranks.h"
#include "session/set_shards.h"

ot_status ot__state_spread(ot_comm *comm, int root, ot__buf *bytes, const char *what)
{
    uint64_t n = bytes->length;
    ot_status st = OT_OK;

    OT_TRY(ot__comm_spread(comm, OT_TAG_BROADCAST, root, &n, sizeof n, what));
    if (ot_comm_rank(comm) != root) {
        bytes->data = n > SIZE_MAX - 1 ? NULL : ot__alloc((size_t)n + 1);
        st = ot__made(bytes->data != NULL);
        bytes->length = (size_t)n;
    }
    OT_TRY(ot__comm_agree_on(comm, st, what, NULL, 0));
    return ot__comm_spread(comm, OT_TAG_BROADCAST, root, bytes->data, bytes->length, what);
}

// Of each finding category and section, name and detail, with their zeros.
static void write_findings(const ot_shards_report *report, ot__buf *out)
{
    for (int c = 0; c < OT_REPORT_CATEGORIES; c++)
        for (int i = 0; i < ot_shards_report_count(report, (ot_report_category)c); i++) {
            const char *name = ot_shards_report_name(report, (ot_report_category)c, i);
            const char *detail = ot_shards_report_detail(report, (ot_report_category)c, i);
            const unsigned char numbers[] = {
                (unsigned char)c,
                (unsigned char)ot_shards_report_section(report, (ot_report_category)c, i)};

            ot__buf_append(out, numbers, sizeof numbers);
            ot__buf_append(out, name, strlen(name) + 1);
            ot__buf_append(out, detail, strlen(detail) + 1);
        }
}

typedef struct joining {
    ot_shards_report *report;
    ot__map seen[OT_REPORT_CATEGORIES]; // sections, added up, in which ranks before have a name
} joining;

static ot_status add_findings(const ot__buf *from, joining *to)
{
    for (size_t at = 0; at < from->length;) {
        const char *record = from->data + at, *name = record + 2;
        const char *detail = name + strlen(name) + 1;
        const unsigned section = (unsigned char)record[1];

        at += (size_t)(detail - record) + strlen(detail) + 1;
        if (((uintptr_t)ot__map_get(&to->seen[(int)record[0]], name) & section) == 0)
            OT_TRY(
                ot__report_add(to->report, (ot_report_category)record[0], section, name, detail));
    }
    return OT_OK;
}

static ot_status mark_findings(joining *to)
{
    for (int c = 0; c < OT_REPORT_CATEGORIES; c++)
        for (int i = 0; i < ot_shards_report_count(to->report, (ot_report_category)c); i++) {
            const char *name = ot_shards_report_name(to->report, (ot_report_category)c, i);
            const uintptr_t sections =
                (uintptr_t)ot__map_get(&to->seen[c], name) |
                ot_shards_report_section(to->report, (ot_report_category)c, i);

            OT_TRY(ot__made(ot__map_put(&to->seen[c], name, (void *)sections)));
        }
    return OT_OK;
}

static ot_status join_findings(const ot__state_call *call, const ot__buf *own, joining *to)
{
    ot_comm *comm = call->options.comm;
    ot_status failed = OT_OK, st = OT_OK;

    for (int r = 0; r < ot_comm_world_size(comm) && st == OT_OK; r++) {
        ot__buf received = {0};
        ot__buf *bytes = r == ot_comm_rank(comm) ? (ot__buf *)(uintptr_t)own : &received;

        st = ot__state_spread(comm, r, bytes, call->what);
        if (st == OT_OK) {
            OT_THEN(failed, add_findings(bytes, to));
            OT_THEN(failed, mark_findings(to));
        }
        ot__buf_deinit(&received);
    }
    for (int c = 0; c < OT_REPORT_CATEGORIES; c++)
        ot__map_deinit(&to->seen[c]);
    return st == OT_OK ? ot__state_agree(call, failed) : st;
}

ot_status ot__reports_join(const ot__state_call *call, ot_shards_report *report)
{
    ot_comm *comm = call->options.comm;
    joining all = {0};
    ot__buf own = {0};
    bool differ = false;
    ot_status st;

    if (comm == NULL)
        return OT_OK;
    write_findings(report, &own);
    st = ot__state_agree(call, ot__buf_status(&own));
    OT_THEN(st, ot__ranks_compare(comm, ot__id_mix(own.length, own.data, own.length), call->what,
                                  &differ));
    if (st == OT_OK && differ) {
        st = ot__state_agree(call, ot__report_create(&all.report));
        OT_THEN(st, join_findings(call, &own, &all));
        if (st == OT_OK)
            ot__reports_exchange(report, all.report);
        ot_shards_report_destroy(all.report);
    }
    ot__buf_deinit(&own);
    return st;
}
