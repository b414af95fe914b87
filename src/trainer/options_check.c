// SPDX-License-Identifier: Apache-2.0
// Limits of options, rules between them, and what a trainer does not take or cannot do.
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "session/session.h"
#include "trainer/loss_scaler.h"
#include "trainer/options.h"

// ---- limits ----

static void check_limits(ot__violations *v, const ot__option *option, double value)
{
    if (value < option->low)
        ot__violate(v, "", "min value is %.0f", option->low);
    else if (value > option->high)
        ot__violate(v, "", "max value is %.0f", option->high);
}

static void check_int_item(ot__violations *v, const json_t *json)
{
    if (!json_is_integer(json))
        ot__violate(v, "", "must be of integer type");
}

static void check_map_item(ot__violations *v, ot__option_kind kind, const json_t *json)
{
    const json_t *item;
    size_t i;

    if (kind == OT_OPTION_INT_MAP) {
        check_int_item(v, json);
    } else if (kind == OT_OPTION_MAP) {
        if (!json_is_object(json))
            ot__violate(v, "", "must be of dict type");
    } else if (!json_is_array(json)) {
        ot__violate(v, "", "must be of list type");
    } else {
        json_array_foreach(json, i, item)
        {
            ot__violations_enter_index(v, i);
            check_int_item(v, item);
            ot__violations_leave(v);
        }
    }
}

static void check_map(ot__violations *v, ot__option_kind kind, const char *text)
{
    json_t *json;
    const char *key;
    const json_t *item;
    const ot_status st = ot__json_read(text, strlen(text), &json);

    if (st == OT_ERR_NO_MEMORY) {
        v->status = st;
    } else if (st != OT_OK) {
        ot__violate(v, "", "%s", ot_error_message());
    } else if (!json_is_object(json)) {
        ot__violate(v, "", "must be of dict type");
    } else {
        json_object_foreach(json, key, item)
        {
            ot__violations_enter(v, key);
            check_map_item(v, kind, item);
            ot__violations_leave(v);
        }
    }
    json_decref(json);
}

static void check_option_names(ot__violations *v, const ot__option *option,
                               const ot_trainer_options *options)
{
    const char *at = (const char *)options;
    const char *const *names = *(const char *const *const *)(const void *)(at + option->offset);
    const int n = *(const int *)(const void *)(at + ot__option_count_offset(option));

    if (n < 0 || (n > 0 && !names)) {
        ot__violate(v, "", "%d names %s", n, names ? "" : "in NULL");
        return;
    }
    for (int i = 0; i < n; i++) {
        ot__violations_enter_index(v, (size_t)i);
        if (!names[i])
            ot__violate(v, "", "must be of string type");
        ot__violations_leave(v);
    }
}

static int option_choice_count(const ot__option *option)
{
    int n = 0;

    while (option->choices[n])
        n++;
    return n;
}

static void check_option(ot__violations *v, const ot__option *option,
                         const ot_trainer_options *options)
{
    const void *at = (const char *)options + option->offset;

    switch (option->kind) {
    case OT_OPTION_INT:
        check_limits(v, option, (double)*(const int64_t *)at);
        break;
    case OT_OPTION_DECAY:
        if (!(*(const double *)at >= 0 && *(const double *)at < 1))
            ot__violate(v, "", "is %g, expected at least 0 and below 1", *(const double *)at);
        break;
    case OT_OPTION_CHOICE:
        if (*(const int *)at < 0 || *(const int *)at >= option_choice_count(option))
            ot__violate(v, "", "unallowed value %d", *(const int *)at);
        break;
    case OT_OPTION_FLAGS:
        if (*(const int *)at < OT_PROPAGATE_CASTS_DEFAULT ||
            *(const int *)at >= 1 << (option_choice_count(option) - 1))
            ot__violate(v, "", "unallowed value %d", *(const int *)at);
        break;
    case OT_OPTION_NAMES:
        check_option_names(v, option, options);
        break;
    case OT_OPTION_MAP:
    case OT_OPTION_INT_MAP:
    case OT_OPTION_INTS_MAP:
        if (*(const char *const *)at)
            check_map(v, option->kind, *(const char *const *)at);
        break;
    case OT_OPTION_BOOL:
    case OT_OPTION_BYTES:
    case OT_OPTION_TEXT:
    case OT_OPTION_LR:
    case OT_OPTION_SCALER:
    case OT_OPTION_SESSION:
    case OT_OPTION_NONE:
        break;
    }
}

// ---- rules between members ----

static void violate_option(ot__violations *v, const char *path, const char *format, ...)
    OT_PRINTF(3, 4);

static void violate_option(ot__violations *v, const char *path, const char *format, ...)
{
    const int depth = ot__violations_enter_path(v, path);
    char text[256];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    ot__violate(v, "", "%s", text);
    ot__violations_leave_to(v, depth);
}

static void check_sizes(ot__violations *v, const ot_trainer_options *o)
{
    const struct {
        const char *path;
        int64_t size;
    } sizes[] = {
        {"distributed.horizontal_parallel_size", o->horizontal_parallel_size},
        {"distributed.data_parallel_size", o->data_parallel_size},
        {"distributed.pipeline_parallel.pipeline_parallel_size", o->pipeline_parallel_size},
    };

    for (size_t i = 0; i < OT_COUNT(sizes); i++)
        if (sizes[i].size > OT_MAX(o->world_size, (int64_t)1))
            violate_option(v, sizes[i].path,
                           "is %" PRId64 ", expected at most distributed.world_size, which is "
                           "%" PRId64,
                           sizes[i].size, o->world_size);
}

