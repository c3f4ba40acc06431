const HEAD_END = Buffer.from("\r\n\r\n");
const STATUS = /^HTTP\/1\.[01] (\d{3})/;
const CONTENT_LENGTH = /\r\ncontent-length: *(\d+)/i;

/** Follows the answers on one connection, without keeping their bodies. */
export interface AnswerReader {
  /**
   * Takes bytes as they come, which may be overwritten afterwards.
   * @returns The status of the answer that ends with them; `more`; or `broken` where it cannot be followed (in chunks,
   * say), or more came than was asked for.
   */
  take(bytes: Buffer): number | "more" | "broken";
}

/** @param onHead Told each answer's status line and headers. */
export function createAnswerReader(onHead?: (head: string) => void): AnswerReader {
  let head: Buffer | undefined;
  let status = 0;
  /** Bytes of the body still to come; undefined while the head is. */
  let missing: number | undefined;
  return {
    take(bytes) {
      if (missing === undefined) {
        const all = head === undefined ? bytes : Buffer.concat([head, bytes]);
        const headEnd = all.indexOf(HEAD_END);
        if (headEnd < 0) {
          head = Buffer.from(all);
          return "more";
        }
        head = undefined;
        const text = all.toString("latin1", 0, headEnd);
        status = Number(STATUS.exec(text)?.[1]);
        const length = status === 304 ? "0" : CONTENT_LENGTH.exec(text)?.[1];
        if (length === undefined) return "broken";
        onHead?.(text);
        missing = Number(length) - (all.length - headEnd - HEAD_END.length);
      } else {
        missing -= bytes.length;
      }
      if (missing > 0) return "more";
      if (missing < 0) return "broken";
      missing = undefined;
      return status;
    },
  };
}
