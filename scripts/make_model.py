#!/usr/bin/env python3
"""Writes the project's own network: it takes the noise out of an image and doubles its size.

usage: make_model.py OUT.onnx        (needs numpy and onnx)

Nothing in it is trained; every filter is written down here.

- Eight steps of total variation flow. A step takes the differences of each pixel to its eight
  neighbours (a convolution from 3 to 24 channels), limits each (clip) and adds a share of their sum
  back (a convolution from 24 to 3): small differences, which are noise, level out; edges stay.
- Doubling. Cubic interpolation as a convolution to four pixels for each, plus details: second
  differences in four directions, both signs, those below a threshold cut off (ReLU), interpolated in
  the same way and subtracted, which sharpens edges and leaves noise alone.
"""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

STEPS = 8
LIMIT = 0.02
SHARE = 0.11
THRESHOLD = 0.03
SHARPNESS = 0.10
NEIGHBOURS = [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)]


class Net:
    """Nodes and constants, in the order in which they are added."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, name, values):
        self.constants.append(numpy_helper.from_array(np.asarray(values, np.float32), name))
        return name

    def add(self, op, inputs, name, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def conv(self, x, name, weights, bias=None, pad=0):
        inputs = [x, self.constant(name + ".weight", weights)]
        if bias is not None:
            inputs.append(self.constant(name + ".bias", bias))
        return self.add("Conv", inputs, name, pads=[pad] * 4)

    def edged(self, x, name, border):
        """A border that repeats the outermost pixels, so that no edge appears there."""
        pads = np.array([0, 0, border, border] * 2, np.int64)
        self.constants.append(numpy_helper.from_array(pads, name + ".pads"))
        return self.add("Pad", [x, name + ".pads"], name, mode="edge")


def differences():
    """To each of 3 channels the differences to the eight neighbours: [24, 3, 3, 3]."""
    weights = np.zeros((24, 3, 3, 3))
    for c in range(3):
        for k, (dy, dx) in enumerate(NEIGHBOURS):
            weights[8 * c + k, c, 1 + dy, 1 + dx] = 1
            weights[8 * c + k, c, 1, 1] = -1
    return weights


def gathered():
    """The share of each limited difference that a pixel takes: [3, 24, 1, 1]."""
    weights = np.zeros((3, 24, 1, 1))
    for c in range(3):
        for k, (dy, dx) in enumerate(NEIGHBOURS):
            weights[c, 8 * c + k] = SHARE / (1 if dy * dx == 0 else 2)
    return weights


def second_differences():
    """In four directions, both signs: [24, 3, 3, 3]."""
    weights = np.zeros((24, 3, 3, 3))
    for c in range(3):
        for k, (dy, dx) in enumerate([(0, 1), (1, 0), (1, 1), (1, -1)]):
            for s, sign in enumerate((1, -1)):
                o = 8 * c + 2 * k + s
                weights[o, c, 1, 1] = -2 * sign
                weights[o, c, 1 + dy, 1 + dx] += sign
                weights[o, c, 1 - dy, 1 - dx] += sign
    return weights


def cubic():
    """For an even and an odd pixel of the doubled image, the weights of five pixels: [2, 5]."""

    def weight(d):
        d, a = abs(d), -0.5
        if d < 1:
            return (a + 2) * d**3 - (a + 3) * d**2 + 1
        return a * (d**3 - 5 * d**2 + 8 * d - 4) if d < 2 else 0

    rows = [[weight(i - 2 - offset) for i in range(5)] for offset in (-0.25, 0.25)]
    return np.array(rows) / np.sum(rows, axis=1, keepdims=True)


def doubled(channels, mix):
    """`mix` ([3, channels]) of the channels, interpolated to four pixels: [12, channels, 5, 5]."""
    taps = cubic()
    weights = np.zeros((12, channels, 5, 5))
    for c in range(3):
        for y in range(2):
            for x in range(2):
                kernel = np.outer(taps[y], taps[x])
                weights[4 * c + 2 * y + x] = mix[c][:, None, None] * kernel
    return weights


def main(path):
    net = Net()
    limits = [net.constant("low", -LIMIT), net.constant("high", LIMIT)]
    x = "input"
    for step in range(STEPS):
        name = f"flow{step}"
        d = net.edged(x, name + ".edged", 1)
        d = net.conv(d, name + ".differences", differences())
        d = net.add("Clip", [d, *limits], name + ".limited")
        d = net.conv(d, name + ".share", gathered())
        x = net.add("Add", [x, d], name)
    base = net.conv(net.edged(x, "double.edged", 2), "double.base", doubled(3, np.eye(3)))
    signs = np.zeros((3, 24))
    for c in range(3):
        signs[c, 8 * c : 8 * c + 8] = -SHARPNESS * np.tile([1, -1], 4)
    details = net.edged(x, "details.edged", 1)
    details = net.conv(details, "details", second_differences(), np.full(24, -THRESHOLD))
    details = net.add("Relu", [details], "details.above")
    details = net.conv(details, "double.details", doubled(24, signs), pad=2)
    y = net.add("Add", [base, details], "double")
    y = net.add("DepthToSpace", [y], "pixels", blocksize=2, mode="CRD")
    net.add("Clip", [y, net.constant("black", 0.0), net.constant("white", 1.0)], "output")

    def value(name, height, width):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3, height, width])

    graph = helper.make_graph(
        net.nodes, "denoise-double", [value("input", "h", "w")],
        [value("output", "2h", "2w")], net.constants)
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="stripmill", ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
