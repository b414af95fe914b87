// SPDX-License-Identifier: Apache-2.0
// What the files of `session` share.
#ifndef OT_SESSION_SESSION_INTERNAL_H
#define OT_SESSION_SESSION_INTERNAL_H

#include "dist/dist.h"
#include "session/session.h"

enum {
    OT_PLAN_CACHE = 4,         // plans kept per model; one is enough but for the last, short batch
    OT_QUESTION_CACHE = 8,     // and questions whose answers decide which plan it is
    OT_SESSION_OUTPUTS = 1024, // outputs a model may hand out; a multiple of 64
};

// What a graph input stands for: of the training or eval model, of any model by hand (user and
// constant), of the optimizer model (from the learning rate on; its sequences have an entry for
// every trainable parameter).
typedef enum ot__input_role {
    OT_ROLE_USER,
    OT_ROLE_CONSTANT, // has an initializer
    OT_ROLE_PARAMETER,
    OT_ROLE_GRADIENT,
    OT_ROLE_INPUT_GRADIENT, // of a user input
    OT_ROLE_LAZY_RESET,
    OT_ROLE_LOSS_SCALE,
    OT_ROLE_LEARNING_RATE,
    OT_ROLE_STEP,
    OT_ROLE_DIVISOR,
    OT_ROLE_PARAMETERS,
    OT_ROLE_GRADIENTS,
    OT_ROLE_SLOT, // and those of the other slots
    OT_ROLE_END = OT_ROLE_SLOT + OT_SLOTS,
} ot__input_role;

typedef struct ot__input {
    ot__input_role role;
    ot__parameter *parameter; // PARAMETER, GRADIENT
    int i_user;               // INPUT_GRADIENT: position among the user inputs
    ot_tensor *gradient;      // INPUT_GRADIENT: NULL before the first step
    int64_t n_numbers;        // LEARNING_RATE, STEP, DIVISOR
} ot__input;

// What is given for the user inputs, in their order.
typedef struct ot__given {
    int *lengths;     // per user input: tensors of a sequence; 1 for a tensor
    ot_shape *shapes; // of all of them, one behind the other
    int n_shapes, capacity;
    // Of the present step, as many as shapes: borrowed while has_tensors.
    const ot_tensor **tensors;
    bool has_tensors;
    ot_tensor **answers; // what was computed of them because it decides on shapes, in order
    int n_answers, answers_capacity;
} ot__given;

// A plan for one set of user input shapes, and of answers to questions: or the next question, by a
// plan that computes its answers.
typedef struct ot__cached_plan {
    ot__given given;
    ot_model *model;      // the specialised copy: the plan points at its constants
    ot__hoisted hoisted;  // inputs of the plan that are derived values
    bool is_inside;       // it has the update
    const char *question; // of the model's arena: why it is asked; NULL: it is no question
    ot__plan *plan;       // NULL: the slot is free
    uint64_t last_used;
} ot__cached_plan;

// The one holder of a compiled model: the prepared graph, what its inputs stand for, plans by
// shapes. Training, evaluation, the optimizer and runners have one each.
// What a session makes of a model that is prepared.
typedef ot_status ot__model_change(ot_model *model);

typedef struct ot__compiled_model {
    const char *what;         // "training model", for messages
    ot_model *model;          // prepared, perhaps shared: it does not change any more
    ot__model_change *change; // that has been made to it; NULL: none
    ot__arena *arena;         // of the lists
    ot__input *inputs;
    int n_inputs;
    ot_dtype narrow;                 // of plans in mixed precision; else OT_DTYPE_UNDEFINED
    int *user_inputs, *user_outputs; // positions in the graph
    int n_user_inputs, n_user_outputs;
    const ot_shape *entry_shapes; // of the sequences that are not the user's
    int n_entries;
    ot__given given; // for the present step
    ot__recompute_options recompute;
    bool may_recompute; // to keep below a ceiling
    bool gathers;       // parameters, in every step: they have no derived values
    bool is_inside;     // training: the plan has the update (update_inside.c)
    ot__plan *paused;   // training: in the middle of such a step; NULL: none
    ot__cached_plan plans[OT_PLAN_CACHE], questions[OT_QUESTION_CACHE];
    uint64_t clock; // of uses, for the plan to give up
} ot__compiled_model;

// Of gradients that are cut: what options want made again may read any parameter, whose gathers all
// come before the sums then.
static inline bool ot__sums_are_late(const ot__compiled_model *program)
{
    return program->recompute.what != 0;
}

