// SPDX-License-Identifier: Apache-2.0
// Runs ONNX's node tests from a zip file that record.py wrote, and compares the shapes we infer
// with those of onnx.shape_inference.
//
//   run_node_tests TESTS.zip EXPECTED [COUNTS]
//
// COUNTS is written: how many tests of one node pass, operator by operator. Without it, they are
// compared with src/ops/certificates.def, which must not have fewer.
//
// EXPECTED lists what may fail, and must: "operators NAME ..." that the table does not have,
// "test GLOB REASON" and "shape GLOB REASON". Every other failure, and every listed one that does
// not happen, fails the run.
#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zip.h>

#include "onnxtrain/runner.h"
#include "ops/table.h"
#include "passes/unroll.h"

enum { MAX_PORTS = 64, MESSAGE_SIZE = 512, MAX_WITHOUT_RECORD = 32 };

typedef enum check_kind { CHECK_OPERATORS, CHECK_TEST, CHECK_SHAPE, N_CHECKS } check_kind;
static const char *const check_word[N_CHECKS] = {"operators", "test", "shape"};

typedef struct expectation {
    check_kind check;
    char *pattern;
    struct expectation *next;
} expectation;

typedef struct runner {
    zip_t *zip;
    expectation *expected;
    char *text; // of EXPECTED; patterns point into it
    int n_right, n_listed, n_wrong;
    int *n_passed;                         // per operator of the table: tests of that node alone
    int n_passed_with[MAX_WITHOUT_RECORD]; // of operators without records: tests with that node
} runner;

// ---- what may fail ----

static bool expect(runner *r, check_kind check, char *pattern)
{
    expectation *e = calloc(1, sizeof *e);

    if (!e)
        return false;
    *e = (expectation){.check = check, .pattern = pattern, .next = r->expected};
    r->expected = e;
    return true;
}

static bool read_line(runner *r, char *line)
{
    char *rest = NULL, *word = strtok_r(line, " ", &rest), *pattern;

    if (!word || word[0] == '#')
        return true;
    for (int c = 0; c < N_CHECKS; c++) {
        if (strcmp(word, check_word[c]) != 0)
            continue;
        if (c == CHECK_OPERATORS) {
            while ((pattern = strtok_r(NULL, " ", &rest)) != NULL)
                if (!expect(r, CHECK_OPERATORS, pattern))
                    return false;
            return true;
        }
        pattern = strtok_r(NULL, " ", &rest);
        if (!pattern || !rest || !rest[0])
            break; // a skip without a reason
        return expect(r, (check_kind)c, pattern);
    }
    fprintf(stderr, "not understood: %s\n", word);
    return false;
}

static bool read_expected(runner *r, const char *path)
{
    ot__file_map map = {0};
    char *rest = NULL;
    bool good = true;

    if (ot__file_map_open(&map, path) != OT_OK)
        return false;
    r->text = calloc(1, map.size + 1);
    if (r->text)
        memcpy(r->text, map.data, map.size);
    ot__file_map_close(&map);
    if (!r->text)
        return false;
    for (char *line = strtok_r(r->text, "\n", &rest); line && good;
         line = strtok_r(NULL, "\n", &rest))
        good = read_line(r, line);
    return good;
}

static bool is_listed(const runner *r, check_kind check, const char *name)
{
    for (const expectation *e = r->expected; e; e = e->next)
        if (e->check == check && fnmatch(e->pattern, name, 0) == 0)
            return true;
    return false;
}

// `wrong` is NULL when all is well, else what is not.
static void settle(runner *r, check_kind check, const char *name, const char *wrong)
{
    const bool listed = is_listed(r, check, name);

    if (!wrong && listed) {
        printf("%s %s: is listed as failing, and passes\n", check_word[check], name);
        r->n_wrong++;
    } else if (wrong && !listed) {
        printf("%s %s: %s\n", check_word[check], name, wrong);
        r->n_wrong++;
    } else if (wrong) {
        r->n_listed++;
    } else {
        r->n_right++;
    }
}

