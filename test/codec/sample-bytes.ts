/** Bytes of several characters, of a length that holds whole items of 8 bytes. */
export function sampleBytes(byteLength: number): Record<string, Uint8Array> {
  const smooth = new Float32Array(byteLength / 4).map((_, index) => Math.sin(index / 50) * 100);
  const counting = new Int32Array(byteLength / 4).map((_, index) => index * 3);
  const noise = new Uint8Array(byteLength);
  let state = 12345;
  for (let index = 0; index < byteLength; index++) {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    noise[index] = state >>> 24;
  }
  const repeating = new Uint8Array(byteLength).map((_, index) => index % 7);
  return {
    smooth: new Uint8Array(smooth.buffer),
    counting: new Uint8Array(counting.buffer),
    noise,
    repeating,
    zeros: new Uint8Array(byteLength),
  };
}
