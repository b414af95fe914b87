// A program outside the project: the installed header and the installed library are of one version.
#include <onnxtrain/base.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    char expected[32];

    snprintf(expected, sizeof(expected), "%d.%d.%d", OT_VERSION_MAJOR, OT_VERSION_MINOR,
             OT_VERSION_PATCH);
    printf("onnxtrain %s\n", ot_version());
    return strcmp(ot_version(), expected) == 0 ? 0 : 1;
}
