// SPDX-License-Identifier: Apache-2.0
// Does a node fit its operator's record: arity, attributes, element types.
#include "op/check.h"

#include <math.h>
#include <string.h>

static bool has_flag(const ot_port *port, unsigned flag)
{
    return (port->flags & flag) != 0;
}

static const ot_port *port_at(const ot_port *ports, int i)
{
    if (ports == NULL || i < 0)
        return NULL;
    for (int k = 0; ports[k].name != NULL; k++)
        if (k == i || has_flag(&ports[k], OT_PORT_VARIADIC))
            return &ports[k];
    return NULL;
}

const ot_port *ot__op_input_port(const ot_op_def *op, int i)
{
    return port_at(op->inputs, i);
}

const ot_port *ot__op_output_port(const ot_op_def *op, int i)
{
    return port_at(op->outputs, i);
}

int ot__op_tile_attrs(const ot_node *node, float *attrs)
{
    int n = 0;

    for (const ot_attr_spec *a = node->op->attrs; a != NULL && a->name != NULL; a++)
        if (a->kind == OT_ATTRIBUTE_FLOAT && n < OT_TILE_MAX_ATTRS)
            attrs[n++] = ot_attr_float(node, a->name);
    return n;
}

bool ot__op_writes_state(const ot_node *node)
{
    for (int i = 0; i < node->n_inputs; i++) {
        const ot_port *port = ot__op_input_port(node->op, i);

        if (port != NULL && has_flag(port, OT_PORT_STATE) && node->inputs[i] != NULL)
            return true;
    }
    return false;
}

bool ot__op_is_deterministic(const ot_node *node)
{
    return (node->op->flags & (OT_OP_RANDOM | OT_OP_INTERNAL)) == 0 && !ot__op_writes_state(node) &&
           !ot__next_subgraph(&(ot__subgraphs){.node = node});
}

const ot_op_def *ot__node_record(const ot_node *node)
{
    if (node->op)
        return node->op;
    return ot__op_find(node->domain, node->op_type,
                       ot__model_opset(node->graph->model, node->domain));
}

bool ot__node_rearranges(const ot_node *node)
{
    const ot_op_def *op = ot__node_record(node);

    return op && (op->flags & (OT_OP_REARRANGE | OT_OP_VIEW)) != 0;
}

bool ot__op_is_differentiable(const ot_op_def *op)
{
    return op->grad != NULL;
}

bool ot__op_is_composed(const ot_op_def *op)
{
    return op->kernels == NULL && op->train != NULL;
}

// ---- type sets ----

static uint64_t type_bit(const char *name)
{
    ot_dtype dtype;

    return ot__dtype_from_name(name, &dtype) ? UINT64_C(1) << dtype : 0;
}

// But strings, whose elements have no size of their own, and packed types, whose elements have no
// bytes of their own: what takes them as they are says so.
static uint64_t every_type(void)
{
    uint64_t set = 0;

#define DTYPE_BIT(constant, number, text, n_bits) set |= (uint64_t)((n_bits) >= 8) << (number);
    OT_DTYPE_LIST(DTYPE_BIT)
#undef DTYPE_BIT
    return set;
}

static uint64_t packed_types(void)
{
    uint64_t set = 0;

#define DTYPE_BIT(constant, number, text, n_bits)                                                  \
    set |= (uint64_t)((n_bits) > 0 && (n_bits) < 8) << (number);
    OT_DTYPE_LIST(DTYPE_BIT)
#undef DTYPE_BIT
    return set;
}

// The words up to ';' or the end as a set.
static uint64_t parse_set(const char *words)
{
    uint64_t set = 0;

    while (*words != '\0' && *words != ';') {
        size_t length = strcspn(words, " ;");
        char name[16];

        if (length > 0 && length < sizeof(name)) {
            memcpy(name, words, length);
            name[length] = '\0';
            set |= strcmp(name, "any") == 0 ? every_type() : type_bit(name);
        }
        words += length;
        words += strspn(words, " ");
    }
    return set;
}