static inline const ot_value *ot__user_input(const ot__compiled_model *program, int i)
{
    return program->model->graph->inputs[program->user_inputs[i]];
}

// Shapes and lengths of all graph inputs, as ot__plan_create takes them.
typedef struct ot__input_shapes {
    ot_shape *tensors;
    int *lengths;               // of sequences, else 0
    const ot_shape **sequences; // NULL for tensors
    ot__hoisted *hoisted;       // inputs behind those of the model
} ot__input_shapes;

// Makes a plan of a specialised and fused graph, by what its owner grants. *excess: bytes above
// that, where it is refused for them.
typedef ot_status (*ot__planner)(void *owner, const ot__compiled_model *program, ot_graph *graph,
                                 const ot__input_shapes *shapes, size_t *excess, ot__plan **plan);
typedef struct ot__plan_owner {
    void *owner;
    ot__planner plan;
    ot__planner question; // of a question, with memory of its own; *excess does not matter
    // Binds the inputs of a question's plan as those of the present step, and runs it.
    ot_status (*answer)(void *owner, const ot__compiled_model *program, ot__plan *question);
} ot__plan_owner;

// Derived values (derived.c).
typedef struct ot__derived {
    struct ot__derived *next; // of the same parameter, in another type
    ot_tensor *value;
    const ot_tensor *from; // what it was made of, when `n_changes` was that of the checkpoint
    uint64_t n_changes;
} ot__derived;
typedef struct ot__derived_values {
    ot__derived **of; // per parameter of the session; NULL: there are none
    size_t n_bytes;
} ot__derived_values;

// Parameters that a train step itself changes (running statistics), to undo a failed one, or all
// since gradients were reset.
typedef struct ot__undo {
    ot__parameter **parameters;
    void **copies, **first_copies; // before the last step, before the first since the reset
    uint64_t first_counter;
    bool is_first_row_major; // the copies before the first, which are older than any plan
    int n;
} ot__undo;

// An update by slices (slices.c).
typedef struct ot__gradient_set { // the sum over some slices that others are added to later
    ot__tree_node node;
    void **gradients;  // per parameter of the session; NULL: it is not trained
    void **statistics; // per parameter of `undo`: the sum of what slices have made of it
    char *memory;      // of all of it
} ot__gradient_set;
typedef struct ot__slices {
    int count;              // of a micro-batch; 0, 1: there are none
    int first, last;        // this session runs those, without the last
    bool is_under_way;      // since the first of them has begun
    int present;            // the number of the one that runs
    double weight;          // of the gradients that it has so far
    bool has_weights;       // which is not 1
    bool has_steps;         // so far,
    bool has_rows;          // and in some of them
    bool is_ghost;          // the next step counts nothing
    int n_run;              // slices that had rows
    ot__gradient_set *sets; // sums over slices, of which those in front wait for others
    int n_sets, n_waiting;
} ot__slices;

// Inputs of an optimizer model.
#define OT_INPUT_GRADIENTS "gradients"
#define OT_INPUT_DIVISOR "gradient_divisor"

typedef struct ot__optimizer {
    ot__compiled_model program; // program.model NULL: no optimizer
    ot__plan *plan;             // of the program; NULL before the parameters have values
    bool is_switch;             // it replaces one, whose moments make room
    const ot_node *rule;        // of the model: updates the parameters
    const char *moments_of;     // the operator that keeps moments, NULL: none does
    bool has_slot[OT_SLOTS];    // the model takes them
    bool uses_slot[OT_SLOTS];   // and does more with them than pass them on
    ot__parameter **parameters; // the trainable ones, in the order of the training model
    int n_parameters;
    float *rates;   // one per group of parameters
    bool has_rates; // each has been set; else they are the session's learning rate
    int n_groups;
    int64_t *steps; // number of the update, from 1: of the checkpoint, or one per parameter
    int n_steps;
    bool counts_each; // it takes a number for each parameter
    float divisor;    // of the gradients
    bool takes_divisor;
    bool keeps_gradients; // as steps leave them; else an update divides them, and may clip them
    bool fits_inside;     // the backward pass: it takes each gradient by itself
    int i_norm, i_finite; // outputs; -1: there is none
} ot__optimizer;

// How parameters lie in memory while the session works, chosen with the first training plan.
typedef struct ot__packing {
    bool is_chosen;
    const ot_layout **layouts; // per parameter of the session; NULL before
    void *buffer;              // to change layouts in place
    size_t buffer_bytes;
} ot__packing;

