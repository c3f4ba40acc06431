/** An element of an XML document. */
export interface XmlElement {
  /** Name without the prefix of a namespace. */
  readonly name: string;
  readonly children: readonly XmlElement[];
  /** Text directly in the element, with references resolved. */
  readonly text: string;
}

/** One token: CDATA; a comment or instruction; a tag as slash, name, attributes and slash; text. */
const TOKEN =
  /<!\[CDATA\[([\s\S]*?)\]\]>|(<!--[\s\S]*?-->|<\?[\s\S]*?\?>)|<(\/?)([^\s<>/!?="']+)((?:\s+[^\s<>/="']+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(\/?)>|([^<]+)/y;

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/**
 * Parses a whole XML document as S3 sends it: attributes are skipped, and document types are not known.
 * @returns The root; undefined if the text is no such document, or ends too early.
 */
export function parseXml(text: string): XmlElement | undefined {
  const document: OpenElement = { name: "", children: [], text: "" };
  const open = [document];
  TOKEN.lastIndex = text.startsWith("\ufeff") ? 1 : 0;
  while (TOKEN.lastIndex < text.length) {
    const [token, data, , closes, qualifiedName, attributes, isEmpty, characters] = TOKEN.exec(text) ?? [];
    const current = open.at(-1) as OpenElement;
    if (token === undefined) return undefined;
    if (data !== undefined) {
      current.text += data;
    } else if (characters !== undefined) {
      const resolved = resolveReferences(characters);
      if (resolved === undefined) return undefined;
      current.text += resolved;
    } else if (qualifiedName !== undefined) {
      const name = qualifiedName.slice(qualifiedName.indexOf(":") + 1);
      if (closes === "/") {
        if (current === document || current.name !== name || attributes !== "" || isEmpty === "/") {
          return undefined;
        }
        open.pop();
      } else {
        const element: OpenElement = { name, children: [], text: "" };
        current.children.push(element);
        if (isEmpty !== "/") open.push(element);
      }
    }
  }
  const isWhole = open.length === 1 && document.children.length === 1 && document.text.trim() === "";
  return isWhole ? document.children[0] : undefined;
}

interface OpenElement extends XmlElement {
  readonly children: OpenElement[];
  text: string;
}

/** Returns undefined if a reference is unknown. */
function resolveReferences(text: string): string | undefined {
  if (!text.includes("&")) return text;
  let isKnown = true;
  const resolved = text.replace(
    /&(?:#x([0-9a-f]{1,6})|#([0-9]{1,7})|([a-z]+));|&/gi,
    (_, hex?: string, decimal?: string, name?: string) => {
      const code = Number.parseInt(hex ?? decimal ?? "", hex === undefined ? 10 : 16);
      const character =
        name === undefined ? (code <= 0x10ffff ? String.fromCodePoint(code) : undefined) : ENTITIES[name];
      isKnown &&= character !== undefined;
      return character ?? "";
    },
  );
  return isKnown ? resolved : undefined;
}