bool ot__types_set(const char *types, const char *variable, uint64_t *set)
{
    const size_t length = strlen(variable);

    for (const char *at = types; at != NULL && *at != '\0'; at += strcspn(at, ";")) {
        at += strspn(at, " ;");
        if (strncmp(at, variable, length) == 0 && at[length] == ':') {
            *set = parse_set(at + length + 1);
            return true;
        }
    }
    return false;
}

static const uint64_t narrow_floats = UINT64_C(1) << OT_F16 | UINT64_C(1) << OT_BF16;

// A variable that may be f32 may be f16 and bf16 too: nodes of those run kernels for f32 (edges.c).
// Optimizers do not: what they keep would lose small updates. One that may be any type may be a
// packed one: its elements are then moved as bytes.
uint64_t ot__op_type_set(const ot_op_def *op, const char *type)
{
    uint64_t set;

    if (!ot__types_set(op->types, type, &set))
        return type_bit(type);
    if ((every_type() & ~set) == 0)
        set |= packed_types();
    return (set >> OT_F32 & 1) != 0 && op->rule == NULL ? set | narrow_floats : set;
}

bool ot__op_types_meet(const ot_model *model, const ot_port *port, ot_dtype dtype, ot_dtype other)
{
    const bool is_pair = (dtype == OT_F32 && ot__dtype_is_narrow(other)) ||
                         (other == OT_F32 && ot__dtype_is_narrow(dtype));

    return dtype == other ||
           (is_pair && (model->narrow != OT_DTYPE_UNDEFINED || has_flag(port, OT_PORT_F32)));
}

static bool is_variable(const ot_op_def *op, const char *type)
{
    uint64_t set;

    return ot__types_set(op->types, type, &set);
}

const char *ot__types_text(uint64_t set, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (int t = 1; t < 64 && used < size; t++)
        if ((set >> t & 1) != 0)
            used += (size_t)snprintf(text + used, size - used, used == 0 ? "%s" : " %s",
                                     ot_dtype_name((ot_dtype)t));
    return text;
}

ot_dtype ot__op_bound_type(const ot_op_def *op, const ot__op_types *types, const ot_port *port)
{
    const uint64_t set = ot__op_type_set(op, port->type);

    for (int k = 0; k < types->n; k++)
        if (strcmp(types->variable[k], port->type) == 0)
            return types->dtype[k];
    for (int t = 1; t < 64; t++)
        if (set == UINT64_C(1) << t)
            return (ot_dtype)t;
    return OT_DTYPE_UNDEFINED;
}

static ot_status check_input_type(const ot_node *node, int i, const ot_port *port,
                                  ot__op_types *types)
{
    const ot_dtype dtype = node->inputs[i]->dtype;
    const uint64_t set = ot__op_type_set(node->op, port->type);
    char label[160], supported[160];

    if ((set >> dtype & 1) == 0)
        return ot__error(OT_ERR_UNSUPPORTED, "%s: input %d (%s) is %s, supported: %s",
                         ot__node_label(node, label, sizeof(label)), i, port->name,
                         ot_dtype_name(dtype), ot__types_text(set, supported, sizeof(supported)));
    if (has_flag(port, OT_PORT_HETEROGENEOUS) || !is_variable(node->op, port->type))
        return OT_OK;
    for (int k = 0; k < types->n; k++) {
        if (strcmp(types->variable[k], port->type) != 0)
            continue;
        if (ot__op_types_meet(node->graph->model, port, dtype, types->dtype[k]))
            return OT_OK;
        return ot__error(OT_ERR_INVALID, "%s: input %d (%s) is %s, the inputs before it are %s",
                         ot__node_label(node, label, sizeof(label)), i, port->name,
                         ot_dtype_name(dtype), ot_dtype_name(types->dtype[k]));
    }
    if (types->n < OT__MAX_TYPE_VARIABLES) {
        types->variable[types->n] = port->type;
        types->dtype[types->n++] = dtype;
    }
    return OT_OK;
}

