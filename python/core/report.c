// SPDX-License-Identifier: Apache-2.0
// Whether and what of a model can be trained.
#include "core.h"

static PyObject *parameter_at(const ot_report *report, int index)
{
    const ot_parameter_report *p = ot_report_parameter(report, index);

    return Py_BuildValue("(NNiiiiiN)", core_text(p->name), core_value_info(p->dtype, &p->shape),
                         p->trainable, p->frozen, p->blocked, p->initializer, p->folded,
                         core_text(p->reason));
}

static const char *problem_at(const void *report, int index)
{
    return ot_report_problem(report, index);
}

static const char *note_at(const void *report, int index)
{
    return ot_report_note(report, index);
}

// (can be trained, parameters, problems, notes)
static PyObject *report_tuple(const ot_report *report)
{
    const int n = ot_report_parameter_count(report);
    PyObject *list = PyList_New(n);

    for (int i = 0; list != NULL && i < n; i++) {
        PyObject *parameter = parameter_at(report, i);

        if (parameter == NULL || PyList_SetItem(list, i, parameter) != 0)
            Py_CLEAR(list);
    }
    return Py_BuildValue("(iNNN)", ot_report_trainable(report), list,
                         core_names(ot_report_problem_count(report), problem_at, report),
                         core_names(ot_report_note_count(report), note_at, report));
}

// Takes what Artifacts.generate() takes.
static PyObject *report(PyObject *module, PyObject *args)
{
    core_artifacts_options a = {.options = OT_ARTIFACTS_OPTIONS_INIT};
    PyObject *model, *result = NULL;
    ot_report *made;
    ot_status st;

    (void)module;
    if (core_artifacts_options_take(args, &model, &a) == 0) {
        Py_BEGIN_ALLOW_THREADS
        st = ot_report_create(((model_object *)model)->model, &a.options, &made);
        Py_END_ALLOW_THREADS
        result = st == OT_OK ? report_tuple(made) : core_raise(st);
        if (st == OT_OK)
            ot_report_destroy(made);
    }
    core_artifacts_options_drop(&a);
    return result;
}

static PyMethodDef functions[] = {
    {"report", report, METH_VARARGS,
     "report(what Artifacts.generate() takes) -> (can be trained, parameters, problems, notes)"},
    {NULL, NULL, 0, NULL},
};

int core_add_report(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
