import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gridShapeOf } from "../../../src/model/data-tree.js";
import { openChunkReader } from "../../../src/open/chunk-reader.js";
import { createFileStore } from "../../../src/stores/file-store.js";
import {
  type ChunkPiece,
  type ChunkReader,
  type FileChunks,
  type LocalPlace,
  type PartChunkReader,
  type PartChunks,
  PIECED,
  type PieceLayout,
  versionOfPassed,
  versionOfPieces,
} from "../../../src/zarr/chunk-reader.js";
import type { ItemConversion } from "../../../src/zarr/codec-step.js";
import { createSteps } from "../../../src/zarr/plan/codec-steps.js";
import type { StoredArray } from "../../../src/zarr/stored-array.js";
import { makeOld } from "../write-store.js";
import { gridPositions } from "./stored-chunks.js";

/** One part of a joined array in tests. */
export interface TestPart {
  /** The part's array, with all of its own steps along the axis. */
  readonly stored: StoredArray;
  readonly reader: ChunkReader;
  /** First of its own steps that is used. */
  readonly from: number;
  /** Steps that are used. */
  readonly length: number;
  readonly conversion?: ItemConversion;
  /** Name of the part; its place if it has none. */
  readonly name?: string;
}

/** Fields of a joined array that its parts do not decide. */
export interface JoinedFields {
  readonly stored: StoredArray;
  readonly axis: number;
}

/** Joins parts along an axis, as slowly and simply as possible. */
export function joinParts(parts: readonly TestPart[], { stored, axis }: JoinedFields): StoredArray {
  const reader = joinedReader(parts, { stored, axis });
  const chunks: PartChunks = {
    ...{ kind: "parts", store: "joined", path: stored.path, axis },
    openReader: () => reader,
  };
  return { ...stored, variants: [[]], chunks };
}

/** How a part's array is decoded. */
export function layoutOf(part: TestPart, name: string, joined: StoredArray): PieceLayout {
  const { stored, conversion } = part;
  const { chunkShape, axisOrder, dataType, fill } = stored;
  const stepsOf = (codecs: StoredArray["codecs"]) =>
    createSteps(stored, codecs, chunkShape, 2 ** 30).reverse();
  const hex = (item: Uint8Array | null) =>
    Buffer.from(item ?? new Uint8Array(dataType.itemSize)).toString("hex");
  return {
    ...{ name, title: `part '${name}'`, chunkShape, axisOrder, itemSize: dataType.itemSize },
    decode: stepsOf(stored.codecs),
    variants: (stored.variants ?? []).map(stepsOf),
    maxStoredByteLength: undefined,
    fillItem: fill.item,
    hasOwnFill: conversion !== undefined || hex(fill.item) !== hex(joined.fill.item),
    conversion,
  };
}

