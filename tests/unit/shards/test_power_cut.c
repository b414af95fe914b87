// SPDX-License-Identifier: Apache-2.0
// Power cuts during a save of several ranks: their file calls are recorded with what each rank knew
// of the others', every cut that could have happened is made again in another directory, with and
// without what was not synchronised, and a checkpoint is read from there.
#include <fcntl.h>

#include "base/file_calls.h"
#include "shards_fixture.h"

enum { CUT_RANKS = 3, EVENTS_MAX = 600, MESSAGES_MAX = 20000, WAITS_MAX = 256 };

// ---- who knew what: clocks of events, by the messages between ranks ----

typedef struct clocks {
    int n[CUT_RANKS]; // events of each rank
} clocks;

typedef struct message {
    int from, to, tag;
    bool is_taken;
    clocks clock;
} message;

typedef struct waiting {
    const ot_request *request;
    int from, tag;
} waiting;

typedef struct recorded {
    ot__file_event event; // with copies of its names and bytes
    int rank, number;     // among those of its rank
    clocks clock;
} recorded;

static struct {
    pthread_mutex_t mutex;
    int n_ranks;
    clocks clock[CUT_RANKS]; // of each rank, now
    message messages[MESSAGES_MAX];
    int n_messages;
    waiting waits[CUT_RANKS][WAITS_MAX];
    int n_waits[CUT_RANKS];
    recorded events[EVENTS_MAX];
    int n_events;
    ot_transport inner[CUT_RANKS];
} world = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static ot_status send_with_clock(void *context, int to, int tag, const void *bytes, size_t n_bytes,
                                 ot_request *out)
{
    const ot_transport *inner = context;

    pthread_mutex_lock(&world.mutex);
    if (world.n_messages < MESSAGES_MAX)
        world.messages[world.n_messages++] =
            (message){inner->rank, to, tag, false, world.clock[inner->rank]};
    pthread_mutex_unlock(&world.mutex);
    return inner->send(inner->context, to, tag, bytes, n_bytes, out);
}

static ot_status receive_with_clock(void *context, int from, int tag, void *bytes, size_t n_bytes,
                                    ot_request *out)
{
    const ot_transport *inner = context;
    int *n = &world.n_waits[inner->rank];

    if (*n < WAITS_MAX)
        world.waits[inner->rank][(*n)++] = (waiting){out, from, tag};
    return inner->receive(inner->context, from, tag, bytes, n_bytes, out);
}

// The oldest message that has not been taken is the one that arrived.
static void take_message(int rank, const waiting *w)
{
    clocks *own = &world.clock[rank];

    for (int i = 0; i < world.n_messages; i++) {
        message *m = &world.messages[i];

        if (m->is_taken || m->from != w->from || m->to != rank || m->tag != w->tag)
            continue;
        m->is_taken = true;
        for (int r = 0; r < CUT_RANKS; r++)
            own->n[r] = OT_MAX(own->n[r], m->clock.n[r]);
        return;
    }
}

// What is not done may be written to by another rank: the transport alone looks at it.
static void end_wait(int rank, const ot_request *request)
{
    int n_left = 0;

    pthread_mutex_lock(&world.mutex);
    for (int i = 0; i < world.n_waits[rank]; i++) {
        const waiting *w = &world.waits[rank][i];

        if (w->request == request)
            take_message(rank, w);
        else
            world.waits[rank][n_left++] = *w;
    }
    world.n_waits[rank] = n_left;
    pthread_mutex_unlock(&world.mutex);
}

static ot_status test_with_clock(void *context, ot_request *requests, int n, int *n_done)
{
    const ot_transport *inner = context;

    *n_done = 0;
    for (int i = 0; i < n; i++) {
        int is_done;

        OT_TRY(inner->test(inner->context, &requests[i], 1, &is_done));
        if (is_done)
            end_wait(inner->rank, &requests[i]);
        *n_done += is_done;
    }
    return OT_OK;
}

static void cancel_with_clock(void *context, ot_request *requests, int n)
{
    const ot_transport *inner = context;

    inner->cancel(inner->context, requests, n);
}

static const char *message_with_clock(void *context)
{
    const ot_transport *inner = context;

    return inner->message(inner->context);
}

static void destroy_with_clock(void *context)
{
    const ot_transport *inner = context;

    inner->destroy(inner->context);
}

