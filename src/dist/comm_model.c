// SPDX-License-Identifier: Apache-2.0
// When messages arrive in a network of which two numbers are known.
#include "dist/dist.h"

double ot__network_now(const ot__network *network)
{
    return network->now ? network->now(network->context) : ot__clock_seconds();
}

ot__arrival ot__network_send(const ot__network *network, int from, size_t n_bytes,
                             double *line_free)
{
    const double now = ot__network_now(network), begins = OT_MAX(now, *line_free);
    const double slowness = from == network->slow_rank ? network->slowness : 0.0;
    const ot__arrival arrival = {
        .sent = begins + (double)n_bytes * network->seconds_per_byte,
        .there = begins + (double)n_bytes * network->seconds_per_byte + network->latency + slowness,
    };

    *line_free = arrival.sent;
    return arrival;
}
