import type { Hdf5ChunkedLayout, Hdf5ChunkIndex } from "../../../src/source/hdf5/hdf5-model.js";

/** Finds the layout of a chunked dataset in the messages of its object header. Trusts the file. */
export function chunkedLayout(bytes: Uint8Array, address: number, baseAddress: number): Hdf5ChunkedLayout {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (const { type, at } of messages(view, address + baseAddress, baseAddress)) {
    if (type === 8) return parseLayout(view, at, baseAddress);
  }
  throw new Error("expected a layout message");
}

function* messages(
  view: DataView,
  header: number,
  base: number,
): Generator<{ readonly type: number; readonly at: number }> {
  const isV2 = view.getUint32(header, false) === 0x4f484452;
  const flags = isV2 ? view.getUint8(header + 5) : 0;
  const times = flags & 0x20 ? 16 : 0;
  const phases = flags & 0x10 ? 4 : 0;
  const sizeBytes = 1 << (flags & 3);
  const sizeAt = header + 6 + times + phases;
  const first = isV2
    ? { at: sizeAt + sizeBytes, length: uint(view, sizeAt, sizeBytes) }
    : { at: header + 16, length: view.getUint32(header + 8, true) };
  const headBytes = isV2 ? 4 + (flags & 4 ? 2 : 0) : 8;
  const blocks = [first];
  for (const { at: start, length } of blocks) {
    for (let at = start; at + headBytes <= start + length; ) {
      const type = isV2 ? view.getUint8(at) : view.getUint16(at, true);
      const size = view.getUint16(at + (isV2 ? 1 : 2), true);
      const body = at + headBytes;
      if (type === 0x10) {
        const next = base + uint(view, body, 8);
        const bytes = uint(view, body + 8, 8);
        blocks.push(isV2 ? { at: next + 4, length: bytes - 8 } : { at: next, length: bytes });
      }
      yield { type, at: body };
      at = body + size;
    }
  }
}

function parseLayout(view: DataView, at: number, baseAddress: number): Hdf5ChunkedLayout {
  const version = view.getUint8(at);
  if (view.getUint8(at + 1) !== 2) throw new Error("expected a chunked layout");
  const flags = view.getUint8(at + 2);
  const rank = view.getUint8(at + (version === 3 ? 2 : 3));
  const width = version === 3 ? 4 : view.getUint8(at + 4);
  const dimsAt = version === 3 ? at + 11 : at + 5;
  const dims = Array.from({ length: rank }, (_, i) => uint(view, dimsAt + i * width, width));
  let end = dimsAt + rank * width;
  let index: Hdf5ChunkIndex = { kind: "b-tree-1" };
  let addressAt = at + 3;
  if (version > 3) {
    const kind = view.getUint8(end++);
    if (kind === 1 && flags & 2) {
      index = { kind: "single", byteLength: uint(view, end, 8), filterMask: view.getUint32(end + 8, true) };
      end += 12;
    } else if (kind === 1) index = { kind: "single", byteLength: null, filterMask: 0 };
    else if (kind === 2) index = { kind: "implicit" };
    else if (kind === 3) index = { kind: "fixed-array", pageBits: view.getUint8(end++) };
    else if (kind === 4) {
      const [maxBits, indexElements, minPointers, minElements, pageBits] = [0, 1, 2, 3, 4].map((i) =>
        view.getUint8(end + i),
      ) as [number, number, number, number, number];
      index = { kind: "extensible-array", maxBits, indexElements, minPointers, minElements, pageBits };
      end += 5;
    } else {
      index = { kind: "b-tree-2" };
      end += 6;
    }
    addressAt = end;
  }
  const address = uint(view, addressAt, 8);
  return {
    kind: "chunked",
    version,
    chunkShape: dims.slice(0, -1),
    itemSize: dims.at(-1)!,
    address: address > Number.MAX_SAFE_INTEGER ? null : address + baseAddress,
    baseAddress,
    edgesAreUnfiltered: version > 3 && (flags & 1) !== 0,
    index,
  };
}

function uint(view: DataView, at: number, byteLength: number): number {
  let value = 0;
  for (let i = byteLength - 1; i >= 0; i--) value = value * 256 + view.getUint8(at + i);
  return value;
}
