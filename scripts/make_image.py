#!/usr/bin/env python3
"""Writes the project's own image: a part of the Mandelbrot set, with the noise of a camera.

usage: make_image.py OUT.png [WIDTH HEIGHT]        (needs numpy)
"""

import struct
import sys
import zlib

import numpy as np

CENTRE = -0.743643887 + 0.131825904j
SPAN = 0.0045
ITERATIONS = 700
NOISE = 2.0


def escape_times(c):
    """Smooth escape time of each point; 0 inside the set."""
    times = np.zeros(c.shape)
    where = np.arange(c.size)
    z, c = np.zeros(c.size, complex), c.ravel().copy()
    for i in range(ITERATIONS):
        z = z * z + c
        out = z.real**2 + z.imag**2 > 1e6
        if out.any():
            r = np.log(np.abs(z[out]))
            times.flat[where[out]] = i + 1 - np.log2(r / np.log(1e3))
            keep = ~out
            z, c, where = z[keep], c[keep], where[keep]
    return times


def render(width, height, oversampling=3):
    """[height, width, 3] in 0 to 1."""
    rgb = np.zeros((height, width, 3))
    phase = np.array([0.0, 0.9, 1.9])
    for sub in range(oversampling**2):
        dy, dx = divmod(sub, oversampling)
        x = (np.arange(width) + (dx + 0.5) / oversampling - width / 2) * SPAN / width
        y = (np.arange(height) + (dy + 0.5) / oversampling - height / 2) * SPAN / width
        t = escape_times(CENTRE + x[None, :] + 1j * y[:, None])
        colour = 0.5 + 0.5 * np.cos(0.9 * np.sqrt(t)[..., None] + phase)
        rgb += np.where(t[..., None] > 0, colour, 0.02)
    return rgb / oversampling**2


def png(rgb):
    """A PNG of an 8-bit image; each row is filtered as makes its bytes smallest."""
    height, width, bands = rgb.shape
    rows = rgb.reshape(height, width * bands).astype(np.int16)
    left = np.zeros_like(rows)
    left[:, bands:] = rows[:, :-bands]
    up = np.zeros_like(rows)
    up[1:] = rows[:-1]
    corner = np.zeros_like(rows)
    corner[1:, bands:] = rows[:-1, :-bands]
    p = left + up - corner
    pa, pb, pc = abs(p - left), abs(p - up), abs(p - corner)
    paeth = np.where((pa <= pb) & (pa <= pc), left, np.where(pb <= pc, up, corner))
    guesses = [0 * rows, left, up, (left + up) // 2, paeth]
    filtered = np.stack([(rows - g).astype(np.uint8) for g in guesses])
    cost = np.abs(filtered.astype(np.int8).astype(int)).sum(axis=2)
    best = cost.argmin(axis=0)
    data = b"".join(bytes([k]) + filtered[k, y].tobytes() for y, k in enumerate(best))

    def chunk(kind, body):
        check = zlib.crc32(kind + body)
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(data, 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def main(path, width=1536, height=1152):
    rgb = 255 * render(int(width), int(height))
    noise = np.random.default_rng(1).normal(0, NOISE, rgb.shape)
    with open(path, "wb") as file:
        file.write(png(np.clip(np.rint(rgb + noise), 0, 255).astype(np.uint8)))


if __name__ == "__main__":
    main(*sys.argv[1:])
