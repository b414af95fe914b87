# SPDX-License-Identifier: Apache-2.0
"""State dicts of tensors of PyTorch."""

import unittest

import numpy as np
from state_dict_modules import ModulesTest

from onnxtrain.distributed.checkpoint import load, save
from onnxtrain.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)

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

    def mesh(self, shape=(2,), rank=1):
        """Of ranks of which only this one is there."""
        from torch import distributed
        from torch.distributed.tensor import init_device_mesh
        from torch.testing._internal.distributed.fake_pg import FakeStore

        distributed.init_process_group("fake", store=FakeStore(), rank=rank, world_size=int(np.prod(shape)))
        self.addCleanup(distributed.destroy_process_group)
        return init_device_mesh("cpu", shape)

    def part(self, whole, mesh, placements, own):
        """A DTensor of which a range is here."""
        from torch.distributed.tensor import DTensor

        whole = torch.as_tensor(whole)
        return DTensor.from_local(
            whole[own].clone(), mesh, placements, run_check=False, shape=whole.shape, stride=whole.stride()
        )

    def test_a_dtensor_of_one_rank_is_taken(self):
        from torch.distributed.tensor import Shard, distribute_tensor

        state, module, _ = self.open(1)
        given = get_model_state_dict(module)
        given["w1"] = distribute_tensor(torch.full((3, 4), 3.0), self.mesh((1,), 0), [Shard(0)])
        set_model_state_dict(module, given)
        np.testing.assert_array_equal(state.parameters["w1"].data, np.full((3, 4), 3))

    def check_parts(self, mesh, *rows):
        """Each row: placements, the range that they give this rank, how many elements it has."""
        whole = np.arange(12, dtype=np.float32).reshape(3, 4)
        save({"model": {"w1": whole}}, checkpoint_id=self.folder / "saved")
        _, module, _ = self.open(1)
        for placements, own, n_elements in rows:
            with self.subTest(placements):
                given = self.part(np.zeros((3, 4), np.float32), mesh, placements, own)
                load({"model": {"w1": given}}, checkpoint_id=self.folder / "saved")
                np.testing.assert_array_equal(given.to_local().numpy(), whole[own])
                with self.assertRaisesRegex(ValueError, f"{n_elements} of the 12 elements"):
                    set_model_state_dict(module, get_model_state_dict(module) | {"w1": given})

    def test_a_part_of_a_dtensor_is_where_its_placements_say(self):
        from torch.distributed.tensor import Shard

        self.check_parts(self.mesh(), ([Shard(0)], np.s_[2:], 4), ([Shard(1)], np.s_[:, 2:], 6))

    def test_a_part_may_be_cut_twice(self):
        from torch.distributed.tensor import Replicate, Shard

        self.check_parts(
            self.mesh((2, 2), 3),
            ([Shard(0), Shard(1)], np.s_[2:, 2:], 2),
            ([Replicate(), Shard(1)], np.s_[:, 2:], 6),
            ([Shard(1), Shard(1)], np.s_[:, 3:], 3),
        )

    def test_a_replicated_dtensor_is_a_whole_value(self):
        from torch.distributed.tensor import Replicate

        state, module, optimizer = self.open(1)
        whole, mesh = np.arange(12, dtype=np.float32).reshape(3, 4), self.mesh()
        given = self.part(whole, mesh, [Replicate()], np.s_[:])
        for options in (StateDictOptions(), StateDictOptions(full_state_dict=True)):
            self.step(module, optimizer, 3)
            model, optims = get_state_dict(module, optimizer)
            optims["state"]["w1"] = {**optims["state"]["w1"], "exp_avg": given}
            set_state_dict(
                module, optimizer, model_state_dict={**model, "w1": given}, optim_state_dict=optims, options=options
            )
            np.testing.assert_array_equal(state.parameters["w1"].data, whole)
            np.testing.assert_array_equal(get_optimizer_state_dict(module, optimizer)["state"]["w1"]["exp_avg"], whole)
        save({"model": {"w1": given}}, checkpoint_id=self.folder / "saved")
        target = self.part(np.zeros((3, 4), np.float32), mesh, [Replicate()], np.s_[:])
        load({"model": {"w1": target}}, checkpoint_id=self.folder / "saved")
        np.testing.assert_array_equal(target.to_local().numpy(), whole)

    def test_what_is_not_summed_yet_is_refused(self):
        from torch.distributed.tensor import Partial

        state, module, _ = self.open(1)
        before = state.parameters["w1"].data
        model = get_model_state_dict(module)
        given = self.part(np.full((3, 4), 7, np.float32), self.mesh(), [Partial()], np.s_[:])
        text = r"\['w1'\] is a DTensor placed as .*expected Shard and Replicate: redistribute\(\) it first$"
        for call in (
            lambda: set_model_state_dict(module, model | {"w1": given}),
            lambda: save({"model": {"w1": given}}, checkpoint_id=self.folder / "saved"),
            lambda: load({"model": {"w1": given}}, checkpoint_id=self.folder / "saved"),
        ):
            with self.assertRaisesRegex(ValueError, text):
                call()
        np.testing.assert_array_equal(state.parameters["w1"].data, before)

    def test_a_part_that_does_not_lie_in_rows_is_read_into(self):
        from torch.distributed.tensor import DTensor, Shard

        whole = np.arange(12, dtype=np.float32).reshape(3, 4)
        save({"model": {"w1": whole}}, checkpoint_id=self.folder / "saved")
        local = torch.zeros(2, 3).T
        given = DTensor.from_local(local, self.mesh(), [Shard(1)], run_check=False, shape=(3, 4), stride=(4, 1))
        load({"model": {"w1": given}}, checkpoint_id=self.folder / "saved")
        np.testing.assert_array_equal(given.to_local().numpy(), whole[:, 2:])


if __name__ == "__main__":
    unittest.main()
