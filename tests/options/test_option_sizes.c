// SPDX-License-Identifier: Apache-2.0
// Every option struct at every size: of callers who were compiled with other headers, and of those
// who left out the initialiser. Each lies in memory of its own, with nothing behind its last byte.
#include "options/comm_users.h"
#include "options/shards_users.h"
#include "options/trainer_users.h"

// ---- sizes ----

static const ot_model_options model_init = OT_MODEL_OPTIONS_INIT;
static const ot_artifacts_options artifacts_init = OT_ARTIFACTS_OPTIONS_INIT;
static const ot_optimizer_options optimizer_init = OT_OPTIMIZER_OPTIONS_INIT;
static const ot_param_group group_init = OT_PARAM_GROUP_INIT;
static const ot_hyper_info hyper_init = OT_HYPER_INFO_INIT;
static const ot_loss_options loss_init = OT_LOSS_OPTIONS_INIT;
static const ot_prepare_options prepare_init = OT_PREPARE_OPTIONS_INIT;
static const ot_block_options block_init = OT_BLOCK_OPTIONS_INIT;
static const ot_linear_options linear_init = OT_LINEAR_OPTIONS_INIT;
static const ot_dataset_options dataset_init = OT_DATASET_OPTIONS_INIT;
static const ot_batches_options batches_init = OT_BATCHES_OPTIONS_INIT;
static const ot_data_options data_init = OT_DATA_OPTIONS_INIT;
static const ot_train_options train_init = OT_TRAIN_OPTIONS_INIT;
static const ot_gradients_options gradients_init = OT_GRADIENTS_OPTIONS_INIT;
static const ot_session_options session_init = OT_SESSION_OPTIONS_INIT;
static const ot_update_info update_init = OT_UPDATE_INFO_INIT;
static const ot_save_options save_init = OT_SAVE_OPTIONS_INIT;
static const ot_schedule schedule_init = OT_SCHEDULE_INIT;
static const ot_loss_scaler loss_scaler_init = OT_LOSS_SCALER_INIT;
static const ot_step_info step_info_init = OT_STEP_INFO_INIT;
static const ot_trainer_options trainer_init = OT_TRAINER_OPTIONS_INIT;
static const ot_memory memory_init = OT_MEMORY_INIT;
static const ot_parallel_ranks ranks_init = OT_PARALLEL_RANKS_INIT;
static const ot_comm_options comm_init = OT_COMM_OPTIONS_INIT;
static const ot_agreement agreement_init = OT_AGREEMENT_INIT;
static const ot_parallel_options parallel_init = OT_PARALLEL_OPTIONS_INIT;
static const ot_comm_counters counters_init = OT_COMM_COUNTERS_INIT;
static const ot_cut cut_init = OT_CUT_INIT;
static const ot_state_dict_options state_dict_init = OT_STATE_DICT_OPTIONS_INIT;
static const ot_shards_save_options shards_save_init = OT_SHARDS_SAVE_OPTIONS_INIT;
static const ot_shards_load_options shards_load_init = OT_SHARDS_LOAD_OPTIONS_INIT;
static const ot_shards_item shards_item_init = {sizeof(ot_shards_item), "m", NULL};
static const ot_shards_counters shards_counters_init = OT_SHARDS_COUNTERS_INIT;
static const ot_shards_info shards_info_init = OT_SHARDS_INFO_INIT;
static const ot_shards_tensor shards_tensor_init = OT_SHARDS_TENSOR_INIT;
static const ot_record_given given_init = OT_RECORD_GIVEN_INIT;

#define OPTIONS(value, macro) &value, sizeof value, macro