ot_status ot__op_check_types(const ot_node *node, ot__op_types *types)
{
    char label[160];

    if (ot__op_is_foreign(node) || node->op == ot__op_control)
        return OT_OK;
    for (int i = 0; i < node->n_inputs; i++) {
        const ot_value *x = node->inputs[i];
        const ot_port *port = ot__op_input_port(node->op, i);

        if (x == NULL || port == NULL || x->kind == OT_VALUE_UNTYPED)
            continue;
        if (x->kind == OT_VALUE_OTHER ||
            (x->kind == OT_VALUE_SEQUENCE) != has_flag(port, OT_PORT_SEQUENCE))
            return ot__error(OT_ERR_INVALID, "%s: input %d (%s) is %s, expected %s",
                             ot__node_label(node, label, sizeof(label)), i, port->name,
                             x->kind == OT_VALUE_TENSOR     ? "a tensor"
                             : x->kind == OT_VALUE_SEQUENCE ? "a sequence"
                                                            : "neither tensor nor sequence",
                             has_flag(port, OT_PORT_SEQUENCE) ? "a sequence" : "a tensor");
        if (x->dtype != OT_DTYPE_UNDEFINED)
            OT_TRY(check_input_type(node, i, port, types));
    }
    return OT_OK;
}

// ---- structure ----

static ot_status check_ports(const ot_node *node, const ot_port *ports, ot_value *const *values,
                             int n_values, const char *what)
{
    char label[160];
    int k = 0;

    if (n_values > 0 && port_at(ports, n_values - 1) == NULL) {
        while (ports != NULL && ports[k].name != NULL)
            k++;
        return ot__error(OT_ERR_INVALID, "%s: %d %ss, expected at most %d",
                         ot__node_label(node, label, sizeof(label)), n_values, what, k);
    }
    for (; ports != NULL && ports[k].name != NULL; k++)
        if (!has_flag(&ports[k], OT_PORT_OPTIONAL) && (k >= n_values || values[k] == NULL))
            return ot__error(OT_ERR_INVALID, "%s: %s %d (%s) is missing",
                             ot__node_label(node, label, sizeof(label)), what, k, ports[k].name);
    return OT_OK;
}

static const char *attr_kind_name(int kind)
{
    static const char *const names[] = {"undefined", "float",  "int",  "string", "tensor",
                                        "graph",     "floats", "ints", "strings"};

    return kind >= 0 && kind < (int)OT_COUNT(names) ? names[kind] : "another kind";
}

static const ot_attr_spec *find_spec(const ot_op_def *op, const char *name)
{
    for (const ot_attr_spec *s = op->attrs; s != NULL && s->name != NULL; s++)
        if (strcmp(s->name, name) == 0)
            return s;
    return NULL;
}

ot_status ot__attr_check_bounds(const ot_attr_spec *spec, double value)
{
    const bool is_whole = spec->kind == OT_ATTRIBUTE_INT || spec->kind == OT_ATTRIBUTE_INTS;

    if (!(spec->low < spec->high) ||
        (value >= spec->low && (value < spec->high || isinf(spec->high)) &&
         (!is_whole || floor(value) == value)))
        return OT_OK;
    if (is_whole && spec->low == 0 && spec->high == 2)
        return ot__error(OT_ERR_INVALID, "%s is %g, expected 0 or 1", spec->name, value);
    if (isinf(spec->high))
        return ot__error(OT_ERR_INVALID, "%s is %g, expected %sat least %g", spec->name, value,
                         is_whole ? "a whole number of " : "", spec->low);
    return ot__error(OT_ERR_INVALID, "%s is %g, expected %sat least %g and below %g", spec->name,
                     value, is_whole ? "a whole number of " : "", spec->low, spec->high);
}

static ot_status check_attr_numbers(const ot_node *node, const ot_attr *a, const ot_attr_spec *spec)
{
    const bool is_list = a->kind == OT_ATTR_FLOATS || a->kind == OT_ATTR_INTS;
    const int n = is_list ? a->n : a->kind == OT_ATTR_FLOAT || a->kind == OT_ATTR_INT;
    ot_status st = OT_OK;

    for (int i = 0; i < n && st == OT_OK; i++)
        st = ot__attr_check_bounds(spec, a->kind == OT_ATTR_FLOAT    ? (double)a->f
                                         : a->kind == OT_ATTR_INT    ? (double)a->i
                                         : a->kind == OT_ATTR_FLOATS ? (double)a->floats[i]
                                                                     : (double)a->ints[i]);
    if (st != OT_OK)
        ot__error_prefix(st, "%s", OT_LABEL(node));
    return st;
}

