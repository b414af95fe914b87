// SPDX-License-Identifier: Apache-2.0
// Times models of one operator, forward alone and with its gradients: the library's side of
// bench/operators.py.
//
//   bench_operators THREADS
//
// reads requests, a line each, and answers each with a line:
//
//   model MODEL DATA     another model (ONNX text), and what its inputs are: their elements one
//                        input after the other, then the gradient of Y
//   time WAY SAMPLES     "forward" or "gradient": seconds of a run in each sample
//   values FILE          writes Y and its gradients
//
// Gradients are with respect to the inputs of floats whose name begins with a capital letter. The
// models train: batch normalisation takes the statistics of the batch.
#include <ctype.h>
#include <string.h>

#include "autodiff/autodiff.h"
#include "problem.h"
#include "session/session.h"

enum { MAX_INPUTS = 8, MAX_PATH = 4096 };
static const double SAMPLE_SECONDS = 2e-3; // that a sample takes at least
static const double MOST_SECONDS = 0.5;    // that all samples of an answer take, but for the first

typedef struct runs {
    ot_runner *forward, *gradient;
    ot_tensor *inputs[MAX_INPUTS + 1]; // of the model, then the gradient of Y
    int n_inputs;                      // of the model
    int n_wanted;                      // gradients
} runs;

// ---- models ----

static bool is_wanted(const ot_value *input)
{
    return input->dtype == OT_F32 && isupper((unsigned char)input->name[0]);
}

// Y and its gradients become the outputs, the gradient of Y the last input.
static int differentiate(ot_model *model)
{
    ot_graph *graph = model->graph;
    ot__builder builder = {.graph = graph};
    ot_value *y = graph->outputs[0], *wanted[MAX_INPUTS], *gradients[MAX_INPUTS], *seed;
    int n = 0;

    for (int i = 0; i < graph->n_inputs; i++)
        if (is_wanted(graph->inputs[i]))
            wanted[n++] = graph->inputs[i];
    must(ot__pass_train(model));
    must(ot__pass_fold(model, 0));
    seed = ot__build_value(&builder, "Y_grad");
    ot__value_set(seed, y->dtype, &y->shape);
    ot__build_input(&builder, seed);
    must(builder.status);
    must(ot__autodiff_build(graph, y, seed, wanted, n, gradients));
    for (int i = 0; i < n; i++)
        must(ot__made(ot__graph_add_output(graph, gradients[i])));
    must(ot__pass_prune(model));
    return n;
}

static ot_runner *runner_of(const ot_model *model, int n_threads)
{
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    ot_runner *runner;

    options.n_threads = n_threads;
    must(ot_runner_create(model, &options, &runner));
    return runner;
}

static ot_tensor *read_tensor(const ot_value *value, FILE *data)
{
    ot_tensor *tensor;

    must(ot_tensor_create(value->dtype, &value->shape, &tensor));
    if (fread(ot_tensor_data(tensor), ot_dtype_size(value->dtype), (size_t)ot_tensor_count(tensor),
              data) != (size_t)ot_tensor_count(tensor)) {
        fprintf(stderr, "bench_operators: no data for '%s'\n", value->name);
        exit(1);
    }
    return tensor;
}

static void drop(runs *r)
{
    ot_runner_destroy(r->forward);
    ot_runner_destroy(r->gradient);
    for (int i = 0; i < r->n_inputs + 1; i++)
        ot_tensor_destroy(r->inputs[i]);
    *r = (runs){.n_inputs = 0};
}

static void take_model(runs *r, const char *path, const char *data_path, int n_threads)
{
    FILE *data = fopen(data_path, "rb");
    const ot_graph *graph;
    ot_model *model;

    drop(r);
    must(ot_model_load(path, NULL, &model));
    must(ot__pass_prepare(model));
    graph = model->graph;
    if (data == NULL || graph->n_inputs > MAX_INPUTS || graph->n_outputs != 1) {
        fprintf(stderr, "bench_operators: %s or %s cannot be used\n", path, data_path);
        exit(1);
    }
    r->forward = runner_of(model, n_threads);
    r->n_inputs = graph->n_inputs;
    r->n_wanted = differentiate(model);
    for (int i = 0; i < graph->n_inputs; i++) // the last is the gradient of Y
        r->inputs[i] = read_tensor(graph->inputs[i], data);
    r->gradient = runner_of(model, n_threads);
    ot_model_destroy(model);
    fclose(data);
    printf("{}\n");
}

// ---- running ----

// Outputs that are not asked for stay in the memory of the plan, as activations do in training.
static void run(const runs *r, bool gradient, ot_tensor **outputs, int n_outputs)
{
    ot_feed feeds[MAX_INPUTS + 1];
    const int n = r->n_inputs + (gradient ? 1 : 0);

    for (int i = 0; i < n; i++)
        feeds[i] = (ot_feed){(const ot_tensor *const *)&r->inputs[i], 1};
    must(ot_runner_run(gradient ? r->gradient : r->forward, feeds, n, NULL, outputs, n_outputs));
}

static double sample(const runs *r, bool gradient, int repeats)
{
    const double before = seconds();

    for (int i = 0; i < repeats; i++)
        run(r, gradient, NULL, 0);
    return (seconds() - before) / repeats;
}

static void answer_time(const runs *r, bool gradient, int n_samples)
{
    double once;
    int repeats;

    sample(r, gradient, 1); // which plans
    once = sample(r, gradient, 1);
    repeats = 1 + (int)(SAMPLE_SECONDS / once);
    n_samples = OT_MIN(n_samples, 1 + (int)(MOST_SECONDS / once));
    printf("[");
    for (int i = 0; i < n_samples; i++)
        printf("%s%.9f", i > 0 ? ", " : "", sample(r, gradient, repeats));
    printf("]\n");
}

static void write_values(const runs *r, const char *path)
{
    ot_tensor *outputs[MAX_INPUTS + 1];
    FILE *file = fopen(path, "wb");

    if (file == NULL) {
        fprintf(stderr, "bench_operators: %s: cannot be written\n", path);
        exit(1);
    }
    run(r, true, outputs, r->n_wanted + 1);
    for (int i = 0; i < r->n_wanted + 1; i++) {
        fwrite(ot_tensor_data(outputs[i]), sizeof(float), (size_t)ot_tensor_count(outputs[i]),
               file);
        ot_tensor_destroy(outputs[i]);
    }
    if (fclose(file) != 0)
        exit(1);
    printf("{}\n");
}

int main(int argc, char **argv)
{
    char line[3 * MAX_PATH], first[MAX_PATH], second[MAX_PATH];
    runs r = {.n_inputs = 0};

    if (argc != 2 || atoi(argv[1]) < 1)
        return 2;
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (sscanf(line, "model %4095s %4095s", first, second) == 2)
            take_model(&r, first, second, atoi(argv[1]));
        else if (sscanf(line, "time %4095s %4095s", first, second) == 2)
            answer_time(&r, strcmp(first, "gradient") == 0, atoi(second));
        else if (sscanf(line, "values %4095s", first) == 1)
            write_values(&r, first);
        else
            return 2;
        fflush(stdout);
    }
    drop(&r);
    return 0;
}
