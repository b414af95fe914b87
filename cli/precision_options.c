// SPDX-License-Identifier: Apache-2.0
// --precision and --recompute.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "precision_options.h"
#include "report.h"

const char *const precision_names[] = {"f32", "bf16", "f16", NULL};

static const struct choice {
    const char *name, *path;
} choices[] = {
    {"attn-dropout", "options.graph_transformer.attn_dropout_recompute"},
    {"gelu", "options.graph_transformer.gelu_recompute"},
    {"layers", "options.graph_transformer.transformer_layer_recompute"},
};
enum { N_CHOICES = sizeof choices / sizeof choices[0] };
static const char number_path[] = "options.graph_transformer.number_recompute_layers";
static const char layers_number[] = "layers=";

// The number behind "layers="; NULL: there is none from 1.
static const char *number_of_layers(const char *item)
{
    const size_t n = strlen(layers_number);
    char *end;

    if (strncmp(item, layers_number, n) != 0 || item[n] < '1' || item[n] > '9')
        return NULL;
    (void)strtol(item + n, &end, 10);
    return *end == '\0' ? item + n : NULL;
}

int config_give(ot_config *config, const char *path, json_t *value, ot_config_source source)
{
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    const ot_status st = text ? ot_config_set(config, path, text, source) : OT_OK;
    free(text);
    json_decref(value);
    if (!text)
        return report_text("out of memory");
    return st == OT_OK ? EXIT_SUCCESS : report_error();
}

int recompute_give(ot_config *config, const text_list *list, ot_config_source source)
{
    for (int i = 0; i < list->count; i++) {
        const char *item = list->items[i], *number = number_of_layers(item);
        const char *path = number ? choices[N_CHOICES - 1].path : NULL;

        for (int k = 0; k < N_CHOICES; k++)
            if (strcmp(item, choices[k].name) == 0)
                path = choices[k].path;
        if (!path)
            return report_usage("--recompute: '%s' is unknown (known: attn-dropout, gelu, layers, "
                                "layers=N with N from 1)",
                                item);
        if (ot_config_set(config, path, "true", source) != OT_OK ||
            (number && ot_config_set(config, number_path, number, source) != OT_OK))
            return report_error();
    }
    return EXIT_SUCCESS;
}
