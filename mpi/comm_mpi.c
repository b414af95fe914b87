// SPDX-License-Identifier: Apache-2.0
// Messages by MPI: the plugin libonnxtrain_mpi.so. It needs no other file of the library:
//   mpicc -O2 -fPIC -shared -I include mpi/comm_mpi.c -o libonnxtrain_mpi.so
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnxtrain/comm_mpi.h"

typedef struct mpi_context {
    MPI_Comm comm;
    char name[MPI_MAX_LIBRARY_VERSION_STRING], message[MPI_MAX_ERROR_STRING];
    int is_lost; // messages were given up, so that nothing that is collective can end
} mpi_context;

static int n_open; // transports, and those that were lost

// ---- messages ----

enum { HANDLE_WORD, STATE_WORD }; // of a request
_Static_assert(sizeof(MPI_Request) <= sizeof(uint64_t), "an MPI_Request lies in a word");

static ot_status mpi_status(mpi_context *c, int code)
{
    int length = 0;

    if (code == MPI_SUCCESS)
        return OT_OK;
    if (MPI_Error_string(code, c->message, &length) != MPI_SUCCESS)
        snprintf(c->message, sizeof c->message, "error %d", code);
    return OT_ERR_IO;
}

static void put_handle(ot_request *out, MPI_Request handle)
{
    memset(out, 0, sizeof *out);
    memcpy(&out->word[HANDLE_WORD], &handle, sizeof handle);
    out->word[STATE_WORD] = 1;
}

static ot_status mpi_send(void *context, int to, int tag, const void *bytes, size_t n_bytes,
                          ot_request *out)
{
    mpi_context *c = context;
    MPI_Request handle;
    const int code = MPI_Isend(bytes, (int)n_bytes, MPI_BYTE, to, tag, c->comm, &handle);

    if (code == MPI_SUCCESS)
        put_handle(out, handle);
    return mpi_status(c, code);
}

static ot_status mpi_receive(void *context, int from, int tag, void *bytes, size_t n_bytes,
                             ot_request *out)
{
    mpi_context *c = context;
    MPI_Request handle;
    const int code = MPI_Irecv(bytes, (int)n_bytes, MPI_BYTE, from, tag, c->comm, &handle);

    if (code == MPI_SUCCESS)
        put_handle(out, handle);
    return mpi_status(c, code);
}

enum { TESTED_AT_ONCE = 64 };

// Up to so many; *n_under_way: those that are not done.
static int test_some(ot_request *requests, int n, int *n_under_way)
{
    MPI_Request handles[TESTED_AT_ONCE];
    MPI_Status statuses[TESTED_AT_ONCE];
    int place[TESTED_AT_ONCE], done[TESTED_AT_ONCE], n_handles = 0, n_done = 0, code;

    for (int i = 0; i < n; i++)
        if (requests[i].word[STATE_WORD] != 0) {
            memcpy(&handles[n_handles], &requests[i].word[HANDLE_WORD], sizeof handles[0]);
            place[n_handles++] = i;
        }
    *n_under_way += n_handles;
    if (n_handles == 0)
        return MPI_SUCCESS;
    code = MPI_Testsome(n_handles, handles, &n_done, done, statuses);
    if (code != MPI_SUCCESS || n_done == MPI_UNDEFINED)
        return code;
    for (int i = 0; i < n_done; i++)
        memset(&requests[place[done[i]]], 0, sizeof *requests);
    *n_under_way -= n_done;
    return MPI_SUCCESS;
}

static ot_status mpi_test(void *context, ot_request *requests, int n, int *n_done)
{
    int n_under_way = 0, code = MPI_SUCCESS;

    for (int at = 0; at < n && code == MPI_SUCCESS; at += TESTED_AT_ONCE)
        code = test_some(requests + at, n - at < TESTED_AT_ONCE ? n - at : TESTED_AT_ONCE,
                         &n_under_way);
    *n_done = n - n_under_way;
    return mpi_status(context, code);
}

