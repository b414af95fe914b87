// SPDX-License-Identifier: Apache-2.0
#include "train_output.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"
#include "output_files.h"
#include "report.h"

// ---- where ----

// "folder/net.onnx": "net-trained.onnx", beside where the command runs.
static char *usual_path(const char *model)
{
    static const char *const endings[] = {".onnx", ".onnxtxt", ".ort"};
    static const char suffix[] = "-trained.onnx", nameless[] = "model";
    size_t n = strlen(model), first;
    char *path;

    while (n > 0 && model[n - 1] == '/')
        n--;
    for (first = n; first > 0 && model[first - 1] != '/'; first--)
        continue;
    model += first;
    n -= first;
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        const size_t length = strlen(endings[i]);

        if (n > length && memcmp(model + n - length, endings[i], length) == 0) {
            n -= length;
            break;
        }
    }
    if (n == 0 || model[0] == '-' || model[0] == '.') { // standard input, ".", ".."
        model = nameless;
        n = sizeof(nameless) - 1;
    }
    path = malloc(n + sizeof(suffix));
    if (path) {
        memcpy(path, model, n);
        memcpy(path + n, suffix, sizeof(suffix));
    }
    return path;
}

int train_output_init(train_output *o, const char *out, const char *model, const char *folder,
                      bool overwrite)
{
    *o = (train_output){.path = out};
    if (out || folder)
        return EXIT_SUCCESS;
    o->path = o->usual_path = usual_path(model);
    if (!o->path)
        return report_text("out of memory");
    if (!overwrite && access(o->path, F_OK) == 0)
        return report_text("%s is there already: --overwrite replaces it, --out names another file",
                           o->path);
    return EXIT_SUCCESS;
}

int train_output_check_folder(const char *folder)
{
    static const char *const files[] = {"checkpoint", "best", "latest"};
    int code = EXIT_SUCCESS;

    for (size_t i = 0; code == EXIT_SUCCESS && i < sizeof(files) / sizeof(files[0]); i++) {
        char *path = path_in(folder, "", files[i]);

        if (!path)
            return EXIT_FAILED;
        if (access(path, F_OK) == 0)
            code = report_text("%s is of an earlier run: --resume goes on with it, --overwrite "
                               "begins anew",
                               path);
        free(path);
    }
    return code;
}

// ---- what ----

int train_output_describe(train_output *o, const ot_model *forward, const ot_batches *training,
                          ot_batches_options *options)
{
    const int n = forward ? ot_model_output_count(forward) : 0;
    int n_classes;
    const char *const *classes = ot_batches_class_names(training, &n_classes);

    o->names = calloc((size_t)n + 1, sizeof(*o->names));
    if (!o->names)
        return report_text("out of memory");
    for (int i = 0; i < n; i++)
        o->names[o->n_names++] = ot_model_output_name(forward, i);
    if (classes) {
        options->class_names = classes;
        options->n_classes = n_classes;
    }
    return EXIT_SUCCESS;
}

int train_output_write(const train_output *o, ot_session *session, const ot_artifacts *artifacts,
                       const ot_data_options *data)
{
    ot_model *trained;
    ot_status st =
        ot_session_export_view(session, o->n_names > 0 ? o->names : NULL, o->n_names, &trained);

    if (st == OT_OK && trained) // NULL: rank 0 of several has it
        st = ot_record_write(trained, artifacts, data);
    if (st == OT_OK && trained)
        st = ot_model_save(trained, o->path, NULL);
    ot_model_destroy(trained);
    return st == OT_OK ? EXIT_SUCCESS : report_error();
}

void train_output_deinit(train_output *o)
{
    free(o->usual_path);
    free(o->names);
}
