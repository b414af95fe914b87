# SPDX-License-Identifier: Apache-2.0
"""The log and the event files of train(), by readers of their own."""

import json
import struct
import tempfile
import time
import unittest
import warnings
from pathlib import Path

from test_train import points, quiet


def crc32c(data):
    """Bit by bit, as the polynomial says (RFC 3720)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def unmasked(crc):
    turned = (crc - 0xA282EAD8) & 0xFFFFFFFF
    return (turned >> 17 | turned << 15) & 0xFFFFFFFF


def records(data):
    while data:
        head = data[:8]
        (length, head_crc), body = struct.unpack("<QI", data[:12]), data[12:]
        (body_crc,) = struct.unpack("<I", body[length : length + 4])
        if crc32c(head) != unmasked(head_crc) or crc32c(body[:length]) != unmasked(body_crc):
            raise ValueError("a CRC is wrong")
        yield body[:length]
        data = body[length + 4 :]


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            size, at = varint(data, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
            value, at = data[at : at + size], at + size
        yield tag >> 3, value


def events(folder):
    """Of each file, in the order of their names: version, [(step, {tag: value})], steps of session starts."""
    for path in sorted(Path(folder).iterdir()):
        version, scalars, starts = None, [], []
        for record in records(path.read_bytes()):
            event = dict(fields(record))
            assert abs(struct.unpack("<d", event[1])[0] - time.time()) < 3600
            version = event.get(3, version)
            if 5 in event:
                values = [dict(fields(value)) for number, value in fields(event[5]) if number == 1]
                scalars.append((event[2], {v[1].decode(): struct.unpack("<f", v[2])[0] for v in values}))
            if 7 in event:
                assert dict(fields(event[7])) == {1: 1}
                starts.append(event[2])
        yield version, scalars, starts


class JournalTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_the_reader_knows_what_is_wrong(self):
        self.assertEqual(crc32c(b"123456789"), 0xE3069283)
        quiet(points(), epochs=1, tensorboard=self.folder)
        (path,) = self.folder.iterdir()
        data = bytearray(path.read_bytes())
        data[14] ^= 1
        with self.assertRaisesRegex(ValueError, "CRC"):
            list(records(bytes(data)))

    def test_every_step_and_epoch_has_its_scalars(self):
        log, seen = self.folder / "log.jsonl", []
        result = quiet(
            points(), epochs=2, split=0.25, schedule="linear", log=log, tensorboard=self.folder / "board",
            callbacks=[lambda e: seen.append((e.step, e.learning_rate)) if e.kind == "step" else None],
        )
        ((version, scalars, starts),) = events(self.folder / "board")
        self.assertEqual((version, starts), (b"brain.Event:2", []))
        steps = [(step, values) for step, values in scalars if "train/loss" in values]
        self.assertEqual([step for step, _ in steps], [step for step, _ in seen])
        for (_, values), (_, rate) in zip(steps, seen):
            self.assertAlmostEqual(values["train/lr"], rate, places=8)
        # the mean over an epoch of the losses of its steps, by their rows, is that of the log
        rows = [json.loads(line) for line in log.read_text().splitlines()]
        of_steps = [row for row in rows if row["event"] == "step"]
        total = before = 0
        for row, (_, values) in zip(of_steps, steps):
            n = row["training"]["rows"]
            total, before = (total, before) if n > before else (0, 0)
            total, before = total + values["train/loss"] * (n - before), n
            self.assertAlmostEqual(total / n, row["training"]["loss"], places=5)
        ends = [(step, values) for step, values in scalars if "validation/loss" in values]
        self.assertEqual([step for step, _ in ends], [row["step"] for row in result.history])
        for (_, values), row in zip(ends, result.history):
            self.assertEqual(set(values), {"validation/loss", "validation/accuracy", "train/accuracy"})
            self.assertAlmostEqual(values["validation/loss"], row["val_loss"], places=6)
            self.assertAlmostEqual(values["validation/accuracy"], row["val_accuracy"], places=6)
            self.assertAlmostEqual(values["train/accuracy"], row["accuracy"], places=6)

    def test_a_schedule_ends_with_the_run(self):
        rates = []
        listen = [lambda e: rates.append(e.learning_rate) if e.kind == "step" else None]
        given = {"schedule": "linear", "learning_rate": 1e-3, "accumulate": 3, "batch_size": 10, "callbacks": listen}
        quiet(points(), epochs=2, **given)  # 20 batches: 7 steps an epoch
        self.assertEqual(len(rates), 14)
        for step, rate in enumerate(rates, 1):
            self.assertAlmostEqual(rate, 1e-3 * (14 - step) / 14, places=12)
        rates.clear()
        quiet(points(), epochs=2, max_steps=4, **given)
        for step, rate in enumerate(rates, 1):
            self.assertAlmostEqual(rate, 1e-3 * (4 - step) / 4, places=12)
        rates.clear()
        quiet(points(), epochs=1, schedule_steps=100, **given)
        self.assertAlmostEqual(rates[-1], 1e-3 * 93 / 100, places=12)

    def test_a_resumed_run_goes_on_in_a_file_of_its_own(self):
        saved, board, log = self.folder / "saved", self.folder / "board", self.folder / "log"
        given = {"checkpoint_dir": saved, "tensorboard": board, "log": log, "max_steps": 3, "save_every": 2}
        quiet(points(), epochs=1, **given)
        quiet(points(), epochs=2, resume=True, **{**given, "max_steps": 0})
        first, second = events(board)
        self.assertEqual(first[2], [])
        self.assertEqual(second[2], [4])  # what an earlier run says of steps from here on does not count
        self.assertEqual([step for step, values in first[1] if "train/loss" in values], [1, 2, 3])
        self.assertEqual(second[1][0][0], 4)
        rows = [json.loads(line) for line in log.read_text().splitlines()]
        steps = [row["step"] for row in rows if row["event"] == "step"]
        self.assertEqual(steps, list(range(1, steps[-1] + 1)))
        # the first loss after the resume is that of its step alone, in the middle of the epoch
        third, fourth = [row["training"] for row in rows if row["event"] == "step"][2:4]
        alone = fourth["loss"] * fourth["rows"] - third["loss"] * third["rows"]
        self.assertGreater(fourth["rows"], third["rows"])
        self.assertAlmostEqual(second[1][0][1]["train/loss"], alone / (fourth["rows"] - third["rows"]), places=5)

    @unittest.skipUnless(Path("/dev/full").is_char_device(), "there is no /dev/full")
    def test_a_log_that_cannot_be_written_does_not_end_the_training(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = quiet(points(), epochs=2, log="/dev/full")
        self.assertEqual([str(w.message)[:29] for w in caught], ["/dev/full: cannot be written:"])
        self.assertEqual(len(result.history), 2)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with self.assertRaisesRegex(RuntimeWarning, "/dev/full"):
                quiet(points(), epochs=2, log="/dev/full")

    def test_what_cannot_be_made_is_an_error_before_the_first_step(self):
        (self.folder / "file").write_text("")
        with self.assertRaisesRegex(OSError, "nowhere/log: cannot be written"):
            quiet(points(), epochs=1, log=self.folder / "nowhere" / "log")
        with self.assertRaises(OSError):
            quiet(points(), epochs=1, tensorboard=self.folder / "file")
        with self.assertRaises(TypeError):
            quiet(points(), epochs=1, log=3)


if __name__ == "__main__":
    unittest.main()
