// SPDX-License-Identifier: Apache-2.0
// Configurations: a document; behind a zero byte, lines "path=value".
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "onnxtrain/config.h"
#include "onnxtrain/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

// What was taken is written as a configuration that is taken too, and says the same.
static void write_again(const ot_config *config)
{
    for (int style = OT_CONFIG_EFFECTIVE; style <= OT_CONFIG_DEFAULTS_FILLED; style++) {
        ot_config *again;
        char *text, *second;

        if (ot_config_text(config, (ot_config_style)style, &text) != OT_OK ||
            ot_config_create(&again) != OT_OK)
            abort();
        if (ot_config_merge(again, text, OT_CONFIG_FILE) == OT_OK) { // not longer than may be read
            if (ot_config_check(again, NULL) != OT_OK ||
                ot_config_text(again, (ot_config_style)style, &second) != OT_OK ||
                strcmp(text, second) != 0)
                abort();
            ot_string_free(second);
        } else if (strlen(text) < OT_JSON_BYTES_MAX / 2) {
            abort();
        }
        ot_string_free(text);
        ot_config_destroy(again);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    char *text = malloc(n_bytes + 2), *violations;
    ot_config *config;
    ot_status st;

    if (!text || ot_config_create(&config) != OT_OK)
        abort();
    if (n_bytes > 0)
        memcpy(text, bytes, n_bytes);
    text[n_bytes] = text[n_bytes + 1] = '\0';
    (void)ot_config_merge(config, text, OT_CONFIG_FILE);
    if (strlen(text) < n_bytes)
        (void)ot_config_set_lines(config, text + strlen(text) + 1, OT_CONFIG_FLAG);
    st = ot_config_check(config, &violations);
    if ((st == OT_OK) != (violations == NULL) || (st != OT_OK && st != OT_ERR_INVALID))
        abort();
    if (st == OT_OK)
        write_again(config);
    ot_string_free(violations);
    ot_config_destroy(config);
    free(text);
    return 0;
}
