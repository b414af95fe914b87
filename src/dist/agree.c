// SPDX-License-Identifier: Apache-2.0
// Agreement: one small exchange by recursive doubling tells all ranks how it went on all.
#include <string.h>

#include "dist/dist.h"

// What is known of a set of ranks.
typedef struct verdict {
    int32_t status, rank;   // the worst, and the lowest rank that has it
    int32_t first, differs; // the rank whose hash it is, and one with another; -1: none
    uint64_t any, all, hash;
} verdict;

static verdict join_verdicts(const verdict *a, const verdict *b)
{
    const verdict *low = a->first < b->first ? a : b, *high = low == a ? b : a;
    const bool low_is_worse =
        low->status > high->status || (low->status == high->status && low->rank < high->rank);
    verdict both = *low;

    both.status = low_is_worse ? low->status : high->status;
    both.rank = low_is_worse ? low->rank : high->rank;
    both.any |= high->any;
    both.all &= high->all;
    if (both.differs < 0)
        both.differs = high->hash != low->hash ? high->first : high->differs;
    return both;
}

// Ranks beyond the largest power of two hand theirs to one below, and get the result from there.
static ot_status exchange_verdicts(ot_comm *comm, verdict *own, const char *call)
{
    const int n = comm->world_size, rank = comm->rank;
    const size_t size = sizeof *own;
    verdict other;
    int core = 1, extra;

    while (core <= n / 2)
        core *= 2;
    extra = n - core;
    if (rank >= core)
        OT_TRY(ot__comm_exchange(comm, OT_TAG_AGREE, rank - core, own, size, 0, NULL, 0, call));
    if (rank < extra) {
        OT_TRY(ot__comm_exchange(comm, OT_TAG_AGREE, 0, NULL, 0, rank + core, &other, size, call));
        *own = join_verdicts(own, &other);
    }
    for (int distance = 1; rank < core && distance < core; distance *= 2) {
        const int peer = rank ^ distance;

        OT_TRY(ot__comm_exchange(comm, OT_TAG_AGREE, peer, own, size, peer, &other, size, call));
        *own = join_verdicts(own, &other);
    }
    if (rank < extra)
        OT_TRY(ot__comm_exchange(comm, OT_TAG_AGREE, rank + core, own, size, 0, NULL, 0, call));
    if (rank >= core)
        OT_TRY(ot__comm_exchange(comm, OT_TAG_AGREE, 0, NULL, 0, rank - core, own, size, call));
    return OT_OK;
}

// ---- what went wrong, in the words of one rank ----

static ot_status spread_text(ot_comm *comm, int from, char text[OT_COMM_TEXT_MAX], const char *call)
{
    OT_TRY(ot__comm_spread(comm, OT_TAG_TEXT, from, text, OT_COMM_TEXT_MAX, call));
    text[OT_COMM_TEXT_MAX - 1] = '\0';
    return OT_OK;
}

// A message that all ranks have got from one says so already.
static bool names_rank(const char *message)
{
    return ot__starts_with(message, "rank ") || ot__starts_with(message, "ranks ");
}

static ot_status spread_failure(ot_comm *comm, const verdict *v, const char *call)
{
    char text[OT_COMM_TEXT_MAX];

    snprintf(text, sizeof text, "%s", ot_error_message());
    OT_TRY(spread_text(comm, v->rank, text, call));
    if (comm->world_size == 1 || names_rank(text))
        return ot__error((ot_status)v->status, "%s", text);
    return ot__error((ot_status)v->status, "rank %d: %s", ot__comm_member(comm, v->rank), text);
}

// ---- what differs ----

enum { NAME_LENGTH = 56 };

typedef struct card {
    char call[NAME_LENGTH];
    int64_t n_fields;
    struct {
        char name[NAME_LENGTH];
        uint64_t value;
    } fields[OT_AGREE_FIELDS_MAX];
} card;

static void fill_card(card *c, const ot_agreement *a)
{
    memset(c, 0, sizeof *c);
    snprintf(c->call, sizeof c->call, "%s", a->call);
    c->n_fields = a->n_fields;
    for (int64_t i = 0; i < a->n_fields; i++) {
        snprintf(c->fields[i].name, NAME_LENGTH, "%s", a->fields[i].name);
        c->fields[i].value = a->fields[i].value;
    }
}

// Numbers as such, hashes in hexadecimal digits.
static const char *print_value(char text[OT_HEX_ID_LENGTH + 1], uint64_t value)
{
    if (value <= UINT32_MAX)
        snprintf(text, OT_HEX_ID_LENGTH + 1, "%" PRIu64, value);
    else
        ot__id_text(value, text);
    return text;
}