static void mpi_cancel(void *context, ot_request *requests, int n)
{
    for (int i = 0; i < n; i++)
        if (requests[i].word[STATE_WORD] != 0) {
            MPI_Request handle;

            memcpy(&handle, &requests[i].word[HANDLE_WORD], sizeof handle);
            (void)MPI_Cancel(&handle);
            (void)MPI_Request_free(&handle);
            memset(&requests[i], 0, sizeof *requests);
            ((mpi_context *)context)->is_lost = 1;
        }
}

static const char *mpi_message(void *context)
{
    return ((mpi_context *)context)->message;
}

static void mpi_abort(void *context, int code)
{
    (void)MPI_Abort(((mpi_context *)context)->comm, code);
}

// ---- beginning and end ----

// A process that leaves others in the middle of something does not wait for them in MPI_Finalize():
// that it ends without is what the launcher takes for a failure.
static void finalize_at_exit(void)
{
    int is_finalized = 1;

    if (MPI_Finalized(&is_finalized) == MPI_SUCCESS && !is_finalized && n_open == 0)
        (void)MPI_Finalize();
}

static void mpi_destroy(void *context)
{
    mpi_context *c = context;

    int is_finalized = 1;

    if (c->is_lost)
        return; // what is under way may still write there
    if (MPI_Finalized(&is_finalized) == MPI_SUCCESS && !is_finalized)
        (void)MPI_Comm_free(&c->comm);
    free(c);
    n_open--;
}

// What is wrong with the state of MPI in this process; NULL: nothing.
static const char *start_mpi(void)
{
    int is_initialized = 0, is_finalized = 0, level = MPI_THREAD_SINGLE, is_main = 0;

    if (MPI_Finalized(&is_finalized) != MPI_SUCCESS || is_finalized)
        return "MPI is finalised already, and starts only once in a process";
    if (MPI_Initialized(&is_initialized) != MPI_SUCCESS)
        return "MPI does not answer";
    if (!is_initialized) {
        if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS)
            return "MPI does not start";
        (void)atexit(finalize_at_exit);
    }
    if (MPI_Query_thread(&level) != MPI_SUCCESS || level < MPI_THREAD_FUNNELED)
        return "MPI was initialised for programs without threads: call MPI_Init_thread() with "
               "MPI_THREAD_FUNNELED";
    if (MPI_Is_thread_main(&is_main) != MPI_SUCCESS || (!is_main && level < MPI_THREAD_MULTIPLE))
        return "MPI was initialised by another thread, which must make the communicator";
    return NULL;
}

// "Open MPI v4.1.4", "MPICH Version: 4.0.2": the first line, up to a comma.
static void shorten(char name[MPI_MAX_LIBRARY_VERSION_STRING])
{
    name[strcspn(name, ",\n")] = '\0';
    for (char *tab = strchr(name, '\t'); tab; tab = strchr(tab, '\t'))
        *tab = ' ';
}

static void read_name(char name[MPI_MAX_LIBRARY_VERSION_STRING])
{
    int length = 0;

    if (MPI_Get_library_version(name, &length) != MPI_SUCCESS)
        snprintf(name, MPI_MAX_LIBRARY_VERSION_STRING, "MPI");
    shorten(name);
}

#ifdef OPEN_MPI
static const char compiled_for[] = "Open MPI";
static const char *const other_families[] = {"MPICH", "MVAPICH", "Intel"};
#else
static const char compiled_for[] = "MPICH or a relative of it";
static const char *const other_families[] = {"Open MPI"};
#endif

// Where the process has loaded another MPI before, for all to see, that one answers.
static int is_shadowed(char *message, size_t n_message)
{
    char name[MPI_MAX_LIBRARY_VERSION_STRING];

    read_name(name);
    for (size_t i = 0; i < sizeof other_families / sizeof other_families[0]; i++)
        if (strncmp(name, other_families[i], strlen(other_families[i])) == 0) {
            snprintf(message, n_message,
                     "the plugin is compiled for %s, and this process has loaded %s: compile it "
                     "with the mpicc of that",
                     compiled_for, name);
            return 1;
        }
    return 0;
}

// A communicator of another library is a number that means nothing here.
static int is_other_library(const char *library, char *message, size_t n_message)
{
    char own[MPI_MAX_LIBRARY_VERSION_STRING], theirs[MPI_MAX_LIBRARY_VERSION_STRING];

    snprintf(theirs, sizeof theirs, "%s", library);
    shorten(theirs);
    read_name(own);
    if (strcmp(own, theirs) == 0)
        return 0;
    snprintf(message, n_message,
             "the communicator is of %s, and the plugin of %s: compile the plugin with the mpicc "
             "of the former",
             theirs, own);
    return 1;
}