struct ot_session {
    ot__guard guard;
    ot_checkpoint *checkpoint;
    ot_session_options options;
    ot__plan_options plan_options;
    ot__compiled_model training, eval; // eval.model NULL: none
    ot_model *eval_source;             // the eval model as given, for export
    ot__optimizer optimizer;
    ot__parameter **parameters; // of the training model, in the order of its inputs
    int n_parameters;
    ot__packing packing;
    ot__derived_values derived;
    ot__undo undo;
    ot__slices slices;
    struct ot__ranks *ranks; // NULL: there is one process (ranks.h)
    void *block;             // activations of whatever plan runs
    size_t block_bytes;
    size_t plan_bytes; // of the largest plan so far
    bool overwrite_gradients;
    bool has_trainer; // which alone makes its steps
    bool syncs_norms; // batch normalisations take statistics of the batches of all ranks
    double learning_rate;
    float loss_scale;
    ot_schedule schedule;
    bool has_schedule;
    uint64_t seed, counter;
    ot_dict *custom_hyper;         // of groups, by their number: what no rule here knows
    struct ot__named_bytes *bytes; // of the program
    bool is_half_set;              // messages failed while a state was set
    bool is_half_updated;          // an update failed while it ran
    bool wants_inside;             // updates of the next train steps may come inside of them
    bool is_paused;                // between the halves of such a step
    void *guest_block;             // of a plan that runs meanwhile
};

#define OT_KIND_SESSION "session"

// session.c
ot_status ot__session_check_mode(ot_mode mode);
// Entering for what a trainer that has the session does alone: OT_ERR_STATE while it has.
ot_status ot__session_enter_step(const ot_session *session);
// OT_ERR_STATE when the checkpoint is nominal.
ot_status ot__session_check_values(const ot_session *session);
ot_status ot__session_make_gradients(ot_session *session); // zeroed
// The models on their way into a session, which takes each over in its turn; eval and optimizer may
// be NULL.
typedef struct ot__models {
    ot_model *training, *eval, *optimizer;
    bool without_gradients; // until a step needs them, but over several ranks
} ot__models;
// ot_session_create() without copies; drops what it does not take. `status`: of getting the models,
// OT_OK or what is returned.
ot_status ot__session_create(ot__models *models, ot_status status, ot_checkpoint *checkpoint,
                             const ot_session_options *options, ot_session **out);
ot_dtype ot__session_narrow(const ot_session_options *options); // OT_DTYPE_UNDEFINED: f32
ot_status ot__session_options_take(const ot_session_options *options, ot_session_options *own,
                                   ot__plan_options *plan_options);

// ranks.c. What the options say of other ranks; of no communicator there is none.
ot_status ot__ranks_read(const ot_session_options *options, ot_parallel_options *out);
ot_status ot__ranks_create(ot_session *session, const ot_parallel_options *options);
ot_status ot__ranks_prepare(ot_session *session); // when its parameters have gradients
// Collective: how making the session went on all ranks, `st` on this one; `session` NULL: it has
// failed.
ot_status ot__ranks_join(const ot_parallel_options *options, ot_session *session, ot_status st);
void ot__ranks_deinit(ot_session *session);
// Gradients are cut over ranks: made when they are cut, and summed in every step.
bool ot__ranks_cut_gradients(const ot_session *session);
// Gradients have been given: they are not the sums over ranks that were there.
void ot__ranks_forget_sums(ot_session *session);
// Layouts may be chosen anew; OT_ERR_UNSUPPORTED where parts of parameters lie in them.
ot_status ot__ranks_forget_layouts(ot_session *session);
// Collective: all ranks are given the same optimizer model. One process: `st`.
ot_status ot__ranks_agree_on_optimizer(const ot_session *session, ot_status st);
// What the optimizer keeps is still to be cut over ranks.
bool ot__ranks_cut_later(const ot_session *session);

// threads.c. Outside of plans: the session's number of threads is that of this thread from now on,
// if it has one; returns what to give back with ot__parallel_set().
int ot__session_take_threads(const ot_session *session);
// ot__parallel_for() over numbers, with the session's threads.
void ot__session_for(const ot_session *session, int64_t count,
                     void (*run)(void *context, int64_t first, int64_t last), void *context);

// session_memory.c: value, gradient and slots, as far as they are here.
size_t ot__parameter_bytes(const ot__parameter *p);