// ---- the zip file ----

// The entry's bytes and a zero behind them, NULL when there is none; the caller frees them.
static char *read_entry(zip_t *zip, const char *name, const char *ending, size_t *size)
{
    char entry[256];
    zip_stat_t stat;
    zip_file_t *file;
    char *bytes = NULL;

    snprintf(entry, sizeof entry, "%s%s", name, ending);
    if (zip_stat(zip, entry, 0, &stat) != 0 || !(file = zip_fopen(zip, entry, 0)))
        return NULL;
    bytes = calloc(1, (size_t)stat.size + 1);
    if (bytes && zip_fread(file, bytes, stat.size) != (zip_int64_t)stat.size) {
        free(bytes);
        bytes = NULL;
    }
    zip_fclose(file);
    *size = (size_t)stat.size;
    return bytes;
}

// OT_ERR_NOT_FOUND when there is no such entry.
static ot_status load(const runner *r, const char *name, const char *ending, ot_model **out)
{
    size_t size = 0;
    char *bytes = read_entry(r->zip, name, ending, &size);
    ot_status st;

    *out = NULL;
    if (!bytes)
        return ot__error(OT_ERR_NOT_FOUND, "no %s%s", name, ending);
    st = ot_model_load_buffer(bytes, size, NULL, out);
    free(bytes);
    return st;
}

// ---- values ----

typedef struct tolerance {
    double relative, absolute;
} tolerance;

static bool texts_agree(const ot_tensor *y, const ot_tensor *expected)
{
    for (int64_t i = 0; i < ot_tensor_count(y); i++) {
        size_t n, n_expected;
        const char *text = ot_tensor_string(y, i, &n),
                   *wanted = ot_tensor_string(expected, i, &n_expected);

        if (n != n_expected || memcmp(text, wanted, n) != 0)
            return false;
    }
    return true;
}

static bool elements_agree(const ot_tensor *y, const ot_tensor *expected, tolerance within,
                           int64_t *where)
{
    if (y->dtype == OT_STRING) {
        *where = -1;
        return texts_agree(y, expected);
    }
    if (ot__dtype_is_int(y->dtype) || y->dtype == OT_BOOL) { // f64 does not hold every i64
        *where = -1;
        return memcmp(y->data, expected->data, y->n_bytes) == 0;
    }
    for (int64_t i = 0; i < ot_tensor_count(y); i++) {
        const double a = ot__tensor_get_f64(y, i), b = ot__tensor_get_f64(expected, i);

        *where = i;
        if (isnan(a) || isnan(b)
                ? isnan(a) != isnan(b)
                : a != b && !(fabs(a - b) <= within.absolute + within.relative * fabs(b)))
            return false;
    }
    return true;
}

static bool agrees(const ot_tensor *y, const ot_tensor *expected, tolerance within, int index,
                   char *message)
{
    char found[120], wanted[120];
    int64_t where;

    if (y->dtype != expected->dtype || !ot__shape_equal(&y->shape, &expected->shape)) {
        snprintf(message, MESSAGE_SIZE, "output %d is %s%s, expected %s%s", index,
                 ot_dtype_name(y->dtype), ot__shape_text(&y->shape, found, sizeof found),
                 ot_dtype_name(expected->dtype),
                 ot__shape_text(&expected->shape, wanted, sizeof wanted));
        return false;
    }
    if (elements_agree(y, expected, within, &where))
        return true;
    if (where < 0)
        snprintf(message, MESSAGE_SIZE, "output %d has other elements", index);
    else
        snprintf(message, MESSAGE_SIZE, "output %d: element %" PRId64 " is %g, expected %g", index,
                 where, ot__tensor_get_f64(y, where), ot__tensor_get_f64(expected, where));
    return false;
}

