// SPDX-License-Identifier: Apache-2.0
// Which operators there are, and operators of a user's own. Those are written against
// onnxtrain/op.h; this is how a program gets them.
#ifndef ONNXTRAIN_OPERATORS_H
#define ONNXTRAIN_OPERATORS_H

#include "onnxtrain/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Load a shared library of operators: a file that defines ot_op_library(), see onnxtrain/op.h. From
 * then on models may have them, here and in all threads, and they run and train as any other.
 *
 * The library's code runs in this process, from the moment it is opened: load only files that you
 * trust. It stays open until the process ends. All its operators are taken, or with an error none
 * is. A file that is loaded already is fine, and nothing changes.
 *
 * Threads: any thread may call this at any time. A model that another thread is checking meanwhile
 * may or may not have the new operators; load before models are.
 *
 * @param path of the file, from the current directory on; never looked for elsewhere
 * @return OT_ERR_IO: there is no such file; OT_ERR_FORMAT: it is no shared library, needs another
 * that is missing, or does not define ot_op_library(); OT_ERR_UNSUPPORTED: it was compiled with
 * another version of op.h (the message has both numbers), or this program does not export the
 * functions of onnxtrain (it has libonnxtrain.a inside and is not linked with -rdynamic);
 * OT_ERR_INVALID: a record is wrong, which the message says, or there is such an operator already
 */
OT_API ot_status ot_op_library_load(const char *path);

/**
 * The operators that models may have, those of libraries behind the others, as a JSON array of
 * objects:
 *
 * - "name", "domain" ("ai.onnx" for ONNX's own), "opsets" (those that changed it), "types",
 * "kernels" (the preferred first), "internal" (never in a file);
 * - "gradient": "yes", "none", "rewritten" (becomes another operator before training), or an array
 *   of the inputs that have one where others have none;
 * - what the tests have measured, null for operators of libraries: "worst_error" of results in f32
 *   against f64, over the largest element of the result, in so many "cases"; "node_tests", how many
 *   of ONNX's own tests of the operator pass.
 *
 * @param out released by ot_string_free() of onnxtrain/model.h
 */
OT_API ot_status ot_operators_json(char **out);

#ifdef __cplusplus
}
#endif
#endif
