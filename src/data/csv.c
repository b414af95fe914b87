// SPDX-License-Identifier: Apache-2.0
// CSV as RFC 4180: quoted cells may hold separators, line ends and doubled quotes. One pass finds
// the rows and checks their width; cells are parsed when a batch wants them.
#include <math.h>
#include <string.h>

#include "data/data.h"

enum { MAX_COLUMNS = 1 << 20, NUMBER_MAX = 64 };

// What one row looks like.
typedef struct row_scan {
    size_t next; // where the next row starts
    int n_cells;
    int64_t n_lines;   // more than one when quoted cells hold line ends
    const char *fault; // what is wrong with a cell; NULL: nothing
    int fault_cell;
} row_scan;

// A cell in quotes from the byte behind the first: ends at the separator or line end behind it.
static size_t scan_quoted(const ot__file_map *map, char separator, size_t at, ot__cell *cell,
                          row_scan *scan)
{
    const char *text = (const char *)map->data;
    const char *fault = NULL;
    size_t end = at;

    while (end < map->size && (text[end] != '"' || (end + 1 < map->size && text[end + 1] == '"'))) {
        scan->n_lines += text[end] == '\n';
        end += text[end] == '"' ? 2 : 1;
    }
    *cell = (ot__cell){.text = text + at, .length = OT_MIN(end, map->size) - at, .is_quoted = true};
    if (end >= map->size)
        fault = "has a quote that is not closed";
    for (end++; end < map->size && text[end] != separator && text[end] != '\n'; end++)
        if (text[end] != ' ' && text[end] != '\r')
            fault = "has text behind its closing quote";
    if (fault && !scan->fault) {
        scan->fault = fault;
        scan->fault_cell = scan->n_cells;
    }
    return OT_MIN(end, map->size);
}

static size_t scan_plain(const ot__file_map *map, char separator, size_t at, ot__cell *cell)
{
    const char *text = (const char *)map->data;
    size_t end = at;

    while (end < map->size && text[end] != separator && text[end] != '\n')
        end++;
    *cell = (ot__cell){.text = text + at, .length = end - at};
    if (cell->length > 0 && (end == map->size || text[end] == '\n') && text[end - 1] == '\r')
        cell->length--;
    return end;
}

// One row from `at`: counts its cells and, when `cells` is given, notes them.
static row_scan scan_row(const ot__file_map *map, char separator, size_t at, ot__cell *cells)
{
    row_scan scan = {.n_lines = 1};

    for (;;) {
        ot__cell cell;
        size_t end = at < map->size && map->data[at] == '"'
                         ? scan_quoted(map, separator, at + 1, &cell, &scan)
                         : scan_plain(map, separator, at, &cell);

        if (cells)
            cells[scan.n_cells] = cell;
        scan.n_cells++;
        at = end + 1;
        if (end >= map->size || map->data[end] == '\n')
            break;
    }
    scan.next = OT_MIN(at, map->size);
    return scan;
}

void ot__csv_row(const ot__source *source, int64_t row, ot__cell *cells)
{
    scan_row(&source->map, source->separator, (size_t)source->row_start[row], cells);
}

int64_t ot__csv_line(const ot__source *source, int64_t row)
{
    int64_t line = source->first_line;
    const uint8_t *at = source->map.data + source->row_start[0];
    const uint8_t *end = source->map.data + source->row_start[row];

    for (; at < end; at++)
        line += *at == '\n';
    return line;
}

// Up to 15 digits and a power of ten up to 10^22 are exact in f64, so one operation rounds once.
static bool fast_number(const char *text, size_t length, double *value)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    uint64_t digits = 0;
    int n_digits = 0, n_behind = 0;
    bool negative = false, is_behind = false;
    size_t i = 0;

    if (length > 0 && (text[0] == '-' || text[0] == '+'))
        negative = text[i++] == '-';
    for (; i < length; i++) {
        if (text[i] == '.' && !is_behind) {
            is_behind = true;
        } else if (text[i] >= '0' && text[i] <= '9' && n_digits < 15) {
            digits = digits * 10 + (uint64_t)(text[i] - '0');
            n_digits++;
            n_behind += is_behind;
        } else {
            return false;
        }
    }
    if (n_digits == 0)
        return false;
    *value = (double)digits / powers[n_behind];
    if (negative)
        *value = -*value;
    return true;
}

