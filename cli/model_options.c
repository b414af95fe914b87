// SPDX-License-Identifier: Apache-2.0
#include "model_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "op_libraries.h"
#include "recorded.h"
#include "report.h"

#define AT(member) offsetof(model_values, member)

static const char *const reductions[] = {"mean", "sum", "none", NULL};
static const char *const class_axes[] = {"1", "-1", NULL};
static const char *const adam_modes[] = {"0", "1", NULL};
static const char *const batch_norms[] = {"auto", "batch", "stored", "sync", NULL};

const option_spec model_option_table[] = {
    {.help = "Loss"},
    {"loss", OPTION_LIST, AT(loss), "[WEIGHT*]LOSS[:VALUE[=TARGET]]",
     "LOSS is cross-entropy, mse, l1, bce-with-logits, none (the value is the loss), or a file "
     ".onnx or .onnxtxt whose inputs are outputs of the model, by name, and targets; VALUE is the "
     "value of the model it takes, TARGET the input it compares with. Given several times the "
     "losses are summed, as in --loss cross-entropy:scores --loss 0.3*mse:depth=depth_target; "
     "metrics are those of the first",
     "cross-entropy", NULL, 0},
    {"loss-input", OPTION_TEXT, AT(loss_input), "NAME", "value of the model the loss takes",
     "the first output", NULL, 0},
    {"target", OPTION_TEXT, AT(target), "NAME", "name of the target input",
     "labels for cross-entropy, else target", NULL, 0},
    {"reduction", OPTION_CHOICE, AT(reduction), "HOW", "of the loss over the batch", "mean",
     reductions, 0},
    {"class-weights", OPTION_TEXT, AT(class_weights), "W,W,...",
     "weight of each class (cross-entropy)", NULL, NULL, 0},
    {"class-axis", OPTION_CHOICE, AT(class_axis), "AXIS",
     "axis of the scores that has the classes, -1: the last (cross-entropy)", "1", class_axes, 0},
    {"ignore-index", OPTION_TEXT, AT(ignore_index), "LABEL",
     "label that does not count (cross-entropy)", NULL, NULL, 0},
    {.help = "Optimizer"},
    {"optimizer", OPTION_TEXT, AT(optimizer), "NAME",
     "update rule: adamw, sgd, sgd-momentum, none, or another optimizer of docs/operators.md by "
     "what "
     "stands before Optimizer, as adam, lamb or rmsprop; ONNX Runtime can load adamw and sgd",
     "adamw", NULL, 0},
    {"beta1", OPTION_PART, AT(beta1), "X",
     "decay of the first moment (adamw, adam, lamb: 0.9 unless given)", NULL, NULL, 0},
    {"beta2", OPTION_PART, AT(beta2), "X",
     "decay of the second moment (adamw, adam, lamb: 0.999; rmsprop: 0.99)", NULL, NULL, 0},
    {"epsilon", OPTION_REAL, AT(epsilon), "X",
     "added to the root of the second moment (adamw, lamb: 1e-6; adam, rmsprop: 1e-8; adagrad: "
     "1e-10)",
     NULL, NULL, 0},
    {"weight-decay", OPTION_REAL, AT(weight_decay), "X",
     "decoupled for adamw, adam and lamb, an L2 term for others", "0", NULL, 0},
    {"no-decay", OPTION_LIST, AT(no_decay), "PATTERN",
     "parameters that match have no weight decay, as in --no-decay '*.bias' --no-decay '*norm*'",
     NULL, NULL, 0},
    {"adam-mode", OPTION_CHOICE, AT(adam_mode), "0|1",
     "decay before the update as PyTorch (0) or after it as ONNX Runtime's artifacts (1); adamw: "
     "1, "
     "adam: 0",
     NULL, adam_modes, 0},
    {"momentum", OPTION_REAL, AT(momentum), "X", "of sgd-momentum (0.9) and rmsprop (0)", NULL,
     NULL, 0},
    {"nesterov", OPTION_FLAG, AT(nesterov), NULL, "Nesterov momentum", NULL, NULL, 0},
    {"clip-norm", OPTION_REAL, AT(clip_norm), "X",
     "clip the norm of all gradients together; 0: no clipping", "0", NULL, 0},
    {.help = "Parameters"},
    {"train", OPTION_LIST, AT(train), "PATTERN",
     "train the initializers whose names match (* and ?), instead of all that can be", NULL, NULL,
     0},
    {"freeze", OPTION_LIST, AT(freeze), "PATTERN", "do not train those that match", NULL, NULL, 0},
    {"shared", OPTION_LIST, AT(shared), "keep|PATTERN",
     "leave tensors that match as the file shares them, instead of separating what an exporter "
     "merged and joining what it untied; keep: all",
     NULL, NULL, 0},
    {"batch-norm", OPTION_CHOICE, AT(batch_norm), "HOW",
     "statistics BatchNormalization uses; auto: of the batch where its scale or bias is trained; "
     "sync: of the batch of all processes (batch, and --sync-batch-norm of train)",
     "auto", batch_norms, 0},
    {"init", OPTION_LIST, AT(init), "PATTERN=KIND",
     "draw initial values: kaiming_uniform, kaiming_normal, xavier_uniform, xavier_normal, zeros, "
     "ones",
     NULL, NULL, 0},
    {"ignore-recorded", OPTION_FLAG, AT(ignore_recorded), NULL,
     "take no notice of what the model says of its training: loss, scale, mean, std and classes",
     NULL, NULL, 0},
    {"seed", OPTION_INT, AT(seed), "N", "of initial values, dropout and the order of the data", "0",
     NULL, 0},
    {.help = "Operators"},
    OP_LIBRARY_OPTION(AT(op_libraries)),
    {0},
};