static const struct use {
    const void *init;
    size_t size;
    const char *macro;
    ot_status (*use)(world *w, void *options);
    size_t needed; // fewer bytes are refused for what they lack
} uses[] = {
    {OPTIONS(model_init, "OT_MODEL_OPTIONS_INIT"), use_model, 0},
    {OPTIONS(model_init, "OT_MODEL_OPTIONS_INIT"), use_model_save, 0},
    {OPTIONS(artifacts_init, "OT_ARTIFACTS_OPTIONS_INIT"), use_artifacts, 0},
    {OPTIONS(artifacts_init, "OT_ARTIFACTS_OPTIONS_INIT"), use_report, 0},
    {OPTIONS(optimizer_init, "OT_OPTIMIZER_OPTIONS_INIT"), use_optimizer, 0},
    {OPTIONS(optimizer_init, "OT_OPTIMIZER_OPTIONS_INIT"), use_block_optimizer, 0},
    {OPTIONS(group_init, "OT_PARAM_GROUP_INIT"), use_group, 0},
    {OPTIONS(hyper_init, "OT_HYPER_INFO_INIT"), fill_hyper, 0},
    {OPTIONS(loss_init, "OT_LOSS_OPTIONS_INIT"), use_loss, 0},
    {OPTIONS(loss_init, "OT_LOSS_OPTIONS_INIT"), use_block_loss, 0},
    {OPTIONS(prepare_init, "OT_PREPARE_OPTIONS_INIT"), use_prepare, 0},
    {OPTIONS(block_init, "OT_BLOCK_OPTIONS_INIT"), use_block, 0},
    {OPTIONS(linear_init, "OT_LINEAR_OPTIONS_INIT"), use_linear, 0},
    {OPTIONS(label_encoder_init, "OT_LABEL_ENCODER_OPTIONS_INIT"), use_encoder,
     offsetof(ot_label_encoder_options, default_float)},
    {OPTIONS(dataset_init, "OT_DATASET_OPTIONS_INIT"), use_dataset, 0},
    {OPTIONS(batches_init, "OT_BATCHES_OPTIONS_INIT"), use_batches, 0},
    {OPTIONS(batches_init, "OT_BATCHES_OPTIONS_INIT"), use_data_batches, 0},
    {OPTIONS(batches_init, "OT_BATCHES_OPTIONS_INIT"), fill_batches, 0},
    {OPTIONS(data_init, "OT_DATA_OPTIONS_INIT"), use_data, 0},
    {OPTIONS(data_init, "OT_DATA_OPTIONS_INIT"), use_data_record, 0},
    {OPTIONS(data_init, "OT_DATA_OPTIONS_INIT"), fill_data, 0},
    {OPTIONS(data_init, "OT_DATA_OPTIONS_INIT"), fill_recorded, 0},
    {OPTIONS(train_init, "OT_TRAIN_OPTIONS_INIT"), use_train, 0},
    {OPTIONS(train_init, "OT_TRAIN_OPTIONS_INIT"), use_evaluate, 0},
    {OPTIONS(train_init, "OT_TRAIN_OPTIONS_INIT"), fill_train, 0},
    {OPTIONS(gradients_init, "OT_GRADIENTS_OPTIONS_INIT"), use_gradients, 0},
    {OPTIONS(session_init, "OT_SESSION_OPTIONS_INIT"), use_session, 0},
    {OPTIONS(update_init, "OT_UPDATE_INFO_INIT"), fill_update, 0},
    {OPTIONS(save_init, "OT_SAVE_OPTIONS_INIT"), use_save, 0},
    {OPTIONS(schedule_init, "OT_SCHEDULE_INIT"), use_schedule, 0},
    {OPTIONS(loss_scaler_init, "OT_LOSS_SCALER_INIT"), use_loss_scaler, 0},
    {OPTIONS(step_info_init, "OT_STEP_INFO_INIT"), use_step_info, 0},
    {OPTIONS(schedule_init, "OT_SCHEDULE_INIT"), use_train_schedule, 0},
    {OPTIONS(trainer_init, "OT_TRAINER_OPTIONS_INIT"), use_trainer, 0},
    {OPTIONS(trainer_init, "OT_TRAINER_OPTIONS_INIT"), use_session_trainer, 0},
    {OPTIONS(optimizer_init, "OT_OPTIMIZER_OPTIONS_INIT"), use_trainer_optimizer, 0},
    {OPTIONS(session_init, "OT_SESSION_OPTIONS_INIT"), use_trainer_session, 0},
    {OPTIONS(schedule_init, "OT_SCHEDULE_INIT"), use_trainer_schedule, 0},
    {OPTIONS(step_info_init, "OT_STEP_INFO_INIT"), fill_trainer_info, 0},
    {OPTIONS(memory_init, "OT_MEMORY_INIT"), fill_memory, 0},
    {OPTIONS(memory_init, "OT_MEMORY_INIT"), fill_prediction, 0},
    {OPTIONS(ranks_init, "OT_PARALLEL_RANKS_INIT"), use_ranks, 0},
    {OPTIONS(session_init, "OT_SESSION_OPTIONS_INIT"), fill_session, 0},
    {OPTIONS(trainer_init, "OT_TRAINER_OPTIONS_INIT"), use_session_options, 0},
    {OPTIONS(description_init, "OT_MODEL_DESCRIPTION_INIT"), use_description,
     sizeof description_init},
    {OPTIONS(cut_init, "OT_CUT_INIT"), use_cut, 0},
    {OPTIONS(state_dict_init, "OT_STATE_DICT_OPTIONS_INIT"), use_state_dict, 0},
    {OPTIONS(name_entry_init, "OT_NAME_ENTRY_INIT"), use_name_entry,
     offsetof(ot_name_entry, transform)},
    {OPTIONS(given_init, "OT_RECORD_GIVEN_INIT"), use_given, 0},
    {OPTIONS(comm_init, "OT_COMM_OPTIONS_INIT"), use_comm, 0},
    {OPTIONS(agreement_init, "OT_AGREEMENT_INIT"), use_agreement, 0},
    {OPTIONS(transport_init, "OT_TRANSPORT_INIT"), use_transport, sizeof transport_init},
    {OPTIONS(counters_init, "OT_COMM_COUNTERS_INIT"), fill_counters, 0},
    {OPTIONS(shards_save_init, "OT_SHARDS_SAVE_OPTIONS_INIT"), use_shards_save, 0},
    {OPTIONS(shards_load_init, "OT_SHARDS_LOAD_OPTIONS_INIT"), use_shards_load, 0},
    {OPTIONS(shards_item_init, "OT_SHARDS_ITEM_INIT"), use_shards_item, sizeof shards_item_init},
    {OPTIONS(shards_counters_init, "OT_SHARDS_COUNTERS_INIT"), fill_shards_counters, 0},
    {OPTIONS(shards_info_init, "OT_SHARDS_INFO_INIT"), fill_shards_info, 0},
    {OPTIONS(shards_tensor_init, "OT_SHARDS_TENSOR_INIT"), fill_shards_tensor, 0},
    {OPTIONS(parallel_init, "OT_PARALLEL_OPTIONS_INIT"), use_parallel, 0},
};

