// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "options_fixture.h"

// The options of onnxruntime.training's ORTTrainerOptions, as its documentation has them: this list
// is written from that, not from our table.
static const struct known {
    const char *path, *type, *fallback;
    double low, high;
    bool is_nullable;
} known[] = {
    {"batch.gradient_accumulation_steps", "integer", "1", 1, INFINITY, false},
    {"device.id", "string", "\"cuda\"", 0, 0, false},
    {"device.mem_limit", "integer", "0", 0, INFINITY, false},
    {"distributed.world_rank", "integer", "0", 0, INFINITY, false},
    {"distributed.world_size", "integer", "1", 1, INFINITY, false},
    {"distributed.local_rank", "integer", "0", 0, INFINITY, false},
    {"distributed.data_parallel_size", "integer", "1", 1, INFINITY, false},
    {"distributed.horizontal_parallel_size", "integer", "1", 1, INFINITY, false},
    {"distributed.pipeline_parallel.pipeline_parallel_size", "integer", "1", 1, INFINITY, false},
    {"distributed.pipeline_parallel.num_pipeline_micro_batches", "integer", "1", 1, INFINITY,
     false},
    {"distributed.pipeline_parallel.pipeline_cut_info_string", "string", "\"\"", 0, 0, false},
    {"distributed.pipeline_parallel.sliced_schema", "dict", "{}", 0, 0, false},
    {"distributed.pipeline_parallel.sliced_axes", "dict", "{}", 0, 0, false},
    {"distributed.pipeline_parallel.sliced_tensor_names", "list", "[]", 0, 0, false},
    {"distributed.allreduce_post_accumulation", "boolean", "false", 0, 0, false},
    {"distributed.deepspeed_zero_optimization.stage", "integer", "0", 0, 3, false},
    {"distributed.enable_adasum", "boolean", "false", 0, 0, false},
    {"lr_scheduler", "dict", "null", 0, 0, true},
    {"mixed_precision.enabled", "boolean", "false", 0, 0, false},
    {"mixed_precision.loss_scaler", "dict", "null", 0, 0, true},
    {"graph_transformer.attn_dropout_recompute", "boolean", "false", 0, 0, false},
    {"graph_transformer.gelu_recompute", "boolean", "false", 0, 0, false},
    {"graph_transformer.transformer_layer_recompute", "boolean", "false", 0, 0, false},
    {"graph_transformer.number_recompute_layers", "integer", "0", 0, INFINITY, false},
    {"graph_transformer.propagate_cast_ops_config.strategy", "string", "\"FLOOD_FILL\"", 0, 0,
     true},
    {"graph_transformer.propagate_cast_ops_config.level", "integer", "1", -1, INFINITY, false},
    {"graph_transformer.propagate_cast_ops_config.allow", "list", "[]", 0, 0, false},
    {"utils.frozen_weights", "list", "[]", 0, 0, false},
    {"utils.grad_norm_clip", "boolean", "true", 0, 0, false},
    {"utils.memory_efficient_gradient", "boolean", "false", 0, 0, false},
    {"utils.run_symbolic_shape_infer", "boolean", "false", 0, 0, false},
    {"debug.deterministic_compute", "boolean", "false", 0, 0, false},
    {"debug.check_model_export", "boolean", "false", 0, 0, false},
    {"debug.graph_save_paths.model_after_graph_transforms_path", "string", "\"\"", 0, 0, false},
    {"debug.graph_save_paths.model_with_gradient_graph_path", "string", "\"\"", 0, 0, false},
    {"debug.graph_save_paths.model_with_training_graph_path", "string", "\"\"", 0, 0, false},
    {"debug.graph_save_paths.model_with_training_graph_after_optimization_path", "string", "\"\"",
     0, 0, false},
    {"_internal_use.enable_internal_postprocess", "boolean", "true", 0, 0, false},
    {"_internal_use.extra_postprocess", "callable or None", "null", 0, 0, true},
    {"_internal_use.onnx_opset_version", "integer", "14", 12, 14, false},
    {"_internal_use.enable_onnx_contrib_ops", "boolean", "true", 0, 0, false},
    {"provider_options", "dict", "{}", 0, 0, false},
    {"session_options", "session options object or None", "null", 0, 0, true},
};

