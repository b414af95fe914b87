#include "model_options.h"

#include <stdlib.h>
#include <string.h>

#include "report.h"

#define AT(member) offsetof(model_values, member)

static const char *const reductions[] = {"mean", "sum", "none", NULL};
static const char *const optimizers[] = {"adamw", "sgd", "sgd-momentum", "none", NULL};
static const ot_optimizer optimizer_numbers[] = {OT_OPTIMIZER_ADAMW, OT_OPTIMIZER_SGD,
                                                 OT_OPTIMIZER_SGD_MOMENTUM, OT_OPTIMIZER_NONE};
static const char *const batch_norms[] = {"auto", "batch", "stored", NULL};

const option_spec model_option_table[] = {
    {.help = "Loss"},
    {"loss", OPTION_TEXT, AT(loss), "LOSS",
     "cross-entropy, mse, l1, bce-with-logits, none (the first output is the loss), or a file "
     ".onnx or "
     ".onnxtxt whose inputs are outputs of the model, by name, and targets",
     "cross-entropy", NULL, 0},
    {"loss-input", OPTION_TEXT, AT(loss_input), "NAME", "value of the model the loss takes",
     "the first output", NULL, 0},
    {"target", OPTION_TEXT, AT(target), "NAME", "name of the target input",
     "labels for cross-entropy, else target", NULL, 0},
    {"reduction", OPTION_CHOICE, AT(reduction), "HOW", "of the loss over the batch", "mean",
     reductions, 0},
    {"class-weights", OPTION_TEXT, AT(class_weights), "W,W,...",
     "weight of each class (cross-entropy)", NULL, NULL, 0},
    {"ignore-index", OPTION_TEXT, AT(ignore_index), "LABEL",
     "label that does not count (cross-entropy)", NULL, NULL, 0},
    {.help = "Optimizer"},
    {"optimizer", OPTION_CHOICE, AT(optimizer), "NAME",
     "update rule; sgd-momentum cannot be loaded by ONNX Runtime", "adamw", optimizers, 0},
    {"beta1", OPTION_REAL, AT(beta1), "X", "decay of the first moment (adamw)", "0.9", NULL, 0},
    {"beta2", OPTION_REAL, AT(beta2), "X", "decay of the second moment (adamw)", "0.999", NULL, 0},
    {"epsilon", OPTION_REAL, AT(epsilon), "X", "added to the root of the second moment (adamw)",
     "1e-6", NULL, 0},
    {"weight-decay", OPTION_REAL, AT(weight_decay), "X",
     "decoupled for adamw, an L2 term for sgd-momentum", "0", NULL, 0},
    {"adam-mode", OPTION_INT, AT(adam_mode), "0|1",
     "decay before the update as PyTorch (0) or after it as ONNX Runtime's artifacts (1)", "1",
     NULL, 0},
    {"momentum", OPTION_REAL, AT(momentum), "X", "of sgd-momentum", "0.9", NULL, 0},
    {"nesterov", OPTION_FLAG, AT(nesterov), NULL, "Nesterov's form of momentum", NULL, NULL, 0},
    {"clip-norm", OPTION_REAL, AT(clip_norm), "X",
     "clip the norm of all gradients together; 0: no clipping", "0", NULL, 0},
    {.help = "Parameters"},
    {"train", OPTION_LIST, AT(train), "PATTERN",
     "train the initializers whose names match (* and ?), instead of all that can be", NULL, NULL,
     0},
    {"freeze", OPTION_LIST, AT(freeze), "PATTERN", "do not train those that match", NULL, NULL, 0},
    {"batch-norm", OPTION_CHOICE, AT(batch_norm), "HOW",
     "statistics BatchNormalization uses; auto: of the batch where its scale or bias is trained",
     "auto", batch_norms, 0},
    {"init", OPTION_LIST, AT(init), "PATTERN=KIND",
     "draw initial values: kaiming_uniform, kaiming_normal, xavier_uniform, xavier_normal, zeros, "
     "ones",
     NULL, NULL, 0},
    {"seed", OPTION_INT, AT(seed), "N", "of initial values, dropout and the order of the data", "0",
     NULL, 0},
    {0},
};

int load_model(const char *path, ot_model **out)
{
    return ot_model_load(path, NULL, out) == OT_OK ? EXIT_SUCCESS : report_error();
}