// How many replicas there are follows from the other sizes.
static void check_replicas(ot__violations *v, const ot_trainer_options *o)
{
    const int64_t h = OT_MAX(o->horizontal_parallel_size, (int64_t)1);
    const int64_t p = OT_MAX(o->pipeline_parallel_size, (int64_t)1);
    const int64_t n = OT_MAX(o->world_size, (int64_t)1);

    if (h > n || p > n)
        return; // said already
    if (n % h != 0 || n / h % p != 0)
        violate_option(v, "distributed.world_size",
                       "is %" PRId64 ", expected a multiple of horizontal_parallel_size %" PRId64
                       " times pipeline_parallel_size %" PRId64,
                       n, h, p);
    else if (n / h / p > 1 && !o->allreduce_post_accumulation &&
             (!o->enable_adasum || o->zero_stage > 0))
        violate_option(v, "distributed.allreduce_post_accumulation",
                       "must be true for %" PRId64 " replicas", n / h / p);
}

static void check_pipeline(ot__violations *v, const ot_trainer_options *o)
{
    if (o->pipeline_parallel_size > 1 &&
        (!o->pipeline_cut_info_string || !*o->pipeline_cut_info_string))
        violate_option(v, "distributed.pipeline_parallel.pipeline_cut_info_string",
                       "must not be empty for %" PRId64 " stages", o->pipeline_parallel_size);
}

static bool is_scale(double scale)
{
    return isfinite(scale) && scale > 0;
}

static void check_scaler(ot__violations *v, const ot_trainer_options *o)
{
    static const char path[] = "mixed_precision.loss_scaler";
    ot_loss_scaler s;

    if (!o->loss_scaler)
        return;
    if (ot__options_precision(o) == OT_PRECISION_F32)
        violate_option(v, path, "needs mixed_precision.enabled");
    if (ot__scaler_read(o->loss_scaler, &s) != OT_OK) {
        violate_option(v, path, "%s", ot_error_message());
        return;
    }
    if (!is_scale(s.loss_scale))
        violate_option(v, path, "loss_scale is %g, expected a finite number above 0", s.loss_scale);
    if (s.update)
        return; // which has no bounds
    if (!is_scale(s.min_loss_scale))
        violate_option(v, path, "min_loss_scale is %g, expected a finite number above 0",
                       s.min_loss_scale);
    else if (!(s.max_loss_scale >= s.min_loss_scale))
        violate_option(v, path,
                       "max_loss_scale is %g, expected at least min_loss_scale, which is %g",
                       s.max_loss_scale, s.min_loss_scale);
}

static void check_rules(ot__violations *v, const ot_trainer_options *o)
{
    ot_schedule schedule;

    check_sizes(v, o);
    check_replicas(v, o);
    check_pipeline(v, o);
    check_scaler(v, o);
    if (o->lr_schedule && o->lr_function)
        violate_option(v, "lr_scheduler", "is both a schedule and a function");
    if (o->lr_schedule && ot__schedule_read(o->lr_schedule, &schedule) != OT_OK)
        violate_option(v, "lr_scheduler", "%s", ot_error_message());
}

void ot__options_violations(ot__violations *v, const ot_trainer_options *options)
{
    for (const ot__option *o = ot__options; o->path; o++) {
        const int depth = ot__violations_enter_path(v, o->path);

        check_option(v, o, options);
        ot__violations_leave_to(v, depth);
    }
    check_rules(v, options);
}

// ---- what a trainer takes ----

static void describe_option(ot__buf *text, const ot__option *option,
                            const ot_trainer_options *options)
{
    static const ot_trainer_options init = OT_TRAINER_OPTIONS_INIT;
    ot__buf value = {0}, usual = {0};

    ot__option_write_json(&value, NULL, option, options);
    ot__option_write_json(&usual, NULL, option, &init);
    if (ot__buf_status(&value) == OT_OK && ot__buf_status(&usual) == OT_OK)
        ot__buf_printf(text, "%soptions.%s is %s, expected %s", text->length > 0 ? "; " : "",
                       option->path, value.data, usual.data);
    text->failed |= value.failed || usual.failed;
    ot__buf_deinit(&value);
    ot__buf_deinit(&usual);
}

// All options that are refused, each with its value.
static ot_status refuse_options(const ot_trainer_options *options)
{
    ot__buf text = {0};
    ot_status st;

    for (const ot__option *o = ot__options; o->path; o++)
        if (o->effect == OT_EFFECT_REFUSED && !ot__option_is_default(o, options))
            describe_option(&text, o, options);
    st = ot__buf_status(&text);
    if (st == OT_OK && text.length > 0)
        st = ot__error(OT_ERR_UNSUPPORTED, "not supported: %s", text.data);
    ot__buf_deinit(&text);
    return st;
}

static void warn_of_options(const ot_trainer_options *options)
{
    for (const ot__option *o = ot__options; o->path; o++)
        if (o->effect == OT_EFFECT_WITHOUT && !ot__option_is_default(o, options))
            ot__log(OT_LOG_WARNING, "options.%s has no effect (%s)", o->path, o->help);
}

ot_status ot__trainer_options_check(const ot_trainer_options *given, ot_trainer_options *own)
{
    ot__violations v;
    ot_status st;

    OT_TRY(OT_OPTIONS_READ(ot_trainer_options, OT_TRAINER_OPTIONS_INIT, given, own));
    st = ot__violations_init(&v);
    if (st == OT_OK) {
        ot__options_violations(&v, own);
        st = ot__violations_status(&v, "options");
    }
    ot__violations_deinit(&v);
    OT_THEN(st, refuse_options(own));
    return st;
}

ot_status ot__trainer_options_take(const ot_trainer_options *given, ot_trainer_options *own)
{
    OT_TRY(ot__trainer_options_check(given, own));
    warn_of_options(own);
    return OT_OK;
}
