#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The statistics of ./dev bench --against, on numbers whose result can be worked out by hand, the products of ./dev bench kernels, and the
table of ./dev bench operators: check.py COMMAND."""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import kernels
import operator_table
import operators
import paired


def process(ms, peak=100.0, least=None):
    return {"ms": ms, "least": ms if least is None else least, "peak": peak}


def pairs_of(time, memory, n):
    return [(process(10 * time, 100 * memory), process(10.0, 100.0))] * n


class Series:
    """Gives the pairs of one measurement after the other, and keeps how many each was to have."""

    def __init__(self, *figures):
        self.figures, self.asked = list(figures), []

    def __call__(self, n_pairs):
        self.asked.append(n_pairs)
        return pairs_of(*self.figures.pop(0), n_pairs)


class Ratios(unittest.TestCase):
    def test_time_is_the_median_of_the_ratios_and_not_the_ratio_of_the_medians(self):
        pairs = [(process(10), process(10)), (process(44), process(40)), (process(36), process(30))]
        self.assertAlmostEqual(paired.ratios(pairs).time, 1.1)  # of 1, 1.1, 1.2; that of the medians is 36 / 30

    def test_one_disturbed_process_does_not_matter(self):
        pairs = pairs_of(1.0, 1.0, 4) + [(process(900), process(10))]
        self.assertAlmostEqual(paired.ratios(pairs).time, 1.0)

    def test_an_even_number_of_pairs_takes_the_mean_of_the_middle_two(self):
        pairs = [(process(10), process(10)), (process(12), process(10)), (process(9), process(10)), (process(30), process(10))]
        self.assertAlmostEqual(paired.ratios(pairs).time, 1.1)

    def test_the_least_steps_are_those_of_all_processes(self):
        pairs = [(process(10, least=8), process(10, least=5)), (process(10, least=6), process(10, least=9))]
        self.assertAlmostEqual(paired.ratios(pairs).least, 6 / 5)

    def test_memory_is_the_median_of_the_ratios(self):
        pairs = [(process(1, peak), process(1, 200)) for peak in (200, 202, 800)]
        self.assertAlmostEqual(paired.ratios(pairs).memory, 1.01)


class Decision(unittest.TestCase):
    def decided(self, *figures, n_pairs=15):
        series = Series(*figures)
        pairs, result = paired.decide(series, n_pairs)
        self.assertEqual(len(pairs), series.asked[-1])
        self.assertEqual(result.n_pairs, series.asked[-1])
        return series.asked, paired.above(result)

    def test_figures_at_their_limits_pass_at_once(self):
        self.assertEqual(self.decided((1.02, 1.01)), ([15], []))

    def test_a_faster_and_smaller_build_passes(self):
        self.assertEqual(self.decided((0.5, 0.5)), ([15], []))

    def test_a_figure_above_is_measured_again_with_three_times_as_many_pairs(self):
        self.assertEqual(self.decided((1.03, 1.0), (1.0, 1.0)), ([15, 45], []))
        self.assertEqual(self.decided((1.0, 1.02), (1.0, 1.0), n_pairs=4), ([4, 12], []))

    def test_what_stays_above_is_named(self):
        self.assertEqual(self.decided((1.03, 1.0), (1.021, 1.0)), ([15, 45], ["time"]))
        self.assertEqual(self.decided((1.0, 1.02), (1.0, 1.011)), ([15, 45], ["memory"]))
        self.assertEqual(self.decided((1.5, 1.5), (1.5, 1.5)), ([15, 45], ["time", "memory"]))

    def test_the_second_measurement_stands_alone(self):
        self.assertEqual(self.decided((1.03, 1.0), (1.0, 1.02)), ([15, 45], ["memory"]))

    def test_the_order_within_pairs_alternates(self):
        self.assertEqual([paired.new_goes_first(i) for i in range(4)], [True, False, True, False])


class Products(unittest.TestCase):
    """Of a layer of 5 rows, 3 inputs and 2 outputs."""

    def forms(self, **stored):
        return {form: tuple(product) for form, product in kernels.products_of(kernels.Layer("", 5, 3, 2, **stored))}

    def test_weights_stored_as_inputs_by_outputs(self):
        self.assertEqual(self.forms(), {"forward": (1, 5, 2, 3, False, False), "data": (1, 5, 3, 2, False, True),
                                        "weights": (1, 3, 2, 5, True, False)})

    def test_weights_stored_as_outputs_by_inputs(self):
        self.assertEqual(self.forms(transposed=True), {"forward": (1, 5, 2, 3, False, True), "data": (1, 5, 3, 2, False, False),
                                                       "weights": (1, 2, 3, 5, True, False)})

    def test_a_product_of_several_layers_is_measured_once(self):
        places = kernels.products(["encoder", "gpt"])
        shared = kernels.Product(1, 1024, 1024, 256, False, False)
        self.assertEqual([len(places[shared]), shared.operations()], [2, 2 * 1024 * 1024 * 256])

    def test_what_is_asked_of_a_product_follows_from_its_least_extent(self):
        kinds = [kernels.Product(1, 2048, 2048, least, False, False).kind() for least in (512, 511, 256, 255, 65, 64)]
        self.assertEqual(kinds, ["large", "middle", "middle", "", "", "skinny"])


class Ratio(unittest.TestCase):
    """Of the entry taken to libraries and limits, by the second figure, that of the least time."""

    def result(self, chosen, size=512, **speed):
        entries = {"FMA peak": 100, "bytes": 500, "own avx2": 78, "oneDNN": 80, "BLIS": 20, **speed}
        return kernels.Result(kernels.Product(1, size, size, size, False, False), chosen, {name: (1, best) for name, best in entries.items()})

    def test_our_own_kernel_and_the_limits_are_no_libraries(self):
        faster = self.result("own avx2", **{"own avx2": 90})
        self.assertEqual([faster.best_library(), faster.ratio(), faster.misses()], ["oneDNN", 90 / 80, ""])

    def test_what_falls_short_is_named(self):
        self.assertEqual(self.result("own avx2").misses(), "peak")  # 0.975 of the library, 0.78 of the peak
        self.assertEqual(self.result("own avx2", PyTorch=81).misses(), "library, peak")
        self.assertEqual(self.result("own avx2", size=256, PyTorch=81).misses(), "")  # 0.963

    def test_the_bound_is_the_lower_limit(self):
        self.assertEqual(self.result("oneDNN", bytes=90).of_bound(), 80 / 90)

    def test_without_a_library_there_is_no_ratio(self):
        alone = kernels.Result(kernels.Product(1, 512, 512, 512, False, False), "own avx2",
                               {name: (1, best) for name, best in (("FMA peak", 100), ("bytes", 500), ("own avx2", 78))})
        self.assertEqual([alone.ratio(), alone.misses()], [None, "peak"])


class Operators(unittest.TestCase):
    def test_every_operator_with_a_gradient_is_in_the_table_or_has_a_reason(self):
        page = (ROOT / "docs" / "operators.md").read_text()
        differentiable = set(re.findall(r"^\| (\w+) \| [\d, ]+ \| (?!none \||rewritten \|)", page, re.MULTILINE))
        compared = {row.operator() for row in operator_table.ROWS}
        self.assertGreater(len(differentiable), 100)
        self.assertEqual(differentiable - compared, set(operator_table.NOT_COMPARED))
        self.assertEqual(compared - differentiable, set())

    def test_a_row_has_a_name_of_its_own_and_both_sides_read_every_input(self):
        names = [row.name for row in operator_table.ROWS]
        self.assertEqual(len(names), len(set(names)))
        for row in operator_table.ROWS:
            for spec in row.tensors():
                if spec.name not in ("mean", "var"):  # of PyTorch's, which takes the statistics of the batch
                    self.assertRegex(row.torch, rf"\b{spec.name}\b", row.name)
                self.assertRegex(row.onnx, rf"\b{spec.name}\b", row.name)

    def test_every_row_is_a_model_that_has_the_gradients(self):
        with tempfile.TemporaryDirectory() as folder:
            for row in operator_table.ROWS:
                path = Path(folder) / "model.onnxtxt"
                path.write_text(row.model())
                wanted = [word for spec in row.tensors() if spec.is_wanted() for word in ("--wrt", spec.name)]
                done = subprocess.run([sys.argv[1], "grad", path, "--of", "Y", *wanted, "--out", Path(folder) / "gradients.onnx"],
                                      capture_output=True, text=True)
                self.assertEqual((row.name, done.returncode, done.stderr), (row.name, 0, ""))

    def test_operators_below_one_are_listed_the_slowest_first(self):
        found = [("Add", 1, "forward", 0.9, 1.1), ("Mul", 1, "forward", 1.0, 0.5), ("Sub", 2, "gradient", 0.3, 0.2)]
        self.assertEqual(operators.slower_lines(found)[-2:], ["| 0.30 / 0.20 | Sub | 2 | gradient |", "| 0.90 / 1.10 | Add | 1 | forward |"])
        self.assertEqual(operators.slower_lines(found[1:2]), ["No operator is slower than PyTorch's."])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
