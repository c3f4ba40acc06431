import { corrupt } from "../../../codec/codec.js";

/**
 * Decodes gzip or zlib (`deflate` is the browsers' name of it) by the browser's own decoder, which checks the checksum.
 * @param maxByteLength Bytes that are expected at most; decoding ends with an error if there are more.
 * @throws ZpublishError `corrupt-chunk`
 */
export async function inflate(
  bytes: Uint8Array,
  format: "gzip" | "deflate",
  maxByteLength: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new DecompressionStream(format);
  const writer = stream.writable.getWriter();
  // Its failure is also that of reading.
  const written = writer.write(bytes as Uint8Array<ArrayBuffer>).then(() => writer.close());
  written.catch(() => {});
  const reader = stream.readable.getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value);
      length += value.length;
      if (length > maxByteLength) throw corrupt(`expected at most ${maxByteLength} bytes`);
    }
  } catch (error) {
    await reader.cancel().catch(() => {});
    throw corrupt(`${format}: ${error instanceof Error ? error.message : String(error)}`, error);
  }
  const whole = new Uint8Array(length);
  let position = 0;
  for (const part of parts) {
    whole.set(part, position);
    position += part.length;
  }
  return whole;
}
