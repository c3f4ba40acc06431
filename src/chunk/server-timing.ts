/**
 * `Server-Timing` of the stages that ran (W3C Server Timing), durations in milliseconds.
 * @param timings Milliseconds by stage; stages of exactly 0 did not run.
 */
export function serverTiming(timings: Readonly<Record<string, number>>): string {
  let header = "";
  for (const stage in timings) {
    const duration = timings[stage] as number;
    if (duration === 0) continue;
    header += `${header === "" ? "" : ", "}${stage};dur=${duration.toFixed(3)}`;
  }
  return header;
}
