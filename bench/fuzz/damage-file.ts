import { type Mutation, mutations } from "../../test/codec/mutate-chunk.js";
import type { FileTarget } from "./file-targets.js";

/** A damaged copy of a file, and what may be expected of it. */
export interface FileDamage extends Mutation {
  /**
   * `chunks`: only bytes of chunks differ, so everything else reads as before. `cut`: the end is missing, so whatever reads is as
   * before. `any`: nothing can be said about its values.
   */
  readonly scope: "chunks" | "cut" | "any";
}

const EXTREMES = [0, 1, 2, 7, 8, 16, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff];
const MAX_FLIPS = 4;

/** Yields damaged copies of a file without end. @param random Numbers in [0, 1): the same ones give the same copies. */
export function* damageFile(target: FileTarget, random: () => number): Generator<FileDamage, never, void> {
  const { bytes: good, extents, metadata } = target;
  const draw = (below: number) => Math.floor(random() * below);
  const general = mutations(good, [good], random);
  const inMetadata = () => metadata[draw(metadata.length)] ?? draw(good.length);
  const isSealed = () => target.seal !== undefined && draw(4) > 0;

  /** Damages a copy, and writes checksums again in three of four copies. */
  function damaged(kind: string, change: (bytes: Uint8Array) => void): FileDamage {
    const bytes = new Uint8Array(good);
    change(bytes);
    if (isSealed()) target.seal?.(bytes);
    return { kind, bytes, scope: "any" };
  }

  for (;;) {
    yield damaged("bits of metadata flipped", (bytes) => {
      for (let i = draw(MAX_FLIPS); i >= 0; i--) {
        const place = inMetadata();
        bytes[place] = (bytes[place] as number) ^ (1 << draw(8));
      }
    });
    yield damaged("an extreme in metadata", (bytes) => {
      const value = [...EXTREMES, good.length, good.length - 1, good.length + 1][
        draw(EXTREMES.length + 3)
      ] as number;
      writeNumber(bytes, inMetadata(), value, 1 << draw(4), draw(2) === 0);
    });
    yield damaged("a large number in metadata", (bytes) => {
      writeNumber(bytes, inMetadata(), 2 ** (31 + draw(31)), 8, draw(2) === 0);
    });
    // Addresses of other structures make cycles, and lead to structures of another kind.
    yield damaged("metadata copied over other metadata", (bytes) => {
      const length = [1, 2, 4, 8, 16, 64][draw(6)] as number;
      const from = inMetadata();
      bytes.copyWithin(inMetadata(), from, from + length);
    });
    yield damaged("a number replaced by a place in metadata", (bytes) => {
      writeNumber(bytes, inMetadata(), inMetadata(), 4 << draw(2), draw(2) === 0);
    });
    yield { kind: "cut short", bytes: good.slice(0, draw(good.length)), scope: "cut" };
    yield { ...general.next().value, scope: "any" };
    const extent = extents[draw(extents.length)];
    if (extent === undefined || extent.end === extent.begin) continue;
    const bytes = new Uint8Array(good);
    for (let i = draw(MAX_FLIPS); i >= 0; i--) {
      const place = extent.begin + draw(extent.end - extent.begin);
      bytes[place] = (bytes[place] as number) ^ (1 << draw(8));
    }
    yield { kind: "bits of a chunk flipped", bytes, scope: "chunks" };
  }
}

function writeNumber(
  bytes: Uint8Array,
  place: number,
  value: number,
  width: number,
  isBigEndian: boolean,
): void {
  let rest = BigInt(value);
  for (let i = 0; i < width && i < 8; i++) {
    const at = place + (isBigEndian ? width - 1 - i : i);
    if (at < bytes.length) bytes[at] = Number(rest & 0xffn);
    rest >>= 8n;
  }
}
