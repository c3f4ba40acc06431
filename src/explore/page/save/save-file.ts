/** Lets a person save a file. */
export function saveFile(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  // The browser reads the content after the click.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Returns a file name of words: `air-series-40N-245E.csv` of `air series`, `40°N`, `245°E`. */
export function fileName(words: readonly string[], extension: string): string {
  const name = words
    .join("-")
    .replace(/[^\p{L}\p{N}.+-]+/gu, "-")
    .replace(/-{2,}/g, "-")
    .replace(/^[-.]+|-+$/g, "");
  return `${name.slice(0, 100) || "data"}.${extension}`;
}

/** Writes a text to the clipboard, also on pages that came without TLS. Returns false if the browser refuses. */
export async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard !== undefined) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Permission may be withheld; the older way needs none.
    }
  }
  const area = document.createElement("textarea");
  area.value = text;
  area.setAttribute("aria-hidden", "true");
  area.className = "spoken";
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  return isCopied;
}
