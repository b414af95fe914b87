// SPDX-License-Identifier: Apache-2.0
// Interface of `base`: errors, allocation, arenas, growable bytes, name maps, files, random
// numbers, threads, log.
#ifndef OT_BASE_BASE_H
#define OT_BASE_BASE_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "onnxtrain/base.h"

#define OT_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define OT_MIN(a, b) ((a) < (b) ? (a) : (b))
#define OT_MAX(a, b) ((a) > (b) ? (a) : (b))

// ---- errors (error.c) ----

#define OT_STATUS_ONE(name, text) +1
enum { OT_N_STATUSES = 0 OT_STATUS_LIST(OT_STATUS_ONE) };

// Return the status of a failing call to the caller; for functions with nothing to clean up.
#define OT_TRY(call)                                                                               \
    do {                                                                                           \
        ot_status ot_try_status_ = (call);                                                         \
        if (ot_try_status_ != OT_OK)                                                               \
            return ot_try_status_;                                                                 \
    } while (0)

// The next call of a function that has something to clean up: only when all went well so far.
#define OT_THEN(st, ...) ((st) = (st) == OT_OK ? (__VA_ARGS__) : (st))

// The end of a function that makes something: the caller gets it, or it is destroyed.
#define OT_HAND_OUT(st, out, object, destroy)                                                      \
    ((st) == OT_OK ? (void)(*(out) = (object)) : destroy(object), (st))

// What was to be made, a pointer or the answer of a function that makes something, is there; or
// OT_ERR_NO_MEMORY: OT_TRY(ot__made(copy)).
static inline ot_status ot__made(bool made)
{
    return made ? OT_OK : OT_ERR_NO_MEMORY;
}

enum { OT_MESSAGE_MAX = 1024 }; // characters of a message, its end among them
// Set this thread's message and return `status`. Text from files is made printable (control bytes
// become '?').
OT_COLD ot_status ot__error(ot_status status, const char *format, ...) OT_PRINTF(2, 3);
OT_COLD ot_status ot__error_v(ot_status status, const char *format, va_list args) OT_PRINTF(2, 0);
// Put "<context>: " before the present message, for callers that know more (file, node). Returns
// `status`; of OT_OK there is no message, so it is not cold.
ot_status ot__error_prefix(ot_status status, const char *format, ...) OT_PRINTF(2, 3);
// OT_ERR_IO: "<path>: <what>: <text of errno>".
OT_COLD ot_status ot__error_errno(const char *path, const char *what);
// OT_ERR_NO_MEMORY with the size that could not be had; the second returns NULL.
ot_status ot__error_memory(size_t n_bytes);
void *ot__no_memory(size_t n_bytes);
void ot__error_clear(void);

// ---- arguments of public functions (argument.c) ----