// {"a":{"b":VALUE}} for "a.b".
static void nest(ot__buf *out, const char *path, const char *value)
{
    const size_t n = strcspn(path, ".");

    ot__buf_printf(out, "{\"%.*s\":", (int)n, path);
    if (path[n])
        nest(out, path + n + 1, value);
    else
        ot__buf_text(out, value);
    ot__buf_text(out, "}");
}

// {"a": [{"b": ["MESSAGE"]}]} for "a.b".
static void nest_message(ot__buf *out, const char *path, const char *message)
{
    char name[96];
    const char *dot = strchr(path, '.');

    snprintf(name, sizeof name, "%.*s", (int)(dot ? dot - path : (ptrdiff_t)strlen(path)), path);
    ot__json_open(out, NULL, '{');
    ot__json_open(out, name, '[');
    if (dot)
        nest_message(out, dot + 1, message);
    else
        ot__json_string(out, NULL, message);
    ot__json_close(out, ']');
    ot__json_close(out, '}');
}

static void assert_value_refused(const char *path, const char *value, const char *message)
{
    ot__buf json = {0}, payload = {0};

    nest(&json, path, value);
    nest_message(&payload, path, message);
    assert_options_refused(json.data, payload.data, path);
    ot__buf_deinit(&json);
    ot__buf_deinit(&payload);
}

static void assert_value_taken(const char *path, const char *value)
{
    ot__buf json = {0};
    reading in;

    nest(&json, path, value);
    read_options(&in, json.data);
    if (strcmp(in.payload, "{}") != 0)
        fail_msg("%s: %s", json.data, in.payload);
    reading_end(&in);
    ot__buf_deinit(&json);
}

static void the_table_has_the_options_of_the_reference_with_their_defaults(void **state)
{
    reading in;
    char *text;
    json_t *all;
    size_t n_ours = 0, n = 0;

    (void)state;
    read_options(&in, "{}");
    assert_string_equal(in.payload, "{}");
    text = options_text(&in.options, OT_OPTIONS_FILLED);
    all = json_of(text);
    for (size_t i = 0; i < OT_COUNT(known); i++) {
        json_t *expected = json_of(known[i].fallback);
        const json_t *found = all;
        char path[128], *rest;

        snprintf(path, sizeof path, "%s", known[i].path);
        for (char *name = path; name; name = rest) {
            rest = ot__cut(name, '.');
            found = json_object_get(found, name);
        }
        if (!found || !json_equal(found, expected))
            fail_msg("%s is not %s in %s", known[i].path, known[i].fallback, text);
        assert_non_null(ot__option_find(known[i].path));
        json_decref(expected);
    }
    for (const ot__option *o = ot__options; o->path; o++, n++)
        n_ours += ot__option_is_ours(o);
    assert_int_equal(n - n_ours, OT_COUNT(known));
    assert_null(json_object_get(all, "onnxtrain"));
    json_decref(all);
    ot__free(text);
    reading_end(&in);
}

static void every_option_refuses_values_of_other_types(void **state)
{
    static const struct {
        const char *type, *value;
    } values[] = {
        {"integer", "1"},    {"float", "1.5"}, {"boolean", "true"},
        {"string", "\"x\""}, {"list", "[]"},   {"dict", "{}"},
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(known); i++) {
        char message[64];

        snprintf(message, sizeof message, "must be %s%s%s",
                 strstr(known[i].type, "None") ? "" : "of ", known[i].type,
                 strstr(known[i].type, "None") ? "" : " type");
        if (known[i].type[0] == 's' && strstr(known[i].type, "object")) // "a session options ..."
            snprintf(message, sizeof message, "must be a %s", known[i].type);
        for (size_t k = 0; k < OT_COUNT(values); k++)
            if (strcmp(values[k].type, known[i].type) != 0)
                assert_value_refused(known[i].path, values[k].value, message);
    }
}