static void describe_difference(char *text, size_t size, const card *a, int a_rank, const card *b,
                                int b_rank)
{
    char a_value[OT_HEX_ID_LENGTH + 1], b_value[OT_HEX_ID_LENGTH + 1];

    if (strcmp(a->call, b->call) != 0 || a->n_fields != b->n_fields) {
        snprintf(text, size,
                 "ranks %d and %d make different calls, '%s' and '%s': all ranks must make the "
                 "same calls in the same order",
                 a_rank, b_rank, a->call, b->call);
        return;
    }
    for (int64_t i = 0; i < a->n_fields; i++)
        if (a->fields[i].value != b->fields[i].value ||
            strcmp(a->fields[i].name, b->fields[i].name) != 0) {
            snprintf(text, size, "ranks %d and %d differ in %s: %s and %s (%s)", a_rank, b_rank,
                     b->fields[i].name, print_value(a_value, a->fields[i].value),
                     print_value(b_value, b->fields[i].value), a->call);
            return;
        }
    snprintf(text, size, "ranks %d and %d differ in what they do in %s", a_rank, b_rank, a->call);
}

// The rank with the hash and the one with another: the latter says what it is.
static ot_status spread_difference(ot_comm *comm, const verdict *v, const ot_agreement *a)
{
    card own, first;
    char text[OT_COMM_TEXT_MAX] = "";

    fill_card(&own, a);
    first = own;
    OT_TRY(ot__comm_spread(comm, OT_TAG_TEXT, v->first, &first, sizeof first, a->call));
    if (comm->rank == v->differs)
        describe_difference(text, sizeof text, &first, ot__comm_member(comm, v->first), &own,
                            ot__comm_member(comm, v->differs));
    OT_TRY(spread_text(comm, v->differs, text, a->call));
    return ot__error(OT_ERR_MISMATCH, "%s", text);
}

// ---- the call ----

static uint64_t hash_agreement(const ot_agreement *a)
{
    uint64_t id = ot__id_mix(0, a->call, strlen(a->call));

    for (int64_t i = 0; i < a->n_fields; i++)
        id = ot__id_mix_word(id, a->fields[i].value);
    return ot__id_mix_word(id, (uint64_t)a->n_fields);
}

static ot_status agree_verdict(ot_comm *comm, ot_agreement *a)
{
    verdict v = {
        .status = (int32_t)a->status,
        .rank = comm->rank,
        .first = comm->rank,
        .differs = -1,
        .any = a->any,
        .all = a->all,
        .hash = hash_agreement(a),
    };

    comm->counters.agreements++;
    OT_TRY(exchange_verdicts(comm, &v, a->call));
    a->any = v.any;
    a->all = v.all;
    a->rank = v.status == OT_OK ? -1 : v.rank;
    a->status = v.status;
    // A failure explains a difference, and not the other way round.
    if (v.status != OT_OK)
        return spread_failure(comm, &v, a->call);
    if (v.differs < 0)
        return OT_OK;
    a->rank = v.differs;
    return spread_difference(comm, &v, a);
}

static ot_status check_agreement(const ot_agreement *a)
{
    if (!a->call)
        return ot__error(OT_ERR_INVALID, "ot_agreement: call is NULL");
    if (a->n_fields < 0 || a->n_fields > OT_AGREE_FIELDS_MAX)
        return ot__error(OT_ERR_INVALID, "ot_agreement: n_fields is %" PRId64 ", expected 0 to %d",
                         a->n_fields, OT_AGREE_FIELDS_MAX);
    if (a->n_fields > 0 && !a->fields)
        return ot__error(OT_ERR_INVALID, "ot_agreement: fields is NULL");
    for (int64_t i = 0; i < a->n_fields; i++)
        if (!a->fields[i].name)
            return ot__error(OT_ERR_INVALID, "ot_agreement: field %" PRId64 " has no name", i);
    if (a->status < 0 || a->status > INT32_MAX)
        return ot__error(OT_ERR_INVALID, "ot_agreement: status is %" PRId64, a->status);
    return OT_OK;
}

// What a rank cannot say it cannot agree on either; so it takes part as one that has failed.
ot_status ot_comm_agree(ot_comm *comm, ot_agreement *agreement)
{
    ot_agreement own = OT_AGREEMENT_INIT;
    ot_status given, st;

    OT_TRY(ot__comm_check(comm));
    given = OT_GIVEN(agreement);
    OT_THEN(given, OT_OPTIONS_READ(ot_agreement, OT_AGREEMENT_INIT, agreement, &own));
    st = given;
    OT_THEN(st, check_agreement(&own));
    if (st != OT_OK)
        own = (ot_agreement){sizeof own, "agree", st, -1, 0, 0, NULL, 0};
    st = agree_verdict(comm, &own);
    own.status = st;
    if (given == OT_OK)
        ot__options_write(agreement, &own, sizeof own);
    return st;
}

ot_status ot__comm_agree_on(ot_comm *comm, ot_status st, const char *call,
                            const ot_agree_field *fields, int n_fields)
{
    ot_agreement a = OT_AGREEMENT_INIT;

    a.call = call;
    a.status = st;
    a.fields = fields;
    a.n_fields = st == OT_OK ? n_fields : 0;
    return agree_verdict(comm, &a);
}
