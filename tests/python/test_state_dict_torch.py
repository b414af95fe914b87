# SPDX-License-Identifier: Apache-2.0
"""State dicts of tensors of PyTorch."""

import unittest

import numpy as np
from state_dict_modules import ModulesTest

from onnxtrain.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict

try:
    import torch
except ImportError:
    torch = None


@unittest.skipIf(torch is None, "needs torch")
class TorchTest(ModulesTest):
    def test_tensors_of_torch_are_taken(self):
        state, module, _ = self.open(1)
        given = {name: torch.full(value.shape, 2.0) for name, value in get_model_state_dict(module).items()}
        set_model_state_dict(module, given)
        np.testing.assert_array_equal(state.parameters["b2"].data, [2, 2])

    def test_sharded_tensors_of_torch_are_taken(self):
        from torch import distributed
        from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh

        distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
        self.addCleanup(distributed.destroy_process_group)
        state, module, _ = self.open(1)
        given = get_model_state_dict(module)
        mesh = init_device_mesh("cpu", (1,))
        given["w1"] = distribute_tensor(torch.full((3, 4), 3.0), mesh, [Shard(0)])
        set_model_state_dict(module, given)
        np.testing.assert_array_equal(state.parameters["w1"].data, np.full((3, 4), 3))


if __name__ == "__main__":
    unittest.main()