static void record_event(void *context, const ot__file_event *event)
{
    const int rank = *(const int *)context;
    recorded *own;

    pthread_mutex_lock(&world.mutex);
    if (world.n_events < EVENTS_MAX) {
        own = &world.events[world.n_events++];
        own->event = *event;
        own->event.path = event->path != NULL ? strdup(event->path) : NULL;
        own->event.to = event->to != NULL ? strdup(event->to) : NULL;
        own->event.bytes = malloc(event->n_bytes + 1);
        if (event->n_bytes > 0)
            memcpy((void *)(uintptr_t)own->event.bytes, event->bytes, event->n_bytes);
        own->rank = rank;
        own->number = world.clock[rank].n[rank]++;
        own->clock = world.clock[rank];
    }
    pthread_mutex_unlock(&world.mutex);
}

// How saves are made.
typedef struct way {
    call call;
    ot_status (*save)(ot_comm *comm, const call *c);
    bool is_in_a_row; // step after step, `latest` and no other is kept; else one place is replaced
    bool has_no_exchange;
} way;

static void record_rank(ot_comm *comm, void *context)
{
    const way *w = context;
    int rank = ot_comm_rank(comm);

    ot__file_no_exchange(w->has_no_exchange);
    ot__file_log_to(record_event, &rank);
    check_status(&w->call, w->save(comm, &w->call));
    ot__file_log_to(NULL, NULL);
    ot__file_no_exchange(false);
}

static void run_recorded(int n, way *w)
{
    static rank_thread ranks[CUT_RANKS];
    ot_transport wrapped[CUT_RANKS];

    world.n_messages = 0;
    assert_int_equal(ot__threads_open(n, NULL, world.inner), OT_OK);
    for (int i = 0; i < n; i++) {
        wrapped[i] = world.inner[i];
        wrapped[i].context = &world.inner[i];
        wrapped[i].send = send_with_clock;
        wrapped[i].receive = receive_with_clock;
        wrapped[i].test = test_with_clock;
        wrapped[i].cancel = cancel_with_clock;
        wrapped[i].message = message_with_clock;
        wrapped[i].destroy = destroy_with_clock;
        ranks[i] = (rank_thread){
            .transport = wrapped[i], .timeout = rank_timeout, .work = record_rank, .context = w};
        assert_int_equal(pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i]), 0);
    }
    for (int i = 0; i < n; i++)
        pthread_join(ranks[i].thread, NULL);
    for (int i = 0; i < n; i++)
        if (ranks[i].finding[0] != '\0')
            fail_msg("rank %d of %d: %s", i, n, ranks[i].finding);
    assert_in_range(world.n_events, 1, EVENTS_MAX - 1);
    assert_in_range(world.n_messages, 1, MESSAGES_MAX - 1);
}

// ---- a disk ----

enum { NODES_MAX = 256, ENTRIES_MAX = 32, FDS_MAX = 1024 };

typedef struct entry {
    char name[80];
    int node;
} entry;

typedef struct entries {
    entry list[ENTRIES_MAX];
    int n;
} entries;

typedef struct node {
    bool is_directory;
    entries now, durable;
    ot__buf bytes;
    size_t synced;
} node;

static struct {
    const char *root;
    node nodes[NODES_MAX];
    int n_nodes;
    int fds[CUT_RANKS][FDS_MAX];
} disk;

static int *find_name(entries *in, const char *name)
{
    for (int i = 0; i < in->n; i++)
        if (strcmp(in->list[i].name, name) == 0)
            return &in->list[i].node;
    return NULL;
}

static void put_name(entries *in, const char *name, int number)
{
    int *found = find_name(in, name);

    if (found == NULL) {
        assert_in_range(in->n, 0, ENTRIES_MAX - 1);
        snprintf(in->list[in->n].name, sizeof in->list[in->n].name, "%s", name);
        found = &in->list[in->n++].node;
    }
    *found = number;
}

static void drop_name(entries *in, const char *name)
{
    for (int i = 0; i < in->n; i++)
        if (strcmp(in->list[i].name, name) == 0) {
            in->list[i] = in->list[--in->n];
            return;
        }
    fail_msg("'%s' is not there", name);
}

// The directory that a path is in, and its last name.
static entries *parent_of(const char *path, const char **name)
{
    const size_t n = strlen(disk.root);
    const char *slash;
    int at = 0;

    assert_memory_equal(path, disk.root, n);
    for (path += n + 1; (slash = strchr(path, '/')) != NULL; path = slash + 1) {
        char part[80];
        int *found;

        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        found = find_name(&disk.nodes[at].now, part);
        assert_non_null(found);
        at = *found;
    }
    *name = path;
    return &disk.nodes[at].now;
}

static int new_node(bool is_directory)
{
    assert_in_range(disk.n_nodes, 0, NODES_MAX - 1);
    disk.nodes[disk.n_nodes] = (node){.is_directory = is_directory};
    return disk.n_nodes++;
}

