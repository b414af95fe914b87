// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "temporary_folder.h"

static void a_file_is_seen_as_it_is(void **state)
{
    const char *path = in_folder(state, "data");
    ot__file_map map;

    assert_int_equal(ot__file_write(path, "ab\0c", 4), OT_OK);
    assert_int_equal(ot__file_map_open(&map, path), OT_OK);
    assert_int_equal(map.size, 4);
    assert_true(map.is_mapped);
    assert_memory_equal(map.data, "ab\0c", 4);
    ot__file_map_close(&map);
    assert_null(map.data);
    ot__file_map_close(&map); // twice is fine
}

static void a_view_stays_valid_when_the_file_is_replaced(void **state)
{
    const char *path = in_folder(state, "data");
    ot__file_map map;

    assert_int_equal(ot__file_write(path, "old", 3), OT_OK);
    assert_int_equal(ot__file_map_open(&map, path), OT_OK);
    assert_int_equal(ot__file_write(path, "n", 1), OT_OK);
    assert_memory_equal(map.data, "old", 3);
    ot__file_map_close(&map);
}

static void pages_that_were_forgotten_are_read_again(void **state)
{
    const char *path = in_folder(state, "data");
    ot__file_map map;

    assert_int_equal(ot__file_write(path, "old", 3), OT_OK);
    assert_int_equal(ot__file_map_open(&map, path), OT_OK);
    assert_memory_equal(map.data, "old", 3);
    ot__file_map_forget(&map, 0, map.size);
    assert_int_equal(ot__file_write(path, "n", 1), OT_OK);
    assert_memory_equal(map.data, "old", 3);
    ot__file_map_forget(&map, 1, 2);
    assert_memory_equal(map.data, "old", 3);
    ot__file_map_close(&map);
    ot__file_map_forget(&map, 0, 0); // nothing is mapped
}

// Bytes of the map that are in memory.
static size_t resident(const ot__file_map *map)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[512], start[32];
    size_t kib = 0;
    bool is_here = false;

    assert_non_null(maps);
    assert_int_equal((uintptr_t)map->data % page, 0);
    snprintf(start, sizeof start, "%zx-", (size_t)(uintptr_t)map->data);
    while (fgets(line, sizeof line, maps)) {
        is_here = is_here || strncmp(line, start, strlen(start)) == 0;
        if (is_here && sscanf(line, "Rss: %zu kB", &kib) == 1)
            break;
    }
    fclose(maps);
    assert_true(is_here);
    return kib << 10;
}

static void a_copy_keeps_little_of_the_file_in_memory(void **state)
{
    const size_t size = ((size_t)12 << 20) + 12345, offset = 4099;
    const char *path = in_folder(state, "data");
    char *bytes = malloc(size), *copy = malloc(size);
    ot__file_map map;

    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(i * 31 + (i >> 12));
    assert_int_equal(ot__file_write(path, bytes, size), OT_OK);
    assert_int_equal(ot__file_map_open(&map, path), OT_OK);
    ot__file_map_copy(&map, copy, offset, size - offset);
    assert_memory_equal(copy, bytes + offset, size - offset);
    assert_true(resident(&map) < (size_t)1 << 20);
    assert_memory_equal(map.data, bytes, size); // and it is all still there
    ot__file_map_close(&map);
    free(bytes);
    free(copy);
}

static void an_empty_file_has_size_zero(void **state)
{
    const char *path = in_folder(state, "empty");
    ot__file_map map;

    assert_int_equal(ot__file_write(path, NULL, 0), OT_OK);
    assert_int_equal(ot__file_map_open(&map, path), OT_OK);
    assert_int_equal(map.size, 0);
    assert_non_null(map.data); // readers add sizes to it
    assert_false(map.is_mapped);
    ot__file_map_close(&map);
}

static void missing_files_and_folders_are_errors_that_name_the_path(void **state)
{
    const char *missing = in_folder(state, "missing");
    ot__file_map map;

    assert_int_equal(ot__file_map_open(&map, missing), OT_ERR_IO);
    assert_non_null(strstr(ot_error_message(), missing));
    assert_int_equal(ot__file_map_open(&map, *state), OT_ERR_IO);
    assert_non_null(strstr(ot_error_message(), "is a directory"));
    assert_null(map.data);
    ot__file_map_close(&map);
}

static void assert_says(const char *path, ot_status st, ot_status expected, const char *part)
{
    assert_int_equal(st, expected);
    assert_non_null(strstr(ot_error_message(), path));
    if (!strstr(ot_error_message(), part))
        fail_msg("'%s' does not say '%s'", ot_error_message(), part);
    assert_null(strchr(ot_error_message(), '\n'));
}

static void a_device_without_end_is_an_error_that_states_the_limit(void **state)
{
    ot__file_map map;

    (void)state;
    assert_says("/dev/zero", ot__file_map_open_within(&map, "/dev/zero", 100000), OT_ERR_NO_MEMORY,
                "has no end within 100000 bytes");
    assert_null(map.data);
}

