// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ckpt/dict_stream.h"

typedef struct pipe_bytes {
    ot__buf buf;
    size_t n_read;
} pipe_bytes;

static ot_status put(void *context, const void *bytes, size_t n_bytes)
{
    pipe_bytes *pipe = context;

    ot__buf_append(&pipe->buf, bytes, n_bytes);
    return ot__buf_status(&pipe->buf);
}

static ot_status take(void *context, void *bytes, size_t n_bytes)
{
    pipe_bytes *pipe = context;

    if (n_bytes > pipe->buf.length - pipe->n_read)
        return ot__error(OT_ERR_FORMAT, "the end");
    memcpy(bytes, pipe->buf.data + pipe->n_read, n_bytes);
    pipe->n_read += n_bytes;
    return OT_OK;
}

static void every_failure_arrives_with_its_message(void **state)
{
    (void)state;
    for (int i = OT_OK + 1; i < OT_N_STATUSES; i++) {
        pipe_bytes pipe = {0};
        ot_dict *dict = NULL;

        ot__error((ot_status)i, "message %d", i);
        assert_int_equal(ot__dict_stream_write(NULL, (ot_status)i, put, &pipe), OT_OK);
        ot__error_clear();
        assert_int_equal(ot__dict_stream_read(take, &pipe, &dict), i);
        assert_null(dict);
        assert_int_equal(strtol(ot_error_message() + strlen("message "), NULL, 10), i);
        ot__buf_deinit(&pipe.buf);
    }
}

static void a_status_that_is_not_known_is_refused(void **state)
{
    const uint64_t unknown = OT_N_STATUSES;
    pipe_bytes pipe = {0};
    ot_dict *dict = NULL;

    (void)state;
    assert_int_equal(put(&pipe, &unknown, sizeof unknown), OT_OK);
    assert_int_equal(ot__dict_stream_read(take, &pipe, &dict), OT_ERR_FORMAT);
    assert_non_null(strstr(ot_error_message(), "a status"));
    ot__buf_deinit(&pipe.buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failure_arrives_with_its_message),
        cmocka_unit_test(a_status_that_is_not_known_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
