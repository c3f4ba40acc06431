/** What a browser fetches at once without a pause, and a compressor still works well with. */
const targetBytes = 1024 * 1024;

/** A chunk shape of about a mebibyte: the array's own, with its longest axis halved until it is small enough. */
export function defaultServedChunks(shape: readonly number[], itemSize: number): number[] {
  const chunks = shape.map((length) => Math.max(1, length));
  let byteLength = chunks.reduce((product, length) => product * length, Math.max(1, itemSize));
  while (byteLength > targetBytes) {
    const longest = chunks.indexOf(Math.max(...chunks));
    const length = chunks[longest] ?? 1;
    if (length <= 1) break;
    const half = Math.ceil(length / 2);
    chunks[longest] = half;
    byteLength = (byteLength / length) * half;
  }
  return chunks;
}