// The lowest rank on this machine.
static int find_node(MPI_Comm comm, int rank, int *node)
{
    MPI_Comm machine;
    int code = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &machine);

    if (code != MPI_SUCCESS)
        return code;
    *node = rank;
    code = MPI_Bcast(node, 1, MPI_INT, 0, machine);
    (void)MPI_Comm_free(&machine);
    return code;
}

static int open_world(mpi_context *c, MPI_Comm parent, ot_transport *t)
{
    int *tag_max = NULL, is_set = 0, code = MPI_Comm_dup(parent, &c->comm);

    if (code != MPI_SUCCESS)
        return code;
    code = MPI_Comm_set_errhandler(c->comm, MPI_ERRORS_RETURN);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_rank(c->comm, &t->rank);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_size(c->comm, &t->world_size);
    if (code == MPI_SUCCESS)
        code = find_node(c->comm, t->rank, &t->node);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_max, &is_set);
    if (code == MPI_SUCCESS)
        t->tag_max = is_set ? *tag_max : 32767; // the least that MPI promises
    else
        (void)MPI_Comm_free(&c->comm);
    return code;
}

static int is_other_abi(int abi, char *message, size_t n_message)
{
    if (abi == OT_TRANSPORT_ABI)
        return 0;
    snprintf(message, n_message, "the plugin is of version %d, the library needs %d",
             OT_TRANSPORT_ABI, abi);
    return 1;
}

OT_API ot_status ot_transport_mpi(int abi, const void *communicator, ot_transport *transport,
                                  char *message, size_t n_message)
{
    const MPI_Comm parent = communicator ? *(const MPI_Comm *)communicator : MPI_COMM_WORLD;
    mpi_context *c;
    const char *reason;

    memset(transport, 0, sizeof *transport);
    if (is_other_abi(abi, message, n_message))
        return OT_ERR_UNSUPPORTED;
    if (is_shadowed(message, n_message))
        return OT_ERR_STATE;
    c = calloc(1, sizeof *c);
    if (!c) {
        snprintf(message, n_message, "out of memory: %zu bytes could not be had", sizeof *c);
        return OT_ERR_NO_MEMORY;
    }
    reason = start_mpi();
    if (reason || open_world(c, parent, transport) != MPI_SUCCESS) {
        snprintf(message, n_message, "%s",
                 reason ? reason : "the communicator cannot be duplicated");
        free(c);
        return OT_ERR_STATE;
    }
    read_name(c->name);
    transport->size = sizeof *transport;
    transport->context = c;
    transport->name = c->name;
    transport->send = mpi_send;
    transport->receive = mpi_receive;
    transport->test = mpi_test;
    transport->cancel = mpi_cancel;
    transport->message = mpi_message;
    transport->abort = mpi_abort;
    transport->destroy = mpi_destroy;
    n_open++;
    return OT_OK;
}

OT_API ot_status ot_transport_mpi_number(int abi, int communicator, const char *library,
                                         ot_transport *transport, char *message, size_t n_message)
{
    int is_initialized = 0;
    MPI_Comm parent;

    memset(transport, 0, sizeof *transport);
    if (is_other_abi(abi, message, n_message))
        return OT_ERR_UNSUPPORTED;
    if (is_shadowed(message, n_message) ||
        (library && is_other_library(library, message, n_message)))
        return OT_ERR_STATE;
    if (MPI_Initialized(&is_initialized) != MPI_SUCCESS || !is_initialized) {
        snprintf(message, n_message, "MPI is not initialised, so there is no communicator %d",
                 communicator);
        return OT_ERR_STATE;
    }
    parent = MPI_Comm_f2c(communicator);
    if (parent == MPI_COMM_NULL) {
        snprintf(message, n_message, "the communicator is MPI_COMM_NULL");
        return OT_ERR_INVALID;
    }
    return ot_transport_mpi(abi, &parent, transport, message, n_message);
}