#define NAMED_TWICE                                                                                \
    "where --loss names its value or is given several times, it says --loss LOSS:VALUE=TARGET"

int check_threads(int64_t n_threads)
{
    enum { MOST = 1024 };

    return n_threads <= MOST
               ? EXIT_SUCCESS
               : report_usage("--threads: %lld, expected at most %d", (long long)n_threads, MOST);
}

size_t set_memory_max(int64_t n_bytes)
{
    const size_t most = n_bytes == INT64_MAX ? OT_MEMORY_UNLIMITED : (size_t)n_bytes;

    ot_set_memory_max(most);
    return most;
}

int load_model(const char *path, ot_model **out)
{
    return ot_model_load(path, NULL, out) == OT_OK ? EXIT_SUCCESS : report_error();
}

// Weights apart by commas into `to`, where it is not NULL; the number of them, or -1 after a
// message.
static int64_t read_weights(const char *text, float *to)
{
    for (int64_t n = 0;; n++) {
        char *end;
        const float weight = strtof(text, &end);

        if (end == text || (*end != ',' && *end != '\0') || !(weight >= 0) || !isfinite(weight)) {
            (void)report_usage("--class-weights: '%s' is not a weight", text);
            return -1;
        }
        if (to)
            to[n] = weight;
        if (*end == '\0')
            return n + 1;
        text = end + 1;
    }
}

static int parse_weights(const char *text, ot_tensor **out)
{
    const int64_t count = read_weights(text, NULL);

    if (count < 0 || ot_tensor_create(OT_F32, &OT_SHAPE(count), out) != OT_OK)
        return count < 0 ? EXIT_FAILED : report_error();
    (void)read_weights(text, ot_tensor_data(*out));
    return EXIT_SUCCESS;
}

// Options of cross-entropy are for nothing where there is none.
static int check_classes(const model_values *values)
{
    const char *option = values->class_weights     ? "class-weights"
                         : values->ignore_index    ? "ignore-index"
                         : values->class_axis != 0 ? "class-axis"
                                                   : NULL;
    int64_t label;

    if (option && !loss_strings_name(&values->loss, OT_LOSS_CROSS_ENTROPY))
        return report_usage("--%s: no --loss is cross-entropy", option);
    if (values->class_weights && read_weights(values->class_weights, NULL) < 0)
        return EXIT_USAGE;
    if (values->ignore_index && !option_parse_int(values->ignore_index, &label))
        return report_usage("--ignore-index: '%s' is not a label", values->ignore_index);
    return EXIT_SUCCESS;
}

static int check_init(const char *text)
{
    enum { MOST = 16 };
    const char *equals = strrchr(text, '='), *kinds[MOST];
    int n = 0;

    if (!equals || equals == text)
        return report_usage("--init: '%s' is not PATTERN=KIND", text);
    while (n < MOST && (kinds[n] = ot_init_kind_name(n)) != NULL) {
        if (strcmp(kinds[n], equals + 1) == 0)
            return EXIT_SUCCESS;
        n++;
    }
    return report_unknown(kinds, n, equals + 1, "--init: '%s' is not one of", equals + 1);
}

int model_values_check(const model_values *values)
{
    const char *name = values->loss_input ? "loss-input" : values->target ? "target" : NULL;
    int code = loss_strings_check(&values->loss);

    if (code == EXIT_SUCCESS && name &&
        (values->loss.count > 1 ||
         (values->loss.count == 1 && loss_text_has_value(values->loss.items[0]))))
        code = report_usage("--%s: " NAMED_TWICE, name);
    if (code == EXIT_SUCCESS)
        code = check_classes(values);
    if (code == EXIT_SUCCESS)
        code = optimizer_check(values);
    for (int i = 0; code == EXIT_SUCCESS && i < values->init.count; i++)
        code = check_init(values->init.items[i]);
    return code;
}

int model_command_check(const void *values, const char *const *arguments)
{
    (void)arguments;
    return model_values_check(values);
}