// OT_ERR_INVALID "<function>: <argument> is NULL", or OT_OK: OT_TRY(OT_GIVEN(name)). A handle must
// also be one, see below.
#define OT_GIVEN(pointer) ot__argument((pointer), OT_KIND_OF(pointer), __func__, #pointer)
// The same of an output, which is NULL from then on: OT_TRY(OT_OUT(out)).
#define OT_OUT(pointer) (OT_GIVEN(pointer) == OT_OK ? (*(pointer) = NULL, OT_OK) : OT_ERR_INVALID)
// The same of an array of `count` entries, which may be NULL when there are none.
#define OT_GIVEN_MANY(pointer, count)                                                              \
    ot__argument_many((pointer), (count), __func__, #pointer, #count)
ot_status ot__argument(const void *pointer, const char *kind, const char *function,
                       const char *argument);
ot_status ot__argument_many(const void *pointer, int64_t count, const char *function,
                            const char *argument, const char *count_argument);

// ---- handles (handle.c) ----

// Debug builds know all handles that there are: whoever is given one asks before looking at its
// memory. In release builds every pointer but NULL passes.
#ifdef NDEBUG
#define OT_KNOWS_HANDLES 0
#else
#define OT_KNOWS_HANDLES 1
#endif
#define OT_HANDLES(X)                                                                              \
    X(artifacts)                                                                                   \
    X(batches)                                                                                     \
    X(block)                                                                                       \
    X(checkpoint)                                                                                  \
    X(comm)                                                                                        \
    X(config)                                                                                      \
    X(dataset)                                                                                     \
    X(dict)                                                                                        \
    X(findings)                                                                                    \
    X(gradients)                                                                                   \
    X(model)                                                                                       \
    X(record)                                                                                      \
    X(report)                                                                                      \
    X(resume)                                                                                      \
    X(runner)                                                                                      \
    X(session)                                                                                     \
    X(shards_job)                                                                                  \
    X(shards_reader)                                                                               \
    X(sharding)                                                                                    \
    X(shards_report)                                                                               \
    X(tensor)                                                                                      \
    X(trainer)
#define OT_HANDLE_STRUCT(kind) struct ot_##kind;
OT_HANDLES(OT_HANDLE_STRUCT)
#undef OT_HANDLE_STRUCT
// "session" for an ot_session *; NULL for what is no handle.
#define OT_KIND_ENTRY(kind) struct ot_##kind * : #kind, const struct ot_##kind * : #kind,
#define OT_KIND_OF(pointer) _Generic((pointer), OT_HANDLES(OT_KIND_ENTRY) default : (const char *)0)
void ot__handle_enter(const void *handle, const char *kind);
void ot__handle_leave(const void *handle);
// OT_ERR_INVALID "invalid or destroyed session handle".
ot_status ot__handle_check(const void *handle, const char *kind);
bool ot__handle_is_live(const void *handle, const char *kind); // neither NULL
// Of a handle that may be NULL, `what` of a call; the message begins with it.
ot_status ot__handle_optional(const void *handle, const char *kind, const char *what);
#define OT_OPTIONAL(handle, what) ot__handle_optional((handle), OT_KIND_OF(handle), (what))
// Before it is destroyed: false when there is nothing to do, with a warning unless it is NULL.
bool ot__handle_ends(const void *handle, const char *kind);
#define OT_ENTER(handle) ot__handle_enter((handle), OT_KIND_OF(handle))
#define OT_IS_LIVE(handle)                                                                         \
    (OT_KNOWS_HANDLES ? ot__handle_is_live((handle), OT_KIND_OF(handle)) : (handle) != NULL)
#define OT_ENDS(handle) ot__handle_ends((handle), OT_KIND_OF(handle))

// ---- option structs, which begin with `size_t size` (options.c) ----

// What a caller gave, NULL for the defaults, as a struct of this version. An older caller's is
// smaller: what it lacks has its default. A later one's is larger, and OT_ERR_INVALID unless all
// that is not known here is 0. The message of a size that is none names `type`'s initialiser.
ot_status ot__options_read(const char *type, const void *given, const void *defaults, void *own,
                           size_t own_size);
#define OT_OPTIONS_READ(type, defaults, given, own)                                                \
    ot__options_read(#type, (given), &(const type)defaults, (own), sizeof(type))
// The same of an array, whose elements lie as far apart as the first one's size says.
ot_status ot__options_read_all(const char *type, const void *given, int n, const void *defaults,
                               void *own, size_t own_size);
// Into a caller's struct that has been read: the fields that the caller knows.
void ot__options_write(void *to, const void *own, size_t own_size);

// ---- handles that one thread may use at a time (guard.c) ----

// The first member of what such a handle points to.
typedef struct ot__guard {
    char kind[12];           // "session": tells a handle from another, and from one destroyed
    int depth;               // of calls of the owner that are inside
    _Atomic uintptr_t owner; // the thread that is inside; 0: none
} ot__guard;
void ot__guard_init(ot__guard *guard, const char *kind);
// From here on the handle is not taken any more; in release builds, while its memory is still there
// to be looked at.
void ot__guard_deinit(ot__guard *guard);
// OT_ERR_INVALID: `handle` is NULL, or no handle of this kind (any more).
ot_status ot__guard_check(const void *handle, const char *kind);
// The same, and OT_ERR_STATE when another thread is inside. The thread that is may enter again.
ot_status ot__guard_enter(const void *handle, const char *kind);
void ot__guard_leave(const void *handle);

// ---- checked sizes (size.c) ----

bool ot__mul_overflows(int64_t a, int64_t b, int64_t *product); // a, b >= 0
bool ot__add_overflows(int64_t a, int64_t b, int64_t *sum);     // a, b >= 0
bool ot__size_add_overflows(size_t a, size_t b, size_t *sum);
bool ot__size_mul_overflows(size_t a, size_t b, size_t *product);

// ---- exact sums (exact_sum.c) ----

// Of squares of f32, without rounding: the same for any order, and for any cut into parts, whose
// sums are added as numbers. All {0}: nothing.
enum { OT_EXACT_DIGITS = 20 };
typedef struct ot__exact_sum {
    uint64_t digits[OT_EXACT_DIGITS]; // of 32 bits, the lowest of 2^-298 first
    uint64_t n_not_finite;
} ot__exact_sum;
void ot__exact_sum_squares(ot__exact_sum *sum, const float *x, int64_t n); // adds n of them
void ot__exact_sum_add(ot__exact_sum *sum, const ot__exact_sum *other);
double ot__exact_sum_value(const ot__exact_sum *sum); // rounded once; NaN when one was not finite

// ---- ids of contents (id.c): which data belong to a file; no protection against forgery ----

enum { OT_HEX_ID_LENGTH = 16 };
uint64_t ot__id_mix(uint64_t id, const void *bytes, size_t n_bytes); // start with 0
uint64_t ot__id_mix_word(uint64_t id, uint64_t word);
// One that differs from call to call and from process to process, also on another machine.
uint64_t ot__id_fresh(void);
void ot__id_text(uint64_t id, char text[OT_HEX_ID_LENGTH + 1]);
bool ot__is_hex_id(const char *text); // begins with the digits that ot__id_text writes

// ---- SHA-1 (sha1.c), in lower-case hexadecimal digits ----

enum { OT_SHA1_LENGTH = 40 };
void ot__sha1_text(const void *bytes, size_t n_bytes, char text[OT_SHA1_LENGTH + 1]);

// ---- allocation (alloc.c); every function may return NULL and then has set the error ----

void *ot__alloc(size_t n_bytes); // n_bytes 0 gives a pointer that may be freed
void *ot__alloc_zero(size_t count, size_t size);
void *ot__realloc(void *block, size_t n_bytes); // on failure the old block stays
void ot__free(void *block);
// Room for one more in an array: grows by doubling. False when out of memory.
bool ot__grow(void *array_pointer, int *capacity, int count, size_t item_size);
enum { OT_ALIGNMENT = 64 };
static inline size_t ot__align_up(size_t n_bytes) // n_bytes <= SIZE_MAX - OT_ALIGNMENT
{
    return (n_bytes + OT_ALIGNMENT - 1) / OT_ALIGNMENT * OT_ALIGNMENT;
}
// Aligned to that, zeroed, counted against the ceiling of memory.c; release with ot__free_aligned.
void *ot__alloc_aligned(size_t n_bytes);
void ot__free_aligned(void *block);
size_t ot__aligned_taken(size_t n_bytes); // of ot__alloc by ot__alloc_aligned()
char *ot__strdup(const char *text);
// For tests: after `n` more successful allocations of this thread every one of it fails; n < 0:
// never. Counts all ot__alloc calls.
void ot__alloc_fail_after(int64_t n);
int64_t ot__alloc_count(void); // successful allocations of this process so far

// ---- how much (memory.c; trim: alloc.c) ----

// Somebody asked for so much in one session: the default ceiling is lifted to it.
void ot__memory_admit(size_t n_bytes);
// So many processes of a job, of which this is one, are on this machine: each has its part of the
// default ceiling. What the launcher says of them counts, too.
void ot__memory_share(size_t n_processes);
// What may still be taken when `given_back` bytes of what is taken go first.
size_t ot__memory_left(size_t given_back);
size_t ot__memory_taken(void);        // by ot__alloc_aligned
bool ot__memory_take(size_t n_bytes); // false after setting the error
void ot__memory_give_back(size_t n_bytes);
// After much has been freed in small blocks: the C library gives what it keeps of it back to the
// system, where it can.
void ot__memory_trim(void);
// The limit of the control group that `self` (/proc/self/cgroup) names, of either version, mounted
// at `root`; OT_MEMORY_UNLIMITED when there is none.
size_t ot__memory_of_group(const char *self, const char *root);
// For tests: the machine has so much; 0: what it has. Forgets what was admitted.
void ot__memory_set_machine(size_t n_bytes);

// ---- arena (arena.c): memory that dies together ----

typedef struct ot__arena ot__arena;
ot__arena *ot__arena_create(void); // NULL when out of memory
void ot__arena_destroy(ot__arena *arena);
void *ot__arena_alloc(ot__arena *arena,
                      size_t n_bytes); // zeroed, 16-byte aligned; NULL when out of memory
char *ot__arena_strdup(ot__arena *arena, const char *text);
char *ot__arena_strndup(ot__arena *arena, const char *text, size_t length);
char *ot__arena_printf(ot__arena *arena, const char *format, ...) OT_PRINTF(2, 3);
char *ot__arena_vprintf(ot__arena *arena, const char *format, va_list args) OT_PRINTF(2, 0);
void *ot__arena_memdup(ot__arena *arena, const void *bytes, size_t n_bytes);
// A handle in the arena's memory, which is none any more when the arena goes. False when out of
// memory.
bool ot__arena_enter(ot__arena *arena, const void *handle, const char *kind);
// Room for one more in an arena array, as ot__grow().
bool ot__arena_grow(ot__arena *arena, void *array_pointer, int *capacity, int count,
                    size_t item_size);
// A copy of *item behind the others.
bool ot__arena_push(ot__arena *arena, void *array_pointer, int *capacity, int *count,
                    const void *item, size_t item_size);
size_t ot__arena_bytes(const ot__arena *arena);
size_t ot__arena_taken(const ot__arena *arena); // of ot__alloc, used or not; 0 for NULL
void ot__arena_limit(ot__arena *arena,
                     size_t max_bytes); // allocations above it fail with OT_ERR_NO_MEMORY
// Count bytes that are allocated elsewhere as the arena's; false when they exceed the limit.
bool ot__arena_charge(ot__arena *arena, size_t n_bytes);

// ---- growable bytes and text (buf.c) ----

typedef struct ot__buf {
    char *data; // NUL-terminated whenever not NULL
    size_t length, capacity;
    bool failed; // sticky: set by the first allocation that failed; appends after it do nothing
} ot__buf;
void ot__buf_append(ot__buf *buf, const void *bytes, size_t n_bytes);
void ot__buf_text(ot__buf *buf, const char *text);
void ot__buf_printf(ot__buf *buf, const char *format, ...) OT_PRINTF(2, 3);
void ot__buf_deinit(ot__buf *buf);
ot_status ot__buf_status(const ot__buf *buf); // OT_ERR_NO_MEMORY when failed

// ---- map from names to pointers (map.c); keys are borrowed and must outlive the map ----

typedef struct ot__map {
    struct ot__map_slot *slots;
    size_t n_slots, count;
} ot__map;
void *ot__map_get(const ot__map *map, const char *key);       // NULL when absent
bool ot__map_put(ot__map *map, const char *key, void *value); // replaces; false when out of memory
void *ot__map_remove(ot__map *map, const char *key);          // the value removed, or NULL
void ot__map_deinit(ot__map *map);
size_t ot__map_taken(const ot__map *map); // of ot__alloc
// Iterate in unspecified order: start with *position = 0; false at the end.
bool ot__map_next(const ot__map *map, size_t *position, const char **key, void **value);

// ---- text (text.c) ----

// Replace what may not be shown (control characters, malformed UTF-8) by '?', -nan by nan, in
// place.
void ot__text_printable(char *text);
// Length and code of the UTF-8 character at `text`; 0 for bytes that are none.
int ot__utf8_read(const char *text, uint32_t *code);
// The first of n bytes that begins no character, or `n_bytes`.
size_t ot__utf8_bad_byte(const char *text, size_t n_bytes);
void ot__utf8_append(ot__buf *out, uint32_t code);
// Up to 4 hexadecimal digits, as behind "\u"; returns how many there are.
int ot__hex4_read(const char *text, size_t n_bytes, uint32_t *code);
bool ot__name_matches(const char *pattern,
                      const char *name); // '*' and '?' as in shells, whole name
bool ot__starts_with(const char *text, const char *prefix);
bool ot__ends_with(const char *text, const char *suffix);
// The first `separator` ends the text; what is after it, NULL: there is none.
char *ot__cut(char *text, char separator);
size_t ot__count_char(const char *text, char c);
// Of ASCII; locale does not matter.
static inline bool ot__is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}
static inline bool ot__is_digit(char c)
{
    return c >= '0' && c <= '9';
}
static inline bool ot__is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
// Whole text must be the number; locale does not matter.
bool ot__parse_int(const char *text, int64_t *value);
bool ot__parse_float(const char *text, double *value);
// The number that the text begins with, behind white space; false where there is none, or one
// beyond all.
bool ot__read_float(const char *text, const char **end, double *value);
void ot__print_float(char *text, size_t size, int digits, double value); // as %g
void ot__buf_float(ot__buf *buf, double value,
                   bool is_f32); // shortest text that reads back the same

// ---- names, and those in messages (names.c) ----

// Where the name stands in the list; -1: nowhere.
int ot__index_of(const char *const *names, int n, const char *name);

// Appends "'a', 'b' and 'c'", of more than OT_NAMES_SHOWN "'a', 'b', 'c' and 2 more": reads no more
// names than those.
enum { OT_NAMES_SHOWN = 4 };
void ot__buf_names(ot__buf *text, const char *const *names, int n);
// As many of n names, which are borrowed.
typedef struct ot__shown_names {
    const char *names[OT_NAMES_SHOWN];
    int n;
} ot__shown_names;
static inline void ot__shown_names_add(ot__shown_names *shown, const char *name)
{
    if (shown->n < OT_NAMES_SHOWN)
        shown->names[shown->n] = name;
    shown->n++;
}

// The names there are, when one was asked for that is not among them. Start with {.wanted = name};
// the names are borrowed.
typedef struct ot__names {
    const char *wanted;
    const char *nearest; // the one that was probably meant; NULL: none is near
    int distance, count;
    const char *first, *last;
    size_t length; // of the list, also where it did not fit
    bool is_long;
    char list[320], hint[320];
} ot__names;
void ot__names_add(ot__names *names, const char *name);
// "a, b, c", of many "a to z (26 columns)"; "none".
const char *ot__names_list(ot__names *names, const char *unit);
const char *ot__names_hint(ot__names *names); // "; did you mean 'b'?", or ""

// ---- checks (crc32c.c) ----

// CRC-32C of what gave `crc` and the bytes behind it; 0: nothing is before them.
uint32_t ot__crc32c(uint32_t crc, const void *bytes, size_t n_bytes);
// Of bytes with the first checksum and n_second bytes with the second behind them.
uint32_t ot__crc32c_join(uint32_t first, uint32_t second, uint64_t n_second);
// For tests: the ways to compute it that this processor has, the best one last.
int ot__crc32c_ways(void);
uint32_t ot__crc32c_by(int way, uint32_t crc, const void *bytes, size_t n_bytes);

// ---- random numbers (rng.c): counter-based (Philox 4x32-10), so any element can be drawn alone
// ----

typedef struct ot__rng_key {
    uint64_t seed, stream;
} ot__rng_key;
ot__rng_key ot__rng_key_make(uint64_t seed, uint64_t counter, uint64_t rank, const char *name);
void ot__rng_block(ot__rng_key key, uint64_t index, uint32_t out[4]); // four words per index
double ot__rng_uniform(ot__rng_key key, uint64_t index);              // [0, 1), 53 bits
double ot__rng_normal(ot__rng_key key, uint64_t index);               // Box-Muller

// ---- threads (parallel.c): the only place besides kernels that knows OpenMP ----

int ot__parallel_max(void); // threads the next parallel region may use
void ot__parallel_set(int n_threads);
int ot__parallel_hardware(void); // usable processors
// run(context, first, last) over [0, count) in static chunks, one per thread; nothing inside may
// fail or allocate.
void ot__parallel_for(int64_t count, int64_t min_per_thread,
                      void (*run)(void *context, int64_t first, int64_t last), void *context);
// Between the two, a fork() of another thread waits: for calls into libraries that take locks,
// which nobody would open in the child. A thread that holds forks must not fork itself.
void ot__forks_hold(void);
void ot__forks_release(void);

// ---- time and log (log.c) ----

double ot__clock_seconds(void); // monotonic
bool ot__log_wants(ot_log_level level);
void ot__log(ot_log_level level, const char *format, ...) OT_PRINTF(2, 3);
// What somebody asked for by name: written whatever OT_LOG says, to a hook as information.
void ot__log_asked(const char *format, ...) OT_PRINTF(1, 2);

// ---- files, FlatBuffers, JSON, protobuf ----

#include "base/base_files.h"
#include "base/base_flatbuf.h"
#include "base/base_json.h"
#include "base/base_wire.h"

#endif
