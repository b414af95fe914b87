// SPDX-License-Identifier: Apache-2.0
// A program outside the project: it reads a model, runs it and checks the one number that comes
// out.
#include <onnxtrain/onnxtrain.h>
#include <stdio.h>
#include <string.h>

static const char model_text[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                 "agraph (float[1] x) => (float[1] y) { y = Mul(x, x) }\n";

int main(void)
{
    float three = 3.0f, nine = 0.0f;
    ot_model *model = NULL;
    ot_tensor *x = NULL, *y = NULL;
    ot_status status = ot_model_load_buffer(model_text, strlen(model_text), NULL, &model);

    if (status == OT_OK)
        status = ot_tensor_wrap(OT_F32, &OT_SHAPE(1), &three, sizeof(three), &x);
    if (status == OT_OK)
        status = ot_model_run(model, NULL, (const ot_tensor *const *)&x, 1, &y, 1);
    if (status == OT_OK)
        nine = *(const float *)ot_tensor_data_const(y);
    printf("onnxtrain %s: 3 * 3 = %g; %s\n", ot_version(), (double)nine, ot_error_message());
    ot_tensor_destroy(y);
    ot_tensor_destroy(x);
    ot_model_destroy(model);
    return nine == 9.0f ? 0 : 1;
}
