// SPDX-License-Identifier: Apache-2.0

// Lines whose elements lie one after the other.
static void FN(map_rows)(T *y, const T *x, const ot__line_map *m, int64_t outer)
{
#pragma omp parallel for schedule(static) if (outer * m->to > OT_PAR_MIN)
    for (int64_t i = 0; i < outer; i++) {
        const T *from = x + i * m->from;
        T *to = y + i * m->to;

        for (int64_t o = 0; o < m->to; o++) {
            double sum = m->start[o] == m->start[o + 1] ? m->fill : 0;

            for (int64_t k = m->start[o]; k < m->start[o + 1]; k++)
                sum += m->weight[k] * (double)from[m->index[k]];
            to[o] = (T)sum;
        }
    }
}

static void FN(map_columns)(T *y, const T *x, const ot__line_map *m, int64_t outer, int64_t inner)
{
#pragma omp parallel for schedule(static) if (outer * m->to * inner > OT_PAR_MIN)
    for (int64_t i = 0; i < outer * m->to; i++) {
        const T *from = x + i / m->to * m->from * inner;
        const int64_t o = i % m->to;

        for (int64_t first = 0; first < inner; first += MAP_PIECE) {
            const int64_t n = OT_MIN(inner - first, (int64_t)MAP_PIECE);
            T *to = y + i * inner + first;
            double sum[MAP_PIECE];

            for (int64_t j = 0; j < n; j++)
                sum[j] = m->start[o] == m->start[o + 1] ? m->fill : 0;
            for (int64_t k = m->start[o]; k < m->start[o + 1]; k++) {
                const T *column = from + m->index[k] * inner + first;
                const double weight = m->weight[k];

                for (int64_t j = 0; j < n; j++)
                    sum[j] += weight * (double)column[j];
            }
            for (int64_t j = 0; j < n; j++)
                to[j] = (T)sum[j];
        }
    }
}

void FN(ot__ref_map_lines)(T *y, const T *x, const ot__line_map *map, int64_t outer, int64_t inner)
{
    if (outer == 0 || map->to == 0 || inner == 0)
        return;
    if (inner == 1)
        FN(map_rows)(y, x, map, outer);
    else
        FN(map_columns)(y, x, map, outer, inner);
}
