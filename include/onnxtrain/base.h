// SPDX-License-Identifier: Apache-2.0
// Status, last error, version, allocator and log hooks: what every other header needs.
#ifndef ONNXTRAIN_BASE_H
#define ONNXTRAIN_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define OT_API __attribute__((visibility("default")))
#define OT_PRINTF(format_at, args_at) __attribute__((format(printf, format_at, args_at)))
#define OT_COLD __attribute__((cold))
#else
#define OT_API
#define OT_PRINTF(format_at, args_at)
#define OT_COLD
#endif

#define OT_VERSION_MAJOR 0
#define OT_VERSION_MINOR 1
#define OT_VERSION_PATCH 0

/** Every status with its one-line meaning. */
#define OT_STATUS_LIST(X)                                                                          \
    X(OT_OK, "ok")                                                                                 \
    X(OT_ERR_INVALID, "invalid argument or input")                                                 \
    X(OT_ERR_FORMAT, "malformed file")                                                             \
    X(OT_ERR_IO, "input or output failed")                                                         \
    X(OT_ERR_NO_MEMORY, "out of memory or above a memory limit")                                   \
    X(OT_ERR_UNSUPPORTED, "not supported")                                                         \
    X(OT_ERR_NOT_FOUND, "no such name")                                                            \
    X(OT_ERR_STATE, "not possible in the present state")                                           \
    X(OT_ERR_NOT_FINITE, "the loss or a parameter is infinite or not a number")                    \
    X(OT_ERR_INTERRUPTED, "interrupted")                                                           \
    X(OT_ERR_INTERNAL, "internal error")                                                           \
    X(OT_ERR_MISMATCH, "the processes of a training disagree")                                     \
    X(OT_ERR_TIMEOUT, "a process did not answer in time")

typedef enum ot_status {
#define OT_STATUS_ENUM(name, text) name,
    OT_STATUS_LIST(OT_STATUS_ENUM)
#undef OT_STATUS_ENUM
} ot_status;

/** "OT_ERR_FORMAT" for OT_ERR_FORMAT. Static; never NULL. */
OT_API const char *ot_status_name(ot_status status);

/** The one-line meaning of a status. Static; never NULL. */
OT_API const char *ot_status_text(ot_status status);

/**
 * What, where, found and expected, of the last call that failed on this thread.
 *
 * @return owned by the library, valid until this thread's next failing call; "" when none has
 * failed
 */
OT_API const char *ot_error_message(void);

/**
 * The name that a misspelt one was probably meant to be: letters are missing, too many, wrong or
 * exchanged, '_' stands for '-', or only its beginning is there.
 *
 * @return one of `names`; NULL when none is near
 */
OT_API const char *ot_nearest_name(const char *name, const char *const *names, int n_names);

/** "0.1.0". Static. */
OT_API const char *ot_version(void);

// Structs of options begin with their size, which OT_<STRUCT>_INIT sets, and grow at their end
// alone. A program that was compiled with earlier headers gives smaller ones: what they lack has
// its default. What one of later headers sets beyond those of this version is OT_ERR_INVALID.

/** Where the library's memory comes from. The functions must be thread-safe and behave like realloc
 * and free. */
typedef struct ot_allocator {
    void *(*reallocate)(void *context, void *block,
                        size_t n_bytes);         ///< block NULL: allocate; failure: NULL
    void (*release)(void *context, void *block); ///< block may be NULL
    void *context;
} ot_allocator;

/** Replace the allocator for the whole process; NULL restores the standard one. Call before
 * anything else is made. */
OT_API void ot_set_allocator(const ot_allocator *allocator);

/** For ot_set_memory_max() and options named memory_max: no ceiling. */
#define OT_MEMORY_UNLIMITED SIZE_MAX

/**
 * The most bytes that tensors, constants and plans of this process may take together; what needs
 * more is OT_ERR_NO_MEMORY. 0, the default: three quarters of the smaller of physical memory and
 * the limit of the control group, divided by the processes of a job on this machine when mpirun,
 * srun or torchrun has started it. Mapped files are not counted.
 */
OT_API void ot_set_memory_max(size_t n_bytes);

typedef enum ot_log_level { OT_LOG_DEBUG, OT_LOG_INFO, OT_LOG_WARNING } ot_log_level;

typedef void (*ot_log_function)(void *context, ot_log_level level, const char *line);

/**
 * Replace the log function for the whole process; NULL restores the default, which writes to
 * standard error what the environment variable OT_LOG (debug, info, warning) lets through and
 * nothing when it is not set.
 */
OT_API void ot_set_log(ot_log_function function, void *context);

#ifdef __cplusplus
}
#endif
#endif
