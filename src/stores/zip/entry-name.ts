/** Characters of the code page in which names are unless they are in UTF-8: the bytes from 128 on. */
const CP437 =
  "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀" +
  "αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u00a0";

/** Flag of an entry whose name is in UTF-8. */
const UTF8_FLAG = 0x0800;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Returns the name of an entry in UTF-8, often the same bytes; undefined if it says that it is in UTF-8 and is not.
 * @param flags General purpose flags of the entry.
 */
export function entryName(bytes: Uint8Array, flags: number): Uint8Array | undefined {
  if (bytes.every((byte) => byte < 128)) return bytes;
  if ((flags & UTF8_FLAG) !== 0) {
    try {
      utf8.decode(bytes);
      return bytes;
    } catch {
      return undefined;
    }
  }
  return Buffer.from(
    Array.from(bytes, (byte) => (byte < 128 ? String.fromCharCode(byte) : CP437[byte - 128])).join(""),
  );
}

const SLASH = 0x2f;
const BACKSLASH = 0x5c;
const DOT = 0x2e;

/** Returns why an entry is not read; undefined if it is. @param name In UTF-8. */
export function entryNameProblem(name: Uint8Array): string | undefined {
  if (name[0] === SLASH) return "it begins with a slash";
  let segment = 0;
  for (let at = 0; at <= name.length; at++) {
    const byte = name[at];
    if (byte === BACKSLASH) return "it has a backslash";
    if (byte === 0) return "it has a null character";
    if (byte !== SLASH && at < name.length) continue;
    const byteLength = at - segment;
    if (byteLength === 0) return "it has an empty part";
    if (byteLength <= 2 && name[segment] === DOT && name[at - 1] === DOT) return "it has a part of dots";
    segment = at + 1;
  }
  return undefined;
}
