// SPDX-License-Identifier: Apache-2.0
// Schedules and loss scalers as JSON: {"type": "LinearWarmupLRScheduler", "total_steps": 100}.
// Types of the reference have its parameters; our own have the members of the struct, which is how
// schedules are written.
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "trainer/options.h"

// ---- parameters ----

typedef struct parameter {
    const char *name;
    enum { PARAMETER_INT, PARAMETER_NUMBER, PARAMETER_BOOL } kind;
    size_t offset; // of an int64_t, a double or an int
    double low, high;
    enum { FROM_LOW, ABOVE_LOW } least;
    bool is_required;
} parameter;

// What a type's parameters are read into; what the reference calls otherwise than we do is here.
typedef struct schedule_values {
    ot_schedule schedule;
    double warmup, cycles, lr_end;
} schedule_values;

#define VALUE(member) offsetof(schedule_values, member)
#define OURS(member) offsetof(schedule_values, schedule.member)
#define TOTAL_STEPS                                                                                \
    {                                                                                              \
        "total_steps", PARAMETER_INT, OURS(total_steps), 1, INFINITY, .is_required = true          \
    }
#define WARMUP                                                                                     \
    {                                                                                              \
        "warmup", PARAMETER_NUMBER, VALUE(warmup), 0, 1, FROM_LOW, false                           \
    }

static const parameter plain_parameters[] = {TOTAL_STEPS, WARMUP, {0}};
static const parameter cosine_parameters[] = {
    TOTAL_STEPS,
    {"cycles", PARAMETER_NUMBER, VALUE(cycles), 0, INFINITY, ABOVE_LOW, false},
    WARMUP,
    {0}};
static const parameter poly_parameters[] = {
    TOTAL_STEPS,
    {"lr_end", PARAMETER_NUMBER, VALUE(lr_end), 0, INFINITY, FROM_LOW, false},
    {"power", PARAMETER_NUMBER, OURS(power), 0, INFINITY, FROM_LOW, false},
    WARMUP,
    {0}};
static const parameter own_parameters[] = {
    {"warmup_steps", PARAMETER_NUMBER, OURS(warmup_steps), 0, INFINITY, FROM_LOW, false},
    {"total_steps", PARAMETER_INT, OURS(total_steps), 0, INFINITY, FROM_LOW, false},
    {"step_size", PARAMETER_INT, OURS(step_size), 1, INFINITY, FROM_LOW, false},
    {"gamma", PARAMETER_NUMBER, OURS(gamma), 0, INFINITY, FROM_LOW, false},
    {"power", PARAMETER_NUMBER, OURS(power), 0, INFINITY, FROM_LOW, false},
    {"end_factor", PARAMETER_NUMBER, OURS(end_factor), 0, INFINITY, FROM_LOW, false},
    {"cycles", PARAMETER_NUMBER, OURS(cycles), 0, INFINITY, FROM_LOW, false},
    {0}};

#define SCALER(member) offsetof(ot_loss_scaler, member)
static const parameter scaler_parameters[] = {
    {"automatic_update", PARAMETER_BOOL, SCALER(automatic_update), 0, 1, FROM_LOW, false},
    {"loss_scale", PARAMETER_NUMBER, SCALER(loss_scale), 0, INFINITY, ABOVE_LOW, false},
    {"up_scale_window", PARAMETER_INT, SCALER(up_scale_window), -INFINITY, INFINITY, FROM_LOW,
     false},
    {"min_loss_scale", PARAMETER_NUMBER, SCALER(min_loss_scale), -INFINITY, INFINITY, FROM_LOW,
     false},
    {"max_loss_scale", PARAMETER_NUMBER, SCALER(max_loss_scale), -INFINITY, INFINITY, FROM_LOW,
     false},
    {0}};