static void null_is_for_what_may_be_none(void **state)
{
    (void)state;
    for (size_t i = 0; i < OT_COUNT(known); i++)
        if (known[i].is_nullable)
            assert_value_taken(known[i].path, "null");
        else
            assert_value_refused(known[i].path, "null", "null value not allowed");
    assert_value_refused("batch", "null", "null value not allowed");
    assert_value_refused("batch", "3", "must be of dict type");
    assert_value_refused("debug.graph_save_paths", "[]", "must be of dict type");
}

static void integers_have_bounds(void **state)
{
    char value[32], message[64];

    (void)state;
    for (size_t i = 0; i < OT_COUNT(known); i++) {
        if (strcmp(known[i].type, "integer") != 0)
            continue;
        snprintf(value, sizeof value, "%.0f", known[i].low - 1);
        snprintf(message, sizeof message, "min value is %.0f", known[i].low);
        assert_value_refused(known[i].path, value, message);
        assert_value_refused(known[i].path, "-9223372036854775808", message);
        snprintf(value, sizeof value, "%.0f", known[i].low);
        assert_value_taken(known[i].path, value);
        if (!isfinite(known[i].high))
            continue;
        snprintf(value, sizeof value, "%.0f", known[i].high + 1);
        snprintf(message, sizeof message, "max value is %.0f", known[i].high);
        assert_value_refused(known[i].path, value, message);
        assert_value_refused(known[i].path, "9223372036854775807", message);
    }
}

static void unknown_names_tell_the_nearest(void **state)
{
    (void)state;
    assert_options_refused("{\"mixed_precison\": {\"enabled\": true}}",
                           "{\"mixed_precison\":[\"unknown field\"]}",
                           "mixed_precison: unknown field; did you mean 'mixed_precision'?");
    assert_options_refused("{\"debug\": {\"deterministic\": true}}",
                           "{\"debug\":[{\"deterministic\":[\"unknown field\"]}]}",
                           "; did you mean 'deterministic_compute'?");
    // in another section
    assert_options_refused("{\"distributed\": {\"sliced_axes\": {}}}",
                           "{\"distributed\":[{\"sliced_axes\":[\"unknown field\"]}]}",
                           "; did you mean 'distributed.pipeline_parallel.sliced_axes'?");
    assert_options_refused("{\"batch.gradient_accumulation_steps\": 1}",
                           "{\"batch.gradient_accumulation_steps\":[\"unknown field\"]}",
                           "unknown field");
    assert_options_refused("{\"\": 1, \"batch\": {\"\": 1}}",
                           "{\"\":[\"unknown field\"],\"batch\":[{\"\":[\"unknown field\"]}]}",
                           "2 violations");
    assert_options_refused("{\"zzz\": 1}", "{\"zzz\":[\"unknown field\"]}", "zzz: unknown field");
    for (size_t i = 0; i < OT_COUNT(known); i++) {
        char path[128];

        snprintf(path, sizeof path, "%s_", known[i].path);
        assert_value_refused(path, "1", "unknown field");
    }
}

static void all_violations_are_told_at_once(void **state)
{
    (void)state;
    assert_options_refused(
        "{\"batch\": {\"gradient_accumulation_steps\": 0}, \"mixed_precision\": {\"enabled\": 1},"
        " \"device\": {\"id\": null, \"mem_limit\": -1, \"nr\": 3},"
        " \"utils\": {\"frozen_weights\": [\"a\", 1, null]}}",
        "{\"mixed_precision\":[{\"enabled\":[\"must be of boolean type\"]}],"
        "\"device\":[{\"id\":[\"null value not allowed\"],\"nr\":[\"unknown field\"],"
        "\"mem_limit\":[\"min value is 0\"]}],"
        "\"utils\":[{\"frozen_weights\":[{\"1\":[\"must be of string type\"],"
        "\"2\":[\"null value not allowed\"]}]}],"
        "\"batch\":[{\"gradient_accumulation_steps\":[\"min value is 1\"]}]}",
        "options: 7 violations: mixed_precision.enabled: must be of boolean type; device.id: null");
}

