// SPDX-License-Identifier: Apache-2.0
// Shared libraries of operators: opened for good, checked as the operators here are, and put
// behind them in the table.
#define _GNU_SOURCE // dladdr()
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "onnxtrain/operators.h"
#include "ops/elementwise/elementwise.h"
#include "ops/table.h"

static const char entry[] = "ot_op_library";
static pthread_mutex_t load_mutex = PTHREAD_MUTEX_INITIALIZER;

typedef const struct ot_op_library *entry_function(void);

// ---- the file ----

// References of a library are looked up among what is global. Where this code is in a module that
// another program has opened, as Python does, it becomes global only now.
static void make_global(void)
{
    Dl_info own;

    if (dladdr(entry, &own) != 0 && own.dli_fname != NULL)
        (void)dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
}

static ot_status refuse_file(const char *path, const char *why)
{
    if (why != NULL && strstr(why, "undefined symbol: ot_") != NULL)
        return ot__error(OT_ERR_UNSUPPORTED,
                         "%s: cannot be loaded: %s; a program that has libonnxtrain.a inside "
                         "exports its functions where it is linked with -rdynamic",
                         path, why);
    return ot__error(OT_ERR_FORMAT, "%s: cannot be loaded: %s", path, why == NULL ? "" : why);
}

static ot_status open_op_library(const char *path, void **handle)
{
    char file[PATH_MAX]; // a name without '/' would be looked for elsewhere

    if (realpath(path, file) == NULL)
        return ot__error_errno(path, "cannot be opened");
    make_global();
    *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    return *handle == NULL ? refuse_file(path, dlerror()) : OT_OK;
}

static ot_status find_library(void *handle, const struct ot_op_library **library)
{
    void *symbol = dlsym(handle, entry);
    entry_function *function;

    if (symbol == NULL)
        return ot__error(OT_ERR_FORMAT, "it does not define %s(): it is no library of operators",
                         entry);
    memcpy(&function, &symbol, sizeof function);
    *library = function();
    if (*library == NULL)
        return ot__error(OT_ERR_FORMAT, "%s() gives NULL", entry);
    if ((*library)->abi != OT_OP_ABI)
        return ot__error(OT_ERR_UNSUPPORTED,
                         "it is made for version %d of the interface of operators (OT_OP_ABI), "
                         "this is version %d: compile it with the op.h of onnxtrain %s",
                         (*library)->abi, OT_OP_ABI, ot_version());
    if ((*library)->n_ops < 1 || (*library)->ops == NULL)
        return ot__error(OT_ERR_INVALID, "it has %d operators%s", (*library)->n_ops,
                         (*library)->ops == NULL ? ", and ops is NULL" : "");
    return OT_OK;
}

// ---- its records ----

// What the kernels of elementwise operators take for granted of a record.
static ot_status check_tile(const ot_op_def *op)
{
    int n_attrs = 0, n_inputs = 0;
    const uint64_t taken = ot__op_type_set(op, "T");
    const char *why = NULL;

    for (const ot_port *port = op->inputs; port != NULL && port->name != NULL; port++, n_inputs++)
        if (strcmp(port->type, "T") != 0 || (port->flags & OT_PORT_VARIADIC) != 0)
            why = "its inputs are of the variable T, and not variadic";
    for (const ot_attr_spec *a = op->attrs; a != NULL && a->name != NULL; a++)
        n_attrs += a->kind == OT_ATTRIBUTE_FLOAT;
    if (n_inputs < 1 || n_inputs > OT__MAX_OPERANDS)
        why = "it has one to three inputs";
    else if (op->outputs[0].name == NULL || op->outputs[1].name != NULL ||
             strcmp(op->outputs[0].type, "T") != 0)
        why = "it has one output, of the variable T";
    else if (n_attrs > OT_TILE_MAX_ATTRS)
        why = "it has at most four float attributes";
    else if (op->tile->f64 == NULL)
        why = "it has f64";
    else if (((taken >> OT_I32 & 1) != 0 && op->tile->i32 == NULL) ||
             ((taken >> OT_I64 & 1) != 0 && op->tile->i64 == NULL))
        why = "it has i32 or i64 where T may be that";
    else if ((taken & ~(UINT64_C(1) << OT_F32 | UINT64_C(1) << OT_F64 | UINT64_C(1) << OT_F16 |
                        UINT64_C(1) << OT_BF16 | UINT64_C(1) << OT_I32 | UINT64_C(1) << OT_I64)) !=
             0)
        why = "T is f32, f64, i32 or i64";
    if (why == NULL)
        return OT_OK;
    return ot__error(OT_ERR_INVALID, "%s, opset %d: of a record that has a tile and no kernels: %s",
                     op->name, op->since, why);
}