// undo.c
ot_status ot__undo_create(ot_session *session);
void ot__undo_keep(ot_session *session);
// The gradients are those of `n` train steps before there was the session.
void ot__undo_resume(ot_session *session, int64_t n);
void ot__undo_restore(const ot__undo *undo);
// What steps are taken back to, from now on, and that.
void ot__undo_keep_first(ot_session *session);
void ot__undo_rewind(ot_session *session);
void ot__undo_deinit(ot__undo *undo);

// slices.c
void ot__slices_deinit(ot_session *session);
size_t ot__slices_bytes(const ot_session *session); // of the sums that wait
// In the last step of this session's last slice, once the gradients of these parameters are
// complete: they become what is added to the sums that go on waiting in front. Returns how many.
int ot__slices_join_early(ot_session *session, ot__parameter *const *parameters, int n);
// Running statistics are sums over `n` slices that had rows.
void ot__slices_divide_statistics(ot_session *session, int64_t n);

// parameter_layout.c: layouts of parameters. Choosing looks at the specialised training graph.
ot_status ot__packing_choose(ot_session *session, ot_graph *graph, const ot__hoisted *hoisted);
// The layouts of the inputs of a program's plan, of which there are `n`; the caller frees it. NULL:
// no memory.
const ot_layout **ot__packing_of_inputs(const ot_session *session,
                                        const ot__compiled_model *program, int n);
void ot__packing_enter(ot_session *session);        // before anything computes with parameters
void ot__packing_leave(ot_session *session);        // all row-major, for good
ot_status ot__packing_give_up(ot_session *session); // and plans are made anew

// compiled_model.c: takes `model` over, also on failure, prepares it unless it is, and changes it.
// What comes after a failure is ot__compiled_model_deinit in any case.
ot_status ot__compiled_model_create(ot__compiled_model *program, const char *what, ot_model *model,
                                    ot__model_change *change);
// program_inputs.c: the roles of the training or eval model's inputs and outputs; of any model's
// inputs. There is room for the roles of all inputs, which are 0 before.
ot_status ot__compiled_model_sort(ot__compiled_model *program, const ot_checkpoint *checkpoint);
ot_status ot__compiled_model_sort_by_hand(ot__compiled_model *program);
void ot__compiled_model_deinit(ot__compiled_model *program);
void ot__compiled_model_drop_plans(ot__compiled_model *program); // and questions
void ot__compiled_model_drop_questions(ot__compiled_model *program);
void ot__cached_plan_deinit(ot__cached_plan *slot);
// Room in program->given for so many tensors.
ot_status ot__compiled_model_reserve(ot__compiled_model *program, int n_shapes);
// The user's are tensors of these shapes, and nobody says what is in them.
void ot__compiled_model_set_shapes(ot__compiled_model *program, const ot_shape *shapes);
// given.c: what a plan is for.
bool ot__given_equal(const ot__given *a, const ot__given *b, int n_inputs);
ot_status ot__given_copy(const ot__given *from, int n_inputs, ot__given *to);
ot_status ot__given_add_answer(ot__given *given, ot_tensor *answer); // which it takes over
void ot__given_forget_answers(ot__given *given);
void ot__given_deinit(ot__given *given);
// plan_cache.c: the plan for program->given. Questions are answered on the way, of its tensors;
// OT_ERR_UNSUPPORTED where it has none.
ot_status ot__compiled_model_plan(ot__compiled_model *program, const ot__plan_owner *owner,
                                  ot__plan **out);

// Its derived inputs.
const ot__hoisted *ot__compiled_model_hoisted(const ot__compiled_model *program,
                                              const ot__plan *plan);

// derived.c: memory for the derived inputs of a graph of the training or eval model, and binding
// them to its plan, made anew where the parameters have changed.
ot_status ot__derived_make(ot_session *session, const ot__compiled_model *program,
                           const ot_graph *graph, const ot__hoisted *hoisted);
void ot__derived_bind(ot_session *session, const ot__compiled_model *program, ot__plan *plan);
void ot__derived_deinit(ot_session *session);

// input_gradients.c: buffers for gradients of user inputs, whose shapes are those of the step.
// Those of the present step, which adds to what is there unless a reset is due.
ot_status ot__input_gradients_make(const ot_session *session, ot__compiled_model *program);
size_t ot__input_gradients_bytes(const ot__compiled_model *program);
void ot__input_gradients_deinit(ot__compiled_model *program);

