#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Writes a model in the format of ONNX that finds bright quadrants of a picture, and its description for onnxinference:
# make-model.py FILE
#
# Input: RGB of 64x64 pixels, float 0 to 1, plane by plane. Output: as YOLO 8 with one class, 5x4 numbers: x, y, width
# and height of each quadrant, and its mean brightness as the confidence.
import struct
import sys


def varint(value):
  data = bytearray()
  while value > 0x7f:
    data.append(value & 0x7f | 0x80)
    value >>= 7
  return bytes(data + bytes([value]))


def field(number, value):
  """A field of a protocol buffer: an integer, or bytes, text and messages with their length."""
  if isinstance(value, int):
    return varint(number << 3) + varint(value)
  if isinstance(value, str):
    value = value.encode()
  return varint(number << 3 | 2) + varint(len(value)) + value


def message(*fields):
  return b"".join(field(number, value) for number, value in fields)


FLOAT, INT64 = 1, 7  # TensorProto.DataType


def tensor(name, dims, kind, data):
  return message(*[(1, d) for d in dims], (2, kind), (8, name), (9, data))


def node(op, inputs, output, **attributes):
  def attribute(name, value):
    if isinstance(value, int):
      return message((1, name), (3, value), (20, 2))
    return message((1, name), *[(8, v) for v in value], (20, 7))
  return message(*[(1, i) for i in inputs], (2, output), (3, output), (4, op),
                 *[(5, attribute(name, value)) for name, value in attributes.items()])


def value_info(name, dims):
  shape = message(*[(1, message((1, d))) for d in dims])
  return message((1, name), (2, message((1, message((1, FLOAT), (2, shape))))))


# Rows of x and y of the centres, widths and heights; a column for each quadrant.
boxes = struct.pack("<16f", 16, 48, 16, 48, 16, 16, 48, 48, *[32] * 8)
graph = message(
    (1, node("AveragePool", ["images"], "pooled", kernel_shape=[32, 32], strides=[32, 32])),
    (1, node("ReduceMean", ["pooled"], "brightness", axes=[1], keepdims=1)),
    (1, node("Reshape", ["brightness", "row"], "scores")),
    (1, node("Concat", ["boxes", "scores"], "output0", axis=1)),
    (2, "quadrants"),
    (5, tensor("row", [3], INT64, struct.pack("<3q", 1, 1, 4))),
    (5, tensor("boxes", [1, 4, 4], FLOAT, boxes)),
    (11, value_info("images", [1, 3, 64, 64])),
    (12, value_info("output0", [1, 5, 4])))
with open(sys.argv[1], "wb") as file:
  file.write(message((1, 7), (8, message((2, 13))), (7, graph)))
# A range for each channel: with one for all, onnxinference of GStreamer 1.28.8 fills only the first channel.
with open(sys.argv[1] + ".modelinfo", "w") as file:
  file.write("""[modelinfo]
version=1.0
group-id=yolo-v8-out
[images]
id=images
type=float32
dims=1,3,64,64
dir=input
ranges=0.0,1.0;0.0,1.0;0.0,1.0
[output0]
id=yolo-v8-out
type=float32
dims=1,5,4
dir=output
dims-order=col-major
""")
