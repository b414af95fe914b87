// SPDX-License-Identifier: Apache-2.0
// CSV as RFC 4180: quoted cells may hold separators, line ends and doubled quotes. One pass finds
// the rows and checks their width; cells are parsed when a batch wants them.
#include <string.h>

#include "data/data.h"

enum { MAX_COLUMNS = 1 << 20 };

#define MAX_ROW ((size_t)1 << 28) // bytes; longer ones have a quote that is not closed

// Bytes that hold a row, or begin with one.
typedef struct span {
    const char *text;
    size_t size;
} span;

// What one row looks like.
typedef struct row_scan {
    size_t next;  // where the next row starts
    bool is_open; // it goes on to the end of what there is
    int n_cells;
    int64_t n_lines;   // more than one when quoted cells hold line ends
    const char *fault; // what is wrong with a cell; NULL: nothing
    int fault_cell;
} row_scan;

// A cell in quotes from the byte behind the first: ends at the separator or line end behind it.
static size_t scan_quoted(span from, char separator, size_t at, ot__cell *cell, row_scan *scan)
{
    const char *text = from.text;
    const char *fault = NULL;
    size_t end = at;

    while (end < from.size && (text[end] != '"' || (end + 1 < from.size && text[end + 1] == '"'))) {
        scan->n_lines += text[end] == '\n';
        end += text[end] == '"' ? 2 : 1;
    }
    *cell = (ot__cell){.text = text + at, .length = OT_MIN(end, from.size) - at, .is_quoted = true};
    if (end >= from.size)
        fault = "has a quote that is not closed";
    for (end++; end < from.size && text[end] != separator && text[end] != '\n'; end++)
        if (text[end] != ' ' && text[end] != '\r')
            fault = "has text after its closing quote";
    if (fault && !scan->fault) {
        scan->fault = fault;
        scan->fault_cell = scan->n_cells;
    }
    return OT_MIN(end, from.size);
}

static size_t scan_plain(span from, char separator, size_t at, ot__cell *cell)
{
    const char *text = from.text;
    size_t end = at;

    while (end < from.size && text[end] != separator && text[end] != '\n')
        end++;
    *cell = (ot__cell){.text = text + at, .length = end - at};
    if (cell->length > 0 && (end == from.size || text[end] == '\n') && text[end - 1] == '\r')
        cell->length--;
    return end;
}

// One row: counts its cells and notes as many as there is room for.
static inline row_scan scan_row(span from, char separator, ot__cell *cells, int max_cells)
{
    row_scan scan = {.n_lines = 1};
    size_t at = 0;
    ot__cell unwanted;

    for (;;) {
        ot__cell *cell = scan.n_cells < max_cells ? &cells[scan.n_cells] : &unwanted;
        size_t end = at < from.size && from.text[at] == '"'
                         ? scan_quoted(from, separator, at + 1, cell, &scan)
                         : scan_plain(from, separator, at, cell);

        scan.n_cells++;
        at = end + 1;
        scan.is_open = end >= from.size;
        if (scan.is_open || from.text[end] == '\n')
            break;
    }
    scan.next = OT_MIN(at, from.size);
    return scan;
}

static span span_at(const ot__window *window, uint64_t offset)
{
    const size_t before = (size_t)(offset - window->start);

    return (span){(const char *)window->data + before, window->n_bytes - before};
}

ot_status ot__csv_row(const ot__source *source, int64_t row, ot__window *window, ot__cell *cells)
{
    const uint64_t start = source->row_start[row];
    const uint64_t end = row + 1 < source->rows ? source->row_start[row + 1] : source->rows_end;
    span from;
    row_scan scan;

    OT_TRY(ot__window_move_to_row(window, source, row, start, (size_t)(end - start)));
    from = span_at(window, start);
    from.size = (size_t)(end - start);
    scan = scan_row(from, source->separator, cells, source->n_columns);
    if (scan.n_cells == source->n_columns && scan.next == from.size)
        return OT_OK;
    return ot__error(OT_ERR_FORMAT,
                     "%s: row %" PRId64 " is not what it was when the file was opened: it has %d "
                     "columns, expected %d",
                     source->path, row + 1, scan.n_cells, source->n_columns);
}

ot_status ot__csv_line(const ot__source *source, int64_t row, ot__window *window, int64_t *line)
{
    const uint64_t end = source->row_start[row];
    uint64_t at = source->row_start[0];

    *line = source->first_line;
    while (at < end) {
        span from;

        OT_TRY(ot__window_move_to_row(window, source, row, at, 1));
        from = span_at(window, at);
        from.size = (size_t)OT_MIN((uint64_t)from.size, end - at);
        for (size_t i = 0; i < from.size; i++)
            *line += from.text[i] == '\n';
        at += from.size;
    }
    return OT_OK;
}