// outputs.c: a new tensor for an output, which is bound before a run and complete behind it; one of
// strings is made only then.
ot_status ot__output_make(ot__plan *plan, int i_output, ot_tensor **out);
ot_status ot__output_take(const ot__plan *plan, int i_output, ot_tensor **out);

// update_inside.c. Whether the optimizer fits there, of present models.
ot_status ot__inside_settle(ot_session *session);
// Before the plan of a train step is looked for: whether it has the update.
ot_status ot__inside_prepare(ot_session *session);
ot_status ot__inside_add(ot_session *session, ot_graph *graph); // where the plan is to have it
void ot__inside_lay(const ot_session *session, const ot__hoisted *hoisted,
                    const ot_layout **layouts); // of the inputs that it has added
// A train step, or its first half, and the second one. ot__inside_end(): there will be none.
ot_status ot__inside_begin(ot_session *session, ot__plan *plan, const ot_step *step);
ot_status ot__inside_finish(ot_session *session);
void ot__inside_end(ot_session *session);
// For who asks for them: there are some, or zeros where none have been kept; OT_ERR_STATE while the
// trainer keeps none.
ot_status ot__session_need_gradients(ot_session *session);

// step.c: the inputs of a plan of the training or eval model, the user's being `given`.
void ot__session_bind_inputs(const ot_session *session, const ot__compiled_model *program,
                             ot__plan *plan, const ot_tensor *const *given);
const ot_tensor *ot__session_parameter(const ot_session *session, const ot__compiled_model *program,
                                       const ot__input *input);
ot_step ot__session_present_step(const ot_session *session, const ot__compiled_model *program);

// question.c: of the training or eval model, as in ot__plan_owner.
ot_status ot__question_plan(void *session, const ot__compiled_model *program, ot_graph *graph,
                            const ot__input_shapes *shapes, size_t *excess, ot__plan **plan);
ot_status ot__question_answer(void *session, const ot__compiled_model *program, ot__plan *question);

// session_plan.c: the plan of the training or eval model for program->given.
ot_status ot__session_plan(ot_session *session, ot__compiled_model *program, ot__plan **out);
// The same, without the memory to run it in.
ot_status ot__session_find_plan(ot_session *session, ot__compiled_model *program, ot__plan **out);
// Give `plan` the session's block, which grows when it must. It is a plan's for a run: without a
// plan it may be taken, or dropped.
ot_status ot__session_lend_block(ot_session *session, ot__plan *plan);
ot_status ot__session_take_block(ot_session *session, size_t n_bytes, void **out);
void ot__session_drop_block(ot_session *session);
// What a plan may take; `n_bytes` more of state are to come.
ot_status ot__plan_budget(const ot_session *session, size_t n_bytes, ot__plan_options *options);

// optimizer_model.c: takes `model` over, also on failure.
ot_status ot__optimizer_create(ot_session *session, ot_model *model);
void ot__optimizer_deinit(ot__optimizer *optimizer);
// optimizer_divisor.c: a model that has no divisor takes one where its operators can.
ot_status ot__optimizer_take_divisor(ot_model *model);
// The slots and the plan, once the parameters have values: at once, or for a nominal checkpoint
// with the first update.
ot_status ot__optimizer_ready(ot_session *session);

// slots.c: those that an optimizer needs and the checkpoint does not have. They are made, then
// taken over at once when nothing can fail any more.
typedef struct ot__fresh_slots {
    ot_tensor **tensors; // OT_SLOTS for each parameter of the optimizer, NULL: it keeps what it has
    int n;
    bool has_moments; // all moments are new
    size_t n_bytes;
} ot__fresh_slots;
ot_status ot__slots_make(const ot_session *session, ot__fresh_slots *fresh);
ot_status ot__slots_take(ot_session *session, ot__fresh_slots *fresh);
void ot__slots_deinit(ot__fresh_slots *fresh);

// parameters.c: the gradients of the trainable parameters times `factor`.
ot_status ot__session_scale_parameter_gradients(ot_session *session, double factor);

// resume.c: what the checkpoint format has no place for, as properties
ot_status ot__session_resume(ot_session *session);
ot_status ot__schedule_check(const ot_schedule *schedule);

// export_outputs.c: the caller frees *names, not the names
ot_status ot__export_outputs(const ot__compiled_model *program, const char ***names, int *n_names);

// dump.c: OT_DUMP_GRAPH
void ot__dump_start(void);

// finite.c
bool ot__gradients_are_finite(const ot_session *session);

#endif
