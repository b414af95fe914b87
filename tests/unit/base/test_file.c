// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/file_calls.h"
#include "temporary_folder.h"

// The system calls of a writer that replaces a file with one write.
enum {
    CALL_OPEN,
    CALL_CHMOD,
    CALL_WRITE,
    CALL_SYNC,
    CALL_CLOSE,
    CALL_RENAME,
    CALL_FOLDER_OPEN,
    CALL_FOLDER_SYNC,
    CALL_FOLDER_CLOSE,
    N_CALLS
};

enum { OLD_SIZE = 70000, NEW_SIZE = 100000 };
static char old_bytes[OLD_SIZE], new_bytes[NEW_SIZE];

static void fill(void)
{
    for (int i = 0; i < OLD_SIZE; i++)
        old_bytes[i] = (char)('a' + i % 26);
    for (int i = 0; i < NEW_SIZE; i++)
        new_bytes[i] = (char)('A' + i % 23);
}

// Reads with plain calls: what another program finds.
static bool holds(const char *path, const char *bytes, size_t n_bytes)
{
    FILE *file = fopen(path, "rb");
    char *found = malloc(n_bytes + 1);
    bool same = file && found && fread(found, 1, n_bytes + 1, file) == n_bytes &&
                memcmp(found, bytes, n_bytes) == 0;

    if (file)
        fclose(file);
    free(found);
    return same;
}

static void put_old(const char *path)
{
    fill();
    ot__file_fault_after(-1, OT_FILE_FAIL);
    assert_int_equal(ot__file_write(path, old_bytes, OLD_SIZE), OT_OK);
    assert_true(holds(path, old_bytes, OLD_SIZE));
}

static void a_new_file_holds_what_was_written_and_nothing_else_is_left(void **state)
{
    const char *path = in_folder(state, "new");
    ot__file_writer *w;

    assert_int_equal(ot__file_writer_open(&w, path), OT_OK);
    assert_int_equal(ot__file_writer_write(w, "abc", 3), OT_OK);
    assert_int_equal(ot__file_writer_write(w, NULL, 0), OT_OK);
    assert_int_equal(ot__file_writer_write(w, "de", 2), OT_OK);
    assert_false(ot__path_exists(path)); // not before the commit
    assert_int_equal(ot__file_writer_commit(w), OT_OK);
    assert_true(holds(path, "abcde", 5));
    assert_int_equal(count_entries(*state), 1);
}

static void an_aborted_writer_leaves_the_old_file(void **state)
{
    const char *path = in_folder(state, "kept");
    ot__file_writer *w;

    put_old(path);
    assert_int_equal(ot__file_writer_open(&w, path), OT_OK);
    assert_int_equal(ot__file_writer_write(w, "abc", 3), OT_OK);
    ot__file_writer_abort(w);
    ot__file_writer_abort(NULL);
    assert_true(holds(path, old_bytes, OLD_SIZE));
    assert_int_equal(count_entries(*state), 1);
}

static void a_write_goes_through_these_system_calls(void **state)
{
    const char *path = in_folder(state, "file");

    put_old(path);
    ot__file_fault_after(-1, OT_FILE_FAIL);
    assert_int_equal(ot__file_write(path, new_bytes, NEW_SIZE), OT_OK);
    assert_int_equal(ot__file_fault_after(-1, OT_FILE_FAIL), N_CALLS);
}

