// SPDX-License-Identifier: Apache-2.0
// Which transport a job has: what its launcher says, and the plugin that carries messages by MPI.
#define _GNU_SOURCE // dladdr()
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dist/dist.h"
#include "onnxtrain/comm_mpi.h"

static const char plugin_name[] = "libonnxtrain_mpi.so";

// ---- the launcher ----

// What the environment says of it.
typedef struct launch {
    const char *variable; // NULL: nobody has started this process
    int64_t size;         // 0: not said
} launch;

// Batch systems set variables of their own in every script, so theirs say nothing.
static launch find_launch(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"};
    launch l = {NULL, 0};

    for (size_t i = 0; i < OT_COUNT(names); i++) {
        const char *text = getenv(names[i]);

        if (text && ot__parse_int(text, &l.size) && l.size >= 1) {
            l.variable = names[i];
            return l;
        }
    }
    l.size = 0;
    l.variable = getenv("PMIX_RANK") ? "PMIX_RANK" : NULL;
    return l;
}

bool ot__launched_many(void)
{
    const launch l = find_launch();

    return l.variable && l.size != 1;
}

static void describe_launch(const launch *l, char *text, size_t size)
{
    if (!l->variable)
        snprintf(text, size, "communicators of kind 'mpi' need a plugin");
    else if (l->size > 0)
        snprintf(text, size, "mpirun has started %" PRId64 " processes (%s)", l->size, l->variable);
    else
        snprintf(text, size, "mpirun has started this process (%s)", l->variable);
}

// ---- the plugin ----

// Beside the library, or beside the libraries of the command that has it inside.
static bool find_beside(char path[PATH_MAX])
{
    static const char *const places[] = {"", OT_LIBRARIES_FROM_PROGRAMS "/"};
    Dl_info own;
    const char *slash;

    if (dladdr(plugin_name, &own) == 0 || !own.dli_fname)
        return false;
    slash = strrchr(own.dli_fname, '/');
    for (size_t i = 0; slash && i < OT_COUNT(places); i++) {
        const int n = snprintf(path, PATH_MAX, "%.*s/%s%s", (int)(slash - own.dli_fname),
                               own.dli_fname, places[i], plugin_name);

        if (n > 0 && n < PATH_MAX && access(path, R_OK) == 0)
            return true;
    }
    return false;
}

static void *load_plugin(const char **path)
{
    static char beside[PATH_MAX];
    const char *given = getenv("OT_COMM_PLUGIN");

    *path = given && given[0] != '\0' ? given : find_beside(beside) ? beside : plugin_name;
    return dlopen(*path, RTLD_NOW | RTLD_LOCAL); // for good
}

// Processes that a launcher of another MPI has started take themselves to be alone.
static ot_status check_launcher(const launch *l, const ot_transport *t)
{
    if (l->size == 0 || l->size == t->world_size)
        return OT_OK;
    return ot__error(OT_ERR_STATE,
                     "mpirun has started %" PRId64 " processes (%s), and %s knows of %d: it is the "
                     "mpirun of another MPI; use that of %s, or a plugin that is compiled with the "
                     "mpicc of this one (OT_COMM_PLUGIN)",
                     l->size, l->variable, t->name, t->world_size, t->name);
}

// By the entry that the options need.
static ot_status start_plugin(void *library, const char *path, const ot_comm_options *options,
                              ot_transport *transport)
{
    const bool is_number = options->mpi_comm != NULL;
    char message[OT_COMM_TEXT_MAX] = "";
    void *symbol = dlsym(library, is_number ? "ot_transport_mpi_number" : "ot_transport_mpi");
    ot_transport_mpi_number_function of_number;
    ot_transport_mpi_function of_world;
    ot_status st;

    if (!symbol)
        return ot__error(OT_ERR_UNSUPPORTED, "%s: is no plugin for MPI%s", path,
                         is_number ? ", or that of an earlier version" : "");
    if (is_number) {
        memcpy(&of_number, &symbol, sizeof of_number);
        st = of_number(OT_TRANSPORT_ABI, *options->mpi_comm, options->mpi_library, transport,
                       message, sizeof message);
    } else {
        memcpy(&of_world, &symbol, sizeof of_world);
        st = of_world(OT_TRANSPORT_ABI, NULL, transport, message, sizeof message);
    }
    return st == OT_OK ? OT_OK : ot__error(st, "%s: %s", path, message);
}

// Nothing here takes memory of ot__alloc: a rank that fails now leaves the others waiting.
ot_status ot__plugin_open(const ot_comm_options *options, ot_transport *transport)
{
    const launch l = find_launch();
    const char *path = NULL;
    char why[128];
    void *library = load_plugin(&path);
    ot_status st;

    describe_launch(&l, why, sizeof why);
    if (!library)
        return ot__error(OT_ERR_NOT_FOUND,
                         "%s, and the plugin for MPI cannot be loaded: %s; compile it with mpicc "
                         "(mpi/comm_mpi.c), and name it with OT_COMM_PLUGIN",
                         why, dlerror());
    OT_TRY(start_plugin(library, path, options, transport));
    if (options->mpi_comm != NULL) // perhaps of some of the processes
        return OT_OK;
    st = check_launcher(&l, transport);
    if (st != OT_OK)
        transport->destroy(transport->context);
    return st;
}
