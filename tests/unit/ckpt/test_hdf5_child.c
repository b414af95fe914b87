// SPDX-License-Identifier: Apache-2.0
// What happens in the process that reads an HDF5 file apart stays there: a libhdf5 that breaks
// down, hangs, asks for memory without end or writes into every pipe is an error of the call, no
// more.
#include "forked.h"
#include "unit/base/temporary_folder.h"

#include "onnxtrain/onnxtrain.h"

#if OT_WITH_HDF5
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "ckpt/hdf5.h"
#include "ckpt/hdf5_library.h"

enum { SECONDS = 60, LIMITS_DIFFER = 9, MEMORY_IS_GIVEN = 10, PIPES_MAX = 256 };

typedef hid_t open_function(const char *path, unsigned flags, hid_t access);

// ---- libraries that do harm, instead of opening a file ----

static hid_t break_down(const char *path, unsigned flags, hid_t access)
{
    (void)path;
    (void)flags;
    (void)access;
    (void)raise(SIGSEGV);
    return H5I_INVALID_HID;
}

static hid_t abort_itself(const char *path, unsigned flags, hid_t access)
{
    (void)path;
    (void)flags;
    (void)access;
    abort();
}

static hid_t leave(const char *path, unsigned flags, hid_t access)
{
    (void)path;
    (void)flags;
    (void)access;
    _exit(3);
}

static void check_time_limits(void)
{
    struct rlimit cpu;

    if (getrlimit(RLIMIT_CPU, &cpu) != 0 || cpu.rlim_cur != SECONDS || cpu.rlim_max != SECONDS)
        _exit(LIMITS_DIFFER);
}

// As if there was no more than a second left of each.
static hid_t work_for_ever(const char *path, unsigned flags, hid_t access)
{
    volatile int n = 0;

    (void)path;
    (void)flags;
    (void)access;
    check_time_limits();
    (void)setrlimit(RLIMIT_CPU, &(struct rlimit){1, 1});
    while (n >= 0)
        n = !n;
    return H5I_INVALID_HID;
}

static hid_t sleep_for_ever(const char *path, unsigned flags, hid_t access)
{
    (void)path;
    (void)flags;
    (void)access;
    check_time_limits();
    if (alarm(1) != 2 * SECONDS) // what was left
        _exit(LIMITS_DIFFER);
    while (pause() != 0)
        ;
    return H5I_INVALID_HID;
}

static hid_t take_memory(const char *path, unsigned flags, hid_t access)
{
    void *block = mmap(NULL, (size_t)1 << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)path;
    (void)flags;
    (void)access;
    _exit(block == MAP_FAILED ? 0 : MEMORY_IS_GIVEN);
}

// Into whatever is a pipe, as what has been made to work for others would.
static hid_t write_nonsense(const char *path, unsigned flags, hid_t access)
{
    static unsigned char nonsense[4096];
    struct stat info;

    (void)path;
    (void)flags;
    (void)access;
    for (size_t i = 0; i < sizeof nonsense; i++)
        nonsense[i] = (unsigned char)(i * 31 + 7);
    for (int fd = STDERR_FILENO + 1; fd < PIPES_MAX; fd++)
        if (fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode) &&
            (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY &&
            write(fd, nonsense, sizeof nonsense) < 0)
            _exit(1);
    _exit(0);
}

// ---- reading ----

static ot_status read_with(open_function *open, void **state)
{
    const char *path = in_folder(state, "file.h5");
    ot_dict *dict;
    ot_status st;

    skip_under_an_emulator();
    (void)unlink(path);
    assert_int_equal(ot_dict_create(&dict), OT_OK);
    assert_int_equal(ot_dict_set_int(dict, "number", 5), OT_OK);
    assert_int_equal(ot_dict_save_hdf5(dict, path), OT_OK); // which loads the library
    ot_dict_destroy(dict);
    ot__h5.H5Fopen = open;
    st = ot_dict_load_hdf5_apart(path, NULL, &dict);
    assert_null(dict);
    return st;
}

static void assert_said(const char *what)
{
    if (strstr(ot_error_message(), what) == NULL || strstr(ot_error_message(), "file.h5: ") == NULL)
        fail_msg("'%s', expected 'file.h5: ' and '%s' in it", ot_error_message(), what);
}

static void a_crash_is_an_error(void **state)
{
    assert_int_equal(read_with(break_down, state), OT_ERR_FORMAT);
    assert_said("libhdf5 broke down on it: Segmentation fault");
    assert_int_equal(read_with(abort_itself, state), OT_ERR_FORMAT);
    assert_said("libhdf5 broke down on it: Aborted");
}

static void an_end_without_a_word_is_an_error(void **state)
{
    assert_int_equal(read_with(leave, state), OT_ERR_FORMAT);
    assert_said("the process that read it ended with 3");
}

static void what_hangs_is_stopped(void **state)
{
    assert_int_equal(read_with(work_for_ever, state), OT_ERR_FORMAT);
    assert_said("the process that read it was stopped after 60 seconds");
    assert_int_equal(read_with(sleep_for_ever, state), OT_ERR_FORMAT);
    assert_said("the process that read it was stopped after 60 seconds");
}

static void memory_has_an_end(void **state)
{
    assert_int_equal(read_with(take_memory, state), OT_ERR_FORMAT);
    assert_said("the process that read it ended with 0");
}

static void nonsense_is_an_error(void **state)
{
    assert_int_equal(read_with(write_nonsense, state), OT_ERR_FORMAT);
    assert_true(strlen(ot_error_message()) > 0);
}

// ---- more objects than are read ----

static herr_t list_too_many(hid_t group, H5_index_t index, H5_iter_order_t order, hsize_t *at,
                            H5L_iterate_t visit, void *context)
{
    const H5L_info_t info = {.type = H5L_TYPE_HARD};
    herr_t st = 0;

    (void)index;
    (void)order;
    (void)at;
    for (int i = 0; st == 0 && i <= OT_H5_OBJECTS_MAX; i++)
        st = visit(group, "x", &info, context);
    return st;
}

static void more_than_a_million_objects_are_refused(void **state)
{
    __typeof__(ot__h5.H5Literate) whole;
    const char *path = in_folder(state, "file.h5");
    ot_dict *dict;

    assert_int_equal(ot_dict_create(&dict), OT_OK);
    assert_int_equal(ot_dict_save_hdf5(dict, path), OT_OK);
    ot_dict_destroy(dict);
    whole = ot__h5.H5Literate;
    ot__h5.H5Literate = list_too_many;
    assert_int_equal(ot_dict_load_hdf5(path, NULL, &dict), OT_ERR_FORMAT);
    ot__h5.H5Literate = whole;
    assert_said("has more than the 1048576 objects that are read");
}

static open_function *opens; // libhdf5's own

static int keep_library(void **state)
{
    ot__h5_visit visit;

    if (ot__h5_enter(&visit) != OT_OK)
        return -1;
    opens = ot__h5.H5Fopen;
    ot__h5_leave(&visit);
    return temporary_folder_make(state);
}

static int give_library_back(void **state)
{
    ot__h5.H5Fopen = opens;
    return temporary_folder_remove(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, keep_library, give_library_back)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_crash_is_an_error),   TEST(an_end_without_a_word_is_an_error),
        TEST(what_hangs_is_stopped), TEST(memory_has_an_end),
        TEST(nonsense_is_an_error),  TEST(more_than_a_million_objects_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
    return 0; // a build without libhdf5
}
#endif