static void thousands_of_violations_are_counted(void **state)
{
    ot__buf json = {0};
    reading in;

    (void)state;
    ot__json_open(&json, NULL, '{');
    for (int i = 0; i < 5000; i++) {
        char name[16];

        snprintf(name, sizeof name, "k%d", i);
        ot__json_int(&json, name, i);
    }
    ot__json_close(&json, '}');
    reading_begin(&in);
    {
        json_t *object = json_of(json.data);

        ot__options_from_json(&in.r, object, &in.options);
        json_decref(object);
    }
    assert_int_equal(in.v.count, 5000);
    assert_int_equal(ot__violations_status(&in.v, "options"), OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), "5000 violations: k0: unknown field; k1: "));
    reading_end(&in);
    ot__buf_deinit(&json);
}

// ---- maps, choices ----

static void maps_hold_what_they_are_for(void **state)
{
    (void)state;
    assert_value_refused("distributed.pipeline_parallel.sliced_schema.a", "1",
                         "must be of list type");
    assert_value_refused("distributed.pipeline_parallel.sliced_axes.a", "\"0\"",
                         "must be of integer type");
    assert_value_refused("provider_options.CPU", "3", "must be of dict type");
    assert_options_refused(
        "{\"distributed\": {\"pipeline_parallel\": {\"sliced_schema\": {\"a\": [1, 1.5]}}}}",
        "{\"distributed\":[{\"pipeline_parallel\":[{\"sliced_schema\":[{\"a\":[{\"1\":[\"must be "
        "of "
        "integer type\"]}]}]}]}]}",
        "sliced_schema.a.1: ");
    assert_value_taken("provider_options", "{\"CPU\": {\"any\": [1, null, {\"b\": 0.5}]}}");
}

static void strategies_may_be_combined(void **state)
{
    static const struct {
        const char *text;
        int flags;
    } cases[] = {
        {"\"NONE\"", OT_PROPAGATE_CASTS_NONE},
        {"\"INSERT_AND_REDUCE\"", OT_PROPAGATE_CASTS_INSERT_AND_REDUCE},
        {"\"FLOOD_FILL\"", OT_PROPAGATE_CASTS_FLOOD_FILL},
        {"\"INSERT_AND_REDUCE|FLOOD_FILL\"",
         OT_PROPAGATE_CASTS_INSERT_AND_REDUCE | OT_PROPAGATE_CASTS_FLOOD_FILL},
        {"null", OT_PROPAGATE_CASTS_DEFAULT},
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        char json[128], *text;
        reading in;

        snprintf(json, sizeof json,
                 "{\"graph_transformer\":{\"propagate_cast_ops_config\":{\"strategy\":%s}}}",
                 cases[i].text);
        read_options(&in, json);
        assert_int_equal(in.options.propagate_casts_strategy, cases[i].flags);
        text = options_text(&in.options, OT_OPTIONS_EFFECTIVE);
        snprintf(json, sizeof json, "\"strategy\":%s,", cases[i].text);
        assert_non_null(strstr(text, json));
        ot__free(text);
        reading_end(&in);
    }
    assert_value_refused("graph_transformer.propagate_cast_ops_config.strategy", "\"FLOODFILL\"",
                         "unallowed value 'FLOODFILL', expected one of NONE, INSERT_AND_REDUCE, "
                         "FLOOD_FILL");
    assert_value_refused("onnxtrain.precision", "\"f8\"",
                         "unallowed value 'f8', expected one of f32, bf16, f16");
}