static void check_schedule_value(ot__reader *r, const parameter *p, double value)
{
    if (p->least == ABOVE_LOW ? !(value > p->low) : !(value >= p->low))
        ot__violate(r->v, "", p->least == ABOVE_LOW ? "must be above %g" : "min value is %g",
                    p->low);
    else if (p->high != INFINITY && !(value < p->high))
        ot__violate(r->v, "", "must be below %g", p->high);
}

static void read_schedule_value(ot__reader *r, const parameter *p, const json_t *json, void *values)
{
    void *at = (char *)values + p->offset;

    if (p->kind == PARAMETER_BOOL)
        ot__reader_bool(r, json, at);
    else if (p->kind == PARAMETER_INT && ot__reader_int(r, json, at))
        check_schedule_value(r, p, (double)*(const int64_t *)at);
    else if (p->kind == PARAMETER_NUMBER && ot__reader_number(r, json, at))
        check_schedule_value(r, p, *(const double *)at);
}

static const parameter *find_schedule_parameter(const parameter *parameters, const char *name,
                                                ot__names *names)
{
    *names = (ot__names){.wanted = name};
    for (const parameter *p = parameters; p->name; p++) {
        ot__names_add(names, p->name);
        if (strcmp(p->name, name) == 0)
            return p;
    }
    return NULL;
}

// All members but "type".
static void read_schedule_parameters(ot__reader *r, const parameter *parameters, const json_t *json,
                                     void *values)
{
    const char *key;
    const json_t *value;

    json_object_foreach((json_t *)(uintptr_t)json, key, value)
    {
        ot__names names;
        const parameter *p = find_schedule_parameter(parameters, key, &names);

        if (strcmp(key, "type") == 0)
            continue;
        ot__violations_enter(r->v, key);
        if (p)
            read_schedule_value(r, p, value, values);
        else
            ot__unknown_field(r, &names);
        ot__violations_leave(r->v);
    }
    for (const parameter *p = parameters; p->name; p++)
        if (p->is_required && !json_object_get(json, p->name)) {
            ot__violations_enter(r->v, p->name);
            ot__violate(r->v, "", "required field");
            ot__violations_leave(r->v);
        }
}

// ---- types ----

typedef struct schedule_type {
    const char *name;
    ot_schedule_kind kind;
    const parameter *parameters;
} schedule_type;

// Those of our own in the order of the enum.
static const schedule_type schedule_types[] = {
    {"constant", OT_SCHEDULE_CONSTANT, own_parameters},
    {"linear", OT_SCHEDULE_LINEAR, own_parameters},
    {"cosine", OT_SCHEDULE_COSINE, own_parameters},
    {"step", OT_SCHEDULE_STEP, own_parameters},
    {"exponential", OT_SCHEDULE_EXPONENTIAL, own_parameters},
    {"polynomial", OT_SCHEDULE_POLYNOMIAL, own_parameters},
    {"ConstantWarmupLRScheduler", OT_SCHEDULE_CONSTANT, plain_parameters},
    {"CosineWarmupLRScheduler", OT_SCHEDULE_COSINE, cosine_parameters},
    {"LinearWarmupLRScheduler", OT_SCHEDULE_LINEAR, plain_parameters},
    {"PolyWarmupLRScheduler", OT_SCHEDULE_POLYNOMIAL, poly_parameters},
};

// Which of the names "type" has; -1 after a violation.
static int read_schedule_type(ot__reader *r, const json_t *json, const char *(*name)(int), int n)
{
    const json_t *type = json_object_get(json, "type");
    ot__names names = {.wanted = json_string_value(type)};
    int found = -1;

    ot__violations_enter(r->v, "type");
    if (!type) {
        ot__violate(r->v, "", "required field");
    } else if (!names.wanted) {
        ot__violate(r->v, "", "must be of string type");
    } else {
        for (int i = 0; i < n; i++) {
            ot__names_add(&names, name(i));
            if (strcmp(names.wanted, name(i)) == 0)
                found = i;
        }
        if (found < 0)
            ot__violate(r->v, ot__names_hint(&names), "unallowed value '%s'", names.wanted);
    }
    ot__violations_leave(r->v);
    return found;
}

