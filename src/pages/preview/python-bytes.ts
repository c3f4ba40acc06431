const NAMED_ESCAPES: Readonly<Record<number, string>> = { 9: "\\t", 10: "\\n", 13: "\\r", 92: "\\\\" };

/** Writes bytes as Python's `repr` does: `b'abc'`. */
export function pythonBytes(bytes: Uint8Array): string {
  const quote = bytes.includes(39) && !bytes.includes(34) ? '"' : "'";
  let text = `b${quote}`;
  for (const byte of bytes) {
    const character = String.fromCharCode(byte);
    const named = NAMED_ESCAPES[byte];
    if (character === quote) text += `\\${quote}`;
    else if (named !== undefined) text += named;
    else if (byte >= 32 && byte < 127) text += character;
    else text += `\\x${byte.toString(16).padStart(2, "0")}`;
  }
  return text + quote;
}
