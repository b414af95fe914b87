// SPDX-License-Identifier: Apache-2.0
#include "models.h"

// Every model takes x of four columns and ends in a product with `last`, so that y has one.
static void begin_with(FILE *f, const char *opsets)
{
    fprintf(f, "<ir_version: 8, opset_import: [%s]>\nscale (float[batch, 4] x", opsets);
}

static void begin(FILE *f)
{
    begin_with(f, "\"\" : 17");
}

static void initializers(FILE *f)
{
    fprintf(f, ") => (float[batch, 1] y)\n<float[4, 1] last = {0.1, 0.2, 0.3, 0.4}");
}

static void body(FILE *f)
{
    fprintf(f, ">\n{\n");
}

static void end(FILE *f, const char *value)
{
    fprintf(f, "  y = Gemm (%s, last)\n}\n", value);
}

static void end_at(FILE *f, const char *base, long i)
{
    char value[32];

    snprintf(value, sizeof value, "%s%ld", base, i);
    end(f, value);
}

static void list(FILE *f, const char *base, long n)
{
    for (long i = 0; i < n; i++)
        fprintf(f, "%s%s%ld", i == 0 ? "" : ", ", base, i);
}

static void biases(FILE *f, const char *base, long n)
{
    for (long i = 0; i < n; i++)
        fprintf(f, ",\n float[4] %s%ld = {0.1, 0.2, 0.3, %ld.0}", base, i, i % 7);
}

void write_parameters(FILE *f, long n)
{
    begin(f);
    initializers(f);
    biases(f, "b", n);
    body(f);
    fprintf(f, "  h0 = Identity (x)\n");
    for (long i = 0; i < n; i++)
        fprintf(f, "  h%ld = Add (h%ld, b%ld)\n", i + 1, i, i);
    end_at(f, "h", n);
}

// Every second one is an exponent, which does not train by itself.
void write_exponents(FILE *f, long n)
{
    begin(f);
    initializers(f);
    biases(f, "b", n);
    body(f);
    fprintf(f, "  h0 = Identity (x)\n");
    for (long i = 0; i < n; i++)
        fprintf(f, "  h%ld = %s (h%ld, b%ld)\n", i + 1, i % 2 == 0 ? "Add" : "Pow", i, i);
    end_at(f, "h", n);
}

void write_wide_sum(FILE *f, long n)
{
    begin(f);
    initializers(f);
    body(f);
    fprintf(f, "  h = Sum (");
    for (long i = 0; i < n; i++)
        fprintf(f, i == 0 ? "x" : ", x");
    fprintf(f, ")\n");
    end(f, "h");
}

void write_distinct_sum(FILE *f, long n)
{
    begin(f);
    initializers(f);
    biases(f, "b", n);
    body(f);
    fprintf(f, "  h = Sum (x, ");
    list(f, "b", n);
    fprintf(f, ")\n");
    end(f, "h");
}

void write_fan(FILE *f, long n)
{
    begin(f);
    initializers(f);
    body(f);
    fprintf(f, "  r = Relu (x)\n");
    for (long i = 0; i < n; i++)
        fprintf(f, "  h%ld = Tanh (r)\n", i);
    fprintf(f, "  s = Sum (");
    list(f, "h", n);
    fprintf(f, ")\n");
    end(f, "s");
}

void write_inputs(FILE *f, long n)
{
    begin(f);
    for (long i = 0; i < n; i++)
        fprintf(f, ", float[batch, 4] x%ld", i);
    initializers(f);
    body(f);
    fprintf(f, "  h = Sum (x, ");
    list(f, "x", n);
    fprintf(f, ")\n");
    end(f, "h");
}

void write_outputs(FILE *f, long n)
{
    begin(f);
    fprintf(f, ") => (float[batch, 1] y");
    for (long i = 0; i < n; i++)
        fprintf(f, ", float[batch, 4] h%ld", i);
    fprintf(f, ")\n<float[4, 1] last = {0.1, 0.2, 0.3, 0.4}");
    body(f);
    for (long i = 0; i < n; i++)
        fprintf(f, "  h%ld = Relu (x)\n", i);
    end(f, "x");
}

