/** Milliseconds by stage of a `Server-Timing` header. @throws Error for what is none. */
export function parseServerTiming(header: string): Record<string, number> {
  const stages: Record<string, number> = {};
  for (const part of header.split(",").filter((each) => each.trim() !== "")) {
    const match = /^\s*([\w-]+);dur=([\d.]+)\s*$/.exec(part);
    if (match === null) throw new Error(`expected stages of Server-Timing, received ${header}`);
    stages[match[1]!] = Number(match[2]);
  }
  return stages;
}