static int node_at(const char *path)
{
    const char *name;
    entries *in;
    int *found;

    if (strcmp(path, disk.root) == 0)
        return 0;
    in = parent_of(path, &name);
    found = find_name(in, name);
    return found != NULL ? *found : -1;
}

static void do_event(const recorded *r)
{
    const ot__file_event *e = &r->event;
    const char *name = NULL, *to_name;
    entries *in =
        e->path != NULL && strcmp(e->path, disk.root) != 0 ? parent_of(e->path, &name) : NULL;
    entries *to;
    node *n;
    int number;

    switch (e->call) {
    case OT_FILE_CALL_MKDIR:
        put_name(in, name, new_node(true));
        break;
    case OT_FILE_CALL_OPEN:
        number = node_at(e->path);
        if (number < 0) {
            number = new_node(false);
            put_name(in, name, number);
        }
        disk.fds[r->rank][e->fd] = number;
        break;
    case OT_FILE_CALL_WRITE:
        ot__buf_append(&disk.nodes[disk.fds[r->rank][e->fd]].bytes, e->bytes, e->n_bytes);
        break;
    case OT_FILE_CALL_SYNC:
        n = &disk.nodes[disk.fds[r->rank][e->fd]];
        n->durable = n->now;
        n->synced = n->bytes.length;
        break;
    case OT_FILE_CALL_RENAME:
        to = parent_of(e->to, &to_name);
        number = node_at(e->path);
        drop_name(in, name);
        put_name(to, to_name, number);
        break;
    case OT_FILE_CALL_EXCHANGE:
        to = parent_of(e->to, &to_name);
        number = node_at(e->path);
        put_name(in, name, node_at(e->to));
        put_name(to, to_name, number);
        break;
    case OT_FILE_CALL_REMOVE:
    case OT_FILE_CALL_RMDIR:
        drop_name(in, name);
        break;
    default:
        break;
    }
}

// What of the things that were not synchronised is there afterwards.
typedef struct kept {
    bool names, inner_names, bytes; // in the outermost directory, in the others, of files
} kept;

static void write_node(const node *n, const char *path, kept k, bool is_root)
{
    const entries *in = (is_root ? k.names : k.inner_names) ? &n->now : &n->durable;
    const size_t n_bytes = k.bytes ? n->bytes.length : n->synced;
    FILE *out;

    if (n->is_directory) {
        assert_int_equal(mkdir(path, 0777), 0);
        for (int i = 0; i < in->n; i++) {
            char inner[PATH_LENGTH_MAX];

            snprintf(inner, sizeof inner, "%.400s/%s", path, in->list[i].name);
            write_node(&disk.nodes[in->list[i].node], inner, k, false);
        }
        return;
    }
    out = fopen(path, "wb");
    assert_non_null(out);
    if (n_bytes > 0)
        assert_int_equal(fwrite(n->bytes.data, 1, n_bytes, out), n_bytes);
    fclose(out);
}

// The events of a cut, in the order in which they were recorded.
static void make_disk(const clocks *cut)
{
    disk.n_nodes = 0;
    (void)new_node(true);
    for (int i = 0; i < world.n_events; i++)
        if (world.events[i].number < cut->n[world.events[i].rank])
            do_event(&world.events[i]);
}

static void forget_disk(void)
{
    for (int i = 0; i < disk.n_nodes; i++)
        ot__buf_deinit(&disk.nodes[i].bytes);
}

// ---- cuts ----

// Nobody has done what another's later event had to wait for: no event of the cut knows of one
// that is not in it.
static bool could_have_been(const clocks *cut)
{
    for (int i = 0; i < world.n_events; i++) {
        const recorded *e = &world.events[i];

        if (e->number >= cut->n[e->rank])
            continue;
        for (int r = 0; r < CUT_RANKS; r++)
            if (e->clock.n[r] > cut->n[r])
                return false;
    }
    return true;
}

// The newer one is there, or the older one; without an older one perhaps none.
static void expect_one(const char *path, bool has_older)
{
    ot_shards_info info = OT_SHARDS_INFO_INIT;
    ot_shards_reader *reader;
    call c = CALL_INIT;
    const ot_status st = ot_shards_open(path, &reader);

    if (st == OT_ERR_NOT_FOUND && !has_older)
        return;
    if (st != OT_OK || ot_shards_reader_verify(reader) != OT_OK)
        fail_msg("%s", ot_error_message());
    assert_int_equal(ot_shards_reader_info(reader, &info), OT_OK);
    assert_in_range(info.step, has_older ? 1 : 2, 2);
    ot_shards_reader_destroy(reader);
    c.path = path;
    c.add = info.step;
    assert_int_equal(load_call(NULL, &c), OT_OK);
    expect_no_finding();
}

