// SPDX-License-Identifier: Apache-2.0
// Recurrent layers whose state and batch go around the panels and tiles of every instruction set,
// with every option, more rows of all steps than are computed at once, and enough work for threads:
// of 48 rows of 33 two share out the rows, which are whole tiles for each.
#include "harness.h"

// B rows, H units, G = gates * H, G2 = 2 * G, D directions
#define EDGES(CASE, gates, twice)                                                                  \
    CASE("1", "1", gates(1), twice(1), "1"), CASE("3", "7", gates(7), twice(7), "1"),              \
        CASE("16", "15", gates(15), twice(15), "1"), CASE("9", "16", gates(16), twice(16), "1"),   \
        CASE("15", "17", gates(17), twice(17), "1"), CASE("2", "33", gates(33), twice(33), "1"),   \
        CASE("1", "65", gates(65), twice(65), "1"), CASE("48", "33", gates(33), twice(33), "1")
#define ONE_1 "1"
#define ONE_7 "7"
#define ONE_15 "15"
#define ONE_16 "16"
#define ONE_17 "17"
#define ONE_33 "33"
#define ONE_65 "65"
#define TWO_1 "2"
#define TWO_7 "14"
#define TWO_15 "30"
#define TWO_16 "32"
#define TWO_17 "34"
#define TWO_33 "66"
#define TWO_65 "130"
#define THREE_1 "3"
#define THREE_7 "21"
#define THREE_15 "45"
#define THREE_16 "48"
#define THREE_17 "51"
#define THREE_33 "99"
#define THREE_65 "195"
#define FOUR_1 "4"
#define FOUR_7 "28"
#define FOUR_15 "60"
#define FOUR_16 "64"
#define FOUR_17 "68"
#define FOUR_33 "132"
#define FOUR_65 "260"
#define SIX_1 "6"
#define SIX_7 "42"
#define SIX_15 "90"
#define SIX_16 "96"
#define SIX_17 "102"
#define SIX_33 "198"
#define SIX_65 "390"
#define EIGHT_1 "8"
#define EIGHT_7 "56"
#define EIGHT_15 "120"
#define EIGHT_16 "128"
#define EIGHT_17 "136"
#define EIGHT_33 "264"
#define EIGHT_65 "520"
#define ONE(n) ONE_##n
#define TWO(n) TWO_##n
#define THREE(n) THREE_##n
#define FOUR(n) FOUR_##n
#define SIX(n) SIX_##n
#define EIGHT(n) EIGHT_##n

#define X(B) "f32[3," B ",5]"
#define W(D, G) "f32[" D "," G ",5]"
#define R(D, G, H) "f32[" D "," G "," H "] in -0.3..0.3"
#define ROW(D, N) "f32[" D "," N "]"
#define STATE(D, B, H) "f32[" D "," B "," H "]"
#define STEPS(D, B, N) "f32[3," D "," B "," N "]"
#define KEPT(D, B, N) STEPS(D, B, N) " in 0.1..0.9"
#define LENGTHS(B) "i32[" B "] in 0..3"

// ---- LSTM ----

#define LSTM(B, H, G, G2, D)                                                                       \
    {                                                                                              \
        .name = "edges, " B " rows of " H,                                                         \
        .in = {X(B), W(D, G), R(D, G, H), ROW(D, G2), "", STATE(D, B, H), STATE(D, B, H)},         \
        .out = {STEPS(D, B, H), STATE(D, B, H), STATE(D, B, H), STEPS(D, B, H), STEPS(D, B, G)},   \
        .flags = OT_CASE_NO_GRAD                                                                   \
    }
static const ot_op_case lstm_edges[] = {
    EDGES(LSTM, FOUR, EIGHT),
    {.name = "edges, two directions of different lengths, without bias",
     .in = {X("9"), W("2", "68"), R("2", "68", "17"), "", LENGTHS("9"), "", STATE("2", "9", "17")},
     .attrs = "direction = \"bidirectional\"",
     .out = {STEPS("2", "9", "17"), STATE("2", "9", "17"), STATE("2", "9", "17"),
             STEPS("2", "9", "17"), STEPS("2", "9", "68")},
     .flags = OT_CASE_NO_GRAD},
    {.name = "edges, two directions with every option",
     .in = {X("9"), W("2", "68"), R("2", "68", "17"), ROW("2", "136"), LENGTHS("9"), "", "",
            ROW("2", "51")},
     .attrs = "direction = \"bidirectional\", input_forget = 1, clip = 1.5",
     .out = {STEPS("2", "9", "17"), STATE("2", "9", "17"), STATE("2", "9", "17"),
             STEPS("2", "9", "17"), STEPS("2", "9", "68")},
     .flags = OT_CASE_NO_GRAD},
    {.name = "edges, rows of more steps than are computed at once, reverse",
     .in = {"f32[5,130,3]", "f32[1,36,3]", R("1", "36", "9"), ROW("1", "72"), "i32[130] in 0..5"},
     .attrs = "direction = \"reverse\"",
     .out = {"f32[5,1,130,9]", STATE("1", "130", "9"), STATE("1", "130", "9")},
     .flags = OT_CASE_NO_GRAD},
    {0},
};
OT_OP_TEST("ai.onnxtrain.LSTMTraining", 1, lstm_edges)