void write_shared(FILE *f, long n)
{
    begin(f);
    initializers(f);
    biases(f, "b", 1);
    body(f);
    fprintf(f, "  h0 = Identity (x)\n");
    for (long i = 0; i < n; i++)
        fprintf(f, "  h%ld = Add (h%ld, b0)\n", i + 1, i);
    end_at(f, "h", n);
}

static void long_name(FILE *f, const char *first, long n)
{
    fputs(first, f);
    for (long i = 0; i < n; i++)
        fputc('a' + (int)(i % 26), f);
}

void write_long_name(FILE *f, long n)
{
    begin(f);
    initializers(f);
    fprintf(f, ",\n float[4] ");
    long_name(f, "b", n);
    fprintf(f, " = {1, 2, 3, 4}");
    body(f);
    fprintf(f, "  ");
    long_name(f, "h", n);
    fprintf(f, " = Add (x, ");
    long_name(f, "b", n);
    fprintf(f, ")\n  [");
    long_name(f, "node", n);
    fprintf(f, "] r = Relu (");
    long_name(f, "h", n);
    fprintf(f, ")\n");
    end(f, "r");
}

void write_chain(FILE *f, long n)
{
    begin(f);
    initializers(f);
    body(f);
    fprintf(f, "  h0 = Identity (x)\n");
    for (long i = 0; i < n; i++)
        fprintf(f, "  h%ld = %s (h%ld)\n", i + 1, i % 2 == 0 ? "Relu" : "Tanh", i);
    end_at(f, "h", n);
}

void write_layers(FILE *f, long n)
{
    begin(f);
    initializers(f);
    biases(f, "b", n);
    for (long i = 0; i < n; i++)
        fprintf(f, ",\n float[4, 4] w%ld = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, %ld.0}", i,
                i % 7);
    body(f);
    fprintf(f, "  h0 = Identity (x)\n");
    for (long i = 0; i < n; i++)
        fprintf(f, "  g%ld = Gemm (h%ld, w%ld, b%ld)\n  h%ld = Relu (g%ld)\n", i, i, i, i, i + 1,
                i);
    end_at(f, "h", n);
}

void write_branches(FILE *f, long n)
{
    begin(f);
    initializers(f);
    biases(f, "b", n);
    body(f);
    for (long i = 0; i < n; i++)
        fprintf(f, "  a%ld = Mul (x, b%ld)\n  h%ld = Relu (a%ld)\n", i, i, i, i);
    fprintf(f, "  c = Concat <axis = 1> (");
    list(f, "h", n);
    fprintf(f, ")\n  s = ReduceMean <axes = [1], keepdims = 1> (c)\n  t = Add (x, s)\n");
    end(f, "t");
}

void write_split(FILE *f, long n)
{
    begin(f);
    initializers(f);
    fprintf(f, ",\n int64[4] order = {0, 1, 2, 3}, int64[2] shape = {1, %ld}", n);
    body(f);
    fprintf(f, "  m = ReduceMean <axes = [0, 1], keepdims = 1> (x)\n  e = Expand (m, shape)\n  ");
    list(f, "p", n);
    fprintf(f, " = Split <axis = 1> (e)\n  s = Sum (");
    list(f, "p", n);
    fprintf(f, ")\n  t = Add (x, s)\n");
    end(f, "t");
}

void write_merged(FILE *f, long n)
{
    begin(f);
    initializers(f);
    biases(f, "b", 1);
    body(f);
    for (long i = 0; i < n; i++)
        fprintf(f, "  c%ld = Identity (b0)\n", i);
    fprintf(f, "  h0 = Identity (x)\n");
    for (long i = 0; i < n; i++)
        fprintf(f, "  h%ld = Add (h%ld, c%ld)\n", i + 1, i, i);
    end_at(f, "h", n);
}

void write_copies(FILE *f, long n)
{
    begin(f);
    initializers(f);
    biases(f, "b", n);
    body(f);
    for (long i = 0; i < n; i++)
        fprintf(f, "  c%ld = Identity (b%ld)\n", i, i);
    fprintf(f, "  h0 = Identity (x)\n");
    for (long i = 0; i < n; i++)
        fprintf(f, "  h%ld = Add (h%ld, c%ld)\n", i + 1, i, i);
    end_at(f, "h", n);
}