// Whether the kernels of elementwise operators run it.
static bool is_run_by_tile(const ot_op_def *op)
{
    return op->tile != NULL && op->kernels == NULL && op->upgrade == NULL && op->train == NULL;
}

// The records of an operator, with kernels.
static ot_status copy_records(const ot_op_def *records, const ot_op_def **out)
{
    ot_op_def *copy;
    size_t n = 0;

    while (records[n].name != NULL)
        n++;
    copy = ot__alloc_zero(n + 1, sizeof *copy);
    OT_TRY(ot__made(copy != NULL));
    *out = copy;
    for (size_t i = 0; i < n; i++) {
        copy[i] = records[i];
        if (copy[i].rule != NULL)
            return ot__error(OT_ERR_UNSUPPORTED, "%s: optimizers (rule) are of onnxtrain alone",
                             copy[i].name);
        if (is_run_by_tile(&copy[i]))
            copy[i].kernels = ot__tile_kernels;
    }
    OT_TRY(ot__op_check_records(copy));
    for (size_t i = 0; i < n; i++)
        if (copy[i].kernels == ot__tile_kernels)
            OT_TRY(check_tile(&copy[i]));
    return OT_OK;
}

static const char *domain_of(const ot_op_def *op)
{
    return op->domain == NULL || op->domain[0] == '\0' ? "ai.onnx" : op->domain;
}

static bool is_named_alike(const ot_op_def *a, const ot_op_def *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(domain_of(a), domain_of(b)) == 0;
}

static ot_status check_is_new(const ot__loaded_ops *ops, const ot_op_def *op)
{
    for (int i = 0; i < ops->n; i++)
        if (is_named_alike(ops->ops[i], op))
            return ot__error(OT_ERR_INVALID, "%s.%s stands twice in it", domain_of(op), op->name);
    if (ot__op_find_records(op->domain, op->name) != NULL)
        return ot__error(OT_ERR_INVALID,
                         "there is an operator %s.%s already; give yours another domain or name",
                         domain_of(op), op->name);
    return OT_OK;
}

static void free_ops(ot__loaded_ops *ops)
{
    for (int i = 0; ops != NULL && i < ops->n; i++)
        ot__free((void *)ops->ops[i]);
    ot__free(ops);
}

static ot_status read_ops(const struct ot_op_library *library, ot__loaded_ops *ops)
{
    for (int i = 0; i < library->n_ops; i++) {
        const ot_op_def *copy = NULL;
        ot_status st = library->ops[i] == NULL
                           ? ot__error(OT_ERR_INVALID, "operator %d of it is NULL", i)
                       : library->ops[i]->name == NULL
                           ? ot__error(OT_ERR_INVALID, "operator %d of it has no name", i)
                           : copy_records(library->ops[i], &copy);

        OT_THEN(st, check_is_new(ops, copy));
        if (st != OT_OK) {
            ot__free((void *)copy);
            return st;
        }
        ops->ops[ops->n++] = copy;
    }
    return OT_OK;
}

static bool is_loaded(const struct ot_op_library *library)
{
    for (ot__loaded_ops *l = ot__loaded_first(); l != NULL; l = l->next)
        if (l->library == library)
            return true;
    return false;
}

// *is_kept: the file stays open.
static ot_status take_library(void *handle, bool *is_kept)
{
    const struct ot_op_library *library = NULL;
    ot__loaded_ops *ops;
    ot_status st;

    OT_TRY(find_library(handle, &library));
    if (is_loaded(library))
        return OT_OK;
    ops = ot__alloc_zero(1, sizeof *ops + (size_t)library->n_ops * sizeof ops->ops[0]);
    OT_TRY(ot__made(ops != NULL));
    ops->library = library;
    st = read_ops(library, ops);
    *is_kept = st == OT_OK;
    if (*is_kept)
        ot__loaded_add(ops);
    else
        free_ops(ops);
    return st;
}

static ot_status load(const char *path)
{
    void *handle = NULL;
    bool is_kept = false;
    ot_status st;

    OT_TRY(open_op_library(path, &handle));
    st = take_library(handle, &is_kept);
    if (st != OT_OK)
        ot__error_prefix(st, "%s", path);
    if (!is_kept)
        dlclose(handle);
    return st;
}

ot_status ot_op_library_load(const char *path)
{
    ot_status st;

    OT_TRY(OT_GIVEN(path));
    ot__forks_hold();
    pthread_mutex_lock(&load_mutex);
    st = load(path);
    pthread_mutex_unlock(&load_mutex);
    ot__forks_release();
    return st;
}
