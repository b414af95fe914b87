// SPDX-License-Identifier: Apache-2.0
// Configurations of trainers, as JSON.
#include "core.h"

ot_status core_config_read(const char *json, ot_config **config, char **violations)
{
    ot_status st = ot_config_create(config);

    if (st == OT_OK)
        st = ot_config_merge(*config, json, OT_CONFIG_FILE);
    if (st == OT_OK)
        st = ot_config_check(*config, violations);
    return *violations != NULL ? OT_OK : st;
}

static PyObject *owned_text(char *text)
{
    PyObject *result = core_text(text);

    ot_string_free(text);
    return result;
}

static PyObject *config_check(PyObject *module, PyObject *args)
{
    const char *json;
    char *violations = NULL, *filled = NULL;
    ot_config *config = NULL;
    ot_status st;

    (void)module;
    if (!PyArg_ParseTuple(args, "s", &json))
        return NULL;
    st = core_config_read(json, &config, &violations);
    if (st == OT_OK && violations == NULL)
        st = ot_config_text(config, OT_CONFIG_DEFAULTS_FILLED, &filled);
    ot_config_destroy(config);
    if (violations != NULL) // the message says the same, and what was probably meant
        return Py_BuildValue("(NN)", owned_text(violations), core_text(ot_error_message()));
    return st == OT_OK ? Py_BuildValue("(ON)", Py_None, owned_text(filled)) : core_raise(st);
}

static PyMethodDef functions[] = {
    {"config_check", config_check, METH_VARARGS,
     "config_check(json) -> (what is wrong, the same as a message), or (None, json with defaults)"},
    {NULL, NULL, 0, NULL},
};

int core_add_config(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