static void function(FILE *f, long i)
{
    fprintf(f,
            "<domain: \"local\", opset_import: [\"\" : 17]>\nf%ld (a) => (b) { c = Relu (a) b = "
            "Tanh (c) }\n",
            i);
}

void write_functions(FILE *f, long n)
{
    begin_with(f, "\"\" : 17, \"local\" : 1");
    initializers(f);
    body(f);
    fprintf(f, "  h0 = Identity (x)\n");
    for (long i = 0; i < n; i++)
        fprintf(f, "  h%ld = local.f%ld (h%ld)\n", i + 1, i, i);
    end_at(f, "h", n);
    for (long i = 0; i < n; i++)
        function(f, i);
}

void write_calls(FILE *f, long n)
{
    begin_with(f, "\"\" : 17, \"local\" : 1");
    initializers(f);
    body(f);
    fprintf(f, "  h0 = Identity (x)\n");
    for (long i = 0; i < n; i++)
        fprintf(f, "  h%ld = local.f0 (h%ld)\n", i + 1, i);
    end_at(f, "h", n);
    function(f, 0);
}

void write_branching(FILE *f, long n)
{
    begin(f);
    initializers(f);
    fprintf(f, ", bool c = {1}");
    biases(f, "b", n);
    body(f);
    fprintf(f, "  h0 = Identity (x)\n");
    for (long i = 0; i < n; i++)
        fprintf(f,
                "  h%ld = If (c) <then_branch = t%ld () => (u%ld) { u%ld = Add (h%ld, b%ld) }, "
                "else_branch = e%ld () => (v%ld) { v%ld = Relu (h%ld) }>\n",
                i + 1, i, i, i, i, i, i, i, i, i);
    end_at(f, "h", n);
}

static void branch(FILE *f, const char *base, long n)
{
    fprintf(f, "%s () => (%s%ld) { %s0 = Identity (x) ", base, base, n, base);
    for (long i = 0; i < n; i++)
        fprintf(f, "%s%ld = Relu (%s%ld) ", base, i + 1, base, i);
    fprintf(f, "}");
}

void write_deep(FILE *f, long n)
{
    begin(f);
    initializers(f);
    fprintf(f, ", bool c = {1}");
    body(f);
    fprintf(f, "  h = If (c) <then_branch = ");
    branch(f, "t", n);
    fprintf(f, ", else_branch = ");
    branch(f, "e", n);
    fprintf(f, ">\n");
    end(f, "h");
}

static const char *const norm_parts[] = {"scale", "bias", "mean", "var"};

void write_norms(FILE *f, long n)
{
    begin(f);
    initializers(f);
    for (int k = 0; k < 4; k++)
        biases(f, norm_parts[k], n);
    body(f);
    fprintf(f, "  h0 = Identity (x)\n");
    for (long i = 0; i < n; i++)
        fprintf(f,
                "  g%ld = BatchNormalization (h%ld, scale%ld, bias%ld, mean%ld, var%ld)\n"
                "  h%ld = Relu (g%ld)\n",
                i, i, i, i, i, i, i + 1, i);
    end_at(f, "h", n);
}

void write_shared_norm(FILE *f, long n)
{
    begin(f);
    initializers(f);
    for (int k = 0; k < 4; k++)
        biases(f, norm_parts[k], 1);
    body(f);
    fprintf(f, "  h0 = Identity (x)\n");
    for (long i = 0; i < n; i++)
        fprintf(f, "  h%ld = BatchNormalization (h%ld, scale0, bias0, mean0, var0)\n", i + 1, i);
    end_at(f, "h", n);
}