static void make_cut(const clocks *cut, const char *to, const char *name, bool has_older)
{
    make_disk(cut);
    for (int k = 0; k < 8; k++) {
        const kept what = {(k & 1) != 0, (k & 2) != 0, (k & 4) != 0};
        char path[PATH_LENGTH_MAX];

        remove_below(to);
        write_node(&disk.nodes[0], to, what, true);
        snprintf(path, sizeof path, "%.400s%s", to, name);
        expect_one(path, has_older);
    }
    forget_disk();
}

// All cuts from `first` on.
static int make_cuts(const clocks *first, const char *to, const char *name, bool has_older)
{
    const clocks last = {{world.clock[0].n[0], world.clock[1].n[1], world.clock[2].n[2]}};
    clocks cut;
    int n = 0;

    for (cut.n[0] = first->n[0]; cut.n[0] <= last.n[0]; cut.n[0]++)
        for (cut.n[1] = first->n[1]; cut.n[1] <= last.n[1]; cut.n[1]++)
            for (cut.n[2] = first->n[2]; cut.n[2] <= last.n[2]; cut.n[2]++)
                if (could_have_been(&cut)) {
                    make_cut(&cut, to, name, has_older);
                    n++;
                }
    return n;
}

static void cut_everywhere(void **state, int n_ranks, bool has_older, way w)
{
    char root[PATH_LENGTH_MAX], path[PATH_LENGTH_MAX], to[PATH_LENGTH_MAX];
    clocks first = {{0}};

    snprintf(root, sizeof root, "%s/disk", (const char *)*state);
    snprintf(to, sizeof to, "%s/copy", (const char *)*state);
    disk.root = root;
    memset(world.clock, 0, sizeof world.clock);
    world.n_events = 0;
    assert_int_equal(mkdir(root, 0777), 0);
    w.call.path = path;
    w.call.options = (ot_shards_save_options)OT_SHARDS_SAVE_OPTIONS_INIT;
    w.call.options.replaces = 1;
    w.call.options.sets_latest = w.call.options.n_kept = w.is_in_a_row;
    w.save = w.save != NULL ? w.save : save_call;
    for (w.call.add = has_older ? 1 : 2; w.call.add <= 2; w.call.add++) {
        for (int r = 0; r < CUT_RANKS; r++)
            first.n[r] = world.clock[r].n[r];
        snprintf(path, sizeof path, w.is_in_a_row ? "%.400s/step-%d" : "%.400s/a", root,
                 (int)w.call.add);
        w.call.how = w.call.add == 1 ? SPREAD_REPLICATED : SPREAD_ROWS;
        run_recorded(n_ranks, &w);
    }
    // Of saves in a row the folder is read, by its file `latest`.
    assert_true(make_cuts(&first, to, w.is_in_a_row ? "" : "/a", has_older) > 30);
    for (int i = 0; i < world.n_events; i++) {
        free((void *)(uintptr_t)world.events[i].event.path);
        free((void *)(uintptr_t)world.events[i].event.to);
        free((void *)(uintptr_t)world.events[i].event.bytes);
    }
}

static void the_older_or_the_new_one_is_there(void **state)
{
    cut_everywhere(state, 2, true, (way){.call = CALL_INIT});
}

static void a_new_one_is_there_whole_or_not_at_all(void **state)
{
    cut_everywhere(state, 2, false, (way){.call = CALL_INIT});
}

static void two_renames_lose_nothing(void **state)
{
    cut_everywhere(state, 2, true, (way){.call = CALL_INIT, .has_no_exchange = true});
}

static void three_ranks_lose_nothing(void **state)
{
    cut_everywhere(state, 3, true, (way){.call = CALL_INIT});
}

// The calls of a save that nobody waits for are those of one that is waited for, in their order.
static void jobs_in_a_row_lose_nothing(void **state)
{
    cut_everywhere(state, 2, true,
                   (way){.call = CALL_INIT, .save = save_by_job_call, .is_in_a_row = true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SHARDS_TEST(the_older_or_the_new_one_is_there),
        SHARDS_TEST(a_new_one_is_there_whole_or_not_at_all),
        SHARDS_TEST(two_renames_lose_nothing),
        SHARDS_TEST(three_ranks_lose_nothing),
        SHARDS_TEST(jobs_in_a_row_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
