// SPDX-License-Identifier: Apache-2.0
// How much memory this process may take: counted where tensors, constants and plans get theirs
// (ot__alloc_aligned), so that a file that asks for too much is an error and not the machine's end.
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

enum { PROCESSES_MAX = 4096, LINE_LENGTH = 4096 };

static _Atomic size_t asked;    // ot_set_memory_max; 0: the default
static _Atomic size_t admitted; // the largest figure that somebody asked for one session
static _Atomic size_t fallback; // the default of all sharers together; 0: not computed
static _Atomic size_t sharers;  // processes of a job on this machine, as far as is known
static _Atomic size_t taken;

// ---- the machine ----

static size_t physical(void)
{
    const long n_pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t n_bytes;

    if (n_pages <= 0 || page <= 0 ||
        ot__size_mul_overflows((size_t)n_pages, (size_t)page, &n_bytes))
        return OT_MEMORY_UNLIMITED;
    return n_bytes;
}

// The number in <root><path>/<name>; unlimited when there is none.
static size_t read_limit(const char *root, const char *path, const char *name)
{
    char line[LINE_LENGTH];
    int64_t limit = 0;
    FILE *file;

    if ((size_t)snprintf(line, sizeof line, "%s%s/%s", root, path, name) >= sizeof line)
        return OT_MEMORY_UNLIMITED;
    file = fopen(line, "re");
    if (!file)
        return OT_MEMORY_UNLIMITED;
    if (!fgets(line, sizeof line, file))
        line[0] = '\0';
    fclose(file);
    line[strcspn(line, "\n")] = '\0';
    return ot__parse_int(line, &limit) && limit > 0 ? (size_t)limit : OT_MEMORY_UNLIMITED;
}

// A group is bound by its own limit and those of the groups that it is in. In a container the path
// is often not to be seen, and the root is the group.
static size_t limit_of_group(const char *root, char *path, const char *name)
{
    size_t limit = OT_MEMORY_UNLIMITED;

    for (;;) {
        char *slash = strrchr(path, '/');
        const size_t here = read_limit(root, path, name);

        limit = OT_MIN(limit, here);
        if (!slash)
            return limit;
        *slash = '\0';
    }
}

// Whether `name` is one of the controllers "cpu,memory,..." before the second colon.
static bool has_controller(const char *controllers, size_t n, const char *name)
{
    const size_t length = strlen(name);

    for (const char *at = controllers; at < controllers + n; at += strcspn(at, ",:") + 1)
        if (strcspn(at, ",:") == length && strncmp(at, name, length) == 0)
            return true;
    return false;
}

size_t ot__memory_of_group(const char *self, const char *root)
{
    char line[LINE_LENGTH], v1_root[LINE_LENGTH];
    size_t limit = OT_MEMORY_UNLIMITED;
    FILE *file = fopen(self, "re");

    if (!file)
        return limit;
    if ((size_t)snprintf(v1_root, sizeof v1_root, "%s/memory", root) >= sizeof v1_root)
        v1_root[0] = '\0';
    while (fgets(line, sizeof line, file)) { // <number>:<controllers>:<path>
        char *controllers = strchr(line, ':'),
             *path = controllers ? strchr(controllers + 1, ':') : NULL;
        size_t found = OT_MEMORY_UNLIMITED;

        if (!path)
            continue;
        controllers++;
        line[strcspn(line, "\n")] = '\0';
        if (controllers == path)
            found = limit_of_group(root, path + 1, "memory.max");
        else if (has_controller(controllers, (size_t)(path - controllers), "memory"))
            found = limit_of_group(v1_root, path + 1, "memory.limit_in_bytes");
        limit = OT_MIN(limit, found);
    }
    fclose(file);
    return limit;
}

// Processes of one job on this machine, as those who start them say.
static size_t processes(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                        "SLURM_NTASKS_PER_NODE", "LOCAL_WORLD_SIZE"};
    int64_t n;

    for (size_t i = 0; i < OT_COUNT(names); i++) {
        const char *text = getenv(names[i]);

        if (text && ot__parse_int(text, &n) && n >= 1 && n <= PROCESSES_MAX)
            return (size_t)n;
    }
    return 1;
}

static size_t most_of(size_t machine)
{
    return machine == OT_MEMORY_UNLIMITED ? machine : machine / 4 * 3;
}

static size_t share_of(size_t most)
{
    const size_t n = OT_MAX(atomic_load(&sharers), (size_t)1);

    return most == OT_MEMORY_UNLIMITED ? most : OT_MAX(most / n, (size_t)1);
}

void ot__memory_share(size_t n_processes)
{
    size_t before = atomic_load(&sharers);

    while (before < n_processes && !atomic_compare_exchange_weak(&sharers, &before, n_processes))
        ;
}

void ot__memory_set_machine(size_t n_bytes)
{
    atomic_store(&sharers, processes());
    atomic_store(&fallback, n_bytes == 0 ? 0 : most_of(n_bytes));
    atomic_store(&admitted, 0);
}

// ---- the ceiling ----

void ot_set_memory_max(size_t n_bytes)
{
    atomic_store(&asked, n_bytes);
}

void ot__memory_admit(size_t n_bytes)
{
    size_t before = atomic_load(&admitted);

    while (before < n_bytes && !atomic_compare_exchange_weak(&admitted, &before, n_bytes))
        ;
}

static size_t ceiling(void)
{
    const size_t wish = atomic_load(&asked);
    size_t otherwise;

    if (wish > 0)
        return wish;
    otherwise = atomic_load(&fallback);
    if (otherwise == 0) {
        const size_t group = ot__memory_of_group("/proc/self/cgroup", "/sys/fs/cgroup");
        const size_t machine = physical();

        otherwise = OT_MAX(most_of(OT_MIN(machine, group)), (size_t)1);
        ot__memory_share(processes());
        atomic_store(&fallback, otherwise);
    }
    return OT_MAX(share_of(otherwise), atomic_load(&admitted));
}

size_t ot__memory_left(size_t given_back)
{
    const size_t most = ceiling(), now = atomic_load(&taken);
    const size_t kept = now - OT_MIN(now, given_back);

    return most == OT_MEMORY_UNLIMITED ? most : most - OT_MIN(most, kept);
}

size_t ot__memory_taken(void)
{
    return atomic_load(&taken);
}

bool ot__memory_take(size_t n_bytes)
{
    const size_t most = ceiling();
    size_t before = atomic_load(&taken);

    do {
        if (n_bytes > most || before > most - n_bytes) {
            ot__error(OT_ERR_NO_MEMORY,
                      "%zu bytes are needed, %zu are taken and %zu are allowed (memory_max)",
                      n_bytes, before, most);
            return false;
        }
    } while (!atomic_compare_exchange_weak(&taken, &before, before + n_bytes));
    return true;
}

void ot__memory_give_back(size_t n_bytes)
{
    atomic_fetch_sub(&taken, n_bytes);
}