static void a_socket_is_named(void **state)
{
    const char *path = in_folder(state, "socket");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ot__file_map map;

    assert_true(strlen(path) < sizeof(address.sun_path));
    strcpy(address.sun_path, path);
    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    assert_says(path, ot__file_map_open(&map, path), OT_ERR_IO, "is a socket, expected a file");
    close(fd);
}

// As root every file can be read, so another user tries.
static void an_unreadable_file_is_named(void **state)
{
    const char *path = in_folder(state, "file");
    int status;
    pid_t child;

    assert_int_equal(ot__file_write(path, "x", 1), OT_OK);
    assert_int_equal(chmod(path, 0), 0);
    assert_int_equal(chmod(*state, 0755), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const uid_t nobody = 65534;
        const int folder = open(*state, O_RDONLY | O_DIRECTORY); // others may not walk to it
        ot__file_map map;

        if (fchdir(folder) != 0 || (geteuid() == 0 && setuid(nobody) != 0))
            _exit(2);
        _exit(ot__file_map_open(&map, "file") == OT_ERR_IO &&
                      strstr(ot_error_message(), "file: cannot be opened: ") &&
                      strstr(ot_error_message(), strerror(EACCES))
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

enum { N_PIPED = 300000 };

static void *write_to_pipe(void *argument)
{
    const int fd = open(argument, O_WRONLY);
    unsigned char bytes[1000];

    for (int at = 0; at < N_PIPED; at += (int)sizeof(bytes)) {
        for (int i = 0; i < (int)sizeof(bytes); i++)
            bytes[i] = (unsigned char)((at + i) % 251);
        if (write(fd, bytes, sizeof(bytes)) != (ssize_t)sizeof(bytes))
            break;
    }
    close(fd);
    return NULL;
}

static void a_pipe_is_read_to_its_end(void **state)
{
    char path[PATH_LENGTH_MAX];
    pthread_t writer;
    ot__file_map map;

    snprintf(path, sizeof(path), "%s", in_folder(state, "pipe"));
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(pthread_create(&writer, NULL, write_to_pipe, path), 0);
    assert_int_equal(ot__file_map_open(&map, path), OT_OK);
    pthread_join(writer, NULL);
    assert_int_equal(map.size, N_PIPED);
    assert_false(map.is_mapped);
    for (int i = 0; i < N_PIPED; i++)
        assert_int_equal(map.data[i], i % 251);
    ot__file_map_close(&map);
}

static void a_pipe_may_have_as_many_bytes_as_the_limit_and_no_more(void **state)
{
    char path[PATH_LENGTH_MAX];

    snprintf(path, sizeof(path), "%s", in_folder(state, "pipe"));
    assert_int_equal(mkfifo(path, 0600), 0);
    for (size_t limit = 9; limit <= 10; limit++) {
        const int before = dup(STDIN_FILENO), reader = open(path, O_RDONLY | O_NONBLOCK);
        const int writer = open(path, O_WRONLY);
        ot__file_map map;
        ot_status st;

        assert_int_equal(write(writer, "0123456789", 10), 10);
        close(writer);
        assert_int_equal(dup2(reader, STDIN_FILENO), STDIN_FILENO);
        st = ot__file_map_open_within(&map, "-", limit);
        if (limit < 10)
            assert_says("standard input", st, OT_ERR_NO_MEMORY, "no end within 9 bytes");
        else
            assert_int_equal(st, OT_OK);
        ot__file_map_close(&map);
        close(reader);
        if (before >= 0) {
            dup2(before, STDIN_FILENO);
            close(before);
        }
    }
}

static void standard_input_goes_on_where_it_stands(void **state)
{
    const char *path = in_folder(state, "input");
    const int before = dup(STDIN_FILENO);
    char skipped[3];
    ot__file_map whole, rest;
    int fd;

    assert_int_equal(ot__file_write(path, "abcdef", 6), OT_OK);
    fd = open(path, O_RDONLY);
    assert_true(fd >= 0 && dup2(fd, STDIN_FILENO) == STDIN_FILENO);
    close(fd);
    assert_int_equal(ot__file_map_open(&whole, "-"), OT_OK);
    assert_int_equal(read(STDIN_FILENO, skipped, 2), 2);
    assert_int_equal(ot__file_map_open(&rest, "-"), OT_OK);
    assert_int_equal(whole.size, 6);
    assert_memory_equal(whole.data, "abcdef", 6);
    assert_int_equal(rest.size, 4);
    assert_memory_equal(rest.data, "cdef", 4);
    ot__file_map_close(&whole);
    ot__file_map_close(&rest);
    if (before >= 0) {
        dup2(before, STDIN_FILENO);
        close(before);
    }
}

static void running_out_of_memory_while_reading_is_an_error(void **state)
{
    char path[PATH_LENGTH_MAX];
    bool done = false;

    snprintf(path, sizeof(path), "%s", in_folder(state, "pipe"));
    assert_int_equal(mkfifo(path, 0600), 0);
    for (int n = 0; !done; n++) {
        const int reader = open(path, O_RDONLY | O_NONBLOCK), writer = open(path, O_WRONLY);
        ot__file_map map;
        ot_status st;

        assert_int_equal(write(writer, "0123456789", 10), 10);
        close(writer);
        // Through the descriptor: the bytes stay in the pipe as long as one end is open.
        const int before = dup(STDIN_FILENO);
        assert_int_equal(dup2(reader, STDIN_FILENO), STDIN_FILENO);
        ot__alloc_fail_after(n);
        st = ot__file_map_open(&map, "-");
        ot__alloc_fail_after(-1);
        done = st == OT_OK;
        if (done)
            assert_memory_equal(map.data, "0123456789", 10);
        else
            assert_int_equal(st, OT_ERR_NO_MEMORY);
        ot__file_map_close(&map);
        close(reader);
        if (before >= 0) {
            dup2(before, STDIN_FILENO);
            close(before);
        }
    }
}

static void a_pipe_that_nobody_writes_into_is_an_error(void **state)
{
    const char *path = in_folder(state, "pipe");
    ot__file_map map;

    assert_int_equal(mkfifo(path, 0600), 0);
    assert_says(path, ot__file_map_open(&map, path), OT_ERR_IO,
                "is a pipe that nobody writes into");
    assert_null(map.data);
}

// As shells do it: a pipe without a name, whose writer may be done and have written nothing.
static void a_pipe_without_a_name_may_have_ended(void **state)
{
    (void)state;
    for (size_t n = 0; n < 4; n += 3) {
        char path[32];
        int ends[2];
        ot__file_map map;

        assert_int_equal(pipe(ends), 0);
        assert_int_equal(write(ends[1], "abc", n), n);
        close(ends[1]);
        snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
        assert_int_equal(ot__file_map_open(&map, path), OT_OK);
        assert_int_equal(map.size, n);
        ot__file_map_close(&map);
        close(ends[0]);
    }
}

static void an_input_is_read_where_it_is_asked_and_not_behind_a_new_end(void **state)
{
    const char *path = in_folder(state, "data");
    ot__file_input input;
    char bytes[4];

    assert_int_equal(ot__file_write(path, "abcdef", 6), OT_OK);
    assert_int_equal(ot__file_input_open(&input, path), OT_OK);
    assert_true(input.is_file && input.size == 6);
    assert_int_equal(ot__file_input_read(&input, path, 2, bytes, 4), OT_OK);
    assert_memory_equal(bytes, "cdef", 4);
    assert_int_equal(truncate(path, 5), 0);
    assert_int_equal(ot__file_input_read(&input, path, 2, bytes, 3), OT_OK);
    assert_says(path, ot__file_input_read(&input, path, 2, bytes, 4), OT_ERR_IO,
                "had 6 bytes when it was opened, now ends before byte 6");
    ot__file_input_close(&input);
    assert_says(*state, ot__file_input_open(&input, *state), OT_ERR_IO, "is a directory");
}

static void what_the_disk_has_lost_is_an_error_before_it_is_looked_at(void **state)
{
    const char *path = in_folder(state, "data");
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 3 * page;
    char *bytes = calloc(1, size);
    ot__file_map map;

    assert_non_null(bytes);
    assert_int_equal(ot__file_write(path, bytes, size), OT_OK);
    free(bytes);
    assert_int_equal(ot__file_map_open(&map, path), OT_OK);
    assert_int_equal(ot__file_map_check(&map, path), OT_OK);
    assert_int_equal(truncate(path, 1), 0); // reading a lost page ends the process just as well
#ifdef MADV_POPULATE_READ
    // Older kernels refuse the advice, emulators of other processors take and forget it.
    if (madvise((void *)(uintptr_t)(map.data + page), page, MADV_POPULATE_READ) != 0 &&
        errno == EFAULT)
        assert_says(path, ot__file_map_check(&map, path), OT_ERR_IO, "cannot be read");
#endif
    ot__file_map_close(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(a_file_is_seen_as_it_is),
        TEST_IN_FOLDER(a_view_stays_valid_when_the_file_is_replaced),
        TEST_IN_FOLDER(a_copy_keeps_little_of_the_file_in_memory),
        TEST_IN_FOLDER(pages_that_were_forgotten_are_read_again),
        TEST_IN_FOLDER(what_the_disk_has_lost_is_an_error_before_it_is_looked_at),
        TEST_IN_FOLDER(an_empty_file_has_size_zero),
        TEST_IN_FOLDER(missing_files_and_folders_are_errors_that_name_the_path),
        TEST_IN_FOLDER(a_device_without_end_is_an_error_that_states_the_limit),
        TEST_IN_FOLDER(a_socket_is_named),
        TEST_IN_FOLDER(an_unreadable_file_is_named),
        TEST_IN_FOLDER(a_pipe_is_read_to_its_end),
        TEST_IN_FOLDER(a_pipe_that_nobody_writes_into_is_an_error),
        TEST_IN_FOLDER(a_pipe_without_a_name_may_have_ended),
        TEST_IN_FOLDER(an_input_is_read_where_it_is_asked_and_not_behind_a_new_end),
        TEST_IN_FOLDER(a_pipe_may_have_as_many_bytes_as_the_limit_and_no_more),
        TEST_IN_FOLDER(standard_input_goes_on_where_it_stands),
        TEST_IN_FOLDER(running_out_of_memory_while_reading_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
