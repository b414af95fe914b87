// Whole files: mapped for reading, replaced durably when written.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

static ot_status io_error(const char *path, const char *what)
{
    return ot__error(OT_ERR_IO, "%s: %s: %s", path, what, strerror(errno));
}

// ---- reading ----

// Pipes and standard input have no size: read to the end.
static ot_status read_all(int fd, const char *path, ot__file_map *map)
{
    ot__buf buf = {0};
    char chunk[1 << 16];
    ssize_t n;
    ot_status st;

    while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            st = io_error(path, "cannot be read");
            ot__buf_deinit(&buf);
            return st;
        }
        ot__buf_append(&buf, chunk, (size_t)n);
        if (buf.failed)
            break;
    }
    st = ot__buf_status(&buf);
    if (st != OT_OK) {
        ot__buf_deinit(&buf);
        return st;
    }
    *map = (ot__file_map){.data = (uint8_t *)buf.data, .size = buf.length};
    return OT_OK;
}

static ot_status map_fd(int fd, const char *path, ot__file_map *map)
{
    struct stat info;
    void *data;

    if (fstat(fd, &info) != 0)
        return io_error(path, "cannot be read");
    if (S_ISDIR(info.st_mode))
        return ot__error(OT_ERR_IO, "%s: is a folder", path);
    if (!S_ISREG(info.st_mode) || info.st_size == 0)
        return read_all(fd, path, map);
    data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return io_error(path, "cannot be mapped");
    *map = (ot__file_map){.data = data, .size = (size_t)info.st_size, .is_mapped = true};
    return OT_OK;
}

ot_status ot__file_map_open(ot__file_map *map, const char *path)
{
    ot_status st;
    int fd;

    *map = (ot__file_map){0};
    if (strcmp(path, "-") == 0)
        return map_fd(STDIN_FILENO, "standard input", map);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return io_error(path, "cannot be opened");
    st = map_fd(fd, path, map);
    close(fd);
    return st;
}

void ot__file_map_close(ot__file_map *map)
{
    if (map->is_mapped)
        munmap((void *)(uintptr_t)map->data, map->size);
    else
        ot__free((void *)(uintptr_t)map->data);
    *map = (ot__file_map){0};
}

// ---- faults for tests: every system call of a writer passes here first ----

static int64_t fault_left = -1, n_calls;
static ot__file_fault fault_kind;

int64_t ot__file_fault_after(int64_t n, ot__file_fault fault)
{
    int64_t calls = n_calls;

    fault_left = n;
    fault_kind = fault;
    n_calls = 0;
    return calls;
}

// True: behave as if the call had failed.
static bool fault(void)
{
    n_calls++;
    if (fault_left < 0 || fault_left-- > 0)
        return false;
    fault_left = 0; // every later call fails too
    if (fault_kind == OT_FILE_KILL)
        _exit(137);
    errno = EIO;
    return true;
}

// ---- writing ----

struct ot__file_writer {
    int fd;
    char *path, *temporary, *folder; // all NULL for standard output
};

static ot_status open_temporary(ot__file_writer *w)
{
    struct stat info;
    bool exists = stat(w->path, &info) == 0;
    size_t size = strlen(w->path) + 16;

    if (exists && S_ISDIR(info.st_mode))
        return ot__error(OT_ERR_IO, "%s: is a folder", w->path);
    w->temporary = ot__alloc(size);
    if (!w->temporary)
        return OT_ERR_NO_MEMORY;
    snprintf(w->temporary, size, "%s.XXXXXX", w->path);
    w->fd = fault() ? -1 : mkstemp(w->temporary);
    if (w->fd < 0) {
        ot__free(w->temporary);
        w->temporary = NULL;
        return io_error(w->path, "cannot be written");
    }
    (void)fcntl(w->fd, F_SETFD, FD_CLOEXEC);
    if (exists) {
        (void)fchmod(w->fd, info.st_mode & 07777);
    } else {
        mode_t mask = umask(0);
        umask(mask);
        (void)fchmod(w->fd, 0666 & ~mask);
    }
    return OT_OK;
}

ot_status ot__file_writer_open(ot__file_writer **out, const char *path)
{
    ot__file_writer *w = ot__alloc_zero(1, sizeof(*w));
    char *target;
    ot_status st = OT_ERR_NO_MEMORY;

    *out = NULL;
    if (!w)
        return OT_ERR_NO_MEMORY;
    w->fd = STDOUT_FILENO;
    if (strcmp(path, "-") == 0) {
        *out = w;
        return OT_OK;
    }
    target = realpath(path, NULL); // a symbolic link stays one: its target is replaced
    w->path = ot__strdup(target ? target : path);
    free(target);
    if (w->path)
        w->folder = ot__path_folder(w->path);
    if (w->folder)
        st = open_temporary(w);
    if (st == OT_OK)
        *out = w;
    else
        ot__file_writer_abort(w);
    return st;
}

ot_status ot__file_writer_write(ot__file_writer *w, const void *bytes, size_t n_bytes)
{
    const char *next = bytes;

    while (n_bytes > 0) {
        ssize_t n = fault() ? -1 : write(w->fd, next, OT_MIN(n_bytes, (size_t)1 << 30));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return io_error(w->path ? w->path : "standard output", "cannot be written");
        next += n;
        n_bytes -= (size_t)n;
    }
    return OT_OK;
}

static ot_status sync_folder(const ot__file_writer *w)
{
    int fd = open(w->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result;

    if (fd < 0)
        return io_error(w->folder, "cannot be opened");
    result = fault() ? -1 : fsync(fd);
    // Some file systems cannot sync a folder; the rename is then as durable as they make it.
    if (result != 0 && errno != EINVAL && errno != ENOTSUP) {
        ot_status st = io_error(w->folder, "cannot be synchronised");
        close(fd);
        return st;
    }
    close(fd);
    return OT_OK;
}

ot_status ot__file_writer_commit(ot__file_writer *w)
{
    ot_status st = OT_OK;
    int fd = w->fd;

    if (w->path) {
        if (fault() || fsync(fd) != 0)
            st = io_error(w->path, "cannot be synchronised");
        w->fd = STDOUT_FILENO;
        if (close(fd) != 0 && st == OT_OK)
            st = io_error(w->path, "cannot be written");
        if (st == OT_OK && (fault() || rename(w->temporary, w->path) != 0))
            st = io_error(w->path, "cannot be replaced");
        if (st == OT_OK) {
            ot__free(w->temporary);
            w->temporary = NULL;
            st = sync_folder(w);
        }
    }
    ot__file_writer_abort(w);
    return st;
}

void ot__file_writer_abort(ot__file_writer *w)
{
    if (!w)
        return;
    if (w->fd != STDOUT_FILENO)
        close(w->fd);
    if (w->temporary)
        unlink(w->temporary);
    ot__free(w->temporary);
    ot__free(w->path);
    ot__free(w->folder);
    ot__free(w);
}

ot_status ot__file_write(const char *path, const void *bytes, size_t n_bytes)
{
    ot__file_writer *w;
    ot_status st;

    OT_TRY(ot__file_writer_open(&w, path));
    st = ot__file_writer_write(w, bytes, n_bytes);
    if (st == OT_OK)
        return ot__file_writer_commit(w);
    ot__file_writer_abort(w);
    return st;
}