static ot_status check_node_attrs(const ot_node *node)
{
    char label[160];

    for (int i = 0; i < node->n_attrs; i++) {
        const ot_attr *a = node->attrs[i];
        const ot_attr_spec *spec = find_spec(node->op, a->name);

        if (ot__starts_with(a->name, "__")) // ONNX leaves these to tools
            continue;
        if (spec == NULL)
            return ot__error(OT_ERR_INVALID, "%s: unknown attribute '%s'",
                             ot__node_label(node, label, sizeof(label)), a->name);
        if ((int)a->kind != spec->kind)
            return ot__error(OT_ERR_INVALID, "%s: attribute '%s' is %s, expected %s",
                             ot__node_label(node, label, sizeof(label)), a->name,
                             attr_kind_name((int)a->kind), attr_kind_name(spec->kind));
        OT_TRY(check_attr_numbers(node, a, spec));
    }
    for (const ot_attr_spec *s = node->op->attrs; s != NULL && s->name != NULL; s++)
        if ((s->flags & OT_ATTR_REQUIRED) != 0 && ot__node_attr(node, s->name) == NULL)
            return ot__error(OT_ERR_INVALID, "%s: attribute '%s' is missing",
                             ot__node_label(node, label, sizeof(label)), s->name);
    return OT_OK;
}

ot_status ot__op_check_node(const ot_node *node)
{
    OT_TRY(check_ports(node, node->op->inputs, node->inputs, node->n_inputs, "input"));
    OT_TRY(check_ports(node, node->op->outputs, node->outputs, node->n_outputs, "output"));
    return check_node_attrs(node);
}

// ---- attributes ----

static const ot_attr_spec *default_of(const ot_node *node, const char *name)
{
    const ot_attr_spec *spec = node->op == NULL ? NULL : find_spec(node->op, name);

    return spec != NULL && (spec->flags & OT_ATTR_HAS_DEFAULT) != 0 ? spec : NULL;
}

// The node's own attribute when it has that kind.
static const ot_attr *given(const ot_node *node, const char *name, ot_attr_kind kind)
{
    const ot_attr *a = ot__node_attr(node, name);

    return a != NULL && a->kind == kind ? a : NULL;
}

bool ot_attr_given(const ot_node *node, const char *name)
{
    return ot__node_attr(node, name) != NULL;
}

int64_t ot_attr_int(const ot_node *node, const char *name)
{
    const ot_attr *a = given(node, name, OT_ATTR_INT);
    const ot_attr_spec *spec = default_of(node, name);

    return a != NULL ? a->i : spec != NULL ? spec->i : 0;
}

float ot_attr_float(const ot_node *node, const char *name)
{
    const ot_attr *a = given(node, name, OT_ATTR_FLOAT);
    const ot_attr_spec *spec = default_of(node, name);

    return a != NULL ? a->f : spec != NULL ? spec->f : 0.0F;
}

// Attribute strings are not NUL-terminated in the file; the reader terminates them.
const char *ot_attr_string(const ot_node *node, const char *name)
{
    const ot_attr *a = given(node, name, OT_ATTR_STRING);
    const ot_attr_spec *spec = default_of(node, name);

    if (a != NULL)
        return a->s.data == NULL ? "" : (const char *)a->s.data;
    return spec != NULL && spec->s != NULL ? spec->s : "";
}

const int64_t *ot_attr_ints(const ot_node *node, const char *name, int *n)
{
    const ot_attr *a = given(node, name, OT_ATTR_INTS);

    *n = a == NULL ? 0 : a->n;
    return a == NULL ? NULL : a->ints;
}

const float *ot_attr_floats(const ot_node *node, const char *name, int *n)
{
    const ot_attr *a = given(node, name, OT_ATTR_FLOATS);

    *n = a == NULL ? 0 : a->n;
    return a == NULL ? NULL : a->floats;
}

const ot_tensor *ot_attr_tensor(const ot_node *node, const char *name)
{
    const ot_attr *a = given(node, name, OT_ATTR_TENSOR);

    return a == NULL ? NULL : a->t;
}