// `n` bytes that say they are `size`: what the initialiser makes, then 0, then perhaps one byte.
static ot_status call(const struct use *u, world *w, size_t n, size_t size, size_t odd_byte)
{
    char *options = calloc(1, n);
    ot_status st;

    memcpy(options, u->init, OT_MIN(n, u->size));
    memcpy(options, &size, sizeof size);
    if (odd_byte < n)
        options[odd_byte] = 1;
    st = u->use(w, options);
    free(options);
    return st;
}

static void assert_refused(const struct use *u, ot_status st, size_t size, const char *why)
{
    char remedy[64];

    snprintf(remedy, sizeof remedy, "begin with %s", u->macro);
    if (st != OT_ERR_INVALID || !strstr(ot_error_message(), remedy) ||
        !strstr(ot_error_message(), why))
        fail_msg("%s: size %zu: %s '%s', expected '%s'", u->macro, size, ot_status_name(st),
                 st == OT_OK ? "" : ot_error_message(), why);
}

static void senseless_sizes_are_refused(void **state)
{
    static const size_t huge[] = {4104, SIZE_MAX, SIZE_MAX - 7};

    for (size_t i = 0; i < OT_COUNT(uses); i++) {
        for (size_t size = 0; size <= uses[i].size + 64; size++)
            if (size <= sizeof size || size % sizeof size != 0)
                assert_refused(&uses[i],
                               call(&uses[i], *state, OT_MAX(size, sizeof size), size, SIZE_MAX),
                               size, "size is ");
        for (size_t k = 0; k < OT_COUNT(huge); k++)
            assert_refused(&uses[i], call(&uses[i], *state, uses[i].size, huge[k], SIZE_MAX),
                           huge[k], "size is ");
    }
}