void write_fixed_batch(FILE *f, long n)
{
    fprintf(f,
            "<ir_version: 8, opset_import: [\"\" : 17]>\n"
            "scale (float[1, 4] x) => (float[1, 1] y)\n<float[4, 1] last = {0.1, 0.2, 0.3, 0.4}");
    for (long i = 0; i < n; i++)
        fprintf(f, ",\n int64[2] s%ld = {1, 4}", i);
    body(f);
    fprintf(f, "  h0 = Identity (x)\n");
    for (long i = 0; i < n; i++)
        fprintf(f, "  r%ld = Reshape (h%ld, s%ld)\n  h%ld = Relu (r%ld)\n", i, i, i, i + 1, i);
    end_at(f, "h", n);
}

void write_quantized(FILE *f, long n)
{
    begin(f);
    initializers(f);
    fprintf(f, ", float step = {0.05}, int8 zero = {0}");
    body(f);
    fprintf(f, "  h0 = Identity (x)\n");
    for (long i = 0; i < n; i++)
        fprintf(f,
                "  q%ld = QuantizeLinear (h%ld, step, zero)\n"
                "  h%ld = DequantizeLinear (q%ld, step, zero)\n",
                i, i, i + 1, i);
    end_at(f, "h", n);
}

void write_shapes(FILE *f, long n)
{
    begin(f);
    initializers(f);
    fprintf(f, ", int64 zero = {0}, int64[1] none = {0}, int64[1] four = {4}");
    body(f);
    fprintf(f, "  h0 = Identity (x)\n");
    for (long i = 0; i < n; i++)
        fprintf(f,
                "  s%ld = Shape (h%ld)\n  d%ld = Gather (s%ld, zero)\n"
                "  u%ld = Unsqueeze (d%ld, none)\n  c%ld = Concat <axis = 0> (u%ld, four)\n"
                "  h%ld = Reshape (h%ld, c%ld)\n",
                i, i, i, i, i, i, i, i, i + 1, i, i);
    end_at(f, "h", n);
}

void write_sequences(FILE *f, long n)
{
    begin(f);
    initializers(f);
    fprintf(f, ", int64 zero = {0}");
    body(f);
    fprintf(f, "  h0 = Identity (x)\n");
    for (long i = 0; i < n; i++)
        fprintf(f, "  s%ld = SequenceConstruct (h%ld, x)\n  h%ld = SequenceAt (s%ld, zero)\n", i, i,
                i + 1, i);
    end_at(f, "h", n);
}

void write_symbols(FILE *f, long n)
{
    begin(f);
    for (long i = 0; i < n; i++)
        fprintf(f, ", float[n%ld, 4] x%ld", i, i);
    initializers(f);
    body(f);
    for (long i = 0; i < n; i++)
        fprintf(f, "  m%ld = ReduceMean <axes = [0], keepdims = 1> (x%ld)\n", i, i);
    fprintf(f, "  h = Sum (x, ");
    list(f, "m", n);
    fprintf(f, ")\n");
    end(f, "h");
}

void write_metadata(FILE *f, long n)
{
    fprintf(f, "<ir_version: 8, opset_import: [\"\" : 17], metadata_props: [");
    for (long i = 0; i < n; i++)
        fprintf(f, "%s\"key %ld\": \"%ld\"", i == 0 ? "" : ", ", i, i);
    fprintf(f, "]>\nscale (float[batch, 4] x");
    initializers(f);
    body(f);
    end(f, "x");
}

void write_plain(FILE *f, long n)
{
    (void)n;
    begin(f);
    initializers(f);
    body(f);
    end(f, "x");
}

void write_wide_data(FILE *f, long n)
{
    fprintf(f,
            "<ir_version: 8, opset_import: [\"\" : 17]>\n"
            "scale (float[batch, %ld] x) => (float[batch, 1] y)\n{\n"
            "  w = RandomNormal <shape = [%ld, 1]> ()\n  y = Gemm (x, w)\n}\n",
            n, n);
}

void write_rows(FILE *csv, long n_rows, long n_columns)
{
    for (long k = 0; k < n_columns; k++)
        fprintf(csv, "x%ld,", k);
    fprintf(csv, "target\n");
    for (long i = 0; i < n_rows; i++) {
        for (long k = 0; k < n_columns; k++)
            fprintf(csv, "0.%ld,", (i * 7 + k * 3) % 11);
        fprintf(csv, "%ld\n", i % 3);
    }
}