static const char *schedule_type_name(int i)
{
    return schedule_types[i].name;
}

// The reference's end is a rate, ours a part of the first one.
static void set_end(ot__reader *r, schedule_values *values)
{
    if (!(r->lr > values->lr_end)) {
        ot__violations_enter(r->v, "lr_end");
        ot__violate(r->v, "", "is %g, expected below the learning rate, which is %g",
                    values->lr_end, r->lr);
        ot__violations_leave(r->v);
        return;
    }
    values->schedule.end_factor = values->lr_end / r->lr;
}

const ot_schedule *ot__schedule_from_json(ot__reader *r, const json_t *json)
{
    schedule_values values = {
        .schedule = OT_SCHEDULE_INIT, .warmup = 0.002, .cycles = 0.5, .lr_end = 1e-7};
    const int violations_before = r->v->count;
    const schedule_type *type;
    ot_schedule *schedule;
    int i;

    if (!ot__reader_object(r, json))
        return NULL;
    i = read_schedule_type(r, json, schedule_type_name, (int)OT_COUNT(schedule_types));
    if (i < 0)
        return NULL;
    type = &schedule_types[i];
    read_schedule_parameters(r, type->parameters, json, &values);
    if (r->v->count > violations_before)
        return NULL;
    values.schedule.kind = type->kind;
    values.schedule.initial_lr = r->lr;
    if (type->parameters != own_parameters)
        values.schedule.warmup_steps = values.warmup * (double)values.schedule.total_steps;
    if (type->parameters == cosine_parameters)
        values.schedule.cycles = values.cycles;
    if (type->parameters == poly_parameters)
        set_end(r, &values);
    schedule = ot__reader_alloc(r, sizeof *schedule);
    if (schedule)
        *schedule = values.schedule;
    return schedule;
}

static const char *scaler_type_name(int i)
{
    (void)i;
    return "DynamicLossScaler";
}

ot_loss_scaler *ot__scaler_from_json(ot__reader *r, const json_t *json)
{
    ot_loss_scaler values = OT_LOSS_SCALER_INIT, *scaler;

    if (!ot__reader_object(r, json) || read_schedule_type(r, json, scaler_type_name, 1) < 0)
        return NULL;
    read_schedule_parameters(r, scaler_parameters, json, &values);
    values.initial_loss_scale = values.loss_scale;
    scaler = ot__reader_alloc(r, sizeof *scaler);
    if (scaler)
        *scaler = values;
    return scaler;
}

// ---- writing ----

static void write_schedule_parameters(ot__buf *out, const parameter *parameters, const void *values)
{
    for (const parameter *p = parameters; p->name; p++) {
        const void *at = (const char *)values + p->offset;

        if (p->kind == PARAMETER_BOOL)
            ot__json_bool(out, p->name, *(const int *)at != 0);
        else if (p->kind == PARAMETER_INT)
            ot__json_int(out, p->name, *(const int64_t *)at);
        else
            ot__json_float(out, p->name, *(const double *)at);
    }
}

void ot__schedule_write_json(ot__buf *out, const char *name, const ot_schedule *schedule)
{
    const schedule_values values = {.schedule = *schedule};

    ot__json_open(out, name, '{');
    ot__json_string(out, "type", schedule_types[schedule->kind].name);
    write_schedule_parameters(out, own_parameters, &values);
    ot__json_close(out, '}');
}

void ot__scaler_write_json(ot__buf *out, const char *name, const ot_loss_scaler *scaler)
{
    ot__json_open(out, name, '{');
    ot__json_string(out, "type", scaler_type_name(0));
    write_schedule_parameters(out, scaler_parameters, scaler);
    ot__json_close(out, '}');
}
