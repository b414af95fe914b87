// SPDX-License-Identifier: Apache-2.0
// Optimizers by the names of the command: adam is AdamOptimizer, and so for each that the library
// lists; adamw, sgd and sgd-momentum are what ONNX Runtime's artifacts and PyTorch call so.
#include <ctype.h>
#include <string.h>

#include "model_options.h"
#include "report.h"

static const struct {
    const char *name, *optimizer;
} names[] = {
    {"adamw", "AdamWOptimizer"},
    {"sgd", "SGDOptimizerV2"},
    {"sgd-momentum", "SGDOptimizer"},
    {"none", NULL},
};
enum { N_NAMES = sizeof names / sizeof names[0], MOST_OPTIMIZERS = 64, MOST_LETTERS = 32 };

// "RMSPropOptimizer" is rmsprop; false for those that have a name of their own above.
static bool command_name(const char *optimizer, char text[MOST_LETTERS])
{
    const char *end = strstr(optimizer, "Optimizer");
    size_t n = 0;

    for (int i = 0; i < N_NAMES; i++)
        if (names[i].optimizer && strcmp(names[i].optimizer, optimizer) == 0)
            return false;
    for (; optimizer + n != end && optimizer[n] && n + 1 < MOST_LETTERS; n++)
        text[n] = (char)tolower((unsigned char)optimizer[n]);
    text[n] = '\0';
    return true;
}

// False: there is none of that name.
static bool find_optimizer(const char *name, const char **optimizer)
{
    char text[MOST_LETTERS];

    for (int i = 0; i < N_NAMES; i++)
        if (strcmp(names[i].name, name) == 0) {
            *optimizer = names[i].optimizer;
            return true;
        }
    for (int i = 0; (*optimizer = ot_optimizer_name(i)) != NULL; i++)
        if (strcmp(*optimizer, name) == 0 ||
            (command_name(*optimizer, text) && strcmp(text, name) == 0))
            return true;
    return false;
}

static int report_names(const char *name)
{
    const char *known[MOST_OPTIMIZERS];
    char texts[MOST_OPTIMIZERS][MOST_LETTERS];
    int n = 0;

    for (; n < N_NAMES; n++)
        known[n] = names[n].name;
    for (int i = 0; ot_optimizer_name(i) && n < MOST_OPTIMIZERS; i++)
        if (command_name(ot_optimizer_name(i), texts[n])) {
            known[n] = texts[n];
            n++;
        }
    return report_unknown(known, n, name, "--optimizer: '%s' is not one of", name);
}

const char *optimizer_name(const model_values *values)
{
    return values->optimizer ? values->optimizer : "adamw";
}

const char *optimizer_operator(const model_values *values)
{
    const char *optimizer = NULL;

    (void)find_optimizer(optimizer_name(values), &optimizer);
    return optimizer;
}

bool optimizer_is_none(const model_values *values)
{
    return optimizer_operator(values) == NULL;
}

// ---- numbers ----

// An option, and what optimizers call it.
typedef struct number_option {
    const char *option, *names[3];
    double value;
} number_option;

enum { DECAY = 3, N_NUMBERS = 7 };

static void list_numbers(const model_values *values, number_option numbers[N_NUMBERS])
{
    const number_option all[N_NUMBERS] = {
        {"beta1", {"beta1", "alpha"}, values->beta1},
        {"beta2", {"beta2", "beta"}, values->beta2},
        {"epsilon", {"epsilon"}, values->epsilon},
        [DECAY] = {"weight-decay", {"weight_decay", "lambda"}, values->weight_decay},
        {"adam-mode", {"adam_mode", "weight_decay_mode"}, values->adam_mode},
        {"momentum", {"momentum"}, values->momentum},
        {"nesterov", {"nesterov"}, values->nesterov},
    };

    memcpy(numbers, all, sizeof all);
}

// The hyper-parameter of the optimizer that is called so; NULL: there is none.
static const char *find_hyper(const char *optimizer, const char *name)
{
    ot_hyper_info info = OT_HYPER_INFO_INIT;

    for (int i = 0; ot_optimizer_hyper(optimizer, i, &info) == OT_OK; i++)
        if (strcmp(info.name, name) == 0)
            return info.name;
    return NULL;
}

static const char *hyper_called(const char *optimizer, const number_option *number)
{
    const char *found = NULL;

    for (int k = 0; number->names[k] && !found; k++)
        found = find_hyper(optimizer, number->names[k]);
    return found;
}

int optimizer_check(const model_values *values)
{
    const char *optimizer;
    number_option numbers[N_NUMBERS];

    if (!find_optimizer(optimizer_name(values), &optimizer))
        return report_names(optimizer_name(values));
    list_numbers(values, numbers);
    if (optimizer && values->no_decay.count > 0 && !hyper_called(optimizer, &numbers[DECAY]))
        return report_usage("--no-decay: %s has no weight decay", optimizer_name(values));
    return EXIT_SUCCESS;
}

static void add_number(optimizer_setup *setup, const char *name, double value)
{
    if (name)
        setup->hyper[setup->options.n_hyper++] = (ot_hyper){name, value};
}

// What is not given is left to the optimizer.
int optimizer_setup_init(optimizer_setup *setup, const model_values *values)
{
    static const double usual_momentum = 0.9; // of sgd-momentum
    const char *optimizer = optimizer_operator(values);
    ot_optimizer_options *o = &setup->options;
    number_option numbers[N_NUMBERS];

    *setup =
        (optimizer_setup){.options = OT_OPTIMIZER_OPTIONS_INIT, .undecayed = OT_PARAM_GROUP_INIT};
    o->name = optimizer;
    if (!optimizer)
        return EXIT_SUCCESS;
    o->hyper = setup->hyper;
    o->max_norm = values->clip_norm;
    list_numbers(values, numbers);
    if (strcmp(optimizer_name(values), "sgd-momentum") == 0 && !option_is_given("momentum"))
        add_number(setup, "momentum", usual_momentum);
    for (int i = 0; i < N_NUMBERS; i++)
        if (option_is_given(numbers[i].option))
            add_number(setup, hyper_called(optimizer, &numbers[i]), numbers[i].value);
    add_number(setup, find_hyper(optimizer, "max_norm_clip"), 0); // --clip-norm clips
    if (values->no_decay.count == 0)
        return EXIT_SUCCESS;
    setup->no_decay = (ot_hyper){hyper_called(optimizer, &numbers[DECAY]), 0};
    setup->undecayed.params = values->no_decay.items;
    setup->undecayed.n_params = values->no_decay.count;
    setup->undecayed.hyper = &setup->no_decay;
    setup->undecayed.n_hyper = 1;
    o->groups = &setup->undecayed;
    o->n_groups = 1;
    return EXIT_SUCCESS;
}