static void our_own_options_have_limits(void **state)
{
    (void)state;
    assert_value_refused("onnxtrain.threads", "-1", "min value is 0");
    assert_value_refused("onnxtrain.threads", "1025", "max value is 1024");
    assert_value_refused("onnxtrain.threads", "2.0", "must be of integer type");
    assert_value_refused("onnxtrain.memory_max", "-1", "min value is 0");
    assert_value_refused("onnxtrain.memory_max", "\"all\"", "must be of integer type");
    assert_value_refused("onnxtrain.seed", "-1", "min value is 0");
    assert_value_refused("onnxtrain.average_decay", "1", "is 1, expected at least 0 and below 1");
    assert_value_refused("onnxtrain.average_decay", "-0.1",
                         "is -0.1, expected at least 0 and below 1");
    assert_value_refused("onnxtrain.reproducible", "1", "must be of boolean type");
    assert_value_refused("onnxtrain.skip_non_finite", "0", "must be of boolean type");
    assert_value_taken("onnxtrain.memory_max", "\"unlimited\"");
    assert_value_taken("onnxtrain.average_decay", "0"); // an integer is a number
}

// ---- rules between members ----

static void rules_between_options_are_checked(void **state)
{
    (void)state;
    assert_options_refused(
        "{\"mixed_precision\": {\"loss_scaler\": {\"type\": \"DynamicLossScaler\"}}}",
        "{\"mixed_precision\":[{\"loss_scaler\":[\"needs mixed_precision.enabled\"]}]}", "");
    assert_options_refused(
        "{\"distributed\": {\"horizontal_parallel_size\": 2}}",
        "{\"distributed\":[{\"horizontal_parallel_size\":[\"is 2, expected at most "
        "distributed.world_size, which is 1\"]}]}",
        "");
    assert_options_refused("{\"distributed\": {\"world_size\": 4, \"data_parallel_size\": 4}}",
                           "{\"distributed\":[{\"allreduce_post_accumulation\":[\"must be true for "
                           "4 replicas\"]}]}",
                           "");
    assert_options_refused(
        "{\"distributed\": {\"world_size\": 4, \"enable_adasum\": true,"
        " \"deepspeed_zero_optimization\": {\"stage\": 1}}}",
        "{\"distributed\":[{\"allreduce_post_accumulation\":[\"must be true for 4 replicas\"]}]}",
        "");
    assert_options_refused(
        "{\"distributed\": {\"world_size\": 4, \"horizontal_parallel_size\": 3}}",
        "{\"distributed\":[{\"world_size\":[\"is 4, expected a multiple of "
        "horizontal_parallel_size 3 times pipeline_parallel_size 1\"]}]}",
        "");
    assert_options_refused(
        "{\"distributed\": {\"world_size\": 2, \"pipeline_parallel\": {\"pipeline_parallel_size\": "
        "2}}}",
        "{\"distributed\":[{\"pipeline_parallel\":[{\"pipeline_cut_info_string\":[\"must not be "
        "empty for 2 stages\"]}]}]}",
        "");
    assert_value_taken("distributed", "{\"world_size\": 4, \"allreduce_post_accumulation\": true}");
    assert_value_taken("distributed", "{\"world_size\": 4, \"enable_adasum\": true}");
    assert_value_taken("distributed", "{\"deepspeed_zero_optimization\": {\"stage\": 1}}");
}