// The process is killed before its n-th system call, for every n.
static void a_kill_at_any_call_leaves_the_old_or_the_new_file(void **state)
{
    const char *path = in_folder(state, "checkpoint");

    for (int n = 0; n <= N_CALLS; n++) {
        int status;
        pid_t child;

        put_old(path);
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            ot__file_fault_after(n, OT_FILE_KILL);
            _exit(ot__file_write(path, new_bytes, NEW_SIZE) == OT_OK ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (n < N_CALLS)
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        else
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        if (n <= CALL_RENAME)
            assert_true(holds(path, old_bytes, OLD_SIZE));
        else
            assert_true(holds(path, new_bytes, NEW_SIZE));
    }
    // What the killed ones left behind does not hinder the next, which removes it.
    put_old(path);
    assert_int_equal(count_entries(*state), 1);
}

static void an_error_at_any_call_is_told_and_leaves_the_old_or_the_new_file(void **state)
{
    const char *path = in_folder(state, "checkpoint");

    for (int n = 0; n < N_CALLS; n++) {
        ot_status st;

        put_old(path);
        ot__error_clear();
        ot__file_fault_after(n, OT_FILE_FAIL);
        st = ot__file_write(path, new_bytes, NEW_SIZE);
        ot__file_fault_after(-1, OT_FILE_FAIL);
        if (n == CALL_CHMOD || n == CALL_FOLDER_CLOSE) { // nothing is lost by these
            assert_int_equal(st, OT_OK);
        } else {
            assert_int_equal(st, OT_ERR_IO);
            assert_non_null(strstr(ot_error_message(), *state));
            assert_non_null(strstr(ot_error_message(), strerror(EIO)));
        }
        if (st != OT_OK && n <= CALL_RENAME)
            assert_true(holds(path, old_bytes, OLD_SIZE));
        else
            assert_true(holds(path, new_bytes, NEW_SIZE));
        assert_int_equal(count_entries(*state), 1);
    }
}

static void an_interrupted_call_is_made_again(void **state)
{
    static const int calls[] = {CALL_OPEN,        CALL_WRITE,       CALL_SYNC,        CALL_CLOSE,
                                CALL_FOLDER_OPEN, CALL_FOLDER_SYNC, CALL_FOLDER_CLOSE};
    const char *path = in_folder(state, "file");

    for (size_t i = 0; i < OT_COUNT(calls); i++) {
        put_old(path);
        ot__file_fault_after(calls[i], OT_FILE_INTERRUPT);
        assert_int_equal(ot__file_write(path, new_bytes, NEW_SIZE), OT_OK);
        ot__file_fault_after(-1, OT_FILE_FAIL);
        assert_true(holds(path, new_bytes, NEW_SIZE));
    }
}

static void a_short_write_is_continued(void **state)
{
    const char *path = in_folder(state, "file");

    put_old(path);
    ot__file_fault_after(CALL_WRITE, OT_FILE_SHORT);
    assert_int_equal(ot__file_write(path, new_bytes, NEW_SIZE), OT_OK);
    assert_int_equal(ot__file_fault_after(-1, OT_FILE_FAIL), N_CALLS + 1);
    assert_true(holds(path, new_bytes, NEW_SIZE));
}

static void a_commit_after_a_failed_write_is_refused(void **state)
{
    const char *path = in_folder(state, "file");
    ot__file_writer *w;

    put_old(path);
    assert_int_equal(ot__file_writer_open(&w, path), OT_OK);
    ot__file_fault_after(0, OT_FILE_FAIL);
    assert_int_equal(ot__file_writer_write(w, "abc", 3), OT_ERR_IO);
    assert_int_equal(ot__file_writer_write(w, "def", 3), OT_OK);
    assert_int_equal(ot__file_writer_commit(w), OT_ERR_IO);
    assert_non_null(strstr(ot_error_message(), path));
    assert_true(holds(path, old_bytes, OLD_SIZE));
    assert_int_equal(count_entries(*state), 1);
}

// A real limit instead of a simulated error: the first write is short, the next one fails.
static void a_file_that_outgrows_its_limit_leaves_the_old_one(void **state)
{
    const char *path = in_folder(state, "file");
    const struct rlimit limit = {80000, 80000};
    int status;
    pid_t child;

    put_old(path);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
            _exit(2);
        _exit(ot__file_write(path, new_bytes, NEW_SIZE) == OT_ERR_IO &&
                      strstr(ot_error_message(), strerror(EFBIG))
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(holds(path, old_bytes, OLD_SIZE));
    assert_int_equal(count_entries(*state), 1);
}

static mode_t mode_of(const char *path)
{
    struct stat info;

    assert_int_equal(stat(path, &info), 0);
    return info.st_mode & 0777;
}

static void the_permissions_of_an_existing_file_are_kept(void **state)
{
    const char *path = in_folder(state, "file");
    const mode_t before = umask(027);

    put_old(path);
    assert_int_equal(mode_of(path), 0640); // a new file: what the mask leaves
    assert_int_equal(chmod(path, 0604), 0);
    assert_int_equal(ot__file_write(path, "x", 1), OT_OK);
    umask(before);
    assert_int_equal(mode_of(path), 0604);
}

static void a_symbolic_link_stays_and_its_target_is_replaced(void **state)
{
    char target[PATH_LENGTH_MAX], link[PATH_LENGTH_MAX], second[PATH_LENGTH_MAX];
    struct stat info;

    snprintf(target, sizeof(target), "%s", in_folder(state, "below/target"));
    snprintf(link, sizeof(link), "%s", in_folder(state, "link"));
    snprintf(second, sizeof(second), "%s", in_folder(state, "second"));
    assert_int_equal(mkdir(in_folder(state, "below"), 0777), 0);
    assert_int_equal(symlink("below/target", link), 0);
    assert_int_equal(symlink("link", second), 0);
    for (int i = 0; i < 2; i++) { // first the target does not exist
        assert_int_equal(ot__file_write(second, new_bytes, (size_t)i + 3), OT_OK);
        assert_true(holds(target, new_bytes, (size_t)i + 3));
        assert_true(lstat(link, &info) == 0 && S_ISLNK(info.st_mode));
        assert_true(lstat(second, &info) == 0 && S_ISLNK(info.st_mode));
    }
    assert_int_equal(count_entries(in_folder(state, "below")), 1);
}

static void a_ring_of_links_is_an_error(void **state)
{
    char a[PATH_LENGTH_MAX];

    snprintf(a, sizeof(a), "%s", in_folder(state, "a"));
    assert_int_equal(symlink("b", a), 0);
    assert_int_equal(symlink("a", in_folder(state, "b")), 0);
    assert_int_equal(ot__file_write(a, "x", 1), OT_ERR_IO);
    assert_non_null(strstr(ot_error_message(), strerror(ELOOP)));
}

static void a_pipe_is_written_to_and_not_replaced(void **state)
{
    const char *path = in_folder(state, "pipe");
    struct stat info;
    char found[8];
    int reader;

    assert_int_equal(mkfifo(path, 0600), 0);
    reader = open(path, O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    assert_int_equal(ot__file_write(path, "abc", 3), OT_OK);
    assert_int_equal(read(reader, found, sizeof(found)), 3);
    assert_memory_equal(found, "abc", 3);
    close(reader);
    assert_true(lstat(path, &info) == 0 && S_ISFIFO(info.st_mode));
    assert_int_equal(count_entries(*state), 1);
}

static void a_dash_is_standard_output(void **state)
{
    int ends[2], status;
    char found[16] = {0};
    pid_t child;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        const ot_status st = ot__file_write("-", "abc", 3);
        // It stays open for the program.
        _exit(st == OT_OK && write(STDOUT_FILENO, "def", 3) == 3 ? 0 : 1);
    }
    close(ends[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(read(ends[0], found, sizeof(found)), 6);
    assert_string_equal(found, "abcdef");
    close(ends[0]);
    assert_false(ot__path_exists("-"));
}

static void do_nothing(int number)
{
    (void)number;
}

// A pipe holds less than what is written and a signal breaks the blocked call off half-way.
static void a_write_that_a_signal_breaks_off_is_continued(void **state)
{
    struct sigaction action = {.sa_handler = do_nothing}; // without SA_RESTART
    size_t n_read = 0;
    int ends[2], status, n_waiting = 0, before;
    char found[NEW_SIZE + 1];
    ssize_t n;
    pid_t child;

    (void)state;
    fill();
    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        sigaction(SIGUSR1, &action, NULL);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        _exit(ot__file_write("-", new_bytes, NEW_SIZE) == OT_OK ? 0 : 1);
    }
    close(ends[1]);
    do { // until the pipe is full
        before = n_waiting;
        usleep(2000);
        assert_int_equal(ioctl(ends[0], FIONREAD, &n_waiting), 0);
    } while (n_waiting == 0 || n_waiting != before);
    assert_true(n_waiting < NEW_SIZE);
    kill(child, SIGUSR1);
    usleep(20000); // a pipe with room would let the call go on as if nothing had been
    while (n_read < sizeof(found) &&
           (n = read(ends[0], found + n_read, sizeof(found) - n_read)) > 0)
        n_read += (size_t)n;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(n_read, NEW_SIZE);
    assert_memory_equal(found, new_bytes, NEW_SIZE);
}

static void a_closed_standard_output_is_an_error_and_does_not_confuse_files(void **state)
{
    const char *path = in_folder(state, "file");
    int status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        close(STDOUT_FILENO);
        if (ot__file_write("-", "abc", 3) != OT_ERR_IO)
            _exit(1);
        // The file gets descriptor 1 and must be closed all the same.
        if (ot__file_write(path, "abc", 3) != OT_OK)
            _exit(2);
        _exit(fcntl(STDOUT_FILENO, F_GETFD) < 0 ? 0 : 3);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(holds(path, "abc", 3));
}

static void folders_and_missing_folders_are_errors_that_name_the_path(void **state)
{
    static const char *const names[] = {"", "missing/file", "missing/", "file/below"};

    assert_int_equal(ot__file_write(in_folder(state, "file"), "x", 1), OT_OK);
    for (size_t i = 0; i < OT_COUNT(names); i++) {
        const char *path = in_folder(state, names[i]);
        ot__file_writer *w = (ot__file_writer *)state;

        ot__error_clear();
        assert_int_equal(ot__file_writer_open(&w, path), OT_ERR_IO);
        assert_null(w);
        assert_non_null(strstr(ot_error_message(), path));
    }
    assert_int_equal(count_entries(*state), 1);
}

static void a_name_as_long_as_the_file_system_allows_can_be_written(void **state)
{
    char name[256];

    memset(name, 'n', 255);
    name[255] = '\0';
    assert_int_equal(ot__file_write(in_folder(state, name), "x", 1), OT_OK);
    assert_true(holds(in_folder(state, name), "x", 1));
}

static void two_writers_of_one_file_do_not_meet(void **state)
{
    const char *path = in_folder(state, "file");
    ot__file_writer *a, *b;

    assert_int_equal(ot__file_writer_open(&a, path), OT_OK);
    assert_int_equal(ot__file_writer_open(&b, path), OT_OK);
    assert_int_equal(ot__file_writer_write(a, "aaaa", 4), OT_OK);
    assert_int_equal(ot__file_writer_write(b, "bb", 2), OT_OK);
    assert_int_equal(ot__file_writer_commit(b), OT_OK);
    assert_true(holds(path, "bb", 2));
    assert_int_equal(ot__file_writer_commit(a), OT_OK);
    assert_true(holds(path, "aaaa", 4));
    assert_int_equal(count_entries(*state), 1);
}

static void a_rename_replaces_what_is_there(void **state)
{
    const char *from = in_folder(state, "from"), *to = in_folder(state, "to");

    put_old(to);
    assert_int_equal(ot__file_write(from, "abc", 3), OT_OK);
    assert_int_equal(ot__file_rename(from, to), OT_OK);
    assert_true(holds(to, "abc", 3));
    assert_int_equal(count_entries(*state), 1);
    assert_int_equal(ot__file_rename(from, to), OT_ERR_IO);
    assert_true(holds(to, "abc", 3));
}

static void every_allocation_may_fail_and_leaves_the_old_file(void **state)
{
    const char *path = in_folder(state, "file");
    ot_status st = OT_ERR_NO_MEMORY;

    put_old(path);
    for (int n = 0; st != OT_OK; n++) {
        assert_true(holds(path, old_bytes, OLD_SIZE));
        ot__alloc_fail_after(n);
        st = ot__file_write(path, new_bytes, NEW_SIZE);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || st == OT_ERR_NO_MEMORY);
        assert_int_equal(count_entries(*state), 1);
    }
    assert_true(holds(path, new_bytes, NEW_SIZE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(a_new_file_holds_what_was_written_and_nothing_else_is_left),
        TEST_IN_FOLDER(an_aborted_writer_leaves_the_old_file),
        TEST_IN_FOLDER(a_write_goes_through_these_system_calls),
        TEST_IN_FOLDER(a_kill_at_any_call_leaves_the_old_or_the_new_file),
        TEST_IN_FOLDER(an_error_at_any_call_is_told_and_leaves_the_old_or_the_new_file),
        TEST_IN_FOLDER(an_interrupted_call_is_made_again),
        TEST_IN_FOLDER(a_short_write_is_continued),
        TEST_IN_FOLDER(a_commit_after_a_failed_write_is_refused),
        TEST_IN_FOLDER(a_file_that_outgrows_its_limit_leaves_the_old_one),
        TEST_IN_FOLDER(the_permissions_of_an_existing_file_are_kept),
        TEST_IN_FOLDER(a_symbolic_link_stays_and_its_target_is_replaced),
        TEST_IN_FOLDER(a_ring_of_links_is_an_error),
        TEST_IN_FOLDER(a_pipe_is_written_to_and_not_replaced),
        TEST_IN_FOLDER(a_dash_is_standard_output),
        TEST_IN_FOLDER(a_write_that_a_signal_breaks_off_is_continued),
        TEST_IN_FOLDER(a_closed_standard_output_is_an_error_and_does_not_confuse_files),
        TEST_IN_FOLDER(folders_and_missing_folders_are_errors_that_name_the_path),
        TEST_IN_FOLDER(a_name_as_long_as_the_file_system_allows_can_be_written),
        TEST_IN_FOLDER(two_writers_of_one_file_do_not_meet),
        TEST_IN_FOLDER(a_rename_replaces_what_is_there),
        TEST_IN_FOLDER(every_allocation_may_fail_and_leaves_the_old_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