static int numbered(const ot_model *data, const char *prefix, const ot_tensor **tensors)
{
    char name[24];
    int n = 0;

    for (; n < MAX_PORTS; n++) {
        const ot_value *value;

        snprintf(name, sizeof name, "%s%d", prefix, n);
        value = ot__graph_find(data->graph, name);
        if (!value)
            break;
        tensors[n] = value->constant;
    }
    return n;
}

// Whether the model's outputs are the expected ones with the fastest or with the reference kernels.
static bool runs(const ot_model *model, const ot_model *data, tolerance within, int reference,
                 char *message)
{
    const ot_tensor *in[MAX_PORTS], *expected[MAX_PORTS];
    ot_tensor *out[MAX_PORTS] = {0};
    const int n_in = numbered(data, "in", in), n_out = numbered(data, "out", expected);
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    ot_status st;
    bool good;

    options.reference_kernels = reference;
    st = ot_model_run(model, &options, in, n_in, out, n_out);
    good = st == OT_OK;
    if (!good)
        snprintf(message, MESSAGE_SIZE, "%s", ot_error_message());
    for (int i = 0; i < n_out; i++) {
        good = good && agrees(out[i], expected[i], within, i, message);
        ot_tensor_destroy(out[i]);
    }
    return good;
}

// Whether they were right.
static bool check_values(runner *r, const char *name, const ot_model *model, tolerance within)
{
    char message[MESSAGE_SIZE];
    ot_model *data;
    bool good =
        load(r, name, ".data.onnx", &data) == OT_OK && ot__model_align_constants(data) == OT_OK;

    if (!good)
        snprintf(message, sizeof message, "%s", ot_error_message());
    for (int reference = 0; good && reference < 2; reference++)
        good = runs(model, data, within, reference, message);
    settle(r, CHECK_TEST, name, good ? NULL : message);
    ot_model_destroy(data);
    return good;
}

// ---- shapes ----

// Whether a number is that of a symbol "d5" of record.py: known better than ONNX knows it.
static bool is_number_of(const ot_model *model, int64_t found, int64_t wanted)
{
    const char *name = ot__dim_name(model, wanted);

    return ot__dim_is_number(found) && name && name[0] == 'd' && atoll(name + 1) == found;
}

// Whether a loop or a sequence of which only a step tells more is on the way to the value.
static bool waits_for_step(const ot_value *value)
{
    const ot_node *node = value->producer;
    bool waits = node && node->op == ot__op_control;

    for (int i = 0; node && i < node->n_inputs && !waits; i++)
        waits = node->inputs[i] && waits_for_step(node->inputs[i]);
    return waits;
}

static bool extent_agrees(const ot_model *model, int64_t found, int64_t wanted, bool may_wait)
{
    return wanted == OT_DIM_UNKNOWN || (may_wait && found == OT_DIM_UNKNOWN) ||
           ot__dim_same(found, wanted) || is_number_of(model, found, wanted);
}

// What ONNX infers must follow for us too, behind what only a step tells as far as it is known;
// where ONNX infers nothing, anything may.
static bool shape_agrees(const ot_model *model, const ot_value *found, const ot_value *wanted,
                         char *message)
{
    char a[200] = "?", b[200];
    const bool may_wait = waits_for_step(found);
    bool same = found->kind == OT_VALUE_TENSOR && found->dtype == wanted->dtype;

    if (same && wanted->has_shape && (found->has_shape || !may_wait)) {
        same = found->has_shape && found->shape.ndim == wanted->shape.ndim;
        for (int i = 0; same && i < wanted->shape.ndim; i++)
            same = extent_agrees(model, found->shape.dim[i], wanted->shape.dim[i], may_wait);
    }
    if (!same)
        snprintf(message, MESSAGE_SIZE, "'%s' is %s%s, ONNX infers %s%s", found->name,
                 ot_dtype_name(found->dtype),
                 found->has_shape ? ot__dims_text(model, &found->shape, a, sizeof a) : "",
                 ot_dtype_name(wanted->dtype),
                 wanted->has_shape ? ot__dims_text(model, &wanted->shape, b, sizeof b) : "");
    return same;
}

