// SPDX-License-Identifier: Apache-2.0
// Calls under failing allocations, for programs whose `life` is what their calls work on.
#ifndef TESTS_UNTIL_IT_WORKS_H
#define TESTS_UNTIL_IT_WORKS_H

typedef ot_status (*action)(life *l);

// Fails at the allocations 0, 1, 2 ... of the call until it ends with `expected`; the later ones of
// a long call only here and there. Returns how often it failed.
static inline int until_it_ends(life *l, action act, ot_status expected)
{
    int n_failures = 0;

    for (int64_t n = 0; n < 100000; n += 1 + n / 64) {
        ot_status st;

        ot__alloc_fail_after(n);
        st = act(l);
        ot__alloc_fail_after(-1);
        if (st == expected)
            return n_failures;
        if (st != OT_ERR_NO_MEMORY)
            fail_msg("%s: %s", ot_status_name(st), ot_error_message());
        n_failures++;
    }
    fail_msg("it never ends");
    return -1;
}

static inline int until_it_works(life *l, action act)
{
    return until_it_ends(l, act, OT_OK);
}

#endif