// --loss-input and --target say in options of their own what a single --loss may say itself.
static int set_names(ot_loss_options *term, const model_values *values)
{
    const char *option = values->loss_input ? "loss-input" : "target";

    if (!values->loss_input && !values->target)
        return EXIT_SUCCESS;
    if (values->loss.count > 1 || term->input)
        return report_text("--%s: " NAMED_TWICE, option);
    term->input = values->loss_input;
    term->target = values->target;
    return EXIT_SUCCESS;
}

// Options that change every cross-entropy term.
static int set_classes(model_setup *setup, const model_values *values, const ot_model *model)
{
    int64_t ignored = 0;

    if (values->class_weights) {
        int code = parse_weights(values->class_weights, &setup->class_weights);
        if (code != EXIT_SUCCESS)
            return code;
    }
    if (values->ignore_index)
        (void)option_parse_int(values->ignore_index, &ignored);
    if (recorded_has_loss(setup->record))
        return recorded_take_loss(setup, values, model, ignored);
    for (int i = 0; i < setup->loss.count; i++) {
        ot_loss_options *term = &setup->loss.items[i];
        if (term->loss != OT_LOSS_CROSS_ENTROPY)
            continue;
        term->weight = setup->class_weights;
        term->class_axis = values->class_axis == 0 ? 1 : -1;
        term->has_ignore_index = values->ignore_index != NULL;
        term->ignore_index = ignored;
    }
    return EXIT_SUCCESS;
}

static int set_loss(model_setup *setup, const model_values *values, const ot_model *model)
{
    static const char *default_loss[] = {"cross-entropy"};
    const text_list strings =
        values->loss.count > 0 ? values->loss : (text_list){.items = default_loss, .count = 1};
    int code = values->loss.count == 0 && recorded_has_loss(setup->record)
                   ? recorded_terms(setup)
                   : loss_terms_parse(&setup->loss, &strings, model);

    if (code == EXIT_SUCCESS)
        code = set_names(&setup->loss.items[0], values);
    for (int i = 0; code == EXIT_SUCCESS && i < setup->loss.count; i++)
        setup->loss.items[i].reduction = (ot_reduction)values->reduction;
    return code == EXIT_SUCCESS ? set_classes(setup, values, model) : code;
}

// ---- the whole ----

// All outputs of the model stay what they are, or the trained model would lack those that no loss
// needs.
static int set_outputs(model_setup *setup, const ot_model *model)
{
    const char *input = setup->loss.items[0].input;
    const int n = ot_model_output_count(model);
    const char *scores = input ? input : ot_model_output_name(model, 0);
    int count = 0;

    setup->outputs = calloc((size_t)n + 2, sizeof(*setup->outputs));
    if (!setup->outputs)
        return report_text("out of memory");
    if (scores)
        setup->outputs[count++] = scores;
    for (int i = 0; i < n; i++) {
        const char *name = ot_model_output_name(model, i);
        if (strcmp(name, scores) != 0)
            setup->outputs[count++] = name;
    }
    setup->options.additional_outputs = setup->outputs;
    setup->options.n_additional_outputs = count;
    return EXIT_SUCCESS;
}

int model_setup_init(model_setup *setup, const model_values *values, const ot_model *model)
{
    ot_artifacts_options *options = &setup->options;
    int code;

    *setup = (model_setup){.options = OT_ARTIFACTS_OPTIONS_INIT};
    code = recorded_read(model, values->ignore_recorded, &setup->record);
    if (code == EXIT_SUCCESS)
        code = set_loss(setup, values, model);
    if (code != EXIT_SUCCESS)
        return code;
    if (setup->loss.count > 1 || setup->loss.items[0].loss != OT_LOSS_NONE ||
        setup->loss.items[0].factor != 1 || setup->loss.items[0].input) {
        options->losses = setup->loss.items;
        options->n_losses = setup->loss.count;
        code = set_outputs(setup, model);
        if (code != EXIT_SUCCESS)
            return code;
    }
    options->optimizer = &setup->optimizer.options;
    code = optimizer_setup_init(&setup->optimizer, values);
    if (code != EXIT_SUCCESS)
        return code;
    options->trainable = values->train.count ? values->train.items : NULL;
    options->n_trainable = values->train.count;
    options->frozen = values->freeze.items;
    options->n_frozen = values->freeze.count;
    options->shared = values->shared.items;
    options->n_shared = values->shared.count;
    options->init = values->init.items;
    options->n_init = values->init.count;
    options->batch_norm = values->batch_norm == BATCH_NORM_SYNC ? OT_BATCH_NORM_BATCH
                                                                : (ot_batch_norm)values->batch_norm;
    options->seed = (uint64_t)values->seed;
    return EXIT_SUCCESS;
}

void model_setup_deinit(model_setup *setup)
{
    ot_tensor_destroy(setup->class_weights);
    loss_terms_deinit(&setup->loss);
    free(setup->outputs);
    ot_record_destroy(setup->record);
}