static bool infers(ot_model *model, char *message)
{
    ot_value wanted[MAX_PORTS];
    const ot_graph *graph = model->graph;
    size_t position = 0;
    const char *name;
    void *value;

    for (int i = 0; i < graph->n_outputs; i++)
        wanted[i] = *graph->outputs[i];
    while (ot__map_next(&graph->values, &position, &name, &value))
        if (((ot_value *)value)->producer)
            ((ot_value *)value)->has_shape = false;
    if (ot__pass_prepare(model) != OT_OK) {
        snprintf(message, MESSAGE_SIZE, "%s", ot_error_message());
        return false;
    }
    for (int i = 0; i < graph->n_outputs; i++)
        if (!shape_agrees(model, graph->outputs[i], &wanted[i], message))
            return false;
    return true;
}

static void check_shapes(runner *r, const char *name)
{
    char message[MESSAGE_SIZE];
    ot_model *model;
    const ot_status st = load(r, name, ".shapes.onnx", &model);

    if (st == OT_OK && model->graph->n_outputs <= MAX_PORTS)
        settle(r, CHECK_SHAPE, name, infers(model, message) ? NULL : message);
    else if (st != OT_ERR_NOT_FOUND)
        settle(r, CHECK_SHAPE, name, ot_error_message());
    ot_model_destroy(model);
}

// ---- one test ----

// What has graphs inside, or sequences, is in no table: passes take it apart.
static bool is_taken_apart(const ot_node *node)
{
    return ot__is_control(node) || ot__is_sequence_node(node) ||
           ot__node_is(node, "", "SequenceMap");
}

// The first operator of the model that the table does not have; NULL when there is none.
static const char *unknown_operator(const ot_model *model)
{
    for (int i = 0; i < model->graph->n_nodes; i++) {
        const ot_node *node = model->graph->nodes[i];

        if (!is_taken_apart(node) &&
            !ot__op_find(node->domain, node->op_type, ot__model_opset(model, node->domain)))
            return node->op_type;
    }
    return NULL;
}

// An operator that is listed as missing is not in a model whose operators are all known.
static void check_listed_operators(runner *r, const ot_model *model)
{
    for (int i = 0; i < model->graph->n_nodes; i++)
        if (is_listed(r, CHECK_OPERATORS, model->graph->nodes[i]->op_type))
            settle(r, CHECK_OPERATORS, model->graph->nodes[i]->op_type, NULL);
}

static bool has_node(const ot_model *model, const char *op_type)
{
    for (int i = 0; i < model->graph->n_nodes; i++)
        if (ot__node_is(model->graph->nodes[i], "", op_type))
            return true;
    return false;
}

static void count_passed(runner *r, const ot_model *model)
{
    const ot_node *node = model->graph->n_nodes == 1 ? model->graph->nodes[0] : NULL;

    for (int i = 0; node && i < ot__op_count(); i++)
        if (ot__op_records(i) == ot__op_find_records(node->domain, node->op_type))
            r->n_passed[i]++;
    for (int i = 0; i < MAX_WITHOUT_RECORD && ot__op_without_record(i); i++)
        r->n_passed_with[i] += has_node(model, ot__op_without_record(i));
}

static void run_test(runner *r, const char *name)
{
    size_t size;
    char *text = read_entry(r->zip, name, ".tolerance", &size);
    tolerance within = {0};
    ot_model *model = NULL;
    const char *unknown;

    if (!text || sscanf(text, "%lf %lf", &within.relative, &within.absolute) != 2)
        settle(r, CHECK_TEST, name, "no tolerance");
    else if (load(r, name, ".onnx", &model) != OT_OK)
        settle(r, CHECK_TEST, name, ot_error_message());
    else if ((unknown = unknown_operator(model)) != NULL)
        settle(r, CHECK_OPERATORS, unknown, name);
    else {
        check_listed_operators(r, model);
        if (check_values(r, name, model, within)) {
            count_passed(r, model);
            check_shapes(r, name);
        }
    }
    ot_model_destroy(model);
    free(text);
}

