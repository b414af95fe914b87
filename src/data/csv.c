// CSV as RFC 4180: quoted cells may hold separators, line ends and doubled quotes. One pass finds
// the rows and checks their width; cells are parsed when a batch wants them.
#include <math.h>
#include <string.h>

#include "data/data.h"

enum { MAX_COLUMNS = 1 << 20, NUMBER_MAX = 64 };

// One row from `at`: counts its cells (and, when `cells` is given, notes them); returns where the
// next row starts.
static size_t scan_row(const ot__file_map *map, char separator, size_t at, ot__cell *cells,
                       int *n_cells, int64_t *n_lines)
{
    const char *text = (const char *)map->data;
    int n = 0;

    for (;;) {
        ot__cell cell = {.text = text + at};
        size_t end;

        if (at < map->size && text[at] == '"') {
            end = ++at;
            cell = (ot__cell){.text = text + at, .is_quoted = true};
            while (end < map->size &&
                   (text[end] != '"' || (end + 1 < map->size && text[end + 1] == '"'))) {
                *n_lines += text[end] == '\n';
                end += text[end] == '"' ? 2 : 1;
            }
            end = OT_MIN(end, map->size);
            cell.length = end - at;
            while (end < map->size && text[end] != separator && text[end] != '\n')
                end++;
        } else {
            end = at;
            while (end < map->size && text[end] != separator && text[end] != '\n')
                end++;
            cell.length = end - at;
            if (cell.length > 0 && (end == map->size || text[end] == '\n') && text[end - 1] == '\r')
                cell.length--;
        }
        if (cells)
            cells[n] = cell;
        n++;
        at = end + 1;
        if (end >= map->size || text[end] == '\n')
            break;
    }
    *n_cells = n;
    ++*n_lines;
    return OT_MIN(at, map->size);
}

void ot__csv_row(const ot__source *source, int64_t row, ot__cell *cells)
{
    int n_cells;
    int64_t n_lines = 0;

    scan_row(&source->map, source->separator, (size_t)source->row_start[row], cells, &n_cells,
             &n_lines);
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

static bool has_no_number(const ot__cell *cells, int n)
{
    double value;

    for (int i = 0; i < n; i++)
        if (cells[i].length == 0 || ot__cell_number(&cells[i], &value))
            return false;
    return true;
}

// Offsets of all rows from `at` on; every row must have the width of the first.
static ot_status index_rows(ot__source *source, size_t at, int64_t line)
{
    int64_t capacity = 0;

    source->first_line = line;
    for (;;) {
        int n_cells;
        int64_t n_lines = 0;
        size_t start = at;

        if (source->rows + 1 >= capacity) {
            uint64_t *grown;
            capacity = capacity ? capacity * 2 : 1024;
            grown = ot__realloc(source->row_start, (size_t)capacity * sizeof(*grown));
            if (!grown)
                return OT_ERR_NO_MEMORY;
            source->row_start = grown;
        }
        source->row_start[source->rows] = at;
        if (at >= source->map.size)
            return OT_OK;
        at = scan_row(&source->map, source->separator, at, NULL, &n_cells, &n_lines);
        if (n_cells == 1 && at - start <= 2 && source->n_columns > 1 &&
            (source->map.data[start] == '\n' || source->map.data[start] == '\r')) {
            if (at < source->map.size) // an empty line inside
                return ot__error(OT_ERR_FORMAT, "%s: line %" PRId64 " is empty", source->path,
                                 line);
            source->row_start[source->rows] = start;
            return OT_OK;
        }
        if (n_cells != source->n_columns)
            return ot__error(OT_ERR_FORMAT, "%s: line %" PRId64 " has %d columns, expected %d",
                             source->path, line, n_cells, source->n_columns);
        source->rows++;
        line += n_lines;
    }
}

static ot_status add_columns(ot_dataset *dataset, ot__source *source, const ot__cell *names,
                             const ot__cell *first_row)
{
    for (int i = 0; i < source->n_columns; i++) {
        ot__buf name = {0};
        double value;
        ot__field field = {.source = source,
                           .column = i,
                           .dtype = ot__cell_number(&first_row[i], &value) ? OT_F64 : OT_STRING};

        if (names)
            ot__cell_text(&names[i], &name);
        if (name.length == 0)
            ot__buf_printf(&name, "%d", i);
        OT_TRY(ot__buf_status(&name));
        OT_TRY(ot__dataset_add(dataset, name.data, field, source->rows));
    }
    return OT_OK;
}

ot_status ot__csv_add(ot_dataset *dataset, ot__source *source, const ot_dataset_options *options)
{
    ot__cell *names = NULL, *first_row = NULL;
    int64_t line = 1, n_lines = 0;
    size_t at = 0, second;
    bool has_header;
    ot_status st;

    if (source->map.size >= 3 && memcmp(source->map.data, "\xef\xbb\xbf", 3) == 0)
        at = 3; // byte order mark
    if (at >= source->map.size)
        return ot__error(OT_ERR_FORMAT, "%s: is empty", source->path);
    source->separator =
        options->csv_separator ? options->csv_separator : find_separator(&source->map);
    second = scan_row(&source->map, source->separator, at, NULL, &source->n_columns, &n_lines);
    if (source->n_columns > MAX_COLUMNS)
        return ot__error(OT_ERR_UNSUPPORTED, "%s: has %d columns, more than %d", source->path,
                         source->n_columns, MAX_COLUMNS);
    names = ot__alloc_zero((size_t)source->n_columns, sizeof(*names));
    first_row = ot__alloc_zero((size_t)source->n_columns, sizeof(*first_row));
    st = names && first_row ? OT_OK : OT_ERR_NO_MEMORY;
    if (st == OT_OK) {
        int n_cells;
        int64_t unused = 0;
        scan_row(&source->map, source->separator, at, names, &n_cells, &unused);
        has_header = options->csv_header < 0 ? has_no_number(names, source->n_columns)
                                             : options->csv_header > 0;
        st = index_rows(source, has_header ? second : at, has_header ? line + n_lines : line);
        if (st == OT_OK && source->rows == 0)
            st = ot__error(OT_ERR_FORMAT, "%s: has no rows", source->path);
        if (st == OT_OK) {
            ot__csv_row(source, 0, first_row);
            st = add_columns(dataset, source, has_header ? names : NULL, first_row);
        }
    }
    ot__free(names);
    ot__free(first_row);
    return st;
}