function joinedReader(parts: readonly TestPart[], { stored, axis }: JoinedFields): PartChunkReader {
  const { shape, chunkShape } = stored;
  const placed: { part: TestPart; layout: PieceLayout; name: string; start: number }[] = [];
  let start = 0;
  for (const [index, part] of parts.entries()) {
    const name = part.name ?? `p${index}`;
    placed.push({ part, layout: layoutOf(part, name, stored), name, start });
    start += part.length;
  }

  function piecesOf(coords: readonly number[]): ChunkPiece[] {
    const first = coords.map((index, at) => index * chunkShape[at]!);
    const pieces: ChunkPiece[] = [];
    for (const { part, layout, name, start } of placed) {
      const begin = shape.map((_, at) => (at === axis ? start : 0));
      const end = shape.map((length, at) => (at === axis ? start + part.length : length));
      for (const own of gridPositions(gridShapeOf(part.stored.shape, layout.chunkShape))) {
        const origin = own.map(
          (index, at) => index * layout.chunkShape[at]! + (at === axis ? start - part.from : 0),
        );
        const isUsed = origin.every((place, at) => {
          const from = Math.max(place, begin[at]!, first[at]!);
          return from < Math.min(place + layout.chunkShape[at]!, end[at]!, first[at]! + chunkShape[at]!);
        });
        if (isUsed) pieces.push({ layout, reader: part.reader, coords: own, part: name, origin, begin, end });
      }
    }
    return pieces;
  }

  function passed(coords: readonly number[]): ChunkPiece | undefined {
    const [piece, ...others] = piecesOf(coords);
    if (piece === undefined || others.length > 0) return undefined;
    const { stored: own } = parts.find(({ reader }) => reader === piece.reader) as TestPart;
    const isEqual = [own.chunkShape, own.axisOrder, own.codecs, own.dataType.zarr, piece.layout.hasOwnFill];
    const wanted = [chunkShape, stored.axisOrder, stored.codecs, stored.dataType.zarr, false];
    const isAligned = piece.origin.every((place, at) => {
      const end = Math.min(place + chunkShape[at]!, shape[at]!);
      return place === coords[at]! * chunkShape[at]! && piece.begin[at]! <= place && piece.end[at]! >= end;
    });
    const isPassed = isAligned && JSON.stringify(isEqual) === JSON.stringify(wanted);
    return isPassed && (piece.reader.places?.variantOf(piece.coords) ?? 0) === 0 ? piece : undefined;
  }

  const reader: PartChunkReader = {
    parts: {
      variantOf: (coords) => (passed(coords) === undefined ? PIECED : 0),
      piecesOf: async (coords) => piecesOf(coords),
    },
    async version(coords) {
      const whole = passed(coords);
      if (whole !== undefined) {
        const { token } = await whole.reader.version(whole.coords);
        return { token: token && versionOfPassed(whole, token) };
      }
      const pieces = piecesOf(coords);
      const found = await Promise.all(pieces.map((piece) => piece.reader.version(piece.coords)));
      return {
        token: versionOfPieces(
          pieces,
          found.map(({ token }) => token),
        ),
      };
    },
    async read(coords, options) {
      const whole = passed(coords);
      if (whole === undefined) throw new Error("expected a chunk of one part");
      const found = await whole.reader.read(whole.coords, options);
      return found && { ...found, version: versionOfPassed(whole, found.version) };
    },
  };
  return reader;
}

/** Writes the chunks of a reader into a directory as a Zarr store has them. @returns A reader that a worker opens, too. */
export async function writeChunks(
  directory: string,
  stored: StoredArray,
  reader: ChunkReader,
): Promise<ChunkReader> {
  for (const coords of gridPositions(gridShapeOf(stored.shape, stored.chunkShape))) {
    const chunk = await reader.read(coords);
    if (chunk === undefined) continue;
    const path = join(directory, coords.join(".") || "0");
    await writeFile(path, chunk.bytes);
    await makeOld(path);
  }
  const source: FileChunks = {
    ...{ kind: "files", directory, keyEncoding: { name: "v2", separator: "." } },
  };
  return openChunkReader(source);
}

/** Writes the chunks of a reader behind each other into one file. @returns A reader that knows their places. */
export async function writeFileOfChunks(
  directory: string,
  key: string,
  stored: StoredArray,
  reader: ChunkReader,
): Promise<ChunkReader> {
  const chunks: Uint8Array[] = [];
  const places = new Map<string, Omit<LocalPlace, "version">>();
  let offset = 0;
  for (const coords of gridPositions(gridShapeOf(stored.shape, stored.chunkShape))) {
    const chunk = await reader.read(coords);
    if (chunk === undefined) continue;
    const byteLength = chunk.bytes.length;
    chunks.push(chunk.bytes);
    places.set(coords.join("."), {
      ...{ directory, key, offset, byteLength, wholeByteLength: byteLength },
      variant: chunk.variant ?? 0,
    });
    offset += byteLength;
  }
  const path = join(directory, key);
  await writeFile(path, Buffer.concat(chunks));
  await makeOld(path);
  const files = createFileStore(directory);
  const version = (await files.stat(key))?.version.token ?? "";
  const has = (coords: readonly number[]) => places.has(coords.join("."));
  return {
    version: async (coords) => ({ token: has(coords) ? (await files.stat(key))?.version.token : undefined }),
    places: {
      has,
      variantOf: (coords) => places.get(coords.join("."))?.variant ?? 0,
      placeOf(coords) {
        const place = places.get(coords.join("."));
        return place && { ...place, version };
      },
    },
    async read(coords) {
      const place = places.get(coords.join("."));
      const range = place && { offset: place.offset, byteLength: place.byteLength };
      const found = range && (await files.read(key, { range, version: { token: version } }));
      return found && { bytes: found.bytes, version, variant: place?.variant ?? 0 };
    },
  };
}