#define LSTM_GRAD(B, H, G, G2, D)                                                                  \
    {                                                                                              \
        .name = "edges, " B " rows of " H,                                                         \
        .in = {X(B),                                                                               \
               W(D, G),                                                                            \
               R(D, G, H),                                                                         \
               "",                                                                                 \
               STATE(D, B, H),                                                                     \
               STATE(D, B, H),                                                                     \
               "",                                                                                 \
               STEPS(D, B, H),                                                                     \
               STEPS(D, B, H),                                                                     \
               KEPT(D, B, G),                                                                      \
               STEPS(D, B, H),                                                                     \
               STATE(D, B, H),                                                                     \
               STATE(D, B, H)},                                                                    \
        .out = {                                                                                   \
            X(B),                                                                                  \
            "f32[" D "," G ",5]",                                                                  \
            "f32[" D "," G "," H "]",                                                              \
            ROW(D, G2),                                                                            \
            STATE(D, B, H),                                                                        \
            STATE(D, B, H)                                                                         \
        }                                                                                          \
    }
static const ot_op_case lstm_grad_edges[] = {
    EDGES(LSTM_GRAD, FOUR, EIGHT),
    {.name = "edges, two directions with every option",
     .in = {X("9"), W("2", "68"), R("2", "68", "17"), LENGTHS("9"), STATE("2", "9", "17"),
            STATE("2", "9", "17"), ROW("2", "51"), STEPS("2", "9", "17"), STEPS("2", "9", "17"),
            KEPT("2", "9", "68"), STEPS("2", "9", "17"), STATE("2", "9", "17"),
            STATE("2", "9", "17")},
     .attrs = "direction = \"bidirectional\", input_forget = 1, clip = 1.5",
     .out = {X("9"), "f32[2,68,5]", "f32[2,68,17]", ROW("2", "136"), STATE("2", "9", "17"),
             STATE("2", "9", "17"), ROW("2", "51")}},
    {.name = "edges, rows of more steps than are computed at once, reverse",
     .in = {"f32[5,130,3]", "f32[1,36,3]", R("1", "36", "9"), "i32[130] in 0..5",
            STATE("1", "130", "9"), "", "", "f32[5,1,130,9]", "f32[5,1,130,9]",
            "f32[5,1,130,36] in 0.1..0.9", "f32[5,1,130,9]"},
     .attrs = "direction = \"reverse\"",
     .out = {"f32[5,130,3]", "f32[1,36,3]", "f32[1,36,9]", ROW("1", "72"), STATE("1", "130", "9"),
             STATE("1", "130", "9")},
     .tolerance = 4},
    {0},
};
OT_OP_TEST("ai.onnxtrain.LSTMGrad", 1, lstm_grad_edges)

// ---- GRU ----

#define GRU_OF(B, H, G, G2, D, after)                                                              \
    {                                                                                              \
        .name = "edges, " B " rows of " H ", linear_before_reset = " after,                        \
        .in = {X(B), W(D, G), R(D, G, H), ROW(D, G2), "", STATE(D, B, H)},                         \
        .attrs = "linear_before_reset = " after,                                                   \
        .out = {STEPS(D, B, H), STATE(D, B, H), STEPS(D, B, G)}, .flags = OT_CASE_NO_GRAD          \
    }
#define GRU(B, H, G, G2, D) GRU_OF(B, H, G, G2, D, "0")
#define GRU_AFTER(B, H, G, G2, D) GRU_OF(B, H, G, G2, D, "1")
static const ot_op_case gru_edges[] = {
    EDGES(GRU, THREE, SIX),
    EDGES(GRU_AFTER, THREE, SIX),
    {.name = "edges, two directions of different lengths, without bias",
     .in = {X("9"), W("2", "51"), R("2", "51", "17"), "", LENGTHS("9")},
     .attrs = "direction = \"bidirectional\", linear_before_reset = 1",
     .out = {STEPS("2", "9", "17"), STATE("2", "9", "17"), STEPS("2", "9", "51")},
     .flags = OT_CASE_NO_GRAD},
    {.name = "edges, two directions and a clip",
     .in = {X("9"), W("2", "51"), R("2", "51", "17"), ROW("2", "102"), LENGTHS("9")},
     .attrs = "direction = \"bidirectional\", clip = 1.5",
     .out = {STEPS("2", "9", "17"), STATE("2", "9", "17"), STEPS("2", "9", "51")},
     .flags = OT_CASE_NO_GRAD},
    {0},
};
OT_OP_TEST("ai.onnxtrain.GRUTraining", 1, gru_edges)

