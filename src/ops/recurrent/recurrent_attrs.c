// SPDX-License-Identifier: Apache-2.0
// What attributes (direction, activations, clip, layout) and ports of a recurrent layer say.
#include <ctype.h>
#include <string.h>

#include "ops/recurrent/recurrent.h"

// What the activations are without attributes: ONNX's defaults of the operators of the same names.
typedef struct activation_default {
    const char *name;
    bool has_alpha, has_beta;
    double alpha, beta;
} activation_default;
static const activation_default activation_defaults[OT__N_ACTIVATIONS] = {
    [OT__ACTIVATION_AFFINE] = {"Affine", true, true, 1, 0},
    [OT__ACTIVATION_ELU] = {"Elu", true, false, 1, 0},
    [OT__ACTIVATION_HARD_SIGMOID] = {"HardSigmoid", true, true, (double)0.2F, 0.5},
    [OT__ACTIVATION_LEAKY_RELU] = {"LeakyRelu", true, false, (double)0.01F, 0},
    [OT__ACTIVATION_RELU] = {"Relu", false, false, 0, 0},
    [OT__ACTIVATION_SCALED_TANH] = {"ScaledTanh", true, true, 1, 1},
    [OT__ACTIVATION_SIGMOID] = {"Sigmoid", false, false, 0, 0},
    [OT__ACTIVATION_SOFTPLUS] = {"Softplus", false, false, 0, 0},
    [OT__ACTIVATION_SOFTSIGN] = {"Softsign", false, false, 0, 0},
    [OT__ACTIVATION_TANH] = {"Tanh", false, false, 0, 0},
    [OT__ACTIVATION_THRESHOLDED_RELU] = {"ThresholdedRelu", true, false, 1, 0},
};
static const struct {
    int n_activations, n_gates;
    ot__activation_kind kinds[OT__CELL_ACTIVATIONS];
} cells[] = {
    [OT__CELL_RNN] = {1, 1, {OT__ACTIVATION_TANH}},
    [OT__CELL_GRU] = {2, 3, {OT__ACTIVATION_SIGMOID, OT__ACTIVATION_TANH}},
    [OT__CELL_LSTM] = {3, 4, {OT__ACTIVATION_SIGMOID, OT__ACTIVATION_TANH, OT__ACTIVATION_TANH}},
};

static bool equals_in_any_case(const ot__string *s, const char *name)
{
    size_t i = 0;

    while (i < s->size && name[i] != '\0' &&
           tolower((unsigned char)s->data[i]) == tolower((unsigned char)name[i]))
        i++;
    return i == s->size && name[i] == '\0';
}

static const char *read_direction(const ot_node *node, ot__recurrent *p)
{
    const char *direction = ot_attr_string(node, "direction");

    p->n_directions = 1;
    if (strcmp(direction, "reverse") == 0) {
        p->reversed[0] = true;
    } else if (strcmp(direction, "bidirectional") == 0) {
        p->n_directions = 2;
        p->reversed[1] = true;
    } else if (strcmp(direction, "forward") != 0) {
        return "direction must be forward, reverse or bidirectional";
    }
    return NULL;
}

// alpha and beta are lists that the activations take from in turn, those that have such a number.
static const char *read_activations(const ot_node *node, ot__recurrent *p)
{
    const ot_attr *names = ot__node_attr(node, "activations");
    const int n_each = cells[p->cell].n_activations;
    int n_alphas, n_betas, i_alpha = 0, i_beta = 0;
    const float *alphas = ot_attr_floats(node, "activation_alpha", &n_alphas);
    const float *betas = ot_attr_floats(node, "activation_beta", &n_betas);

    if (names != NULL && names->n != 0 && names->n != n_each * p->n_directions)
        return "activations must have one name for each activation of each direction";
    for (int i = 0; i < n_each * p->n_directions; i++) {
        ot__activation *f = &p->activations[i / n_each][i % n_each];
        const activation_default *base;

        f->kind = cells[p->cell].kinds[i % n_each];
        if (names != NULL && names->n != 0)
            for (f->kind = 0; f->kind < OT__N_ACTIVATIONS; f->kind++)
                if (equals_in_any_case(&names->strings[i], activation_defaults[f->kind].name))
                    break;
        if (f->kind == OT__N_ACTIVATIONS)
            return "activations has a name that is not one of ONNX's recurrent activations";
        base = &activation_defaults[f->kind];
        f->alpha = base->has_alpha && i_alpha < n_alphas ? (double)alphas[i_alpha++] : base->alpha;
        f->beta = base->has_beta && i_beta < n_betas ? (double)betas[i_beta++] : base->beta;
    }
    return NULL;
}

