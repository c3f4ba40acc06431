import { type Codec, corrupt } from "./codec.js";
import { OWN_MEMORY } from "./kernel/kernel-memory.js";

/** Options of `tiff-predictor`, as its rule checks them. */
interface PredictorOptions {
  /** 2: each item is stored as the difference from the one before it in its row and band. 3: the same of bytes, by weight. */
  readonly predictor: number;
  /** Bytes of an item. */
  readonly itemSize: number;
  /** Items of a row, of all its bands. */
  readonly rowItems: number;
  /** Items from one item to the next of its band: the number of interleaved bands. */
  readonly step: number;
  readonly isBigEndian: boolean;
}

const IS_LITTLE_ENDIAN = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

/** Predictors of TIFF (TIFF 6.0, section 14, and Adobe's TIFF Technical Note 3). Rows are independent of each other. */
export const tiffPredictor: Codec = {
  decode(bytes, { codec }, memory = OWN_MEMORY) {
    const options = codec as unknown as PredictorOptions;
    const { predictor, itemSize, rowItems } = options;
    const rowBytes = rowItems * itemSize;
    if (bytes.length % rowBytes !== 0) {
      throw corrupt(`tiff-predictor: expected rows of ${rowBytes} bytes, received ${bytes.length} bytes`);
    }
    const decoded = memory.allocate(bytes.length);
    if (predictor === 3) sumFloats(bytes, decoded, options);
    else if (itemSize === 1) sumBytes(bytes, decoded, rowBytes, options.step);
    else if (canSumWords(decoded, options)) sumWords(bytes, decoded, options);
    else sumItems(bytes, decoded, options);
    return decoded;
  },
};

function sumBytes(bytes: Uint8Array, target: Uint8Array, rowBytes: number, step: number): void {
  for (let row = 0; row < bytes.length; row += rowBytes) {
    target.set(bytes.subarray(row, row + step), row);
    for (let index = row + step; index < row + rowBytes; index++) {
      target[index] = (target[index - step] as number) + (bytes[index] as number);
    }
  }
}

/** Whether items are words of this machine. */
function canSumWords({ byteOffset }: Uint8Array, { itemSize, isBigEndian }: PredictorOptions): boolean {
  return (
    (itemSize === 2 || itemSize === 4) && !isBigEndian && IS_LITTLE_ENDIAN && byteOffset % itemSize === 0
  );
}

/** The same as {@link sumItems}, faster. */
function sumWords(bytes: Uint8Array, target: Uint8Array, options: PredictorOptions): void {
  const { itemSize, rowItems, step } = options;
  target.set(bytes);
  const count = target.length / itemSize;
  const words =
    itemSize === 2
      ? new Uint16Array(target.buffer, target.byteOffset, count)
      : new Uint32Array(target.buffer, target.byteOffset, count);
  for (let row = 0; row < count; row += rowItems) {
    for (let index = row + step; index < row + rowItems; index++) {
      words[index] = (words[index] as number) + (words[index - step] as number);
    }
  }
}

/** Adds integers of 2, 4 and 8 bytes, byte by byte with a carry: rows need not be aligned, and both byte orders are alike. */
function sumItems(bytes: Uint8Array, target: Uint8Array, options: PredictorOptions): void {
  const { itemSize, rowItems, isBigEndian } = options;
  const rowBytes = rowItems * itemSize;
  const back = options.step * itemSize;
  const first = isBigEndian ? itemSize - 1 : 0;
  const next = isBigEndian ? -1 : 1;
  for (let row = 0; row < bytes.length; row += rowBytes) {
    target.set(bytes.subarray(row, row + Math.min(back, rowBytes)), row);
    for (let item = row + back; item < row + rowBytes; item += itemSize) {
      let carry = 0;
      for (let count = 0, index = item + first; count < itemSize; count++, index += next) {
        const sum = (target[index - back] as number) + (bytes[index] as number) + carry;
        target[index] = sum;
        carry = sum >>> 8;
      }
    }
  }
}

/** Adds bytes within a row, which holds the most significant bytes of all items first, and puts items together. */
function sumFloats(bytes: Uint8Array, target: Uint8Array, options: PredictorOptions): void {
  const { itemSize, rowItems, step, isBigEndian } = options;
  const rowBytes = rowItems * itemSize;
  const summed = new Uint8Array(rowBytes);
  for (let row = 0; row < bytes.length; row += rowBytes) {
    sumBytes(bytes.subarray(row, row + rowBytes), summed, rowBytes, step);
    for (let weight = 0; weight < itemSize; weight++) {
      const place = isBigEndian ? weight : itemSize - 1 - weight;
      const plane = weight * rowItems;
      for (let item = 0; item < rowItems; item++) {
        target[row + item * itemSize + place] = summed[plane + item] as number;
      }
    }
  }
}
