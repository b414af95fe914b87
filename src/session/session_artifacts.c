// Sessions over the artifacts of one training run.
#include "session/session_internal.h"

ot_status ot_session_create_from_artifacts(ot_artifacts *artifacts,
                                           const ot_session_options *options, ot_session **out)
{
    return ot_session_create(
        ot_artifacts_training_model(artifacts), ot_artifacts_eval_model(artifacts),
        ot_artifacts_optimizer_model(artifacts), ot_artifacts_checkpoint(artifacts), options, out);
}