// Of our own records: W and R have their gates in another order than ONNX's.
static const char *read_gate_order(const ot_node *node, ot__recurrent *p)
{
    const ot_attr *attr = ot__node_attr(node, "gate_order");
    bool seen[OT__MAX_GATES] = {false};

    for (int64_t gate = 0; gate < p->n_gates; gate++)
        p->gate_at[gate] = gate;
    if (attr == NULL)
        return NULL;
    if (attr->n != p->n_gates)
        return "gate_order must have one number for each gate";
    for (int64_t gate = 0; gate < p->n_gates; gate++) {
        const int64_t at = attr->ints[gate];

        if (at < 0 || at >= p->n_gates || seen[at])
            return "gate_order must have every gate once";
        seen[at] = true;
        p->gate_at[gate] = at;
    }
    if (p->cell == OT__CELL_GRU && p->gate_at[2] != 2)
        return "gate_order must leave a GRU's candidate last";
    return NULL;
}

const char *ot__recurrent_read(const ot_node *node, ot__recurrent *p)
{
    const char *why = read_direction(node, p);
    const int64_t layout = ot_attr_int(node, "layout");

    if (why == NULL)
        why = read_activations(node, p);
    if (why != NULL)
        return why;
    p->n_gates = cells[p->cell].n_gates;
    why = read_gate_order(node, p);
    if (why != NULL)
        return why;
    p->clip = ot_attr_given(node, "clip") ? (double)ot_attr_float(node, "clip") : 0;
    if (!(p->clip >= 0))
        return "clip must not be below 0";
    if (layout != 0 && layout != 1)
        return "layout must be 0 or 1";
    if (ot_attr_given(node, "hidden_size") && ot_attr_int(node, "hidden_size") < 1)
        return "hidden_size must be at least 1";
    p->couples = ot_attr_int(node, "input_forget") != 0;
    p->resets_after = ot_attr_int(node, "linear_before_reset") != 0;
    return NULL;
}

bool ot__recurrent_is_plain(const ot__recurrent *p)
{
    for (int i = 0; i < cells[p->cell].n_activations; i++)
        if (p->activations[0][i].kind != cells[p->cell].kinds[i])
            return false;
    for (int64_t gate = 0; gate < p->n_gates; gate++)
        if (p->gate_at[gate] != gate)
            return false;
    return p->cell != OT__CELL_RNN && p->n_directions == 1 && !p->reversed[0] && p->clip == 0 &&
           !p->couples;
}

// Those whose derivative does not follow from their value have none here.
bool ot__recurrent_has_gradient(const ot__recurrent *p)
{
    for (int direction = 0; direction < p->n_directions; direction++)
        for (int i = 0; i < cells[p->cell].n_activations; i++) {
            const ot__activation *f = &p->activations[direction][i];

            if ((f->kind == OT__ACTIVATION_LEAKY_RELU || f->kind == OT__ACTIVATION_ELU) &&
                !(f->alpha >= 0))
                return false;
        }
    return true;
}

// ---- ports by their names ----

static const struct {
    const char *name;
    ot__recurrent_role role;
} port_roles[] = {
    {"X", OT__RR_X},
    {"indices", OT__RR_INDICES},
    {"W", OT__RR_W},
    {"R", OT__RR_R},
    {"B", OT__RR_B},
    {"sequence_lens", OT__RR_LENGTHS},
    {"initial_h", OT__RR_H0},
    {"initial_c", OT__RR_C0},
    {"P", OT__RR_P},
    {"Y", OT__RR_Y},
    {"Y_h", OT__RR_Y_H},
    {"Y_c", OT__RR_Y_C},
    // ONNX Runtime's names
    {"SL", OT__RR_LENGTHS},
    {"H0", OT__RR_H0},
    {"C0", OT__RR_C0},
    {"HAll", OT__RR_Y},
    {"HFinal", OT__RR_Y_H},
    {"CFinal", OT__RR_Y_C},
    {"CAll", OT__RR_CELLS},
    {"iofc", OT__RR_GATES},
    {"zrh", OT__RR_GATES},
    {"dHAll", OT__RR_DY},
    {"dHFinal", OT__RR_DY_H},
    {"dCFinal", OT__RR_DY_C},
    {"dX", OT__RR_X},
    {"dW", OT__RR_W},
    {"dR", OT__RR_R},
    {"dB", OT__RR_B},
    {"dH0", OT__RR_H0},
    {"dC0", OT__RR_C0},
    {"dP", OT__RR_P},
};

static void read_ports(const ot_port *ports, ot__recurrent_role *roles)
{
    for (int i = 0; ports[i].name != NULL; i++)
        for (size_t k = 0; k < OT_COUNT(port_roles); k++)
            if (strcmp(ports[i].name, port_roles[k].name) == 0)
                roles[i] = port_roles[k].role;
}

ot__cell ot__recurrent_cell(const ot_op_def *def)
{
    return def->name[0] == 'L' ? OT__CELL_LSTM : def->name[0] == 'G' ? OT__CELL_GRU : OT__CELL_RNN;
}

void ot__recurrent_op_read(const ot_op_def *def, ot__recurrent_op *op)
{
    *op = (ot__recurrent_op){.cell = ot__recurrent_cell(def),
                             .is_plain_only =
                                 def->domain != NULL && strcmp(def->domain, "com.microsoft") == 0};
    read_ports(def->inputs, op->in);
    read_ports(def->outputs, op->out);
}
