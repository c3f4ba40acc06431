/** Encodes bytes as LZW of TIFF, with the codes of TIFF 6.0, section 13. */
export function encodeLzw(bytes: Uint8Array): Uint8Array {
  const out: number[] = [];
  let bits = 0n;
  let bitCount = 0;
  let width = 9;
  let table = new Map<string, number>();
  const write = (code: number) => {
    bits = (bits << BigInt(width)) | BigInt(code);
    bitCount += width;
    while (bitCount >= 8) {
      out.push(Number((bits >> BigInt(bitCount - 8)) & 0xffn));
      bitCount -= 8;
    }
    bits &= (1n << BigInt(bitCount)) - 1n;
  };
  const clear = () => {
    write(256);
    table = new Map();
    width = 9;
  };
  const codeOf = (text: string) => (text.length === 1 ? text.charCodeAt(0) : (table.get(text) as number));
  clear();
  let known = "";
  for (const byte of bytes) {
    const longer = known + String.fromCharCode(byte);
    if (longer.length === 1 || table.has(longer)) {
      known = longer;
      continue;
    }
    write(codeOf(known));
    table.set(longer, 258 + table.size);
    const next = 258 + table.size;
    if (next === 4095) clear();
    else if (next >= 1 << width) width++;
    known = String.fromCharCode(byte);
  }
  if (known !== "") {
    write(codeOf(known));
    // The decoder adds an entry here, too.
    if (258 + table.size + 1 >= 1 << width && width < 12) width++;
  }
  write(257);
  if (bitCount > 0) out.push(Number((bits << BigInt(8 - bitCount)) & 0xffn));
  return Uint8Array.from(out);
}

/** Encodes bytes as PackBits: runs of three and more, the rest as they are. */
export function encodePackbits(bytes: Uint8Array): Uint8Array {
  const out: number[] = [];
  for (let at = 0; at < bytes.length; ) {
    let run = 1;
    while (run < 128 && bytes[at + run] === bytes[at]) run++;
    if (run >= 3) {
      out.push(257 - run, bytes[at] as number);
      at += run;
      continue;
    }
    const literal = Math.min(bytes.length - at, 1 + (at % 128));
    out.push(literal - 1, ...bytes.subarray(at, at + literal));
    at += literal;
  }
  return Uint8Array.from(out);
}

/** Form of rows, as the options of the codec `tiff-predictor`. */
export interface Rows {
  readonly itemSize: number;
  readonly rowItems: number;
  readonly step: number;
  readonly isBigEndian: boolean;
}

/** Stores the difference of each item from the one before it in its row and band. */
export function predictItems(bytes: Uint8Array, { itemSize, rowItems, step, isBigEndian }: Rows): Uint8Array {
  const out = Uint8Array.from(bytes);
  const item = (at: number) => {
    const digits = [...bytes.subarray(at, at + itemSize)];
    if (!isBigEndian) digits.reverse();
    return digits.reduce((sum, digit) => sum * 256n + BigInt(digit), 0n);
  };
  const rowBytes = rowItems * itemSize;
  for (let row = 0; row < bytes.length; row += rowBytes) {
    for (let index = step; index < rowItems; index++) {
      const at = row + index * itemSize;
      let difference = BigInt.asUintN(8 * itemSize, item(at) - item(at - step * itemSize));
      for (let place = 0; place < itemSize; place++, difference >>= 8n) {
        out[at + (isBigEndian ? itemSize - 1 - place : place)] = Number(difference & 0xffn);
      }
    }
  }
  return out;
}

/** Sorts the bytes of each row by weight, most significant first, and stores their differences. */
export function predictFloats(
  bytes: Uint8Array,
  { itemSize, rowItems, step, isBigEndian }: Rows,
): Uint8Array {
  const out = new Uint8Array(bytes.length);
  const rowBytes = rowItems * itemSize;
  for (let row = 0; row < bytes.length; row += rowBytes) {
    const sorted = new Uint8Array(rowBytes);
    for (let index = 0; index < rowBytes; index++) {
      const place = index % itemSize;
      const weight = isBigEndian ? place : itemSize - 1 - place;
      sorted[weight * rowItems + Math.floor(index / itemSize)] = bytes[row + index] as number;
    }
    for (let index = 0; index < rowBytes; index++) {
      out[row + index] = (sorted[index] as number) - (index < step ? 0 : (sorted[index - step] as number));
    }
  }
  return out;
}