static void the_precision_said_twice_must_agree(void **state)
{
    static const struct {
        const char *enabled, *precision;
    } agree[] = {{"true", "f16"}, {"true", "bf16"}, {"false", "f32"}},
      differ[] = {{"true", "f32"}, {"false", "f16"}, {"false", "bf16"}};
    char json[160], payload[160];
    reading in;

    (void)state;
    for (size_t i = 0; i < OT_COUNT(agree); i++) {
        snprintf(json, sizeof json,
                 "{\"mixed_precision\":{\"enabled\":%s},\"onnxtrain\":{\"precision\":\"%s\"}}",
                 agree[i].enabled, agree[i].precision);
        read_options(&in, json);
        assert_string_equal(in.payload, "{}");
        reading_end(&in);
        snprintf(json, sizeof json,
                 "{\"mixed_precision\":{\"enabled\":%s},\"onnxtrain\":{\"precision\":\"%s\"}}",
                 differ[i].enabled, differ[i].precision);
        snprintf(payload, sizeof payload,
                 "{\"mixed_precision\":[{\"enabled\":[\"is %s, but onnxtrain.precision is %s\"]}]}",
                 differ[i].enabled, differ[i].precision);
        assert_options_refused(json, payload, "");
    }
    assert_value_taken("onnxtrain.precision", "\"bf16\"");
    assert_value_taken("mixed_precision.enabled", "true");
}

// ---- writing ----

static void options_read_back_as_they_were_written(void **state)
{
    static const char *const cases[] = {
        "{}",
        "{\"batch\":{\"gradient_accumulation_steps\":7},\"device\":{\"id\":\"cuda:1\","
        "\"mem_limit\":9223372036854775807},\"distributed\":{\"world_rank\":1,\"world_size\":2,"
        "\"pipeline_parallel\":{\"sliced_schema\":{\"a\":[1,2]},\"sliced_axes\":{\"a\":0},"
        "\"sliced_tensor_names\":[\"a\",\"b\\n\"]},\"allreduce_post_accumulation\":true},"
        "\"utils\":{\"frozen_weights\":[\"w\"],\"grad_norm_clip\":false},"
        "\"provider_options\":{\"CPU\":{\"x\":0.1}},\"onnxtrain\":{\"memory_max\":\"unlimited\","
        "\"threads\":3,\"reproducible\":true,\"seed\":12345678901234567,\"average_decay\":0.999}}",
        "{\"lr_scheduler\":{\"type\":\"PolyWarmupLRScheduler\",\"total_steps\":10,\"warmup\":0.3}}",
        ("{\"mixed_precision\":{\"enabled\":true,\"loss_scaler\":{\"type\":\"DynamicLossScaler\","
         "\"loss_scale\":2,\"up_scale_window\":3}}}"),
        "{\"onnxtrain\":{\"precision\":\"bf16\"}}",
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++)
        for (int style = OT_OPTIONS_EFFECTIVE; style <= OT_OPTIONS_FILLED; style++) {
            reading first, second;
            char *text, *again;

            read_options(&first, cases[i]);
            assert_string_equal(first.payload, "{}");
            text = options_text(&first.options, (ot__options_style)style);
            read_options(&second, text);
            assert_string_equal(second.payload, "{}");
            again = options_text(&second.options, (ot__options_style)style);
            assert_string_equal(again, text);
            ot__free(text);
            ot__free(again);
            reading_end(&first);
            reading_end(&second);
        }
}

static void the_effective_options_say_what_counts(void **state)
{
    reading in;
    char *text;

    (void)state;
    read_options(&in, "{\"mixed_precision\": {\"enabled\": true}}");
    text = options_text(&in.options, OT_OPTIONS_EFFECTIVE);
    assert_non_null(strstr(text, "\"id\":\"cpu\""));
    assert_non_null(strstr(text, "\"enabled\":true"));
    assert_non_null(strstr(text, "\"onnxtrain\":{\"precision\":\"f16\",\"memory_max\":0,"));
    ot__free(text);
    reading_end(&in);
}

// ---- effects ----

