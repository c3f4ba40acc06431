/** Field types of TIFF by name. */
const TYPES = { byte: 1, ascii: 2, short: 3, long: 4, double: 12, long8: 16 } as const;
const SIZES = { byte: 1, ascii: 1, short: 2, long: 4, double: 8, long8: 8 } as const;

/** A tag with its values. */
export type Tag = readonly [tag: number, type: keyof typeof TYPES, values: readonly number[] | string];

/** An image to write. */
export interface WrittenImage {
  readonly tags: readonly Tag[];
  /** Tiles or strips as they are stored; null for absent ones. */
  readonly chunks: readonly (Uint8Array | null)[];
  /** True if chunks are tiles. Default: strips. */
  readonly isTiled?: boolean;
}

/** Form of a file. */
export interface WrittenForm {
  readonly isBigEndian?: boolean;
  readonly isBig?: boolean;
}

/** Writes a TIFF file: chunks first, then each directory with its values. */
export function writeTiff(
  images: readonly WrittenImage[],
  { isBigEndian = false, isBig = false }: WrittenForm = {},
): Uint8Array {
  const pieces: Uint8Array[] = [];
  let length = 0;
  const append = (bytes: Uint8Array): number => {
    const at = length;
    // Values begin at even offsets (TIFF 6.0, section 2).
    const padded = new Uint8Array(bytes.length + (bytes.length % 2));
    padded.set(bytes);
    pieces.push(padded);
    length += padded.length;
    return at;
  };
  const number = (value: number, size: number): Uint8Array => {
    const view = new DataView(new ArrayBuffer(size));
    if (size === 2) view.setUint16(0, value, !isBigEndian);
    else if (size === 4) view.setUint32(0, value, !isBigEndian);
    else if (size === 8) view.setBigUint64(0, BigInt(value), !isBigEndian);
    else view.setUint8(0, value);
    return new Uint8Array(view.buffer);
  };
  const valuesOf = ([, type, values]: Tag): Uint8Array => {
    if (typeof values === "string") return Buffer.from(`${values}\0`);
    return Buffer.concat(
      values.map((value) => {
        if (type !== "double") return number(value, SIZES[type]);
        const view = new DataView(new ArrayBuffer(8));
        view.setFloat64(0, value, !isBigEndian);
        return new Uint8Array(view.buffer);
      }),
    );
  };

  const wide = isBig ? 8 : 4;
  const mark = isBigEndian ? "MM" : "II";
  append(Buffer.concat([Buffer.from(mark), number(isBig ? 43 : 42, 2)]));
  if (isBig) append(Buffer.concat([number(8, 2), number(0, 2)]));
  // The link to each directory is written when its place is known.
  let link = append(new Uint8Array(wide));
  const links: [at: number, target: number][] = [];
  for (const { tags, chunks, isTiled = false } of images) {
    const places = chunks.map((chunk) => (chunk === null ? 0 : append(chunk)));
    const counts = chunks.map((chunk) => chunk?.length ?? 0);
    const all: Tag[] = [
      ...tags,
      [isTiled ? 324 : 273, isBig ? "long8" : "long", places],
      [isTiled ? 325 : 279, "long", counts],
    ];
    all.sort(([a], [b]) => a - b);
    const entries = all.map((tag) => {
      const bytes = valuesOf(tag);
      const inline = new Uint8Array(wide);
      if (bytes.length <= wide) inline.set(bytes);
      else inline.set(number(append(bytes), wide));
      const count = bytes.length / SIZES[tag[1]];
      return Buffer.concat([number(tag[0], 2), number(TYPES[tag[1]], 2), number(count, wide), inline]);
    });
    const count = number(entries.length, isBig ? 8 : 2);
    const at = append(Buffer.concat([count, ...entries, new Uint8Array(wide)]));
    links.push([link, at]);
    link = at + count.length + Buffer.concat(entries).length;
  }
  const file = Buffer.concat(pieces);
  for (const [at, target] of links) file.set(number(target, wide), at);
  return file;
}

/** Tags of an image of unsigned integers of one band; others replace or follow them. */
export function imageTags(width: number, height: number, bits: number, ...others: readonly Tag[]): Tag[] {
  const tags: Tag[] = [
    [256, "short", [width]],
    [257, "short", [height]],
    [258, "short", [bits]],
    [259, "short", [1]],
    [262, "short", [1]],
    [277, "short", [1]],
    [339, "short", [1]],
  ];
  return [...tags.filter(([tag]) => !others.some(([other]) => other === tag)), ...others];
}
