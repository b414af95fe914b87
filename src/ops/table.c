// SPDX-License-Identifier: Apache-2.0
// The operator table, made from list.def and from the rows of the elementwise operators; behind
// them stand those of libraries.
#include "ops/table.h"

#include <string.h>

#define OT_OP(domain, name, file) extern const ot_op_def ot__op_##file[];
#include "ops/elementwise/rows.def"
#include "ops/list.def"
#undef OT_OP

typedef struct op_entry {
    const char *domain, *name;
    const ot_op_def *records;
} op_entry;

static const op_entry op_table[] = {
#define OT_OP(domain, name, file) {domain, #name, ot__op_##file},
#include "ops/elementwise/rows.def"
#include "ops/list.def"
#undef OT_OP
};

const int ot__op_newest_opset = 28;

// "ai.onnx" is the spelled-out form of the default domain.
static const char *plain_domain(const char *domain)
{
    return domain == NULL || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

// ---- operators of libraries: a list that only grows, so that readers need no lock ----

static _Atomic(ot__loaded_ops *) first_loaded;

ot__loaded_ops *ot__loaded_first(void)
{
    return atomic_load_explicit(&first_loaded, memory_order_acquire);
}

static ot__loaded_ops *next_loaded(const ot__loaded_ops *ops)
{
    return atomic_load_explicit(&ops->next, memory_order_acquire);
}

void ot__loaded_add(ot__loaded_ops *ops)
{
    _Atomic(ot__loaded_ops *) *end = &first_loaded;

    for (ot__loaded_ops *at; (at = atomic_load_explicit(end, memory_order_relaxed)) != NULL;)
        end = &at->next;
    atomic_store_explicit(end, ops, memory_order_release);
}

static const ot_op_def *find_loaded(const char *domain, const char *name)
{
    for (const ot__loaded_ops *l = ot__loaded_first(); l != NULL; l = next_loaded(l))
        for (int i = 0; i < l->n; i++)
            if (strcmp(l->ops[i]->name, name) == 0 &&
                strcmp(plain_domain(l->ops[i]->domain), domain) == 0)
                return l->ops[i];
    return NULL;
}

// ---- the table ----

// Linear on purpose: looked up once per node, and the list is merged by union, which does not keep
// it sorted.
const ot_op_def *ot__op_find_records(const char *domain, const char *name)
{
    domain = plain_domain(domain);
    for (size_t i = 0; i < OT_COUNT(op_table); i++)
        if (strcmp(op_table[i].name, name) == 0 && strcmp(op_table[i].domain, domain) == 0)
            return op_table[i].records;
    return find_loaded(domain, name);
}

static const ot_op_def *newest_until(const ot_op_def *records, int64_t opset)
{
    const ot_op_def *found = NULL;

    for (const ot_op_def *r = records; r->name != NULL; r++)
        if (r->since <= opset && (found == NULL || r->since > found->since))
            found = r;
    return found;
}

const ot_op_def *ot__op_find(const char *domain, const char *name, int64_t opset)
{
    const ot_op_def *records = ot__op_find_records(domain, name);

    return records == NULL ? NULL : newest_until(records, opset);
}

static ot_status unknown_version(const ot_node *node, const ot_op_def *records, int64_t opset)
{
    char label[160], known[120] = "";
    size_t used = 0;

    for (const ot_op_def *r = records; r->name != NULL && used < sizeof(known); r++)
        used += (size_t)snprintf(known + used, sizeof(known) - used, used == 0 ? "%d" : ", %d",
                                 r->since);
    return ot__error(OT_ERR_UNSUPPORTED,
                     "%s: opset %" PRId64 " is not supported, versions known start at %s",
                     ot__node_label(node, label, sizeof(label)), opset, known);
}

ot_status ot__op_lookup(const ot_model *model, const ot_node *node, const ot_op_def **out)
{
    const char *domain = plain_domain(node->domain);
    const char *shown = domain[0] == '\0' ? "ai.onnx" : domain;
    const ot_op_def *records = ot__op_find_records(domain, node->op_type);
    const int64_t opset = ot__model_opset(model, domain);
    char label[160];

    *out = NULL;
    if (records == NULL)
        return ot__error(OT_ERR_UNSUPPORTED, "%s: domain %s has no operator of that name here",
                         ot__node_label(node, label, sizeof(label)), shown);
    if (opset == 0)
        return ot__error(OT_ERR_FORMAT, "%s: the model imports no opset of domain %s",
                         ot__node_label(node, label, sizeof(label)), shown);
    if (domain[0] == '\0' && opset > ot__op_newest_opset)
        return ot__error(OT_ERR_UNSUPPORTED,
                         "%s: opset %" PRId64 " is newer than the newest known, %d",
                         ot__node_label(node, label, sizeof(label)), opset, ot__op_newest_opset);
    *out = newest_until(records, opset);
    return *out == NULL ? unknown_version(node, records, opset) : OT_OK;
}

int ot__op_count(void)
{
    int n = (int)OT_COUNT(op_table);

    for (const ot__loaded_ops *l = ot__loaded_first(); l != NULL; l = next_loaded(l))
        n += l->n;
    return n;
}

const ot_op_def *ot__op_records(int index)
{
    const int n_own = (int)OT_COUNT(op_table);

    if (index < n_own)
        return op_table[index].records;
    index -= n_own;
    for (const ot__loaded_ops *l = ot__loaded_first(); l != NULL; l = next_loaded(l)) {
        if (index < l->n)
            return l->ops[index];
        index -= l->n;
    }
    return NULL;
}