static void every_option_says_what_it_does(void **state)
{
    static const char *const honoured[] = {
        "batch.gradient_accumulation_steps",
        "distributed.world_rank",
        "distributed.world_size",
        "distributed.local_rank",
        "distributed.data_parallel_size",
        "distributed.allreduce_post_accumulation",
        "distributed.deepspeed_zero_optimization.stage",
        "lr_scheduler",
        "graph_transformer.attn_dropout_recompute",
        "graph_transformer.gelu_recompute",
        "graph_transformer.transformer_layer_recompute",
        "graph_transformer.number_recompute_layers",
        "utils.frozen_weights",
        "utils.grad_norm_clip",
        "debug.deterministic_compute",
        "debug.graph_save_paths.model_after_graph_transforms_path",
        "debug.graph_save_paths.model_with_gradient_graph_path",
        "debug.graph_save_paths.model_with_training_graph_path",
        "debug.graph_save_paths.model_with_training_graph_after_optimization_path",
        "session_options",
        "onnxtrain.memory_max",
        "onnxtrain.threads",
        "onnxtrain.reproducible",
        "onnxtrain.skip_non_finite",
        "onnxtrain.seed",
        "onnxtrain.average_decay",
        "mixed_precision.enabled",
        "mixed_precision.loss_scaler",
        "onnxtrain.precision",
    };
    static const char *const refused[] = {
        "device.id",
        "distributed.horizontal_parallel_size",
        "distributed.pipeline_parallel.pipeline_parallel_size",
        "distributed.pipeline_parallel.num_pipeline_micro_batches",
    };
    static const char *const without[] = {
        "device.mem_limit",
        "distributed.pipeline_parallel.pipeline_cut_info_string",
        "distributed.pipeline_parallel.sliced_schema",
        "distributed.pipeline_parallel.sliced_axes",
        "distributed.pipeline_parallel.sliced_tensor_names",
        "distributed.enable_adasum",
        "graph_transformer.propagate_cast_ops_config.strategy",
        "graph_transformer.propagate_cast_ops_config.level",
        "graph_transformer.propagate_cast_ops_config.allow",
        "utils.memory_efficient_gradient",
        "utils.run_symbolic_shape_infer",
        "debug.check_model_export",
        "_internal_use.enable_internal_postprocess",
        "_internal_use.extra_postprocess",
        "_internal_use.onnx_opset_version",
        "_internal_use.enable_onnx_contrib_ops",
        "provider_options",
    };
    const struct {
        const char *const *paths;
        int n;
    } by_effect[] = {
        [OT_EFFECT_HONOURED] = {honoured, (int)OT_COUNT(honoured)},
        [OT_EFFECT_WITHOUT] = {without, (int)OT_COUNT(without)},
        [OT_EFFECT_REFUSED] = {refused, (int)OT_COUNT(refused)},
    };
    int found[3] = {0};

    (void)state;
    for (const ot__option *o = ot__options; o->path; o++) {
        if (ot__index_of(by_effect[o->effect].paths, by_effect[o->effect].n, o->path) < 0)
            fail_msg("%s is %s", o->path, ot__option_effect_text(o->effect));
        found[o->effect]++;
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(found[i], by_effect[i].n);
}

static char warnings[2048];

static void keep_warning(void *context, ot_log_level level, const char *line)
{
    (void)context;
    if (level == OT_LOG_WARNING && strlen(warnings) + strlen(line) + 2 < sizeof warnings)
        strcat(strcat(warnings, line), "\n");
}

static void what_has_no_effect_warns_once_and_what_is_refused_is_named(void **state)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT, own;

    (void)state;
    ot_set_log(keep_warning, NULL);
    must(ot__trainer_options_take(NULL, &own));
    must(ot__trainer_options_take(&options, &own));
    assert_string_equal(warnings, "");
    options.device_mem_limit = 5;
    options.provider_options = "{\"CPU\":{}}";
    options.device_id = "cpu";
    must(ot__trainer_options_take(&options, &own));
    assert_non_null(strstr(warnings, "options.device.mem_limit has no effect"));
    assert_non_null(strstr(warnings, "\noptions.provider_options has no effect"));
    assert_int_equal(ot__count_char(warnings, '\n'), 2);
    options.device_id = "cuda";
    options.world_size = 2;
    options.horizontal_parallel_size = 2;
    assert_int_equal(ot__trainer_options_take(&options, &own), OT_ERR_UNSUPPORTED);
    assert_string_equal(ot_error_message(),
                        "not supported: options.device.id is \"cuda\", expected \"cpu\"; "
                        "options.distributed.horizontal_parallel_size is 2, expected 1");
    ot_set_log(NULL, NULL);
}

