const BAR_WIDTH = 30;
/** Where the terminal does not say. */
const DEFAULT_COLUMNS = 80;

/** How far a program is, on standard error: a bar on a terminal, otherwise a line per row. */
export interface Progress {
  /** Begins a row or a piece of work. */
  label(text: string): void;
  /** @param done From 0 to 1, of the whole run. */
  update(done: number, detail: string): void;
  /** Takes the bar away. */
  end(): void;
}

export function createProgress(stream: NodeJS.WriteStream = process.stderr): Progress {
  let title = "";
  if (!stream.isTTY) {
    return {
      label: (text) => stream.write(`${text}\n`),
      update: () => {},
      end: () => {},
    };
  }
  return {
    label(text) {
      title = text;
    },
    update(done, detail) {
      const filled = Math.round(Math.min(1, Math.max(0, done)) * BAR_WIDTH);
      const bar = "█".repeat(filled) + "░".repeat(BAR_WIDTH - filled);
      const line = `${bar} ${String(Math.floor(done * 100)).padStart(3)} % ${title}: ${detail}`;
      stream.write(`\r\x1b[K${line.slice(0, (stream.columns || DEFAULT_COLUMNS) - 1)}`);
    },
    end: () => stream.write("\r\x1b[K"),
  };
}