bool ot__cell_number(const ot__cell *cell, double *value)
{
    const char *text = cell->text;
    size_t length = cell->length;
    char copy[NUMBER_MAX];

    while (length > 0 && (*text == ' ' || *text == '\t')) {
        text++;
        length--;
    }
    while (length > 0 &&
           (text[length - 1] == ' ' || text[length - 1] == '\t' || text[length - 1] == '\r'))
        length--;
    *value = NAN;
    if (length == 0)
        return true;
    if (fast_number(text, length, value))
        return true;
    if (length >= sizeof(copy))
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return ot__parse_float(copy, value);
}

void ot__cell_text(const ot__cell *cell, ot__buf *out)
{
    for (size_t i = 0; i < cell->length; i++) {
        ot__buf_append(out, cell->text + i, 1);
        if (cell->is_quoted && cell->text[i] == '"')
            i++;
    }
}

// The one of , ; tab that the first line has most of.
static char find_separator(const ot__file_map *map)
{
    static const char candidates[] = {',', ';', '\t'};
    int64_t best_count = 0;
    char best = ',';

    for (size_t k = 0; k < OT_COUNT(candidates); k++) {
        int64_t count = 0;
        for (size_t i = 0; i < map->size && map->data[i] != '\n'; i++)
            count += map->data[i] == (uint8_t)candidates[k];
        if (count > best_count) {
            best_count = count;
            best = candidates[k];
        }
    }
    return best;
}

// Of a header, some names may be empty, but none is a number.
static bool looks_like_names(const ot__cell *cells, int n)
{
    bool has_text = false;
    double value;

    for (int i = 0; i < n; i++) {
        if (cells[i].length > 0 && ot__cell_number(&cells[i], &value))
            return false;
        has_text = has_text || cells[i].length > 0;
    }
    return has_text;
}

// ---- where the rows start ----

enum { INDEX_CHUNK = 1 << 20 }; // offsets kept in memory; more go to a temporary file

typedef struct row_index {
    uint64_t *chunk;
    size_t count, capacity; // of the chunk
    ot__spill spill;        // fd below 0: not needed yet
} row_index;

static ot_status index_flush(row_index *index, const ot__source *source,
                             const ot_dataset_options *options)
{
    if (index->spill.fd < 0)
        OT_TRY(ot__spill_open(&index->spill, source->path, options));
    OT_TRY(ot__spill_write(&index->spill, index->chunk, index->count * sizeof(*index->chunk)));
    index->count = 0;
    return OT_OK;
}

static ot_status index_add(row_index *index, const ot__source *source,
                           const ot_dataset_options *options, uint64_t start)
{
    if (index->count == INDEX_CHUNK)
        OT_TRY(index_flush(index, source, options));
    if (index->count == index->capacity) {
        size_t capacity = OT_MAX(index->capacity * 2, (size_t)1024);
        uint64_t *grown = ot__realloc(index->chunk, capacity * sizeof(*grown));
        if (!grown)
            return OT_ERR_NO_MEMORY;
        index->chunk = grown;
        index->capacity = capacity;
    }
    index->chunk[index->count++] = start;
    return OT_OK;
}

// The source takes the offsets over.
static ot_status index_finish(row_index *index, ot__source *source,
                              const ot_dataset_options *options)
{
    if (index->spill.fd < 0) {
        source->own_row_start = index->chunk;
        source->row_start = index->chunk;
        index->chunk = NULL;
        return OT_OK;
    }
    OT_TRY(index_flush(index, source, options));
    OT_TRY(ot__spill_map(&index->spill, &source->row_map));
    source->row_start = (const uint64_t *)(const void *)source->row_map.data;
    return OT_OK;
}

static bool is_empty_line(const ot__source *source, size_t start, size_t next)
{
    const uint8_t *text = source->map.data;

    return text[start] == '\n' || (text[start] == '\r' && next - start == 2);
}