static int parse_weights(const char *text, ot_tensor **out)
{
    int64_t count = 1;
    float *to;

    for (const char *p = text; *p; p++)
        count += *p == ',';
    if (ot_tensor_create(OT_F32, &OT_SHAPE(count), out) != OT_OK)
        return report_error();
    to = ot_tensor_data(*out);
    for (int64_t i = 0; i < count; i++) {
        char *end;
        to[i] = strtof(text, &end);
        if (end == text || (*end != ',' && *end != '\0') || !(to[i] >= 0))
            return report_usage("--class-weights: '%s' is no weight", text);
        text = end + 1;
    }
    return EXIT_SUCCESS;
}

static int set_loss(model_setup *setup, const model_values *values)
{
    static const struct {
        const char *name;
        ot_loss loss;
    } names[] = {{"cross-entropy", OT_LOSS_CROSS_ENTROPY},
                 {"mse", OT_LOSS_MSE},
                 {"l1", OT_LOSS_L1},
                 {"bce-with-logits", OT_LOSS_BCE_WITH_LOGITS},
                 {"none", OT_LOSS_NONE}};
    const char *loss = values->loss ? values->loss : "cross-entropy";
    char *end;

    setup->loss = (ot_loss_options)OT_LOSS_OPTIONS_INIT;
    setup->loss.loss = OT_LOSS_CUSTOM;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(loss, names[i].name) == 0)
            setup->loss.loss = names[i].loss;
    if (setup->loss.loss == OT_LOSS_CUSTOM) {
        if (!strchr(loss, '.'))
            return report_usage("--loss: '%s' is neither a loss nor a model file", loss);
        if (load_model(loss, &setup->custom_loss) != EXIT_SUCCESS)
            return EXIT_FAILED;
        setup->loss.custom = setup->custom_loss;
    }
    setup->loss.input = values->loss_input;
    setup->loss.target = values->target;
    setup->loss.reduction = (ot_reduction)values->reduction;
    if (values->class_weights) {
        int code = parse_weights(values->class_weights, &setup->class_weights);
        if (code != EXIT_SUCCESS)
            return code;
        setup->loss.weight = setup->class_weights;
    }
    if (values->ignore_index) {
        setup->loss.has_ignore_index = 1;
        setup->loss.ignore_index = strtoll(values->ignore_index, &end, 10);
        if (end == values->ignore_index || *end)
            return report_usage("--ignore-index: '%s' is no label", values->ignore_index);
    }
    return EXIT_SUCCESS;
}

int model_setup_init(model_setup *setup, const model_values *values, const ot_model *model)
{
    ot_artifacts_options *options = &setup->options;
    int code;

    *setup = (model_setup){.options = OT_ARTIFACTS_OPTIONS_INIT};
    code = set_loss(setup, values);
    if (code != EXIT_SUCCESS)
        return code;
    if (setup->loss.loss != OT_LOSS_NONE) {
        options->losses = &setup->loss;
        options->n_losses = 1;
        setup->scores = values->loss_input ? values->loss_input : ot_model_output_name(model, 0);
        if (setup->scores) {
            options->additional_outputs = &setup->scores;
            options->n_additional_outputs = 1;
        }
    }
    options->optimizer.optimizer = optimizer_numbers[values->optimizer];
    options->optimizer.beta1 = values->beta1;
    options->optimizer.beta2 = values->beta2;
    options->optimizer.epsilon = values->epsilon;
    options->optimizer.weight_decay = values->weight_decay;
    options->optimizer.adam_mode = (int)values->adam_mode;
    options->optimizer.momentum = values->momentum;
    options->optimizer.nesterov = values->nesterov;
    options->optimizer.max_norm = values->clip_norm;
    options->trainable = values->train.count ? values->train.items : NULL;
    options->n_trainable = values->train.count;
    options->frozen = values->freeze.items;
    options->n_frozen = values->freeze.count;
    options->init = values->init.items;
    options->n_init = values->init.count;
    options->batch_norm = (ot_batch_norm)values->batch_norm;
    options->seed = (uint64_t)values->seed;
    return EXIT_SUCCESS;
}

void model_setup_deinit(model_setup *setup)
{
    ot_tensor_destroy(setup->class_weights);
    ot_model_destroy(setup->custom_loss);
}
