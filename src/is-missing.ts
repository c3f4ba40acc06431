/** Whether a system error says that there is no such file or directory, and not that one cannot be looked at. */
export function isMissing(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  return code === "ENOENT" || code === "ENOTDIR";
}
