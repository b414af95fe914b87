// SPDX-License-Identifier: Apache-2.0
// What a file is, by its first bytes: for messages about one that is of another kind than was
// expected.
#include <string.h>

#include "base/base.h"

enum { EXAMINED = 256, MOST_AXES = 8 };

typedef struct file_kind {
    const char *bytes;
    size_t n_bytes, at; // where in the file
    ot__file_kind kind;
    const char *text; // behind "is"
} file_kind;

#define BYTES(text) text, sizeof(text) - 1

static const file_kind kinds[] = {
    {BYTES("ODTC"), 4, OT_FILE_CHECKPOINT, "a checkpoint"},
    {BYTES("ORTM"), 4, OT_FILE_MODEL, "a model in .ort format"},
    {BYTES("TFL3"), 4, OT_FILE_OTHER, "a TensorFlow Lite model"},
    {BYTES("\x93NUMPY"), 0, OT_FILE_DATA, "an .npy array"},
    {BYTES("\x1f\x8b"), 0, OT_FILE_DATA, "a gzip file"},
    {BYTES("\x89HDF\r\n"), 0, OT_FILE_HDF5, "an HDF5 file"},
    {BYTES("PAR1"), 0, OT_FILE_OTHER, "a Parquet file"},
    {BYTES("\x89PNG"), 0, OT_FILE_OTHER, "an image"},
    {BYTES("\xff\xd8\xff"), 0, OT_FILE_OTHER, "an image"},
    {BYTES("\x7f"
           "ELF"),
     0, OT_FILE_OTHER, "a program or library"},
    {BYTES("version https://git-lfs"), 0, OT_FILE_OTHER,
     "a pointer of Git LFS, whose file `git lfs pull` fetches"},
    {BYTES("<!DOCTYPE html"), 0, OT_FILE_OTHER, "an HTML page"},
    {BYTES("<!doctype html"), 0, OT_FILE_OTHER, "an HTML page"},
    {BYTES("<html"), 0, OT_FILE_OTHER, "an HTML page"},
};

static bool file_holds(const uint8_t *data, size_t size, const char *text)
{
    const size_t n = strlen(text);

    for (size_t i = 0; i + n <= size; i++)
        if (memcmp(data + i, text, n) == 0)
            return true;
    return false;
}

// ir_version, then another field of a ModelProto.
static bool is_onnx(const uint8_t *data, size_t size)
{
    return size > 2 && data[0] == 0x08 && data[1] > 0 && data[1] < 0x20 && (data[2] & 7) != 7 &&
           strchr("\x12\x1a\x22\x28\x32\x3a\x42\x72", data[2]) != NULL && data[2] != 0;
}

// Eight bytes of length, then the object of that length.
static bool is_safetensors(const uint8_t *data, size_t size)
{
    uint64_t length = 0;

    if (size < 10)
        return false;
    for (int i = 7; i >= 0; i--)
        length = length << 8 | data[i];
    return length >= 2 && length <= size - 8 && data[8] == '{' && data[9] == '"';
}

// Two zeros, an element type, and how many axes there are.
static bool is_idx(const uint8_t *data)
{
    return data[0] == 0 && data[1] == 0 && data[2] >= 0x08 && data[2] <= 0x0e && data[3] > 0 &&
           data[3] <= MOST_AXES;
}

// In whatever encoding: mostly ASCII, and no control characters but those of lines.
static bool is_text(const uint8_t *data, size_t size)
{
    size_t n_beyond = 0;

    for (size_t i = 0; i < size; i++) {
        if (data[i] < ' ' && (data[i] < '\t' || data[i] > '\r'))
            return false;
        n_beyond += data[i] >= 0x7f;
    }
    return n_beyond * 2 < size;
}

static ot__file_kind kind_of_bytes(const uint8_t *data, size_t size, const char **text)
{
    const size_t examined = OT_MIN(size, (size_t)EXAMINED);

    for (size_t i = 0; i < OT_COUNT(kinds); i++)
        if (size >= kinds[i].at + kinds[i].n_bytes &&
            memcmp(data + kinds[i].at, kinds[i].bytes, kinds[i].n_bytes) == 0) {
            *text = kinds[i].text;
            return kinds[i].kind;
        }
    if (is_onnx(data, size)) {
        *text = "an ONNX model";
        return OT_FILE_MODEL;
    }
    if (size > 0 && data[0] == '<' && file_holds(data, examined, "ir_version")) {
        *text = "a model in ONNX's textual syntax";
        return OT_FILE_MODEL;
    }
    if (size > 4 && memcmp(data, "PK\3\4", 4) == 0) {
        const bool is_torch = file_holds(data, examined, "data.pkl");
        *text = is_torch ? "a PyTorch file" : "an .npz or other zip archive";
        return is_torch ? OT_FILE_OTHER : OT_FILE_DATA;
    }
    if (size > 2 && data[0] == 0x80 && data[1] >= 2 && data[1] <= 5) {
        *text = "a Python pickle";
        return OT_FILE_OTHER;
    }
    if (is_safetensors(data, size)) {
        *text = "a safetensors file";
        return OT_FILE_OTHER;
    }
    if (size > 0 && is_text(data, examined) &&
        !file_holds(data, size, "=>")) { // every model's text has it
        *text = "a text";
        return OT_FILE_DATA;
    }
    if (size >= 8 && is_idx(data)) {
        *text = "an IDX array";
        return OT_FILE_DATA;
    }
    return OT_FILE_UNKNOWN;
}

ot_status ot__file_kind_check(const void *data, size_t size, const char *path, ot__file_kind wanted)
{
    static const char *const wanted_strings[] = {
        [OT_FILE_MODEL] = "a model",
        [OT_FILE_CHECKPOINT] = "a checkpoint",
        [OT_FILE_DATA] = "data: .npz, .npy, CSV or IDX",
        [OT_FILE_HDF5] = "an HDF5 file",
    };
    const char *text;
    const ot__file_kind kind = kind_of_bytes(data, size, &text);

    if (kind == OT_FILE_UNKNOWN || kind == wanted)
        return OT_OK;
    return ot__error(OT_ERR_FORMAT, "%s: is %s, not %s", path, text, wanted_strings[wanted]);
}
