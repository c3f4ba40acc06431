/** Milliseconds of the processor that this process has used: unlike those of the clock, about the same on a busy machine. */
export function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