static void run_all(runner *r)
{
    static const char ending[] = ".tolerance"; // every test has exactly one
    const zip_int64_t n = zip_get_num_entries(r->zip, 0);

    for (zip_int64_t i = 0; i < n; i++) {
        const char *entry = zip_get_name(r->zip, (zip_uint64_t)i, 0);
        const size_t length = entry ? strlen(entry) : 0;
        char name[200];

        if (length < sizeof ending || length >= sizeof name ||
            strcmp(entry + length - (sizeof ending - 1), ending) != 0)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(length - (sizeof ending - 1)), entry);
        run_test(r, name);
    }
}

// ---- what certificates say ----

static bool write_counts(const runner *r, const char *path)
{
    FILE *file = fopen(path, "w");
    char text[160];

    for (int i = 0; file && i < ot__op_count(); i++) {
        const ot_op_def *op = ot__op_records(i);
        const ot_node node = {.domain = op->domain ? op->domain : "", .op_type = op->name};

        fprintf(file, "%s %d\n", ot__op_type_text(&node, text, sizeof text), r->n_passed[i]);
    }
    for (int i = 0; file && i < MAX_WITHOUT_RECORD && ot__op_without_record(i); i++)
        fprintf(file, "%s %d\n", ot__op_without_record(i), r->n_passed_with[i]);
    return file && fclose(file) == 0;
}

static void check_count(runner *r, const ot_op_def *op, int n_passed)
{
    const ot__certificate *c = ot__op_certificate(op);
    char message[MESSAGE_SIZE];

    if (n_passed <= (c ? c->n_node_tests : 0))
        return;
    snprintf(message, sizeof message,
             "%d tests pass, its certificate says %d; `./dev certificates` measures it anew",
             n_passed, c ? c->n_node_tests : 0);
    settle(r, CHECK_OPERATORS, op->name, message);
}

static void check_counts(runner *r)
{
    for (int i = 0; i < ot__op_count(); i++)
        check_count(r, ot__op_records(i), r->n_passed[i]);
    for (int i = 0; i < MAX_WITHOUT_RECORD && ot__op_without_record(i); i++)
        check_count(r, &(ot_op_def){.name = ot__op_without_record(i)}, r->n_passed_with[i]);
}

static void run(runner *r, const char *counts)
{
    r->n_passed = calloc((size_t)ot__op_count(), sizeof *r->n_passed);
    if (r->n_passed)
        run_all(r);
    if (r->n_passed && !counts)
        check_counts(r);
    if (!r->n_passed || (counts && !write_counts(r, counts))) {
        fprintf(stderr, "%s cannot be written\n", counts ? counts : "memory");
        r->n_wrong++;
    }
}

int main(int argc, char **argv)
{
    runner r = {0};

    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: run_node_tests TESTS.zip EXPECTED [COUNTS]\n");
        return 2;
    }
    r.zip = zip_open(argv[1], ZIP_RDONLY, NULL);
    if (!r.zip || !read_expected(&r, argv[2])) {
        fprintf(stderr, "%s or %s cannot be read\n", argv[1], argv[2]);
        r.n_wrong = 1;
    } else {
        run(&r, argc == 4 ? argv[3] : NULL);
        printf("%d right, %d listed, %d wrong\n", r.n_right, r.n_listed, r.n_wrong);
    }
    while (r.expected) {
        expectation *e = r.expected;

        r.expected = e->next;
        free(e);
    }
    free(r.n_passed);
    free(r.text);
    if (r.zip)
        zip_discard(r.zip);
    return r.n_wrong == 0 && r.n_right > 0 ? 0 : 1;
}