// Notes the row at `*at` and goes behind it; `line` is its number. Empty lines at the end count as
// the end.
static ot_status index_row(ot__source *source, row_index *index, const ot_dataset_options *options,
                           size_t *at, int64_t *line)
{
    const row_scan scan = scan_row(&source->map, source->separator, *at, NULL);
    size_t behind = *at;

    while (behind < source->map.size &&
           (source->map.data[behind] == '\n' || source->map.data[behind] == '\r'))
        behind++;
    if (behind == source->map.size) {
        *at = source->map.size;
        return OT_OK;
    }
    if (is_empty_line(source, *at, scan.next))
        return ot__error(OT_ERR_FORMAT, "%s: line %" PRId64 " is empty", source->path, *line);
    if (scan.fault)
        return ot__error(OT_ERR_FORMAT, "%s: line %" PRId64 ", column %d %s", source->path, *line,
                         scan.fault_cell + 1, scan.fault);
    if (scan.n_cells != source->n_columns)
        return ot__error(OT_ERR_FORMAT, "%s: line %" PRId64 " has %d columns, expected %d",
                         source->path, *line, scan.n_cells, source->n_columns);
    OT_TRY(index_add(index, source, options, *at));
    source->rows++;
    *line += scan.n_lines;
    *at = scan.next;
    return OT_OK;
}

// Offsets of all rows from `at` on; every row must have the width of the first.
static ot_status index_rows(ot__source *source, const ot_dataset_options *options, size_t at,
                            int64_t line)
{
    row_index index = {.spill = {.fd = -1}};
    ot_status st = OT_OK;

    source->first_line = line;
    while (st == OT_OK && at < source->map.size)
        st = index_row(source, &index, options, &at, &line);
    if (st == OT_OK)
        st = index_finish(&index, source, options);
    ot__spill_close(&index.spill);
    ot__free(index.chunk);
    return st;
}

// ---- columns ----

static ot_status add_columns(ot_dataset *dataset, ot__source *source, const ot__cell *names,
                             const ot__cell *first_row)
{
    for (int i = 0; i < source->n_columns; i++) {
        ot__buf name = {0};
        double value;
        ot__field field = {.source = source,
                           .column = i,
                           .rows = source->rows,
                           .dtype = ot__cell_number(&first_row[i], &value) ? OT_F64 : OT_STRING};

        if (names)
            ot__cell_text(&names[i], &name);
        if (name.length == 0)
            ot__buf_printf(&name, "%d", i);
        OT_TRY(ot__buf_status(&name));
        OT_TRY(ot__dataset_add(dataset, name.data, field));
    }
    return OT_OK;
}

// Rows and columns behind the first row, which is scanned already.
static ot_status add_rows(ot_dataset *dataset, ot__source *source,
                          const ot_dataset_options *options, size_t at, const row_scan *first)
{
    ot__cell *names = ot__alloc_zero((size_t)source->n_columns, sizeof(*names));
    ot__cell *first_row = ot__alloc_zero((size_t)source->n_columns, sizeof(*first_row));
    ot_status st = names && first_row ? OT_OK : OT_ERR_NO_MEMORY;
    bool has_header = options->csv_header > 0;

    if (st == OT_OK) {
        scan_row(&source->map, source->separator, at, names);
        if (options->csv_header < 0)
            has_header = looks_like_names(names, source->n_columns);
        st = has_header ? index_rows(source, options, first->next, 1 + first->n_lines)
                        : index_rows(source, options, at, 1);
    }
    if (st == OT_OK && source->rows == 0)
        st = ot__error(OT_ERR_FORMAT, "%s: has no rows%s", source->path,
                       has_header ? " behind its header" : "");
    if (st == OT_OK) {
        ot__csv_row(source, 0, first_row);
        st = add_columns(dataset, source, has_header ? names : NULL, first_row);
    }
    ot__free(names);
    ot__free(first_row);
    return st;
}

ot_status ot__csv_add(ot_dataset *dataset, ot__source *source, const ot_dataset_options *options)
{
    size_t at = 0;
    row_scan first;

    if (source->map.size >= 3 && memcmp(source->map.data, "\xef\xbb\xbf", 3) == 0)
        at = 3; // byte order mark
    if (at >= source->map.size)
        return ot__error(OT_ERR_FORMAT, "%s: is empty", source->path);
    source->separator =
        options->csv_separator ? options->csv_separator : find_separator(&source->map);
    first = scan_row(&source->map, source->separator, at, NULL);
    if (first.fault)
        return ot__error(OT_ERR_FORMAT, "%s: line 1, column %d %s", source->path,
                         first.fault_cell + 1, first.fault);
    source->n_columns = first.n_cells;
    if (source->n_columns > MAX_COLUMNS)
        return ot__error(OT_ERR_UNSUPPORTED, "%s: has %d columns, more than %d", source->path,
                         source->n_columns, MAX_COLUMNS);
    return add_rows(dataset, source, options, at, &first);
}
