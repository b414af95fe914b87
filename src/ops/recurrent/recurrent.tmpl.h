// SPDX-License-Identifier: Apache-2.0
// One element type of recurrent.c.

static ot_status FN(recurrent_run)(const ot_run *r, void (*run)(const FN(ot__recurrent_data) * d,
                                                                const ot__recurrent_state *state))
{
    const ot__recurrent_state *state = r->state;
    const ot__recurrent_op *op = &state->op;
    FN(ot__recurrent_data)
    data = {.x = input_data(r, op, OT__RR_X),
            .w = input_data(r, op, OT__RR_W),
            .r = input_data(r, op, OT__RR_R),
            .b = input_data(r, op, OT__RR_B),
            .h0 = input_data(r, op, OT__RR_H0),
            .c0 = input_data(r, op, OT__RR_C0),
            .p = input_data(r, op, OT__RR_P),
            .lengths = input_data(r, op, OT__RR_LENGTHS),
            .y = output_data(r, op, OT__RR_Y),
            .y_h = output_data(r, op, OT__RR_Y_H),
            .y_c = output_data(r, op, OT__RR_Y_C),
            .gates = output_data(r, op, OT__RR_GATES),
            .cells = output_data(r, op, OT__RR_CELLS),
            .scratch = r->scratch};

    OT_TRY(ot__recurrent_check_lengths(data.lengths, &state->p));
    OT_TRY(rows_of_indices(r, state, &data.rows));
    run(&data, state);
    return OT_OK;
}

static ot_status FN(recurrent_grad_run)(const ot_run *r,
                                        void (*run)(const FN(ot__recurrent_grad) * d,
                                                    const ot__recurrent_state *state))
{
    const ot__recurrent_state *state = r->state;
    const ot__recurrent_op *op = &state->op;
    FN(ot__recurrent_grad)
    data = {.x = input_data(r, op, OT__RR_X),
            .w = input_data(r, op, OT__RR_W),
            .r = input_data(r, op, OT__RR_R),
            .b = input_data(r, op, OT__RR_B),
            .h0 = input_data(r, op, OT__RR_H0),
            .c0 = input_data(r, op, OT__RR_C0),
            .p = input_data(r, op, OT__RR_P),
            .lengths = input_data(r, op, OT__RR_LENGTHS),
            .y = input_data(r, op, OT__RR_Y),
            .gates = input_data(r, op, OT__RR_GATES),
            .cells = input_data(r, op, OT__RR_CELLS),
            .dy = input_data(r, op, OT__RR_DY),
            .dy_h = input_data(r, op, OT__RR_DY_H),
            .dy_c = input_data(r, op, OT__RR_DY_C),
            .dx = output_data(r, op, OT__RR_X),
            .dw = output_data(r, op, OT__RR_W),
            .dr = output_data(r, op, OT__RR_R),
            .db = output_data(r, op, OT__RR_B),
            .dh0 = output_data(r, op, OT__RR_H0),
            .dc0 = output_data(r, op, OT__RR_C0),
            .dp = output_data(r, op, OT__RR_P),
            .scratch = r->scratch};

    OT_TRY(ot__recurrent_check_lengths(data.lengths, &state->p));
    OT_TRY(rows_of_indices(r, state, &data.rows));
    if (op->cell == OT__CELL_RNN)
        data.gates = data.y;
    run(&data, state);
    return OT_OK;
}

static void FN(recurrent_by_ref)(const FN(ot__recurrent_data) * d, const ot__recurrent_state *state)
{
    FN(ot__ref_recurrent)(d, &state->p);
}

static void FN(recurrent_grad_by_ref)(const FN(ot__recurrent_grad) * d,
                                      const ot__recurrent_state *state)
{
    FN(ot__ref_recurrent_grad)(d, &state->p);
}

static ot_status FN(recurrent_run_ref)(const ot_run *r)
{
    return FN(recurrent_run)(r, FN(recurrent_by_ref));
}

static ot_status FN(recurrent_grad_run_ref)(const ot_run *r)
{
    return FN(recurrent_grad_run)(r, FN(recurrent_grad_by_ref));
}