static void every_whole_size_is_taken(void **state)
{
    for (size_t i = 0; i < OT_COUNT(uses); i++)
        for (size_t size = 2 * sizeof size; size <= uses[i].size + 64; size += sizeof size) {
            const ot_status st = call(&uses[i], *state, size, size, SIZE_MAX);

            if (size >= uses[i].needed && st != OT_OK)
                fail_msg("%s: size %zu: %s", uses[i].macro, size, ot_error_message());
            if (st != OT_OK && strstr(ot_error_message(), "begin with"))
                fail_msg("%s: size %zu: %s", uses[i].macro, size, ot_error_message());
        }
}

static void what_only_a_later_version_knows_is_refused_when_it_is_set(void **state)
{
    for (size_t i = 0; i < OT_COUNT(uses); i++) {
        const size_t size = uses[i].size + 64;

        for (size_t odd = uses[i].size; odd < size; odd++) {
            char why[96];

            snprintf(why, sizeof why, "size is %zu and byte %zu is set", size, odd);
            assert_refused(&uses[i], call(&uses[i], *state, size, size, odd), size, why);
        }
    }
}

// ---- arrays ----

// Cross entropy twice, the second with factor 0.5, `distance` bytes apart.
static ot_status train_with_two(world *w, size_t distance, size_t second_size, ot_artifacts **out)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    char *losses = calloc(2, distance);
    ot_status st;

    loss.size = distance;
    memcpy(losses, &loss, OT_MIN(distance, sizeof loss));
    loss.size = second_size;
    loss.factor = 0.5;
    memcpy(losses + distance, &loss, OT_MIN(distance, sizeof loss));
    options.losses = (const ot_loss_options *)(const void *)losses;
    options.n_losses = 2;
    st = ot_artifacts_generate(w->model, &options, out);
    free(losses);
    return st;
}

static void losses_lie_as_far_apart_as_the_first_says(void **state)
{
    const size_t distances[] = {sizeof(ot_loss_options) - 8, sizeof(ot_loss_options),
                                sizeof(ot_loss_options) + 16};

    for (size_t i = 0; i < OT_COUNT(distances); i++) {
        ot_artifacts *artifacts;
        const char *terms;

        must(train_with_two(*state, distances[i], distances[i], &artifacts));
        terms = ot_model_metadata(ot_artifacts_training_model(artifacts), "onnxtrain.loss");
        assert_non_null(terms);
        assert_memory_equal(terms, "1\tcross-entropy\t", 16);
        assert_non_null(strstr(terms, "\n0.5\tcross-entropy\t"));
        ot_artifacts_destroy(artifacts);
    }
}

static void losses_of_several_sizes_are_refused(void **state)
{
    const size_t size = sizeof(ot_loss_options);
    ot_artifacts *artifacts;

    assert_int_equal(train_with_two(*state, size, size - 8, &artifacts), OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), "ot_loss_options: size of element 1 is "));
    assert_non_null(strstr(ot_error_message(), "begin with OT_LOSS_OPTIONS_INIT"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(senseless_sizes_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(every_whole_size_is_taken, setup, teardown),
        cmocka_unit_test_setup_teardown(what_only_a_later_version_knows_is_refused_when_it_is_set,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(losses_lie_as_far_apart_as_the_first_says, setup, teardown),
        cmocka_unit_test_setup_teardown(losses_of_several_sizes_are_refused, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