bool ot__cell_is_empty(const ot__cell *cell)
{
    for (size_t i = 0; i < cell->length; i++)
        if (cell->text[i] != ' ' && cell->text[i] != '\t')
            return false;
    return true;
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
static char find_separator(span from)
{
    static const char candidates[] = {',', ';', '\t'};
    int64_t best_count = 0;
    char best = ',';

    for (size_t k = 0; k < OT_COUNT(candidates); k++) {
        int64_t count = 0;
        for (size_t i = 0; i < from.size && from.text[i] != '\n'; i++)
            count += from.text[i] == candidates[k];
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

    for (int i = 0; i < n; i++) {
        if (cells[i].length > 0 && ot__cell_is_numeric(&cells[i]))
            return false;
        has_text = has_text || cells[i].length > 0;
    }
    return has_text;
}

// ---- where the rows start ----

enum { INDEX_CHUNK = 1 << 20 }; // offsets kept in memory; more go to a temporary file

typedef struct row_index {
    uint64_t *chunk;
    int count, capacity; // of the chunk
    ot__spill spill;     // fd below 0: not needed yet
} row_index;

static ot_status index_flush(row_index *index, const ot__source *source,
                             const ot_dataset_options *options)
{
    if (index->spill.fd < 0)
        OT_TRY(ot__spill_open(&index->spill, source, options));
    OT_TRY(
        ot__spill_write(&index->spill, index->chunk, (size_t)index->count * sizeof(*index->chunk)));
    index->count = 0;
    return OT_OK;
}

static ot_status index_add(row_index *index, const ot__source *source,
                           const ot_dataset_options *options, uint64_t start)
{
    if (index->count == INDEX_CHUNK)
        OT_TRY(index_flush(index, source, options));
    OT_TRY(
        ot__made(ot__grow(&index->chunk, &index->capacity, index->count, sizeof(*index->chunk))));
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

static bool is_empty_line(span from, size_t next)
{
    return from.text[0] == '\n' || (from.text[0] == '\r' && next == 2);
}

// Whether nothing but line ends follows.
static ot_status is_end(const ot__source *source, ot__window *window, uint64_t at, bool *out)
{
    *out = false;
    while (at < source->input.size) {
        span from;

        OT_TRY(ot__window_move(window, source, at, 1));
        from = span_at(window, at);
        for (size_t i = 0; i < from.size; i++)
            if (from.text[i] != '\n' && from.text[i] != '\r')
                return OT_OK;
        at += from.size;
    }
    *out = true;
    return OT_OK;
}

// The row at `at`, all of which comes into the window.
static ot_status csv_find_row(const ot__source *source, ot__window *window, uint64_t at,
                              int64_t line, row_scan *scan)
{
    size_t n = 1;

    for (;;) {
        span from;

        OT_TRY(ot__window_move(window, source, at, n));
        from = span_at(window, at);
        from.size = OT_MIN(from.size, MAX_ROW); // what lies in memory is all seen at once
        *scan = scan_row(from, source->separator, NULL, 0);
        if (!scan->is_open || from.size == source->input.size - at)
            return OT_OK;
        if (from.size == MAX_ROW)
            return ot__error(OT_ERR_FORMAT,
                             "%s: line %" PRId64 " begins a row of more than %zu bytes",
                             source->path, line, MAX_ROW);
        n = (size_t)OT_MIN((uint64_t)from.size * 2, source->input.size - at);
    }
}

// What rows are found with.
typedef struct row_finder {
    row_index index;
    ot__window window;
    uint64_t at;  // where the next row starts
    int64_t line; // its number
} row_finder;

// Notes the next row and goes behind it. Empty lines at the end count as the end.
static ot_status index_row(ot__source *source, row_finder *finder,
                           const ot_dataset_options *options)
{
    row_scan scan;
    span from;
    bool ends = false;

    OT_TRY(csv_find_row(source, &finder->window, finder->at, finder->line, &scan));
    from = span_at(&finder->window, finder->at);
    if (from.text[0] == '\n' || from.text[0] == '\r') {
        OT_TRY(is_end(source, &finder->window, finder->at, &ends));
        if (ends) {
            finder->at = source->input.size;
            return OT_OK;
        }
        OT_TRY(csv_find_row(source, &finder->window, finder->at, finder->line, &scan));
        if (is_empty_line(span_at(&finder->window, finder->at), scan.next))
            return ot__error(OT_ERR_FORMAT, "%s: line %" PRId64 " is empty", source->path,
                             finder->line);
    }
    if (scan.fault)
        return ot__error(OT_ERR_FORMAT, "%s: line %" PRId64 ", column %d %s", source->path,
                         finder->line, scan.fault_cell + 1, scan.fault);
    if (scan.n_cells != source->n_columns)
        return ot__error(OT_ERR_FORMAT, "%s: line %" PRId64 " has %d columns, expected %d",
                         source->path, finder->line, scan.n_cells, source->n_columns);
    OT_TRY(index_add(&finder->index, source, options, finder->at));
    source->rows++;
    finder->line += scan.n_lines;
    finder->at += scan.next;
    source->rows_end = finder->at;
    return OT_OK;
}

// Offsets of all rows from `at` on; every row must have the width of the first.
static ot_status index_rows(ot__source *source, const ot_dataset_options *options, uint64_t at,
                            int64_t line)
{
    row_finder finder = {.index.spill.fd = -1, .at = at, .line = line};
    ot_status st = OT_OK;

    source->first_line = line;
    while (st == OT_OK && finder.at < source->input.size)
        st = index_row(source, &finder, options);
    OT_THEN(st, index_finish(&finder.index, source, options));
    ot__spill_close(&finder.index.spill);
    ot__free(finder.index.chunk);
    ot__window_deinit(&finder.window);
    return st;
}

// ---- columns ----

static ot_status add_columns(ot_dataset *dataset, ot__source *source, const ot__cell *names,
                             const ot__cell *first_row)
{
    ot_status st = OT_OK;

    for (int i = 0; st == OT_OK && i < source->n_columns; i++) {
        ot__buf name = {0};
        ot__field field = {.source = source,
                           .column = i,
                           .rows = source->rows,
                           .dtype = ot__cell_is_numeric(&first_row[i]) ? OT_F64 : OT_STRING};

        if (names)
            ot__cell_text(&names[i], &name);
        if (name.length == 0)
            ot__buf_printf(&name, "%d", i);
        st = ot__buf_status(&name);
        OT_THEN(st, ot__dataset_add(dataset, name.data, field));
        ot__buf_deinit(&name);
    }
    return st;
}

// What stands in the first row, and in the first that has data.
typedef struct csv_head {
    ot__window first, data;
    ot__cell *names, *cells;
    uint64_t at;   // where the first row starts
    row_scan scan; // of the first row
} csv_head;

static ot_status add_rows(ot_dataset *dataset, ot__source *source,
                          const ot_dataset_options *options, csv_head *head)
{
    bool has_header = options->csv_header > 0;

    head->names = ot__alloc_zero((size_t)source->n_columns, sizeof(*head->names));
    head->cells = ot__alloc_zero((size_t)source->n_columns, sizeof(*head->cells));
    OT_TRY(ot__made(head->names && head->cells));
    scan_row(span_at(&head->first, head->at), source->separator, head->names, source->n_columns);
    if (options->csv_header < 0)
        has_header = looks_like_names(head->names, source->n_columns);
    if (has_header)
        OT_TRY(index_rows(source, options, head->at + head->scan.next, 1 + head->scan.n_lines));
    else
        OT_TRY(index_rows(source, options, head->at, 1));
    if (source->rows == 0)
        return ot__error(OT_ERR_FORMAT, "%s: has no rows%s", source->path,
                         has_header ? " after its header" : "");
    OT_TRY(ot__csv_row(source, 0, &head->data, head->cells));
    return add_columns(dataset, source, has_header ? head->names : NULL, head->cells);
}

// The separator is found in the first line, all of which comes into the window; the first row may
// have more of them.
static ot_status find_first_row(ot__source *source, const ot_dataset_options *options,
                                csv_head *head)
{
    // A separator that is in no text makes the row end where the line does, but for its quotes.
    source->separator = '\n';
    OT_TRY(csv_find_row(source, &head->first, head->at, 1, &head->scan));
    source->separator = options->csv_separator ? options->csv_separator
                                               : find_separator(span_at(&head->first, head->at));
    OT_TRY(csv_find_row(source, &head->first, head->at, 1, &head->scan));
    if (head->scan.fault)
        return ot__error(OT_ERR_FORMAT, "%s: line 1, column %d %s", source->path,
                         head->scan.fault_cell + 1, head->scan.fault);
    source->n_columns = head->scan.n_cells;
    if (source->n_columns > MAX_COLUMNS)
        return ot__error(OT_ERR_UNSUPPORTED, "%s: has %d columns, more than %d", source->path,
                         source->n_columns, MAX_COLUMNS);
    return OT_OK;
}

ot_status ot__csv_add(ot_dataset *dataset, ot__source *source, const ot_dataset_options *options)
{
    csv_head head = {.at = 0};
    uint8_t mark[3] = {0};
    ot_status st;

    OT_TRY(ot__file_input_read(&source->input, source->path, 0, mark,
                               (size_t)OT_MIN(source->input.size, (uint64_t)sizeof(mark))));
    if (memcmp(mark, "\xef\xbb\xbf", 3) == 0)
        head.at = 3; // byte order mark
    if (head.at >= source->input.size)
        return ot__error(OT_ERR_FORMAT, "%s: is empty", source->path);
    st = find_first_row(source, options, &head);
    OT_THEN(st, add_rows(dataset, source, options, &head));
    ot__window_deinit(&head.first);
    ot__window_deinit(&head.data);
    ot__free(head.names);
    ot__free(head.cells);
    return st;
}