static void structs_of_c_programs_are_checked_as_json_is(void **state)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT, own;
    ot_schedule schedule = OT_SCHEDULE_INIT;

    (void)state;
    options.gradient_accumulation_steps = 0;
    options.n_frozen_weights = 2;
    options.sliced_axes = "{\"a\":";
    options.provider_options = "[]";
    options.precision = (ot_precision)7;
    options.propagate_casts_strategy = 4;
    options.average_decay = NAN;
    schedule.total_steps = -1;
    options.lr_schedule = &schedule;
    assert_int_equal(ot__trainer_options_take(&options, &own), OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), "options: 8 violations: "));
    assert_non_null(strstr(ot_error_message(), "utils.frozen_weights: 2 names in NULL"));
    assert_non_null(strstr(ot_error_message(), "sliced_axes: line 1, column "));
    assert_non_null(strstr(ot_error_message(), "onnxtrain.precision: unallowed value 7"));
    assert_non_null(strstr(ot_error_message(), "lr_scheduler: schedule: "));
}

static void every_allocation_may_fail(void **state)
{
    static const char text[] =
        "{\"utils\":{\"frozen_weights\":[\"a\",\"b\"],\"x\":1},\"provider_options\":{\"a\":{}},"
        "\"lr_scheduler\":{\"type\":\"linear\",\"total_steps\":3},\"device\":{\"id\":\"cpu\"}}";
    json_t *json = json_of(text);
    bool failed = true;

    (void)state;
    for (int n = 0; failed; n++) {
        ot__violations v;
        ot__buf payload = {0};
        ot_trainer_options options = OT_TRAINER_OPTIONS_INIT, own;
        ot__reader r = {.v = &v, .lr = 1};

        ot__alloc_fail_after(n);
        failed = ot__violations_init(&v) != OT_OK;
        r.arena = ot__arena_create();
        if (!failed && r.arena) {
            ot__options_from_json(&r, json, &options);
            ot__options_violations(&v, &options);
            ot__violations_write(&v, &payload);
            failed = r.status != OT_OK || payload.failed ||
                     ot__violations_status(&v, "options") == OT_ERR_NO_MEMORY;
            if (r.status == OT_OK)
                failed |= ot__trainer_options_take(&options, &own) == OT_ERR_NO_MEMORY;
        } else {
            failed = true;
        }
        ot__alloc_fail_after(-1);
        if (!failed)
            assert_string_equal(payload.data, "{\"utils\":[{\"x\":[\"unknown field\"]}]}");
        ot__buf_deinit(&payload);
        ot__arena_destroy(r.arena);
        ot__violations_deinit(&v);
    }
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_has_the_options_of_the_reference_with_their_defaults),
        cmocka_unit_test(every_option_refuses_values_of_other_types),
        cmocka_unit_test(null_is_for_what_may_be_none),
        cmocka_unit_test(integers_have_bounds),
        cmocka_unit_test(unknown_names_tell_the_nearest),
        cmocka_unit_test(all_violations_are_told_at_once),
        cmocka_unit_test(thousands_of_violations_are_counted),
        cmocka_unit_test(maps_hold_what_they_are_for),
        cmocka_unit_test(strategies_may_be_combined),
        cmocka_unit_test(our_own_options_have_limits),
        cmocka_unit_test(rules_between_options_are_checked),
        cmocka_unit_test(the_precision_said_twice_must_agree),
        cmocka_unit_test(options_read_back_as_they_were_written),
        cmocka_unit_test(the_effective_options_say_what_counts),
        cmocka_unit_test(every_option_says_what_it_does),
        cmocka_unit_test(what_has_no_effect_warns_once_and_what_is_refused_is_named),
        cmocka_unit_test(structs_of_c_programs_are_checked_as_json_is),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