#define GRU_GRAD_OF(B, H, G, G2, D, after)                                                         \
    {                                                                                              \
        .name = "edges, " B " rows of " H ", linear_before_reset = " after,                        \
        .in = {X(B),           W(D, G),        R(D, G, H),    ROW(D, G2),     "",                  \
               STATE(D, B, H), STEPS(D, B, H), KEPT(D, B, G), STEPS(D, B, H), STATE(D, B, H)},     \
        .attrs = "linear_before_reset = " after, .out = {                                          \
            X(B),                                                                                  \
            "f32[" D "," G ",5]",                                                                  \
            "f32[" D "," G "," H "]",                                                              \
            ROW(D, G2),                                                                            \
            STATE(D, B, H)                                                                         \
        }                                                                                          \
    }
#define GRU_GRAD(B, H, G, G2, D) GRU_GRAD_OF(B, H, G, G2, D, "0")
#define GRU_GRAD_AFTER(B, H, G, G2, D) GRU_GRAD_OF(B, H, G, G2, D, "1")
static const ot_op_case gru_grad_edges[] = {
    EDGES(GRU_GRAD, THREE, SIX),
    EDGES(GRU_GRAD_AFTER, THREE, SIX),
    {.name = "edges, two directions, a clip, of different lengths",
     .in = {X("9"), W("2", "51"), R("2", "51", "17"), ROW("2", "102"), LENGTHS("9"), "",
            STEPS("2", "9", "17"), KEPT("2", "9", "51"), STEPS("2", "9", "17")},
     .attrs = "direction = \"bidirectional\", clip = 1.5",
     .out = {X("9"), "f32[2,51,5]", "f32[2,51,17]", ROW("2", "102"), STATE("2", "9", "17")}},
    {.name = "edges, rows of more steps than are computed at once",
     .in = {"f32[5,130,3]", "f32[1,27,3]", R("1", "27", "9"), "", "i32[130] in 0..5",
            STATE("1", "130", "9"), "f32[5,1,130,9]", "f32[5,1,130,27] in 0.1..0.9",
            "f32[5,1,130,9]"},
     .attrs = "linear_before_reset = 1",
     .out = {"f32[5,130,3]", "f32[1,27,3]", "f32[1,27,9]", ROW("1", "54"), STATE("1", "130", "9")},
     .tolerance = 4},
    {0},
};
OT_OP_TEST("ai.onnxtrain.GRUGrad", 1, gru_grad_edges)

// ---- RNN ----

#define RNN(B, H, G, G2, D)                                                                        \
    {                                                                                              \
        .name = "edges, " B " rows of " H,                                                         \
        .in = {X(B), W(D, G), R(D, G, H), ROW(D, G2), "", STATE(D, B, H)},                         \
        .out = {STEPS(D, B, H), STATE(D, B, H)}, .flags = OT_CASE_NO_GRAD                          \
    }
static const ot_op_case rnn_edges[] = {
    EDGES(RNN, ONE, TWO),
    {.name = "edges, batch first, two directions",
     .in = {"f32[9,3,5]", W("2", "17"), R("2", "17", "17"), ROW("2", "34")},
     .attrs = "direction = \"bidirectional\", layout = 1",
     .out = {"f32[9,3,2,17]", "f32[9,2,17]"},
     .flags = OT_CASE_NO_GRAD},
    {0},
};
OT_OP_TEST("RNN", 14, rnn_edges)

#define RNN_GRAD(B, H, G, G2, D)                                                                   \
    {                                                                                              \
        .name = "edges, " B " rows of " H, .in = {X(B),           W(D, G),                         \
                                                  R(D, G, H),     "",                              \
                                                  STATE(D, B, H), STEPS(D, B, H) " in -0.9..0.9",  \
                                                  STEPS(D, B, H), STATE(D, B, H)},                 \
        .out = {                                                                                   \
            X(B),                                                                                  \
            "f32[" D "," G ",5]",                                                                  \
            "f32[" D "," G "," H "]",                                                              \
            ROW(D, G2),                                                                            \
            STATE(D, B, H)                                                                         \
        }                                                                                          \
    }
static const ot_op_case rnn_grad_edges[] = {
    EDGES(RNN_GRAD, ONE, TWO),
    {0},
};
OT_OP_TEST("ai.onnxtrain.RNNGrad", 1, rnn_grad_edges)
